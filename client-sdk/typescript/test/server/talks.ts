/** Conversations with an agent of each integration, and with a loop of one's own, over MCP servers and a scripted model. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import { ChatAnthropic } from "@langchain/anthropic";
import { HumanMessage } from "@langchain/core/messages";
import { END, MemorySaver, START, StateGraph } from "@langchain/langgraph";
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

import { repository } from "../folders.js";
import { anthropicApi, type Line, type Reply } from "./anthropic-api.js";
import { chatApi, geminiApi, responsesApi } from "./apis.js";
import { saidIn } from "./said.js";

setTracingDisabled(true);

export type Fetch = (url: unknown, init?: RequestInit) => Promise<Response>;
export type Strategy = "auto" | "cut" | "envelope" | "native";
/** Settings that all integrations have. */
export interface Options {
  readonly strategy?: Strategy;
  readonly route?: NonNullable<aiSdk.ToolgateOptions["route"]>;
}
/** A tool as its server lists it. */
export interface Listed {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: { readonly type: "object"; readonly properties: Record<string, object> };
}
/** The tools of a talk. */
export interface Desk {
  readonly servers: Readonly<Record<string, readonly Listed[]>>;
  /** Text that each tool returns. */
  readonly returns: string;
}
/** Says these messages to an agent whose model asks `fetch`, over the tools of a desk: by default `SMALL`. */
export type Talk = (
  client: Client,
  api: Api,
  words: readonly string[],
  options: Options,
  fetch: Fetch,
  desk?: Desk,
) => Promise<void>;

export const CALL = "toolgate_call_tool";

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

const properties = { text: { type: "string" } };
const inputSchema = { type: "object" as const, properties, required: ["text"] };
export const SMALL: Desk = {
  servers: {
    notes: [{ name: "find_notes", description: "Finds notes by a word in their text.", inputSchema }],
    weather: [{ name: "forecast", description: "Says tomorrow's weather in a city.", inputSchema }],
  },
  returns: "One note.",
};
/** So many tools that they are deferred by default. */
export const LARGE: Desk = {
  servers: { ...SMALL.servers, ...shipped("filesystem", "git", "slack", "time") },
  returns: "One note.",
};
/** Makes a message longer than each provider's cache needs. */
export const LONG = "We spoke of many things. ".repeat(1_500);
const QUIET = { onOwnTools: () => undefined, onWarning: () => undefined };
const THREAD = { configurable: { thread_id: "1" } };

/** The tools of shipped servers. */
export function shipped(...servers: readonly string[]): Record<string, Listed[]> {
  const read = (server: string) => {
    const path = join(repository, "tests", "data", "servers", `${server}.json`);
    return (JSON.parse(readFileSync(path, "utf8")) as { tools: Listed[] }).tools;
  };
  return Object.fromEntries(servers.map((server) => [server, read(server)]));
}

/** The tools of a desk as a framework has them, by their servers. */
function toolsOf<T>({ servers }: Desk, made: (tool: Listed) => T): Record<string, T[]> {
  const entries = Object.entries(servers);
  return Object.fromEntries(entries.map(([server, tools]) => [server, tools.map(made)]));
}

/** The middleware of LangChain, and a model of LangChain's. */
async function langchainOf(client: Client, api: Api, options: Options, fetch: Fetch, desk: Desk) {
  const tools = toolsOf(desk, ({ name, description, inputSchema: schema }) =>
    langchainTool(() => desk.returns, { name, description, schema }),
  );
  const toolgate = await langchain.fromTools(client, tools, { ...QUIET, ...options });
  const [apiKey, named] = ["none", MODELS[api]];
  const useResponsesApi = api === "openai_responses";
  const model =
    api === "anthropic"
      ? new ChatAnthropic({ apiKey, model: named, clientOptions: { fetch } })
      : new ChatOpenAI({ apiKey, model: named, useResponsesApi, configuration: { fetch } });
  return { toolgate, model };
}

const withLangChain: Talk = async (client, api, words, options, fetch, desk = SMALL) => {
  const { toolgate, model } = await langchainOf(client, api, options, fetch, desk);
  const agent = createAgent({ model, middleware: [toolgate], checkpointer: new MemorySaver() });
  for (const content of words) await agent.invoke({ messages: [{ role: "user", content }] }, THREAD);
};

const withLangGraph: Talk = async (client, api, words, options, fetch, desk = SMALL) => {
  const { toolgate, model } = await langchainOf(client, api, options, fetch, desk);
  const graph = new StateGraph(langchain.ToolgateState)
    .addNode("model", langchain.modelNode(toolgate, model))
    .addNode("tools", langchain.toolNode(toolgate))
    .addEdge(START, "model")
    .addConditionalEdges("model", langchain.callsCondition, ["tools", "model", END])
    .addEdge("tools", "model")
    .compile({ checkpointer: new MemorySaver() });
  for (const content of words) await graph.invoke({ messages: [new HumanMessage(content)] }, THREAD);
};

const withAi: Talk = async (client, api, words, options, fetch, desk = SMALL) => {
  const tools = toolsOf(desk, ({ name, description, inputSchema: schema }) => {
    const execute = () => desk.returns;
    return [name, aiTool({ description, inputSchema: jsonSchema(schema), execute })] as const;
  });
  const named = Object.entries(tools).map(([server, made]) => [server, Object.fromEntries(made)] as const);
  const servers = Object.fromEntries(named);
  const settings = { ...QUIET, ...options };
  const toolgate = await aiSdk.ToolgateConversation.fromTools(client, servers, settings);
  const asking = { apiKey: "none", fetch };
  const model = {
    anthropic: () => createAnthropic(asking)(MODELS.anthropic),
    openai_chat: () => createOpenAI(asking).chat(MODELS.openai_chat),
    openai_responses: () => createOpenAI(asking).responses(MODELS.openai_responses),
    gemini: () => createGoogleGenerativeAI(asking)(MODELS.gemini),
  }[api]();
  const messages: ModelMessage[] = [];
  for (const content of words) {
    messages.push({ role: "user", content });
    const asked = { model, messages, stopWhen: stepCountIs(4), ...toolgate.settings() };
    messages.push(...saidIn(await generateText(asked)));
  }
};

const withAgents: Talk = async (client, api, words, options, fetch, desk = SMALL) => {
  const execute = () => desk.returns;
  const servers = toolsOf(desk, ({ name, description, inputSchema: schema }) => {
    const parameters = { ...schema, additionalProperties: true } as never;
    return agentsTool({ name, description, strict: false, parameters, execute });
  });
  const settings = { ...QUIET, ...options };
  const toolgate = await agentsSdk.ToolgateConversation.fromTools(client, servers, settings);
  const openai = new OpenAI({ apiKey: "none", fetch });
  const Model = api === "openai_chat" ? OpenAIChatCompletionsModel : OpenAIResponsesModel;
  const agent = new Agent({ name: "desk", model: new Model(openai, MODELS[api]) });
  const session = new MemorySession();
  for (const text of words) await run(toolgate.agent(agent), text, { session });
};

const withALoop: Talk = async (client, api, words, options, fetch, desk = SMALL) => {
  const settings = { ...QUIET, ...options, model: MODELS[api] };
  const runTool = () => desk.returns;
  const conversation = await Conversation.fromTools(client, api, desk.servers, runTool, settings);
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
  ["LangGraph", withLangGraph, ["openai_chat"]],
  ["the AI SDK", withAi, ["anthropic", "openai_chat", "openai_responses", "gemini"]],
  ["the Agents SDK", withAgents, ["openai_chat", "openai_responses"]],
  ["a loop of one's own", withALoop, ["anthropic", "openai_chat", "openai_responses", "gemini"]],
];

/** The strategies that a library has with an API: the AI SDK has no item for OpenAI's additions. */
export function strategiesOf(name: string, api: Api): Strategy[] {
  const hasNative = api === "anthropic" || (api === "openai_responses" && name !== "the AI SDK");
  return hasNative ? ["auto", "cut", "envelope", "native"] : ["auto", "cut", "envelope"];
}

/** A line as the model writes it by its request: with an envelope, calls of the catalog's tools are in it. */
export function enveloped(line: Line): Reply {
  return (body) => {
    const isInEnvelope = JSON.stringify(body["tools"]).includes(`"${CALL}"`);
    if (typeof line === "string" || !isInEnvelope || !line[0].startsWith("mcp__")) return line;
    return [CALL, { name: line[0], arguments: line[1] }];
  };
}
