/** LangChain's messages: as a history, as a turn's intents, and the calls that are open. */
import {
  AIMessage,
  type AIMessageFields,
  type BaseMessage,
  HumanMessage,
  ToolMessage,
} from "@langchain/core/messages";
import type { ToolCall } from "@langchain/core/messages/tool";

import { type Allowed, estimatedTokens, type Intent, intentOf } from "../middleware.js";
import { SEARCH_TOOL } from "../offering.js";

/** A message as `history.scan` reads it. */
export function entryOf(message: BaseMessage): object {
  if (AIMessage.isInstance(message)) {
    const calls = callsOf(message).map(({ id, name }) => ({ id, function: { name } }));
    return { role: "assistant", content: withoutCalls(message), tool_calls: calls };
  }
  if (ToolMessage.isInstance(message)) {
    const flag = message.status === "error" ? { is_error: true } : {};
    const { tool_call_id: id, content } = message;
    return { role: "user", content: [{ type: "tool_result", tool_use_id: id, content, ...flag }] };
  }
  // LangChain has results in tool messages only: whatever else looks like one is not read.
  return { role: "user" };
}

/**
 * What the user said last, and what a tool answered since. What a search found is loaded already, and a call that failed
 * or was refused says nothing of what is wanted.
 */
export function intentsOf(messages: readonly BaseMessage[]): Intent[] {
  const asked = messages.findLastIndex((message) => HumanMessage.isInstance(message));
  const answered = messages
    .slice(asked + 1)
    .findLast((message) => ToolMessage.isInstance(message) && saysMore(message));
  return [
    ...intentOf(messages[asked]?.text ?? ""),
    ...(answered === undefined ? [] : intentOf(answered.text, true)),
  ];
}

/** An estimate of the messages' tokens: a token for four bytes of text and calls. */
export function tokensOf(messages: readonly BaseMessage[]): number {
  const callsIn = (message: BaseMessage) => (AIMessage.isInstance(message) ? callsOf(message) : []);
  return estimatedTokens(
    messages.flatMap((message) => [
      message.text,
      ...callsIn(message).map(({ name, args }) => name + JSON.stringify(args)),
    ]),
  );
}

function saysMore({ name, status }: ToolMessage): boolean {
  return name !== SEARCH_TOOL.modelName && status !== "error";
}

/** The calls of the model's last message that nobody has answered. */
export function openCalls(messages: readonly BaseMessage[]): ToolCall[] {
  const last = messages.findLastIndex((message) => AIMessage.isInstance(message));
  const message = messages[last];
  const results = messages.slice(last + 1).filter((one) => ToolMessage.isInstance(one));
  const answered = new Set(results.map(({ tool_call_id }) => tool_call_id));
  return AIMessage.isInstance(message) ? callsOf(message).filter(({ id }) => !answered.has(id ?? "")) : [];
}

/** The model's last message. */
export function lastAnswer(messages: readonly BaseMessage[]): AIMessage | undefined {
  return messages.findLast((message) => AIMessage.isInstance(message));
}

/** The message with calls of the tools that the model meant, by the identifiers of its calls. */
export function renamed(message: AIMessage, meant: ReadonlyMap<string, Allowed>): AIMessage {
  const calls = callsOf(message).map((call) => {
    const verdict = meant.get(call.id ?? "");
    if (verdict === undefined) {
      return call;
    }
    const { tool: name, argumentsJson } = verdict;
    return { ...call, name, args: argumentsJson === "" ? call.args : (JSON.parse(argumentsJson) as object) };
  });
  const { content } = message;
  const blocks = Array.isArray(content) ? content.map((block) => blockAsMeant(block, meant)) : content;
  // The constructor's fields: they are what a checkpoint keeps of a message.
  const kept = message.lc_kwargs as AIMessageFields;
  const identifier = message.id === undefined ? {} : { id: message.id };
  return new AIMessage({ ...kept, ...identifier, content: blocks, tool_calls: calls });
}

/** Providers' own blocks of calls are sent back beside `tool_calls`. */
function blockAsMeant<B extends object>(block: B, meant: ReadonlyMap<string, Allowed>): B {
  const { id, call_id, name } = block as { id?: string; call_id?: string; name?: string };
  const verdict = meant.get(call_id ?? id ?? "");
  return verdict === undefined || name === undefined ? block : { ...block, name: verdict.tool };
}

function callsOf(message: AIMessage): ToolCall[] {
  return message.tool_calls ?? [];
}

/** LangChain repeats Anthropic's `tool_use` blocks in `tool_calls`. */
function withoutCalls({ content }: AIMessage): unknown[] {
  return Array.isArray(content) ? content.filter(({ type }) => type !== "tool_use") : [];
}
