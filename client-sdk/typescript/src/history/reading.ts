/** Reads foreign content as plain objects, lists and texts. Nothing here throws on odd content. */
import { get, type JsonObject, listOf } from "../json.js";

/** Characters of a tool's name: the most that any provider takes. */
const MAX_NAME = 128;
const MAX_RESULT_CHARACTERS = 64 * 1024;
// An answer to a search may hold the schemas of 100 tools.
const MAX_ANSWER_CHARACTERS = 1024 * 1024;

/** The fields of an object, or of a vendor's one, under their names on the wire. Anything else has none. */
export function fields(value: unknown): JsonObject {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return {};
  }
  try {
    return { ...value };
  } catch {
    return {}; // A getter ran: whatever it threw, there is nothing to read.
  }
}

/** The blocks of a message's content: a list of them, or a single one. A text has none. */
export function blocks(content: unknown): unknown[] {
  if (Array.isArray(content)) {
    return listOf(content);
  }
  return Object.keys(fields(content)).length > 0 ? [content] : [];
}

/** A text, or "" for anything else. */
export function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** A tool's name, or "" for what can't be one: too long, or a lone surrogate, which the wire can't carry. */
export function name(value: unknown): string {
  if (typeof value !== "string" || value.length > 2 * MAX_NAME || !value.isWellFormed()) {
    return "";
  }
  return Array.from(value).length > MAX_NAME ? "" : value;
}

/** The first of these fields that is there: vendors write some in snake and in camel case. */
export function first(values: JsonObject, ...keys: string[]): unknown {
  return keys.map((key) => get(values, key)).find((value) => value !== undefined && value !== null);
}

/**
 * Whether a result says that it is an error, for APIs that have no flag for it: a JSON object with a non-empty
 * `error` or a true `isError`. A doubtful result so counts as failed, which unlocks nothing.
 */
export function saysError(content: unknown): boolean {
  const result = jsonObject(content, MAX_RESULT_CHARACTERS);
  return isFilled(get(result, "error")) || first(result, "isError", "is_error") === true;
}

/** The tools that an answer to a search names: a JSON object with the list `tools`. Anything else names none. */
export function foundTools(content: unknown): string[] {
  const found = listOf(get(jsonObject(content, MAX_ANSWER_CHARACTERS), "tools"));
  return found.map((tool) => name(fields(tool)["name"])).filter((tool) => tool !== "");
}

/** The items that fit a budget of bytes, taken in order until one does not fit. */
export function bounded<T>(items: Iterable<T>, size: (item: T) => number, budget: number): T[] {
  const taken: T[] = [];
  let left = budget;
  for (const item of items) {
    left -= size(item);
    if (left < 0) break;
    taken.push(item);
  }
  return taken;
}

const encoder = new TextEncoder();

/** Bytes of a text in UTF-8. */
export function bytesOf(value: string): number {
  return encoder.encode(value).length;
}

/** The JSON object that a result is, or none of its fields. */
function jsonObject(content: unknown, limit: number): JsonObject {
  const written = typeof content === "string" ? content : joined(content);
  if (written.length > limit || !written.trimStart().startsWith("{")) {
    return {};
  }
  try {
    return fields(JSON.parse(written));
  } catch {
    return {};
  }
}

function joined(content: unknown): string {
  return listOf(content)
    .map((block) => text(fields(block)["text"]))
    .join("");
}

/** Whether a value says something: not null, false, 0, nor an empty text, list or object. */
function isFilled(value: unknown): boolean {
  return typeof value === "object" && value !== null ? Object.keys(value).length > 0 : Boolean(value);
}
