/** Tools in the format of a provider's API, as the service renders them. */
import type { PromptStrategy, RenderedTools, StrategyReason } from "./gen/toolgate/v1/router_pb.js";
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

/** Request to send to the model this turn. */
export interface ModelRequest<T = JsonObject, M = JsonObject> {
  /** The definitions, for `tools`; the agent's own first. For Gemini: `functionDeclarations`. */
  readonly tools: T[];
  /** The messages: the agent's, with what was added in its place. The agent keeps its own without the additions. */
  readonly messages: M[];
  /** Names of betas that the request needs, for the header `anthropic-beta`; empty: none. */
  readonly betas: readonly string[];
  /** Record of what was added, and where: `render.ledger` of the next turn. Opaque. */
  readonly ledger: string;
  /** The strategy that was used. */
  readonly strategy: PromptStrategy;
  /** The reason for it. */
  readonly reason: StrategyReason;
  /** The same for a reader. */
  readonly reasonMessage: string;
}

/**
 * Reads what to send to the model this turn, by a strategy.
 *
 *     const turn = await client.route({
 *       intents: [{ text }],
 *       activeSetHandle: handle,
 *       state: { messagesJson: JSON.stringify(messages) },
 *       render: { format: v1.ToolFormat.ANTHROPIC, strategy: v1.PromptStrategy.AUTO, searchTool: true, ledger },
 *     });
 *     const request = modelRequest<BetaToolUnion, BetaMessageParam>(turn);
 *     anthropic.beta.messages.create({ tools: request.tools, messages: request.messages, ... });
 *
 * @throws TypeError the request had no `render.strategy`.
 */
export function modelRequest<T = JsonObject, M = JsonObject>(turn: {
  readonly rendered?: RenderedTools | undefined;
}): ModelRequest<T, M> {
  const { rendered } = turn;
  if (rendered === undefined || rendered.messagesJson === "") {
    throw new TypeError(
      "no strategy was asked for: set `render.strategy` in the request, such as v1.PromptStrategy.AUTO",
    );
  }
  return {
    tools: parse(rendered.toolsJson) as T[],
    messages: parse(rendered.messagesJson) as M[],
    betas: rendered.betas,
    ledger: rendered.ledger,
    strategy: rendered.strategy,
    reason: rendered.reason,
    reasonMessage: rendered.reasonMessage,
  };
}

/**
 * Tells whether a model takes `defer_loading` and `tool_reference`.
 *
 * @param unsupported Parts of the names of models that don't.
 */
export function canDefer(model: string, unsupported: readonly string[] = UNSUPPORTED_MODELS): boolean {
  return !unsupported.some((part) => model.toLowerCase().includes(part.toLowerCase()));
}
