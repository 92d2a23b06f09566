/** A framework's tools and the catalog: what they are registered as, and the names that the model is to see. */
import type { Tool } from "./gen/toolgate/v1/catalog_pb.js";

/** A tool as MCP lists it. */
export interface McpDefinition {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: unknown;
}

/** The tools of an MCP server, as `client.listTools({ server })` gives them. */
export type CatalogTools = AsyncIterable<Tool> | Iterable<Tool>;

/**
 * The model-facing name of each tool that is listed, by its MCP name.
 *
 * @throws TypeError a tool that the catalog does not have.
 */
export async function modelNames(
  listed: readonly string[],
  catalog: CatalogTools,
): Promise<(name: string) => string> {
  const names = new Map<string, string>();
  for await (const { name, modelName } of catalog) names.set(name, modelName);
  const missing = listed.filter((name) => !names.has(name));
  if (missing.length > 0) {
    throw new TypeError(`not registered: ${missing.join(", ")}; register the MCP server first`);
  }
  return (name) => names.get(name) ?? name;
}
