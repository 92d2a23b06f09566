/** The AI SDK's example against a service, and what becomes of a conversation without one. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { Client, v1 } from "@toolgate/client";
import { mcpDefinitions, modelFacing, ToolgateConversation } from "@toolgate/client/ai";
import {
  generateText,
  jsonSchema,
  type ModelMessage,
  simulateReadableStream,
  stepCountIs,
  streamText,
  tool,
  type ToolSet,
} from "ai";
import { MockLanguageModelV3 } from "ai/test";

import { notes, run, scripted } from "../../examples/ai-sdk.js";
import * as longTalk from "./long-talk.js";
import { saidIn } from "./said.js";
import { freshTenant, Service, told } from "./service.js";

const [SEARCH, FIND, DELETE] = ["toolgate_search_tools", "mcp__notes__find_notes", "mcp__notes__delete_note"];

const ALWAYS = { options: { topK: 1, deferral: v1.DeferralMode.ALWAYS } };

const USAGE = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

/** A model that streams a call, and then a text. */
function streaming([toolName, input]: [string, object], said: string): MockLanguageModelV3 {
  const usage = USAGE;
  const finish = (unified: "stop" | "tool-calls") =>
    ({ type: "finish", finishReason: { unified, raw: undefined }, usage }) as const;
  const call = { type: "tool-call", toolCallId: "call_1", toolName, input: JSON.stringify(input) } as const;
  const text = [
    { type: "text-start", id: "1" },
    { type: "text-delta", id: "1", delta: said },
    { type: "text-end", id: "1" },
  ] as const;
  return new MockLanguageModelV3({
    doStream: [
      { stream: simulateReadableStream({ chunks: [call, finish("tool-calls")] }) },
      { stream: simulateReadableStream({ chunks: [...text, finish("stop")] }) },
    ],
  });
}

test("a call is refused and corrected, a search loads a tool, and gated calls run", async () => {
  await using service = await Service.get();
  await using client = new Client(service.target, { tenant: freshTenant(), timeoutMs: 30_000 });
  const { result, shown } = await run(client);
  assert.equal(result.text, "It is gone.");
  assert.deepEqual(shown[0], [SEARCH, FIND]);
  assert.deepEqual(shown[3], [SEARCH, FIND, DELETE]);
  const [refused, found, searched, deleted] = result.steps.map(({ content }) => content.at(-1));
  assert.ok(refused?.type === "tool-error");
  assert.match((refused.error as Error).message, /^{"error":"arguments_invalid"/);
  assert.ok(found?.type === "tool-result");
  assert.deepEqual(found.output, ["1"]);
  assert.ok(searched?.type === "tool-result");
  assert.deepEqual(JSON.parse(searched.output as string), { tools: [{ name: DELETE }], deferred_tools: 1 });
  assert.ok(deleted?.type === "tool-result");
  assert.deepEqual(deleted.output, { deleted: true });
});

/** The notes, registered for a tenant of their own, under the names that the model is to see. */
async function registered(client: Client) {
  const tools = notes();
  await client.registerServer(
    { server: "notes", toolsListJson: await mcpDefinitions(tools) },
    { timeoutMs: 60_000 },
  );
  return modelFacing(tools, client.listTools({ server: "notes" }));
}

const own = {
  clock: tool({
    description: "Tells the time.",
    inputSchema: jsonSchema({ type: "object" }),
    execute: () => "noon",
  }),
};

for (const name of ["burn_notes", "mcp__notes__burn", "toolgate_search"]) {
  test(`a call of ${name}, which is no tool, is refused by Gate, and no hidden tool is named`, async () => {
    await using service = await Service.get();
    await using client = new Client(service.target, { tenant: freshTenant(), timeoutMs: 30_000 });
    const toolgate = new ToolgateConversation(client, await registered(client), { route: ALWAYS });
    const model = scripted([[name, { text: "milk" }]], "No such thing.");
    const prompt = "Find the note about milk.";
    const result = await generateText({ model, prompt, stopWhen: stepCountIs(3), ...toolgate.settings() });
    assert.equal(result.text, "No such thing.");
    const failed = result.steps[0]?.content.at(-1);
    assert.ok(failed?.type === "tool-error");
    assert.match(String(failed.error), /"error":"unknown_tool"/);
    const prompted = JSON.stringify(model.doGenerateCalls[1]?.prompt);
    assert.match(prompted, /unknown_tool/);
    assert.doesNotMatch(prompted, new RegExp(`${DELETE}|list_calendars`));
  });
}

for (const name of ["find_notes", "functions.find_notes", `functions.${FIND}`]) {
  test(`a call of ${name} is understood`, async () => {
    await using service = await Service.get();
    await using client = new Client(service.target, { tenant: freshTenant(), timeoutMs: 30_000 });
    const onOwnTools = () => undefined;
    const options = { own, onOwnTools, route: ALWAYS };
    const toolgate = new ToolgateConversation(client, await registered(client), options);
    const calls = [
      [name, { text: "milk" }],
      ["clock", {}],
    ] as const;
    const model = scripted([...calls], "One.");
    const prompt = "Find the note about milk.";
    const result = await generateText({ model, prompt, stopWhen: stepCountIs(3), ...toolgate.settings() });
    const outputs = result.steps[0]?.toolResults.map(({ toolName, output }) => [toolName, output]);
    assert.deepEqual(outputs, [
      [FIND, ["1"]],
      ["clock", "noon"],
    ]);
    assert.equal((await client.getUsage({})).allowedCalls, 1n, "asked of Gate once");
  });
}

test("a refused call brings no tool in", async () => {
  await using service = await Service.get();
  await using client = new Client(service.target, { tenant: freshTenant(), timeoutMs: 30_000 });
  const route = { options: { pinnedTools: [FIND], deferral: v1.DeferralMode.ALWAYS } };
  const toolgate = new ToolgateConversation(client, await registered(client), { route });
  const refused: [string, object] = ["mcp__notes__lists the calendars of this account", {}];
  const model = scripted([refused], [refused], "I can't.");
  const prompt = "Hello, how are you?";
  await generateText({ model, prompt, stopWhen: stepCountIs(4), ...toolgate.settings() });
  const shown = model.doGenerateCalls.map(({ tools }) => tools?.map(({ name }) => name));
  assert.deepEqual(shown, Array(3).fill([SEARCH, FIND]));
});

test("a streamed call of a name that no tool has is refused by Gate too", async () => {
  await using service = await Service.get();
  await using client = new Client(service.target, { tenant: freshTenant(), timeoutMs: 30_000 });
  const toolgate = new ToolgateConversation(client, await registered(client), { route: ALWAYS });
  const model = streaming(["burn_notes", { text: "milk" }], "No such thing.");
  const prompt = "Find the note about milk.";
  const result = streamText({ model, prompt, stopWhen: stepCountIs(3), ...toolgate.settings() });
  assert.equal(await result.text, "No such thing.");
  assert.match(JSON.stringify(model.doStreamCalls[1]?.prompt), /unknown_tool/);
});

test("tools beside Toolgate's are told, and a model that can't search is sent every tool", async () => {
  await using service = await Service.get();
  await using client = new Client(service.target, { tenant: freshTenant(), timeoutMs: 30_000 });
  const managed = await registered(client);
  const told: (readonly string[])[] = [];
  const onOwnTools = (names: readonly string[]) => told.push(names);
  for (const [deferral, expected] of [
    [undefined, ["clock", ...Object.keys(managed)]],
    [v1.DeferralMode.ALWAYS, ["clock", FIND]],
  ] as const) {
    const route = { options: { topK: 1, ...(deferral === undefined ? {} : { deferral }) } };
    const toolgate = new ToolgateConversation(client, managed, { own, search: false, route, onOwnTools });
    const model = scripted("One.");
    await generateText({ model, prompt: "Find the note about milk.", ...toolgate.settings() });
    const shown = model.doGenerateCalls[0]?.tools?.map(({ name }) => name);
    assert.deepEqual(shown?.sort(), [...expected].sort());
  }
  assert.deepEqual(told, [["clock"], ["clock"]]);
});

test("tools beside those of settings() are hidden, and told once by their names", async () => {
  await using service = await Service.get();
  await using client = new Client(service.target, { tenant: freshTenant(), timeoutMs: 30_000 });
  const managed = await registered(client);
  for (const strategy of ["cut", "envelope"] as const) {
    const warnings: string[] = [];
    const options = { strategy, route: ALWAYS, onWarning: told(warnings) };
    const toolgate = new ToolgateConversation(client, managed, options);
    const settings = toolgate.settings();
    const tools: ToolSet = { ...settings.tools, ...own };
    const search: [string, object] = [SEARCH, { query: "notes" }];
    const model = scripted([search], "One.");
    const prompt = "Find the note about milk.";
    await generateText({ model, prompt, stopWhen: stepCountIs(3), ...settings, tools });
    for (const { tools: sent = [] } of model.doGenerateCalls) {
      assert.ok(!sent.some(({ name }) => name === "clock"));
    }
    assert.deepEqual(warnings, [
      "1 tool is beside those of settings() (clock): hidden from the model; give tools of the agent's own as `own`",
    ]);
  }
});

for (const strategy of ["cut", "auto"] as const) {
  test(`40 messages with ${strategy}: more tools are called than a set holds`, async () => {
    await using service = await Service.get();
    await using client = new Client(service.target, { tenant: freshTenant(), timeoutMs: 30_000 });
    const ran: string[] = [];
    const made = (name: string) =>
      tool({
        ...{ description: name, inputSchema: jsonSchema<object>(longTalk.EMPTY) },
        execute: () => (ran.push(name), "done"),
      });
    const names = await longTalk.registered(client);
    const route = { options: { deferral: v1.DeferralMode.ALWAYS } };
    const managed = Object.fromEntries(names.map((name) => [name, made(name)]));
    const options = { own, route, strategy, onOwnTools: () => undefined };
    const toolgate = new ToolgateConversation(client, managed, options);
    const caller = new longTalk.Caller();
    const model = new MockLanguageModelV3({
      doGenerate: ({ prompt, tools = [] }) => {
        const isAnswered = prompt.at(-1)?.role === "tool";
        const call = caller.nextCall(
          tools.map(({ name }) => name),
          prompt.at(-1),
          isAnswered,
        );
        const toolCallId = `call_${String(caller.called.length)}`;
        return Promise.resolve({
          content: [
            call === undefined
              ? { type: "text", text: "Done." }
              : { type: "tool-call", toolCallId, toolName: call.name, input: JSON.stringify(call.args) },
          ],
          finishReason: { unified: call === undefined ? "stop" : "tool-calls", raw: undefined },
          usage: USAGE,
          warnings: [],
        });
      },
    });
    const messages: ModelMessage[] = [];
    for (const content of longTalk.messages(40)) {
      messages.push({ role: "user", content });
      const result = await generateText({
        ...{ model, messages, stopWhen: stepCountIs(3) },
        ...toolgate.settings(),
      });
      messages.push(...saidIn(result));
    }
    if (strategy === "cut") caller.checkCut(ran);
    else caller.checkDefault(ran);
  });
}

test("without a service, the model sees its tools and calls are refused", async () => {
  await using client = new Client("127.0.0.1:1");
  const faults: string[] = [];
  const tools = Object.fromEntries(
    Object.entries(notes()).map(([name, tool]) => [`mcp__notes__${name}`, tool]),
  );
  const toolgate = new ToolgateConversation(client, tools, { onFault: ({ code }) => faults.push(code) });
  const model = scripted([[FIND, { text: "milk" }]], "I could not look.");
  const result = await generateText({
    model,
    prompt: "Hi.",
    stopWhen: stepCountIs(3),
    ...toolgate.settings(),
  });
  assert.deepEqual(
    model.doGenerateCalls[0]?.tools?.map(({ name }) => name).sort(),
    Object.keys(tools).sort(),
  );
  const failed = result.steps[0]?.content.at(-1);
  assert.ok(failed?.type === "tool-error");
  assert.match((failed.error as Error).message, /gate_unavailable/);
  assert.deepEqual(faults, ["UNAVAILABLE", "UNAVAILABLE"]);
});

test("the AI SDK is the one that this run asks for", () => {
  const folder = process.execArgv.some((argument) => argument.includes("ai-7")) ? "ai-7" : "ai";
  assert.match(import.meta.resolve("ai"), new RegExp(`/node_modules/${folder}/`));
});

test("tools under other names are refused at once", () => {
  assert.throws(
    () => new ToolgateConversation(new Client(), notes()),
    /not under model-facing names: find_notes/,
  );
});
