/**
 * Steps that the middleware of every agent framework shares: routing a step, gating calls, answering searches, and
 * what becomes of them when Toolgate can't be reached. Knows no framework.
 */
import type { RemoteClient, RequestOf } from "./client.js";
import { type StatusCode, ToolgateError } from "./errors.js";
import { toToolError } from "./gating.js";
import {
  DeferralMode,
  type GateVerdict,
  PromptListing,
  PromptStrategy,
  type RequestedCall,
  type RouteResponse,
  type RouterService,
  type SearchToolsResponse,
  StrategyReason,
  ToolFormat,
} from "./gen/toolgate/v1/router_pb.js";
import type { AgentState } from "./gen/toolgate/v1/state_pb.js";
import type { JsonObject } from "./json.js";
import { answerOf, SEARCH_TOOL } from "./offering.js";
import { modelRequest } from "./rendering.js";
import { isLost, type ServedServers } from "./serving.js";
import { agentState, type Grants } from "./state.js";

/** What is told of each model call beside what the middleware itself knows. */
export type RouteDefaults = Omit<
  Exclude<RequestOf<(typeof RouterService)["method"]["route"]>, { $typeName: string }>,
  "intents" | "state" | "activeSetHandle" | "knownPoolRevision" | "$typeName"
>;

/** Settings of all middleware. */
export interface MiddlewareOptions {
  /**
   * True if the model may search for tools that it does not see (`SEARCH_TOOL`). Without, no tool is deferred, unless
   * `route` names a mode. Default: true.
   */
  readonly search?: boolean;
  /** Further fields of each `route`, such as `{ options: { topK: 5 } }`. Default: none. */
  readonly route?: RouteDefaults;
  /** Told of each fault of the service that is passed over. Default: a line by `console.warn`, without details. */
  readonly onFault?: (fault: ToolgateError) => void;
  /**
   * Told once of the tools that the agent has beside Toolgate's: they are sent with every request, and no call of them
   * passes Gate. Default: a line by `console.warn`, once in a process.
   */
  readonly onOwnTools?: (names: readonly string[]) => void;
  /**
   * Told once of more tools for a request than OpenAI takes (128; Gemini takes 512), the agent's own among them, as when
   * Toolgate can't be reached and all are shown. Default: a line by `console.warn`, once in a process.
   */
  readonly onManyTools?: (count: number) => void;
}

/**
 * Way of tools into requests: "cut" defines those of the turn in `tools`; "envelope" describes them in the messages, so
 * that the provider's cached prefix stays; "auto" takes what is cheaper of these two. "native" adds them amid the messages, as
 * Anthropic's Messages and OpenAI's Responses take them.
 */
export type Strategy = "cut" | "auto" | "envelope" | "native";

/** Endpoint whose requests carry tools amid the messages. */
export interface Native {
  readonly api: "anthropic" | "openai_responses";
  /** The model's name; Route knows those that take no tools there. */
  readonly model: string;
}

/** A definition of Chat Completions, without its wrapping. */
export interface Defined {
  readonly name: string;
  readonly description?: string;
  readonly parameters?: JsonObject;
}

/** What Route added to a conversation. */
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

/** What a conversation remembers: JSON, to be kept wherever its messages are. */
export interface Held {
  /** The handle of the last active set; "" before there was one. */
  readonly handle: string;
  /** Model-facing names of the tools to show, in their order; absent while nothing was routed. */
  readonly active?: readonly string[];
  /** Route's snapshot of what the messages said about tools, also those that are gone since. */
  readonly history?: JsonObject;
  /** True where messages came since that Route has not read. */
  readonly isUnread?: boolean;
  /** What Route added to the messages, where it puts requests together. */
  readonly prompt?: Prompt;
  /** Names of the agent's own tools, where only a request tells them. */
  readonly own?: readonly string[];
}

/** A refusal, as the content of the call's result. */
export interface Refused {
  readonly text: string;
}

/** What may run: with other arguments than the model's, where those came as text. */
export interface Allowed {
  /** The agent's tool to call, however the model spelt its name. */
  readonly tool: string;
  readonly argumentsJson: string;
}

const STRATEGIES: readonly Strategy[] = ["auto", "cut", "envelope", "native"];
/** Nothing is added, and Route forgets what was. */
const NOTHING: Prompt = { ledger: "", tools: [], added: {} };
const FAULTS: readonly StatusCode[] = [
  "UNAVAILABLE",
  "DEADLINE_EXCEEDED",
  "RESOURCE_EXHAUSTED",
  "INTERNAL",
  "UNKNOWN",
];
const NOT_GATED = JSON.stringify({
  error: "gate_unavailable",
  message:
    "Whether this call may run could not be checked just now, so it did not run. Try it once more, or go on without it.",
});
const NOT_SEARCHED = JSON.stringify({
  error: "search_unavailable",
  message: "Tools could not be searched just now. Try it once more, or go on without it.",
});
const MODEL_FACING = "mcp__";
const INTENT_BYTES = 16 * 1024;
/** The service takes 1 MiB by default; the rest is for the snapshot. */
const CONVERSATION_BYTES = 768 * 1024;
/** UTF-16 units of one text. The service reads no longer one as an error. */
const TEXT_UNITS = 64 * 1024 + 1;
const OBSERVATION_WEIGHT = 0.5;
/** Of English text, about. */
const BYTES_A_TOKEN = 4;
const NAMES_TOLD = 10;
const NAME_CHARS = 128;
/** Own tools that were told of, by their names; bounded by forgetting all of them. */
const told = new Set<string>();
const TOLD_MAX = 256;
/** The most tools that OpenAI takes in a request; it answers more of them with an error. */
const OPENAI_TOOLS = 128;
let hasWarnedOfMany = false;

/** An intent: what the user said, or less heavily what a tool answered since. */
export interface Intent {
  readonly text: string;
  readonly weight?: number;
}

/** What is asked of Route in one step. */
export interface Turn {
  readonly intents: readonly Intent[];
  /** Tokens of the messages behind the tools; absent where Route is not to be told. */
  readonly historyTokens?: number | undefined;
  /** How Route is to put the request together; absent: "cut". */
  readonly rendered?: Rendered | undefined;
}

/** How Route is to put a request together. */
interface Rendered {
  readonly strategy: Strategy;
  /** The place of each entry: "" where nothing can be added. */
  readonly places: readonly string[];
  /** For "native": where the request goes. */
  readonly native?: Native | undefined;
}

/** The tool through which a model calls those that are described in the messages. */
export const CALL_TOOL = "toolgate_call_tool";

/** A definition of Anthropic's, or of OpenAI's Responses. */
interface AnyTool {
  readonly type?: string;
  readonly name?: string;
  readonly description?: string;
  readonly input_schema?: JsonObject;
  readonly parameters?: JsonObject;
}

/** A message of Anthropic's, or an item of OpenAI's Responses. */
interface AnyEntry {
  readonly type?: string;
  readonly role?: string;
  readonly content?: readonly { readonly tool: { readonly definition: JsonObject } }[];
  readonly tools?: readonly JsonObject[];
}

interface Entry {
  readonly content?: unknown;
}

/** Routes, gates and searches for one agent's tools. It holds nothing of a conversation. */
export class Gatekeeper {
  readonly #client: RemoteClient;
  #managed: ReadonlySet<string> = new Set();
  readonly #options: MiddlewareOptions;
  readonly #served: ServedServers | undefined;
  #hasTold = false;
  #hasToldMany = false;

  /**
   * @param managed names of all tools that Toolgate manages.
   * @param served MCP servers to register again when the service has lost them. Default: none.
   * @throws TypeError names that are not model-facing.
   */
  constructor(
    client: RemoteClient,
    managed: Iterable<string>,
    options: MiddlewareOptions,
    served?: ServedServers,
  ) {
    this.#client = client;
    this.#options = options;
    this.#served = served;
    this.manage(managed);
  }

  /**
   * Takes other tools over.
   *
   * @throws TypeError names that are not model-facing.
   */
  manage(managed: Iterable<string>): void {
    this.#managed = new Set(managed);
    const bare = [...this.#managed].filter((name) => !isModelFacing(name));
    if (bare.length > 0) {
      throw new TypeError(
        `not under model-facing names: ${bare.join(", ")}; prepare an MCP server's tools with ` +
          "modelFacing(tools, client.listTools({ server })), and leave tools that Toolgate does not manage out",
      );
    }
  }

  /** Whether the model may search. */
  get searches(): boolean {
    return this.#options.search ?? true;
  }

  /**
   * Tools of the agent's own are not gated, and every other name is.
   *
   * @param own names of the agent's own tools; where nobody knows them, names that look like a catalog's tool are gated.
   */
  isOurs(name: string, own?: readonly string[]): boolean {
    return this.#managed.has(name) || (own === undefined ? isModelFacing(name) : !own.includes(name));
  }

  /** Tells once of the tools that the agent has beside Toolgate's. */
  tellOwn(names: readonly string[]): void {
    if (names.length === 0 || this.#hasTold) {
      return;
    }
    this.#hasTold = true;
    (this.#options.onOwnTools ?? warnOfOwn)(names);
  }

  /**
   * Tells once of more tools for a request than a provider takes.
   *
   * @param count tools to show: the agent's own, the search and the active set.
   */
  tellMany(count: number): void {
    if (count <= OPENAI_TOOLS || this.#hasToldMany) {
      return;
    }
    this.#hasToldMany = true;
    (this.#options.onManyTools ?? warnOfMany)(count);
  }

  /** Whether a call is one of the search. */
  isSearch(name: string): boolean {
    return this.searches && name === SEARCH_TOOL.modelName;
  }

  /**
   * State that is remembered after routing by these messages; when Toolgate can't be reached, the tools of before.
   *
   * @param turn what is wanted, and tokens of the messages, where Route is to be told.
   */
  async route(
    entries: readonly unknown[],
    { intents, historyTokens, rendered }: Turn,
    held: Held,
    grants: Grants,
  ): Promise<Held> {
    const unread = { ...held, isUnread: true };
    if (intents.length === 0) {
      return unread;
    }
    const messages = newest(entries);
    // What does not fit as a whole is sent without additions.
    const asked = messages.length === entries.length ? rendered : undefined;
    const request = {
      ...this.#route(historyTokens, asked?.native?.model),
      ...(asked === undefined ? {} : { render: renderOf(asked, held.prompt) }),
      intents: intents.map((intent) => ({ ...intent })),
      state: agentState({ ...grants, messages, snapshot: held.history }),
    };
    try {
      const turn = await this.#routeServed(request, held.handle);
      // Once offered, the search stays: taking it away would cost the cache of what follows it.
      const offered =
        turn.deferral?.offerSearch === true || held.active?.includes(SEARCH_TOOL.modelName) === true;
      const search = offered && this.searches ? [SEARCH_TOOL.modelName] : [];
      const active = [...search, ...turn.activeTools.map(({ modelName }) => modelName)];
      const { prompt: _, ...kept } = held;
      const prompt = asked === undefined ? {} : { prompt: promptOf(turn, messages, asked) };
      return { ...kept, ...prompt, ...readIn(turn), handle: turn.activeSetHandle, active };
    } catch (error) {
      this.#passOver(error);
      return unread;
    }
  }

  /** The agent's state within a turn: the snapshot alone where it has all that was said. */
  state(entries: readonly unknown[], { history, isUnread = true }: Held, grants: Grants): AgentState {
    const messages = isUnread ? newest(entries) : undefined;
    return agentState({ ...grants, messages, snapshot: history });
  }

  /** For each call, whether it may run; none may while that can't be checked. */
  async gate(calls: RequestedCall[], handle: string, state: AgentState): Promise<(Refused | Allowed)[]> {
    if (handle === "") {
      return calls.map(() => ({ text: NOT_GATED }));
    }
    if (calls.length === 0) {
      return [];
    }
    try {
      const { verdicts } = await this.#client.gate({
        ...this.#tenant(),
        calls,
        activeSetHandle: handle,
        state,
      });
      return verdicts.map((verdict, at) => this.#outcome(verdict, calls[at]?.tool ?? ""));
    } catch (error) {
      this.#passOver(error);
      return calls.map(() => ({ text: NOT_GATED }));
    }
  }

  /** The answer to a call of the search, and the handle to carry on with. */
  async search(
    call: RequestedCall,
    handle: string,
    state: AgentState,
  ): Promise<{ text: string; failed: boolean; handle: string }> {
    if (handle === "") {
      return { text: NOT_SEARCHED, failed: true, handle };
    }
    try {
      const answer = await this.#client.answerSearch(call, { ...this.#tenant(), handle, state });
      const text = answer.found === undefined ? answer.text : answerOf(this.#ofAgent(answer.found)).text;
      return { text, failed: answer.failed, handle: answer.handle };
    } catch (error) {
      this.#passOver(error);
      return { text: NOT_SEARCHED, failed: true, handle };
    }
  }

  /**
   * Options of each `route`: a model that can't search is sent every tool, unless the caller chose a mode; the prompt
   * lists nothing of the catalog beside the active set; and so many tokens stand behind the tools, unless the caller says it.
   */
  #route(historyTokens: number | undefined, model: string | undefined): RouteDefaults {
    const { route = {} } = this.#options;
    const { deferral = DeferralMode.UNSPECIFIED } = route.options ?? {};
    const isSearchable = this.searches || deferral !== DeferralMode.UNSPECIFIED;
    const options = {
      ...(historyTokens === undefined ? {} : { historyTokens }),
      ...(model === undefined ? {} : { model }),
      ...route.options,
      ...(isSearchable ? {} : { deferral: DeferralMode.OFF }),
    };
    return { promptListing: PromptListing.NONE, ...route, options };
  }

  /** What becomes of a call of an agent that may not have all tools of the catalog. */
  #outcome(verdict: GateVerdict, called: string): Refused | Allowed {
    const { allowed, modelName: tool, argumentsJson } = verdict;
    if (allowed) {
      return this.#managed.has(tool) ? { tool, argumentsJson } : { text: noSuchTool(called) };
    }
    const availableTools = verdict.availableTools.filter((name) => this.#managed.has(name));
    return { text: JSON.stringify(toToolError({ ...verdict, availableTools })) };
  }

  /** Routes; registers the MCP servers again if the service has lost them. */
  async #routeServed(request: RequestOf<(typeof RouterService)["method"]["route"]>, handle: string) {
    const served = this.#served;
    if (served === undefined) {
      return this.#routeFrom(request, handle);
    }
    try {
      const turn = await this.#routeFrom(request, handle);
      if (!served.hasLost(turn)) return turn;
    } catch (error) {
      if (!isLost(error)) throw error;
    }
    await served.registerAgain();
    return this.#routeFrom(request, handle);
  }

  async #routeFrom(request: RequestOf<(typeof RouterService)["method"]["route"]>, handle: string) {
    try {
      return await this.#client.route({ ...request, activeSetHandle: handle });
    } catch (error) {
      const isForeign = error instanceof ToolgateError && error.reason === "HANDLE_INVALID";
      if (handle === "" || !isForeign) throw error;
      return await this.#client.route({ ...request, activeSetHandle: "" });
    }
  }

  /** What was found, without tools that this agent does not have, or that its turns leave out. */
  #ofAgent(found: SearchToolsResponse): SearchToolsResponse {
    const servers = this.#options.route?.options?.servers ?? [];
    const tools = found.tools.filter(
      ({ modelName, server }) =>
        this.#managed.has(modelName) && (servers.length === 0 || servers.includes(server)),
    );
    const message = found.message || (tools.length === 0 ? "No tool was found." : "");
    return { ...found, tools, message };
  }

  #tenant(): { tenant?: string } {
    const tenant = this.#options.route?.tenant;
    return tenant === undefined ? {} : { tenant };
  }

  /** A fault of the service passes; a mistake in what was asked is the caller's to mend. */
  #passOver(error: unknown): void {
    if (!(error instanceof ToolgateError) || !FAULTS.includes(error.code)) {
      throw error;
    }
    const { onFault = warn } = this.#options;
    onFault(error);
  }
}

/**
 * The strategy to use. Without a search it is "cut": nothing may be described then, and Route would send the whole catalog.
 *
 * @throws TypeError no such strategy.
 */
export function checkedStrategy(strategy: Strategy = "auto", searches: boolean): Strategy {
  if (!STRATEGIES.includes(strategy)) {
    const known = STRATEGIES.map((one) => `"${one}"`).join(", ");
    throw new TypeError(`strategy is one of ${known}, not "${strategy}"`);
  }
  return searches ? strategy : "cut";
}

/**
 * An estimate of what texts cost: a token for four bytes of UTF-8, and at least 1, since 0 would say that the tools stand
 * behind the messages.
 */
export function estimatedTokens(texts: readonly string[]): number {
  const encoder = new TextEncoder();
  const bytes = texts.reduce((sum, text) => sum + encoder.encode(text).length, 0);
  return Math.max(1, Math.floor(bytes / BYTES_A_TOKEN));
}

/** Whether a name looks like one that the catalog gave. */
export function isModelFacing(name: string): boolean {
  return name.startsWith(MODEL_FACING);
}

/** An intent of a text, cut to what is worth embedding; none of a text that says nothing. */
export function intentOf(text: string, isObservation = false): Intent[] {
  const bytes = new TextEncoder().encode(text).subarray(0, INTENT_BYTES);
  // What was cut within a character is left out.
  const cut = new TextDecoder().decode(bytes, { stream: true });
  const weight = isObservation ? { weight: OBSERVATION_WEIGHT } : {};
  return cut.trim() === "" ? [] : [{ text: cut, ...weight }];
}

/** A text of a message, cut to what the service is to read of it. */
export function cut(text: string): string {
  return text.length > TEXT_UNITS ? text.slice(0, TEXT_UNITS) : text;
}

/** A call's arguments as JSON text; none of them where they are too long to be read. */
export function argumentsOf(args: unknown): string {
  const written = JSON.stringify(args ?? {});
  return written.length > TEXT_UNITS ? "{}" : written;
}

/** The newest messages, as many as the service takes: a snapshot stands for the others. */
function newest(entries: readonly unknown[]): unknown[] {
  const encoder = new TextEncoder();
  let left = CONVERSATION_BYTES;
  const tooMany = entries.findLastIndex((entry) => {
    left -= encoder.encode(JSON.stringify(entry)).length + 1;
    return left < 0;
  });
  return entries.slice(tooMany + 1);
}

const WIRE: Readonly<Record<Strategy, PromptStrategy>> = {
  auto: PromptStrategy.AUTO,
  cut: PromptStrategy.CUT,
  envelope: PromptStrategy.ENVELOPE,
  native: PromptStrategy.NATIVE,
};

const FORMATS: Readonly<Record<Native["api"], ToolFormat>> = {
  anthropic: ToolFormat.ANTHROPIC,
  openai_responses: ToolFormat.OPENAI_RESPONSES,
};

function renderOf({ strategy, native }: Rendered, before: Prompt | undefined) {
  return {
    format: native === undefined ? ToolFormat.OPENAI_CHAT : FORMATS[native.api],
    strategy: WIRE[strategy],
    searchTool: true,
    ledger: before?.ledger ?? "",
  };
}

/** What Route added to the messages that it was asked with. */
function promptOf(turn: RouteResponse, asked: readonly unknown[], { native, places }: Rendered): Prompt {
  if (turn.rendered === undefined) {
    // The service is older than strategies.
    return NOTHING;
  }
  if (native !== undefined) {
    return nativePromptOf(turn, asked, places, native);
  }
  const { strategy, ledger, tools, messages } = modelRequest<{ function: Defined }, Entry>(turn);
  if (strategy !== PromptStrategy.ENVELOPE) {
    return { ledger, tools: [], added: {} };
  }
  // The snapshot stands before the conversation.
  const answered = messages.slice(messages.length - asked.length);
  const added = answered.flatMap(({ content }, at) => {
    const { content: before } = asked[at] as Entry;
    const isAdded = typeof content === "string" && typeof before === "string" && content.startsWith(before);
    const text = isAdded ? content.slice(before.length) : "";
    return text === "" ? [] : [[places[at] ?? "", text] as const];
  });
  return { ledger, tools: tools.map((tool) => tool.function), added: Object.fromEntries(added) };
}

/**
 * The tools that Route added amid the messages; nothing where it put the request together in another way.
 *
 * @throws TypeError the model takes none there.
 */
function nativePromptOf(
  turn: RouteResponse,
  asked: readonly unknown[],
  places: readonly string[],
  { model }: Native,
): Prompt {
  const { strategy, reason, ledger, tools, messages, betas } = modelRequest<AnyTool, AnyEntry>(turn);
  if (reason === StrategyReason.NOT_TAKEN) {
    throw new TypeError(
      `strategy: "native" is for models that take tools amid a conversation, not ${model}: take "auto", "cut" or "envelope"`,
    );
  }
  const changes: Record<string, readonly JsonObject[]> = {};
  let read = 0;
  for (const message of messages) {
    if (read < asked.length && JSON.stringify(message) === JSON.stringify(asked[read])) {
      read += 1;
      continue;
    }
    const place = places[read - 1] ?? "";
    const added = additionIn(message);
    if (added === undefined || place === "") {
      return NOTHING;
    }
    changes[place] = added;
  }
  const isWhole = strategy === PromptStrategy.NATIVE && read === asked.length;
  return isWhole ? { ledger, tools: tools.map(definedOf), added: {}, changes, betas } : NOTHING;
}

/** The definitions that a message adds; undefined for one that adds none. */
function additionIn({ type, role, content, tools }: AnyEntry): readonly JsonObject[] | undefined {
  if (type === "additional_tools") return tools;
  return role === "system" ? content?.map(({ tool }) => tool.definition) : undefined;
}

/** A provider's definition without what is the provider's own. Its own search has no name there. */
export function definedOf(tool: AnyTool): Defined {
  const { name = SEARCH_TOOL.modelName, description, input_schema, parameters = input_schema } = tool;
  return {
    name,
    ...(description === undefined ? {} : { description }),
    ...(parameters === undefined ? {} : { parameters }),
  };
}

/** What Route read of the messages; nothing where the service is older than its snapshots. */
function readIn({ conversationSnapshot }: RouteResponse): Pick<Held, "history" | "isUnread"> {
  return conversationSnapshot === ""
    ? { isUnread: true }
    : { history: JSON.parse(conversationSnapshot) as JsonObject, isUnread: false };
}

/** The answer to a call of a tool that the agent does not have. */
export function noSuchTool(called: string): string {
  const message = `There is no tool ${JSON.stringify(called.slice(0, NAME_CHARS))}. Call one of the tools that you see.`;
  return JSON.stringify({ error: "unknown_tool", message });
}

function warnOfOwn(names: readonly string[]): void {
  const key = names.join("\n");
  if (told.has(key)) {
    return;
  }
  if (told.size >= TOLD_MAX) told.clear();
  told.add(key);
  const are = names.length === 1 ? "tool is" : "tools are";
  const more = names.length > NAMES_TOLD ? ` and ${String(names.length - NAMES_TOLD)} more` : "";
  console.warn(
    `toolgate: ${String(names.length)} ${are} on the agent beside Toolgate's ` +
      `(${names.slice(0, NAMES_TOLD).join(", ")}${more}): sent with every request, and no call of them passes Gate`,
  );
}

function warnOfMany(count: number): void {
  if (hasWarnedOfMany) {
    return;
  }
  hasWarnedOfMany = true;
  console.warn(
    `toolgate: ${String(count)} tools are to be shown to the model, and OpenAI takes ${String(OPENAI_TOOLS)} tools in a ` +
      "request, Gemini 512. Let the model search (search: true) and leave deferral and topK at their defaults. While " +
      "Toolgate can't be reached, all tools are shown: give an agent only those that it needs.",
  );
}

function warn(fault: ToolgateError): void {
  console.warn(`toolgate: ${fault.reason || fault.code}`);
}
