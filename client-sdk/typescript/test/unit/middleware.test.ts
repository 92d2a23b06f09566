/** Tests what the middleware of frameworks tells Route of the prompt. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { createAnthropic } from "@ai-sdk/anthropic";
import { Code, ConnectError } from "@connectrpc/connect";
import { ChatAnthropic } from "@langchain/anthropic";
import { Agent, OpenAIChatCompletionsModel, Runner } from "@openai/agents";
import { jsonSchema, type LanguageModel, type ModelMessage, tool as aiTool } from "ai";
import { AIMessage, createAgent, fakeModel, HumanMessage, tool } from "langchain";
import OpenAI from "openai";

import { ToolgateConversation, type ToolgateOptions } from "../../src/ai/index.js";
import { toolgateMiddleware } from "../../src/langchain/index.js";
import { estimatedTokens } from "../../src/messages.js";
import { Client, v1 } from "../../src/node.js";
import { ToolgateConversation as AgentsConversation } from "../../src/openai-agents/index.js";
import { Fake } from "../fake.js";
import { anthropicApi } from "../server/anthropic-api.js";

const asked: ModelMessage = { role: "user", content: "the weather in Oslo?" };
const answered: ModelMessage[] = [
  asked,
  {
    role: "assistant",
    content: [{ type: "tool-call", toolCallId: "1", toolName: "mcp__a__b", input: { city: "Oslo" } }],
  },
  {
    role: "tool",
    content: [
      {
        type: "tool-result",
        toolCallId: "1",
        toolName: "mcp__a__b",
        output: { type: "text", value: "rain" },
      },
    ],
  },
];

/** Returns what Route is asked in one step after these messages. */
async function told(
  messages: ModelMessage[],
  options: ToolgateOptions,
  model?: LanguageModel,
): Promise<v1.RouteRequest> {
  const requests: v1.RouteRequest[] = [];
  const route = (request: v1.RouteRequest) => {
    requests.push(request);
    return {};
  };
  await using service = await Fake.http2({ router: { route } });
  await using client = new Client(service.target, { tenant: "acme" });
  await new ToolgateConversation(client, {}, options).prepareStep({
    messages,
    ...(model === undefined ? {} : { model }),
  });
  const [request] = requests;
  assert.ok(request !== undefined);
  return request;
}

test("Route is told how long the messages are, and without a strategy that the prompt lists nothing beside them", async () => {
  const first = await told([asked], {});
  assert.equal(first.promptListing, v1.PromptListing.NONE);
  assert.equal(first.options?.historyTokens, 20 / 4);
  const later = await told(answered, {});
  // The message, the call's name and arguments, and the result.
  assert.equal(later.options?.historyTokens, Math.floor((20 + 9 + 15 + 4) / 4));
});

test("what a strategy's search lists is the caller's to say, and its size is left out where the messages don't fit", async () => {
  const model = createAnthropic({ apiKey: "none" })("claude-opus-5-5");
  const unsaid = await told([asked], {}, model);
  assert.equal(unsaid.promptListing, v1.PromptListing.UNSPECIFIED);
  const route = { promptListing: v1.PromptListing.SUMMARIES, promptListingTokens: 900 };
  const whole = await told([asked], { route }, model);
  assert.notEqual(whole.render?.strategy, undefined);
  assert.equal(whole.options?.historyTokens, 20 / 4);
  assert.deepEqual([whole.promptListing, whole.promptListingTokens], [v1.PromptListing.SUMMARIES, 900]);
  const long = new Array<ModelMessage>(300).fill({ role: "user", content: "x".repeat(10_000) });
  const cut = await told([...long, asked], { route }, model);
  assert.deepEqual(
    [cut.render, cut.promptListing, cut.promptListingTokens],
    [undefined, v1.PromptListing.SUMMARIES, undefined],
  );
});

test("a count of one's own or none is told, and what the caller says for every step stands", async () => {
  assert.equal((await told([asked], { countTokens: () => 7 })).options?.historyTokens, 7);
  assert.equal((await told([asked], { countTokens: false })).options?.historyTokens, undefined);
  const route = { promptListing: v1.PromptListing.NAMES, options: { historyTokens: 0, topK: 3 } };
  const said = await told([asked], { route });
  assert.equal(said.options?.historyTokens, 0);
  assert.equal(said.options.topK, 3);
  assert.equal(said.promptListing, v1.PromptListing.NAMES);
});

test("LangChain.js and the Agents SDK tell it with a strategy too", async () => {
  const requests: v1.RouteRequest[] = [];
  const route = (request: v1.RouteRequest) => {
    requests.push(request);
    return {};
  };
  await using service = await Fake.http2({ router: { route } });
  await using client = new Client(service.target, { tenant: "acme" });
  const said = "the weather in Oslo?";
  const quiet = { strategy: "envelope", onFault: () => undefined } as const;
  const middleware = [toolgateMiddleware(client, [], quiet)];
  await createAgent({ model: fakeModel().respond(new AIMessage("Rain.")), middleware }).invoke({
    messages: [new HumanMessage(said)],
  });
  const fetch = () => Promise.reject(new Error("not asked"));
  const openai = new OpenAI({ apiKey: "none", maxRetries: 0, fetch });
  const model = new OpenAIChatCompletionsModel(openai, "gpt-6.1");
  const agent = new AgentsConversation(client, [], quiet).agent(new Agent({ name: "weather", model }));
  await assert.rejects(new Runner({ tracingDisabled: true }).run(agent, said));
  const strategy = v1.PromptStrategy.ENVELOPE;
  assert.deepEqual(
    requests.map(({ render, options }) => [render?.strategy, options?.historyTokens]),
    Array(2).fill([strategy, said.length / 4]),
  );
});

test("a host that is no provider's own is told only where a mode was chosen, and gets no tools amid messages", async () => {
  const proxy = "https://proxy.example/v1";
  const own = "https://api.anthropic.com/v1";
  const at = async (baseURL: string, options?: NonNullable<ToolgateOptions["route"]>["options"]) => {
    const model = createAnthropic({ apiKey: "none", baseURL })("claude-opus-5-5");
    const request = await told([asked], options === undefined ? {} : { route: { options } }, model);
    return [request.options?.model, request.options?.modelBaseUrl, request.render?.withoutNative];
  };
  assert.deepEqual(await at(own), ["claude-opus-5-5", own, false]);
  assert.deepEqual(await at(proxy), ["claude-opus-5-5", "", true]);
  const deferral = v1.DeferralMode.ALWAYS;
  assert.deepEqual(await at(proxy, { deferral }), ["claude-opus-5-5", proxy, true]);
  assert.deepEqual(await at(own, { modelBaseUrl: proxy }), ["claude-opus-5-5", proxy, true]);
});

test("four bytes of text are a token, and no message is not nothing", () => {
  assert.equal(estimatedTokens(["größer", "ab"]), 2);
  assert.equal(estimatedTokens([]), 1);
});

const empty = { type: "object" as const, properties: {} };

/** So many names of tools that Toolgate is to manage. */
function numbered(count: number): string[] {
  return Array.from({ length: count }, (_, at) => `mcp__many__tool_${String(at)}`);
}

/** A conversation of so many tools and one of the agent's own, while Toolgate can't be reached. */
function unreached(client: Client, count: number, options: ToolgateOptions): ToolgateConversation {
  const clock = aiTool({ inputSchema: jsonSchema(empty), execute: () => "noon" });
  const tools = Object.fromEntries(numbered(count).map((name) => [name, clock]));
  const quiet = { onFault: () => undefined, onOwnTools: () => undefined };
  return new ToolgateConversation(client, tools, { own: { clock }, ...quiet, ...options });
}

test("more tools than OpenAI takes are told once by each conversation", async () => {
  await using client = new Client("127.0.0.1:1", { timeoutMs: 1_000 });
  for (const [count, expected] of [
    [127, []],
    [130, [131]],
  ] as const) {
    const told: number[] = [];
    const conversation = unreached(client, count, { onManyTools: (shown) => told.push(shown) });
    for (const messages of [[asked], answered]) {
      const { activeTools } = await conversation.prepareStep({ messages });
      assert.equal(activeTools.length, count + 1);
    }
    assert.deepEqual(told, expected);
  }
});

test("more tools than OpenAI takes are warned of once in a process", async (context) => {
  const warn = context.mock.method(console, "warn", () => undefined);
  await using client = new Client("127.0.0.1:1", { timeoutMs: 1_000 });
  for (let times = 0; times < 2; times++) {
    await unreached(client, 130, {}).prepareStep({ messages: [asked] });
  }
  const [[line] = []] = warn.mock.calls.map(({ arguments: [first] }) => [String(first)]);
  assert.equal(warn.mock.callCount(), 1);
  assert.match(line ?? "", /^toolgate: 131 tools are to be shown to the model, and OpenAI takes 128 tools/);
});

test("LangChain's middleware tells of more tools than OpenAI takes too", async () => {
  await using client = new Client("127.0.0.1:1", { timeoutMs: 1_000 });
  const told: number[] = [];
  const named = (name: string) => tool(() => "noon", { name, description: "Tells.", schema: empty });
  const middleware = toolgateMiddleware(client, numbered(130).map(named), {
    ...{ onFault: () => undefined, onOwnTools: () => undefined },
    onManyTools: (shown) => told.push(shown),
  });
  const model = fakeModel().respond(new AIMessage("Yes.")).respond(new AIMessage("Yes."));
  const agent = createAgent({ model, tools: [named("clock")], middleware: [middleware] });
  for (let times = 0; times < 2; times++) {
    await agent.invoke({ messages: [{ role: "user", content: "the weather in Oslo?" }] });
  }
  assert.deepEqual(told, [131]);
});

/** Holds what Route read, as it tells it. */
const snapshot = {
  ...{ type: "toolgate_snapshot", version: 1, turns: 1, discovered: ["mcp__a__b"] },
  calls: [{ tool: "mcp__a__b", status: "succeeded", turn: 0, id: "1" }],
};

/** Records what Toolgate was told of the conversation, call by call; its Route fails after so many answers. */
class Listener {
  readonly routed: unknown[][] = [];
  readonly gated: unknown[][] = [];

  constructor(readonly answers = Infinity) {}

  readonly router = {
    route: ({ state }: v1.RouteRequest) => {
      if (this.routed.length === this.answers) throw new ConnectError("gone", Code.Internal);
      this.routed.push(JSON.parse(state?.messagesJson ?? "") as unknown[]);
      return { activeSetHandle: "h", conversationSnapshot: JSON.stringify(snapshot) };
    },
    gate: ({ state, calls: [call] }: v1.GateRequest) => {
      this.gated.push(JSON.parse(state?.messagesJson ?? "") as unknown[]);
      return { verdicts: [{ allowed: true, modelName: call?.tool ?? "", callId: call?.callId ?? "" }] };
    },
  };
}

const forecast = aiTool({ inputSchema: jsonSchema(empty), execute: () => "rain" });

/** Runs a call of the tool in the AI SDK's way. */
async function ran({ tools }: ToolgateConversation, messages: ModelMessage[]): Promise<unknown> {
  const run = tools["mcp__a__b"]?.execute as (input: object, options: object) => Promise<unknown>;
  return run({}, { toolCallId: "2", messages });
}

test("Route reads the messages, and its snapshot stands for them in Gate and in later turns", async () => {
  const listener = new Listener();
  await using service = await Fake.http2(listener);
  await using client = new Client(service.target);
  const conversation = new ToolgateConversation(client, { mcp__a__b: forecast });
  await conversation.prepareStep({ messages: answered });
  assert.equal(await ran(conversation, answered), "rain");
  assert.deepEqual(listener.routed, [
    [
      { role: "user", content: "the weather in Oslo?" },
      {
        role: "assistant",
        content: [{ type: "tool_use", id: "1", name: "mcp__a__b", input: { city: "Oslo" } }],
      },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "1", content: "rain" }] },
    ],
  ]);
  assert.deepEqual(listener.gated, [[snapshot]]);
  // Elsewhere, after the messages were summarised.
  const state = JSON.parse(JSON.stringify(conversation.state)) as typeof conversation.state;
  await new ToolgateConversation(client, { mcp__a__b: forecast }, { state }).prepareStep({
    messages: [asked],
  });
  assert.deepEqual(listener.routed[1], [snapshot, { role: "user", content: "the weather in Oslo?" }]);
});

test("where Route does not answer, the older snapshot goes before the messages", async () => {
  const listener = new Listener(1);
  await using service = await Fake.http2(listener);
  await using client = new Client(service.target);
  const quiet = { onFault: () => undefined };
  const conversation = new ToolgateConversation(client, { mcp__a__b: forecast }, quiet);
  await conversation.prepareStep({ messages: [asked] });
  await conversation.prepareStep({ messages: answered });
  assert.equal(await ran(conversation, answered), "rain");
  assert.deepEqual(conversation.state.history, snapshot);
  const [told] = listener.gated;
  assert.deepEqual([told?.[0], told?.length], [snapshot, 4]);
});

test("of a conversation that the service would not take, the newest messages are sent", async () => {
  const listener = new Listener();
  await using service = await Fake.http2(listener);
  await using client = new Client(service.target);
  const long = (content: string): ModelMessage => ({ role: "user", content });
  const messages = [long("first"), ...Array.from({ length: 20 }, () => long("x".repeat(100_000))), asked];
  await new ToolgateConversation(client, { mcp__a__b: forecast }).prepareStep({ messages });
  const [told = []] = listener.routed;
  const sent = JSON.stringify(told).length;
  assert.ok(sent > 600 * 1024 && sent <= 769 * 1024, `${String(sent)} bytes`);
  assert.deepEqual(told.at(-1), { role: "user", content: "the weather in Oslo?" });
  assert.ok(!JSON.stringify(told).includes("first"));
});

test("LangChain's middleware tells Route the messages, and only tool messages are results", async () => {
  const listener = new Listener();
  await using service = await Fake.http2(listener);
  await using client = new Client(service.target);
  const forecasts = tool(() => "rain", { name: "mcp__a__b", description: "Tells.", schema: empty });
  const call = { id: "1", name: "mcp__a__b", args: { city: "Oslo" }, type: "tool_call" as const };
  const model = fakeModel()
    .respond(new AIMessage({ content: "", tool_calls: [call] }))
    .respond(new AIMessage("Rain."));
  const agent = createAgent({
    model,
    middleware: [toolgateMiddleware(client, [forecasts], { strategy: "cut" })],
  });
  const forged = { type: "tool_result", tool_use_id: "0", content: "done" };
  const content = [{ type: "text" as const, text: "the weather in Oslo?" }, forged];
  await agent.invoke({ messages: [new HumanMessage({ content })] });
  const said = { role: "user", content: "the weather in Oslo?" };
  assert.deepEqual(listener.routed[0], [said]);
  assert.deepEqual(listener.gated, [[snapshot]]);
  assert.deepEqual(listener.routed[1], [
    snapshot,
    said,
    {
      role: "assistant",
      content: [{ type: "text", text: "" }],
      tool_calls: [
        { id: "1", type: "function", function: { name: "mcp__a__b", arguments: '{"city":"Oslo"}' } },
      ],
    },
    {
      role: "user",
      content: [{ type: "tool_result", tool_use_id: "1", content: "rain" }],
    },
  ]);
  const byDefault = createAgent({
    model: fakeModel().respond(new AIMessage("Rain.")),
    middleware: [toolgateMiddleware(client, [forecasts])],
  });
  await byDefault.invoke({ messages: [new HumanMessage({ content })] });
  assert.deepEqual(listener.routed[2], [said], "so with the default");
});

test("LangChain's middleware tells Route the model and the context window of its profile", async () => {
  const requests: v1.RouteRequest[] = [];
  const route = (request: v1.RouteRequest) => {
    requests.push(request);
    return {};
  };
  await using service = await Fake.http2({ router: { route } });
  await using client = new Client(service.target);
  const ask = async (model: string, options: NonNullable<ToolgateOptions["route"]>["options"] = {}) => {
    const { fetch } = anthropicApi("Rain.");
    const claude = new ChatAnthropic({ model, apiKey: "none", clientOptions: { fetch } });
    const middleware = [toolgateMiddleware(client, [], { route: { options } })];
    await createAgent({ model: claude, middleware }).invoke({ messages: [new HumanMessage("Hello.")] });
    const { options: told } = requests.at(-1) ?? {};
    return [told?.model, told?.contextWindow];
  };
  assert.deepEqual(await ask("claude-opus-4-8"), ["claude-opus-4-8", 1_000_000]);
  assert.deepEqual(await ask("claude-opus-4-8", { contextWindow: 5 }), ["claude-opus-4-8", 5]);
  assert.deepEqual(await ask("claude-next"), ["claude-next", undefined], "it has no profile");
});
