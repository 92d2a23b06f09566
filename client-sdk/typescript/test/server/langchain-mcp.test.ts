/** MCP servers whose tools the middleware of LangChain registers itself, against a service. */
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";

import { HumanMessage, ToolMessage } from "@langchain/core/messages";
import { Client as McpSdkClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { Client, v1 } from "@toolgate/client";
import { fromMcp, type FromMcpOptions, type McpClient } from "@toolgate/client/langchain";
import { createAgent } from "langchain";

import { scripted } from "../../examples/langchain.js";
import { freshTenant, Service } from "./service.js";

const ALL = { options: { deferral: v1.DeferralMode.OFF } };
const PLANT = "mcp__garden__plant_trees";
const WATER = "mcp__garden__water_trees";
const inputSchema = { type: "object" as const, properties: {} };

/** A little MCP server in this process, which lists its tools in pages of one. */
function inProcess(acts: Record<string, object>): McpClient {
  return {
    listTools({ cursor = "0" } = {}) {
      const names = Object.keys(acts);
      const next = Number(cursor) + 1;
      const tools = names
        .slice(next - 1, next)
        .map((name) => ({ name, description: `${name} in the garden`, inputSchema }));
      return Promise.resolve(next < names.length ? { tools, nextCursor: String(next) } : { tools });
    },
    callTool: ({ name }) => Promise.resolve({ ...acts[name] }),
  };
}

const done = { content: [{ type: "text", text: "done" }] };

function connected({ target }: Service): Client {
  return new Client(target, { tenant: freshTenant(), timeoutMs: 30_000 });
}

/** What an agent over the servers answers calls with, and what its model was shown. */
async function answersOf(
  client: Client,
  servers: Record<string, McpClient>,
  options: FromMcpOptions,
  ...script: Parameters<typeof scripted>
) {
  const { model, shown } = scripted(...script);
  const agent = createAgent({ model, middleware: [await fromMcp(client, servers, options)] });
  const { messages } = await agent.invoke({ messages: [new HumanMessage("What is the sum of 2 and 3?")] });
  const answers = messages.filter((message) => ToolMessage.isInstance(message));
  return { answers: answers.map(({ status, text }) => ({ status, text })), shown };
}

test("a real MCP server's tools are registered as it lists them, and run", async () => {
  await using service = await Service.get();
  await using client = connected(service);
  const program = createRequire(import.meta.url).resolve(
    "@modelcontextprotocol/server-everything/dist/index.js",
  );
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [program, "stdio"],
    stderr: "ignore",
  });
  const everything = new McpSdkClient({ name: "test", version: "1" });
  await everything.connect(transport);
  try {
    const options = { route: { options: { topK: 1, deferral: v1.DeferralMode.ALWAYS } } };
    const sum = "mcp__everything__get-sum";
    const call: Parameters<typeof scripted>[number] = [[sum, { a: 2, b: 3 }]];
    const { answers, shown } = await answersOf(client, { everything }, options, call, "It is 5.");
    assert.match(answers[0]?.text ?? "", /The sum of 2 and 3 is 5/);
    assert.ok(shown[0]?.includes(sum));
    const { tools } = await everything.listTools();
    const registered: unknown[] = [];
    for await (const { definitionJson } of client.listTools({ server: "everything" })) {
      registered.push(JSON.parse(definitionJson));
    }
    for (const tool of tools)
      assert.ok(
        registered.some((one) => isSame(one, tool)),
        tool.name,
      );
  } finally {
    await everything.close();
  }
});

test("a failed result is a failed call and unlocks nothing, and a server that can't be listed is left out", async () => {
  await using service = await Service.get();
  await using client = connected(service);
  const garden = inProcess({
    plant_trees: { isError: true, content: [{ type: "text", text: "no spade" }] },
    water_trees: done,
  });
  const gone: McpClient = { ...garden, listTools: () => Promise.reject(new Error("no such host")) };
  const needs = { case: "hasPriorToolOutput", value: PLANT } as const;
  const register = {
    garden: { toolSettings: [{ name: "water_trees", precondition: { condition: needs } }] },
  };
  const warnings: string[] = [];
  const options = { route: ALL, register, onWarning: (line: string) => warnings.push(line) };
  const script = [[[PLANT, {}]], [[WATER, {}]], "No spade."] as Parameters<typeof scripted>;
  const { answers } = await answersOf(client, { garden, gone }, options, ...script);
  assert.deepEqual(
    answers.map(({ status }) => status),
    ["error", "error"],
  );
  assert.match(answers[0]?.text ?? "", /no spade/);
  assert.match(answers[1]?.text ?? "", /precondition/);
  assert.deepEqual(warnings, ["MCP server gone can't be listed: Error: no such host"]);
});

test("servers are registered again after the service lost its catalog", async () => {
  await using service = await Service.get();
  await using client = connected(service);
  const warnings: string[] = [];
  const options = { route: ALL, onWarning: (line: string) => warnings.push(line) };
  const middleware = await fromMcp(client, { garden: inProcess({ plant_trees: done }) }, options);
  await client.unregisterServer({ server: "garden" });
  const { model } = scripted([[PLANT, {}]], "Done.");
  const agent = createAgent({ model, middleware: [middleware] });
  const { messages } = await agent.invoke({ messages: [new HumanMessage("Plant trees.")] });
  assert.equal(messages.find((message) => ToolMessage.isInstance(message))?.text, "done");
  assert.deepEqual(warnings, ["the service has lost the catalog: MCP servers are registered again"]);
});

test("settings for a server that there is not are a mistake", async () => {
  const register = { barn: {} };
  const asked = fromMcp(new Client(), { garden: inProcess({}) }, { register });
  await assert.rejects(asked, /no MCP server barn: there is garden/);
});

function isSame(one: unknown, other: unknown): boolean {
  try {
    assert.deepEqual(one, other);
    return true;
  } catch {
    return false;
  }
}
