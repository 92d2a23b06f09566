/**
 * A loop of one's own over a real MCP server, with a model that follows a script in place of Anthropic's. `TOOLGATE_TARGET`
 * says where the service is.
 *
 *     npm run build && npm run build:test && node build/examples/loop.js
 */
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

import { Client as McpClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { Client, Conversation, type ModelRequest } from "@toolgate/client";

const PROGRAM = createRequire(import.meta.url).resolve(
  "@modelcontextprotocol/server-everything/dist/index.js",
);
const model = "claude-opus-5-5";

/** Messages of Anthropic's SDK, as far as they are used: `anthropic.beta.messages` has them. */
export interface Messages {
  create(request: { readonly tools: object[]; readonly messages: object[] }): Promise<object>;
}

/** A model that first asks for the sum. */
export function scripted() {
  const requests: { readonly tools: object[]; readonly messages: object[] }[] = [];
  const call = { type: "tool_use", id: "call_1", name: "mcp__everything__get-sum", input: { a: 2, b: 3 } };
  const script: object[] = [call, { type: "text", text: "It is 5." }];
  const create: Messages["create"] = (request) => {
    requests.push(request);
    return Promise.resolve({ role: "assistant", content: [script[requests.length - 1]] });
  };
  return { create, requests };
}

/** Registers what the server lists, and has the model answer a question. */
export async function run(client: Client, messages: Messages) {
  const everything = new McpClient({ name: "example", version: "1" });
  const args = [PROGRAM, "stdio"];
  await everything.connect(new StdioClientTransport({ command: process.execPath, args, stderr: "ignore" }));
  try {
    const conversation = await Conversation.fromMcp(client, "anthropic", { everything }, { model });
    let request: ModelRequest | undefined = await conversation.say("What is the sum of 2 and 3?");
    while (request !== undefined) {
      const { tools, messages: sent, betas } = request;
      const asked = { model, max_tokens: 1024, tools, messages: sent, betas: [...betas] };
      request = await conversation.take(await messages.create(asked));
    }
    return conversation;
  } finally {
    await everything.close();
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  await using client = new Client(process.env["TOOLGATE_TARGET"], {
    tenant: "example-loop",
    timeoutMs: 10_000,
  });
  const conversation = await run(client, scripted());
  console.log(conversation.text, conversation.report());
}
