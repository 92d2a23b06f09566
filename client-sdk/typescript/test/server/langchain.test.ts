/** The LangChain example against a service, and what becomes of an agent without one. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { MemorySaver } from "@langchain/langgraph";
import { Client, v1 } from "@toolgate/client";
import {
  fromTools,
  mcpDefinitions,
  modelFacing,
  toolgateMiddleware,
  type ToolgateMiddlewareOptions,
} from "@toolgate/client/langchain";
import { AIMessage, createAgent, tool, ToolMessage } from "langchain";

import { notes, run, scripted } from "../../examples/langchain.js";
import * as longTalk from "./long-talk.js";
import { freshTenant, Service } from "./service.js";

const [SEARCH, FIND, DELETE] = ["toolgate_search_tools", "mcp__notes__find_notes", "mcp__notes__delete_note"];

test("a call is refused and corrected, a search loads a tool, and gated calls run", async () => {
  await using service = await Service.get();
  await using client = new Client(service.target, { tenant: freshTenant(), timeoutMs: 30_000 });
  const { messages, shown } = await run(client);
  assert.equal(messages.at(-1)?.text, "It is gone.");
  assert.deepEqual(shown, [
    [SEARCH, FIND],
    [SEARCH, FIND],
    [SEARCH, FIND, DELETE],
    [SEARCH, FIND, DELETE],
    // Nearly long enough for a cache: from here on tools are described, and `tools` stay.
    [SEARCH, "toolgate_call_tool"],
  ]);
  const results = messages.filter((message) => ToolMessage.isInstance(message));
  const [refused, found, searched, deleted] = results;
  assert.equal(refused?.status, "error");
  assert.match(refused.text, /"error":"arguments_invalid"/);
  assert.equal(found?.text, '["1"]');
  assert.deepEqual(JSON.parse(searched?.text ?? ""), { tools: [{ name: DELETE }], deferred_tools: 1 });
  assert.equal(deleted?.text, '{"deleted":true}');
});

test("of calls made at once, those that may run do, and the others are refused", async () => {
  await using service = await Service.get();
  await using client = new Client(service.target, { tenant: freshTenant(), timeoutMs: 30_000 });
  const tools = notes();
  await client.registerServer({ server: "notes", toolsListJson: mcpDefinitions(tools) });
  const managed = await modelFacing(tools, client.listTools({ server: "notes" }));
  const { model } = scripted(
    [
      [FIND, { text: "milk" }],
      [FIND, {}],
      ["mcp__notes__find_note", { text: "milk" }],
      [SEARCH, { query: "calendar" }],
    ],
    "Done.",
  );
  const agent = createAgent({ model, middleware: [toolgateMiddleware(client, managed)] });
  const { messages } = await agent.invoke({
    messages: [{ role: "user", content: "Find my notes about milk." }],
  });
  const results = messages.filter((message) => ToolMessage.isInstance(message));
  const byCall = new Map(results.map((result) => [result.tool_call_id, result.text]));
  assert.equal(byCall.get("call_1"), '["1"]');
  assert.match(byCall.get("call_2") ?? "", /arguments_invalid/);
  assert.match(byCall.get("call_3") ?? "", /unknown_tool/);
  assert.match(byCall.get("call_4") ?? "", /list_calendars/);
});

/** An agent over the notes, for a tenant of their own, and what it is told beside. */
async function agentOf(
  client: Client,
  script: Parameters<typeof scripted>,
  options: ToolgateMiddlewareOptions = {},
) {
  const tools = notes();
  await client.registerServer({ server: "notes", toolsListJson: mcpDefinitions(tools) });
  const managed = await modelFacing(tools, client.listTools({ server: "notes" }));
  const { model, shown } = scripted(...script);
  const clock = tool(() => "noon", {
    ...{ name: "clock", description: "Tells the time." },
    schema: { type: "object" as const, properties: {} },
  });
  const told: (readonly string[])[] = [];
  const onOwnTools = (names: readonly string[]) => told.push(names);
  const middleware = [toolgateMiddleware(client, managed, { onOwnTools, ...options })];
  return { agent: createAgent({ model, tools: [clock], middleware }), shown, told, managed };
}

const NEEDS = {
  name: "delete_note",
  precondition: { condition: { case: "hasPriorToolOutput" as const, value: FIND } },
};
const ASKED = { messages: [{ role: "user" as const, content: "Find my notes about milk." }] };

test("calls of names that no tool has are refused by Gate, and no hidden tool is named", async () => {
  await using service = await Service.get();
  await using client = new Client(service.target, { tenant: freshTenant(), timeoutMs: 30_000 });
  const calls = ["burn_notes", "mcp__notes__burn", "toolgate_search"].map(
    (name) => [name, { text: "milk" }] as const,
  );
  const { agent } = await agentOf(client, [[...calls], "No such thing."], {
    route: { options: { topK: 1, deferral: v1.DeferralMode.ALWAYS } },
  });
  const { messages } = await agent.invoke(ASKED);
  assert.equal(messages.at(-1)?.text, "No such thing.");
  const results = messages.filter((message) => ToolMessage.isInstance(message));
  assert.deepEqual(
    results.map(({ status, text }) => [status, (JSON.parse(text) as { error: string }).error]),
    calls.map(() => ["error", "unknown_tool"]),
  );
  assert.doesNotMatch(
    results.map(({ text }) => text).join(),
    new RegExp(`${DELETE}|list_calendars|not a valid`),
  );
});

test("bare names are understood, an own tool's wins, and own tools are told once", async () => {
  await using service = await Service.get();
  await using client = new Client(service.target, { tenant: freshTenant(), timeoutMs: 30_000 });
  const { agent, told } = await agentOf(
    client,
    [
      [
        ["find_notes", { text: "milk" }],
        ["functions.list_calendars", {}],
        ["clock", {}],
      ],
      "One.",
    ],
    { route: { options: { threshold: -1 } } },
  );
  const { messages } = await agent.invoke(ASKED);
  const results = messages.filter((message) => ToolMessage.isInstance(message));
  assert.deepEqual(results.map(({ text }) => text).sort(), ['["1"]', '["home", "work"]', "noon"].sort());
  const called = messages.flatMap((message) =>
    AIMessage.isInstance(message) ? (message.tool_calls ?? []) : [],
  );
  assert.deepEqual(
    called.map(({ name }) => name),
    [FIND, "mcp__notes__list_calendars", "clock"],
  );
  assert.deepEqual(told, [["clock"]]);
});

test("a refused call without an identifier does not run", async () => {
  await using service = await Service.get();
  await using client = new Client(service.target, { tenant: freshTenant(), timeoutMs: 30_000 });
  const ran: unknown[] = [];
  const erase = tool((args) => (ran.push(args), "erased"), {
    ...{ name: "delete_note", description: "Deletes a note for good." },
    schema: longTalk.EMPTY,
  });
  const route = { options: { deferral: v1.DeferralMode.OFF } };
  const options = { route, register: { notes: { toolSettings: [NEEDS] } }, onWarning: () => undefined };
  const middleware = [await fromTools(client, { notes: [erase, ...notes().slice(0, 1)] }, options)];
  const { model } = scripted();
  model.respond(new AIMessage({ content: "", tool_calls: [{ name: DELETE, args: {} }] }));
  model.respond(new AIMessage({ content: "", tool_calls: [{ name: FIND, args: { text: "milk" } }] }));
  model.respond(new AIMessage({ content: "", tool_calls: [{ name: DELETE, args: {} }] }));
  model.respond(new AIMessage("Done."));
  const { messages } = await createAgent({ model, middleware }).invoke(ASKED);
  const statuses = messages.filter((one) => ToolMessage.isInstance(one)).map(({ status }) => status);
  assert.deepEqual(statuses, ["error", "success", "success"]);
  assert.deepEqual(ran, [{}], "once it was found");
});

test("a refused call brings no tool in", async () => {
  await using service = await Service.get();
  await using client = new Client(service.target, { tenant: freshTenant(), timeoutMs: 30_000 });
  const refused = [["mcp__notes__lists the calendars of this account", {}]] as [string, object][];
  const { agent, shown } = await agentOf(client, [refused as never, refused as never, "I can't."], {
    route: { options: { pinnedTools: [FIND], deferral: v1.DeferralMode.ALWAYS } },
  });
  await agent.invoke({ messages: [{ role: "user", content: "Hello, how are you?" }] });
  assert.deepEqual(shown, Array(3).fill(["clock", SEARCH, FIND]));
});

test("without the search nothing is deferred, unless a mode is named", async () => {
  await using service = await Service.get();
  for (const [options, count] of [
    [{ topK: 1 }, 3],
    [{ topK: 1, deferral: v1.DeferralMode.ALWAYS }, 1],
  ] as const) {
    await using client = new Client(service.target, { tenant: freshTenant(), timeoutMs: 30_000 });
    const { agent, shown } = await agentOf(client, ["One."], { search: false, route: { options } });
    await agent.invoke(ASKED);
    assert.equal(shown[0]?.filter((name) => name !== "clock").length, count);
  }
});

for (const [strategy, count] of [
  ["cut", 20],
  ["auto", 40],
] as const) {
  test(`${String(count)} messages with ${strategy}: more tools are called than a set holds`, async () => {
    await using service = await Service.get();
    await using client = new Client(service.target, { tenant: freshTenant(), timeoutMs: 30_000 });
    const ran: string[] = [];
    const made = (name: string) =>
      tool(() => (ran.push(name), "done"), { name, description: name, schema: longTalk.EMPTY });
    const route = { options: { deferral: v1.DeferralMode.ALWAYS } };
    const managed = (await longTalk.registered(client)).map(made);
    const caller = new longTalk.Caller();
    const { model, shown } = scripted();
    const asked = longTalk.messages(count);
    for (let step = 0; step < 2 * asked.length; step++) {
      model.respond((messages) => {
        const last = messages.at(-1);
        const call = caller.nextCall(shown.at(-1) ?? [], last?.content, ToolMessage.isInstance(last));
        const id = `call_${String(caller.called.length)}`;
        return call === undefined
          ? new AIMessage("Done.")
          : new AIMessage({ content: "", tool_calls: [{ ...call, id }] });
      });
    }
    const middleware = [toolgateMiddleware(client, managed, { strategy, route })];
    const agent = createAgent({ model, middleware, checkpointer: new MemorySaver() });
    for (const content of asked) {
      const thread = { configurable: { thread_id: "1" } };
      await agent.invoke({ messages: [{ role: "user", content }] }, thread);
    }
    if (strategy === "cut") caller.checkCut(ran);
    else caller.checkDefault(ran);
  });
}

test("without a service, the model sees its tools and calls are refused", async () => {
  await using client = new Client("127.0.0.1:1");
  const faults: string[] = [];
  const tools = await modelFacing(
    notes(),
    notes().map(({ name }) => ({ name, modelName: `mcp__notes__${name}` }) as never),
  );
  const onFault = ({ code }: { code: string }) => faults.push(code);
  const { model, shown } = scripted([[FIND, { text: "milk" }]], "I could not look.");
  const agent = createAgent({ model, middleware: [toolgateMiddleware(client, tools, { onFault })] });
  const { messages } = await agent.invoke({ messages: [{ role: "user", content: "Hi." }] });
  assert.deepEqual(
    shown[0],
    tools.map(({ name }) => name),
  );
  assert.match(messages.find((message) => ToolMessage.isInstance(message))?.text ?? "", /gate_unavailable/);
  assert.equal(messages.at(-1)?.text, "I could not look.");
  assert.deepEqual(faults, ["UNAVAILABLE", "UNAVAILABLE"]);
});

test("tools under other names are refused at once, and so are tools that are not registered", async () => {
  const client = new Client();
  assert.throws(() => toolgateMiddleware(client, notes()), /not under model-facing names: find_notes/);
  await assert.rejects(modelFacing(notes(), []), /not registered: find_notes/);
  client.close();
});
