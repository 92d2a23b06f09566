/** Definitions in the shape of an MCP server's `tools/list`. */
import type { ActiveTool } from "../gen/toolgate/v1/router_pb.js";
import type { JsonObject } from "../json.js";
import { inputSchemaOf, jsonOf, type Rendered, renderEach } from "./schema.js";

/** A tool as MCP lists it. */
export interface McpTool {
  readonly name: string;
  readonly description?: string;
  readonly inputSchema: JsonObject;
  readonly outputSchema?: unknown;
  readonly annotations?: unknown;
}

const NAME = /^.+$/s;

/**
 * The active set as `tools` of an answer to `tools/list`, under model-facing names.
 *
 * Schemas and annotations are as registered; MCP's `title`, `icons` and `_meta` are not part of an active set.
 *
 * @param tools tools with full schemas.
 * @throws TypeError a tool without its schema.
 */
export function mcp(tools: Iterable<ActiveTool>): Rendered<McpTool> {
  return renderEach(tools, NAME, (tool) => ({
    name: tool.modelName,
    ...(tool.description === "" ? {} : { description: tool.description }),
    inputSchema: inputSchemaOf(tool),
    ...(tool.outputSchemaJson === "" ? {} : { outputSchema: jsonOf(tool, tool.outputSchemaJson) }),
    ...(tool.annotationsJson === "" ? {} : { annotations: jsonOf(tool, tool.annotationsJson) }),
  }));
}
