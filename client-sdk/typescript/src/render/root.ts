/** A schema whose root is a plain object, for providers that take no combinators there. */
import { get, has, type JsonObject, listOf, objectOf, pick, same } from "../json.js";
import { type Losses, pointer, resolve } from "./schema.js";

const MAX_BRANCHES = 256;
const COMBINATORS = ["$ref", "allOf", "anyOf", "oneOf"];

/**
 * The schema with `type: object` at its root and no combinator there.
 *
 * The properties of all branches become properties of the root; what every branch requires is required. Nested
 * schemas stay as they are. A schema that is fine already is returned unchanged.
 *
 * @param schema the registered schema.
 * @param alsoRefused further keywords that the provider refuses at the root; they are dropped.
 * @param losses where to note what was lost.
 */
export function plainRoot(schema: JsonObject, alsoRefused: readonly string[], losses: Losses): JsonObject {
  const refused = [...COMBINATORS, ...alsoRefused].filter((key) => has(schema, key));
  if (refused.length === 0 && get(schema, "type") === "object") {
    return schema;
  }
  const merged = new Branches(schema).read(schema);
  const plain: JsonObject = {
    type: "object",
    ...pick(schema, (key) => !refused.includes(key)),
  };
  plain["type"] = "object";
  if (merged.properties.size > 0) plain["properties"] = Object.fromEntries(merged.properties);
  if (merged.required.size > 0) plain["required"] = [...merged.required];
  for (const key of refused) {
    const note = alsoRefused.includes(key) ? "dropped" : "its properties were merged into the root's";
    losses.add(pointer("", key), key, `not taken at the root: ${note}`);
  }
  return plain;
}

/** Properties, and which of them are required, in the order of the schema. */
class Properties {
  readonly properties: Map<string, unknown>;
  readonly required: Set<string>;

  constructor(schema: JsonObject) {
    this.properties = new Map(Object.entries(objectOf(get(schema, "properties"))));
    this.required = new Set(listOf(get(schema, "required")).filter((key) => typeof key === "string"));
  }

  both(other: Properties): void {
    for (const [name, schema] of other.properties) {
      if (!this.properties.has(name)) this.properties.set(name, schema);
    }
    for (const name of other.required) this.required.add(name);
  }
}

/** Reads a schema's branches, as many as there may reasonably be. */
class Branches {
  readonly #root: JsonObject;
  #left = MAX_BRANCHES;

  constructor(root: JsonObject) {
    this.#root = root;
  }

  read(schema: JsonObject): Properties {
    const found = new Properties(schema);
    if (this.#left <= 0) {
      return found;
    }
    this.#left -= 1;
    if (has(schema, "$ref")) {
      found.both(this.read(resolve(this.#root, schema["$ref"]) ?? {}));
    }
    for (const branch of listOf(get(schema, "allOf"))) {
      found.both(this.read(objectOf(branch)));
    }
    for (const key of ["anyOf", "oneOf"]) {
      const branches = listOf(get(schema, key)).map((branch) => this.read(objectOf(branch)));
      if (branches.length > 0) found.both(either(branches));
    }
    return found;
  }
}

/** One of several objects: a property that they define differently may be as any of them. */
function either(branches: readonly Properties[]): Properties {
  const definitions = new Map<string, unknown[]>();
  for (const branch of branches) {
    for (const [name, schema] of branch.properties) {
      const known = definitions.get(name) ?? [];
      if (!known.some((one) => same(one, schema))) known.push(schema);
      definitions.set(name, known);
    }
  }
  const found = new Properties({});
  for (const [name, known] of definitions) {
    found.properties.set(name, known.length === 1 ? known[0] : { anyOf: known });
  }
  const [first, ...others] = branches;
  for (const name of first?.required ?? []) {
    if (others.every((other) => other.required.has(name))) found.required.add(name);
  }
  return found;
}
