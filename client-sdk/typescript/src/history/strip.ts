/** Takes references that the next request can't resolve out of a history, before it is sent. */
import { has, type JsonObject, listOf } from "../json.js";
import { fields, name, text } from "./reading.js";
import { isSnapshot } from "./snapshot.js";

const NOTHING_LEFT = "The tools that were found here are no longer available.";
/** Stands for what is taken out: null is a value of its own. */
const GONE = Symbol("gone");
const SEARCH_TOOLS: unknown[] = ["tool_search_tool_regex", "tool_search_tool_bm25"];

/** Why something was taken out. */
export type Reason =
  /** The request defines no such tool. */
  | "vanished"
  /** The model, or what stands before it, can't take references. */
  | "unsupported";

/** One thing that was taken out. */
export interface Removed {
  /** Index of the entry in the history that was given. */
  readonly message: number;
  /** Its type, such as "tool_reference". */
  readonly kind: string;
  /** The tool that it named; of a search, the search tool; "" when it named none. */
  readonly name: string;
  /** Why it was taken out. */
  readonly reason: Reason;
}

/** A history that can be sent. */
export interface Stripped<T = unknown> {
  /** The history. What did not change is as it was given; entries that did are new objects. */
  readonly messages: T[];
  /** What was taken out, in the history's order. Snapshots are not listed. */
  readonly removed: readonly Removed[];
}

/** How to strip. */
export interface StripOptions {
  /** Whether the model, and what stands before it, can take references and searches. Default: true. */
  readonly references?: boolean;
}

/**
 * A history without references to tools that the next request can't resolve.
 *
 * Tool calls and their results stay, paired as they were. A result or message that would be left empty says
 * instead that its tools are gone. Anthropic's `tool_reference` blocks and server-side tool searches are seen to,
 * and OpenAI's `tool_search_call`, `tool_search_output` and `additional_tools` items; snapshots are taken out.
 *
 * @param messages the history, as in `scan`. It is left alone.
 * @param available names of all tools that the request will define, deferred ones included.
 */
export function strip<T>(
  messages: Iterable<T>,
  available: Iterable<string>,
  options: StripOptions = {},
): Stripped<T> {
  const stripper = new Stripper(new Set(available), options.references ?? true);
  const kept: Kept[] = [];
  let index = 0;
  for (const message of messages) {
    const left = isSnapshot(message) ? GONE : stripper.entry(index, message);
    if (left !== GONE) kept.push([index, left]);
    index += 1;
  }
  const sendable = stripper.withoutLoneReasoning(kept);
  const removed = stripper.removed.toSorted((a, b) => a.message - b.message);
  return { messages: sendable as T[], removed };
}

type Kept = readonly [index: number, entry: unknown];

class Stripper {
  readonly removed: Removed[] = [];
  readonly #available: ReadonlySet<string>;
  readonly #references: boolean;
  #index = 0;

  constructor(available: ReadonlySet<string>, references: boolean) {
    this.#available = available;
    this.#references = references;
  }

  /** What is left of an entry: itself, a new one, or nothing. */
  entry(index: number, entry: unknown): unknown {
    this.#index = index;
    const before = this.removed.length;
    const after = this.#changed(fields(entry));
    return this.removed.length === before ? entry : after;
  }

  /** OpenAI refuses a reasoning item without the item that it led to. */
  withoutLoneReasoning(kept: readonly Kept[]): unknown[] {
    const left = new Set(kept.map(([index]) => index));
    const gone = new Set(this.removed.map(({ message }) => message).filter((index) => !left.has(index)));
    const entries: unknown[] = [];
    for (const [place, [index, entry]] of kept.entries()) {
      const isLone = gone.has(index + 1) && !isLedTo(kept[place + 1]?.[1]);
      if (isLone && fields(entry)["type"] === "reasoning") {
        this.removed.push({ message: index, kind: "reasoning", name: "", reason: "unsupported" });
      } else {
        entries.push(entry);
      }
    }
    return entries;
  }

  #changed(values: JsonObject): unknown {
    switch (values["type"]) {
      case "tool_search_call":
        if (this.#references) break;
        this.#note("tool_search_call", "", "unsupported");
        return GONE;
      case "tool_search_output":
        return this.#loadedTools("tool_search_output", values) ?? GONE;
      case "additional_tools": {
        const left = this.#loadedTools("additional_tools", values);
        return left !== undefined && left.tools.length > 0 ? left : GONE;
      }
    }
    return this.#message(values);
  }

  #loadedTools(kind: string, values: JsonObject): { tools: unknown[] } | undefined {
    if (!this.#references) {
      this.#note(kind, "", "unsupported");
      return undefined;
    }
    return { ...values, tools: keep(listOf(values["tools"]), (tool) => this.#loadedTool(tool)) };
  }

  #loadedTool(tool: unknown): unknown {
    const values = fields(tool);
    const kind = values["type"];
    if (kind !== "namespace") {
      const isOurs = kind === "function" || kind === "custom";
      return !isOurs || this.#has("tool", values["name"]) ? tool : GONE;
    }
    const inner = keep(listOf(values["tools"]), (one) => this.#loadedTool(one));
    return inner.length > 0 ? { ...values, tools: inner } : GONE;
  }

  #message(values: JsonObject): JsonObject {
    const content = values["content"];
    if (!Array.isArray(content)) {
      return values;
    }
    const kept = keep(content, (block) => this.#block(block));
    return { ...values, content: kept.length === 0 && content.length > 0 ? nothingLeft() : kept };
  }

  #block(block: unknown): unknown {
    const values = fields(block);
    const named = values["name"];
    switch (values["type"]) {
      case "tool_result":
      case "mcp_tool_result":
        return this.#toolResult(values);
      case "tool_search_tool_result":
        return this.#searchResult(values);
      case "server_tool_use":
        if (this.#references || !SEARCH_TOOLS.includes(named)) return block;
        this.#note("server_tool_use", text(named), "unsupported");
        return GONE;
      case "tool_use": {
        if (this.#references || !has(values, "caller")) return block;
        this.#note("caller", name(named), "unsupported");
        const { caller: _, ...rest } = values;
        return rest;
      }
    }
    return block;
  }

  #toolResult(values: JsonObject): JsonObject {
    const content = values["content"];
    if (!Array.isArray(content) || content.length === 0) {
      return values;
    }
    const kept = keep(content, (item) => this.#reference(item));
    return { ...values, content: kept.length > 0 ? kept : nothingLeft() };
  }

  #searchResult(values: JsonObject): unknown {
    const found = fields(values["content"]);
    if (!this.#references) {
      this.#note("tool_search_tool_result", "", "unsupported");
      return GONE;
    }
    if (!has(found, "tool_references")) {
      return values;
    }
    const kept = keep(listOf(found["tool_references"]), (item) => this.#reference(item));
    return { ...values, content: { ...found, tool_references: kept } };
  }

  #reference(item: unknown): unknown {
    const values = fields(item);
    if (values["type"] !== "tool_reference") {
      return item;
    }
    return this.#has("tool_reference", values["tool_name"]) ? item : GONE;
  }

  /** Whether a reference may stay; notes it when not. */
  #has(kind: string, tool: unknown): boolean {
    const called = name(tool);
    if (this.#references && this.#available.has(called)) {
      return true;
    }
    this.#note(kind, called, this.#references ? "vanished" : "unsupported");
    return false;
  }

  #note(kind: string, called: string, reason: Reason): void {
    this.removed.push({ message: this.#index, kind, name: called, reason });
  }
}

function keep(values: readonly unknown[], change: (value: unknown) => unknown): unknown[] {
  return values.map(change).filter((value) => value !== GONE);
}

function nothingLeft(): JsonObject[] {
  return [{ type: "text", text: NOTHING_LEFT }];
}

/** Whether an item of the Responses API is one that reasoning leads to. */
function isLedTo(entry: unknown): boolean {
  const values = fields(entry);
  return text(values["type"]).endsWith("_call") || values["role"] === "assistant";
}
