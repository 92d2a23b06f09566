/** Anthropic's Messages API by a script, and what it was asked. */

type Block = Readonly<Record<string, unknown>>;

/** A request as it came. */
export interface AnthropicRequest {
  readonly tools: readonly { readonly name: string }[];
  readonly messages: readonly { readonly role: string; readonly content: string | readonly Block[] }[];
}

/** An answer of the script: a text, or a call. */
export type Line = string | readonly [name: string, input: object];

/** An answer that goes by the request. */
export type Reply = (body: Readonly<Record<string, unknown>>) => Line;

/** Betas that tools amid a conversation need. */
export const BETAS = ["mid-conversation-tool-changes-2026-07-01", "inline-tools-2026-09-15"];

/** Answers by the script, for clients that take a `fetch`; `requests` and `betas` have what was asked. */
export function anthropicApi(...script: readonly (Line | Reply)[]) {
  const requests: AnthropicRequest[] = [];
  const betas: string[][] = [];
  const fetch = (_: unknown, init?: RequestInit): Promise<Response> => {
    const body = JSON.parse(init?.body as string) as AnthropicRequest;
    const step = stepOf(script[requests.length], body);
    requests.push(body);
    betas.push((new Headers(init?.headers).get("anthropic-beta") ?? "").split(","));
    const id = `toolu_${String(requests.length)}`;
    const isText = typeof step === "string";
    const block = isText
      ? { type: "text", text: step }
      : { type: "tool_use", id, name: step[0], input: step[1] };
    const answer = {
      id: `msg_${String(requests.length)}`,
      type: "message",
      role: "assistant",
      model: "claude-opus-5-5",
      content: [block],
      stop_reason: isText ? "end_turn" : "tool_use",
      stop_sequence: null,
      usage: { input_tokens: 1, output_tokens: 1 },
    };
    return Promise.resolve(Response.json(answer));
  };
  return { fetch, requests, betas };
}

/** The line of a script for a request; an empty one at its end. */
export function stepOf(said: Line | Reply | undefined, body: object): Line {
  return typeof said === "function" ? said(body as Parameters<Reply>[0]) : (said ?? "");
}

/** The names of the tools that a request defines amid its messages. */
export function added({ messages }: AnthropicRequest): unknown[] {
  const blocks = messages.flatMap(({ role, content }) => (role === "system" ? (content as Block[]) : []));
  const tools = blocks.map((block) => block["tool"] as { definition: { name: string } } | undefined);
  return tools.flatMap((tool) => tool?.definition.name ?? []);
}

/** The names of the tools that a request has in `tools`. */
export function defined({ tools }: AnthropicRequest): string[] {
  return tools.map(({ name }) => name);
}
