/** Tests LangGraph graphs of one's own, without `createAgent`, against a service. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { END, MemorySaver, START, StateGraph } from "@langchain/langgraph";
import { toolsCondition } from "@langchain/langgraph/prebuilt";
import { Client, v1 } from "@toolgate/client";
import {
  callsCondition,
  fromMcp,
  fromTools,
  type FromMcpOptions,
  type McpClient,
  modelNode,
  type ModelNodeOptions,
  toolNode,
  type ToolgateMiddleware,
  ToolgateState,
} from "@toolgate/client/langchain";
import { AIMessage, createMiddleware, tool } from "langchain";

import { notes, scripted } from "../../examples/langchain.js";
import { add } from "../../examples/langgraph.js";
import { freshTenant, Service } from "./service.js";

const [SEARCH, CALL] = ["toolgate_search_tools", "toolgate_call_tool"];
const [FIND, ERASE, CALENDARS] = [
  "mcp__notes__find_notes",
  "mcp__notes__delete_note",
  "mcp__notes__list_calendars",
];
const THREAD = { configurable: { thread_id: "1" } };
const MILK = { messages: [new HumanMessage("Find the note about milk.")] };
const ONE = { options: { topK: 1, deferral: v1.DeferralMode.ALWAYS } };

type Model = ReturnType<typeof scripted>["model"];

const clock = tool(() => "noon", {
  ...{ name: "clock", description: "Tells the time." },
  schema: { type: "object" as const, properties: {} },
});

function connected({ target }: Service): Client {
  return new Client(target, { tenant: freshTenant(), timeoutMs: 30_000 });
}

function overNotes(client: Client, options: FromMcpOptions = {}) {
  const quiet = { onOwnTools: () => undefined, onWarning: () => undefined };
  return fromTools(client, { notes: notes() }, { ...quiet, route: ONE, ...options });
}

function graphOf(
  toolgate: ToolgateMiddleware,
  model: Model,
  options: ModelNodeOptions = {},
  edge: (state: { messages: BaseMessage[] }) => "tools" | "model" | typeof END = callsCondition,
) {
  return new StateGraph(ToolgateState)
    .addNode("model", modelNode(toolgate, model, options))
    .addNode("tools", toolNode(toolgate, options.tools))
    .addEdge(START, "model")
    .addConditionalEdges("model", edge, ["tools", "model", END])
    .addEdge("tools", "model");
}

function answers(messages: BaseMessage[]): ToolMessage[] {
  return messages.filter((message) => ToolMessage.isInstance(message));
}

function called(messages: BaseMessage[]): string[] {
  const said = messages.filter((message) => AIMessage.isInstance(message));
  return said.flatMap(({ tool_calls: calls = [] }) => calls.map(({ name }) => name));
}

test("the example runs over a real MCP server, and its first call is refused", async () => {
  await using service = await Service.get();
  await using client = connected(service);
  const { messages, shown, report } = await add(client, { route: ONE });
  const [refused, sum] = answers(messages);
  assert.match(refused?.text ?? "", /"error":"arguments_invalid"/);
  assert.match(sum?.text ?? "", /The sum of 2 and 3 is 5/);
  assert.equal(messages.at(-1)?.text, "It is 5.");
  assert.ok(shown[0]?.includes("mcp__everything__get-sum"));
  assert.equal(report.requests, 3);
});

test("a checkpointed graph goes on elsewhere, and of parallel calls those that may run do", async () => {
  await using service = await Service.get();
  await using client = connected(service);
  const { model, shown } = scripted(
    [
      [FIND, { text: "milk" }],
      [FIND, { word: "milk" }],
    ],
    "One.",
    [[SEARCH, { query: `select:${CALENDARS}` }]],
    [[CALENDARS, {}]],
    "Two.",
  );
  const checkpointer = new MemorySaver();
  const options = { strategy: "cut" } as const;
  const here = graphOf(await overNotes(client, options), model).compile({ checkpointer });
  await here.invoke(MILK, THREAD);
  const there = graphOf(await overNotes(client, options), model).compile({ checkpointer });
  const asked = { messages: [new HumanMessage("Find it again.")] };
  const { messages } = await there.invoke(asked, THREAD);
  assert.deepEqual(called(messages), [FIND, FIND, SEARCH, CALENDARS]);
  const byCall = new Map(answers(messages).map((one) => [one.tool_call_id, one]));
  assert.equal(byCall.get("call_1")?.text, '["1"]');
  assert.equal(byCall.get("call_2")?.status, "error");
  assert.equal(byCall.get("call_4")?.text, '["home", "work"]');
  assert.ok(!shown[2]?.includes(CALENDARS) && shown[3]?.includes(CALENDARS), "what was found is defined");
});

test("a call that was refused never runs, whatever the edges are, nor does one without an identifier", async () => {
  await using service = await Service.get();
  await using client = connected(service);
  const ran: unknown[] = [];
  const erase = tool((args) => (ran.push(args), "erased"), {
    ...{ name: "delete_note", description: "Deletes a note for good." },
    schema: { type: "object" as const, properties: { id: { type: "string" } }, required: ["id"] },
  });
  const toolgate = await fromTools(client, { notes: [erase] }, { onWarning: () => undefined });
  const { model } = scripted();
  const calls = (...args: object[]) => args.map((one) => ({ name: ERASE, args: one }));
  model.respond(new AIMessage({ content: "", tool_calls: calls({ number: 1 }, { id: "2" }) }));
  model.respond(new AIMessage({ content: "", tool_calls: calls({ number: 3 }) }));
  model.respond(new AIMessage("Done."));
  const graph = graphOf(toolgate, model, {}, (state) => {
    const said = state.messages.filter((message) => AIMessage.isInstance(message));
    return toolsCondition(said.slice(-1));
  });
  const { messages } = await graph.compile().invoke(MILK);
  assert.deepEqual(ran, [{ id: "2" }]);
  const statuses = answers(messages).map(({ status }) => status);
  assert.deepEqual(statuses, ["error", "success", "error"], "one answer to each call");
});

test("a refusal alone goes back to the model", async () => {
  await using service = await Service.get();
  await using client = connected(service);
  const { model } = scripted([["burn_notes", {}]], [[FIND, { text: "milk" }]], "One.");
  const graph = graphOf(await overNotes(client), model).compile();
  const steps: string[] = [];
  for await (const step of await graph.stream(MILK, { streamMode: "updates" })) {
    steps.push(...Object.keys(step));
  }
  assert.deepEqual(steps, ["model", "model", "tools", "model"]);
});

test("with the envelope the definitions stay, and tools of the graph's own are shown and run", async () => {
  await using service = await Service.get();
  await using client = connected(service);
  const { model, shown } = scripted(
    [
      [CALL, { name: FIND, arguments: { text: "milk" } }],
      ["clock", {}],
    ],
    "One.",
  );
  const sent: BaseMessage[][] = [];
  const toolgate = await overNotes(client, { strategy: "envelope" });
  const graph = graphOf(toolgate, model, { tools: [clock], prompt: "Be brief." }).compile();
  const bind = model.bindTools.bind(model);
  model.bindTools = (tools) => {
    const bound = bind(tools);
    const invoke = bound.invoke.bind(bound);
    bound.invoke = (messages, config) => {
      sent.push(messages as BaseMessage[]);
      return invoke(messages, config);
    };
    return bound;
  };
  const { messages } = await graph.invoke(MILK);
  assert.deepEqual(called(messages), [FIND, "clock"], "the state has the tools' own names");
  assert.deepEqual(
    answers(messages).map(({ text }) => text),
    ['["1"]', "noon"],
  );
  assert.deepEqual(shown, Array(2).fill(["clock", SEARCH, CALL]));
  assert.deepEqual(
    sent.map(([first]) => first?.text),
    ["Be brief.", "Be brief."],
  );
  assert.deepEqual(
    sent[1]?.slice(0, 2).map(({ text }) => text),
    sent[0]?.map(({ text }) => text),
  );
});

test("changed tools of a server are run by a graph that exists", async () => {
  await using service = await Service.get();
  await using client = connected(service);
  const inputSchema = { type: "object" as const, properties: {} };
  const names = ["plant_trees"];
  const garden: McpClient = {
    listTools: () =>
      Promise.resolve({ tools: names.map((name) => ({ name, description: `${name}.`, inputSchema })) }),
    callTool: ({ name }) => Promise.resolve({ content: [{ type: "text", text: name }] }),
  };
  const told: unknown[] = [];
  const route = { options: { deferral: v1.DeferralMode.OFF } };
  const options = { search: false, route, onOwnTools: (own: unknown) => told.push(own) };
  const toolgate = await fromMcp(client, { garden }, options);
  const water = "mcp__garden__water_trees";
  const { model, shown } = scripted([[water, {}]], "Done.");
  const graph = graphOf(toolgate, model).compile();
  names.push("water_trees");
  await toolgate.refresh();
  const { messages } = await graph.invoke({ messages: [new HumanMessage("Water the trees.")] });
  assert.equal(answers(messages)[0]?.text, "water_trees");
  assert.ok(shown[0]?.includes(water));
  assert.deepEqual(told, [], "none is taken for the graph's own");
});

test("another middleware has no nodes", () => {
  const other = createMiddleware({ name: "other" }) as unknown as ToolgateMiddleware;
  assert.throws(() => toolNode(other), /no middleware of Toolgate's/);
});
