/** Tests what LangChain's own providers send by default, against scripts of their APIs: bodies that the providers' types take. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { ChatAnthropic } from "@langchain/anthropic";
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { DynamicStructuredTool } from "@langchain/core/tools";
import { ChatGoogleGenerativeAI } from "@langchain/google-genai";
import { MemorySaver } from "@langchain/langgraph";
import { ChatOpenAI } from "@langchain/openai";
import { Client } from "@toolgate/client";
import { type Report, toolgateMiddleware } from "@toolgate/client/langchain";
import { createAgent } from "langchain";

import { asTyped, mistakesIn } from "../provider-types.js";
import { added, anthropicApi, BETAS, defined } from "./anthropic-api.js";
import { geminiApi, responsesApi } from "./apis.js";
import { DONE, PAGES, registeredCatalog, WANTED, WORDS } from "./catalog.js";
import { checkRequests } from "./prefix.js";
import { freshTenant, Service } from "./service.js";

const [SEARCH, CALL] = ["toolgate_search_tools", "toolgate_call_tool"];
const args = { channel_id: "C1", text: "late" };
const apiKey = "none";
/** Long enough for each provider's cache. */
const BEFORE = [new HumanMessage("We spoke of many things. ".repeat(1_500)), new AIMessage("We did.")];

/** Two messages to an agent; gives the names of what ran, and the report. */
async function talk({ target }: Service, model: BaseChatModel) {
  await using client = new Client(target, { tenant: freshTenant(), timeoutMs: 30_000 });
  const tools = Array.from(
    await registeredCatalog(client),
    ([name, { description, inputSchema: schema }]) => {
      return new DynamicStructuredTool({ name, description, schema, func: () => Promise.resolve(DONE) });
    },
  );
  const reports: Report[] = [];
  const onReport = (report: Report) => reports.push(report);
  const toolgate = toolgateMiddleware(client, tools, {
    // One tool for each message, which is used: nothing of the prefix is worth dropping.
    route: { options: { topK: 1 } },
    ...{ onReport, onWarning: () => undefined },
  });
  const agent = createAgent({ model, middleware: [toolgate], checkpointer: new MemorySaver() });
  const thread = { configurable: { thread_id: "1" } };
  await agent.invoke({ messages: [...BEFORE, new HumanMessage(WORDS)] }, thread);
  const asked = [new HumanMessage(PAGES)];
  const { messages } = await agent.invoke({ messages: asked }, thread);
  const { values } = (await agent.graph.getState(thread)) as { values: object };
  assert.deepEqual(toolgate.report(values), reports.at(-1), "the report is in the graph's state");
  assert.equal(reports.length, 2, "one after each run");
  const ran = messages.filter((message) => ToolMessage.isInstance(message)).map(({ name }) => name);
  return { ran, report: reports.at(-1) };
}

test("by default tools are added amid the messages of Anthropic", async () => {
  await using service = await Service.get();
  const { fetch, requests, betas } = anthropicApi([WANTED, args], "Posted.", "None.");
  const model = new ChatAnthropic({ model: "claude-opus-5-5", apiKey, clientOptions: { fetch } });
  const { ran, report } = await talk(service, model);
  assert.deepEqual(ran, [WANTED]);
  const shown = requests.map((request) => [...defined(request), ...added(request)]);
  assert.ok(
    shown.every((names) => names.includes(WANTED) && !names.includes(CALL) && names.includes(SEARCH)),
  );
  assert.ok(
    (requests[2] === undefined ? [] : added(requests[2])).length > 0,
    "the second message's are added",
  );
  assert.deepEqual(betas, Array(3).fill(BETAS));
  checkRequests(requests);
  const typed = requests.map(({ tools, messages }, at) => ({
    ...{ name: String(at), tools, messages },
    betas: betas[at] ?? [],
  }));
  assert.deepEqual(mistakesIn("anthropic", typed), []);
  assert.deepEqual([report?.requests, report?.keptPrefixes], [3, 2]);
  assert.deepEqual(report?.strategies, { native: 3 });
  const { sent = 0, allTools = 0, routedAnew = 0 } = report.price ?? {};
  assert.ok(0 < sent && sent < allTools && sent < routedAnew);
});

test("by default tools are added amid the items of OpenAI's Responses", async () => {
  await using service = await Service.get();
  const { fetch, asked } = responsesApi([WANTED, args], "Posted.", "None.");
  const model = new ChatOpenAI({ model: "gpt-6.1", apiKey, useResponsesApi: true, configuration: { fetch } });
  assert.deepEqual((await talk(service, model)).ran, [WANTED]);
  const bodies = asked.map(({ body }) => body as { tools: unknown[]; input: { type?: string }[] });
  assert.ok(bodies[2]?.input.some(({ type }) => type === "additional_tools"));
  assert.doesNotMatch(JSON.stringify(bodies), /toolgate_call_tool/);
  const typed = bodies.map(({ tools, input }, at) => ({ name: String(at), tools, messages: input }));
  checkRequests(typed);
  assert.deepEqual(mistakesIn("openai_responses", typed), []);
});

test("Gemini has the envelope by default", async (context) => {
  await using service = await Service.get();
  const { fetch, asked } = geminiApi([CALL, { name: WANTED, arguments: args }], "Posted.", "None.");
  context.mock.method(globalThis, "fetch", (url: unknown, init?: RequestInit) => fetch(url, init));
  const model = new ChatGoogleGenerativeAI({ model: "gemini-3.5-flash", apiKey });
  assert.deepEqual((await talk(service, model)).ran, [WANTED]);
  const bodies = asked.map(
    ({ body }) => body as { tools: { functionDeclarations: unknown[] }[]; contents: unknown[] },
  );
  assert.ok(bodies.every(({ tools }) => JSON.stringify(tools).includes(CALL)));
  assert.match(JSON.stringify(bodies[2]?.contents.at(-1)), /\[Toolgate\] More tools/);
  const typed = bodies.map(({ tools, contents }, at) => {
    const declared = tools.flatMap((one) => one.functionDeclarations);
    return { name: String(at), tools: declared, messages: contents };
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
