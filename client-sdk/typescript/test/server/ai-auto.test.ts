/** Tests what the AI SDK's own providers send by default, against scripts of their APIs: bodies that the providers' types take. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import { Client } from "@toolgate/client";
import { ToolgateConversation, type ToolgateOptions } from "@toolgate/client/ai";
import {
  generateText,
  jsonSchema,
  type LanguageModel,
  type ModelMessage,
  stepCountIs,
  tool,
  type ToolSet,
} from "ai";

import { asTyped, mistakesIn } from "../provider-types.js";
import { added, anthropicApi, BETAS, defined } from "./anthropic-api.js";
import { geminiApi, responsesApi } from "./apis.js";
import { DONE, PAGES, registeredCatalog, WANTED, WORDS } from "./catalog.js";
import { checkRequests } from "./prefix.js";
import { saidIn } from "./said.js";
import { freshTenant, Service, told } from "./service.js";

const [SEARCH, CALL] = ["toolgate_search_tools", "toolgate_call_tool"];
const args = { channel_id: "C1", text: "late" };
/** A beta that `@ai-sdk/anthropic` names by itself where tools are added, and that Anthropic's own package does not. */
const THEIRS = "mid-conversation-system-2026-04-07";
/** Long enough for each provider's cache. */
const BEFORE: ModelMessage[] = [
  { role: "user", content: "We spoke of many things. ".repeat(1_500) },
  { role: "assistant", content: "We did." },
];

/** One tool for each message, which is used: nothing of the prefix is worth dropping. */
const QUIET: ToolgateOptions = { route: { options: { topK: 1 } }, onWarning: () => undefined };

async function conversation({ target }: Service, options: ToolgateOptions = QUIET) {
  const client = new Client(target, { tenant: freshTenant(), timeoutMs: 30_000 });
  const tools: ToolSet = {};
  for (const [name, { description, inputSchema }] of await registeredCatalog(client)) {
    tools[name] = tool({ description, inputSchema: jsonSchema(inputSchema), execute: () => DONE });
  }
  const toolgate = new ToolgateConversation(client, tools, options);
  return { client, tools, toolgate };
}

/** Two more messages of a conversation; gives what ran. */
async function talk(
  toolgate: ToolgateConversation,
  model: LanguageModel,
  messages: ModelMessage[] = [...BEFORE],
): Promise<string[]> {
  const ran: string[] = [];
  for (const content of [WORDS, PAGES]) {
    messages.push({ role: "user", content });
    const result = await generateText({ model, messages, stopWhen: stepCountIs(4), ...toolgate.settings() });
    messages.push(...saidIn(result));
    ran.push(...result.steps.flatMap(({ toolResults }) => toolResults.map(({ toolName }) => toolName)));
  }
  return ran;
}

test("by default tools are added amid the messages of Anthropic", async () => {
  await using service = await Service.get();
  const { client, toolgate } = await conversation(service);
  await using _ = client;
  const { fetch, requests, betas } = anthropicApi([WANTED, args], "Posted.", "None.");
  const model = createAnthropic({ apiKey: "none", fetch })("claude-opus-5-5");
  assert.deepEqual(await talk(toolgate, model), [WANTED]);
  assert.equal(requests.length, 3);
  const shown = requests.map((request) => [...defined(request), ...added(request)]);
  assert.ok(
    shown.every((names) => names.includes(WANTED) && !names.includes(CALL) && names.includes(SEARCH)),
  );
  assert.ok(
    (requests[2] === undefined ? [] : added(requests[2])).length > 0,
    "the second message's are added",
  );
  checkRequests(requests);
  for (const named of betas) for (const beta of BETAS) assert.ok(named.includes(beta), beta);
  const typed = requests.map(({ tools, messages }, at) => ({
    ...{ name: String(at), tools, messages },
    betas: (betas[at] ?? []).filter((name) => name !== THEIRS),
  }));
  assert.deepEqual(mistakesIn("anthropic", typed), []);
  const { requests: count, keptPrefixes, price, strategies, shownTokens, catalogTokens } = toolgate.report();
  assert.deepEqual([count, keptPrefixes], [3, 2]);
  assert.deepEqual(strategies, { native: 3 });
  assert.ok(price !== undefined && price.sent < price.allTools);
  assert.ok(price.sent < price.routedAnew, "another set costs the cached conversation");
  assert.ok(shownTokens > 0 && shownTokens < catalogTokens);
});

test("a tool of an earlier message that the request still shows runs", async () => {
  await using service = await Service.get();
  const { client, toolgate } = await conversation(service);
  await using _ = client;
  // To drop the tool would cost all that stands behind it.
  const long = "We spoke of many things. ".repeat(1_500);
  const { fetch, requests } = anthropicApi(long, "Fine.", [WANTED, args], "Posted.");
  const model = createAnthropic({ apiKey: "none", fetch })("claude-opus-5-5");
  const messages = [...BEFORE];
  const ran: string[] = [];
  for (const content of [WORDS, PAGES, PAGES]) {
    messages.push({ role: "user", content });
    const result = await generateText({ model, messages, stopWhen: stepCountIs(4), ...toolgate.settings() });
    messages.push(...saidIn(result));
    ran.push(...result.steps.flatMap(({ toolResults }) => toolResults.map(({ toolName }) => toolName)));
  }
  assert.deepEqual(ran, [WANTED]);
  assert.equal(requests.length, 4);
  assert.match(JSON.stringify(requests[3]?.messages.at(-1)), new RegExp(DONE, "u"));
});

test("a model that takes no tools amid a conversation has the envelope", async () => {
  await using service = await Service.get();
  const { client, toolgate } = await conversation(service);
  await using _ = client;
  const { fetch, requests, betas } = anthropicApi(
    [CALL, { name: WANTED, arguments: args }],
    "Posted.",
    "None.",
  );
  const model = createAnthropic({ apiKey: "none", fetch })("claude-haiku-4-5");
  assert.deepEqual(await talk(toolgate, model), [WANTED]);
  assert.ok(requests.map(defined).every((names) => names.includes(CALL)));
  assert.match(JSON.stringify(requests[2]?.messages.at(-1)), /\[Toolgate\] More tools/);
  checkRequests(requests);
  assert.ok(betas.every((named) => !BETAS.some((beta) => named.includes(beta))));
});

test("a model at another host has the envelope, and all tools where the host is told", async () => {
  await using service = await Service.get();
  const baseURL = "https://proxy.example/v1";
  const warnings: string[] = [];
  const { client, tools, toolgate } = await conversation(service, { onWarning: told(warnings) });
  await using _ = client;
  const { fetch, requests } = anthropicApi(
    [CALL, { name: WANTED, arguments: args }],
    "Posted.",
    "None.",
    "Hello.",
    "Hello.",
  );
  const model = createAnthropic({ apiKey: "none", fetch, baseURL })("claude-opus-5-5");
  assert.deepEqual(await talk(toolgate, model), [WANTED]);
  assert.ok(requests.map(defined).every((names) => names.includes(CALL)));
  assert.deepEqual(warnings, []);

  const route = { options: { modelBaseUrl: baseURL } };
  const said = new ToolgateConversation(client, tools, { route, onWarning: told(warnings) });
  for (const prompt of [WORDS, WORDS]) await generateText({ model, prompt, ...said.settings() });
  const first = requests[3];
  assert.ok(first !== undefined);
  assert.deepEqual(defined(first).sort(), Object.keys(tools).sort());
  assert.deepEqual(warnings, [
    "all tools are sent: not deferred: the model is called at a host that the server does not know; " +
      "choose a mode to defer all the same",
  ]);
});

for (const [name, sends] of [
  ["claude-opus-4-8", "all tools that were added"],
  ["claude-opus-5-5", "only that tool, since the AI SDK can't force this model"],
] as const) {
  test(`where the call is settled, ${name} is sent definitions of ${sends}`, async () => {
    await using service = await Service.get();
    const { client, toolgate } = await conversation(service);
    await using _ = client;
    const { fetch, requests } = anthropicApi([WANTED, args], "Posted.", "None.", [WANTED, args]);
    const model = createAnthropic({ apiKey: "none", fetch })(name);
    const messages = [...BEFORE];
    await talk(toolgate, model, messages);
    messages.push({ role: "user", content: PAGES });
    const toolChoice = { type: "tool", toolName: WANTED } as const;
    await generateText({ model, messages, ...toolgate.settings(), toolChoice });
    const [, , free, settled] = requests;
    assert.ok(free !== undefined && settled !== undefined);
    const shown = [...defined(free), ...(added(free) as string[])];
    assert.deepEqual(shown.slice(0, 2), [SEARCH, WANTED]);
    assert.equal(added(free).length, 2, "each message added one");
    assert.deepEqual(added(settled), []);
    assert.deepEqual(defined(settled), name === "claude-opus-4-8" ? shown : [WANTED]);
    assert.deepEqual(mistakesIn("anthropic", [{ name: "settled", ...settled }]), []);
  });
}

test("OpenAI's Responses have the envelope by default, since the AI SDK has no item for added tools", async () => {
  await using service = await Service.get();
  const { client, toolgate } = await conversation(service);
  await using _ = client;
  const { fetch, asked } = responsesApi([CALL, { name: WANTED, arguments: args }], "Posted.", "None.");
  const model = createOpenAI({ apiKey: "none", fetch }).responses("gpt-6.1");
  assert.deepEqual(await talk(toolgate, model), [WANTED]);
  const bodies = asked.map(({ body }) => body as { tools: { name: string }[]; input: unknown[] });
  assert.ok(bodies.every(({ tools }) => tools.some(({ name }) => name === CALL)));
  assert.match(JSON.stringify(bodies[2]?.input.at(-1)), /\[Toolgate\] More tools/);
  const typed = bodies.map(({ tools, input }, at) => ({ name: String(at), tools, messages: input }));
  checkRequests(typed);
  assert.deepEqual(
    mistakesIn(
      "openai_responses",
      typed.map((one) => asTyped("openai_responses", one)),
    ),
    [],
  );
});

test("Gemini has the envelope by default", async () => {
  await using service = await Service.get();
  const { client, toolgate } = await conversation(service);
  await using _ = client;
  const { fetch, asked } = geminiApi([CALL, { name: WANTED, arguments: args }], "Posted.", "None.");
  const model = createGoogleGenerativeAI({ apiKey: "none", fetch })("gemini-3.5-flash");
  assert.deepEqual(await talk(toolgate, model), [WANTED]);
  const bodies = asked.map(
    ({ body }) => body as { tools: { functionDeclarations: { name: string }[] }[]; contents: unknown[] },
  );
  const shown = bodies.map(({ tools }) => tools.flatMap((one) => one.functionDeclarations));
  assert.ok(shown.every((tools) => tools.some(({ name }) => name === CALL)));
  assert.match(JSON.stringify(bodies[2]?.contents.at(-1)), /\[Toolgate\] More tools/);
  const typed = bodies.map(({ contents }, at) => {
    return { name: String(at), tools: shown[at] ?? [], messages: contents };
  });
  checkRequests(typed);
  assert.deepEqual(
    mistakesIn(
      "gemini",
      typed.map((one) => asTyped("gemini", one)),
    ),
    [],
  );
});
