/**
 * Toolgate for agents of the Vercel AI SDK; needs the package `ai`, 6 or 7.
 *
 *     const tools = await modelFacing(mcpTools, client.listTools({ server: "github" }));
 *     const toolgate = new ToolgateConversation(client, tools);
 *     await generateText({ model, prompt, stopWhen: stepCountIs(8), ...toolgate.settings() });
 */
export type { CatalogTools, McpDefinition } from "../catalog.js";
export type { Held, MiddlewareOptions, RouteDefaults } from "../middleware.js";
export type { Strategy } from "../prompting.js";
export type { Price, Report } from "../report.js";
export type { RegisterSettings, ServingOptions } from "../serving.js";
export {
  type FromMcpOptions,
  type PrepareStep,
  type RepairToolCall,
  type Settings,
  ToolgateConversation,
  type ToolgateOptions,
  ToolRefusedError,
  type UnparsedCall,
} from "./conversation.js";
export { type McpClient, type McpPage, type McpSource, McpTools } from "./mcp.js";
export { mcpDefinitions, modelFacing, RegisteredTools } from "./tools.js";
