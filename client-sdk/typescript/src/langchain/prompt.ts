/** Requests that Route puts together: its additions to LangChain's messages, and calls through the envelope. */
import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";

import { placeOfResult, placeOfUser } from "../forms.js";
import type { Allowed } from "../middleware.js";
import { CALL_TOOL, type Prompt } from "../prompting.js";
import { renamed } from "./messages.js";

/** The place of each message, where Route adds to it: "" where nothing can be added. */
export function placesOf(messages: readonly BaseMessage[]): string[] {
  let users = 0;
  return messages.map((message) => {
    if (ToolMessage.isInstance(message)) return placeOfResult(message.tool_call_id);
    return HumanMessage.isInstance(message) ? placeOfUser(users++) : "";
  });
}

/**
 * The messages to send: copies where tools are described or calls are wrapped.
 *
 * @param isWrapped true if a tool is called through the envelope.
 */
export function messagesOf(
  messages: readonly BaseMessage[],
  { added }: Prompt,
  isWrapped: (name: string) => boolean,
): BaseMessage[] {
  const places = placesOf(messages);
  const wrapped = new Set<string>();
  return messages.map((message, at) => {
    if (AIMessage.isInstance(message)) {
      const wraps = wrapsOf(message, isWrapped);
      for (const id of wraps.keys()) wrapped.add(id);
      return wraps.size === 0 ? message : renamed(message, wraps);
    }
    const text = added[places[at] ?? ""];
    if (ToolMessage.isInstance(message)) {
      const name = wrapped.has(message.tool_call_id) ? CALL_TOOL : message.name;
      if (text === undefined && name === message.name) return message;
      const { tool_call_id, status = "success" } = message;
      const named = name === undefined ? {} : { name };
      return new ToolMessage({ tool_call_id, status, ...named, content: withText(message, text ?? "") });
    }
    return text === undefined ? message : new HumanMessage({ content: withText(message, text) });
  });
}

function wrapsOf(message: AIMessage, isWrapped: (name: string) => boolean): Map<string, Allowed> {
  const calls = (message.tool_calls ?? []).filter(({ name }) => isWrapped(name));
  return new Map(
    calls.map(({ id, name, args }) => {
      const argumentsJson = JSON.stringify({ name, arguments: args });
      return [id ?? "", { tool: CALL_TOOL, argumentsJson }];
    }),
  );
}

function withText({ content }: BaseMessage, text: string): Exclude<BaseMessage["content"], undefined> {
  if (typeof content === "string") {
    return content === "" || text === "" ? content + text : `${content}\n\n${text}`;
  }
  return text === "" ? content : [...content, { type: "text", text }];
}
