/** A model's calls, read from the shapes that providers give them, for `gate` and `answerSearch`. */
import { create } from "@bufbuild/protobuf";

import { type RequestedCall, RequestedCallSchema } from "./gen/toolgate/v1/router_pb.js";

/**
 * A call by its parts.
 *
 * @param tool the name as the model wrote it.
 * @param args the arguments: a value, or JSON text as the model wrote it, which is passed on unread.
 * @param callId the provider's identifier of the call, handed back as it is.
 */
export function of(tool: string, args: unknown = {}, callId = ""): RequestedCall {
  const argumentsJson = typeof args === "string" ? args : JSON.stringify(args ?? {});
  return create(RequestedCallSchema, { tool, argumentsJson, callId });
}

/** A `tool_use` content block of Anthropic's Messages API. */
export function fromAnthropic(block: {
  readonly name: string;
  readonly input: unknown;
  readonly id: string;
}): RequestedCall {
  return of(block.name, block.input, block.id);
}

/** One of the `tool_calls` of OpenAI's Chat Completions API. */
export function fromOpenAI(call: {
  readonly id: string;
  readonly function: { readonly name: string; readonly arguments: string };
}): RequestedCall {
  return of(call.function.name, call.function.arguments, call.id);
}

/** A `function_call` item of OpenAI's Responses API. */
export function fromOpenAIResponses(item: {
  readonly name: string;
  readonly arguments: string;
  readonly call_id: string;
}): RequestedCall {
  return of(item.name, item.arguments, item.call_id);
}

/** A `functionCall` of Gemini's API; older models give it no identifier. */
export function fromGemini(call: {
  readonly name?: string;
  readonly args?: Record<string, unknown> | null;
  readonly id?: string | null;
}): RequestedCall {
  return of(call.name ?? "", call.args, call.id ?? "");
}
