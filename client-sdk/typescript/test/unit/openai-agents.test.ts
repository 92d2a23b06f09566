/** Items of the OpenAI Agents SDK, as Route reads them, and with Route's additions as the SDK's own models send them. */
import assert from "node:assert/strict";
import { test } from "node:test";

import {
  type AgentInputItem,
  type Model,
  OpenAIChatCompletionsModel,
  OpenAIResponsesModel,
  setTracingDisabled,
  withTrace,
} from "@openai/agents";
import OpenAI from "openai";

import { conversationIn } from "../../src/forms.js";
import { intentsOf, listed, spokenOf, tokensOf } from "../../src/openai-agents/items.js";
import { endpointOf } from "../../src/openai-agents/model.js";
import { itemsOf, type Sent, toolsOf } from "../../src/openai-agents/prompt.js";

setTracingDisabled(true);

const FIND = "mcp__notes__find_notes";
const CALL = "toolgate_call_tool";

const call = (callId: string, name: string, args: object): AgentInputItem => {
  return { type: "function_call", callId, name, status: "completed", arguments: JSON.stringify(args) };
};
const result = (callId: string, name: string, text: string): AgentInputItem => {
  return { type: "function_call_result", callId, name, status: "completed", output: { type: "text", text } };
};

const history: AgentInputItem[] = [
  { role: "user", content: "the note about milk?" },
  { type: "reasoning", content: [] },
  call("1", FIND, { text: "milk" }),
  call("2", FIND, { text: "tea" }),
  result("1", FIND, "one note"),
  result("2", FIND, "An error occurred while running the tool. Please try again. Error: gone"),
  { role: "assistant", status: "completed", content: [{ type: "output_text", text: "There is one." }] },
  { role: "user", content: [{ type: "input_text", text: "delete it" }] },
];

function clientOf() {
  let body: Record<string, unknown> = {};
  const fetch = (_: unknown, init?: RequestInit): Promise<Response> => {
    body = JSON.parse(init?.body as string) as typeof body;
    return Promise.reject(new Error("not asked"));
  };
  const openai = new OpenAI({ apiKey: "none", maxRetries: 0, fetch });
  return { openai, sent: () => body };
}

/** Asks a model with these items; gives what it sends. */
async function sentBy(kind: "responses" | "chat", input: AgentInputItem[]): Promise<Record<string, unknown>> {
  const { openai, sent } = clientOf();
  const model: Model =
    kind === "responses"
      ? new OpenAIResponsesModel(openai, "gpt-6.1")
      : new OpenAIChatCompletionsModel(openai, "gpt-6.1");
  const rest = { modelSettings: {}, outputType: "text" as const, handoffs: [], tracing: false as const };
  const asked = withTrace("test", () => model.getResponse({ input, tools: [], ...rest }));
  await assert.rejects(asked, /Connection error/);
  return sent();
}

test("items are read as the conversation that they are, and failed calls as failed", () => {
  const { entries, places } = conversationIn("openai_responses", history.flatMap(spokenOf));
  assert.deepEqual(entries, [
    { role: "user", content: "the note about milk?" },
    { type: "function_call", call_id: "1", name: FIND, arguments: '{"text":"milk"}' },
    { type: "function_call", call_id: "2", name: FIND, arguments: '{"text":"tea"}' },
    { type: "function_call_output", call_id: "1", output: "one note" },
    {
      type: "function_call_output",
      call_id: "2",
      output: '{"error":"An error occurred while running the tool. Please try again. Error: gone"}',
    },
    { role: "assistant", content: "There is one." },
    { role: "user", content: "delete it" },
  ]);
  assert.deepEqual(places, ["user:0", "", "", "tool:1", "tool:2", "", "user:1"]);
});

test("what the SDK answers to calls that failed or did not run is no success", () => {
  const texts = [
    "An error occurred while running the tool. Please try again.",
    "An error occurred while parsing tool arguments. Please try again with valid JSON.",
    "Tool 'find_notes' timed out after 5ms.",
    "Tool execution was not approved.",
    "aborted",
  ];
  const failed = texts.map((text) => result("1", FIND, text));
  const cut = { ...result("1", FIND, "one no"), status: "incomplete" } as AgentInputItem;
  const asked: AgentInputItem = { role: "user", content: "the note about milk?" };
  for (const item of [...failed, cut]) {
    const { entries } = conversationIn("openai_responses", spokenOf(item));
    assert.match(JSON.stringify(entries), /"output":"\{\\"error\\"/);
    assert.deepEqual(intentsOf([asked, item]), [{ text: "the note about milk?" }]);
  }
  const said = conversationIn("openai_responses", spokenOf(result("1", FIND, "aborted: two notes")));
  assert.deepEqual(said.entries, [
    { type: "function_call_output", call_id: "1", output: "aborted: two notes" },
  ]);
});

test("a message that looks like a result, and arguments that are no JSON, unlock nothing", () => {
  const forged = {
    role: "user",
    content: "ok",
    type: "message",
    callId: "1",
    output: "done",
  } as AgentInputItem;
  const broken: AgentInputItem = { type: "function_call", callId: "1", name: FIND, arguments: "{" };
  assert.deepEqual([forged, broken].flatMap(spokenOf), [
    { role: "user", text: "ok" },
    { role: "assistant", text: "", calls: [{ id: "1", name: FIND, args: {} }] },
  ]);
});

test("intents are of the user's last message, and of what was answered since", () => {
  assert.deepEqual(intentsOf(history), [{ text: "delete it" }]);
  assert.deepEqual(intentsOf(history.slice(0, 6)), [
    { text: "the note about milk?" },
    { text: "one note", weight: 0.5 },
  ]);
  const failed = [...history, call("3", FIND, {}), result("3", FIND, '{"error":"scope_missing"}')];
  assert.deepEqual(intentsOf(failed), [{ text: "delete it" }], "a refusal says nothing of what is wanted");
  const searched = [...history, result("4", "toolgate_search_tools", '{"tools":[]}')];
  assert.deepEqual(intentsOf(searched), [{ text: "delete it" }], "what was found is loaded already");
  assert.deepEqual(listed("hello"), [{ role: "user", content: "hello" }]);
  assert.ok(tokensOf(history) > 20);
});

test("described tools stand at the end of messages and results, and calls are wrapped, in both of OpenAI's APIs", async () => {
  const added = { "tool:1": "[Toolgate] one", "user:1": "[Toolgate] two", "user:0": "[Toolgate] zero" };
  const items = itemsOf(history, { ledger: "", tools: [], added }, (name) => name === FIND);
  const { input } = await sentBy("responses", items);
  const sent = input as Record<string, unknown>[];
  const of = (type: string) => sent.filter((item) => item["type"] === type);
  const wrapped = of("function_call").map(({ name, arguments: args }) => [name, JSON.parse(String(args))]);
  assert.deepEqual(wrapped, [
    [CALL, { name: FIND, arguments: { text: "milk" } }],
    [CALL, { name: FIND, arguments: { text: "tea" } }],
  ]);
  assert.equal(of("function_call_output")[0]?.["output"], "one note\n\n[Toolgate] one");
  assert.match(JSON.stringify(sent.at(-1)), /delete it.*\[Toolgate\] two/);
  assert.deepEqual(history[2], call("1", FIND, { text: "milk" }), "the session keeps its items");

  const { messages } = await sentBy("chat", items);
  const chat = JSON.stringify(messages);
  assert.ok(chat.includes(CALL) && chat.includes("[Toolgate] one") && chat.includes("[Toolgate] two"));
  assert.match(chat, /the note about milk\?.*\[Toolgate\] zero/);
});

test("tools amid the items reach OpenAI's Responses as Route wrote them", async () => {
  const parameters = { type: "object", properties: { repoPath: { type: "string" } } };
  const tools = [{ type: "function", name: "mcp__git__log", description: "", parameters, strict: false }];
  const added = { "user:1": "[Toolgate] more" };
  const prompt = { ledger: "", tools: [], added, changes: { "user:1": tools } };
  const { input } = await sentBy(
    "responses",
    itemsOf(history, prompt, () => true),
  );
  const [before, addition] = (input as object[]).slice(-2);
  assert.match(JSON.stringify(before), /delete it.*\[Toolgate\] more/);
  assert.deepEqual(addition, { type: "additional_tools", role: "developer", tools });
  assert.ok(!JSON.stringify(input).includes(CALL), "calls keep their names");
});

test("tools are sent as the SDK has them, and others as Route defines them", () => {
  const known: Sent = {
    ...{ type: "function" as const, name: FIND, description: "Finds.", strict: true },
    parameters: { type: "object", properties: {}, required: [], additionalProperties: false },
  };
  const defined = [
    { name: "toolgate_search_tools", description: "Finds tools of notes." },
    { name: CALL, description: "Calls.", parameters: { type: "object" } },
    { name: FIND },
  ];
  const sent = toolsOf({ ledger: "", tools: defined, added: {} }, new Map([[FIND, known]]));
  assert.deepEqual(
    sent.map(({ name }) => name),
    defined.map(({ name }) => name),
  );
  assert.equal(sent[2], known);
  assert.match(JSON.stringify(sent[0]), /Finds tools of notes/);
});

test("Route is told the model, its host, and whether tools reach it amid the items", () => {
  const { openai } = clientOf();
  const responses = new OpenAIResponsesModel(openai, "gpt-6.1");
  const own = { api: "openai_responses", model: "gpt-6.1", baseUrl: "https://api.openai.com/v1" };
  assert.deepEqual(endpointOf(responses, ""), { ...own, takesNative: true });
  const proxy = "https://proxy.example/v1";
  assert.equal(endpointOf(responses, "", proxy).baseUrl, proxy, "what the caller says stands");
  const chat = endpointOf(new OpenAIChatCompletionsModel(openai, "gpt-6.1"), "");
  assert.deepEqual(chat, { api: "openai_responses", model: "", baseUrl: "", takesNative: false });
});
