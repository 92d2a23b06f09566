/** LangChain's tools and the catalog: registering them, and giving them their model-facing names. */
import { DynamicStructuredTool, type StructuredToolInterface } from "@langchain/core/tools";
import { convertToOpenAITool } from "@langchain/core/utils/function_calling";

import { type CatalogTools, type McpDefinition, modelNames } from "../catalog.js";
import { SEARCH_TOOL } from "../offering.js";

/**
 * Tools as the body of a `tools/list`, for `registerServer`; for tools that come from no MCP server. Those that do are
 * best registered as their server lists them.
 */
export function mcpDefinitions(tools: Iterable<StructuredToolInterface>): McpDefinition[] {
  return Array.from(tools, (tool) => {
    const { name, description = "", parameters } = convertToOpenAITool(tool).function;
    return { name, description, inputSchema: parameters };
  });
}

/**
 * Copies of the tools of one MCP server, under the names that the model is to see.
 *
 * @param tools LangChain's tools, named as MCP names them.
 * @param catalog the MCP server's tools in the catalog: `client.listTools({ server })`.
 * @throws TypeError a tool that the catalog does not have.
 */
export async function modelFacing<T extends StructuredToolInterface>(
  tools: Iterable<T>,
  catalog: CatalogTools,
): Promise<T[]> {
  const listed = [...tools];
  const names = listed.map(({ name }) => name);
  const nameOf = await modelNames(names, catalog);
  return listed.map((tool) => renamed(tool, nameOf(tool.name)));
}

/** The search as LangChain's tool, for the model to see; the middleware answers its calls. */
export function searchTool(): StructuredToolInterface {
  return new DynamicStructuredTool({
    name: SEARCH_TOOL.modelName,
    description: SEARCH_TOOL.description,
    schema: JSON.parse(SEARCH_TOOL.inputSchemaJson) as object,
    func: () => Promise.reject(new Error("the search is answered by toolgateMiddleware, within an agent")),
  });
}

function renamed<T extends object>(tool: T, name: string): T {
  const copy = Object.create(Object.getPrototypeOf(tool) as object) as T;
  return Object.assign(copy, tool, { name });
}
