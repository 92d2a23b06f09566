/**
 * Rewrites JSON Schema in the subset that Gemini's `Schema` message has. References and `allOf` are merged in,
 * `oneOf` and lists of types become `anyOf`, and what is left gets exactly one type.
 */
import { get, has, isObject, type JsonObject, listOf, objectOf, pick, same } from "../json.js";
import { allowsNull, convertTyped, isNull } from "./gemini-types.js";
import { down, type Losses, MAX_NESTING, type Place, pointer, resolve } from "./schema.js";

const MAX_SCHEMAS = 4096;
const MAX_MERGES = 16;
const ANNOTATIONS = ["title", "description", "default", "examples"];
const TWICE = "dropped: another schema says it already";

type Choice = readonly [index: number, schema: JsonObject];

/** Converts the schemas of one tool. */
export class Converter {
  readonly losses: Losses;
  readonly #root: JsonObject;
  #left = MAX_SCHEMAS;

  constructor(root: JsonObject, losses: Losses) {
    this.#root = root;
    this.losses = losses;
  }

  /** The schema in Gemini's subset. */
  convert(schema: unknown, stands: Place = { at: "", nesting: 0, followed: [] }): JsonObject {
    this.#left -= 1;
    if (this.#left < 0 || stands.nesting > MAX_NESTING) {
      this.losses.add(stands.at, "", "too large a schema: any text");
      return { type: "STRING" };
    }
    let merged = objectOf(schema);
    let place = stands;
    for (let merges = 0; merges < MAX_MERGES; merges++) {
      if (has(merged, "$ref")) [merged, place] = this.#follow(merged, place);
      else if (has(merged, "allOf")) [merged, place] = this.#allOf(merged, place);
      else break;
    }
    const [key, choices] = this.#choices(merged, place.at);
    if (choices.length === 0) {
      return convertTyped(this, merged, place);
    }
    const converted = choices.map(([index, choice]) =>
      this.convert(choice, key === "" ? down(place, "type") : down(place, key, index)),
    );
    return this.#anyOf(merged, converted, place.at);
  }

  /** The schema with what it refers to merged in, and where that stands. */
  #follow(schema: JsonObject, place: Place): [JsonObject, Place] {
    const reference = schema["$ref"];
    const siblings = pick(schema, (key) => key !== "$ref");
    const target = resolve(this.#root, reference);
    if (target === undefined || typeof reference !== "string") {
      this.losses.add(place.at, "$ref", "dropped: it names nothing in this schema");
      return [siblings, place];
    }
    if (place.followed.includes(reference)) {
      this.losses.add(place.at, "$ref", "a schema within itself: any object");
      return [{ type: "object" }, place];
    }
    const followed = [...place.followed, reference];
    return [
      { ...target, ...siblings },
      { at: reference.slice(1), nesting: place.nesting, followed },
    ];
  }

  /** The schema with the branches of its `allOf` merged in. */
  #allOf(schema: JsonObject, place: Place): [JsonObject, Place] {
    const merged = pick(schema, (key) => key !== "allOf");
    let { followed } = place;
    for (const [index, branch] of listOf(schema["allOf"]).entries()) {
      let stands: Place = { ...place, at: pointer(place.at, "allOf", index), followed };
      let read = objectOf(branch);
      if (has(read, "$ref")) {
        [read, stands] = this.#follow(read, stands);
        ({ followed } = stands);
      }
      this.#merge(merged, read, stands.at);
    }
    return [merged, { ...place, followed }];
  }

  #merge(merged: JsonObject, branch: JsonObject, at: string): void {
    for (const [key, value] of Object.entries(branch)) {
      const held = get(merged, key);
      if (key === "properties") {
        merged[key] = this.#mergedProperties(objectOf(held), value, at);
      } else if (key === "required" || key === "allOf") {
        const listed = listOf(held);
        merged[key] = [...listed, ...listOf(value).filter((item) => !listed.some((one) => same(one, item)))];
      } else if (!has(merged, key)) {
        set(merged, key, value);
      } else if (!same(held, value) && !ANNOTATIONS.includes(key)) {
        this.losses.add(pointer(at, key), key, TWICE);
      }
    }
  }

  #mergedProperties(held: JsonObject, more: unknown, at: string): JsonObject {
    const merged = new Map(Object.entries(held));
    for (const [name, schema] of Object.entries(objectOf(more))) {
      if (!merged.has(name)) {
        merged.set(name, schema);
      } else if (!same(merged.get(name), schema)) {
        this.losses.add(pointer(at, "properties", name), "properties", TWICE);
      }
    }
    return Object.fromEntries(merged);
  }

  /** The keyword of the alternatives, and those that are not null with their places in it. */
  #choices(schema: JsonObject, at: string): [string, Choice[]] {
    for (const key of ["anyOf", "oneOf"]) {
      const branches = listOf(get(schema, key)).map(objectOf);
      if (branches.length === 0) continue;
      if (branches.every((branch) => Object.keys(branch).every((name) => name === "required"))) {
        this.losses.add(pointer(at, key), key, "dropped");
        continue;
      }
      const choices = branchesOf(schema, key, branches);
      if (key === "oneOf" && choices.length > 1) {
        this.losses.add(pointer(at, key), key, "as anyOf: several may hold");
      }
      return [key, choices];
    }
    const kinds = listOf(get(schema, "type")).filter((kind) => kind !== "null");
    if (kinds.length < 2) {
      return ["", []];
    }
    const rest = pick(schema, (key) => !ANNOTATIONS.includes(key));
    return ["", kinds.map((type, index) => [index, { ...rest, type }])];
  }

  /** Gemini takes `anyOf` alone: what stands beside it goes into the branches. */
  #anyOf(schema: JsonObject, branches: readonly JsonObject[], at: string): JsonObject {
    const description = get(schema, "description");
    const described = typeof description === "string" ? { description } : {};
    const fallback = get(schema, "default");
    const hasDefault = fallback !== undefined && fallback !== null;
    const flat = branches.flatMap((branch) => (has(branch, "anyOf") ? listOf(branch["anyOf"]) : [branch]));
    const converted = flat.filter(isObject).map((branch, index) => ({
      ...described,
      ...branch,
      ...(index === 0 && allowsNull(schema) ? { nullable: true } : {}),
    }));
    const [only] = converted;
    if (converted.length === 1 && only !== undefined) {
      return { ...only, ...described, ...(hasDefault ? { default: fallback } : {}) };
    }
    if (hasDefault) {
      this.losses.add(pointer(at, "default"), "default", "dropped beside anyOf");
    }
    return { anyOf: converted };
  }
}

/** The branches that are not null, each with what stands beside them. */
function branchesOf(schema: JsonObject, key: string, branches: readonly JsonObject[]): Choice[] {
  const aside = [...ANNOTATIONS, key, "nullable", ...(Array.isArray(get(schema, "type")) ? ["type"] : [])];
  const beside = pick(schema, (name) => !aside.includes(name));
  const isAlone = Object.keys(beside).length === 0;
  return branches.flatMap((branch, index): Choice[] =>
    isNull(branch) ? [] : [[index, isAlone ? branch : { allOf: [branch, beside] }]],
  );
}

/** Sets a key whatever its name: assignment would take `__proto__` for the prototype. */
function set(object: JsonObject, key: string, value: unknown): void {
  Object.defineProperty(object, key, { value, enumerable: true, writable: true, configurable: true });
}
