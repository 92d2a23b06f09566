/**
 * An agent of the OpenAI Agents SDK over a real MCP server, whose tools are registered as it lists them. The model follows a
 * script. `TOOLGATE_TARGET` says where the service is.
 *
 *     npm run build && npm run build:test && node build/examples/openai-agents.js
 */
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

import { Agent, MCPServerStdio, run, setTracingDisabled } from "@openai/agents";
import { assistantMessage, functionCall, ScriptedModel } from "@openai/agents/testing";
import { Client } from "@toolgate/client";
import { type FromMcpOptions, ToolgateConversation } from "@toolgate/client/openai-agents";

/** A model's answer: a text, or calls of tools, whose arguments may be a text as it wrote them. */
export type Line = string | readonly (readonly [tool: string, args: Record<string, unknown> | string])[];

let calls = 0;

/** A model that says what a script says. */
export function scripted(...script: Line[]): ScriptedModel {
  return new ScriptedModel(
    script.map((line) =>
      typeof line === "string"
        ? [assistantMessage(line)]
        : line.map(([name, args]) => functionCall(name, args, { callId: `call_${String(++calls)}` })),
    ),
  );
}

/** The MCP server that shows everything of the protocol. */
export function everything(): MCPServerStdio {
  const program = createRequire(import.meta.url).resolve(
    "@modelcontextprotocol/server-everything/dist/index.js",
  );
  return new MCPServerStdio({ command: process.execPath, args: [program, "stdio"] });
}

/** Lets an agent add two numbers with a tool of the MCP server. */
export async function add(client: Client, options: FromMcpOptions = {}) {
  setTracingDisabled(true);
  const server = everything();
  await server.connect();
  try {
    const toolgate = await ToolgateConversation.fromMcp(client, { everything: server }, options);
    // Stands for a model's name, such as "gpt-5".
    const model = scripted([["mcp__everything__get-sum", { a: 2, b: 3 }]], "It is 5.");
    const agent = new Agent({ name: "assistant", model });
    const result = await run(toolgate.agent(agent), "What is the sum of 2 and 3?");
    return { result, model, report: toolgate.report() };
  } finally {
    await server.close();
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  await using client = new Client(process.env["TOOLGATE_TARGET"], {
    tenant: "example-openai-agents",
    timeoutMs: 10_000,
  });
  const { result, model, report } = await add(client);
  for (const { request } of model.calls) console.log(request.tools.map(({ name }) => name));
  console.log(result.finalOutput, report);
}
