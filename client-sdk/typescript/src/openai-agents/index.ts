/**
 * Toolgate for agents of the OpenAI Agents SDK; needs the package `@openai/agents` and `zod`.
 *
 *     const toolgate = await ToolgateConversation.fromMcp(client, { git: server });
 *     const result = await run(toolgate.agent(agent), "what changed since yesterday?");
 */
export type { CatalogTools, McpDefinition } from "../catalog.js";
export type { Held, MiddlewareOptions, RouteDefaults } from "../middleware.js";
export type { Strategy } from "../prompting.js";
export type { Price, Report } from "../report.js";
export type { RegisterSettings, ServingOptions } from "../serving.js";
export { type FromMcpOptions, ToolgateConversation, type ToolgateOptions } from "./conversation.js";
export { McpTools } from "./mcp.js";
export { mcpDefinitions, modelFacing, RegisteredTools } from "./tools.js";
