/**
 * Toolgate for LangChain 1.x agents; needs `langchain`, `@langchain/core`, `@langchain/langgraph` and `zod`.
 *
 *     const tools = await modelFacing(mcpTools, client.listTools({ server: "github" }));
 *     const agent = createAgent({ model, middleware: [toolgateMiddleware(client, tools)] });
 *
 * or, over MCP servers, `middleware: [await fromMcp(client, { github: mcp })]`. Graphs of LangGraph without `createAgent` take the
 * same steps as nodes: `modelNode`, `toolNode` and `callsCondition`.
 */
export type { CatalogTools, McpDefinition } from "../catalog.js";
export type { McpClient, McpTool, McpToolsPage } from "../mcp.js";
export type { Held, MiddlewareOptions, RouteDefaults } from "../middleware.js";
export type { Strategy } from "../prompting.js";
export type { Price, Report } from "../report.js";
export type { RegisterSettings, ServingOptions } from "../serving.js";
export { callsCondition, modelNode, type ModelNodeOptions, toolNode, ToolgateState } from "./graph.js";
export { fromMcp, fromTools, type ToolgateMiddleware, toolgateMiddleware } from "./middleware.js";
export type { Asked, FromMcpOptions, ToolgateMiddlewareOptions } from "./options.js";
export { mcpDefinitions, modelFacing } from "./tools.js";
