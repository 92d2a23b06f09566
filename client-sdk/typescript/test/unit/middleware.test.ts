/** What the middleware of frameworks tells Route of the prompt. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { jsonSchema, type ModelMessage, tool as aiTool } from "ai";
import { AIMessage, createAgent, fakeModel, tool } from "langchain";

import { ToolgateConversation, type ToolgateOptions } from "../../src/ai/index.js";
import { toolgateMiddleware } from "../../src/langchain/index.js";
import { estimatedTokens } from "../../src/middleware.js";
import { Client, v1 } from "../../src/node.js";
import { Fake } from "../fake.js";

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

/** What Route is asked in one step after these messages. */
async function told(messages: ModelMessage[], options: ToolgateOptions): Promise<v1.RouteRequest> {
  const requests: v1.RouteRequest[] = [];
  const route = (request: v1.RouteRequest) => {
    requests.push(request);
    return {};
  };
  await using service = await Fake.http2({ router: { route } });
  await using client = new Client(service.target, { tenant: "acme" });
  await new ToolgateConversation(client, {}, options).prepareStep({ messages });
  const [request] = requests;
  assert.ok(request !== undefined);
  return request;
}

test("Route is told what stands behind the tools, and that the prompt lists nothing beside them", async () => {
  const first = await told([asked], {});
  assert.equal(first.promptListing, v1.PromptListing.NONE);
  assert.equal(first.options?.historyTokens, 20 / 4);
  const later = await told(answered, {});
  // The message, the call's name and arguments, and the result.
  assert.equal(later.options?.historyTokens, Math.floor((20 + 9 + 15 + 4) / 4));
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
