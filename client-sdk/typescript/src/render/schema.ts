/** What all renderers share: their result, the list of what was lost, and walking a JSON Schema. */
import type { ActiveTool } from "../gen/toolgate/v1/router_pb.js";
import { isObject, type JsonObject, parse, same } from "../json.js";

/** Levels of a schema that are read; the service refuses deeper ones. */
export const MAX_NESTING = 64;

/** Something that a registered tool says and the rendered one can't. */
export interface Loss {
  /** The tool's model-facing name. */
  readonly tool: string;
  /** Where, as a JSON Pointer into the registered `inputSchema`; "" is the whole. */
  readonly pointer: string;
  /** The keyword at fault; "name" for the tool's own name, "tools" for one tool too many. */
  readonly keyword: string;
  /** What became of it. */
  readonly note: string;
}

/** Definitions in a provider's shape. */
export interface Rendered<T = JsonObject> {
  /** The definitions, in the order of the active set. */
  readonly tools: T[];
  /** What could not be said. Gate still holds calls to the registered schema. */
  readonly losses: readonly Loss[];
}

/** Where a schema stands within the registered one. */
export interface Place {
  /** As a JSON Pointer. */
  readonly at: string;
  /** How deep it is nested. */
  readonly nesting: number;
  /** The references that led here. */
  readonly followed: readonly string[];
}

/** The place of a schema within another. */
export function down(place: Place, ...parts: (string | number)[]): Place {
  return { ...place, at: pointer(place.at, ...parts), nesting: place.nesting + 1 };
}

/** Collects the losses of one tool. */
export class Losses {
  readonly found: Loss[] = [];
  readonly #tool: string;

  constructor(tool: string) {
    this.#tool = tool;
  }

  /** Notes one; the same one again, where a schema is used twice, is noted once. */
  add(at: string, keyword: string, note: string): void {
    const loss = { tool: this.#tool, pointer: at, keyword, note };
    if (!this.found.some((known) => same(known, loss))) this.found.push(loss);
  }
}

/**
 * Renders tools one by one.
 *
 * One whose name is not among `names`, those that the provider takes, would fail the whole request, and is left
 * out. So are those beyond `most`, the last ones of the active set. One that came as a signature has it for a
 * description, and takes any object: Gate holds its calls to the registered schema.
 */
export function renderEach<T>(
  tools: Iterable<ActiveTool>,
  names: RegExp,
  define: (tool: ActiveTool, losses: Losses) => T,
  most?: number,
): Rendered<T> {
  const rendered: T[] = [];
  const losses: Loss[] = [];
  for (const tool of tools) {
    const ofTool = new Losses(tool.modelName);
    if (!names.test(tool.modelName)) {
      ofTool.add("", "name", "the provider takes no such name: the tool is left out");
    } else if (rendered.length === most) {
      ofTool.add("", "tools", `the provider takes ${String(most)} tools in a request: the tool is left out`);
    } else {
      rendered.push(define(toldBySignature(tool), ofTool));
    }
    losses.push(...ofTool.found);
  }
  return { tools: rendered, losses };
}

/**
 * The registered input schema as a value.
 *
 * @throws TypeError the tool came without its schema, or with a text that is no JSON object.
 */
export function inputSchemaOf(tool: ActiveTool): JsonObject {
  if (tool.inputSchemaJson === "") {
    throw new TypeError(`${tool.modelName} came without a schema: ask for v1.Detail.SCHEMAS`);
  }
  const schema = jsonOf(tool, tool.inputSchemaJson);
  if (!isObject(schema)) {
    throw new TypeError(`${tool.modelName}: its input schema is no JSON object`);
  }
  return schema;
}

/**
 * One of a tool's JSON texts as a value.
 *
 * @throws TypeError not JSON.
 */
export function jsonOf(tool: ActiveTool, text: string): unknown {
  try {
    return parse(text);
  } catch (error) {
    throw new TypeError(`${tool.modelName}: a definition that is not JSON`, { cause: error });
  }
}

function toldBySignature(tool: ActiveTool): ActiveTool {
  if (tool.inputSchemaJson !== "" || tool.signature === "") {
    return tool;
  }
  return { ...tool, description: tool.signature, inputSchemaJson: '{"type":"object"}' };
}

/** A JSON Pointer (RFC 6901) further down. */
export function pointer(base: string, ...parts: (string | number)[]): string {
  const escaped = parts.map((part) => String(part).replaceAll("~", "~0").replaceAll("/", "~1"));
  return [base, ...escaped].join("/");
}

/** What a reference within the document names; undefined for any other reference. */
export function resolve(root: JsonObject, reference: unknown): JsonObject | undefined {
  if (reference === "#") {
    return root;
  }
  if (typeof reference !== "string" || !reference.startsWith("#/")) {
    return undefined;
  }
  let found: unknown = root;
  for (const part of reference.slice(2).split("/")) {
    const key = part.replaceAll("~1", "/").replaceAll("~0", "~");
    if (!isObject(found) || !Object.hasOwn(found, key)) return undefined;
    found = found[key];
  }
  return isObject(found) ? found : undefined;
}
