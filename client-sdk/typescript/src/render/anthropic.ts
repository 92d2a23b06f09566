/** Definitions for Anthropic's Messages API. */
import type { ActiveTool } from "../gen/toolgate/v1/router_pb.js";
import { get, type JsonObject, listOf, objectOf, pick } from "../json.js";
import { plainRoot } from "./root.js";
import { inputSchemaOf, type Losses, pointer, type Rendered, renderEach } from "./schema.js";

/** Parts of the names of models that take no `defer_loading`. A model not named here takes it. */
export const UNSUPPORTED_MODELS: readonly string[] = ["haiku", "claude-2", "claude-3", "claude-instant"];

/** One of Anthropic's own searches. */
export type SearchTool = "bm25" | "regex";

/** How to render for Anthropic. */
export interface AnthropicOptions {
  /** Tools that the model sees once a search or a `tool_reference` has loaded them. Default: none. */
  readonly deferred?: Iterable<ActiveTool>;
  /** The model that will see the tools. Default: unknown, which can defer. */
  readonly model?: string;
  /** Which search to send with deferred tools; null: the caller has one of its own. Default: "bm25". */
  readonly searchTool?: SearchTool | null;
  /** Parts of the names of models that can't defer. Default: `UNSUPPORTED_MODELS`. */
  readonly unsupported?: readonly string[];
  /** Whether the last loaded tool ends a cached prefix; deferred tools are outside of it. Default: false. */
  readonly cacheBreakpoint?: boolean;
}

/** A tool as the Messages API takes it. */
export interface AnthropicTool {
  readonly name: string;
  readonly description?: string;
  readonly input_schema: { type: "object"; [keyword: string]: unknown };
  readonly defer_loading?: boolean;
  readonly cache_control?: { readonly type: "ephemeral" };
}

/** Anthropic's own search as the Messages API takes it. */
export type AnthropicSearch = {
  [K in SearchTool]: {
    readonly type: `tool_search_tool_${K}_20251119`;
    readonly name: `tool_search_tool_${K}`;
    readonly cache_control?: { readonly type: "ephemeral" };
  };
}[SearchTool];

const NAME = /^[A-Za-z0-9_-]{1,128}$/;
const PROPERTY = /^[A-Za-z0-9_.-]{1,64}$/;

/** Whether a model takes `defer_loading` and `tool_reference`, by a list of those that don't. */
export function canDefer(model: string, unsupported: readonly string[] = UNSUPPORTED_MODELS): boolean {
  return !unsupported.some((part) => model.toLowerCase().includes(part.toLowerCase()));
}

/**
 * The active set as `tools` of the Messages API: the tool search, loaded tools, deferred ones.
 *
 * Where the model can't defer, deferred tools are sent as loaded ones and no tool search is sent: rather too much
 * than a tool too few. A tool that is in both lists is loaded.
 *
 * @param tools tools that the model sees from the start, with full schemas.
 * @throws TypeError a tool without its schema.
 */
export function anthropic(
  tools: Iterable<ActiveTool>,
  options: AnthropicOptions = {},
): Rendered<AnthropicTool | AnthropicSearch> {
  const { deferred = [], model = "", searchTool = "bm25", unsupported, cacheBreakpoint = false } = options;
  const loaded = renderEach(tools, NAME, define);
  const names = new Set(loaded.tools.map(({ name }) => name));
  const later = renderEach(
    [...deferred].filter(({ modelName }) => !names.has(modelName)),
    NAME,
    define,
  );
  const defers = canDefer(model, unsupported);
  const search = defers && later.tools.length > 0 && searchTool !== null ? [searchOf(searchTool)] : [];
  const seen = defers ? [...search, ...loaded.tools] : [...loaded.tools, ...later.tools];
  const hidden = defers ? later.tools.map((tool) => ({ ...tool, defer_loading: true })) : [];
  return {
    tools: [...(cacheBreakpoint ? withBreakpoint(seen) : seen), ...hidden],
    losses: [...loaded.losses, ...later.losses],
  };
}

function withBreakpoint<T extends AnthropicTool | AnthropicSearch>(seen: readonly T[]): T[] {
  const cached = { cache_control: { type: "ephemeral" } } as const;
  return seen.map((tool, at) => (at === seen.length - 1 ? { ...tool, ...cached } : tool));
}

function searchOf(kind: SearchTool): AnthropicSearch {
  return kind === "bm25"
    ? { type: "tool_search_tool_bm25_20251119", name: "tool_search_tool_bm25" }
    : { type: "tool_search_tool_regex_20251119", name: "tool_search_tool_regex" };
}

function define(tool: ActiveTool, losses: Losses): AnthropicTool {
  const plain = plainRoot(inputSchemaOf(tool), [], losses);
  return {
    name: tool.modelName,
    ...(tool.description === "" ? {} : { description: tool.description }),
    input_schema: withoutRefusedProperties(plain, losses) as AnthropicTool["input_schema"],
  };
}

function withoutRefusedProperties(schema: JsonObject, losses: Losses): JsonObject {
  const properties = objectOf(get(schema, "properties"));
  const refused = new Set(Object.keys(properties).filter((name) => !PROPERTY.test(name)));
  if (refused.size === 0) {
    return schema;
  }
  for (const name of refused) {
    losses.add(pointer("", "properties", name), "properties", "dropped: not taken as a name");
  }
  const required = listOf(get(schema, "required")).filter((name) => !refused.has(name as string));
  return { ...schema, properties: pick(properties, (name) => !refused.has(name)), required };
}
