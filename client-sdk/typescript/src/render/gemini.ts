/** Function declarations for Gemini, whose schemas are a subset of OpenAPI 3.0's. */
import type { ActiveTool } from "../gen/toolgate/v1/router_pb.js";
import { has, type JsonObject } from "../json.js";
import { Converter } from "./gemini-schema.js";
import { plainRoot } from "./root.js";
import { inputSchemaOf, type Losses, type Rendered, renderEach } from "./schema.js";

/** A function declaration of Gemini's API. */
export interface GeminiFunction {
  readonly name: string;
  readonly description?: string;
  readonly parameters?: JsonObject;
}

// The API takes longer names and more characters; older models do not.
const NAME = /^[A-Za-z_][A-Za-z0-9_.-]{0,63}$/;

const MOST = 512;

/**
 * The active set as `functionDeclarations`, to be sent as `[{ functionDeclarations: [...] }]`.
 *
 * Schemas are rewritten in Gemini's subset; every keyword that it can't say is among the losses. Models that take
 * full JSON Schema (`parametersJsonSchema`) don't need this. A request takes 512 declarations: later ones are left
 * out, and among the losses.
 *
 * @param tools tools with full schemas.
 * @throws TypeError a tool without its schema.
 */
export function gemini(tools: Iterable<ActiveTool>): Rendered<GeminiFunction> {
  return renderEach(tools, NAME, declare, MOST);
}

function declare(tool: ActiveTool, losses: Losses): GeminiFunction {
  const schema = plainRoot(inputSchemaOf(tool), [], losses);
  const parameters = new Converter(schema, losses).convert(schema);
  return {
    name: tool.modelName,
    ...(tool.description === "" ? {} : { description: tool.description }),
    ...(has(parameters, "properties") ? { parameters } : {}),
  };
}
