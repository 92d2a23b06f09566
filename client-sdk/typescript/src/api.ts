/** Exports what both entries of the package have beside their `Client`. */
export { announce, type Announced, type Announcement, type Searchable } from "./announcing.js";
export * as calls from "./calls.js";
export type { RegisterRequest, RemoteClient, RequestOf } from "./client.js";
export { Conversation, type ConversationOptions, type RunTool } from "./conversation.js";
export type { TokenSource } from "./credentials.js";
export {
  type ErrorParts,
  type FieldViolation,
  type Reason,
  type StatusCode,
  ToolgateError,
} from "./errors.js";
export { toToolError, type ToolError } from "./gating.js";
export type { Api } from "./endpoint.js";
export * as layout from "./layout.js";
export type { McpClient, McpTool, McpToolsPage } from "./mcp.js";
export type { Held } from "./middleware.js";
export { answerOf, SEARCH_TOOL, type SearchAnswer, type SearchCall, type SearchTurn } from "./offering.js";
export type { CallOptions, ClientOptions, Protocol, TlsOptions } from "./options.js";
export { applyPool, type Summaries } from "./pool.js";
export {
  allOf,
  anyOf,
  cel,
  hasPriorToolOutput,
  isAuthenticated,
  milestoneReached,
  not,
} from "./preconditions.js";
export type { WholeStrategy } from "./prompting.js";
export type { ToolsList } from "./registering.js";
export { canDefer, type ModelRequest, modelRequest, renderedTools, UNSUPPORTED_MODELS } from "./rendering.js";
export type { Price, Report } from "./report.js";
export {
  type Found,
  type FoundTool,
  type ToolReference,
  type ToolResult,
  toToolReferences,
  toToolResult,
} from "./searching.js";
export type { RegisterSettings } from "./serving.js";
export { agentState, type ConversationState, type Grants } from "./state.js";
export { DEFAULT_TARGET } from "./target.js";
export * as v1 from "./v1.js";
export { VERSION } from "./version.js";
