/** MCP servers whose tools a conversation of the AI SDK registers itself, against a service. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { createMCPClient } from "@ai-sdk/mcp";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { Client, v1 } from "@toolgate/client";
import { type FromMcpOptions, type McpClient, McpTools, ToolgateConversation } from "@toolgate/client/ai";
import { dynamicTool, generateText, jsonSchema, stepCountIs } from "ai";

import { everything, run } from "../../examples/ai-mcp.js";
import { notes, scripted } from "../../examples/ai-sdk.js";
import { freshTenant, Service, told } from "./service.js";

const inputSchema = { type: "object" as const, properties: {} };

/** Does the work of a tool of a little MCP server. */
type Act = () => unknown;

/** An MCP server in this process; its tools are those of `acts` when it is asked, in pages of one. */
function inProcess(acts: Record<string, Act>): McpClient & { closed: boolean } {
  return {
    closed: false,
    listTools({ params = {} } = {}) {
      const names = Object.keys(acts);
      const at = Number(params.cursor ?? 0);
      const tools = names
        .slice(at, at + 1)
        .map((name) => ({ name, description: `${name} in the garden`, inputSchema }));
      return Promise.resolve(at + 1 < names.length ? { tools, nextCursor: String(at + 1) } : { tools });
    },
    toolsFromDefinitions({ tools }) {
      const made = (tools as { name: string; description: string }[]).map(({ name, description }) => {
        const execute = () => Promise.resolve(acts[name]?.());
        return [name, dynamicTool({ description, inputSchema: jsonSchema(inputSchema), execute })] as const;
      });
      return Object.fromEntries(made);
    },
    close() {
      this.closed = true;
      return Promise.resolve();
    },
  };
}

const ALL = { options: { deferral: v1.DeferralMode.OFF } };
const PLANT = "mcp__garden__plant_trees";
const WATER = "mcp__garden__water_trees";
const done = { content: [{ type: "text", text: "done" }] };

function connected({ target }: Service): Client {
  return new Client(target, { tenant: freshTenant(), timeoutMs: 30_000 });
}

/** Returns what a model is shown by each of its requests while it says a script about the trees. */
async function shownIn(toolgate: ToolgateConversation, ...script: Parameters<typeof scripted>) {
  const model = scripted(...script);
  const prompt = "Plant trees in the garden and water them.";
  const result = await generateText({ model, prompt, stopWhen: stepCountIs(9), ...toolgate.settings() });
  const shown = model.doGenerateCalls.map(({ tools }) => (tools ?? []).map(({ name }) => name).sort());
  return { result, shown };
}

test("a real MCP server's tools are registered as it lists them, and run", async () => {
  await using service = await Service.get();
  await using client = connected(service);
  const warnings: string[] = [];
  const options: FromMcpOptions = {
    route: { options: { topK: 1 } },
    onWarning: told(warnings),
  };
  const { result, shown } = await run(client, options);
  assert.ok(shown[0]?.includes("mcp__everything__get-sum"));
  const added = result.steps[0]?.content.at(-1);
  assert.ok(added?.type === "tool-result");
  assert.match(JSON.stringify(added.output), /The sum of 2 and 3 is 5/);
  assert.deepEqual(warnings, []);

  const mcp = await everything();
  try {
    const { tools: listed } = await mcp.listTools();
    const registered = new Map<string, unknown>();
    for await (const { name, definitionJson } of client.listTools({ server: "everything" })) {
      registered.set(name, JSON.parse(definitionJson));
    }
    const defined = listed as { name: string; annotations?: object; outputSchema?: object }[];
    assert.deepEqual([...registered.keys()].sort(), defined.map(({ name }) => name).sort());
    for (const tool of defined) assert.deepEqual(registered.get(tool.name), tool);
    assert.ok(defined.some(({ annotations }) => annotations !== undefined));
    assert.ok(defined.some(({ outputSchema }) => outputSchema !== undefined));
  } finally {
    await mcp.close();
  }
});

test("a server that can't be reached is left out with a warning, until a refresh reaches it", async () => {
  await using service = await Service.get();
  await using client = connected(service);
  const warnings: string[] = [];
  const garden = inProcess({ plant_trees: () => done });
  let tries = 0;
  const connect = () => (++tries === 1 ? Promise.reject(new Error("no such host")) : Promise.resolve(garden));
  const options = { search: false, route: ALL, onWarning: told(warnings) };
  const barn = inProcess({ feed_horses: () => done });
  const toolgate = await ToolgateConversation.fromMcp(client, { garden: connect, barn }, options);
  assert.deepEqual(warnings, ["MCP server garden can't be listed: Error: no such host"]);
  assert.deepEqual((await shownIn(toolgate, "No.")).shown, [["mcp__barn__feed_horses"]]);
  await toolgate.refresh();
  assert.deepEqual((await shownIn(toolgate, "Now.")).shown, [["mcp__barn__feed_horses", PLANT]]);
  await toolgate.refresh();
  assert.equal(tries, 2, "connected once");
  await toolgate.close();
  assert.deepEqual([garden.closed, barn.closed], [true, false]);
});

test("a refresh amid a run shows the tools that the server lists now, and a gone one is refused", async () => {
  await using service = await Service.get();
  await using client = connected(service);
  const acts: Record<string, Act> = {
    plant_trees: async () => {
      delete acts["plant_trees"];
      acts["water_trees"] = () => done;
      await mcp.refresh();
      return done;
    },
    dig_holes: () => done,
  };
  const mcp = await McpTools.load(client, { garden: inProcess(acts) });
  const toolgate = new ToolgateConversation(client, mcp, { search: false, route: ALL });
  const dig = "mcp__garden__dig_holes";
  const { result, shown } = await shownIn(toolgate, [[PLANT, {}]], [[WATER, {}]], [[PLANT, {}]], "Done.");
  assert.deepEqual(shown[0], [dig, PLANT]);
  assert.deepEqual(shown[1], [dig, WATER]);
  assert.equal(result.steps[1]?.content.at(-1)?.type, "tool-result");
  const refused = result.steps[2]?.content.at(-1);
  assert.ok(refused?.type === "tool-error");
  assert.match(String(refused.error), /"error":"unknown_tool"/);
});

test("servers are registered again after the service lost its catalog", async () => {
  await using service = await Service.get();
  await using client = connected(service);
  const warnings: string[] = [];
  const options = { search: false, route: ALL, onWarning: told(warnings) };
  const garden = inProcess({ plant_trees: () => done });
  const toolgate = await ToolgateConversation.fromMcp(client, { garden }, options);
  await client.unregisterServer({ server: "garden" });
  const { result } = await shownIn(toolgate, [[PLANT, {}]], "Done.");
  assert.equal(result.steps[0]?.content.at(-1)?.type, "tool-result");
  assert.deepEqual(warnings, ["the service has lost the catalog: MCP servers are registered again"]);
});

test("a result that the server calls an error is a failed call, and unlocks nothing", async () => {
  await using service = await Service.get();
  await using client = connected(service);
  const garden = inProcess({
    plant_trees: () => ({ isError: true, content: [{ type: "text", text: "no spade" }] }),
    water_trees: () => done,
  });
  const needs = { case: "hasPriorToolOutput", value: PLANT } as const;
  const settings = { toolSettings: [{ name: "water_trees", precondition: { condition: needs } }] };
  const options = { route: ALL, register: { garden: settings } };
  const toolgate = await ToolgateConversation.fromMcp(client, { garden }, options);
  const { result } = await shownIn(toolgate, [[PLANT, {}]], [[WATER, {}]], "No spade.");
  const [failed, refused] = result.steps.map(({ content }) => content.at(-1));
  assert.ok(failed?.type === "tool-error");
  assert.equal(String(failed.error), "Error: no spade");
  assert.ok(refused?.type === "tool-error");
  assert.match(String(refused.error), /precondition/);
});

test("settings for a server that there is not are a mistake, and so is a refresh without servers", async () => {
  const client = new Client();
  const register = { barn: {} };
  await assert.rejects(
    ToolgateConversation.fromMcp(client, { garden: inProcess({}) }, { register }),
    /no MCP server barn: there is garden/,
  );
  await assert.rejects(new ToolgateConversation(client, {}).refresh(), TypeError);
});

test("what a real server says of its tools is followed without a refresh", async () => {
  await using service = await Service.get();
  await using client = connected(service);
  const garden = new McpServer({ name: "garden", version: "1" });
  const act = () => ({ content: [{ type: "text" as const, text: "done" }] });
  const plant = garden.registerTool("plant_trees", { description: "Plants trees." }, act);
  const [ours, theirs] = InMemoryTransport.createLinkedPair();
  await garden.connect(theirs);
  const mcp = await createMCPClient({ transport: ours });
  const options = { search: false, route: ALL, onWarning: () => undefined };
  const toolgate = await ToolgateConversation.fromMcp(client, { garden: mcp }, options);
  assert.deepEqual((await shownIn(toolgate, "Hello.")).shown, [[PLANT]]);
  plant.remove();
  garden.registerTool("water_trees", { description: "Waters trees." }, act);
  const { result, shown } = await shownIn(toolgate, [[WATER, {}]], "Done.");
  assert.deepEqual(shown, [[WATER], [WATER]]);
  assert.equal(result.steps[0]?.content.at(-1)?.type, "tool-result");
  await mcp.close();
});

test("tools that come from no server are registered with their schemas, in one line", async () => {
  await using service = await Service.get();
  await using client = connected(service);
  const warnings: string[] = [];
  const options = { route: ALL, onWarning: told(warnings) };
  const toolgate = await ToolgateConversation.fromTools(client, { notes: notes() }, options);
  const find = "mcp__notes__find_notes";
  await client.unregisterServer({ server: "notes" });
  const { result } = await shownIn(toolgate, [[find, { word: "milk" }]], [[find, { text: "milk" }]], "One.");
  const [refused, found] = result.steps.map(({ content }) => content.at(-1));
  assert.ok(refused?.type === "tool-error");
  assert.match(String(refused.error), /arguments_invalid/, "Gate knows the schema");
  assert.equal(found?.type, "tool-result");
  assert.deepEqual(warnings, ["the service has lost the catalog: MCP servers are registered again"]);
});
