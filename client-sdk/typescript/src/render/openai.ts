/** Function tools for OpenAI's Chat Completions and Responses APIs. */
import type { ActiveTool } from "../gen/toolgate/v1/router_pb.js";
import { has, isObject, type JsonObject } from "../json.js";
import { plainRoot } from "./root.js";
import { inputSchemaOf, type Losses, MAX_NESTING, type Rendered, renderEach } from "./schema.js";

/** A function as OpenAI's APIs take it. */
export interface OpenAIFunction {
  readonly name: string;
  readonly description?: string;
  readonly parameters: JsonObject;
}

/** A tool of the Chat Completions API. */
export interface OpenAIChatTool {
  readonly type: "function";
  readonly function: OpenAIFunction;
}

/** A tool of the Responses API. */
export type OpenAIResponsesTool = OpenAIFunction & { readonly type: "function"; readonly strict: false };

const NAME = /^[A-Za-z0-9_-]{1,64}$/;
const MOST = 128;
const REFUSED_AT_ROOT = ["enum", "not"];
const SCHEMAS = new Set(["items", "additionalProperties", "contains", "not", "if", "then", "else"]);
const LISTS_OF_SCHEMAS = new Set(["anyOf", "oneOf", "allOf", "prefixItems"]);
const SCHEMAS_BY_NAME = new Set([
  "properties",
  "patternProperties",
  "$defs",
  "definitions",
  "dependentSchemas",
]);
/** OpenAI refuses arrays and objects without these; `{}` says the same. */
const NEEDED = { array: "items", object: "properties" } as const;

/**
 * The active set as `tools` of the Chat Completions API. Not strict: schemas stay as they are. A request
 * takes 128 tools: later ones are left out, and among the losses.
 *
 * @param tools tools with full schemas.
 * @throws TypeError a tool without its schema.
 */
export function openaiChat(tools: Iterable<ActiveTool>): Rendered<OpenAIChatTool> {
  const define = (tool: ActiveTool, losses: Losses): OpenAIChatTool => ({
    type: "function",
    function: functionOf(tool, losses),
  });
  return renderEach(tools, NAME, define, MOST);
}

/**
 * The active set as `tools` of the Responses API. Not strict: schemas stay as they are. A request
 * takes 128 tools: later ones are left out, and among the losses.
 *
 * @param tools tools with full schemas.
 * @throws TypeError a tool without its schema.
 */
export function openaiResponses(tools: Iterable<ActiveTool>): Rendered<OpenAIResponsesTool> {
  const define = (tool: ActiveTool, losses: Losses): OpenAIResponsesTool => ({
    type: "function",
    ...functionOf(tool, losses),
    strict: false,
  });
  return renderEach(tools, NAME, define, MOST);
}

function functionOf(tool: ActiveTool, losses: Losses): OpenAIFunction {
  const schema = plainRoot(inputSchemaOf(tool), REFUSED_AT_ROOT, losses);
  return {
    name: tool.modelName,
    ...(tool.description === "" ? {} : { description: tool.description }),
    parameters: complete(schema, 0) as JsonObject,
  };
}

/** The schema with `items` in every array and `properties` in every object. */
function complete(schema: unknown, nesting: number): unknown {
  if (!isObject(schema) || nesting > MAX_NESTING) {
    return schema;
  }
  const changed = mapped(schema, (key, value) => within(key, value, nesting));
  const kinds = Object.hasOwn(changed, "type") ? changed["type"] : undefined;
  for (const [kind, key] of Object.entries(NEEDED)) {
    const isKind = kinds === kind || (Array.isArray(kinds) && kinds.includes(kind));
    if (isKind && !has(changed, key)) changed[key] = {};
  }
  return changed;
}

function within(key: string, value: unknown, nesting: number): unknown {
  const inner = (schema: unknown) => complete(schema, nesting + 1);
  if (SCHEMAS.has(key)) {
    return inner(value);
  }
  if (LISTS_OF_SCHEMAS.has(key) && Array.isArray(value)) {
    return value.map(inner);
  }
  if (SCHEMAS_BY_NAME.has(key) && isObject(value)) {
    return mapped(value, (_, schema) => inner(schema));
  }
  return value;
}

function mapped(object: JsonObject, change: (key: string, value: unknown) => unknown): JsonObject {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, change(key, value)]));
}
