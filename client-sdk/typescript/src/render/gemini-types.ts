/** Rewrites a JSON Schema of one type, without references and combinators, for Gemini. */
import { get, has, type JsonObject, listOf, objectOf, same } from "../json.js";
import type { Converter } from "./gemini-schema.js";
import { down, type Place, pointer } from "./schema.js";

const PROPERTY = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/;
const ANNOTATIONS = ["title", "description", "pattern"];
const COUNTS: Readonly<Record<string, readonly string[]>> = {
  STRING: ["minLength", "maxLength"],
  ARRAY: ["minItems", "maxItems"],
  OBJECT: ["minProperties", "maxProperties"],
};
const FORMATS: Readonly<Record<string, readonly unknown[]>> = {
  STRING: ["date-time"],
  NUMBER: ["float", "double"],
  INTEGER: ["int32", "int64"],
};
const TYPES = ["string", "number", "integer", "boolean", "array", "object"];
/** By which keywords a schema that does not name its type shows it. */
const SIGNS = {
  object: ["properties", "required", "additionalProperties", "patternProperties"],
  array: ["items", "prefixItems", "minItems", "maxItems"],
  string: ["minLength", "maxLength", "pattern", "format"],
  number: ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"],
} as const;
const SEEN_TO = new Set([
  ...["type", "format", "enum", "const", "nullable", "default", "properties", "required"],
  ...["items", "prefixItems", "anyOf", "oneOf", "additionalProperties"],
  ...["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"],
  ...["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"],
  ...["title", "description", "pattern"],
  ...["$schema", "$id", "$comment", "$anchor", "$defs", "definitions"],
]);
const BOUNDS = [
  { inclusive: "minimum", exclusive: "exclusiveMinimum", isLower: true },
  { inclusive: "maximum", exclusive: "exclusiveMaximum", isLower: false },
] as const;

/** A schema of one type in Gemini's subset. */
export function convertTyped(converter: Converter, schema: JsonObject, place: Place): JsonObject {
  const { at } = place;
  const kind = kindOf(converter, schema, at);
  const converted: JsonObject = { type: kind };
  for (const key of ANNOTATIONS) {
    const value = get(schema, key);
    if (typeof value === "string" && (key !== "pattern" || kind === "STRING")) converted[key] = value;
  }
  const fallback = get(schema, "default");
  if (fallback !== undefined && fallback !== null) converted["default"] = fallback;
  if (allowsNull(schema)) converted["nullable"] = true;
  for (const key of COUNTS[kind] ?? []) {
    const count = get(schema, key);
    if (typeof count === "number") converted[key] = Math.trunc(count);
  }
  format(converter, schema, at, converted);
  listValues(converter, schema, at, converted);
  if (kind === "NUMBER" || kind === "INTEGER") bounds(converter, schema, at, converted);
  if (kind === "ARRAY") converted["items"] = items(converter, schema, place);
  if (kind === "OBJECT") properties(converter, schema, place, converted);
  for (const key of Object.keys(schema)) {
    if (!SEEN_TO.has(key)) {
      converter.losses.add(pointer(at, key), key, "dropped: Gemini has no such keyword");
    }
  }
  return converted;
}

/** Whether a schema takes null alone. */
export function isNull(schema: JsonObject): boolean {
  return get(schema, "type") === "null" || get(schema, "const") === null;
}

/** Whether a schema takes null beside other values. */
export function allowsNull(schema: JsonObject): boolean {
  const branches = [...listOf(get(schema, "anyOf")), ...listOf(get(schema, "oneOf"))];
  return (
    get(schema, "nullable") === true ||
    isNull(schema) ||
    listOf(get(schema, "type")).includes("null") ||
    listOf(get(schema, "enum")).includes(null) ||
    branches.some((branch) => isNull(objectOf(branch)))
  );
}

function kindOf(converter: Converter, schema: JsonObject, at: string): string {
  const type = get(schema, "type");
  const kinds = listOf(type);
  const said = kinds.length > 0 ? kinds : [type];
  const named = said.find((kind) => typeof kind === "string" && TYPES.includes(kind));
  if (typeof named === "string") {
    return named.toUpperCase();
  }
  for (const [kind, keys] of Object.entries(SIGNS)) {
    if (keys.some((key) => has(schema, key))) return kind.toUpperCase();
  }
  const values = listedValues(schema);
  if (values.length > 0) {
    if (values.every((value) => typeof value === "number")) {
      return values.every(Number.isInteger) ? "INTEGER" : "NUMBER";
    }
    if (values.every((value) => typeof value === "boolean")) return "BOOLEAN";
    if (values.every((value) => typeof value === "string")) return "STRING";
  }
  converter.losses.add(at, "type", "any value: only texts are asked for");
  return "STRING";
}

function listedValues(schema: JsonObject): unknown[] {
  const values = has(schema, "const") ? [schema["const"]] : listOf(get(schema, "enum"));
  return values.filter((value) => value !== null);
}

function format(converter: Converter, schema: JsonObject, at: string, converted: JsonObject): void {
  const named = get(schema, "format");
  if (FORMATS[converted["type"] as string]?.includes(named)) {
    converted["format"] = named;
  } else if (named !== undefined && named !== null) {
    converter.losses.add(pointer(at, "format"), "format", `dropped: ${JSON.stringify(named)}`);
  }
}

/** Gemini lists texts only; other values are named in the description. */
function listValues(converter: Converter, schema: JsonObject, at: string, converted: JsonObject): void {
  const values = listedValues(schema);
  if (values.length === 0) {
    return;
  }
  const keyword = has(schema, "const") ? "const" : "enum";
  if (converted["type"] === "STRING" && values.every((value) => typeof value === "string" && value !== "")) {
    converted["enum"] = values;
    return;
  }
  const told = `One of: ${values.map((value) => JSON.stringify(value)).join(", ")}.`;
  const described = converted["description"];
  converted["description"] =
    typeof described === "string" && described !== "" ? `${described} ${told}` : told;
  converter.losses.add(pointer(at, keyword), keyword, "named in the description only");
}

function bounds(converter: Converter, schema: JsonObject, at: string, converted: JsonObject): void {
  for (const { inclusive, exclusive, isLower } of BOUNDS) {
    const bound = get(schema, inclusive);
    if (typeof bound === "number") converted[inclusive] = bound;
    const said = get(schema, exclusive);
    // `true` is how JSON Schema had it until draft 4.
    const limit = said === true ? bound : said;
    if (typeof limit !== "number") continue;
    const nearest = beyond(converter, converted["type"], limit, isLower, pointer(at, exclusive), exclusive);
    const held = typeof bound === "number" ? bound : nearest;
    converted[inclusive] = isLower ? Math.max(held, nearest) : Math.min(held, nearest);
  }
}

/** The nearest value that an exclusive bound lets in, as far as the type has one. */
function beyond(
  converter: Converter,
  kind: unknown,
  limit: number,
  isLower: boolean,
  at: string,
  keyword: string,
): number {
  if (kind === "INTEGER") {
    return isLower ? Math.floor(limit) + 1 : Math.ceil(limit) - 1;
  }
  converter.losses.add(at, keyword, "the bound itself is let in");
  return limit;
}

function items(converter: Converter, schema: JsonObject, place: Place): JsonObject {
  const listed = listOf(get(schema, "prefixItems"));
  const places = listed.length > 0 ? listed : listOf(get(schema, "items"));
  if (places.length === 0) {
    return converter.convert(get(schema, "items"), down(place, "items"));
  }
  const keyword = has(schema, "prefixItems") ? "prefixItems" : "items";
  converter.losses.add(pointer(place.at, keyword), keyword, "which place takes which is lost");
  const unique = places.filter((one, index) => places.findIndex((other) => same(one, other)) === index);
  return converter.convert(unique.length === 1 ? unique[0] : { anyOf: unique }, down(place, "items"));
}

function properties(converter: Converter, schema: JsonObject, place: Place, converted: JsonObject): void {
  const kept = new Map<string, JsonObject>();
  for (const [name, value] of Object.entries(objectOf(get(schema, "properties")))) {
    const stands = down(place, "properties", name);
    if (PROPERTY.test(name)) {
      kept.set(name, converter.convert(value, stands));
    } else {
      converter.losses.add(stands.at, "properties", "dropped: not taken as a name");
    }
  }
  if (kept.size > 0) converted["properties"] = Object.fromEntries(kept);
  const required = listOf(get(schema, "required")).filter((key) => kept.has(key as string));
  if (required.length > 0) converted["required"] = required;
  const additional = get(schema, "additionalProperties");
  const isOpen = additional === undefined || additional === null || additional === true;
  if (!isOpen && !same(additional, {})) {
    converter.losses.add(
      pointer(place.at, "additionalProperties"),
      "additionalProperties",
      "dropped: not taken",
    );
  }
}
