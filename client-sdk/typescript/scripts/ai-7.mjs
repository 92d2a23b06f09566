// For `node --import`: has the package `ai` mean its version 7, and its MCP client and providers those for it, so that the same tests run with both.
import { register } from "node:module";

register(
  `data:text/javascript,${encodeURIComponent(`
    const names = { ai: "ai-7", "ai/test": "ai-7/test", "@ai-sdk/anthropic": "ai-anthropic-7", "@ai-sdk/google": "ai-google-7", "@ai-sdk/openai": "ai-openai-7", "@ai-sdk/mcp": "ai-mcp-7", "@ai-sdk/mcp/mcp-stdio": "ai-mcp-7/mcp-stdio" };
    export const resolve = (name, context, next) => next(names[name] ?? name, context);
  `)}`,
);
