/** The AI SDK's messages: as a conversation for Route, and as a step's intents. */
import type { ModelMessage, ToolModelMessage } from "ai";

import type { Spoken } from "../forms.js";
import { argumentsOf, cut, estimatedTokens, type Intent, intentOf } from "../messages.js";
import { SEARCH_TOOL } from "../offering.js";

type Part = ToolModelMessage["content"][number];
/** A tool's result in a message. */
export type Result = Extract<Part, { type: "tool-result" }>;

/** A message as Route reads it: one of Anthropic's. The AI SDK has calls and results in parts of their own. */
export function entryOf(message: ModelMessage): object {
  switch (message.role) {
    case "assistant":
      return { role: "assistant", content: partsOf(message.content).flatMap(blockOf) };
    case "tool":
      return { role: "user", content: partsOf(message.content).flatMap(blockOf) };
    default:
      // Whatever else looks like a result is not read.
      return { role: message.role, content: cut(textOf(message.content)) };
  }
}

/** A message for Route, whatever API it is written for. */
export function spokenOf({ role, content }: ModelMessage): Spoken {
  switch (role) {
    case "assistant": {
      const calls = partsOf(content).flatMap((part) => {
        const { type, toolCallId, toolName, input } = part as Record<string, unknown>;
        return type === "tool-call" ? [{ id: String(toolCallId), name: String(toolName), args: input }] : [];
      });
      return { role, text: textOf(content), calls };
    }
    case "tool": {
      const results = partsOf(content).filter(isResult);
      return {
        role,
        results: results.map((result) => {
          const { toolCallId: id, toolName: name } = result;
          return { id, name, text: outputOf(result), failed: isFailed(result) };
        }),
      };
    }
    default:
      return { role, text: textOf(content) };
  }
}

/**
 * Reads what the user said last, and what a tool answered since. What a search found is loaded already, and a call that failed
 * or was refused says nothing of what is wanted.
 */
export function intentsOf(messages: readonly ModelMessage[]): Intent[] {
  const asked = messages.findLastIndex(({ role }) => role === "user");
  const said = messages[asked];
  const results = messages
    .slice(asked + 1)
    .flatMap((message) => (message.role === "tool" ? message.content.filter(isResult) : []));
  const last = results.findLast((result) => result.toolName !== SEARCH_TOOL.modelName && !isFailed(result));
  return [
    ...(said === undefined ? [] : intentOf(textOf(said.content))),
    ...(last === undefined ? [] : intentOf(outputOf(last), true)),
  ];
}

/** An estimate of the messages' tokens: a token for four bytes of text, calls and results. */
export function tokensOf(messages: readonly ModelMessage[]): number {
  return estimatedTokens(
    messages.flatMap(({ content }) => (typeof content === "string" ? [content] : content.map(saidIn))),
  );
}

function saidIn(part: object): string {
  const { type, text, toolName, input } = part as Record<"type" | "text" | "toolName" | "input", unknown>;
  switch (type) {
    case "text":
    case "reasoning":
      return String(text);
    case "tool-call":
      return String(toolName) + JSON.stringify(input ?? {});
    case "tool-result":
      return outputOf(part as Result);
    default:
      return "";
  }
}

/** A message's content in parts. */
export function partsOf(content: string | readonly { readonly type: string }[]): readonly object[] {
  return typeof content === "string" ? [{ type: "text", text: content }] : content;
}

/** A call or result as a block of Anthropic's; other parts say nothing of tools. */
function blockOf(part: object): object[] {
  const { type, toolCallId, toolName, text, input } = part as Record<string, unknown>;
  if (type === "text") {
    return [{ type: "text", text: cut(String(text)) }];
  }
  if (type === "tool-call") {
    return [
      { type: "tool_use", id: toolCallId, name: toolName, input: JSON.parse(argumentsOf(input)) as unknown },
    ];
  }
  if (type === "tool-result") {
    const result = part as Result;
    const flag = isFailed(result) ? { is_error: true } : {};
    return [{ type: "tool_result", tool_use_id: toolCallId, content: cut(outputOf(result)), ...flag }];
  }
  return [];
}

/** Returns true if a part of a message is a result. */
export function isResult(part: object): part is Result {
  return (part as { readonly type?: unknown }).type === "tool-result";
}

/** Tells that the call failed, or was not allowed. */
export function isFailed({ output }: Result): boolean {
  return /^error|denied$/.test(output.type);
}

/** A result's output as text. */
export function outputOf({ output }: Result): string {
  if (!("value" in output)) {
    return "";
  }
  return typeof output.value === "string" ? output.value : JSON.stringify(output.value);
}

/** A message's text. */
export function textOf(content: ModelMessage["content"]): string {
  if (typeof content === "string") {
    return content;
  }
  return content.map((part) => (part.type === "text" ? part.text : "")).join("\n");
}
