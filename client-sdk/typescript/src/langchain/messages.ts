/** LangChain's messages: as a conversation for Route, as a turn's intents, and the calls that are open. */
import {
  AIMessage,
  type AIMessageFields,
  type BaseMessage,
  HumanMessage,
  SystemMessage,
  ToolMessage,
} from "@langchain/core/messages";
import type { ToolCall } from "@langchain/core/messages/tool";

import type { Spoken } from "../forms.js";
import { argumentsOf, cut, estimatedTokens, type Intent, intentOf } from "../messages.js";
import type { Allowed } from "../middleware.js";
import { SEARCH_TOOL } from "../offering.js";

/** Blocks of the model's messages that say what a provider found or called by itself. */
const PROVIDERS_OWN = ["tool_search_tool_result", "mcp_tool_use", "mcp_tool_result"];
/** UTF-16 units of such a block; no longer one is read. */
const OWN_UNITS = 64 * 1024;

/** A message as Route reads it. */
export function entryOf(message: BaseMessage): object {
  if (AIMessage.isInstance(message)) {
    const calls = callsOf(message).map(({ id, name, args }) => ({
      id,
      type: "function",
      function: { name, arguments: argumentsOf(args) },
    }));
    return { role: "assistant", content: [textBlock(message.text), ...foundIn(message)], tool_calls: calls };
  }
  if (ToolMessage.isInstance(message)) {
    const flag = message.status === "error" ? { is_error: true } : {};
    const result = { type: "tool_result", tool_use_id: message.tool_call_id, content: contentOf(message) };
    return { role: "user", content: [{ ...result, ...flag }] };
  }
  // LangChain has results in tool messages only: whatever else looks like one is not read.
  return { role: SystemMessage.isInstance(message) ? "system" : "user", content: cut(message.text) };
}

/** A message for Route, whatever API it is written for. */
export function spokenOf(message: BaseMessage): Spoken {
  const { text } = message;
  if (AIMessage.isInstance(message)) {
    const calls = callsOf(message).map(({ id = "", name, args }) => ({ id, name, args }));
    return { role: "assistant", text, calls, found: foundIn(message) };
  }
  if (ToolMessage.isInstance(message)) {
    const { tool_call_id: id, name = "", status } = message;
    return { role: "tool", results: [{ id, name, text, failed: status === "error" }] };
  }
  return { role: SystemMessage.isInstance(message) ? "system" : "user", text };
}

/**
 * Reads what the user said last, and what a tool answered since. What a search found is loaded already, and a call that failed
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

/**
 * The message with identifiers for calls that have none: nothing could answer such a call, and it would run whatever Gate says.
 * The message itself where all calls have one.
 */
export function identified(message: AIMessage): AIMessage {
  const calls = callsOf(message);
  if (calls.every(({ id = "" }) => id !== "")) return message;
  return copyOf(message, {
    tool_calls: calls.map((call) => ({ ...call, id: call.id || crypto.randomUUID() })),
  });
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
  return copyOf(message, { content: blocks, tool_calls: calls });
}

function copyOf(message: AIMessage, fields: AIMessageFields): AIMessage {
  // The constructor's fields: they are what a checkpoint keeps of a message.
  const kept = message.lc_kwargs as AIMessageFields;
  const identifier = message.id === undefined ? {} : { id: message.id };
  return new AIMessage({ ...kept, ...identifier, ...fields });
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

/** Returns what a provider found or called by itself. LangChain has Anthropic's `tool_use` blocks in `tool_calls` as well. */
function foundIn({ content }: AIMessage): unknown[] {
  const blocks = Array.isArray(content) ? content.filter(({ type }) => PROVIDERS_OWN.includes(type)) : [];
  return blocks.filter((block) => JSON.stringify(block).length <= OWN_UNITS);
}

/** A result's text, and the references to tools beside it. */
function contentOf({ content, text }: ToolMessage): string | object[] {
  if (typeof content === "string") {
    return cut(content);
  }
  return [textBlock(text), ...content.filter(({ type }) => type === "tool_reference")];
}

function textBlock(text: string): object {
  return { type: "text", text: cut(text) };
}
