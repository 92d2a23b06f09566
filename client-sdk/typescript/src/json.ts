/** JSON values as the helpers handle them. */

/** A JSON object. */
export type JsonObject = Record<string, unknown>;

/** Tells whether a value is a JSON object: no list, no null. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A JSON array, or an empty one for anything else. */
export function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? (value as unknown[]) : [];
}

/** A text, or "" for anything else. */
export function stringOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** Tells whether an object itself has a key; what it inherits, such as `constructor`, is not asked. */
export function has(object: JsonObject, key: string): boolean {
  return Object.hasOwn(object, key);
}

/** Reads a JSON object; undefined for a text that is none. */
export function objectIn(text: string): JsonObject | undefined {
  try {
    const read: unknown = JSON.parse(text);
    return isObject(read) ? read : undefined;
  } catch {
    return undefined;
  }
}

/** The value of an object's own key. */
export function get(object: JsonObject, key: string): unknown {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

/**
 * A JSON text as a value. A number beyond all of JavaScript's becomes the greatest there is, so that what is
 * written of it is still a number.
 *
 * @throws SyntaxError not JSON.
 */
export function parse(text: string): unknown {
  if (!/[0-9][eE]\+?[0-9]{3}|[0-9]{309}/.test(text)) {
    return JSON.parse(text);
  }
  return JSON.parse(text, (_key, value: unknown) =>
    value === Infinity ? Number.MAX_VALUE : value === -Infinity ? -Number.MAX_VALUE : value,
  );
}
