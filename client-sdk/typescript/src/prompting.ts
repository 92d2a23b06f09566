/** Requests that Route puts together: what is asked of it, and what its answer adds to the messages. Knows no framework. */
import { type Api, carriesNative, type Endpoint } from "./endpoint.js";
import {
  PromptStrategy,
  type RouteResponse,
  StrategyReason,
  ToolFormat,
} from "./gen/toolgate/v1/router_pb.js";
import { isObject, type JsonObject } from "./json.js";
import { SEARCH_TOOL } from "./offering.js";
import { modelRequest } from "./rendering.js";

/**
 * Way of tools into requests: "cut" defines those of the turn in `tools`; "envelope" describes them in the messages, so
 * that the provider's cached prefix stays; "native" adds them amid the messages, as Anthropic's Messages and OpenAI's Responses
 * take them. "auto" leaves the choice to Route, by the price, among those that the library can send.
 */
export type Strategy = "cut" | "auto" | "envelope" | "native";

/** A definition of Chat Completions, without its wrapping. */
export interface Defined {
  readonly name: string;
  readonly description?: string;
  readonly parameters?: JsonObject;
}

/** Additions of Route to a conversation. */
export interface Prompt {
  /** For Route. */
  readonly ledger: string;
  /** The definitions to send; empty: the active set is sent as it is. */
  readonly tools: readonly Defined[];
  /** The texts that are added, by their places. */
  readonly added: Readonly<Record<string, string>>;
  /** With "native": the provider's definitions that are added behind a message, by the messages' places. */
  readonly changes?: Readonly<Record<string, readonly JsonObject[]>>;
  /** With "native": names of Anthropic's betas that the request needs. */
  readonly betas?: readonly string[];
}

/** Strategies where the agent itself sends what Route put together: "pass" defines all tools in `tools`. */
export type WholeStrategy = Strategy | "pass";

/** Settings of a request that Route puts together. */
export type Rendered =
  | {
      readonly strategy: Strategy;
      /** The place of each entry: "" where nothing can be added. */
      readonly places: readonly string[];
    }
  | {
      readonly strategy: WholeStrategy;
      /** The request is sent as Route put it together, with these definitions of the agent's own before the others. */
      readonly own: readonly object[];
    };

/** The tool through which a model calls those that are described in the messages. */
export const CALL_TOOL = "toolgate_call_tool";

const STRATEGIES: readonly Strategy[] = ["auto", "cut", "envelope", "native"];
/** Nothing is added, and Route forgets what was. */
const NOTHING: Prompt = { ledger: "", tools: [], added: {} };

const WIRE: Readonly<Record<WholeStrategy, PromptStrategy>> = {
  auto: PromptStrategy.AUTO,
  cut: PromptStrategy.CUT,
  envelope: PromptStrategy.ENVELOPE,
  native: PromptStrategy.NATIVE,
  pass: PromptStrategy.PASS,
};

const FORMATS: Readonly<Record<Api, ToolFormat>> = {
  anthropic: ToolFormat.ANTHROPIC,
  openai_chat: ToolFormat.OPENAI_CHAT,
  openai_responses: ToolFormat.OPENAI_RESPONSES,
  gemini: ToolFormat.GEMINI,
};

/** A provider's definition. */
interface AnyTool {
  readonly name?: string;
  readonly description?: string;
  readonly input_schema?: JsonObject;
  readonly parameters?: JsonObject;
  readonly function?: AnyTool;
}

/** A provider's message. */
interface AnyEntry {
  readonly type?: string;
  readonly role?: string;
  readonly content?: unknown;
  readonly output?: unknown;
  readonly parts?: unknown;
  readonly tools?: readonly JsonObject[];
}

/**
 * Returns the strategy to use. Without a search it is "cut": nothing may be described then, and Route would send the whole catalog.
 *
 * @throws TypeError no such strategy.
 */
export function checkedStrategy(strategy: Strategy = "auto", searches: boolean): Strategy {
  const checked = checkedAmong(STRATEGIES, strategy);
  return searches ? checked : "cut";
}

/**
 * Returns the strategy of a loop of one's own.
 *
 * @throws TypeError no such strategy.
 */
export function checkedWhole(strategy: WholeStrategy = "auto"): WholeStrategy {
  return checkedAmong([...STRATEGIES, "pass"], strategy);
}

function checkedAmong<S extends string>(strategies: readonly S[], strategy: S): S {
  if (!strategies.includes(strategy)) {
    const known = strategies.map((one) => `"${one}"`).join(", ");
    throw new TypeError(`strategy is one of ${known}, not "${strategy}"`);
  }
  return strategy;
}

/** Returns what is asked of Route for a request. */
export function renderOf(rendered: Rendered, endpoint: Endpoint, before: Prompt | undefined) {
  const { strategy } = rendered;
  const own = "own" in rendered && rendered.own.length > 0 ? JSON.stringify(rendered.own) : "";
  return {
    format: FORMATS[endpoint.api],
    strategy: WIRE[strategy],
    searchTool: true,
    ownToolsJson: own,
    ledger: before?.ledger ?? "",
    withoutNative: strategy === "auto" && !carriesNative(endpoint),
  };
}

/** Returns what is asked of Route for a conversation that one call does not take: the definitions of an agent that sends them itself. */
export function definitionsOf(rendered: Rendered | undefined, { api }: Endpoint) {
  const isWhole = rendered !== undefined && "own" in rendered;
  return isWhole ? { format: FORMATS[api], searchTool: true } : undefined;
}

/**
 * Returns what Route added to the messages that it was asked with; no tools where it defines the active set in `tools`.
 *
 * @throws TypeError "native" was asked for, and the model takes no tools amid a conversation.
 */
export function promptOf(
  turn: RouteResponse,
  asked: readonly unknown[],
  rendered: Rendered,
  { model }: Endpoint,
): Prompt {
  if (turn.rendered === undefined) {
    // The service is older than strategies.
    return NOTHING;
  }
  const { strategy, reason, ledger } = turn.rendered;
  if (rendered.strategy === "native" && reason === StrategyReason.NOT_TAKEN) {
    throw new TypeError(
      `strategy: "native" is for models that take tools amid a conversation, not ${model}: take "auto", "cut" or "envelope"`,
    );
  }
  if ("own" in rendered) {
    return wholePromptOf(turn, asked, rendered.own);
  }
  switch (strategy) {
    case PromptStrategy.NATIVE:
      return nativePromptOf(turn, asked, rendered.places);
    case PromptStrategy.ENVELOPE:
      return envelopePromptOf(turn, asked, rendered.places);
    default:
      return { ledger, tools: [], added: {} };
  }
}

/** Gives what a request that is sent as it is has beside the agent's own; its texts have no places. */
function wholePromptOf(turn: RouteResponse, asked: readonly unknown[], own: readonly AnyTool[]): Prompt {
  const { ledger, tools, messages } = modelRequest<AnyTool, AnyEntry>(turn);
  const text = addedIn(asked, messages).join("\n\n");
  const ours = tools.slice(own.length).map(definedOf);
  return { ledger, tools: ours, added: text === "" ? {} : { "": text } };
}

/** The texts and messages that Route added. */
function addedIn(asked: readonly unknown[], messages: readonly AnyEntry[]): string[] {
  if (messages.length === asked.length) {
    return messages.map((message, at) => textAdded(asked[at] as AnyEntry, message)).filter(Boolean);
  }
  const known = new Set(asked.map((entry) => JSON.stringify(entry)));
  return messages.map((message) => JSON.stringify(message)).filter((text) => !known.has(text));
}

/** The tools and texts that Route added amid the messages; nothing where one has no place. */
function nativePromptOf(turn: RouteResponse, asked: readonly unknown[], places: readonly string[]): Prompt {
  const { ledger, tools, messages, betas } = modelRequest<AnyTool, AnyEntry>(turn);
  const changes: Record<string, readonly JsonObject[]> = {};
  const added: Record<string, string> = {};
  let read = 0;
  for (const message of messages) {
    const before = asked[read] as AnyEntry | undefined;
    const text = before === undefined || before.role !== message.role ? "" : textAdded(before, message);
    if (before !== undefined && (text !== "" || JSON.stringify(message) === JSON.stringify(before))) {
      const place = places[read] ?? "";
      if (text !== "" && place === "") return NOTHING;
      if (text !== "") added[place] = text;
      read += 1;
      continue;
    }
    const place = places[read - 1] ?? "";
    const definitions = additionIn(message);
    if (definitions === undefined || place === "") {
      return NOTHING;
    }
    changes[place] = definitions;
  }
  return read === asked.length ? { ledger, tools: tools.map(definedOf), added, changes, betas } : NOTHING;
}

/** The texts that Route added to the messages; nothing where one has no place. */
function envelopePromptOf(turn: RouteResponse, asked: readonly unknown[], places: readonly string[]): Prompt {
  const { ledger, tools, messages } = modelRequest<AnyTool, AnyEntry>(turn);
  if (messages.length !== asked.length) {
    return NOTHING;
  }
  const added: Record<string, string> = {};
  for (const [at, message] of messages.entries()) {
    const text = textAdded(asked[at] as AnyEntry, message);
    const place = places[at] ?? "";
    if (text !== "" && place === "") return NOTHING;
    if (text !== "") added[place] = text;
  }
  return { ledger, tools: tools.map(definedOf), added };
}

/** The text that was added at the end of a message; "" for none. */
function textAdded(before: AnyEntry, after: AnyEntry): string {
  const had = before.content ?? before.output ?? before.parts;
  const has = after.content ?? after.output ?? after.parts;
  if (typeof had === "string" && typeof has === "string") {
    return has.startsWith(had) ? has.slice(had.length).trimStart() : "";
  }
  if (!Array.isArray(had) || !Array.isArray(has)) {
    return "";
  }
  const more = has.slice(had.length) as readonly { readonly text?: string }[];
  return more.map(({ text = "" }) => text).join("\n\n");
}

/** The definitions that a message adds; undefined for one that adds none. */
function additionIn({ type, role, content, tools }: AnyEntry): readonly JsonObject[] | undefined {
  if (type === "additional_tools") return tools;
  if (role !== "system" || !Array.isArray(content)) return undefined;
  const blocks = content as readonly { readonly tool: { readonly definition: JsonObject } }[];
  return blocks.map(({ tool }) => tool.definition);
}

/** A provider's definition without what is the provider's own. Its own search has no name there. */
export function definedOf(tool: AnyTool): Defined {
  const {
    name = SEARCH_TOOL.modelName,
    description,
    input_schema,
    parameters = input_schema,
  } = tool.function ?? tool;
  return {
    name,
    ...(description === undefined ? {} : { description }),
    ...(parameters === undefined ? {} : { parameters: inJsonSchema(parameters) as JsonObject }),
  };
}

/** A schema with the types of JSON Schema, which Gemini's API writes in capitals. */
function inJsonSchema(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(inJsonSchema);
  if (!isObject(schema)) return schema;
  const entries = Object.entries(schema).map(([key, value]) => {
    const isType = key === "type" && typeof value === "string" && value === value.toUpperCase();
    return [key, isType ? value.toLowerCase() : inJsonSchema(value)] as const;
  });
  return Object.fromEntries(entries);
}
