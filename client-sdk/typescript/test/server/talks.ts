/** Conversations with an agent of each integration, and with a loop of one's own, over two MCP servers and a scripted model. */
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
import { type Api, type Client, Conversation, type ModelRequest } from "@toolgate/client";
import * as aiSdk from "@toolgate/client/ai";
import * as langchain from "@toolgate/client/langchain";
import * as agentsSdk from "@toolgate/client/openai-agents";
import { generateText, jsonSchema, type ModelMessage, stepCountIs, tool as aiTool } from "ai";
import { createAgent, tool as langchainTool } from "langchain";
import OpenAI from "openai";

import { anthropicApi } from "./anthropic-api.js";
import { chatApi, geminiApi, responsesApi } from "./apis.js";
import { saidIn } from "./said.js";

setTracingDisabled(true);

export type Fetch = (url: unknown, init?: RequestInit) => Promise<Response>;
export type Strategy = "auto" | "cut" | "envelope" | "native";
/** Settings that all integrations have. */
export interface Options {
  readonly strategy: Strategy;
  readonly route: NonNullable<aiSdk.ToolgateOptions["route"]>;
}
/** Says these messages to an agent whose model asks `fetch`. */
export type Talk = (
  client: Client,
  api: Api,
  words: readonly string[],
  options: Options,
  fetch: Fetch,
) => Promise<void>;

/** Scripted models by their API. */
export const APIS = {
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

const FIND_NOTES = { name: "find_notes", description: "Finds notes by a word in their text." };
const FORECAST = { name: "forecast", description: "Says tomorrow's weather in a city." };
const properties = { text: { type: "string" as const } };
const inputSchema = { type: "object" as const, properties, required: ["text"] };
const execute = () => "One note.";
const QUIET = { onOwnTools: () => undefined, onWarning: () => undefined };

const withLangChain: Talk = async (client, api, words, options, fetch) => {
  const find = langchainTool(execute, { ...FIND_NOTES, schema: inputSchema });
  const forecast = langchainTool(execute, { ...FORECAST, schema: inputSchema });
  const toolgate = await langchain.fromTools(
    client,
    { notes: [find], weather: [forecast] },
    { ...QUIET, ...options },
  );
  const [apiKey, model] = ["none", MODELS[api]];
  const useResponsesApi = api === "openai_responses";
  const asked =
    api === "anthropic"
      ? new ChatAnthropic({ apiKey, model, clientOptions: { fetch } })
      : new ChatOpenAI({ apiKey, model, useResponsesApi, configuration: { fetch } });
  const agent = createAgent({ model: asked, middleware: [toolgate], checkpointer: new MemorySaver() });
  for (const content of words) {
    await agent.invoke({ messages: [{ role: "user", content }] }, { configurable: { thread_id: "1" } });
  }
};

const withAi: Talk = async (client, api, words, options, fetch) => {
  const schema = jsonSchema(inputSchema);
  const defined = ({ name, description }: typeof FORECAST) => ({
    [name]: aiTool({ description, inputSchema: schema, execute }),
  });
  const servers = { notes: defined(FIND_NOTES), weather: defined(FORECAST) };
  const settings = { ...QUIET, ...options };
  const toolgate = await aiSdk.ToolgateConversation.fromTools(client, servers, settings);
  const asking = { apiKey: "none", fetch };
  const named = MODELS[api];
  const model = {
    anthropic: () => createAnthropic(asking)(named),
    openai_chat: () => createOpenAI(asking).chat(named),
    openai_responses: () => createOpenAI(asking).responses(named),
    gemini: () => createGoogleGenerativeAI(asking)(named),
  }[api]();
  const messages: ModelMessage[] = [];
  for (const content of words) {
    messages.push({ role: "user", content });
    const asked = { model, messages, stopWhen: stepCountIs(4), ...toolgate.settings() };
    messages.push(...saidIn(await generateText(asked)));
  }
};

const withAgents: Talk = async (client, api, words, options, fetch) => {
  const parameters = { ...inputSchema, additionalProperties: true as const };
  const find = agentsTool({ ...FIND_NOTES, strict: false, parameters, execute });
  const forecast = agentsTool({ ...FORECAST, strict: false, parameters, execute });
  const settings = { ...QUIET, ...options };
  const servers = { notes: [find], weather: [forecast] };
  const toolgate = await agentsSdk.ToolgateConversation.fromTools(client, servers, settings);
  const openai = new OpenAI({ apiKey: "none", fetch });
  const Model = api === "openai_chat" ? OpenAIChatCompletionsModel : OpenAIResponsesModel;
  const agent = new Agent({ name: "desk", model: new Model(openai, MODELS[api]) });
  const session = new MemorySession();
  for (const text of words) await run(toolgate.agent(agent), text, { session });
};

const withALoop: Talk = async (client, api, words, options, fetch) => {
  const servers = { notes: [{ ...FIND_NOTES, inputSchema }], weather: [{ ...FORECAST, inputSchema }] };
  const settings = { ...QUIET, ...options, model: MODELS[api] };
  const conversation = await Conversation.fromTools(client, api, servers, execute, settings);
  for (const text of words) {
    let request: ModelRequest | undefined = await conversation.say(text);
    while (request !== undefined) {
      const { tools, messages } = request;
      const body = JSON.stringify({ tools, messages });
      const answer = await fetch("http://provider.example/", { method: "POST", body });
      request = await conversation.take((await answer.json()) as object);
    }
  }
};

/** Each talk, and the APIs that its library has. */
export const TALKS: readonly (readonly [name: string, talk: Talk, apis: readonly Api[]])[] = [
  ["LangChain", withLangChain, ["anthropic", "openai_chat", "openai_responses"]],
  ["the AI SDK", withAi, ["anthropic", "openai_chat", "openai_responses", "gemini"]],
  ["the Agents SDK", withAgents, ["openai_chat", "openai_responses"]],
  ["a loop of one's own", withALoop, ["anthropic", "openai_chat", "openai_responses", "gemini"]],
];
