/** Refusals in the messages of each integration, counted by what became of them (A22), against a service. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import { ChatAnthropic } from "@langchain/anthropic";
import { MemorySaver } from "@langchain/langgraph";
import { ChatOpenAI } from "@langchain/openai";
import {
  Agent,
  MemorySession,
  OpenAIChatCompletionsModel,
  OpenAIResponsesModel,
  run,
  setTracingDisabled,
  tool as agentsTool,
} from "@openai/agents";
import { type Api, Client, Conversation, type ModelRequest, v1 } from "@toolgate/client";
import * as aiSdk from "@toolgate/client/ai";
import * as langchain from "@toolgate/client/langchain";
import * as agentsSdk from "@toolgate/client/openai-agents";
import { generateText, jsonSchema, type ModelMessage, stepCountIs, tool as aiTool } from "ai";
import { createAgent, tool as langchainTool } from "langchain";
import OpenAI from "openai";

import { anthropicApi, type Line } from "./anthropic-api.js";
import { chatApi, geminiApi, responsesApi } from "./apis.js";
import { saidIn } from "./said.js";
import { freshTenant, Service } from "./service.js";

setTracingDisabled(true);

type Fetch = (url: unknown, init?: RequestInit) => Promise<Response>;
type Strategy = "cut" | "envelope";
/** Says the messages of `TURNS` to an agent whose model asks `fetch`. */
type Talk = (client: Client, api: Api, strategy: Strategy, fetch: Fetch) => Promise<void>;

const FIND = "mcp__notes__find_notes";
const WRONG: Line = [FIND, { text: 7 }];
/** A refusal that a later call mends, one that the user is asked about, one that is given up; the last message has it counted. */
const TURNS: Readonly<Record<string, readonly Line[]>> = {
  "Find the note about milk.": [WRONG, [FIND, { text: "milk" }], "One."],
  "And the other note?": [WRONG, "Which one do you mean?"],
  "The note about bread.": [WRONG, "That did not work."],
  "Thank you.": ["You are welcome."],
};
const APIS = {
  anthropic: anthropicApi,
  openai_chat: chatApi,
  openai_responses: responsesApi,
  gemini: geminiApi,
};
const MODELS: Readonly<Record<Api, string>> = {
  anthropic: "claude-opus-5-5",
  openai_chat: "gpt-6.1",
  openai_responses: "gpt-6.1",
  gemini: "gemini-3-pro",
};

const description = "Finds notes by a word in their text.";
const properties = { text: { type: "string" as const } };
const inputSchema = { type: "object" as const, properties, required: ["text"] };
const execute = () => "One note.";
const options = {
  route: { options: { pinnedTools: ["notes/find_notes"], deferral: v1.DeferralMode.ALWAYS } },
  ...{ onOwnTools: () => undefined, onWarning: () => undefined },
};

const withLangChain: Talk = async (client, api, strategy, fetch) => {
  const find = langchainTool(execute, { name: "find_notes", description, schema: inputSchema });
  const toolgate = await langchain.fromTools(client, { notes: [find] }, { ...options, strategy });
  const [apiKey, model] = ["none", MODELS[api]];
  const useResponsesApi = api === "openai_responses";
  const asked =
    api === "anthropic"
      ? new ChatAnthropic({ apiKey, model, clientOptions: { fetch } })
      : new ChatOpenAI({ apiKey, model, useResponsesApi, configuration: { fetch } });
  const agent = createAgent({ model: asked, middleware: [toolgate], checkpointer: new MemorySaver() });
  for (const content of Object.keys(TURNS)) {
    await agent.invoke({ messages: [{ role: "user", content }] }, { configurable: { thread_id: "1" } });
  }
};

const withAi: Talk = async (client, api, strategy, fetch) => {
  const tools = { find_notes: aiTool({ description, inputSchema: jsonSchema(inputSchema), execute }) };
  const settings = { ...options, strategy };
  const toolgate = await aiSdk.ToolgateConversation.fromTools(client, { notes: tools }, settings);
  const asking = { apiKey: "none", fetch };
  const named = MODELS[api];
  const model = {
    anthropic: () => createAnthropic(asking)(named),
    openai_chat: () => createOpenAI(asking).chat(named),
    openai_responses: () => createOpenAI(asking).responses(named),
    gemini: () => createGoogleGenerativeAI(asking)(named),
  }[api]();
  const messages: ModelMessage[] = [];
  for (const content of Object.keys(TURNS)) {
    messages.push({ role: "user", content });
    const asked = { model, messages, stopWhen: stepCountIs(4), ...toolgate.settings() };
    messages.push(...saidIn(await generateText(asked)));
  }
};

const withAgents: Talk = async (client, api, strategy, fetch) => {
  const parameters = { ...inputSchema, additionalProperties: true as const };
  const find = agentsTool({ name: "find_notes", description, strict: false, parameters, execute });
  const settings = { ...options, strategy };
  const toolgate = await agentsSdk.ToolgateConversation.fromTools(client, { notes: [find] }, settings);
  const openai = new OpenAI({ apiKey: "none", fetch });
  const Model = api === "openai_chat" ? OpenAIChatCompletionsModel : OpenAIResponsesModel;
  const agent = new Agent({ name: "desk", model: new Model(openai, MODELS[api]) });
  const session = new MemorySession();
  for (const text of Object.keys(TURNS)) await run(toolgate.agent(agent), text, { session });
};

const withALoop: Talk = async (client, api, strategy, fetch) => {
  const notes = [{ name: "find_notes", description, inputSchema }];
  const settings = { ...options, strategy, model: MODELS[api] };
  const conversation = await Conversation.fromTools(client, api, { notes }, execute, settings);
  for (const text of Object.keys(TURNS)) {
    let request: ModelRequest | undefined = await conversation.say(text);
    while (request !== undefined) {
      const { tools, messages } = request;
      const body = JSON.stringify({ tools, messages });
      const answer = await fetch("http://provider.example/", { method: "POST", body });
      request = await conversation.take((await answer.json()) as object);
    }
  }
};

const CASES: readonly (readonly [name: string, talk: Talk, apis: readonly Api[]])[] = [
  ["LangChain", withLangChain, ["anthropic", "openai_chat", "openai_responses"]],
  ["the AI SDK", withAi, ["anthropic", "openai_chat", "openai_responses", "gemini"]],
  ["the Agents SDK", withAgents, ["openai_chat", "openai_responses"]],
  ["a loop of one's own", withALoop, ["anthropic", "openai_chat", "openai_responses", "gemini"]],
];

for (const [name, talk, apis] of CASES) {
  for (const api of apis) {
    for (const strategy of ["cut", "envelope"] as const) {
      test(`refusals are counted as ${name} writes them for ${api} with ${strategy}`, async () => {
        await using service = await Service.get();
        await using client = new Client(service.target, { tenant: freshTenant(), timeoutMs: 30_000 });
        const script = Object.values(TURNS)
          .flat()
          .map((line) => written(line, strategy));
        await talk(client, api, strategy, APIS[api](...script).fetch);
        const { refusals, refusalOutcomes: outcomes } = await client.getUsage();
        assert.deepEqual(
          refusals.map(({ code, calls }) => [code, calls]),
          [[v1.RefusalCode.ARGUMENTS_INVALID, 3n]],
        );
        assert.deepEqual([outcomes?.mendedCalls, outcomes?.askedCalls, outcomes?.givenUpCalls], [1n, 1n, 1n]);
      });
    }
  }
}

/** A line as the model writes it: with an envelope its calls are in it. */
function written(line: Line, strategy: Strategy): Line {
  if (typeof line === "string" || strategy === "cut") return line;
  return ["toolgate_call_tool", { name: line[0], arguments: line[1] }];
}
