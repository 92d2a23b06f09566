/** Messages that add tools, as LangChain's own providers send them. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { create } from "@bufbuild/protobuf";
import { ChatAnthropic } from "@langchain/anthropic";
import {
  AIMessage,
  type BaseMessage,
  HumanMessage,
  SystemMessage,
  ToolMessage,
} from "@langchain/core/messages";
import { ChatOpenAI } from "@langchain/openai";

import { type Conversation, conversationIn } from "../../src/forms.js";
import { spokenOf } from "../../src/langchain/messages.js";
import { withTools } from "../../src/langchain/native.js";
import { messagesOf } from "../../src/langchain/prompt.js";
import { v1 } from "../../src/node.js";
import { promptOf } from "../../src/prompting.js";

const CLAUDE = { api: "anthropic", model: "claude-opus-5-5" } as const;
const GPT = { api: "openai_responses", model: "gpt-6.1" } as const;

function conversationOf(
  messages: BaseMessage[],
  { api }: { api: "anthropic" | "openai_responses" | "gemini" },
): Conversation {
  return conversationIn(api, messages.map(spokenOf));
}

const history: BaseMessage[] = [
  new HumanMessage("the weather in Oslo?"),
  new AIMessage({ content: "", tool_calls: [{ id: "1", name: "mcp__a__b", args: { city: "Oslo" } }] }),
  new ToolMessage({ content: "no such city", tool_call_id: "1", status: "error" }),
  new AIMessage("It is unknown."),
  new SystemMessage("Be brief."),
  new HumanMessage("and in Bergen?"),
];

/** Returns what a model sends when it is asked with these messages. */
async function sentBy(
  kind: "anthropic" | "openai",
  messages: BaseMessage[],
): Promise<Record<string, unknown>> {
  let body = "{}";
  const fetch = (_: unknown, init?: RequestInit): Promise<Response> => {
    body = init?.body as string;
    return Promise.reject(new Error("not asked"));
  };
  const model =
    kind === "anthropic"
      ? new ChatAnthropic({ model: CLAUDE.model, apiKey: "none", maxRetries: 0, clientOptions: { fetch } })
      : new ChatOpenAI({
          ...{ model: GPT.model, apiKey: "none", useResponsesApi: true, maxRetries: 0 },
          configuration: { fetch },
        });
  await assert.rejects(model.invoke(messages));
  return JSON.parse(body) as Record<string, unknown>;
}

test("each message is an entry of Anthropic's, and its place is where Route may add", () => {
  const { entries, places } = conversationOf(history, CLAUDE);
  const result = { type: "tool_result", tool_use_id: "1", content: "no such city", is_error: true };
  assert.deepEqual(entries, [
    { role: "user", content: "the weather in Oslo?" },
    {
      role: "assistant",
      content: [{ type: "tool_use", id: "1", name: "mcp__a__b", input: { city: "Oslo" } }],
    },
    { role: "user", content: [result] },
    { role: "assistant", content: [{ type: "text", text: "It is unknown." }] },
    { role: "user", content: "Be brief." },
    { role: "user", content: "and in Bergen?" },
  ]);
  assert.deepEqual(places, ["user:0", "", "tool:1", "", "", "user:1"]);
});

test("a message may be several items of OpenAI's Responses", () => {
  const said = new AIMessage({
    content: "Both.",
    tool_calls: [
      { id: "1", name: "a", args: {} },
      { id: "2", name: "b", args: {} },
    ],
  });
  const { entries, places } = conversationOf([said, ...history.slice(2)], GPT);
  assert.deepEqual(entries, [
    { role: "assistant", content: "Both." },
    { type: "function_call", call_id: "1", name: "a", arguments: "{}" },
    { type: "function_call", call_id: "2", name: "b", arguments: "{}" },
    { type: "function_call_output", call_id: "1", output: '{"error":"no such city"}' },
    { role: "assistant", content: "It is unknown." },
    { role: "system", content: "Be brief." },
    { role: "user", content: "and in Bergen?" },
  ]);
  assert.deepEqual(places, ["", "", "", "tool:1", "", "", "user:0"]);
});

test("Anthropic is sent tools in a system message, and no two of those in a row", async () => {
  const definition = { name: "mcp__a__b", input_schema: { type: "object" } };
  const changes = { "user:0": [definition], "tool:1": [definition] };
  const spoken = [...history.slice(0, 3), new SystemMessage("Be brief."), new HumanMessage("go on")];
  const prompt = { ledger: "", tools: [], added: {}, changes };
  const { messages } = await sentBy("anthropic", withTools(spoken, prompt, CLAUDE));
  const addition = { type: "tool_addition", tool: { type: "tool_definition", definition } };
  const roles = (messages as { role: string }[]).map(({ role }) => role);
  assert.deepEqual(roles, ["user", "system", "assistant", "user", "system", "user"]);
  const [, first, , , second] = messages as { content: unknown }[];
  assert.deepEqual(first?.content, [addition]);
  assert.deepEqual(second?.content, [addition, { type: "text", text: "Be brief." }]);
});

test("OpenAI is sent tools as an item, and nothing else", async () => {
  const definition = { type: "function", name: "mcp__a__b", parameters: { type: "object" }, strict: false };
  const prompt = { ledger: "", tools: [], added: {}, changes: { "user:0": [definition] } };
  const { input } = await sentBy("openai", withTools(history.slice(0, 1), prompt, GPT));
  assert.deepEqual((input as unknown[]).slice(1), [
    { type: "additional_tools", role: "developer", tools: [definition] },
  ]);
});

test("Gemini's contents have results by name, and what failed as an error", () => {
  const { entries, places } = conversationOf(history.slice(0, 4), { api: "gemini" });
  assert.deepEqual(entries, [
    { role: "user", parts: [{ text: "the weather in Oslo?" }] },
    { role: "model", parts: [{ functionCall: { id: "1", name: "mcp__a__b", args: { city: "Oslo" } } }] },
    {
      role: "user",
      parts: [{ functionResponse: { id: "1", name: "", response: { error: "no such city" } } }],
    },
    { role: "model", parts: [{ text: "It is unknown." }] },
  ]);
  assert.deepEqual(places, ["user:0", "", "tool:1", ""]);
});

test("what changed in the catalog is told at the end of a message, before the tools that are added behind it", () => {
  const { entries, places } = conversationOf(history, CLAUDE);
  const told = "[Toolgate] The search finds more tools: mcp__a__c.";
  const definition = { name: "mcp__a__c", input_schema: { type: "object" } };
  const block = { type: "tool_addition", tool: { type: "tool_definition", definition } };
  const last = { role: "user", content: `and in Bergen?\n\n${told}` };
  const messages = [...entries.slice(0, -1), last, { role: "system", content: [block] }];
  const rendered = {
    toolsJson: "[]",
    messagesJson: JSON.stringify(messages),
    strategy: v1.PromptStrategy.NATIVE,
  };
  const endpoint = { ...CLAUDE, baseUrl: "", takesNative: true };
  const prompt = promptOf(
    create(v1.RouteResponseSchema, { rendered }),
    entries,
    { strategy: "auto", places },
    endpoint,
  );
  assert.deepEqual(prompt.added, { "user:1": told });
  assert.deepEqual(prompt.changes, { "user:1": [definition] });
  const sent = withTools(
    messagesOf(history, prompt, () => false),
    prompt,
    CLAUDE,
  );
  assert.equal(sent.length, history.length + 1);
  assert.equal(sent.at(-2)?.content, last.content);
});
