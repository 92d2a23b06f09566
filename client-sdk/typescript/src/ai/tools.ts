/** The AI SDK's tools and the catalog: registering them, and giving them their model-facing names. */
import { asSchema, type ToolSet } from "ai";

import type { Tool } from "../gen/toolgate/v1/catalog_pb.js";

/** A tool as MCP lists it. */
export interface McpDefinition {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: unknown;
}

/**
 * Tools as the body of a `tools/list`, for `registerServer`; for tools that come from no MCP server. Those that do are
 * best registered as their server lists them.
 */
export async function mcpDefinitions(tools: ToolSet): Promise<McpDefinition[]> {
  return Promise.all(
    Object.entries(tools).map(async ([name, { description = "", inputSchema }]) => ({
      name,
      description,
      inputSchema: await asSchema(inputSchema).jsonSchema,
    })),
  );
}

/**
 * The tools of one MCP server under the names that the model is to see.
 *
 * @param tools the AI SDK's tools, under the names that MCP gives them.
 * @param catalog the MCP server's tools in the catalog: `client.listTools({ server })`.
 * @throws TypeError a tool that the catalog does not have.
 */
export async function modelFacing(
  tools: ToolSet,
  catalog: AsyncIterable<Tool> | Iterable<Tool>,
): Promise<ToolSet> {
  const names = new Map<string, string>();
  for await (const { name, modelName } of catalog) names.set(name, modelName);
  const missing = Object.keys(tools).filter((name) => !names.has(name));
  if (missing.length > 0) {
    throw new TypeError(`not registered: ${missing.join(", ")}; register the MCP server first`);
  }
  return Object.fromEntries(Object.entries(tools).map(([name, tool]) => [names.get(name) ?? name, tool]));
}
