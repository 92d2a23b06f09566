/** Streams of providers' APIs by a script, for clients that take a `fetch`: a call or a text comes in pieces. */
import type { Line } from "./anthropic-api.js";

type Events = readonly (readonly [event: string, data: object])[];

/** Halves of a text. */
function halves(text: string): [string, string] {
  const middle = Math.ceil(text.length / 2);
  return [text.slice(0, middle), text.slice(middle)];
}

/** Answers by a script as server-sent events; `bodies` has the requests. */
function streaming(script: readonly Line[], events: (step: Line, number: string) => Events, end = "") {
  const bodies: Record<string, unknown>[] = [];
  const fetch = async (url: unknown, init?: RequestInit): Promise<Response> => {
    const whole = url instanceof Request ? url.clone() : new Request(String(url), init);
    bodies.push(JSON.parse(await whole.text()) as Record<string, unknown>);
    const said = events(script[bodies.length - 1] ?? "", String(bodies.length));
    const lines = said.map(([event, data]) => {
      return (event === "" ? "" : `event: ${event}\n`) + `data: ${JSON.stringify(data)}\n\n`;
    });
    return new Response(lines.join("") + end, { headers: { "content-type": "text/event-stream" } });
  };
  return { fetch, bodies };
}

/** Anthropic's Messages. */
export function anthropicStream(...script: readonly Line[]) {
  return streaming(script, (step, number) => {
    const isText = typeof step === "string";
    const usage = { input_tokens: 1, output_tokens: 1 };
    const message = {
      id: `msg_${number}`,
      type: "message",
      role: "assistant",
      model: "claude-opus-5-5",
      usage,
    };
    const use = { type: "tool_use", id: `toolu_${number}`, name: step[0], input: {} };
    const block = isText ? { type: "text", text: "" } : use;
    const pieces = halves(isText ? step : JSON.stringify(step[1]));
    const stop_reason = isText ? "end_turn" : "tool_use";
    const deltas = pieces.map((piece) => {
      return isText ? { type: "text_delta", text: piece } : { type: "input_json_delta", partial_json: piece };
    });
    const events = [
      { type: "message_start", message: { ...message, content: [], stop_reason: null, stop_sequence: null } },
      { type: "content_block_start", index: 0, content_block: block },
      ...deltas.map((delta) => ({ type: "content_block_delta", index: 0, delta })),
      { type: "content_block_stop", index: 0 },
      { type: "message_delta", delta: { stop_reason, stop_sequence: null }, usage },
      { type: "message_stop" },
    ];
    return events.map((event) => [event.type, event] as const);
  });
}

/** OpenAI's Chat Completions. */
export function chatStream(...script: readonly Line[]) {
  const events = (step: Line, number: string): Events => {
    const isText = typeof step === "string";
    const [first, second] = halves(isText ? step : JSON.stringify(step[1]));
    const begun = { index: 0, id: `call_${number}`, type: "function" };
    const deltas = isText
      ? [{ role: "assistant", content: first }, { content: second }]
      : [
          {
            ...{ role: "assistant", content: null },
            tool_calls: [{ ...begun, function: { name: step[0], arguments: first } }],
          },
          { tool_calls: [{ index: 0, function: { arguments: second } }] },
        ];
    const chunk = { id: `chat_${number}`, object: "chat.completion.chunk", created: 1, model: "gpt-6.1" };
    const choices = deltas.map((delta) => ({ index: 0, delta, finish_reason: null as string | null }));
    choices.push({ index: 0, delta: {} as never, finish_reason: isText ? "stop" : "tool_calls" });
    return choices.map((choice) => ["", { ...chunk, choices: [choice] }] as const);
  };
  return streaming(script, events, "data: [DONE]\n\n");
}

/** OpenAI's Responses. */
export function responsesStream(...script: readonly Line[]) {
  return streaming(script, (step, number) => {
    const isText = typeof step === "string";
    const text = isText ? step : JSON.stringify(step[1]);
    const content = [{ type: "output_text", text, annotations: [] }];
    const message = { type: "message", id: `msg_${number}`, role: "assistant", content };
    const call = { type: "function_call", id: `fc_${number}`, call_id: `call_${number}`, name: step[0] };
    const item = { ...(isText ? message : { ...call, arguments: text }), status: "completed" };
    const begun = isText ? { ...item, content: [] } : { ...item, arguments: "" };
    const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2 };
    const response = { id: `resp_${number}`, object: "response", created_at: 1, model: "gpt-6.1", usage };
    const at = { item_id: item.id, output_index: 0, content_index: 0 };
    const part = { type: "output_text", text: "", annotations: [] };
    const kind = isText ? "response.output_text.delta" : "response.function_call_arguments.delta";
    const events = [
      { type: "response.created", response: { ...response, status: "in_progress", output: [] } },
      { type: "response.output_item.added", output_index: 0, item: begun },
      ...(isText ? [{ type: "response.content_part.added", ...at, part }] : []),
      ...halves(text).map((delta) => ({ type: kind, ...at, delta })),
      { type: "response.output_item.done", output_index: 0, item },
      { type: "response.completed", response: { ...response, status: "completed", output: [item] } },
    ];
    return events.map((event, at) => [event.type, { ...event, sequence_number: at }] as const);
  });
}

/** Gemini's `streamGenerateContent`. */
export function geminiStream(...script: readonly Line[]) {
  return streaming(script, (step) => {
    const parts =
      typeof step === "string"
        ? halves(step).map((text) => ({ text }))
        : [{ functionCall: { name: step[0], args: step[1] } }];
    const chunks = parts.map((part, at) => {
      const content = { role: "model", parts: [part] };
      return { content, index: 0, ...(at === parts.length - 1 ? { finishReason: "STOP" } : {}) };
    });
    return chunks.map((candidate) => ["", { candidates: [candidate] }] as const);
  });
}
