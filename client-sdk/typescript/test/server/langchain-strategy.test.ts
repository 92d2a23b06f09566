/** Requests of LangChain that Route puts together, against a service. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { type BaseMessage, HumanMessage, type ToolMessage } from "@langchain/core/messages";
import { MemorySaver } from "@langchain/langgraph";
import { Client, v1 } from "@toolgate/client";
import { mcpDefinitions, modelFacing, toolgateMiddleware } from "@toolgate/client/langchain";
import { createAgent, createMiddleware } from "langchain";

import { notes, scripted } from "../../examples/langchain.js";
import { freshTenant, Service } from "./service.js";

const [SEARCH, CALL] = ["toolgate_search_tools", "toolgate_call_tool"];
const [FIND, CALENDARS] = ["mcp__notes__find_notes", "mcp__notes__list_calendars"];

test("described tools are called through the envelope, and the beginning of each request stays", async () => {
  await using service = await Service.get();
  await using client = new Client(service.target, { tenant: freshTenant(), timeoutMs: 30_000 });
  const tools = notes();
  await client.registerServer({ server: "notes", toolsListJson: mcpDefinitions(tools) });
  const managed = await modelFacing(tools, client.listTools({ server: "notes" }));
  const route = { options: { topK: 1, deferral: v1.DeferralMode.ALWAYS } };
  const toolgate = toolgateMiddleware(client, managed, { strategy: "envelope", route });
  const requests: string[][] = [];
  const watching = createMiddleware({
    name: "watching",
    wrapModelCall: (request, handler) => {
      requests.push(request.messages.map(said));
      return handler(request);
    },
  });
  const { model, shown } = scripted(
    [[CALL, { name: FIND, arguments: { text: "milk" } }]],
    "One.",
    [[CALL, { name: CALENDARS, arguments: {} }]],
    // The first turn's messages still describe it.
    [[CALL, { name: FIND, arguments: { text: "milk" } }]],
    "Two.",
  );
  const agent = createAgent({ model, middleware: [toolgate, watching], checkpointer: new MemorySaver() });
  const thread = { configurable: { thread_id: "1" } };
  await agent.invoke({ messages: [new HumanMessage("Find the note about milk.")] }, thread);
  const asked = new HumanMessage("Which calendars does this account have?");
  const { messages } = await agent.invoke({ messages: [asked] }, thread);
  const results = messages.filter((message): message is ToolMessage => message.type === "tool");
  assert.deepEqual(
    results.map(({ text }) => text),
    ['["1"]', '["home", "work"]', '["1"]'],
  );
  // The model of the script repeats what it was sent when it calls.
  const kept = messages.filter(({ type }) => type !== "ai").map(({ text }) => text);
  assert.doesNotMatch(kept.join(), /\[Toolgate\]/, "only the model sees it");
  assert.deepEqual(shown, Array(5).fill([SEARCH, CALL]));
  assert.match(requests[0]?.at(-1) ?? "", /\[Toolgate\] More tools.*mcp__notes__find_notes/s);
  for (const [at, request] of requests.slice(1).entries()) {
    const before = requests[at] ?? [];
    assert.deepEqual(request.slice(0, before.length), before, `request ${String(at + 1)}`);
  }
});

test("the default goes by the length of the request, and defines all tools where nothing is deferred", async () => {
  await using service = await Service.get();
  await using client = new Client(service.target, { tenant: freshTenant(), timeoutMs: 30_000 });
  const tools = notes();
  await client.registerServer({ server: "notes", toolsListJson: mcpDefinitions(tools) });
  const managed = await modelFacing(tools, client.listTools({ server: "notes" }));
  const shownBy = async (deferral: v1.DeferralMode, text: string) => {
    const toolgate = toolgateMiddleware(client, managed, { route: { options: { topK: 1, deferral } } });
    const { model, shown } = scripted("One.");
    const agent = createAgent({ model, middleware: [toolgate] });
    await agent.invoke({ messages: [new HumanMessage(text)] });
    return shown[0];
  };
  const asked = "Find the note about milk.";
  const { ALWAYS, OFF } = v1.DeferralMode;
  assert.deepEqual(await shownBy(ALWAYS, asked), [SEARCH, FIND], "no cache keeps so short a request");
  assert.deepEqual(
    await shownBy(ALWAYS, asked + " Once more.".repeat(2_000)),
    [SEARCH, CALL, FIND],
    "the envelope",
  );
  const all = managed.map(({ name }) => name);
  assert.deepEqual((await shownBy(OFF, asked))?.toSorted(), all.toSorted());
});

test("a strategy that is none is refused with those that can be had", () => {
  const known = /strategy is one of "auto", "cut", "envelope", "native", not "pass"/;
  const client = new Client();
  assert.throws(() => toolgateMiddleware(client, [], { strategy: "pass" as "auto" }), known);
});

/** A message as a provider would be sent it. */
function said(message: BaseMessage): string {
  const { tool_calls: calls = [] } = message as { tool_calls?: { name: string; args: unknown }[] };
  const made = calls.map(({ name, args }) => name + JSON.stringify(args));
  return [message.type, message.text, ...made].join("|");
}
