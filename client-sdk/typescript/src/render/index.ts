/**
 * The active set in the shape that a provider's API takes. Rendering the same tools gives the same bytes (by
 * `JSON.stringify`), so that prompt caches hold.
 *
 *     const turn = await client.route({ intents: [{ text: "what did I promise the team?" }] });
 *     const { tools, losses } = render.gemini(turn.activeTools);
 *
 * Numbers are JavaScript's: 1.50 comes out as 1.5, and integers beyond 2^53 are rounded.
 */
export {
  anthropic,
  type AnthropicOptions,
  type AnthropicSearch,
  type AnthropicTool,
  canDefer,
  type SearchTool,
  UNSUPPORTED_MODELS,
} from "./anthropic.js";
export { gemini, type GeminiFunction } from "./gemini.js";
export { mcp, type McpTool } from "./mcp.js";
export {
  openaiChat,
  type OpenAIChatTool,
  type OpenAIFunction,
  openaiResponses,
  type OpenAIResponsesTool,
} from "./openai.js";
export type { Loss, Rendered } from "./schema.js";
