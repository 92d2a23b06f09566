/** What one entry of a history says, whichever API it belongs to: who speaks, finds, calls and answers. */
import { has, type JsonObject, listOf } from "../json.js";
import { blocks, fields, first, name, saysError, text } from "./reading.js";

/** One thing that an entry says. A key pairs a call with its answer; without one the answer comes next. */
export type Event =
  | { readonly kind: "spoke"; readonly model: boolean }
  | { readonly kind: "found"; readonly tool: string }
  | { readonly kind: "called"; readonly key: string | undefined; readonly tool: string }
  | {
      readonly kind: "answered";
      readonly key: string | undefined;
      readonly failed: boolean;
      readonly content?: unknown;
    };

type Events = Iterable<Event>;

const MODEL_ROLES = new Set(["assistant", "model"]);

/** The events of one message, Responses item or JSON-RPC message; none for anything else. */
export function* read(entry: unknown): Events {
  const values = fields(entry);
  const kind = text(values["type"]);
  const role = text(values["role"]);
  const reader = RESPONSES_ITEMS.get(kind);
  if (reader !== undefined) {
    yield* reader(values);
  } else if (role !== "") {
    yield* message(role, values);
  } else if (has(values, "method") || has(values, "jsonrpc")) {
    yield* jsonRpc(values);
  } else if (kind === "" && Array.isArray(values["content"])) {
    yield* mcpResult(undefined, values);
  }
}

function* message(role: string, values: JsonObject): Events {
  yield spoke(MODEL_ROLES.has(role));
  const content = values["content"];
  for (const inner of blocks(content)) {
    yield* block(fields(inner));
  }
  for (const call of listOf(values["tool_calls"])) {
    yield* chatCall(fields(call));
  }
  if (role === "tool") {
    const failed = values["status"] === "error" || saysError(content);
    yield { kind: "answered", key: key(values["tool_call_id"]), failed, content };
  }
}

function* block(values: JsonObject): Events {
  switch (values["type"]) {
    case "tool_use":
    case "mcp_tool_use":
      yield* called(values["id"], values["name"]);
      break;
    case "tool_result":
    case "mcp_tool_result":
      yield* toolResult(values);
      break;
    case "tool_search_tool_result":
      for (const reference of listOf(fields(values["content"])["tool_references"])) {
        yield* found(fields(reference)["tool_name"]);
      }
  }
}

function* toolResult(values: JsonObject): Events {
  const content = values["content"];
  for (const item of listOf(content)) {
    const inner = fields(item);
    if (inner["type"] === "tool_reference") {
      yield* found(inner["tool_name"]);
    }
  }
  const flag = first(values, "is_error", "isError");
  const failed = flag === undefined ? saysError(content) : flag !== false;
  yield { kind: "answered", key: key(first(values, "tool_use_id", "toolUseId")), failed, content };
}

function* chatCall(call: JsonObject): Events {
  const inner = fields(first(call, "function", "custom"));
  yield* called(call["id"], inner["name"]);
}

function* functionCall(item: JsonObject): Events {
  yield spoke(true);
  yield* called(item["call_id"], item["name"]);
}

function* functionCallOutput(item: JsonObject): Events {
  yield spoke(false);
  const content = item["output"];
  yield { kind: "answered", key: key(item["call_id"]), failed: saysError(content), content };
}

function* hostedMcpCall(item: JsonObject): Events {
  const { id, error, status, output } = item;
  yield* functionCall({ ...item, call_id: id });
  const failed = (error !== undefined && error !== null) || status === "failed";
  if (failed || (output !== undefined && output !== null)) {
    yield { kind: "answered", key: key(id), failed, content: output };
  }
}

function* loadedTools(item: JsonObject): Events {
  for (const tool of listOf(item["tools"])) {
    const values = fields(tool);
    const isNamespace = values["type"] === "namespace";
    for (const inner of isNamespace ? listOf(values["tools"]) : [values]) {
      yield* found(fields(inner)["name"]);
    }
  }
}

function modelsOwn(): Events {
  return [spoke(true)];
}

const RESPONSES_ITEMS = new Map<string, (item: JsonObject) => Events>([
  ["function_call", functionCall],
  ["custom_tool_call", functionCall],
  ["function_call_output", functionCallOutput],
  ["custom_tool_call_output", functionCallOutput],
  ["mcp_call", hostedMcpCall],
  ["tool_search_call", modelsOwn],
  ["reasoning", modelsOwn],
  // These stand among the model's items or among ours; they belong to neither's turn.
  ["tool_search_output", loadedTools],
  ["additional_tools", loadedTools],
]);

function* jsonRpc(values: JsonObject): Events {
  const id = values["id"];
  const isId = typeof id === "string" || Number.isInteger(id);
  const paired = isId ? `json-rpc:${String(id)}` : undefined;
  const error = values["error"];
  if (values["method"] === "tools/call") {
    yield spoke(true);
    const tool = name(fields(values["params"])["name"]);
    if (tool !== "") yield { kind: "called", key: paired, tool };
  } else if (error !== undefined && error !== null) {
    yield spoke(false);
    yield { kind: "answered", key: paired, failed: true };
  } else if (has(values, "result")) {
    yield* mcpResult(paired, fields(values["result"]));
  }
}

function* mcpResult(paired: string | undefined, result: JsonObject): Events {
  yield spoke(false);
  const flag = first(result, "isError", "is_error");
  const failed = flag !== undefined && flag !== false;
  yield { kind: "answered", key: paired, failed, content: result["content"] };
}

function spoke(model: boolean): Event {
  return { kind: "spoke", model };
}

function* called(id: unknown, tool: unknown): Events {
  const named = name(tool);
  if (named !== "") yield { kind: "called", key: key(id), tool: named };
}

function* found(tool: unknown): Events {
  const named = name(tool);
  if (named !== "") yield { kind: "found", tool: named };
}

function key(value: unknown): string | undefined {
  return text(value) || undefined;
}
