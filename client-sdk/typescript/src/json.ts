/** JSON values as the helpers handle them. */

/** A JSON object. */
export type JsonObject = Record<string, unknown>;

/** Whether a value is a JSON object: no list, no null. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A JSON object, or an empty one for anything else. */
export function objectOf(value: unknown): JsonObject {
  return isObject(value) ? value : {};
}

/** A JSON array, or an empty one for anything else. */
export function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? (value as unknown[]) : [];
}

/** Whether an object itself has a key; what it inherits, such as `constructor`, is not asked. */
export function has(object: JsonObject, key: string): boolean {
  return Object.hasOwn(object, key);
}

/** The value of an object's own key. */
export function get(object: JsonObject, key: string): unknown {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

/** The entries of an object for which a test holds, as a new object; safe for keys such as `__proto__`. */
export function pick(object: JsonObject, test: (key: string) => boolean): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([key]) => test(key)));
}

/** Whether two JSON values are the same; the order of keys does not matter. */
export function same(a: unknown, b: unknown): boolean {
  if (Array.isArray(a) || Array.isArray(b)) {
    return (
      Array.isArray(a) &&
      Array.isArray(b) &&
      a.length === b.length &&
      a.every((item, at) => same(item, b[at]))
    );
  }
  if (isObject(a) && isObject(b)) {
    const keys = Object.keys(a);
    return keys.length === Object.keys(b).length && keys.every((key) => has(b, key) && same(a[key], b[key]));
  }
  return a === b;
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
