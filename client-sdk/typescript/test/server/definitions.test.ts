/** Definitions that each integration registers of an MCP server, as the server lists them. */
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";

import { Client as McpSdkClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { Client, Conversation } from "@toolgate/client";
import * as aiSdk from "@toolgate/client/ai";
import * as langchain from "@toolgate/client/langchain";
import * as agentsSdk from "@toolgate/client/openai-agents";

import { everything as ofAi } from "../../examples/ai-mcp.js";
import { everything as ofAgents } from "../../examples/openai-agents.js";
import { freshTenant, Service } from "./service.js";

/** Connects to the MCP server that shows everything of the protocol. */
async function everything(): Promise<McpSdkClient> {
  const program = createRequire(import.meta.url).resolve(
    "@modelcontextprotocol/server-everything/dist/index.js",
  );
  const args = [program, "stdio"];
  const transport = new StdioClientTransport({ command: process.execPath, args, stderr: "ignore" });
  const client = new McpSdkClient({ name: "test", version: "1" });
  await client.connect(transport);
  return client;
}

/** Registers the server by each integration; gives what closes the connection. */
const WAYS: Readonly<Record<string, (client: Client) => Promise<{ close(): Promise<unknown> }>>> = {
  LangChain: async (client) => {
    const connected = await everything();
    await langchain.fromMcp(client, { everything: connected });
    return connected;
  },
  "the AI SDK": async (client) => {
    const connected = await ofAi();
    await aiSdk.ToolgateConversation.fromMcp(client, { everything: connected });
    return { close: () => Promise.resolve(connected.close()) };
  },
  "the Agents SDK": async (client) => {
    const connected = ofAgents();
    await connected.connect();
    await agentsSdk.ToolgateConversation.fromMcp(client, { everything: connected });
    return connected;
  },
  "a loop of one's own": async (client) => {
    const connected = await everything();
    await Conversation.fromMcp(client, "anthropic", { everything: connected });
    return connected;
  },
};

for (const [name, register] of Object.entries(WAYS)) {
  test(`${name} registers definitions as the server lists them, with annotations and output schemas`, async () => {
    await using service = await Service.get();
    await using client = new Client(service.target, { tenant: freshTenant(), timeoutMs: 30_000 });
    const connected = await register(client);
    const server = await everything();
    try {
      const { tools } = await server.listTools();
      assert.ok(tools.some(({ annotations }) => annotations !== undefined));
      assert.ok(tools.some(({ outputSchema }) => outputSchema !== undefined));
      const registered = new Map<string, unknown>();
      for await (const { name: tool, definitionJson } of client.listTools({ server: "everything" })) {
        registered.set(tool, JSON.parse(definitionJson));
      }
      assert.equal(registered.size, tools.length);
      for (const tool of tools) assert.deepEqual(registered.get(tool.name), tool);
    } finally {
      await Promise.all([connected.close(), server.close()]);
    }
  });
}
