/**
 * Steps that the middleware of every agent framework shares: routing a step, gating calls, answering searches, and
 * what becomes of them when Toolgate can't be reached. Knows no framework.
 */
import type { RemoteClient, RequestOf } from "./client.js";
import { type Endpoint, isOwnHost } from "./endpoint.js";
import { type StatusCode, ToolgateError } from "./errors.js";
import { toToolError } from "./gating.js";
import {
  DeferralMode,
  DeferralReason,
  type GateVerdict,
  PromptListing,
  type RequestedCall,
  type RouteResponse,
  type RouterService,
  type SearchToolsResponse,
} from "./gen/toolgate/v1/router_pb.js";
import type { AgentState } from "./gen/toolgate/v1/state_pb.js";
import type { JsonObject } from "./json.js";
import { type Intent, newest } from "./messages.js";
import { answerOf, SEARCH_TOOL } from "./offering.js";
import { definitionsOf, type Prompt, promptOf, type Rendered, renderOf } from "./prompting.js";
import { searched, type Spent, spentAfter, warningsOf } from "./report.js";
import { isLost, type ServedServers } from "./serving.js";
import { agentState, type Grants } from "./state.js";

/** Fields of each `route` that the middleware itself does not know. */
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
  /**
   * Told once in a conversation of each thing that the service warns of, such as a context window that is nearly full.
   * Default: a line by `console.warn`, once in a process.
   */
  readonly onWarning?: (warning: string) => void;
}

/** Memory of a conversation: JSON, to be kept wherever its messages are. */
export interface Held {
  /** The handle of the last active set; "" before there was one. */
  readonly handle: string;
  /** Model-facing names of the tools to show, in their order; absent while nothing was routed. */
  readonly active?: readonly string[];
  /** Route's snapshot of what the messages said about tools, also those that are gone since. */
  readonly history?: JsonObject;
  /** True where messages came since that Route has not read. */
  readonly isUnread?: boolean;
  /** Additions of Route to the messages, where it puts requests together. */
  readonly prompt?: Prompt;
  /** Names of the agent's own tools, where only a request tells them. */
  readonly own?: readonly string[];
  /** Costs of its requests, for its report. */
  readonly spent?: Spent;
}

/** A refusal, as the content of the call's result. */
export interface Refused {
  readonly text: string;
}

/** Verdict on a call that may run: with other arguments than the model's, where those came as text. */
export interface Allowed {
  /** The agent's tool to call, however the model spelt its name. */
  readonly tool: string;
  readonly argumentsJson: string;
}

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
const NAMES_TOLD = 10;
const NAME_CHARS = 128;
/** Own tools that were told of, by their names, and warnings; bounded by forgetting all of them. */
const told = new Set<string>();
const TOLD_MAX = 256;
/** The most tools that OpenAI takes in a request; it answers more of them with an error. */
const OPENAI_TOOLS = 128;
let hasWarnedOfMany = false;

/** Question to Route in one step. */
export interface Turn {
  readonly intents: readonly Intent[];
  /** Tokens of the messages; absent where Route is not to be told. */
  readonly historyTokens?: number | undefined;
  /** The model that is asked. */
  readonly endpoint: Endpoint;
  /** The way in which Route is to put the request together; absent: "cut". */
  readonly rendered?: Rendered | undefined;
}

/** Route's answer, and what is remembered after it. */
export interface Routed {
  readonly held: Held;
  readonly turn: RouteResponse;
}

/** Routes, gates and searches for one agent's tools. It holds nothing of a conversation. */
export class Gatekeeper {
  readonly #client: RemoteClient;
  #managed: ReadonlySet<string> = new Set();
  readonly #options: MiddlewareOptions;
  readonly #served: ServedServers | undefined;
  #hasTold = false;
  #hasToldHidden = false;
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

  /** Tells whether the model may search. */
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

  /** True if there are no servers to route among. Route would take none for all of the catalog. */
  get hasNone(): boolean {
    const { servers = [] } = this.#options.route?.options ?? {};
    return this.#served?.names.length === 0 && servers.length === 0;
  }

  /** Base URL of the model's API, where the caller says it. */
  get baseUrl(): string | undefined {
    return this.#options.route?.options?.modelBaseUrl;
  }

  /** Does what may fail with the service: a fault passes. */
  async attempt(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#passOver(error);
    }
  }

  /** Tells once of the tools that the agent has beside Toolgate's. */
  tellOwn(names: readonly string[]): void {
    if (names.length === 0 || this.#hasTold) {
      return;
    }
    this.#hasTold = true;
    (this.#options.onOwnTools ?? warnOfOwn)(names);
  }

  /** Tells once of tools that no model is shown, since they were not given to Toolgate. */
  tellHidden(names: readonly string[]): void {
    if (this.#hasToldHidden) {
      return;
    }
    this.#hasToldHidden = true;
    const { onWarning = warnOnce } = this.#options;
    const are = names.length === 1 ? "tool is" : "tools are";
    onWarning(
      `${String(names.length)} ${are} beside those of settings() (${firstOf(names)}): hidden from the model; ` +
        "give tools of the agent's own as `own`",
    );
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

  /** Tells whether a call is one of the search. */
  isSearch(name: string): boolean {
    return this.searches && name === SEARCH_TOOL.modelName;
  }

  /**
   * State that is remembered after routing by these messages; when Toolgate can't be reached, the tools of before.
   *
   * @param turn the intents, and tokens of the messages, where Route is to be told.
   */
  async route(entries: readonly unknown[], turn: Turn, held: Held, grants: Grants): Promise<Held> {
    const routed = await this.routed(entries, turn, held, grants);
    return routed?.held ?? { ...held, isUnread: true };
  }

  /** The same with Route's answer; undefined if nothing is wanted, if there is nothing, or if Toolgate can't be reached. */
  async routed(
    entries: readonly unknown[],
    { intents, historyTokens, endpoint, rendered }: Turn,
    held: Held,
    grants: Grants,
  ): Promise<Routed | undefined> {
    if (intents.length === 0 || this.hasNone) {
      return undefined;
    }
    const messages = newest(entries);
    // A conversation that does not fit as a whole is sent without additions.
    const asked = messages.length === entries.length ? rendered : undefined;
    const render =
      asked === undefined ? definitionsOf(rendered, endpoint) : renderOf(asked, endpoint, held.prompt);
    const route = this.#route(historyTokens, endpoint);
    const request = {
      ...(asked === undefined ? unlisted(route, rendered !== undefined) : route),
      ...(render === undefined ? {} : { render }),
      intents: intents.map((intent) => ({ ...intent })),
      state: agentState({ ...grants, messages, snapshot: held.history }),
    };
    try {
      const turn = await this.#routeServed(request, held.handle);
      const search = this.searches && offersSearch(turn, held) ? [SEARCH_TOOL.modelName] : [];
      const active = [...search, ...turn.activeTools.map(({ modelName }) => modelName)];
      const { prompt: _, ...kept } = held;
      const prompt = asked === undefined ? undefined : promptOf(turn, messages, asked, endpoint);
      const own = asked !== undefined && "own" in asked ? asked.own.length : undefined;
      const spent = spentAfter(held.spent, turn, { active, prompt, own, endpoint });
      this.#tellWarnings(warningsOf(turn), held.spent?.warnings ?? []);
      const added = prompt === undefined ? {} : { prompt };
      const after = { ...kept, ...added, ...readIn(turn), handle: turn.activeSetHandle, active, spent };
      return { held: after, turn };
    } catch (error) {
      this.#passOver(error);
      return undefined;
    }
  }

  /** The agent's state within a turn: the snapshot alone where it has all that was said. */
  state(entries: readonly unknown[], { history, isUnread = true }: Held, grants: Grants): AgentState {
    const messages = isUnread ? newest(entries) : undefined;
    return agentState({ ...grants, messages, snapshot: history });
  }

  /** For each call, whether it may run; none may while that can't be checked. */
  async gate(calls: RequestedCall[], handle: string, state: AgentState): Promise<(Refused | Allowed)[]> {
    if (this.hasNone) {
      return calls.map(({ tool }) => ({ text: noSuchTool(tool) }));
    }
    const named = calls.filter(({ tool }) => tool !== "");
    if (named.length < calls.length) {
      // A call without a name would be a mistake in what Gate is asked.
      const verdicts = await this.gate(named, handle, state);
      return calls.map((call) => verdicts[named.indexOf(call)] ?? { text: noSuchTool(call.tool) });
    }
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
   * Options of each `route`: a model that can't search is sent every tool, unless the caller chose a mode; and so many tokens
   * stand behind the tools, and such a model is asked with such a system prompt, unless the caller says it. A host that is not a
   * provider's own is told only where the caller chose a mode: behind a host that it does not know, the service would send
   * all tools by default, which additions to messages do not need.
   */
  #route(historyTokens: number | undefined, endpoint: Endpoint): RouteDefaults {
    const { model, baseUrl, contextWindow, systemTokens } = endpoint;
    const { route = {} } = this.#options;
    const { deferral = DeferralMode.UNSPECIFIED } = route.options ?? {};
    const isChosen = deferral !== DeferralMode.UNSPECIFIED;
    const options = {
      ...(historyTokens === undefined ? {} : { historyTokens }),
      ...(model === "" ? {} : { model }),
      ...(contextWindow === undefined ? {} : { contextWindow }),
      ...(systemTokens === undefined ? {} : { systemTokens }),
      ...(isOwnHost(baseUrl) || (isChosen && baseUrl !== "") ? { modelBaseUrl: baseUrl } : {}),
      ...route.options,
      ...(this.searches || isChosen ? {} : { deferral: DeferralMode.OFF }),
    };
    return { ...route, options };
  }

  #tellWarnings(warnings: readonly string[], known: readonly string[]): void {
    const { onWarning = warnOnce } = this.#options;
    for (const warning of warnings) {
      if (!known.includes(warning)) onWarning(warning);
    }
  }

  /** Decides on a call of an agent that may not have all tools of the catalog. */
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

  /**
   * Drops tools that this agent does not have, or that its turns leave out, from what was found. Counts no more deferred tools
   * than the agent has.
   */
  #ofAgent(found: SearchToolsResponse): SearchToolsResponse {
    const servers = this.#options.route?.options?.servers ?? [];
    const tools = found.tools.filter(
      ({ modelName, server }) =>
        this.#managed.has(modelName) && (servers.length === 0 || servers.includes(server)),
    );
    const message = found.message || (tools.length === 0 ? "No tool was found." : "");
    const deferredTools = Math.min(found.deferredTools, this.#managed.size);
    return { ...found, tools, message, deferredTools };
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

/** Tells whether a name looks like one that the catalog gave. */
export function isModelFacing(name: string): boolean {
  return name.startsWith(MODEL_FACING);
}

/**
 * Returns what is told of a request without a strategy: its prompt lists nothing of the catalog beside the active set, unless the
 * caller says that it does.
 *
 * @param withoutSize true where a strategy was chosen, but the messages do not fit: the size of its listing is not told then.
 */
function unlisted(route: RouteDefaults, withoutSize: boolean): RouteDefaults {
  const { promptListingTokens: _, ...others } = route;
  return { promptListing: PromptListing.NONE, ...(withoutSize ? others : route) };
}

/**
 * Returns true if the model is to see the search. Once offered, it stays, since taking it away would cost the cache of what
 * follows it; but not where the operator's kill switch is thrown.
 */
function offersSearch({ deferral }: RouteResponse, { active = [] }: Held): boolean {
  const isKilled = deferral?.reason === DeferralReason.KILL_SWITCH;
  return deferral?.offerSearch === true || (active.includes(SEARCH_TOOL.modelName) && !isKilled);
}

/** Returns what Route read of the messages; nothing where the service is older than its snapshots. */
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

/** Counts so many more searches in what a conversation remembers. */
export function afterSearches(held: Held, handle: string, searches: number): Held {
  return searches === 0 ? { ...held, handle } : { ...held, handle, spent: searched(held.spent, searches) };
}

function warnOnce(warning: string): void {
  if (told.has(warning)) {
    return;
  }
  if (told.size >= TOLD_MAX) told.clear();
  told.add(warning);
  console.warn(`toolgate: ${warning}`);
}

function warnOfOwn(names: readonly string[]): void {
  const key = names.join("\n");
  if (told.has(key)) {
    return;
  }
  if (told.size >= TOLD_MAX) told.clear();
  told.add(key);
  const are = names.length === 1 ? "tool is" : "tools are";
  console.warn(
    `toolgate: ${String(names.length)} ${are} on the agent beside Toolgate's ` +
      `(${firstOf(names)}): sent with every request, and no call of them passes Gate`,
  );
}

/** The first names, and how many more there are. */
function firstOf(names: readonly string[]): string {
  const more = names.length > NAMES_TOLD ? ` and ${String(names.length - NAMES_TOLD)} more` : "";
  return names.slice(0, NAMES_TOLD).join(", ") + more;
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
