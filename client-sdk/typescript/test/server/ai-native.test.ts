/** Tools amid the messages of Anthropic's API, by the AI SDK's own provider: requests against a script, routed by a service. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { createAnthropic } from "@ai-sdk/anthropic";
import { Client, v1 } from "@toolgate/client";
import { mcpDefinitions, modelFacing, ToolgateConversation } from "@toolgate/client/ai";
import { generateText, jsonSchema, type ModelMessage, stepCountIs, tool } from "ai";

import { notes, scripted } from "../../examples/ai-sdk.js";
import { freshTenant, Service } from "./service.js";

const SEARCH = "toolgate_search_tools";
const [FIND, CALENDARS] = ["mcp__notes__find_notes", "mcp__notes__list_calendars"];
const BETAS = ["mid-conversation-tool-changes-2026-07-01", "inline-tools-2026-09-15"];

type Block = Readonly<Record<string, unknown>>;

interface Request {
  readonly tools: readonly { readonly name: string }[];
  readonly messages: readonly { readonly role: string; readonly content: readonly Block[] }[];
}

/** Anthropic's Messages API by a script of texts and calls, and what it was asked. */
function anthropicApi(...script: readonly (string | [name: string, input: object])[]) {
  const requests: Request[] = [];
  const betas: string[][] = [];
  const fetch = (_: unknown, init?: RequestInit): Promise<Response> => {
    const step = script[requests.length] ?? "";
    requests.push(JSON.parse(init?.body as string) as Request);
    betas.push((new Headers(init?.headers).get("anthropic-beta") ?? "").split(","));
    const id = `toolu_${String(requests.length)}`;
    const isText = typeof step === "string";
    const block = isText
      ? { type: "text", text: step }
      : { type: "tool_use", id, name: step[0], input: step[1] };
    const answer = {
      id: `msg_${String(requests.length)}`,
      type: "message",
      role: "assistant",
      model: "claude-opus-5-5",
      content: [block],
      stop_reason: isText ? "end_turn" : "tool_use",
      stop_sequence: null,
      usage: { input_tokens: 1, output_tokens: 1 },
    };
    return Promise.resolve(Response.json(answer));
  };
  const model = createAnthropic({ apiKey: "none", fetch })("claude-opus-5-5");
  return { model, requests, betas };
}

const own = {
  clock: tool({
    description: "Tells the time.",
    inputSchema: jsonSchema({ type: "object" }),
    execute: () => "noon",
  }),
};

async function conversation({ target }: Service): Promise<[ToolgateConversation, Client]> {
  const client = new Client(target, { tenant: freshTenant(), timeoutMs: 30_000 });
  const tools = notes();
  const toolsListJson = await mcpDefinitions(tools);
  await client.registerServer({ server: "notes", toolsListJson }, { timeoutMs: 60_000 });
  const managed = await modelFacing(tools, client.listTools({ server: "notes" }));
  const route = { options: { topK: 1, deferral: v1.DeferralMode.ALWAYS } };
  const quiet = { own, onOwnTools: () => undefined };
  return [new ToolgateConversation(client, managed, { ...quiet, strategy: "native", route }), client];
}

/** The names of the tools that a request defines amid its messages. */
function added({ messages }: Request): unknown[] {
  const blocks = messages.flatMap(({ role, content }) => (role === "system" ? content : []));
  return blocks.map((block) => (block["tool"] as { definition: { name: string } }).definition.name);
}

test("tools are added amid the messages of Anthropic, and the beginning of each request stays", async () => {
  await using service = await Service.get();
  const [toolgate, client] = await conversation(service);
  await using _ = client;
  const find: [string, object] = [SEARCH, { query: `select:${CALENDARS}` }];
  const api = anthropicApi([FIND, { text: "milk" }], "One.", find, [CALENDARS, {}], "Two.");
  const { model, requests } = api;
  const settings = { model, stopWhen: stepCountIs(8), ...toolgate.settings() };
  const messages: ModelMessage[] = [{ role: "user", content: "Find the note about milk." }];
  const first = await generateText({ messages, ...settings });
  messages.push(...first.response.messages, { role: "user", content: "And again?" });
  const second = await generateText({ messages, ...settings });
  assert.equal(second.text, "Two.");
  for (const request of requests) {
    assert.deepEqual(
      request.tools.map(({ name }) => name),
      ["clock", SEARCH],
    );
  }
  const additions = requests.map(added);
  assert.deepEqual(additions[0], [FIND]);
  assert.ok(additions[3]?.includes(CALENDARS), "what a search found is added");
  for (const named of api.betas) for (const beta of BETAS) assert.ok(named.includes(beta), beta);
  const sent = requests.map(({ messages: one }) => one.map(uncached));
  sent.slice(1).forEach((after, at) => {
    const before = sent[at];
    assert.deepEqual(after.slice(0, before?.length), before);
  });
  const calls = [...first.steps, ...second.steps].flatMap(({ toolCalls }) => toolCalls);
  assert.deepEqual(
    calls.map(({ toolName }) => toolName),
    [FIND, SEARCH, CALENDARS],
  );
});

test("what was not shown is refused", async () => {
  await using service = await Service.get();
  const [toolgate, client] = await conversation(service);
  await using _ = client;
  const { model } = anthropicApi([CALENDARS, {}], "Sorry.");
  const prompt = "Find the note about milk.";
  const { steps } = await generateText({ model, prompt, stopWhen: stepCountIs(8), ...toolgate.settings() });
  const refused = steps[0]?.content.at(-1);
  assert.ok(refused?.type === "tool-error");
  assert.match(String(refused.error), /"error":"tool_not_available"/);
});

test("another provider's model is refused", async () => {
  await using service = await Service.get();
  const [toolgate, client] = await conversation(service);
  await using _ = client;
  const prompt = "Find the note about milk.";
  const asked = generateText({ model: scripted("One."), prompt, ...toolgate.settings() });
  await assert.rejects(asked, /"native" needs a model of @ai-sdk\/anthropic/);
});

/** A message without the marks that end cached prefixes. */
function uncached(message: object): unknown {
  return JSON.parse(
    JSON.stringify(message, (key, value: unknown) => (key === "cache_control" ? undefined : value)),
  );
}
