/** Writes what a search found, for the model. */
import type { ActiveTool, SearchToolsResponse } from "./gen/toolgate/v1/router_pb.js";
import { parse } from "./json.js";
import { minified } from "./texts.js";

/** Fields that are read of an answer of `searchTools`. */
export type Found = Pick<SearchToolsResponse, "tools" | "message" | "pendingServers"> &
  Partial<Pick<SearchToolsResponse, "deferredTools">>;

/** One tool for the model, as the asked detail gave it. */
export interface FoundTool {
  readonly name: string;
  readonly description?: string;
  readonly input_schema?: unknown;
  readonly signature?: string;
}

/** Result of a search, for the model. */
export interface ToolResult {
  /** The tools found. */
  readonly tools: FoundTool[];
  /** Number of tools that only a search finds. */
  readonly deferred_tools?: number;
  /** Reason why there is nothing, or not everything. */
  readonly message?: string;
  /** MCP servers that are announced but have no tools yet. */
  readonly pending_servers?: string[];
}

/** A reference that Anthropic's Messages API expands to the definition that was sent with `defer_loading`. */
export interface ToolReference {
  readonly type: "tool_reference";
  readonly tool_name: string;
}

/** The content of a tool result for Anthropic's Messages API. */
export function toToolReferences(found: Pick<SearchToolsResponse, "tools">): ToolReference[] {
  return found.tools.map(({ modelName }) => ({ type: "tool_reference", tool_name: modelName }));
}

/** A JSON object to hand to a model whose provider expands no references. */
export function toToolResult(found: Found): ToolResult {
  return { tools: found.tools.map(shown), ...beside(found) };
}

/** The same as text, with schemas byte for byte as registered, but for white space. */
export function toToolResultText(found: Found): string {
  const tools = found.tools.map(shownText).join(",");
  const more = Object.entries(beside(found)).map(([key, value]) => `,"${key}":${JSON.stringify(value)}`);
  return `{"tools":[${tools}]${more.join("")}}`;
}

function beside({ deferredTools, message, pendingServers }: Found): Omit<ToolResult, "tools"> {
  return {
    ...(deferredTools ? { deferred_tools: deferredTools } : {}),
    ...(message === "" ? {} : { message }),
    ...(pendingServers.length === 0 ? {} : { pending_servers: [...pendingServers] }),
  };
}

function shown(tool: ActiveTool): FoundTool {
  const { modelName: name, description, signature, inputSchemaJson } = tool;
  if (inputSchemaJson !== "") {
    return { name, description, input_schema: parse(inputSchemaJson) };
  }
  return signature === "" ? { name } : { name, signature };
}

function shownText(tool: ActiveTool): string {
  if (tool.inputSchemaJson === "") {
    return JSON.stringify(shown(tool));
  }
  const named = JSON.stringify({ name: tool.modelName, description: tool.description });
  return `${named.slice(0, -1)},"input_schema":${minified(tool.inputSchemaJson)}}`;
}
