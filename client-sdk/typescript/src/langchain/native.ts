/** Tools amid a conversation: messages that add them, and the settings that they need. */
import { AIMessage, type BaseMessage, SystemMessage } from "@langchain/core/messages";

import type { Endpoint } from "../endpoint.js";
import type { Prompt } from "../prompting.js";
import { placesOf } from "./prompt.js";

/** Names of Anthropic's betas beside those of the request's own settings. */
interface Betas {
  readonly betas?: readonly string[];
}

/**
 * Holds that requests of a model can carry tools amid the messages.
 *
 * @throws TypeError neither a `ChatAnthropic` nor a `ChatOpenAI` with `useResponsesApi`.
 */
export function checkNative(asked: object, { takesNative }: Endpoint): void {
  if (takesNative) {
    return;
  }
  throw new TypeError(
    'strategy: "native" needs a ChatAnthropic, or a ChatOpenAI with useResponsesApi: true, not ' +
      `${asked.constructor.name}: take "auto", "cut" or "envelope"`,
  );
}

/**
 * The messages to send: tools are added behind those that Route added them to. Anthropic takes no two system messages in a
 * row.
 */
export function withTools(
  messages: readonly BaseMessage[],
  { changes = {} }: Prompt,
  { api }: Pick<Endpoint, "api">,
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
