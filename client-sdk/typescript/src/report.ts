/** Costs of a conversation beside sending all tools, folded from what Route's answers say. Knows no framework. */
import { type Endpoint, priceOf, type Rates, ratesOf } from "./endpoint.js";
import {
  ContextWarning,
  DeferralReason,
  PromptStrategy,
  type RouteResponse,
} from "./gen/toolgate/v1/router_pb.js";
import { estimatedTokens } from "./messages.js";
import { SEARCH_TOOL } from "./offering.js";
import type { Prompt } from "./prompting.js";

/** Costs of a conversation. Tokens are those of cl100k_base, as the service counts them, summed over all requests. */
export interface Report {
  /** Requests to the model that were routed. */
  readonly requests: number;
  /** Searches of the model's that were answered. */
  readonly searches: number;
  /** Tools in the requests: defined, added or described, the search among them, without the agent's own. */
  readonly shownTokens: number;
  /** Full definitions of the catalog: what sending all tools in each request would have had. */
  readonly catalogTokens: number;
  /** `catalogTokens - shownTokens`; negative where deferral did not pay. */
  readonly savedTokens: number;
  /** Requests that had the same tools at their beginning as the one before, so that the provider's cache could serve them. */
  readonly keptPrefixes: number;
  /** Computed prices; absent where the provider's rules are not known for each request. */
  readonly price?: Price;
  /** Requests by the strategy that put them together, such as `{ native: 3 }`. */
  readonly strategies: Readonly<Record<string, number>>;
  /** Warnings of the service, each once, in the order of their first time. */
  readonly warnings: readonly string[];
  /**
   * Effective context utilisation of the last request, with the tokens that the conversation really has, from 0 to 1; absent
   * where Route was told no messages.
   */
  readonly rho?: number;
  /** The highest of all requests. */
  readonly highestRho?: number;
  /** True once a request filled 70% of the model's context window, of which Route warns. */
  readonly isWindowNearlyFull: boolean;
}

/**
 * Prices in tokens of input that is neither read from the provider's cache nor written to it, by the provider's rules. They are
 * computed for tools and messages, without the system prompt, the agent's own tools and output, on the assumption that
 * requests follow each other before the cache expires. What the provider counted is in its own answers.
 */
export interface Price {
  /** Price of what was sent. */
  readonly sent: number;
  /** The same requests with all tools of the catalog. */
  readonly allTools: number;
  /** The same requests with each active set in `tools`, where a change of it costs the cached conversation. */
  readonly routedAnew: number;
}

/** Counts of the requests so far: JSON. */
export interface Spent {
  readonly requests: number;
  readonly searches: number;
  readonly shown: number;
  readonly catalog: number;
  readonly kept: number;
  readonly price: Price | null;
  readonly strategies: Readonly<Record<string, number>>;
  readonly warnings: readonly string[];
  readonly rho?: number;
  readonly highestRho?: number;
  /** The last request. */
  readonly last: Last;
}

interface Utilisation {
  readonly rho?: number | undefined;
  readonly highestRho?: number | undefined;
}

interface Last {
  /** Tokens of each tool in `tools`, in their order. */
  readonly defined: readonly (readonly [name: string, tokens: number])[];
  /** Tokens of the tools amid the messages. */
  readonly added: number;
  readonly messages: number;
  readonly catalog: number;
  /** Names of the active set and the search, and their tokens. */
  readonly active: readonly string[];
  readonly routed: number;
}

/** Contents of a request beside the agent's own. */
export interface Sent {
  /** Names of the active set and the search, in their order; the request has them where `prompt` defines nothing. */
  readonly active: readonly string[];
  readonly prompt: Prompt | undefined;
  readonly endpoint: Endpoint;
}

const NOTHING: Spent = {
  ...{ requests: 0, searches: 0, shown: 0, catalog: 0, kept: 0 },
  price: { sent: 0, allTools: 0, routedAnew: 0 },
  strategies: {},
  warnings: [],
  last: { defined: [], added: 0, messages: 0, catalog: 0, active: [], routed: 0 },
};

const NEARLY_FULL = "conversation, tools and system prompt fill 70% of the context window or more";
const CONTEXT: ReadonlyMap<ContextWarning, string> = new Map([
  [ContextWarning.LOW_UTILISATION, "tools and system prompt are more than 70% of the request"],
  [ContextWarning.WINDOW_NEARLY_FULL, NEARLY_FULL],
]);

/** The report of what is kept. */
export function reportOf(spent: Spent = NOTHING): Report {
  const { requests, searches, shown, catalog, kept, price, strategies, warnings } = spent;
  const tokens = { shownTokens: shown, catalogTokens: catalog, savedTokens: catalog - shown };
  const rounded = price === null ? undefined : roundedOf(price);
  const counts = { requests, searches, ...tokens, keptPrefixes: kept };
  return {
    ...counts,
    ...(rounded === undefined ? {} : { price: rounded }),
    ...{ strategies, warnings, ...utilisationOf(spent) },
    isWindowNearlyFull: warnings.includes(NEARLY_FULL),
  };
}

/** Returns the counts after so many more searches. */
export function searched(spent: Spent = NOTHING, searches: number): Spent {
  return { ...spent, searches: spent.searches + searches };
}

/** Returns the counts after one more request. */
export function spentAfter(before: Spent = NOTHING, turn: RouteResponse, sent: Sent): Spent {
  const now = requestOf(before.last, turn, sent);
  const shown = definedTokens(now) + now.added;
  const kept = shared(before.last, now);
  const isKept = before.requests > 0 && hasSameTools(before.last, now);
  const rates = ratesOf(sent.endpoint);
  const strategy = strategyOf(turn, sent.prompt);
  const rho = turn.accounting?.conversationRho;
  const highestRho = rho === undefined ? before.highestRho : Math.max(rho, before.highestRho ?? 0);
  const priceAfter = ({ sent: paid, allTools, routedAnew }: Price, by: Rates): Price => ({
    sent: paid + priceOf(by, shown + now.messages, kept),
    allTools: allTools + priceOf(by, now.catalog + now.messages, sharedByAll(before.last, now)),
    routedAnew: routedAnew + priceOf(by, now.routed + now.messages, sharedAnew(before.last, now)),
  });
  return {
    requests: before.requests + 1,
    searches: before.searches,
    shown: before.shown + shown,
    catalog: before.catalog + now.catalog,
    kept: before.kept + Number(isKept),
    price: rates === undefined || before.price === null ? null : priceAfter(before.price, rates),
    strategies: { ...before.strategies, [strategy]: (before.strategies[strategy] ?? 0) + 1 },
    warnings: [...new Set([...before.warnings, ...warningsOf(turn)])],
    ...utilisationOf({ rho, highestRho }),
    last: now,
  };
}

/** Returns the warnings of the service in an answer. */
export function warningsOf({ accounting, deferral }: RouteResponse): string[] {
  const context = (accounting?.warnings ?? []).flatMap((warning) => CONTEXT.get(warning) ?? []);
  const isUnknown = deferral?.reason === DeferralReason.UNKNOWN_PROXY;
  return isUnknown ? [...context, `all tools are sent: ${deferral.message}`] : context;
}

function utilisationOf({ rho, highestRho }: Utilisation): Pick<Report, "rho" | "highestRho"> {
  return { ...(rho === undefined ? {} : { rho }), ...(highestRho === undefined ? {} : { highestRho }) };
}

function requestOf(last: Last, { accounting, activeTools }: RouteResponse, { active, prompt }: Sent): Last {
  const counted = new Map(activeTools.map(({ modelName, schemaTokens }) => [modelName, schemaTokens]));
  counted.set(SEARCH_TOOL.modelName, SEARCH_TOOL.schemaTokens);
  const before = new Map(last.defined);
  const tokensOf = (name: string, definition: unknown) =>
    counted.get(name) ?? before.get(name) ?? estimatedTokens([JSON.stringify(definition)]);
  const isPutTogether = prompt !== undefined && prompt.tools.length > 0;
  const defined = isPutTogether
    ? prompt.tools.map((tool) => [tool.name, tokensOf(tool.name, tool)] as const)
    : active.map((name) => [name, tokensOf(name, name)] as const);
  const changes = Object.values(prompt?.changes ?? {}).flat();
  const texts = [...Object.values(prompt?.added ?? {}), ...changes.map((tool) => JSON.stringify(tool))];
  return {
    defined,
    added: isPutTogether && texts.length > 0 ? estimatedTokens(texts) : 0,
    messages: Number(accounting?.conversationTokens ?? 0),
    catalog: Number(accounting?.fullCatalogTokens ?? 0),
    active,
    routed: active.reduce((sum, name) => sum + (counted.get(name) ?? 0), 0),
  };
}

/** Tokens at the beginning of a request that are those of the one before. */
function shared(before: Last, now: Last): number {
  if (!hasSameTools(before, now)) {
    const differs = now.defined.findIndex(([name], at) => before.defined[at]?.[0] !== name);
    return definedTokens({ defined: now.defined.slice(0, differs < 0 ? now.defined.length : differs) });
  }
  // Where less stands behind the tools than before, messages or additions were dropped.
  const isLonger = now.messages >= before.messages && now.added >= before.added;
  return definedTokens(now) + (isLonger ? before.added + before.messages : 0);
}

function sharedByAll(before: Last, now: Last): number {
  if (before.catalog !== now.catalog) return 0;
  return before.catalog + (now.messages >= before.messages ? before.messages : 0);
}

function sharedAnew(before: Last, now: Last): number {
  const isSame = JSON.stringify(before.active) === JSON.stringify(now.active);
  return isSame ? before.routed + (now.messages >= before.messages ? before.messages : 0) : 0;
}

function hasSameTools(before: Last, now: Last): boolean {
  const isSame = now.defined.every(([name], at) => before.defined[at]?.[0] === name);
  return isSame && now.defined.length === before.defined.length;
}

function definedTokens({ defined }: Pick<Last, "defined">): number {
  return defined.reduce((sum, [, tokens]) => sum + tokens, 0);
}

/** Names the strategy by which a request was put together. One whose additions have no place is sent with its active set in `tools`. */
function strategyOf({ rendered }: RouteResponse, prompt: Prompt | undefined): string {
  const { PASS } = PromptStrategy;
  const isPutTogether = prompt !== undefined && prompt.tools.length > 0;
  if (rendered === undefined || (!isPutTogether && rendered.strategy !== PASS)) {
    return "cut";
  }
  return PromptStrategy[rendered.strategy].toLowerCase();
}

function roundedOf({ sent, allTools, routedAnew }: Price): Price {
  return { sent: Math.round(sent), allTools: Math.round(allTools), routedAnew: Math.round(routedAnew) };
}
