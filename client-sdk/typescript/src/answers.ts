/** Models' answers in the form of a provider's API: their calls and texts, and results for them. Knows no framework. */
import { fromAnthropic, fromGemini, fromOpenAI, fromOpenAIResponses } from "./calls.js";
import type { Api } from "./endpoint.js";
import type { RequestedCall } from "./gen/toolgate/v1/router_pb.js";
import { isObject, type JsonObject, listOf, stringOf } from "./json.js";

/** Result of a call. */
export interface Result {
  readonly call: RequestedCall;
  readonly text: string;
  readonly failed: boolean;
}

/** Form of an API's messages. */
export interface Form {
  /** The whole answer of a stream's chunks; absent: the provider's package puts it together. */
  readonly joined?: (chunks: readonly JsonObject[]) => JsonObject;
  /** The user's message. */
  user(content: unknown): JsonObject;
  /** Messages to keep of an answer. */
  messages(answer: JsonObject): JsonObject[];
  /** Calls of kept messages. */
  calls(messages: readonly JsonObject[]): RequestedCall[];
  /** Text of kept messages. */
  text(messages: readonly JsonObject[]): string;
  /** Results of calls, for the model. */
  results(results: readonly Result[]): JsonObject[];
}

const user = (content: unknown): JsonObject => ({ role: "user", content });

const ANTHROPIC: Form = {
  user,
  messages: ({ content }) => [{ role: "assistant", content }],
  calls: ([message]) =>
    blocksOf(message, "tool_use").map((use) => fromAnthropic(use as Parameters<typeof fromAnthropic>[0])),
  text: ([message]) => textsOf(blocksOf(message, "text")),
  results: (results) => {
    const content = results.map(({ call, text, failed }) => {
      return { type: "tool_result", tool_use_id: call.callId, content: text, is_error: failed };
    });
    return [{ role: "user", content }];
  },
};

const OPENAI_CHAT: Form = {
  user,
  messages: (answer) => {
    if (!("choices" in answer)) return [sendable(answer)];
    const [choice] = listOf(answer["choices"]) as { readonly message?: JsonObject }[];
    return choice?.message === undefined ? [] : [sendable(choice.message)];
  },
  calls: ([message]) =>
    listOf(message?.["tool_calls"]).map((call) => fromOpenAI(call as Parameters<typeof fromOpenAI>[0])),
  text: ([message]) => stringOf(message?.["content"]),
  results: (results) =>
    results.map(({ call, text, failed }) => {
      return { role: "tool", tool_call_id: call.callId, content: marked(text, failed) };
    }),
};

const OPENAI_RESPONSES: Form = {
  user,
  messages: ({ output }) => (listOf(output) as JsonObject[]).map(sendable),
  calls: (messages) =>
    messages
      .filter(({ type }) => type === "function_call")
      .map((item) => fromOpenAIResponses(item as unknown as Parameters<typeof fromOpenAIResponses>[0])),
  text: (messages) =>
    textsOf(
      messages
        .filter(({ type }) => type === "message")
        .flatMap((message) => blocksOf(message, "output_text")),
    ),
  results: (results) =>
    results.map(({ call, text, failed }) => {
      return { type: "function_call_output", call_id: call.callId, output: marked(text, failed) };
    }),
};

const GEMINI: Form = {
  joined: (chunks) => ({
    role: "model",
    parts: chunks.flatMap((chunk) => GEMINI.messages(chunk).flatMap(partsOf)),
  }),
  user: (content) => ({ role: "user", parts: typeof content === "string" ? [{ text: content }] : content }),
  messages: (answer) => {
    const [candidate] = listOf(answer["candidates"]) as { readonly content?: JsonObject }[];
    const empty = { role: "model", parts: [] };
    return ["candidates" in answer ? (candidate?.content ?? empty) : answer];
  },
  calls: ([message]) =>
    partsOf(message).flatMap(({ functionCall }) =>
      isObject(functionCall) ? [fromGemini(functionCall as Parameters<typeof fromGemini>[0])] : [],
    ),
  text: ([message]) => textsOf(partsOf(message).filter(({ thought }) => thought !== true)),
  results: (results) => {
    const parts = results.map(({ call, text, failed }) => {
      const id = call.callId === "" ? {} : { id: call.callId };
      const response = { [failed ? "error" : "output"]: text };
      return { functionResponse: { name: call.tool, response, ...id } };
    });
    return [{ role: "user", parts }];
  },
};

/** Forms of the APIs. */
export const ANSWERS: Readonly<Record<Api, Form>> = {
  anthropic: ANTHROPIC,
  openai_chat: OPENAI_CHAT,
  openai_responses: OPENAI_RESPONSES,
  gemini: GEMINI,
};

/**
 * The messages to keep of an answer, or of the chunks of one.
 *
 * @throws TypeError a list, in the form of an API whose chunks the provider's package puts together.
 */
export function messagesIn(form: Form, answer: object): JsonObject[] {
  if (!Array.isArray(answer)) return form.messages(answer as JsonObject);
  if (form.joined === undefined)
    throw new TypeError("an answer is a provider's object or its JSON, not a list");
  return form.messages(form.joined(answer as JsonObject[]));
}

function blocksOf(message: JsonObject | undefined, kind: string): JsonObject[] {
  const content = message?.["content"];
  const blocks = typeof content === "string" ? [{ type: "text", text: content }] : listOf(content);
  return (blocks as JsonObject[]).filter(({ type }) => type === kind);
}

function partsOf(message: JsonObject | undefined): JsonObject[] {
  return listOf(message?.["parts"]) as JsonObject[];
}

function textsOf(blocks: readonly JsonObject[]): string {
  return blocks.map(({ text }) => stringOf(text)).join("");
}

/** A message or an item without what OpenAI's package adds to answers that it streamed or parsed: the API takes none of it. */
function sendable({ parsed: _, parsed_arguments: __, ...message }: JsonObject): JsonObject {
  const { content, tool_calls: calls, function: called } = message;
  return {
    ...message,
    ...(Array.isArray(content) ? { content: (content as JsonObject[]).map(sendable) } : {}),
    ...(Array.isArray(calls) ? { tool_calls: (calls as JsonObject[]).map(sendable) } : {}),
    ...(isObject(called) ? { function: sendable(called) } : {}),
  };
}

/** A result as a text that says whether it failed, where the API has no mark for it. */
function marked(text: string, failed: boolean): string {
  return !failed || text.startsWith('{"error"') ? text : JSON.stringify({ error: text });
}
