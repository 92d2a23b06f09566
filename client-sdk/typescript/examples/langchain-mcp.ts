/**
 * A LangChain agent over a real MCP server, whose tools are registered as it lists them. The model follows a script.
 * `TOOLGATE_TARGET` says where the service is.
 *
 *     npm run build && npm run build:test && node build/examples/langchain-mcp.js
 */
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

import { MemorySaver } from "@langchain/langgraph";
import { Client as McpClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { Client } from "@toolgate/client";
import { fromMcp, type FromMcpOptions } from "@toolgate/client/langchain";
import { createAgent } from "langchain";

import { scripted } from "./langchain.js";

/** Connects to the MCP server that shows everything of the protocol. */
export async function everything(): Promise<McpClient> {
  const program = createRequire(import.meta.url).resolve(
    "@modelcontextprotocol/server-everything/dist/index.js",
  );
  const mcp = new McpClient({ name: "example", version: "1" });
  await mcp.connect(
    new StdioClientTransport({ command: process.execPath, args: [program, "stdio"], stderr: "ignore" }),
  );
  return mcp;
}

/** Lets an agent add two numbers with a tool of the MCP server; its first call is refused. */
export async function add(client: Client, options: FromMcpOptions = {}) {
  const mcp = await everything();
  try {
    // A `MultiServerMCPClient` of @langchain/mcp-adapters has such sessions: `await multi.getClient("everything")`.
    const toolgate = await fromMcp(client, { everything: mcp }, options);
    // Stands for a model such as new ChatAnthropic({ model: "claude-opus-5-5" }).
    const { model, shown } = scripted(
      [["mcp__everything__get-sum", { first: 2, second: 3 }]],
      [["mcp__everything__get-sum", { a: 2, b: 3 }]],
      "It is 5.",
    );
    const agent = createAgent({ model, middleware: [toolgate], checkpointer: new MemorySaver() });
    const thread = { configurable: { thread_id: "1" } };
    const asked = { role: "user" as const, content: "What is the sum of 2 and 3?" };
    const { messages } = await agent.invoke({ messages: [asked] }, thread);
    const state = await agent.graph.getState(thread);
    return { messages, shown, report: toolgate.report(state.values as object) };
  } finally {
    await mcp.close();
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  await using client = new Client(process.env["TOOLGATE_TARGET"], {
    tenant: "example-langchain-mcp",
    timeoutMs: 10_000,
  });
  const { messages, shown, report } = await add(client);
  for (const names of shown) console.log(names);
  for (const { type, text } of messages) console.log(`${type}: ${text}`);
  console.log(report);
}
