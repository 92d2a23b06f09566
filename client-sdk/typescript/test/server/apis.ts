/** Providers' APIs by scripts, for clients that take a `fetch`, and what they were asked. */
import { type Line, type Reply, stepOf } from "./anthropic-api.js";

/** A request as it came. */
export interface Asked {
  readonly url: string;
  readonly body: Readonly<Record<string, unknown>>;
}

type Answer = (step: Line, number: number) => object;

function scripted(script: readonly (Line | Reply)[], answer: Answer) {
  const asked: Asked[] = [];
  const fetch = (url: unknown, init?: RequestInit): Promise<Response> => {
    // A client may give the whole request.
    const whole = url instanceof Request ? url.clone() : new Request(String(url), init);
    return whole.text().then((text) => {
      const body = JSON.parse(text) as Asked["body"];
      const step = stepOf(script[asked.length], body);
      asked.push({ url: whole.url, body });
      return Response.json(answer(step, asked.length));
    });
  };
  return { fetch, asked };
}

/** OpenAI's Chat Completions. */
export function chatApi(...script: readonly (Line | Reply)[]) {
  return scripted(script, (step, at) => {
    const [name, args] = typeof step === "string" ? ["", {}] : step;
    const call = { id: `call_${String(at)}`, type: "function" };
    const made = { ...call, function: { name, arguments: JSON.stringify(args) } };
    const said = typeof step === "string" ? { content: step } : { content: null, tool_calls: [made] };
    const finish = typeof step === "string" ? "stop" : "tool_calls";
    const choice = { index: 0, message: { role: "assistant", ...said }, finish_reason: finish };
    const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
    const answer = { id: `chat_${String(at)}`, object: "chat.completion", created: 1, model: "gpt-6.1" };
    return { ...answer, choices: [choice], usage };
  });
}

/** OpenAI's Responses. */
export function responsesApi(...script: readonly (Line | Reply)[]) {
  return scripted(script, (step, at) => {
    const number = String(at);
    const said = { type: "output_text", text: step, annotations: [] };
    const message = { type: "message", id: `msg_${number}`, role: "assistant", content: [said] };
    const [name, args] = typeof step === "string" ? ["", {}] : step;
    const call = { type: "function_call", id: `fc_${number}`, call_id: `call_${number}`, name };
    const item = typeof step === "string" ? message : { ...call, arguments: JSON.stringify(args) };
    const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2 };
    const answer = { id: `resp_${number}`, object: "response", created_at: 1, model: "gpt-6.1", usage };
    return { ...answer, status: "completed", output: [{ ...item, status: "completed" }] };
  });
}

/** Gemini's `generateContent`. */
export function geminiApi(...script: readonly (Line | Reply)[]) {
  return scripted(script, (step) => {
    const part =
      typeof step === "string" ? { text: step } : { functionCall: { name: step[0], args: step[1] } };
    const content = { role: "model", parts: [part] };
    const usage = { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 };
    return { candidates: [{ content, finishReason: "STOP", index: 0 }], usageMetadata: usage };
  });
}
