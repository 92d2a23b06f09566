/** Answers of the talks' scripted model, as each provider's API has them. */
import type { Api } from "@toolgate/client";

/** A call of a tool; undefined: the model answers in words. */
export type Call = { readonly name: string; readonly args: object } | undefined;

/** The APIs, by what their paths end with. */
const PATHS: Readonly<Record<string, Api>> = {
  "/chat/completions": "openai_chat",
  "/responses": "openai_responses",
  "/messages": "anthropic",
};

/** Returns the API that is asked at a URL. */
export function apiOf(url: string): Api {
  const found = Object.entries(PATHS).find(([end]) => new URL(url).pathname.endsWith(end));
  if (found === undefined) throw new Error(`no API of the script is asked at ${url}`);
  return found[1];
}

/** Returns an answer with a call, or with a text; its number in the conversation is in its identifiers. */
export function answered(api: Api, call: Call, text: string, number: number): object {
  const id = `call_${String(number)}`;
  if (api === "anthropic") return message(call, text, id);
  return api === "openai_responses" ? response(call, text, id) : completion(call, text, id);
}

function completion(call: Call, text: string, id: string): object {
  const made = {
    type: "function",
    id,
    function: { name: call?.name, arguments: JSON.stringify(call?.args) },
  };
  const said = call === undefined ? { content: text } : { content: null, tool_calls: [made] };
  const reason = call === undefined ? "stop" : "tool_calls";
  const choice = { index: 0, message: { role: "assistant", ...said }, finish_reason: reason };
  const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
  const answer = { id: `chat_${id}`, object: "chat.completion", created: 1, model: "gpt" };
  return { ...answer, choices: [choice], usage };
}

function response(call: Call, text: string, id: string): object {
  const content = [{ type: "output_text", text, annotations: [] }];
  const words = { type: "message", id: `msg_${id}`, role: "assistant", content };
  const made = { type: "function_call", id: `fc_${id}`, call_id: id, name: call?.name };
  const item = call === undefined ? words : { ...made, arguments: JSON.stringify(call.args) };
  const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2 };
  const answer = { id: `response_${id}`, object: "response", created_at: 1, model: "gpt", usage };
  return { ...answer, status: "completed", output: [{ ...item, status: "completed" }] };
}

function message(call: Call, text: string, id: string): object {
  const words = { type: "text", text };
  const block = call === undefined ? words : { type: "tool_use", id, name: call.name, input: call.args };
  const answer = { id: `message_${id}`, type: "message", role: "assistant", model: "claude" };
  const reason = call === undefined ? "end_turn" : "tool_use";
  const usage = { input_tokens: 1, output_tokens: 1 };
  return { ...answer, content: [block], stop_reason: reason, stop_sequence: null, usage };
}
