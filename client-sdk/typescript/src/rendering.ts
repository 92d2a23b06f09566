/** Tools in the format of a provider's API, as the service renders them. */
import type { RenderedTools } from "./gen/toolgate/v1/router_pb.js";
import type { JsonObject } from "./json.js";
import { parse } from "./json.js";

/** Parts of the names of models that take no `defer_loading`. A model not named here takes it. */
export const UNSUPPORTED_MODELS: readonly string[] = ["haiku", "claude-2", "claude-3", "claude-instant"];

/**
 * The definitions of a rendered answer, to send as `tools` of a provider's request. The same tools give the same text
 * (by `JSON.stringify`), so that prompt caches hold. Numbers are JavaScript's: 1.50 comes out as 1.5.
 *
 *     const render = { format: v1.ToolFormat.ANTHROPIC };
 *     const turn = await client.route({ intents: [{ text: "what did I promise the team?" }], render });
 *     const tools = renderedTools<Anthropic.Tool>(turn);
 *
 * `turn.rendered.losses` says what the provider's format can't. Gate still holds calls to the registered schema.
 *
 * @throws TypeError the request had no `render`.
 */
export function renderedTools<T = JsonObject>(answer: {
  readonly rendered?: RenderedTools | undefined;
}): T[] {
  if (answer.rendered === undefined) {
    throw new TypeError(
      "the tools were not rendered: set `render` in the request, such as { format: v1.ToolFormat.MCP }",
    );
  }
  return parse(answer.rendered.toolsJson) as T[];
}

/**
 * Whether a model takes `defer_loading` and `tool_reference`.
 *
 * @param unsupported Parts of the names of models that don't.
 */
export function canDefer(model: string, unsupported: readonly string[] = UNSUPPORTED_MODELS): boolean {
  return !unsupported.some((part) => model.toLowerCase().includes(part.toLowerCase()));
}
