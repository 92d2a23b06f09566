/**
 * The forty messages to an agent: what they are, from standard input, and the script of the model, which keeps its
 * requests. `tests/e2e/node_talk.py` runs the talks.
 */
import { readFileSync } from "node:fs";

import { type Api, Client, v1 } from "@toolgate/client";

import { answered, apiOf, type Call } from "./scripted-answers.js";

interface Asked {
  readonly target: string;
  readonly tenant: string;
  readonly strategy?: "auto" | "cut" | "envelope" | "native";
  /** The API of a provider, and the name of its model. */
  readonly api?: Api;
  readonly model?: string;
  /** Tells whether all tools are sent. */
  readonly isOff: boolean;
  /** The command of each MCP server, by its name. */
  readonly servers: Readonly<Record<string, readonly [string, ...string[]]>>;
  /** The tool that each message is about, its arguments, the message, and whether the tool is called. */
  readonly turns: readonly (readonly [string, object, string, boolean])[];
  readonly answer: string;
}

interface Request {
  readonly turn: number;
  readonly is_first: boolean;
  readonly tools: readonly string[];
  readonly text: string;
}

/** A definition, as Chat Completions take it. */
export interface ChatTool {
  readonly type: "function";
  readonly function: { readonly name: string };
}

/** A definition of any API. A provider's own tool has a type alone. */
interface AnyTool {
  readonly type?: string;
  readonly name?: string;
  readonly function?: { readonly name: string };
}

const CALL = "toolgate_call_tool";
const asked = JSON.parse(readFileSync(0, "utf8")) as Asked;
const requests: Request[] = [];
let turn = -1;
let called = -1;
let searched = -1;

export const client = new Client(asked.target, { tenant: asked.tenant, timeoutMs: 600_000 });
export const { answer, servers, api = "openai_chat", model = "" } = asked;
/** Options of the integrations. */
export const options = {
  ...(asked.strategy === undefined ? {} : { strategy: asked.strategy }),
  ...(asked.isOff ? { route: { options: { deferral: v1.DeferralMode.OFF } } } : {}),
};

/** The messages; each begins its turn. */
export function* said(): Generator<string> {
  for (const [at, [, , text]] of asked.turns.entries()) {
    turn = at;
    yield text;
  }
}

/**
 * Keeps a request, and returns the call that answers it; undefined: `answer` does. Where there is a tool `toolSearch`, and the
 * tool that the message is about is not defined, it searches once.
 */
export function next(tools: readonly object[], messages: readonly object[]): Call {
  const names = (tools as AnyTool[]).map((one) => one.function?.name ?? one.name ?? one.type ?? "");
  const isFirst = requests.at(-1)?.turn !== turn;
  requests.push({ turn, is_first: isFirst, tools: names, text: JSON.stringify({ tools, messages }) });
  const [name = "", args = {}, query = "", isCalled = false] = asked.turns[turn] ?? [];
  if (names.includes("toolSearch") && !names.includes(name)) {
    if (searched === turn) return undefined;
    searched = turn;
    return { name: "toolSearch", args: { query } };
  }
  if (called === turn || !isCalled) return undefined;
  called = turn;
  return names.includes(CALL) ? { name: CALL, args: { name, arguments: args } } : { name, args };
}

/** Puts the script's answer into an API's form. */
export function answerOf(form: Api, call: Call): object {
  return answered(form, call, answer, requests.length);
}

interface Body {
  readonly tools?: readonly object[];
  readonly messages?: readonly object[];
  /** The items of Responses. */
  readonly input?: readonly object[];
}

/** Answers a request to a provider's API by the script, for clients that take a `fetch`. */
export async function fetch(url: unknown, init?: RequestInit): Promise<Response> {
  const asked = url instanceof Request ? url.clone() : new Request(String(url), init);
  const { tools = [], messages, input } = (await asked.json()) as Body;
  return Response.json(answerOf(apiOf(asked.url), next(tools, messages ?? input ?? [])));
}

/** An assistant's message, as Chat Completions take it. */
export function assistant(
  content: string,
  calls: readonly { id: string; name: string; arguments: string }[],
) {
  const made = calls.map(({ id, ...call }) => ({ type: "function", id, function: call }));
  return { role: "assistant", content, ...(made.length > 0 ? { tool_calls: made } : {}) };
}

/** Writes the requests, and ends. */
export function finish(): void {
  client.close();
  process.stdout.write(JSON.stringify(requests));
}
