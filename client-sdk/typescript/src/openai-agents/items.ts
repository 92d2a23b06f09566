/** The Agents SDK's items: as a conversation for Route, and as a turn's intents. */
import type { AgentInputItem } from "@openai/agents";

import type { Spoken } from "../forms.js";
import { isObject, stringOf } from "../json.js";
import { estimatedTokens, type Intent, intentOf } from "../messages.js";
import { SEARCH_TOOL } from "../offering.js";

/** A message's or a result's part, or an item, of which little is promised. */
export type Part = Readonly<Record<string, unknown>>;

/** Answers of the SDK's own to calls that failed or did not run: its items have no flag for them. */
const FAILURE =
  /^An error occurred while (running the tool|parsing tool arguments)\.|^Tool '[^']+' timed out after |^Tool execution was not approved\.$|^aborted$/;

/** Items of a request, which may be a text. */
export function listed(input: string | readonly AgentInputItem[]): AgentInputItem[] {
  return typeof input === "string" ? [{ role: "user", content: input }] : [...input];
}

/** An item for Route; none of what says nothing of tools, such as reasoning. */
export function spokenOf(item: AgentInputItem): Spoken[] {
  const { type, role, content } = item as Part;
  if (type === "function_call") {
    const { callId: id, name, arguments: args } = item as Extract<AgentInputItem, { type: "function_call" }>;
    return [{ role: "assistant", text: "", calls: [{ id, name, args: parsed(args) }] }];
  }
  if (type === "function_call_result") {
    const result = item as Result;
    const { callId: id, name, output } = result;
    return [{ role: "tool", results: [{ id, name, text: textOf(output), failed: hasFailed(result) }] }];
  }
  switch (role) {
    case "assistant":
      return [{ role, text: textOf(content), calls: [] }];
    case "user":
    case "system":
      // As a text: whatever a user's message holds that looks like an answer is not read.
      return [{ role, text: textOf(content) }];
    default:
      return [];
  }
}

/** A call's result. */
export type Result = Extract<AgentInputItem, { type: "function_call_result" }>;

/**
 * Reads what the user said last, and what a tool answered since. What a search found is loaded already, and a call that failed
 * or was refused says nothing of what is wanted.
 */
export function intentsOf(items: readonly AgentInputItem[]): Intent[] {
  const asked = items.findLastIndex((item) => (item as Part)["role"] === "user");
  const results = items
    .slice(asked + 1)
    .filter((item): item is Result => (item as Part)["type"] === "function_call_result");
  const last = results.findLast((result) => result.name !== SEARCH_TOOL.modelName && !hasFailed(result));
  return [
    ...intentOf(asked < 0 ? "" : textOf((items[asked] as Part)["content"])),
    ...(last === undefined ? [] : intentOf(textOf(last.output), true)),
  ];
}

/** An estimate of the items' tokens: a token for four bytes of text, calls and results. */
export function tokensOf(items: readonly AgentInputItem[]): number {
  return estimatedTokens(
    items.flatMap((item) => {
      const { content, name, arguments: args, output } = item as Part;
      return [textOf(content), stringOf(name), stringOf(args), textOf(output)];
    }),
  );
}

/** Tells that a call failed, was refused, or did not run to its end. */
function hasFailed({ status, output }: Result): boolean {
  const text = textOf(output);
  if (status === "incomplete" || FAILURE.test(text)) {
    return true;
  }
  const said = text.startsWith("{") ? parsed(text) : undefined;
  return isObject(said) && Boolean(said["error"]);
}

/** The text of a message or of a result, which is a text, a part or several. */
export function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  const parts = Array.isArray(content) ? (content as unknown[]) : [content];
  return parts.map((part) => (isObject(part) ? stringOf(part["text"]) : "")).join("\n");
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}
