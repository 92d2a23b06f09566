/**
 * An agent of the Vercel AI SDK over a real MCP server, whose tools are registered as it lists them. The model follows a
 * script. `TOOLGATE_TARGET` says where the service is.
 *
 *     npm run build && npm run build:test && node build/examples/ai-mcp.js
 */
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

import { createMCPClient } from "@ai-sdk/mcp";
import { Experimental_StdioMCPTransport as StdioMCPTransport } from "@ai-sdk/mcp/mcp-stdio";
import { Client } from "@toolgate/client";
import { type FromMcpOptions, type McpClient, ToolgateConversation } from "@toolgate/client/ai";
import { generateText, stepCountIs } from "ai";

import { scripted } from "./ai-sdk.js";

/** Starts the MCP server that shows everything of the protocol. */
export function everything(): Promise<McpClient> {
  const program = createRequire(import.meta.url).resolve(
    "@modelcontextprotocol/server-everything/dist/index.js",
  );
  const transport = new StdioMCPTransport({
    command: process.execPath,
    args: [program, "stdio"],
    stderr: "ignore",
  });
  return createMCPClient({ transport });
}

/** Lets a model add two numbers with a tool of the MCP server. */
export async function run(client: Client, options: FromMcpOptions = {}) {
  const toolgate = await ToolgateConversation.fromMcp(client, { everything }, options);
  try {
    const model = scripted([["mcp__everything__get-sum", { a: 2, b: 3 }]], "It is 5.");
    const prompt = "What is the sum of 2 and 3?";
    const result = await generateText({ model, prompt, stopWhen: stepCountIs(4), ...toolgate.settings() });
    const shown = model.doGenerateCalls.map(({ tools }) => tools?.map(({ name }) => name) ?? []);
    return { result, shown };
  } finally {
    await toolgate.close();
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const client = new Client(process.env["TOOLGATE_TARGET"], { tenant: "example-ai-mcp", timeoutMs: 10_000 });
  try {
    const { result, shown } = await run(client);
    console.log(
      JSON.stringify(shown, undefined, 1),
      JSON.stringify(result.steps[0]?.content.at(-1)),
      result.text,
    );
  } finally {
    client.close();
  }
}
