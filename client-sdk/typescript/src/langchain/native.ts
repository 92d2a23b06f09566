/** Tools amid a conversation: the models that take them, the messages as their APIs have them, and those that add tools. */
import { AIMessage, type BaseMessage, SystemMessage, ToolMessage } from "@langchain/core/messages";

import { argumentsOf, cut, type Native, type Prompt } from "../middleware.js";
import { foundIn } from "./messages.js";
import { placesOf } from "./prompt.js";

/** What is asked of a model to know its API. */
interface Endpoint {
  readonly _llmType?: () => string;
  readonly model?: string;
  readonly useResponsesApi?: boolean;
}

/** The conversation for Route, one place for each entry. */
interface Conversation {
  readonly entries: readonly object[];
  readonly places: readonly string[];
}

/** Names of Anthropic's betas beside those of the request's own settings. */
interface Betas {
  readonly betas?: readonly string[];
}

/**
 * The endpoint of a model whose requests can carry tools amid the messages.
 *
 * @throws TypeError neither a `ChatAnthropic` nor a `ChatOpenAI` with `useResponsesApi`.
 */
export function nativeOf(asked: object): Native {
  const endpoint = asked as Endpoint;
  const { model = "" } = endpoint;
  const kind = endpoint._llmType?.();
  if (kind === "anthropic") return { api: "anthropic", model };
  if (kind === "openai" && endpoint.useResponsesApi === true) return { api: "openai_responses", model };
  throw new TypeError(
    'strategy: "native" needs a ChatAnthropic, or a ChatOpenAI with useResponsesApi: true, not ' +
      `${asked.constructor.name}: take "auto", "cut" or "envelope"`,
  );
}

/** The conversation as the API has it. Of the agent's system messages no text is one for Route, which would add to it. */
export function conversationOf(messages: readonly BaseMessage[], { api }: Native): Conversation {
  const entriesOf = api === "anthropic" ? (one: BaseMessage) => [anthropicEntryOf(one)] : itemsOf;
  const places = placesOf(messages);
  const parts = messages.map((message, at) => ({ entries: entriesOf(message), place: places[at] ?? "" }));
  return {
    entries: parts.flatMap(({ entries }) => entries),
    places: parts.flatMap(({ entries, place }) => entries.map(() => place)),
  };
}

/**
 * The messages to send: tools are added behind those that Route added them to. Anthropic takes no two system messages in a
 * row.
 */
export function withTools(
  messages: readonly BaseMessage[],
  { changes = {} }: Prompt,
  { api }: Native,
): BaseMessage[] {
  const places = placesOf(messages);
  const sent: BaseMessage[] = [];
  let pending: object[] = [];
  messages.forEach((message, at) => {
    const isJoined = pending.length > 0 && SystemMessage.isInstance(message);
    if (isJoined) sent.pop();
    sent.push(
      isJoined ? new SystemMessage({ content: [...pending, ...blocksOf(message)] as never }) : message,
    );
    pending = [];
    const tools = changes[places[at] ?? ""] ?? [];
    if (tools.length === 0) return;
    if (api === "anthropic") pending = tools.map(additionOf);
    sent.push(api === "anthropic" ? new SystemMessage({ content: pending as never }) : itemMessage(tools));
  });
  return sent;
}

/** The settings of a request with these betas. They are named in each, since the provider caches by them. */
export function withBetas<S extends object>(
  settings: S | undefined,
  { betas = [] }: Betas,
): { modelSettings?: S } {
  if (betas.length === 0) {
    return {};
  }
  const { betas: own = [] } = (settings ?? {}) as Betas;
  const named = [...own, ...betas.filter((beta) => !own.includes(beta))];
  return { modelSettings: { ...settings, betas: named } as unknown as S };
}

function anthropicEntryOf(message: BaseMessage): object {
  if (AIMessage.isInstance(message)) {
    const said = message.text === "" ? [] : [{ type: "text", text: cut(message.text) }];
    const uses = (message.tool_calls ?? []).map(({ id, name, args }) => {
      const input = JSON.parse(argumentsOf(args)) as unknown;
      return { type: "tool_use", id, name, input };
    });
    return { role: "assistant", content: [...said, ...foundIn(message), ...uses] };
  }
  if (ToolMessage.isInstance(message)) {
    const flag = message.status === "error" ? { is_error: true } : {};
    const result = { type: "tool_result", tool_use_id: message.tool_call_id, content: cut(message.text) };
    return { role: "user", content: [{ ...result, ...flag }] };
  }
  return { role: "user", content: cut(message.text) };
}

/** A message as items of the Responses API. They have no flag for a failed call: Route reads an object with `error` as one. */
function itemsOf(message: BaseMessage): object[] {
  const content = cut(message.text);
  if (AIMessage.isInstance(message)) {
    const calls = (message.tool_calls ?? []).map(({ id, name, args }) => {
      return { type: "function_call", call_id: id, name, arguments: argumentsOf(args) };
    });
    return content === "" && calls.length > 0 ? calls : [{ role: "assistant", content }, ...calls];
  }
  if (ToolMessage.isInstance(message)) {
    const output = message.status === "error" ? JSON.stringify({ error: content }) : content;
    return [{ type: "function_call_output", call_id: message.tool_call_id, output }];
  }
  return [{ role: SystemMessage.isInstance(message) ? "system" : "user", content }];
}

function additionOf(definition: object): object {
  return { type: "tool_addition", tool: { type: "tool_definition", definition } };
}

/** A message that LangChain sends as one item of the Responses API. */
function itemMessage(tools: readonly object[]): AIMessage {
  const value = { type: "additional_tools", role: "developer", tools };
  return new AIMessage({
    contentBlocks: [{ type: "non_standard", value }],
    response_metadata: { model_provider: "openai", output_version: "v1" },
  });
}

function blocksOf({ content }: BaseMessage): object[] {
  return typeof content === "string" ? [{ type: "text", text: content }] : content;
}
