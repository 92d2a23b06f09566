/** Requests of the AI SDK that Route puts together, against a service. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { Client, v1 } from "@toolgate/client";
import { mcpDefinitions, modelFacing, ToolgateConversation, type ToolgateOptions } from "@toolgate/client/ai";
import {
  generateText,
  jsonSchema,
  type ModelMessage,
  simulateReadableStream,
  stepCountIs,
  streamText,
  tool,
} from "ai";
import { MockLanguageModelV3 } from "ai/test";

import { notes, scripted } from "../../examples/ai-sdk.js";
import { saidIn } from "./said.js";
import { freshTenant, Service } from "./service.js";

const [SEARCH, CALL] = ["toolgate_search_tools", "toolgate_call_tool"];
const [FIND, CALENDARS] = ["mcp__notes__find_notes", "mcp__notes__list_calendars"];
const ROUTE = { options: { topK: 1, deferral: v1.DeferralMode.ALWAYS } };

const own = {
  clock: tool({
    description: "Tells the time.",
    inputSchema: jsonSchema({ type: "object" }),
    execute: () => "noon",
  }),
};

/** A conversation about the notes whose requests are put together by a strategy. */
async function conversation(client: Client, options: ToolgateOptions = {}) {
  const tools = notes();
  await client.registerServer(
    { server: "notes", toolsListJson: await mcpDefinitions(tools) },
    { timeoutMs: 60_000 },
  );
  const managed = await modelFacing(tools, client.listTools({ server: "notes" }));
  const quiet = { own, onOwnTools: () => undefined };
  return new ToolgateConversation(client, managed, {
    ...quiet,
    strategy: "envelope",
    route: ROUTE,
    ...options,
  });
}

function connected({ target }: Service): Client {
  return new Client(target, { tenant: freshTenant(), timeoutMs: 30_000 });
}

/** An envelope around a call. */
function enveloped(name: string, args: object): [string, object] {
  return [CALL, { name, arguments: args }];
}

test("described tools are called through the envelope, and the beginning of each request stays", async () => {
  await using service = await Service.get();
  await using client = connected(service);
  let toolgate = await conversation(client);
  const model = scripted(
    [enveloped(FIND, { text: "milk" }), ["clock", {}]],
    "One.",
    [enveloped(CALENDARS, {})],
    "Two.",
  );
  const messages: ModelMessage[] = [];
  const ran: string[][] = [];
  for (const content of ["Find the note about milk.", "Which calendars does this account have?"]) {
    messages.push({ role: "user", content });
    const settings = toolgate.settings();
    const result = await generateText({
      ...{ model, messages, stopWhen: stepCountIs(3) },
      ...settings,
    });
    messages.push(...saidIn(result));
    ran.push(result.steps.flatMap(({ toolResults }) => toolResults.map(({ toolName }) => toolName)));
    // The state is JSON.
    const state = JSON.parse(JSON.stringify(toolgate.state)) as typeof toolgate.state;
    toolgate = await conversation(client, { state });
  }
  assert.deepEqual(ran, [[FIND, "clock"], [CALENDARS]]);
  assert.doesNotMatch(JSON.stringify(messages), /Toolgate\]|toolgate_call_tool/, "only the model sees it");

  const requests = model.doGenerateCalls;
  const shown = requests.map(({ tools }) => tools?.map(({ name }) => name));
  assert.deepEqual(shown, Array(4).fill(["clock", SEARCH, CALL]));
  const prompts = requests.map(({ prompt }) => prompt.map((message) => JSON.stringify(message)));
  assert.match(String(prompts[0]?.at(-1)), /\[Toolgate\] More tools.*mcp__notes__find_notes/);
  assert.match(String(prompts[2]?.at(-1)), /mcp__notes__list_calendars/);
  for (const [at, prompt] of prompts.slice(1).entries()) {
    const before = prompts[at] ?? [];
    assert.deepEqual(prompt.slice(0, before.length), before, `request ${String(at + 1)}`);
  }
});

test("calls in envelopes are gated, and mistaken envelopes are refused", async () => {
  await using service = await Service.get();
  await using client = connected(service);
  const toolgate = await conversation(client);
  const model = scripted([enveloped(FIND, { word: "milk" })], [[CALL, { tool: FIND }]], "I can't.");
  const prompt = "Find the note about milk.";
  const result = await generateText({ model, prompt, stopWhen: stepCountIs(4), ...toolgate.settings() });
  const refusals = result.steps.slice(0, 2).map(({ content }) => content.at(-1));
  assert.deepEqual(
    refusals.map((part) => part?.type),
    ["tool-error", "tool-error"],
  );
  assert.match(JSON.stringify(model.doGenerateCalls[1]?.prompt), /arguments_invalid/);
  const [call, refusal] = (model.doGenerateCalls[2]?.prompt ?? []).slice(-2);
  assert.match(JSON.stringify(call), /toolgate_call_tool/);
  assert.match(JSON.stringify(refusal), /toolgate_call_tool.*error/);
});

test("what a search found is described behind its result", async () => {
  await using service = await Service.get();
  await using client = connected(service);
  const toolgate = await conversation(client);
  const found = "mcp__notes__delete_note";
  const search: [string, object] = [SEARCH, { query: `select:${found}` }];
  const model = scripted([search], [enveloped(found, { id: "1" })], "Gone.");
  const prompt = "Find the note about milk.";
  const result = await generateText({ model, prompt, stopWhen: stepCountIs(4), ...toolgate.settings() });
  const answer = model.doGenerateCalls[1]?.prompt.at(-1);
  assert.equal(answer?.role, "tool");
  assert.match(JSON.stringify(answer), /\[Toolgate\].*Deletes a note for good/);
  const deleted = result.steps[1]?.content.at(-1);
  assert.ok(deleted?.type === "tool-result");
  assert.deepEqual([deleted.toolName, deleted.output], [found, { deleted: true }]);
});

test("envelopes are opened in streams", async () => {
  await using service = await Service.get();
  await using client = connected(service);
  const toolgate = await conversation(client);
  const usage = {
    inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: 1, text: 1, reasoning: 0 },
  };
  const finish = (unified: "stop" | "tool-calls") =>
    ({ type: "finish", finishReason: { unified, raw: undefined }, usage }) as const;
  const input = JSON.stringify(enveloped(FIND, { text: "milk" })[1]);
  const call = [
    { type: "tool-input-start", id: "call_1", toolName: CALL },
    { type: "tool-input-delta", id: "call_1", delta: input },
    { type: "tool-input-end", id: "call_1" },
    { type: "tool-call", toolCallId: "call_1", toolName: CALL, input },
  ] as const;
  const model = new MockLanguageModelV3({
    doStream: [
      { stream: simulateReadableStream({ chunks: [...call, finish("tool-calls")] }) },
      { stream: simulateReadableStream({ chunks: [finish("stop")] }) },
    ],
  });
  const prompt = "Find the note about milk.";
  const result = streamText({ model, prompt, stopWhen: stepCountIs(3), ...toolgate.settings() });
  const events: string[] = [];
  for await (const event of result.fullStream) {
    if ("toolName" in event) events.push(`${event.type} ${event.toolName}`);
  }
  assert.deepEqual(events, [`tool-call ${FIND}`, `tool-result ${FIND}`]);
});

test("auto defines tools where nothing is deferred, and a model that can't search has no envelope", async () => {
  await using service = await Service.get();
  await using client = connected(service);
  const off = { options: { deferral: v1.DeferralMode.OFF } };
  const options: ToolgateOptions[] = [
    { strategy: "auto", route: off },
    { strategy: "auto", search: false },
  ];
  for (const option of options) {
    const toolgate = await conversation(client, option);
    const model = scripted([[FIND, { text: "milk" }]], "One.");
    const prompt = "Find the note about milk.";
    const result = await generateText({ model, prompt, stopWhen: stepCountIs(3), ...toolgate.settings() });
    assert.equal(result.steps[0]?.content.at(-1)?.type, "tool-result");
    const shown = model.doGenerateCalls[0]?.tools?.map(({ name }) => name) ?? [];
    assert.ok(shown.includes(FIND) && !shown.includes(CALL), JSON.stringify(shown));
  }
});

test("by default a long request has the envelope", async () => {
  await using service = await Service.get();
  await using client = connected(service);
  const toolgate = await conversation(client, { strategy: "auto" });
  const model = scripted("One.");
  const prompt = "Find the note about milk. ".repeat(1_000);
  await generateText({ model, prompt, ...toolgate.settings() });
  const shown = model.doGenerateCalls[0]?.tools?.map(({ name }) => name) ?? [];
  assert.deepEqual(shown, ["clock", SEARCH, CALL, FIND], "the first set is defined behind the envelope");
});

test("a strategy that there is not is refused with those that can be had", () => {
  const known = /strategy is one of "auto", "cut", "envelope", "native", not "cheap"/;
  assert.throws(() => new ToolgateConversation(new Client(), {}, { strategy: "cheap" as "auto" }), known);
});

test("a strategy but the default needs the model itself", async () => {
  await using service = await Service.get();
  await using client = connected(service);
  const toolgate = await conversation(client);
  const messages: ModelMessage[] = [{ role: "user", content: "Find the note about milk." }];
  await assert.rejects(toolgate.prepareStep({ messages, model: "openai/gpt" }), TypeError);
  const byDefault = await conversation(client, { strategy: "auto" });
  const { activeTools } = await byDefault.prepareStep({ messages, model: "openai/gpt" });
  assert.deepEqual(activeTools, ["clock", SEARCH, FIND], "the default defines tools then");
  const long: ModelMessage[] = [{ role: "user", content: "Find the note about milk. ".repeat(1_000) }];
  assert.ok(
    !(await byDefault.prepareStep({ messages: long, model: "openai/gpt" })).activeTools.includes(CALENDARS),
  );
});
