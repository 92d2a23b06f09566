/** A conversation in the form of each provider's API, for Route. Knows no framework. */
import type { Api } from "./endpoint.js";
import { objectIn } from "./json.js";
import { argumentsOf, cut } from "./messages.js";

/** Message of any framework. */
export type Spoken =
  | { readonly role: "user" | "system"; readonly text: string }
  | {
      readonly role: "assistant";
      readonly text: string;
      readonly calls: readonly SpokenCall[];
      /** Anthropic's blocks that say what the provider found or called by itself. */
      readonly found?: readonly unknown[];
    }
  | { readonly role: "tool"; readonly results: readonly SpokenResult[] };

/** A model's call. */
export interface SpokenCall {
  readonly id: string;
  readonly name: string;
  readonly args: unknown;
}

/** A call's result. */
export interface SpokenResult {
  readonly id: string;
  readonly name: string;
  readonly text: string;
  readonly failed: boolean;
}

/** A conversation for Route. */
export interface Conversation {
  readonly entries: readonly object[];
  /** The place of each entry: the number of a user's message, a result's call, or "" where nothing can be added. */
  readonly places: readonly string[];
}

interface Placed {
  readonly entry: object;
  readonly place: string;
}

/** The place behind a result. */
export function placeOfResult(id: string): string {
  return `tool:${id}`;
}

/** The place behind a user's message, which are counted from 0. */
export function placeOfUser(number: number): string {
  return `user:${String(number)}`;
}

/** The conversation in the form of an API. */
export function conversationIn(api: Api, messages: readonly Spoken[]): Conversation {
  const form = FORMS[api];
  let users = 0;
  const placed = messages.flatMap((message) => {
    const place = message.role === "user" ? placeOfUser(users++) : "";
    return form(message, place);
  });
  return { entries: placed.map(({ entry }) => entry), places: placed.map(({ place }) => place) };
}

type Form = (message: Spoken, place: string) => Placed[];

const FORMS: Readonly<Record<Api, Form>> = {
  anthropic,
  openai_chat: chat,
  openai_responses: responses,
  gemini,
};

function chat(message: Spoken, place: string): Placed[] {
  if (message.role === "tool") {
    return message.results.map(({ id, text, failed }) => {
      const status = failed ? { status: "error" } : {};
      return {
        entry: { role: "tool", tool_call_id: id, content: cut(text), ...status },
        place: placeOfResult(id),
      };
    });
  }
  const { role, text } = message;
  const calls = role === "assistant" ? message.calls : [];
  const made = calls.map(({ id, name, args }) => {
    return { id, type: "function", function: { name, arguments: argumentsOf(args) } };
  });
  return [{ entry: { role, content: cut(text), ...(made.length > 0 ? { tool_calls: made } : {}) }, place }];
}

/** Of the agent's system messages none is one for Route, which would add to it. */
function anthropic(message: Spoken, place: string): Placed[] {
  switch (message.role) {
    case "tool": {
      const content = message.results.map(({ id, text, failed }) => {
        const result = { type: "tool_result", tool_use_id: id, content: cut(text) };
        return failed ? { ...result, is_error: true } : result;
      });
      return [{ entry: { role: "user", content }, place: placeOfLast(message.results) }];
    }
    case "assistant": {
      const said = message.text === "" ? [] : [{ type: "text", text: cut(message.text) }];
      const uses = message.calls.map(({ id, name, args }) => {
        return { type: "tool_use", id, name, input: JSON.parse(argumentsOf(args)) as unknown };
      });
      return [{ entry: { role: "assistant", content: [...said, ...(message.found ?? []), ...uses] }, place }];
    }
    default:
      return [{ entry: { role: "user", content: cut(message.text) }, place }];
  }
}

/** Items have no flag for a failed call: Route reads an object with `error` as one. */
function responses(message: Spoken, place: string): Placed[] {
  if (message.role === "tool") {
    return message.results.map(({ id, text, failed }) => {
      const output = failed ? failureText(cut(text)) : cut(text);
      return { entry: { type: "function_call_output", call_id: id, output }, place: placeOfResult(id) };
    });
  }
  const { role, text } = message;
  const said = { entry: { role, content: cut(text) }, place };
  if (message.role !== "assistant") {
    return [said];
  }
  const calls = message.calls.map(({ id, name, args }) => {
    return { entry: { type: "function_call", call_id: id, name, arguments: argumentsOf(args) }, place };
  });
  return text === "" && calls.length > 0 ? calls : [said, ...calls];
}

/** A failure as a JSON object with `error`, as a refusal of Gate's already is. */
function failureText(text: string): string {
  return objectIn(text)?.["error"] ? text : JSON.stringify({ error: text });
}

function gemini(message: Spoken, place: string): Placed[] {
  switch (message.role) {
    case "tool": {
      const parts = message.results.map(({ id, name, text, failed }) => {
        const response = failed ? { error: cut(text) } : { output: cut(text) };
        return { functionResponse: { id, name, response } };
      });
      return [{ entry: { role: "user", parts }, place: placeOfLast(message.results) }];
    }
    case "assistant": {
      const said = message.text === "" && message.calls.length > 0 ? [] : [{ text: cut(message.text) }];
      const calls = message.calls.map(({ id, name, args }) => {
        return { functionCall: { id, name, args: JSON.parse(argumentsOf(args)) as unknown } };
      });
      return [{ entry: { role: "model", parts: [...said, ...calls] }, place }];
    }
    default:
      return [{ entry: { role: "user", parts: [{ text: cut(message.text) }] }, place }];
  }
}

function placeOfLast(results: readonly SpokenResult[]): string {
  const last = results.at(-1);
  return last === undefined ? "" : placeOfResult(last.id);
}
