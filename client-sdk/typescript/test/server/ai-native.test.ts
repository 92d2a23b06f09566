/** Tools amid the messages of Anthropic's API, by the AI SDK's own provider: requests against a script, routed by a service. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { createAnthropic } from "@ai-sdk/anthropic";
import { Client, v1 } from "@toolgate/client";
import { mcpDefinitions, modelFacing, ToolgateConversation } from "@toolgate/client/ai";
import { generateText, jsonSchema, type ModelMessage, stepCountIs, tool } from "ai";

import { notes, scripted } from "../../examples/ai-sdk.js";
import { added, anthropicApi, BETAS, type Line } from "./anthropic-api.js";
import { checkPrefix } from "./prefix.js";
import { saidIn } from "./said.js";
import { freshTenant, Service } from "./service.js";

const SEARCH = "toolgate_search_tools";
const [FIND, CALENDARS] = ["mcp__notes__find_notes", "mcp__notes__list_calendars"];
const OPUS = "claude-opus-5-5";

/** A model of the AI SDK's own provider, asked by a script. */
function asked(name: string, ...script: Line[]) {
  const { fetch, requests, betas } = anthropicApi(...script);
  const model = createAnthropic({ apiKey: "none", fetch })(name);
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

test("tools are added amid the messages of Anthropic, and the beginning of each request stays", async () => {
  await using service = await Service.get();
  const [toolgate, client] = await conversation(service);
  await using _ = client;
  const find: Line = [SEARCH, { query: `select:${CALENDARS}` }];
  const api = asked(OPUS, [FIND, { text: "milk" }], "One.", find, [CALENDARS, {}], "Two.");
  const { model, requests } = api;
  const settings = { model, stopWhen: stepCountIs(8), ...toolgate.settings() };
  const messages: ModelMessage[] = [{ role: "user", content: "Find the note about milk." }];
  const first = await generateText({ messages, ...settings });
  messages.push(...saidIn(first), { role: "user", content: "And again?" });
  const second = await generateText({ messages, ...settings });
  assert.equal(second.text, "Two.");
  for (const request of requests) {
    assert.deepEqual(
      request.tools.map(({ name }) => name),
      ["clock", SEARCH],
    );
  }
  assert.match(JSON.stringify(requests[0]?.tools), /It finds: .*mcp__notes__list_calendars/);
  const additions = requests.map(added);
  assert.deepEqual(additions[0], [FIND]);
  assert.ok(additions[3]?.includes(CALENDARS), "what a search found is added");
  for (const named of api.betas) for (const beta of BETAS) assert.ok(named.includes(beta), beta);
  checkPrefix(requests.map((request) => request.messages));
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
  const { model } = asked(OPUS, [CALENDARS, {}], "Sorry.");
  const prompt = "Find the note about milk.";
  const { steps } = await generateText({ model, prompt, stopWhen: stepCountIs(8), ...toolgate.settings() });
  const refused = steps[0]?.content.at(-1);
  assert.ok(refused?.type === "tool-error");
  assert.match(String(refused.error), /"error":"tool_not_available"/);
});

test("a model that takes no tools amid a conversation is refused", async () => {
  await using service = await Service.get();
  const [toolgate, client] = await conversation(service);
  await using _ = client;
  const { model, requests } = asked("claude-haiku-4-5");
  const answered = generateText({ model, prompt: "Find the note about milk.", ...toolgate.settings() });
  await assert.rejects(
    answered,
    /"native" is for models that take tools .*, not claude-haiku-4-5: take "auto"/,
  );
  assert.deepEqual(requests, []);
});

test("another provider's model is refused", async () => {
  await using service = await Service.get();
  const [toolgate, client] = await conversation(service);
  await using _ = client;
  const prompt = "Find the note about milk.";
  const answered = generateText({ model: scripted("One."), prompt, ...toolgate.settings() });
  await assert.rejects(answered, /"native" needs a model of @ai-sdk\/anthropic/);
});
