/** Conversations of the OpenAI Agents SDK: real agents and a real service, with models that follow a script. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { Client as McpSdkClient } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import {
  Agent,
  type AgentInputItem,
  type MCPServer,
  OpenAIResponsesModel,
  run,
  RunState,
  setTracingDisabled,
  tool,
} from "@openai/agents";
import type { ScriptedModel } from "@openai/agents/testing";
import { Client, ToolgateError, v1 } from "@toolgate/client";
import {
  type FromMcpOptions,
  type Held,
  mcpDefinitions,
  modelFacing,
  ToolgateConversation,
  type ToolgateOptions,
} from "@toolgate/client/openai-agents";
import OpenAI from "openai";

import { add, type Line, scripted } from "../../examples/openai-agents.js";
import { asTyped, mistakesIn } from "../provider-types.js";
import { responsesApi } from "./apis.js";
import { DONE, PAGES, registeredCatalog, WANTED, WORDS } from "./catalog.js";
import { checkPrefix, checkRequests } from "./prefix.js";
import { freshTenant, Service } from "./service.js";

setTracingDisabled(true);

const [SEARCH, CALL, REFUSED] = ["toolgate_search_tools", "toolgate_call_tool", "toolgate_refused_call"];
const [FIND, DELETE, LIST] = [
  "mcp__notes__find_notes",
  "mcp__notes__delete_note",
  "mcp__notes__list_calendars",
];
const ALWAYS = { options: { topK: 1, deferral: v1.DeferralMode.ALWAYS } };
const LONG = "Find the note about milk. ".repeat(1_000);

const quiet = { onOwnTools: () => undefined, onWarning: () => undefined };

const textsOf = (...required: string[]) => ({
  type: "object" as const,
  properties: Object.fromEntries(required.map((name) => [name, { type: "string" }])),
  required,
  additionalProperties: true as const,
});

/** The tools of a little server of notes; `ran` has what was called. */
function notes(ran: string[] = []) {
  const made = (
    name: string,
    description: string,
    act: (args: Record<string, string>) => unknown,
    ...of: string[]
  ) =>
    tool({
      ...{ name, description, strict: false, parameters: textsOf(...of) },
      execute: (args: unknown) => {
        ran.push(name);
        return act(args as Record<string, string>);
      },
    });
  return [
    made("find_notes", "Finds notes by a word in their text.", ({ text }) => ({ found: text }), "text"),
    made("delete_note", "Deletes a note for good.", () => ({ deleted: true }), "id"),
    made("list_calendars", "Lists the calendars of this account.", () => ["home", "work"]),
  ];
}

const clock = tool({
  ...{ name: "clock", description: "Tells the time.", strict: false, parameters: textsOf() },
  execute: () => "noon",
});

function connected({ target }: Service): Client {
  return new Client(target, { tenant: freshTenant(), timeoutMs: 30_000 });
}

/** A conversation about the notes, and what of them runs. */
async function conversation(client: Client, options: FromMcpOptions = {}) {
  const ran: string[] = [];
  const settings = { ...quiet, route: ALWAYS, strategy: "cut", ...options } as const;
  const toolgate = await ToolgateConversation.fromTools(client, { notes: notes(ran) }, settings);
  return { toolgate, ran };
}

/** Runs an agent, streamed or not; gives its items. */
async function talk(
  toolgate: ToolgateConversation,
  model: ScriptedModel,
  input: string | AgentInputItem[],
  streamed = false,
) {
  const agent = toolgate.agent(new Agent({ name: "desk", model, tools: [clock] }));
  if (!streamed) {
    const { history, finalOutput } = await run(agent, input);
    return { history, finalOutput };
  }
  const result = await run(agent, input, { stream: true });
  for await (const _ of result);
  await result.completed;
  const { history, finalOutput } = result;
  return { history, finalOutput };
}

function shown(model: ScriptedModel): string[][] {
  return model.calls.map(({ request }) => request.tools.map(({ name }) => name));
}

/** The texts of results. */
function answers(history: readonly AgentInputItem[]): string[] {
  return history.flatMap((item) => {
    if (item.type !== "function_call_result") return [];
    const { output } = item;
    const parts = [output].flat() as (string | { readonly text?: string })[];
    return [parts.map((part) => (typeof part === "string" ? part : part.text)).join("")];
  });
}

function called(history: readonly AgentInputItem[]): string[] {
  return history.flatMap((item) => (item.type === "function_call" ? [item.name] : []));
}

test("the example runs over a real MCP server", async () => {
  await using service = await Service.get();
  await using client = connected(service);
  const { result, model, report } = await add(client, { ...quiet, route: ALWAYS, strategy: "cut" });
  assert.equal(result.finalOutput, "It is 5.");
  assert.match(answers(result.history)[0] ?? "", /The sum of 2 and 3 is 5/);
  assert.deepEqual(shown(model)[0], [SEARCH, "mcp__everything__get-sum"]);
  assert.equal(report.requests, 2);
  const listed: string[] = [];
  for await (const { definitionJson } of client.listTools({ server: "everything" }))
    listed.push(definitionJson);
  assert.ok(
    listed.some((definition) => definition.includes('"annotations"')),
    "as the server lists them",
  );
});

test("the model sees its own tools and the active set, and calls are answered side by side", async () => {
  await using service = await Service.get();
  await using client = connected(service);
  const { toolgate, ran } = await conversation(client);
  const model = scripted(
    [
      [FIND, { word: "milk" }],
      [FIND, { text: "milk" }],
      ["clock", {}],
    ],
    "One.",
  );
  const { history, finalOutput } = await talk(toolgate, model, "Find the note about milk.");
  assert.deepEqual(shown(model)[0], ["clock", SEARCH, FIND]);
  assert.deepEqual(ran, ["find_notes"]);
  const [refused, found, time] = answers(history);
  assert.match(refused ?? "", /arguments_invalid/);
  assert.match(found ?? "", /milk/);
  assert.equal(time, "noon");
  assert.equal(finalOutput, "One.");
});

for (const streamed of [false, true]) {
  const how = streamed ? "streamed" : "not streamed";
  test(`a name that no tool has is refused and ends no run, ${how}`, async () => {
    await using service = await Service.get();
    await using client = connected(service);
    const { toolgate, ran } = await conversation(client);
    const model = scripted([["burn_notes", { text: "milk" }]], "No such thing.");
    const { history, finalOutput } = await talk(toolgate, model, "Find the note about milk.", streamed);
    assert.match(answers(history)[0] ?? "", /unknown_tool.*mcp__notes__find_notes/);
    assert.deepEqual([called(history), ran, finalOutput], [[REFUSED], [], "No such thing."]);
    assert.ok(shown(model).every((names) => !names.includes(REFUSED)));
  });

  test(`a bare name is understood, and what a search found is callable, ${how}`, async () => {
    await using service = await Service.get();
    await using client = connected(service);
    const { toolgate, ran } = await conversation(client);
    const search: Line = [[SEARCH, { query: `select:${DELETE}` }]];
    const model = scripted([["find_notes", { text: "milk" }]], search, [[DELETE, { id: "1" }]], "Gone.");
    const { history } = await talk(toolgate, model, "Find the note about milk.", streamed);
    assert.deepEqual(called(history), [FIND, SEARCH, DELETE]);
    assert.deepEqual(ran, ["find_notes", "delete_note"]);
    assert.deepEqual(
      shown(model).map((names) => names.includes(DELETE)),
      [false, false, true, true],
    );
    assert.equal(toolgate.report().searches, 1);
  });

  test(`described tools are called through the envelope, and the prefix stays, ${how}`, async () => {
    await using service = await Service.get();
    await using client = connected(service);
    const { toolgate, ran } = await conversation(client, { strategy: "envelope" });
    const enveloped = (name: string, args: object): Line => [[CALL, { name, arguments: args }]];
    const model = scripted(
      enveloped(FIND, { word: "milk" }),
      enveloped(FIND, { text: "milk" }),
      "One.",
      enveloped(LIST, {}),
      [[CALL, { tool: FIND }]],
      "Two.",
    );
    const first = await talk(toolgate, model, "Find the note about milk.", streamed);
    const next: AgentInputItem = { role: "user", content: "Which calendars does this account have?" };
    const { history } = await talk(toolgate, model, [...first.history, next], streamed);
    assert.deepEqual(called(history), [FIND, FIND, LIST, REFUSED]);
    assert.deepEqual(ran, ["find_notes", "list_calendars"]);
    assert.ok(!JSON.stringify(history).includes("[Toolgate]"));
    for (const names of shown(model)) assert.deepEqual(names, shown(model)[0]);
    assert.ok(shown(model)[0]?.includes(CALL));
    const inputs = model.calls.map(({ request }) => request.input as AgentInputItem[]);
    assert.match(JSON.stringify(inputs[0]?.at(-1)), /\[Toolgate\] More tools.*mcp__notes__find_notes/);
    checkPrefix(inputs);
    assert.match(answers(history)[0] ?? "", /arguments_invalid/);
    assert.match(answers(history)[3] ?? "", /error/);
    assert.deepEqual(toolgate.report().strategies, { envelope: 6 });
  });
}

test("a disabled tool that is called anyway is refused and ends no run, and so are arguments that are no JSON", async () => {
  await using service = await Service.get();
  await using client = connected(service);
  const ran: string[] = [];
  const tools = notes(ran).map((one) =>
    one.name === "delete_note" ? { ...one, isEnabled: () => Promise.resolve(false) } : one,
  );
  const settings: FromMcpOptions = {
    ...quiet,
    strategy: "cut",
    route: { options: { topK: 3, threshold: 0 } },
  };
  const toolgate = await ToolgateConversation.fromTools(client, { notes: tools }, settings);
  const model = scripted([[DELETE, { id: "1" }]], [[FIND, '{"text":']], "I can't.");
  const { history, finalOutput } = await talk(toolgate, model, "Find the note about milk and delete it.");
  const [disabled, broken] = answers(history);
  assert.match(disabled ?? "", /unknown_tool.*mcp__notes__delete_note/);
  assert.match(broken ?? "", /arguments_invalid/);
  assert.deepEqual([called(history), ran, finalOutput], [[REFUSED, REFUSED], [], "I can't."]);
});

test("preconditions are read from the items, failed calls unlock nothing, and grants are asked", async () => {
  await using service = await Service.get();
  await using client = connected(service);
  const { options } = ALWAYS;
  const needs = { case: "hasPriorToolOutput", value: FIND } as const;
  const register = { notes: { toolSettings: [{ name: "delete_note", precondition: { condition: needs } }] } };
  const broken = notes().map((one) =>
    one.name === "find_notes"
      ? tool({
          ...{ name: "find_notes", description: one.description, strict: false, parameters: textsOf("text") },
          execute: () => Promise.reject(new Error("the disk is gone")),
        })
      : one,
  );
  let asked = 0;
  const grants = () => {
    asked += 1;
    return { scopes: ["notes:write"] };
  };
  const settings: FromMcpOptions = {
    ...quiet,
    grants,
    register,
    route: { options: { ...options, topK: 3, threshold: 0 } },
  };
  const toolgate = await ToolgateConversation.fromTools(client, { notes: broken }, settings);
  const model = scripted([[FIND, { text: "milk" }]], [[DELETE, { id: "1" }]], "I can't.");
  const { history } = await talk(toolgate, model, "Find the note about milk and delete it.");
  const [failure, refusal] = answers(history);
  assert.match(failure ?? "", /^An error occurred while running the tool/);
  assert.match(refusal ?? "", /precondition_unmet/);
  assert.ok(asked >= 3);
});

/** A little MCP server, as the SDK knows one, connected to a real one in this process. */
async function garden() {
  const real = new McpServer({ name: "garden", version: "1" });
  const [ours, theirs] = InMemoryTransport.createLinkedPair();
  const said = (text: string, isError = false) => ({ isError, content: [{ type: "text" as const, text }] });
  real.registerTool("build_greenhouse", { description: "Builds a greenhouse." }, () => {
    real.registerTool("water_tomatoes", { description: "Waters the tomatoes." }, () =>
      said("no water", true),
    );
    return said("built");
  });
  await real.connect(theirs);
  const session = new McpSdkClient({ name: "test", version: "1" });
  await session.connect(ours);
  const server = {
    ...{ name: "garden", cacheToolsList: false, session },
    connect: () => Promise.resolve(),
    close: () => session.close(),
    invalidateToolsCache: () => Promise.resolve(),
    listTools: async () => (await session.listTools()).tools,
    callTool: async (name: string, args: Record<string, unknown> | null) => {
      const { content, isError } = await session.callTool({ name, arguments: args ?? {} });
      return Object.defineProperty(content as object[], "isError", { value: isError });
    },
  };
  return server as unknown as MCPServer;
}

test("the tools of an MCP server that was left on the agent are shown and told", async () => {
  await using service = await Service.get();
  await using client = connected(service);
  const told: (readonly string[])[] = [];
  const onOwnTools = (names: readonly string[]) => told.push(names);
  const { toolgate } = await conversation(client, { onOwnTools });
  const server = await garden();
  const model = scripted([["build_greenhouse", {}]], "Built.");
  const agent = new Agent({ name: "desk", model, mcpServers: [server] });
  const { history } = await run(toolgate.agent(agent), "Find the note about milk.");
  assert.deepEqual(shown(model)[0], ["build_greenhouse", SEARCH, FIND]);
  assert.deepEqual(answers(history), ["built"], "no call of it passes Gate");
  assert.deepEqual(told, [["build_greenhouse"]]);
  await server.close();
});

test("changed tools are followed, failed results say so, and lost ones are registered again", async () => {
  await using service = await Service.get();
  await using client = connected(service);
  const warnings: string[] = [];
  const onWarning = (warning: string) => warnings.push(warning);
  const server = await garden();
  const gone = { ...server, listTools: () => Promise.reject(new Error("no such host")) };
  const options = { onOwnTools: () => undefined, onWarning };
  const toolgate = await ToolgateConversation.fromMcp(client, { garden: server, gone }, options);
  assert.ok(warnings.includes("MCP server gone can't be listed: Error: no such host"));
  const text = "build a greenhouse in the garden and water the tomatoes";
  const [build, water] = ["mcp__garden__build_greenhouse", "mcp__garden__water_tomatoes"];
  const model = scripted([[build, {}]], [[water, {}]], "Done.", "Again.");
  const { history } = await talk(toolgate, model, text);
  assert.deepEqual(
    model.calls
      .slice(0, 2)
      .map(({ request }) => JSON.stringify([request.tools, request.input]).includes(water)),
    [false, true],
  );
  assert.deepEqual(answers(history), ["built", '{"error":"no water"}']);
  const listTools = server.listTools.bind(server);
  server.listTools = () => Promise.reject(new Error("not now"));
  await toolgate.refresh();
  assert.ok(warnings.includes("MCP server garden can't be listed: Error: not now"));
  await client.unregisterServer({ server: "garden" });
  await talk(toolgate, model, text);
  const { tools, input } = model.calls[3]?.request ?? {};
  assert.ok(
    JSON.stringify([tools, input]).includes(build),
    "a server that can't be listed again keeps its tools",
  );
  server.listTools = listTools;
  const lost = "the service has lost the catalog: MCP servers are registered again";
  assert.equal(warnings.filter((warning) => warning === lost).length, 1);
  await toolgate.refresh();
  await server.close();
});

test("a conversation goes on elsewhere, and keeps its tools when Toolgate can't be reached", async () => {
  await using service = await Service.get();
  await using client = connected(service);
  const first = await conversation(client);
  const model = scripted([[FIND, { text: "milk" }]], "One.", [[FIND, { text: "tea" }]], "I can't.");
  const { history } = await talk(first.toolgate, model, "Find the note about milk.");
  const state = JSON.parse(JSON.stringify(first.toolgate.state)) as NonNullable<ToolgateOptions["state"]>;
  const faults: string[] = [];
  const onFault = ({ code }: ToolgateError) => faults.push(code);
  const second = await conversation(client, { state, onFault });
  const fail = () => Promise.reject(new ToolgateError("UNAVAILABLE", "gone"));
  client.route = fail;
  client.gate = fail;
  const next: AgentInputItem = { role: "user", content: "And the one about tea?" };
  const after = await talk(second.toolgate, model, [...history, next]);
  assert.match(answers(after.history).at(-1) ?? "", /gate_unavailable/);
  assert.deepEqual(second.ran, []);
  assert.deepEqual(shown(model)[2], shown(model)[1], "kept in their places");
  assert.deepEqual(faults, ["UNAVAILABLE", "UNAVAILABLE", "UNAVAILABLE"]);
  assert.equal(second.toolgate.report().requests, 2);
});

test("a call that waited for an approval is gated when it is made, also elsewhere", async () => {
  await using service = await Service.get();
  await using client = connected(service);
  const ran: string[] = [];
  const asking = notes(ran).map((one) => ({ ...one, needsApproval: () => Promise.resolve(true) }));
  const settings = { ...quiet, route: ALWAYS } as const;
  const model = scripted([[FIND, { text: "milk" }]], "One.");
  const desk = new Agent({ name: "desk", model });
  const first = await ToolgateConversation.fromTools(client, { notes: asking }, settings);
  const waiting = await run(first.agent(desk), "Find the note about milk.");
  assert.equal(waiting.interruptions.length, 1);
  const kept = JSON.parse(JSON.stringify([waiting.state.toString(), first.state])) as [string, Held];
  let gated = 0;
  const gate = client.gate.bind(client);
  client.gate = (...asked) => {
    gated += 1;
    return gate(...asked);
  };
  const second = await ToolgateConversation.fromTools(
    client,
    { notes: asking },
    { ...settings, state: kept[1] },
  );
  const agent = second.agent(desk);
  const state = await RunState.fromString(agent, kept[0]);
  for (const one of state.getInterruptions()) state.approve(one);
  const { finalOutput } = await run(agent, state);
  assert.deepEqual([finalOutput, ran, gated], ["One.", ["find_notes"], 1]);
});

test("tools under MCP's names are refused, and handoffs are no calls for Gate", async () => {
  await using service = await Service.get();
  await using client = connected(service);
  assert.throws(() => new ToolgateConversation(client, notes()), /not under model-facing names: find_notes/);
  await client.registerServer(
    { server: "notes", toolsListJson: mcpDefinitions(notes()) },
    { timeoutMs: 60_000 },
  );
  const managed = await modelFacing(notes(), client.listTools({ server: "notes" }));
  const toolgate = new ToolgateConversation(client, managed, quiet);
  const other = new Agent({ name: "other", model: scripted("I am the other.") });
  const model = scripted([["transfer_to_other", {}]]);
  const agent = new Agent({ name: "desk", model, handoffs: [other] });
  const { finalOutput } = await run(toolgate.agent(agent), "the other, please");
  assert.equal(finalOutput, "I am the other.");
  const cheap = { strategy: "cheap" as "auto" };
  assert.throws(() => new ToolgateConversation(client, managed, cheap), /strategy is one of/);
});

for (const [name, strategy] of [
  ["gpt-6.1", "native"],
  ["gpt-4.1", "envelope"],
] as const) {
  test(`by default ${name} of OpenAI's Responses has ${strategy}, in requests that its types take`, async () => {
    await using service = await Service.get();
    await using client = connected(service);
    const ran: string[] = [];
    const tools = [...(await registeredCatalog(client))].map(([wanted, { description, inputSchema }]) =>
      tool({
        ...{ name: wanted, description, strict: false, parameters: inputSchema as never },
        execute: () => {
          ran.push(wanted);
          return DONE;
        },
      }),
    );
    const toolgate = new ToolgateConversation(client, tools, { ...quiet, route: { options: { topK: 1 } } });
    const args = { channel_id: "C1", text: "late" };
    const line =
      strategy === "native"
        ? ([WANTED, args] as const)
        : ([CALL, { name: WANTED, arguments: args }] as const);
    const { fetch, asked } = responsesApi(line, "Posted.", "None.");
    const openai = new OpenAI({ apiKey: "none", fetch: fetch });
    const agent = toolgate.agent(
      new Agent({ name: "desk", model: new OpenAIResponsesModel(openai, name), tools: [clock] }),
    );
    let history: AgentInputItem[] = [
      { role: "user", content: "We spoke of many things. ".repeat(1_500) },
      { role: "assistant", status: "completed", content: [{ type: "output_text", text: "We did." }] },
    ];
    for (const content of [WORDS, PAGES]) {
      ({ history } = await run(agent, [...history, { role: "user", content }]));
    }
    assert.deepEqual(ran, [WANTED]);
    const bodies = asked.map(({ body }) => body as { tools: { name: string }[]; input: { type?: string }[] });
    const typed = bodies.map(({ tools: sent, input }, at) => ({
      name: String(at),
      tools: sent,
      messages: input,
    }));
    checkRequests(typed);
    assert.deepEqual(toolgate.report().strategies, { [strategy]: 3 });
    const isAdded = bodies[2]?.input.some(({ type }) => type === "additional_tools");
    assert.equal(isAdded, strategy === "native");
    assert.deepEqual(
      mistakesIn(
        "openai_responses",
        typed.map((one) => asTyped("openai_responses", one)),
      ),
      [],
    );
    assert.ok(bodies.every(({ tools: sent }) => sent[0]?.name === "clock"));
  });
}

test("native needs a model of OpenAI's Responses", async () => {
  await using service = await Service.get();
  await using client = connected(service);
  const { toolgate } = await conversation(client, { strategy: "native" });
  const asked = talk(toolgate, scripted("One."), "Find the note about milk.");
  await assert.rejects(asked, /"native" needs an OpenAIResponsesModel, not ScriptedModel/);
});

test("by default a long request has the envelope, and what the provider keeps is cut", async () => {
  await using service = await Service.get();
  await using client = connected(service);
  const { toolgate } = await conversation(client, { strategy: "auto" });
  const model = scripted("One.", "Two.");
  await talk(toolgate, model, LONG);
  assert.ok(shown(model)[0]?.includes(CALL));
  const agent = toolgate.agent(new Agent({ name: "desk", model, tools: [clock] }));
  await run(agent, "Find the note about tea.", { previousResponseId: "resp_1" });
  assert.deepEqual(shown(model)[1], ["clock", SEARCH, FIND]);
});
