/** MCP servers whose tools the middleware of LangChain registers itself, against a service. */
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";

import { HumanMessage, ToolMessage } from "@langchain/core/messages";
import { DynamicStructuredTool } from "@langchain/core/tools";
import { Client as McpSdkClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { ToolListChangedNotificationSchema } from "@modelcontextprotocol/sdk/types.js";
import { Client, v1 } from "@toolgate/client";
import { fromMcp, type FromMcpOptions, fromTools, type McpClient } from "@toolgate/client/langchain";
import { createAgent } from "langchain";

import { notes, scripted } from "../../examples/langchain.js";
import { add } from "../../examples/langchain-mcp.js";
import { freshTenant, Service, told } from "./service.js";

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

const failing = new DynamicStructuredTool({
  name: "failing",
  description: "Fails.",
  schema: inputSchema,
  func: () => Promise.reject(new Error("it broke")),
});

const done = { content: [{ type: "text", text: "done" }] };

function connected({ target }: Service): Client {
  return new Client(target, { tenant: freshTenant(), timeoutMs: 30_000 });
}

/** Returns what an agent over the servers answers calls with, and what its model was shown. */
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

test("the example runs over a real MCP server, and its first call is refused", async () => {
  await using service = await Service.get();
  await using client = connected(service);
  const { messages, shown, report } = await add(client, {
    route: { options: { topK: 1, deferral: v1.DeferralMode.ALWAYS } },
  });
  const [refused, sum] = messages.filter((message) => ToolMessage.isInstance(message));
  assert.match(refused?.text ?? "", /"error":"arguments_invalid"/);
  assert.match(sum?.text ?? "", /The sum of 2 and 3 is 5/);
  assert.equal(messages.at(-1)?.text, "It is 5.");
  assert.ok(shown[0]?.includes("mcp__everything__get-sum"));
  assert.equal(report.requests, 3);
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
  const options = { route: ALL, register, onWarning: told(warnings) };
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
  const options = { route: ALL, onWarning: told(warnings) };
  const middleware = await fromMcp(client, { garden: inProcess({ plant_trees: done }) }, options);
  await client.unregisterServer({ server: "garden" });
  const { model } = scripted([[PLANT, {}]], "Done.");
  const agent = createAgent({ model, middleware: [middleware] });
  const { messages } = await agent.invoke({ messages: [new HumanMessage("Plant trees.")] });
  assert.equal(messages.find((message) => ToolMessage.isInstance(message))?.text, "done");
  assert.deepEqual(warnings, ["the service has lost the catalog: MCP servers are registered again"]);
});

test("what a real server says of its tools is shown and run without a refresh, in an agent that exists", async () => {
  await using service = await Service.get();
  await using client = connected(service);
  const garden = new McpServer({ name: "garden", version: "1" });
  const acts = (text: string, isError = false) => ({ isError, content: [{ type: "text" as const, text }] });
  garden.registerTool("dig_holes", { description: "Digs holes." }, () => acts("dug"));
  const plant = garden.registerTool("plant_trees", { description: "Plants trees." }, () => acts("planted"));
  const [ours, theirs] = InMemoryTransport.createLinkedPair();
  await garden.connect(theirs);
  const mcp = new McpSdkClient({ name: "test", version: "1" });
  await mcp.connect(ours);
  const middleware = await fromMcp(client, { garden: mcp }, { search: false, route: ALL });
  const { model, shown } = scripted("Hello.", [[WATER, {}]], [[PLANT, {}]], "No spade.");
  const agent = createAgent({ model, tools: [failing], middleware: [middleware] });
  await agent.invoke({ messages: [new HumanMessage("Plant trees.")] });
  let isHeard = false;
  mcp.setNotificationHandler(ToolListChangedNotificationSchema, () => void (isHeard = true));
  plant.remove();
  garden.registerTool("water_trees", { description: "Waters trees." }, () => acts("no water", true));
  const { messages } = await agent.invoke({ messages: [new HumanMessage("Plant trees.")] });
  const dig = "mcp__garden__dig_holes";
  assert.deepEqual(shown[0], ["failing", dig, PLANT]);
  assert.deepEqual(shown[1], ["failing", dig, WATER]);
  const [watered, planted] = messages.filter((message) => ToolMessage.isInstance(message));
  assert.match(watered?.text ?? "", /no water/, "a new tool runs, and its error is an answer");
  assert.match(planted?.text ?? "", /"error":"unknown_tool"/, "one that is gone is refused");
  assert.deepEqual([watered?.status, planted?.status], ["error", "error"]);
  assert.ok(isHeard, "handlers of the client's own are told too");
  await mcp.close();
});

test("tools that come from no server are registered with their schemas, in one line", async () => {
  await using service = await Service.get();
  await using client = connected(service);
  const find = "mcp__notes__find_notes";
  const middleware = await fromTools(client, { notes: notes() }, { route: ALL, onWarning: () => undefined });
  const { model } = scripted([[find, { word: "milk" }]], [[find, { text: "milk" }]], "One.");
  const agent = createAgent({ model, middleware: [middleware] });
  const { messages } = await agent.invoke({ messages: [new HumanMessage("Find the note about milk.")] });
  const [refused, found] = messages.filter((message) => ToolMessage.isInstance(message));
  assert.match(refused?.text ?? "", /arguments_invalid/, "Gate knows the schema");
  assert.equal(found?.text, '["1"]');
});

test("a refresh shows a tool as its server defines it now", async () => {
  await using service = await Service.get();
  await using client = connected(service);
  let description = "Plants trees.";
  const garden: McpClient = {
    listTools: () => Promise.resolve({ tools: [{ name: "plant_trees", description, inputSchema }] }),
    callTool: () => Promise.resolve({ ...done }),
  };
  const middleware = await fromMcp(client, { garden }, { search: false, route: ALL });
  const agent = createAgent({ model: scripted([[PLANT, {}]], "Done.").model, middleware: [middleware] });
  description = "Plants bushes.";
  await middleware.refresh();
  const { messages } = await agent.invoke({ messages: [new HumanMessage("Plant.")] });
  assert.equal(messages.find((message) => ToolMessage.isInstance(message))?.text, "done");
  const plant = middleware.tools?.find(({ name }) => name === PLANT);
  assert.equal(plant?.description, "Plants bushes.");
});

test("an error of a tool of the agent's own stays an answer", async () => {
  await using service = await Service.get();
  await using client = connected(service);
  const middleware = await fromMcp(client, { garden: inProcess({ plant_trees: done }) }, { route: ALL });
  const { model } = scripted([["failing", {}]], "Sorry.");
  const agent = createAgent({ model, tools: [failing], middleware: [middleware] });
  const { messages } = await agent.invoke({ messages: [new HumanMessage("Fail.")] });
  const answer = messages.find((message) => ToolMessage.isInstance(message));
  assert.equal(answer?.status, "error");
  assert.equal(answer.text, "Error: it broke\n Please fix your mistakes.");
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
