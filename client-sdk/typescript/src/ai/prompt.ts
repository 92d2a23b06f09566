/** Requests that Route puts together: its additions to prompts, and calls through the envelope. */
import type { LanguageModel } from "ai";

import { envelopeIn } from "../envelope.js";
import { placeOfResult, placeOfUser } from "../forms.js";
import { SEARCH_TOOL } from "../offering.js";
import { CALL_TOOL, type Defined, definedOf, type Prompt } from "../prompting.js";
import { isFailed, isResult, outputOf, type Result } from "./messages.js";

/** A part of a prompt, of an answer, or of a stream of one. */
type Part = Readonly<Record<string, unknown>>;

interface PromptMessage {
  readonly role: string;
  readonly content: string | readonly Part[];
  readonly providerOptions?: object;
}

interface ModelOptions {
  readonly prompt: readonly PromptMessage[];
  readonly tools?: readonly Part[];
  readonly toolChoice?: { readonly type: string };
  readonly headers?: Readonly<Record<string, string | undefined>>;
}

/** The common part of both versions' models. */
interface Model {
  doGenerate(options: ModelOptions): PromiseLike<{ content: readonly Part[] }>;
  doStream(options: ModelOptions): PromiseLike<{ stream: ReadableStream<Part> }>;
}

/**
 * The model, which gets requests as Route put them together, and whose envelopes are opened before the AI SDK sees them.
 *
 * @param isOurs true if a tool is called through the envelope.
 * @throws TypeError a model's name instead of the model.
 */
export function prompted(
  model: LanguageModel | undefined,
  prompt: Prompt,
  isOurs: (name: string) => boolean,
): LanguageModel {
  if (typeof model !== "object") {
    throw new TypeError("strategy: needs the model itself, not its name, such as openai.chat(name)");
  }
  const inner = model as unknown as Model;
  const generate: Model["doGenerate"] = async (options) => {
    const answer = await inner.doGenerate(requestOf(options, prompt, isOurs));
    return { ...answer, content: answer.content.map(opened) };
  };
  const stream: Model["doStream"] = async (options) => {
    const answer = await inner.doStream(requestOf(options, prompt, isOurs));
    return { ...answer, stream: answer.stream.pipeThrough(opening()) };
  };
  return new Proxy(model, {
    get(target, key): unknown {
      if (key === "doGenerate") return generate;
      if (key === "doStream") return stream;
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
}

/** The request with Route's tools, and with copies of the messages where tools are described or calls are wrapped. */
function requestOf(options: ModelOptions, prompt: Prompt, isOurs: (name: string) => boolean): ModelOptions {
  const tools = toolsOf(options, prompt, isOurs);
  if (prompt.changes !== undefined) {
    const told = { ...options, prompt: described(options, prompt, () => false) };
    return isForced(options)
      ? { ...told, tools: [...tools, ...addedTo(prompt)] }
      : { ...changed(told, prompt), tools };
  }
  const defined = new Map(prompt.tools.map((tool) => [tool.name, tool]));
  const isWrapped = (name: string) => isOurs(name) && !defined.has(name);
  return { ...options, prompt: described(options, prompt, isWrapped), tools };
}

/** The messages with Route's texts, and with calls in envelopes. */
function described(
  options: ModelOptions,
  prompt: Prompt,
  isWrapped: (name: string) => boolean,
): ModelOptions["prompt"] {
  let users = 0;
  return options.prompt.map((message) => {
    if (typeof message.content === "string") return message;
    const content = message.content.map((part) => partOf(part, prompt, isWrapped));
    if (message.role !== "user") return { ...message, content };
    const text = prompt.added[placeOfUser(users++)];
    return text === undefined ? message : { ...message, content: [...content, { type: "text", text }] };
  });
}

/** Returns true if the call is settled, by a name or as none: `@ai-sdk/anthropic` adds no other tools amid the messages then. */
function isForced({ toolChoice }: ModelOptions): boolean {
  return toolChoice?.type === "tool" || toolChoice?.type === "none";
}

/** The tools that are added amid the messages, each once, as definitions for `tools`. */
function addedTo({ tools, changes = {} }: Prompt): Part[] {
  const defined = new Set(tools.map(({ name }) => name));
  const added = new Map(
    Object.values(changes)
      .flatMap((some) => some.map(definedOf))
      .map((tool) => [tool.name, tool]),
  );
  return [...added.values()].filter(({ name }) => !defined.has(name)).map(functionOf);
}

/** The agent's own tools, and those of Route's answer. */
function toolsOf({ tools = [] }: ModelOptions, prompt: Prompt, isOurs: (name: string) => boolean): Part[] {
  const defined = new Set(prompt.tools.map(({ name }) => name));
  const own = tools.filter(({ name }) => !isOurs(String(name)) && !defined.has(String(name)));
  const shown = prompt.tools.map((tool) => {
    const known = tools.find(({ name }) => name === tool.name);
    // The search says there which tools it finds.
    const isSearch = tool.name === SEARCH_TOOL.modelName;
    return known === undefined || isSearch ? { ...known, ...functionOf(tool) } : known;
  });
  return [...own, ...shown];
}

function functionOf({ name, description, parameters }: Defined): Part {
  return { type: "function", name, description, inputSchema: parameters };
}

/** The request with tools amid its messages, in the way of `@ai-sdk/anthropic`, and the betas that they need. */
function changed(options: ModelOptions, { changes = {}, betas = [] }: Prompt): ModelOptions {
  let users = 0;
  const messages = options.prompt.flatMap((message) => {
    const { role, content } = message;
    const parts = typeof content === "string" ? [] : content;
    const places = role === "user" ? [placeOfUser(users++)] : parts.flatMap(placeOf);
    const tools = places.flatMap((place) => changes[place] ?? []);
    return tools.length === 0 ? [message] : [message, addition(tools.map(definedOf))];
  });
  const { headers = {} } = options;
  const named = [headers["anthropic-beta"] ?? [], ...betas].flat();
  return { ...options, prompt: messages, headers: { ...headers, "anthropic-beta": named.join(",") } };
}

function placeOf(part: Part): string[] {
  return isResult(part) ? [placeOfResult(part.toolCallId)] : [];
}

function addition(tools: readonly Defined[]): PromptMessage {
  const toolChanges = tools.map((tool) => ({ type: "tool_addition", tool: functionOf(tool) }));
  return { role: "system", content: "", providerOptions: { anthropic: { toolChanges } } };
}

function partOf(part: Part, { added }: Prompt, isWrapped: (name: string) => boolean): Part {
  const name = String(part["toolName"]);
  const named = isWrapped(name) ? { ...part, toolName: CALL_TOOL } : part;
  if (part["type"] === "tool-call" && isWrapped(name)) {
    return { ...named, input: { name, arguments: part["input"] ?? {} } };
  }
  if (part["type"] !== "tool-result") {
    return part;
  }
  const text = added[placeOfResult(String(part["toolCallId"]))];
  return text === undefined ? named : { ...named, output: withText(part as unknown as Result, text) };
}

/** A result's output with a text after it. */
function withText(result: Result, text: string): object {
  const { output } = result;
  if (output.type === "content") {
    return { ...output, value: [...output.value, { type: "text", text }] };
  }
  const said = outputOf(result);
  return { type: isFailed(result) ? "error-text" : "text", value: said === "" ? text : `${said}\n\n${text}` };
}

/** A call in an envelope as the tool's own. A mistaken envelope stays: Gate tells the model what is wrong with it. */
function opened(part: Part): Part {
  if (part["type"] !== "tool-call") {
    return part;
  }
  const { name = "", args = {} } = envelopeIn(String(part["toolName"]), String(part["input"])) ?? {};
  if (name.trim() === "" || typeof args !== "object" || args === null) {
    return part;
  }
  return { ...part, toolName: name, input: JSON.stringify(args) };
}

/** Opens calls in a stream; pieces of an envelope are left out. */
function opening(): TransformStream<Part, Part> {
  const enveloped = new Set<unknown>();
  return new TransformStream({
    transform(part, controller) {
      if (part["type"] === "tool-input-start" && part["toolName"] === CALL_TOOL) enveloped.add(part["id"]);
      const isPiece = String(part["type"]).startsWith("tool-input-") && enveloped.has(part["id"]);
      if (!isPiece) controller.enqueue(opened(part));
    },
  });
}
