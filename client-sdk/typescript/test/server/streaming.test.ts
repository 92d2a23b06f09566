/** Tests streamed answers: of providers' own packages in a loop of one's own, and of agents of LangChain. */
import assert from "node:assert/strict";
import { test } from "node:test";

import Anthropic from "@anthropic-ai/sdk";
import { GoogleGenAI } from "@google/genai";
import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { ChatOpenAI } from "@langchain/openai";
import { type Api, Client, Conversation, type ModelRequest, v1 } from "@toolgate/client";
import { fromTools } from "@toolgate/client/langchain";
import { createAgent } from "langchain";
import OpenAI from "openai";

import { notes } from "../../examples/langchain.js";
import type { Line } from "./anthropic-api.js";
import { freshTenant, Service } from "./service.js";
import { anthropicStream, chatStream, geminiStream, responsesStream } from "./streams.js";

const [SEARCH, CALL, FIND] = ["toolgate_search_tools", "toolgate_call_tool", "mcp__notes__find_notes"];
const MILK = "find the note about milk by a word in its text";
const SCRIPT: readonly Line[] = [[FIND, { text: "milk" }], "One is there."];
const MODELS: Readonly<Record<Api, string>> = {
  anthropic: "claude-opus-5-5",
  openai_chat: "gpt-6.1",
  openai_responses: "gpt-6.1",
  gemini: "gemini-3-pro",
};

const definitions = [
  {
    name: "find_notes",
    description: "Finds notes by a word in their text.",
    inputSchema: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
  },
  { name: "list_calendars", description: "Lists the calendars of this account.", inputSchema: {} },
];

/** Asks a provider's own package for a stream; gives the whole answer. */
type Ask = (request: ModelRequest) => Promise<object>;

/** The ways to a whole answer, by their names. */
const WAYS: Readonly<Record<string, readonly [Api, () => Ask]>> = {
  "finalMessage() of Anthropic's stream": [
    "anthropic",
    () => {
      const anthropic = new Anthropic({ apiKey: "none", fetch: anthropicStream(...SCRIPT).fetch });
      return ({ tools, messages, betas }) => {
        const asked = { model: MODELS.anthropic, max_tokens: 99, betas: [...betas] };
        const sent = { tools: tools as never, messages: messages as never };
        return anthropic.beta.messages.stream({ ...asked, ...sent }).finalMessage();
      };
    },
  ],
  "finalChatCompletion() of OpenAI's stream": [
    "openai_chat",
    () => {
      const openai = new OpenAI({ apiKey: "none", fetch: chatStream(...SCRIPT).fetch });
      return ({ tools, messages }) => {
        const sent = { tools: tools as never, messages: messages as never };
        return openai.chat.completions.stream({ model: MODELS.openai_chat, ...sent }).finalChatCompletion();
      };
    },
  ],
  "response.completed of OpenAI's events": [
    "openai_responses",
    () => {
      const openai = new OpenAI({ apiKey: "none", fetch: responsesStream(...SCRIPT).fetch });
      return async ({ tools, messages }) => {
        const sent = { tools: tools as never, input: messages as never, stream: true as const };
        const events = await openai.responses.create({ model: MODELS.openai_responses, ...sent });
        for await (const event of events) if (event.type === "response.completed") return event.response;
        throw new Error("the stream was not completed");
      };
    },
  ],
  "finalResponse() of OpenAI's stream": [
    "openai_responses",
    () => {
      const openai = new OpenAI({ apiKey: "none", fetch: responsesStream(...SCRIPT).fetch });
      return ({ tools, messages }) => {
        const sent = { tools: tools as never, input: messages as never };
        return openai.responses.stream({ model: MODELS.openai_responses, ...sent }).finalResponse();
      };
    },
  ],
  "the chunks of Gemini's stream": [
    "gemini",
    () => {
      const { fetch } = geminiStream(...SCRIPT);
      return async ({ tools, messages }) => {
        const gemini = new GoogleGenAI({ apiKey: "none" });
        const before = globalThis.fetch;
        globalThis.fetch = fetch;
        try {
          const chunks: object[] = [];
          const config = { tools: [{ functionDeclarations: tools as never }] };
          const asked = { model: MODELS.gemini, contents: messages as never, config };
          for await (const chunk of await gemini.models.generateContentStream(asked)) chunks.push(chunk);
          return chunks;
        } finally {
          globalThis.fetch = before;
        }
      };
    },
  ],
};

for (const [name, [api, asking]] of Object.entries(WAYS)) {
  test(`a loop of one's own takes ${name}`, async () => {
    await using service = await Service.get();
    await using client = connected(service);
    const ran: unknown[] = [];
    const options = { model: MODELS[api], strategy: "cut" as const, onWarning: () => undefined };
    const run = (...call: unknown[]) => (ran.push(call), { found: 1 });
    const conversation = await Conversation.fromTools(client, api, { notes: definitions }, run, options);
    const ask = asking();
    let request: ModelRequest | undefined = await conversation.say(MILK);
    while (request !== undefined) request = await conversation.take(await ask(request));
    assert.equal(conversation.text, "One is there.");
    assert.deepEqual(ran, [["notes", "find_notes", { text: "milk" }]]);
    assert.doesNotMatch(JSON.stringify(conversation.messages), /"parsed/, "OpenAI's API takes none of it");
  });
}

for (const strategy of ["cut", "envelope"] as const) {
  test(`an agent of LangChain streams with ${strategy}: gated at the end of the model's answer`, async () => {
    await using service = await Service.get();
    await using client = connected(service);
    const call = (args: object): Line =>
      strategy === "cut" ? [FIND, args] : [CALL, { name: FIND, arguments: args }];
    const { fetch, bodies } = chatStream(call({ word: "milk" }), call({ text: "milk" }), "One is there.");
    const model = new ChatOpenAI({ model: MODELS.openai_chat, apiKey: "none", configuration: { fetch } });
    const route = { options: { topK: 1, deferral: v1.DeferralMode.ALWAYS } };
    const options = { strategy, route, onWarning: () => undefined };
    const middleware = [await fromTools(client, { notes: notes() }, options)];
    const agent = createAgent({ model, middleware });
    const input = { messages: [new HumanMessage(MILK)] };
    const pieces: string[] = [];
    let messages: BaseMessage[] = [];
    const modes = { streamMode: ["messages" as const, "values" as const] };
    for await (const [mode, chunk] of await agent.stream(input, modes)) {
      if (mode === "values") messages = chunk.messages;
      else if (AIMessage.isInstance(chunk[0])) pieces.push(chunk[0].text);
    }
    assert.ok(bodies.every(({ stream }) => stream === true));
    assert.ok(
      pieces.includes("One is ") && pieces.includes("there."),
      `texts come in pieces: ${pieces.join("|")}`,
    );
    const [refused, found] = messages.filter((message) => ToolMessage.isInstance(message));
    assert.match(refused?.text ?? "", /arguments_invalid/);
    assert.equal(found?.text, '["1"]');
    const calls = messages.flatMap((message) =>
      AIMessage.isInstance(message) ? (message.tool_calls ?? []) : [],
    );
    assert.deepEqual(
      calls.map(({ name }) => name),
      strategy === "cut" ? [FIND, FIND] : [CALL, FIND],
      "the state has the tools' own calls",
    );
    const shown = bodies.map(({ tools }) =>
      (tools as { function: { name: string } }[]).map((one) => one.function.name),
    );
    assert.deepEqual(shown, Array(3).fill(strategy === "cut" ? [SEARCH, FIND] : [SEARCH, CALL]));
  });
}

function connected({ target }: Service): Client {
  return new Client(target, { tenant: freshTenant(), timeoutMs: 30_000 });
}
