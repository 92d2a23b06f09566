/** LangChain's tools and the catalog: registering them, giving them their model-facing names, and running new ones. */
import { ToolMessage } from "@langchain/core/messages";
import { DynamicStructuredTool, type StructuredToolInterface } from "@langchain/core/tools";
import { convertToOpenAITool } from "@langchain/core/utils/function_calling";
import { isGraphBubbleUp } from "@langchain/langgraph";
import type { AgentMiddleware } from "langchain";

import { type CatalogTools, type McpDefinition, modelNames } from "../catalog.js";
import type { ServedServers } from "../serving.js";
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

/**
 * Registers tools that come from no MCP server; gives copies of them under the names that the model is to see. Those that are
 * rejected or wait for approval are left out.
 *
 * @throws ToolgateError a registration failed.
 */
export async function registered(
  served: ServedServers,
  sets: Readonly<Record<string, readonly StructuredToolInterface[]>>,
): Promise<StructuredToolInterface[]> {
  const tools: StructuredToolInterface[] = [];
  for (const [server, set] of Object.entries(sets)) {
    const names = await served.register(server, mcpDefinitions(set));
    for (const tool of set) {
      const modelName = names.get(tool.name);
      if (modelName !== undefined) tools.push(renamed(tool, modelName));
    }
  }
  return tools;
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

/** Brands of errors that LangChain itself treats: of arguments that don't fit, and of other middleware. */
const LEFT: readonly unknown[] = ["ToolInvocationError", "MiddlewareError"];

/**
 * A `wrapToolCall` that runs tools which the agent was not made with. Errors of tools are answers, in LangChain's own words:
 * beside a `wrapToolCall` they would end the run.
 */
export function answeringErrors(
  toolOf: (name: string) => StructuredToolInterface | undefined,
): NonNullable<AgentMiddleware["wrapToolCall"]> {
  return async (request, handler) => {
    const { toolCall, runtime } = request;
    const tool = toolOf(toolCall.name);
    try {
      return await handler(tool === undefined ? request : { ...request, tool });
    } catch (error) {
      const isLeft = LEFT.includes((error as { "~brand"?: unknown } | undefined)?.["~brand"]);
      if (isLeft || isGraphBubbleUp(error) || runtime.signal?.aborted === true) throw error;
      return new ToolMessage({
        content: `${String(error)}\n Please fix your mistakes.`,
        tool_call_id: toolCall.id ?? "",
        name: toolCall.name,
        status: "error",
      });
    }
  };
}

function renamed<T extends object>(tool: T, name: string): T {
  const copy = Object.create(Object.getPrototypeOf(tool) as object) as T;
  return Object.assign(copy, tool, { name });
}
