/** Tools amid the messages, by LangChain's own providers: requests against scripts of their APIs, routed by a service. */
import assert from "node:assert/strict";
import { test } from "node:test";

import type Anthropic from "@anthropic-ai/sdk";
import { ChatAnthropic } from "@langchain/anthropic";
import { type BaseMessage, HumanMessage, SystemMessage, ToolMessage } from "@langchain/core/messages";
import { MemorySaver } from "@langchain/langgraph";
import { ChatOpenAI } from "@langchain/openai";
import { Client, v1 } from "@toolgate/client";
import {
  mcpDefinitions,
  modelFacing,
  toolgateMiddleware,
  type ToolgateMiddlewareOptions,
} from "@toolgate/client/langchain";
import { createAgent, tool } from "langchain";
import type { OpenAI } from "openai";

import { notes, scripted } from "../../examples/langchain.js";
import { added, anthropicApi, BETAS, defined, type Line } from "./anthropic-api.js";
import { checkPrefix } from "./prefix.js";
import { freshTenant, Service } from "./service.js";

const SEARCH = "toolgate_search_tools";
const [FIND, ERASE, CALENDARS] = [
  "mcp__notes__find_notes",
  "mcp__notes__delete_note",
  "mcp__notes__list_calendars",
];
const OPUS = "claude-opus-5-5";
const GPT = "gpt-6.1";
const MILK = "Find the note about milk.";
const FOUND: Line = [FIND, { text: "milk" }];
const FOUND_DEFINITION = {
  name: FIND,
  description: "Finds notes by a word in their text.",
  input_schema: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
} satisfies Anthropic.Beta.BetaTool;

const clock = tool(() => "noon", {
  name: "clock",
  description: "Tells the time.",
  schema: { type: "object", properties: {} },
});

/** A model of LangChain's own provider, asked by a script. */
function claude(name: string, ...script: Line[]) {
  const { fetch, requests, betas } = anthropicApi(...script);
  const model = new ChatAnthropic({ model: name, apiKey: "none", clientOptions: { fetch } });
  return { model, requests, betas };
}

interface ResponsesRequest {
  readonly tools: readonly { readonly type: string; readonly name?: string }[];
  readonly input: readonly OpenAI.Responses.ResponseInputItem[];
}

/** The same of OpenAI's Responses. */
function gpt(name: string, ...script: Line[]) {
  const requests: ResponsesRequest[] = [];
  const fetch = (_: unknown, init?: RequestInit): Promise<Response> => {
    const step = script[requests.length] ?? "";
    requests.push(JSON.parse(init?.body as string) as ResponsesRequest);
    const number = String(requests.length);
    const said = { type: "output_text", text: step, annotations: [] };
    const message = { type: "message", id: `msg_${number}`, role: "assistant", content: [said] };
    const [called, args] = typeof step === "string" ? ["", {}] : step;
    const call = { type: "function_call", id: `fc_${number}`, call_id: `call_${number}`, name: called };
    const item = typeof step === "string" ? message : { ...call, arguments: JSON.stringify(args) };
    const answer = { id: `resp_${number}`, object: "response", created_at: 1, model: name };
    const output = [{ ...item, status: "completed" }];
    return Promise.resolve(Response.json({ ...answer, status: "completed", output }));
  };
  const model = new ChatOpenAI({
    ...{ model: name, apiKey: "none", useResponsesApi: true },
    configuration: { fetch },
  });
  return { model, requests };
}

/** A middleware over the notes, for a tenant of its own. */
async function native({ target }: Service, options: ToolgateMiddlewareOptions = {}) {
  const client = new Client(target, { tenant: freshTenant(), timeoutMs: 30_000 });
  const tools = notes();
  const toolsListJson = mcpDefinitions(tools);
  await client.registerServer({ server: "notes", toolsListJson }, { timeoutMs: 60_000 });
  const managed = await modelFacing(tools, client.listTools({ server: "notes" }));
  const route = { options: { topK: 1, deferral: v1.DeferralMode.ALWAYS } };
  const quiet = { onOwnTools: () => undefined };
  const settings = { ...quiet, strategy: "native" as const, route, ...options };
  return { client, toolgate: toolgateMiddleware(client, managed, settings) };
}

/** The names and states of the results in a conversation. */
function resultsOf({ messages }: { messages: BaseMessage[] }): [name: string, status: string][] {
  const results = messages.filter((message) => ToolMessage.isInstance(message));
  return results.map(({ name = "", status = "success" }) => [name, status]);
}

test("tools are added amid the messages of Anthropic, and the beginning of each request stays", async () => {
  await using service = await Service.get();
  const { client, toolgate } = await native(service);
  await using _ = client;
  const search: Line = [SEARCH, { query: `select:${CALENDARS}` }];
  const { model, requests, betas } = claude(OPUS, FOUND, "One.", search, [CALENDARS, {}], "Two.");
  const agent = createAgent({
    ...{ model, tools: [clock], middleware: [toolgate], checkpointer: new MemorySaver() },
    systemPrompt: "Be brief.",
  });
  const thread = { configurable: { thread_id: "1" } };
  await agent.invoke({ messages: [new HumanMessage(MILK)] }, thread);
  const result = await agent.invoke({ messages: [new HumanMessage("And again?")] }, thread);
  assert.deepEqual(requests.map(defined), Array(5).fill(["clock", SEARCH]));
  assert.match(JSON.stringify(requests[0]?.tools), /It finds: .*mcp__notes__list_calendars/);
  assert.deepEqual(betas, Array(5).fill(BETAS), "from the first request on: the provider caches by them");
  const golden: Anthropic.Beta.BetaMessageParam[] = [
    { role: "user", content: MILK },
    {
      role: "system",
      content: [{ type: "tool_addition", tool: { type: "tool_definition", definition: FOUND_DEFINITION } }],
    },
  ];
  assert.deepEqual(requests[0]?.messages, golden);
  assert.ok(requests.map(added)[3]?.includes(CALENDARS), "what a search found is added");
  checkPrefix(requests.map(({ messages }) => messages));
  assert.equal(
    result.messages.filter((one) => SystemMessage.isInstance(one)).length,
    0,
    "nor is it in the state",
  );
  assert.deepEqual(resultsOf(result), [
    [FIND, "success"],
    [SEARCH, "success"],
    [CALENDARS, "success"],
  ]);
});

test("tools are added amid the items of OpenAI's Responses, and the beginning of each request stays", async () => {
  await using service = await Service.get();
  const { client, toolgate } = await native(service);
  await using _ = client;
  const search: Line = [SEARCH, { query: `select:${CALENDARS}` }];
  const { model, requests } = gpt(GPT, FOUND, "One.", search, [CALENDARS, {}], [ERASE, { id: "1" }], "Two.");
  const agent = createAgent({
    ...{ model, tools: [clock], middleware: [toolgate], checkpointer: new MemorySaver() },
    systemPrompt: "Be brief.",
  });
  const thread = { configurable: { thread_id: "1" } };
  await agent.invoke({ messages: [new HumanMessage(MILK)] }, thread);
  const result = await agent.invoke({ messages: [new HumanMessage("And again?")] }, thread);
  const shown = requests.map(({ tools }) => tools.map(({ name }) => name));
  assert.deepEqual(shown, Array(6).fill(["clock", SEARCH]));
  const { input_schema: parameters, ...named } = FOUND_DEFINITION;
  const golden: OpenAI.Responses.ResponseInputItem = {
    type: "additional_tools",
    role: "developer",
    tools: [{ ...named, parameters, type: "function", strict: false }],
  };
  assert.deepEqual(requests[0]?.input.slice(2), [golden]);
  const names = requests.map(({ input }) => JSON.stringify(input.filter(isAddition)));
  assert.ok(names[3]?.includes(CALENDARS), "what a search found is added");
  checkPrefix(requests.map(({ input }) => input));
  assert.deepEqual(resultsOf(result), [
    [FIND, "success"],
    [SEARCH, "success"],
    [CALENDARS, "success"],
    [ERASE, "error"],
  ]);
});

test("tools are added where answers are streamed", async () => {
  await using service = await Service.get();
  const { client, toolgate } = await native(service);
  await using _ = client;
  const { model, requests } = claude(OPUS, "One.");
  const agent = createAgent({ model, middleware: [toolgate] });
  const stream = await agent.stream({ messages: [new HumanMessage(MILK)] }, { streamMode: "updates" });
  for await (const update of stream) assert.ok(update);
  assert.deepEqual(requests.map(added), [[FIND]]);
});

test("what was not shown is refused, and goes to the model as it is", async () => {
  await using service = await Service.get();
  const { client, toolgate } = await native(service);
  await using _ = client;
  const { model, requests } = claude(OPUS, [ERASE, { id: "1" }], "Sorry.");
  const agent = createAgent({ model, middleware: [toolgate] });
  const result = await agent.invoke({ messages: [new HumanMessage(MILK)] });
  assert.deepEqual(resultsOf(result), [[ERASE, "error"]]);
  assert.match(JSON.stringify(requests[1]?.messages), /tool_not_available/);
});

test("a history that lost messages has the tools of the turn added anew", async () => {
  await using service = await Service.get();
  const { client, toolgate } = await native(service);
  await using _ = client;
  const { model, requests } = claude(OPUS, "Hello.", FOUND, "One.");
  const agent = createAgent({ model, middleware: [toolgate] });
  const first = await agent.invoke({ messages: [new HumanMessage("Good morning, and find the milk note.")] });
  const result = await agent.invoke({ ...first, messages: [new HumanMessage(MILK)] });
  assert.deepEqual(requests.slice(1).map(added), [[FIND], [FIND]]);
  assert.equal(result.messages.at(-1)?.text, "One.");
});

test("a system message of the agent's own behind added tools is one with them", async () => {
  await using service = await Service.get();
  const { client, toolgate } = await native(service);
  await using _ = client;
  const { model, requests } = claude(OPUS, "One.", "Two.");
  const agent = createAgent({ model, middleware: [toolgate], checkpointer: new MemorySaver() });
  const thread = { configurable: { thread_id: "1" } };
  await agent.invoke({ messages: [new HumanMessage(MILK)] }, thread);
  const reminded = [new SystemMessage("Answer in Norwegian."), new HumanMessage("And again?")];
  await agent.invoke({ messages: reminded }, thread);
  const roles = requests[1]?.messages.map(({ role }) => role);
  assert.doesNotMatch(roles?.join() ?? "", /system,system/);
  assert.deepEqual(requests.map(added), [[FIND], [FIND]]);
});

test("where all tools are sent, they are definitions", async () => {
  await using service = await Service.get();
  const route = { options: { deferral: v1.DeferralMode.OFF } };
  const { client, toolgate } = await native(service, { route });
  await using _ = client;
  const { model, requests } = claude(OPUS, "Hello.");
  await createAgent({ model, middleware: [toolgate] }).invoke({ messages: [new HumanMessage(MILK)] });
  const [request] = requests;
  assert.ok(request !== undefined);
  const shown = new Set([...added(request), ...defined(request)]);
  shown.delete(SEARCH);
  assert.deepEqual([...shown].sort(), [ERASE, FIND, CALENDARS]);
});

test("models that can't carry it are refused before they are asked", async () => {
  await using service = await Service.get();
  const { client, toolgate } = await native(service);
  await using _ = client;
  const needed = /"native" needs a ChatAnthropic, or a ChatOpenAI with useResponsesApi: true, not/;
  const untaken = /"native" is for models that take tools amid a conversation, not/;
  const [old, early] = [claude("claude-haiku-4-5"), gpt("gpt-5.2")];
  const chat = new ChatOpenAI({ model: GPT, apiKey: "none" });
  for (const [model, why] of [
    [scripted("One.").model, needed],
    [chat, needed],
    [old.model, untaken],
    [early.model, untaken],
  ] as const) {
    const agent = createAgent({ model, middleware: [toolgate] });
    await assert.rejects(agent.invoke({ messages: [new HumanMessage(MILK)] }), why);
  }
  assert.deepEqual([...old.requests, ...early.requests], []);
});

function isAddition({ type }: { type?: unknown }): boolean {
  return type === "additional_tools";
}
