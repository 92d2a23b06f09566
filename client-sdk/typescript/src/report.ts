/** Costs of a conversation beside sending all tools, folded from what Route's answers say. Knows no framework. */
import { type Endpoint, priceOf, type Rates, ratesOf, unpricedOf } from "./endpoint.js";
import {
  ContextWarning,
  DeferralReason,
  PromptStrategy,
  type RouteResponse,
} from "./gen/toolgate/v1/router_pb.js";
import type { JsonObject } from "./json.js";
import { SEARCH_TOOL } from "./offering.js";
import { CALL_TOOL, definedOf, type Prompt } from "./prompting.js";
import { modelRequest } from "./rendering.js";

/** Costs of a conversation. Tokens are those of cl100k_base, as the service counts them, summed over all requests. */
export interface Report {
  /** Requests to the model that were routed. */
  readonly requests: number;
  /** Searches of the model's that were answered. */
  readonly searches: number;
  /**
   * Tools in the requests, by Route's `accounting`: defined, added or described, the search with what it lists among them, without
   * the agent's own.
   */
  readonly shownTokens: number;
  /** Full definitions of the catalog: what sending all tools in each request would have had. */
  readonly catalogTokens: number;
  /** `catalogTokens - shownTokens`; negative where deferral did not pay. */
  readonly savedTokens: number;
  /** Requests that had the same tools at their beginning as the one before, so that the provider's cache could serve them. */
  readonly keptPrefixes: number;
  /** Computed prices; absent where the provider's rules are not known for each request. */
  readonly price?: Price;
  /** Says why there is no price; absent where there is one, and before the first request. */
  readonly unpriced?: string;
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
 * requests follow each other before the cache expires. The cache holds what a request has in common with the beginning of the one
 * before: definition by definition, then message by message. Tokens of single messages are shared out by their bytes. What the
 * provider counted is in its own answers.
 */
export interface Price {
  /** Price of what was sent. */
  readonly sent: number;
  /** The same requests with all tools of the catalog. */
  readonly allTools: number;
  /**
   * The same requests with each active set in `tools`, without tools of earlier turns, where a change of it costs the cached
   * conversation.
   */
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
  readonly unpriced?: string;
  readonly strategies: Readonly<Record<string, number>>;
  readonly warnings: readonly string[];
  readonly rho?: number;
  readonly highestRho?: number;
  /** The last request. */
  readonly last?: Last;
}

interface Utilisation {
  readonly rho?: number | undefined;
  readonly highestRho?: number | undefined;
}

/** A definition in `tools`; 0 tokens of the agent's own. */
type Definition = readonly [name: string, digest: string, tokens: number];
/** Messages beside each other. */
type Group = readonly [number: number, digest: string, bytes: number];

/** Parts of a request, in the order of the provider's cache. */
interface Last {
  readonly defined: readonly Definition[];
  readonly messages: readonly Group[];
  /** Tokens of the messages, with what was added to them. */
  readonly behind: number;
  /** Tokens of the messages without that. */
  readonly said: number;
  /**
   * Tokens of definitions in the API's form, as a share of those that are counted for all APIs: a few decide whether a short prompt
   * is cached. 1 until a request says it, with all of its tools in `tools`.
   */
  readonly form: number;
  /** Tokens of all definitions of the catalog, in the API's form. */
  readonly catalog: number;
  /** Names of the active set and the search, and their tokens, in the API's form. */
  readonly active: readonly string[];
  readonly routed: number;
}

/** A request as Route put it together. */
interface Whole {
  readonly tools: readonly JsonObject[];
  readonly messages: readonly JsonObject[];
}

/** Contents of a request, as far as Route's answer does not say. */
export interface Sent {
  /** Names of the active set and the search, in their order; the request has them where `prompt` defines nothing. */
  readonly active: readonly string[];
  readonly prompt: Prompt | undefined;
  /**
   * The number of the agent's own definitions, which stand before Route's, where the request is sent as Route put it together;
   * absent where a framework sends what `prompt` says.
   */
  readonly own?: number | undefined;
  readonly endpoint: Endpoint;
}

const NOTHING: Spent = {
  ...{ requests: 0, searches: 0, shown: 0, catalog: 0, kept: 0 },
  price: { sent: 0, allTools: 0, routedAnew: 0 },
  strategies: {},
  warnings: [],
};

/** Names of the search and of the envelope, which Route counts as one. */
const OURS: readonly string[] = [SEARCH_TOOL.modelName, CALL_TOOL];
const BYTES_A_TOKEN = 4;
/** The newest messages of a request, which are compared one by one; those before them as one. */
const APART = 64;

const NEARLY_FULL = "conversation, tools and system prompt fill 70% of the context window or more";
const CONTEXT: ReadonlyMap<ContextWarning, string> = new Map([
  [ContextWarning.LOW_UTILISATION, "tools and system prompt are more than 70% of the request"],
  [ContextWarning.WINDOW_NEARLY_FULL, NEARLY_FULL],
]);

/** The report of what is kept. */
export function reportOf(spent: Spent = NOTHING): Report {
  const { requests, searches, shown, catalog, kept, price, unpriced, strategies, warnings } = spent;
  const tokens = { shownTokens: shown, catalogTokens: catalog, savedTokens: catalog - shown };
  const rounded = price === null ? undefined : roundedOf(price);
  const counts = { requests, searches, ...tokens, keptPrefixes: kept };
  return {
    ...counts,
    ...(rounded === undefined ? {} : { price: rounded }),
    ...(unpriced === undefined ? {} : { unpriced }),
    ...{ strategies, warnings, ...utilisationOf(spent) },
    isWindowNearlyFull: warnings.includes(NEARLY_FULL),
  };
}

/** Returns the counts after so many more searches. */
export function searched(spent: Spent = NOTHING, searches: number): Spent {
  return { ...spent, searches: spent.searches + searches };
}

/** Returns the counts after one more request. */
export function spentAfter(spent: Spent = NOTHING, turn: RouteResponse, sent: Sent): Spent {
  const before = lastOf(spent);
  const whole = wholeOf(turn);
  const isWhole = whole !== undefined && isSentWhole(turn, sent);
  const now = requestOf(before, turn, sent, whole);
  const { phase1Tokens = 0n, phase2Tokens = 0n } = turn.accounting ?? {};
  const shown = isWhole ? Number(phase1Tokens + phase2Tokens) : now.routed;
  const rates = ratesOf(sent.endpoint);
  const unpriced = spent.unpriced ?? (rates === undefined ? unpricedOf(sent.endpoint) : undefined);
  const strategy = strategyOf(turn, sent.prompt);
  const rho = turn.accounting?.conversationRho;
  const highestRho = rho === undefined ? spent.highestRho : Math.max(rho, spent.highestRho ?? 0);
  const kept = before === undefined ? 0 : shared(before, now, whole?.messages ?? []);
  const priceAfter = ({ sent: paid, allTools, routedAnew }: Price, by: Rates): Price => ({
    sent: paid + priceOf(by, shown + now.said, kept),
    allTools: allTools + priceOf(by, now.catalog + now.said, sharedByAll(before, now)),
    routedAnew: routedAnew + priceOf(by, now.routed + now.said, sharedAnew(before, now)),
  });
  return {
    requests: spent.requests + 1,
    searches: spent.searches,
    shown: spent.shown + shown,
    catalog: spent.catalog + Number(turn.accounting?.fullCatalogTokens ?? 0),
    kept: spent.kept + Number(before !== undefined && hasSameTools(before, now)),
    price: rates === undefined || spent.price === null ? null : priceAfter(spent.price, rates),
    ...(unpriced === undefined ? {} : { unpriced }),
    strategies: { ...spent.strategies, [strategy]: (spent.strategies[strategy] ?? 0) + 1 },
    warnings: [...new Set([...spent.warnings, ...warningsOf(turn)])],
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

/** The last request; undefined for none. What an older version kept of it is no beginning to compare with. */
function lastOf({ last }: Spent): Last | undefined {
  return Array.isArray(last?.messages) ? last : undefined;
}

/** The request as Route put it together; undefined where it did not. */
function wholeOf(turn: RouteResponse): Whole | undefined {
  return turn.rendered === undefined || turn.rendered.messagesJson === "" ? undefined : modelRequest(turn);
}

/** Tells whether what Route put together is sent, and not the active set in `tools`. */
function isSentWhole({ rendered }: RouteResponse, { own, prompt }: Sent): boolean {
  const isPutTogether = prompt !== undefined && prompt.tools.length > 0;
  return own !== undefined || isPutTogether || rendered?.strategy === PromptStrategy.PASS;
}

/** The share of `Last.form`; that of before where the turn does not say it. */
function formOf({ rendered, accounting, activeTools }: RouteResponse, before: number): number {
  const counted = activeTools.reduce((sum, { schemaTokens }) => sum + schemaTokens, 0);
  const { CUT, PASS } = PromptStrategy;
  const isWhole = rendered !== undefined && rendered.messagesJson !== "";
  const hasAll = isWhole && (rendered.strategy === CUT || rendered.strategy === PASS);
  return hasAll && counted > 0 ? Number(accounting?.phase2Tokens ?? 0) / counted : before;
}

function requestOf(
  before: Last | undefined,
  turn: RouteResponse,
  sent: Sent,
  whole: Whole | undefined,
): Last {
  const { active, own = 0 } = sent;
  const counted = new Map(turn.activeTools.map(({ modelName, schemaTokens }) => [modelName, schemaTokens]));
  counted.set(SEARCH_TOOL.modelName, SEARCH_TOOL.schemaTokens);
  const told = turn.accounting;
  const said = Number(told?.conversationTokens ?? 0);
  const form = formOf(turn, before?.form ?? 1);
  const request = {
    said,
    form,
    messages: groupsOf(whole?.messages ?? []),
    catalog: Math.floor(Number(told?.fullCatalogTokens ?? 0) * form),
    active,
    routed: Math.floor(active.reduce((sum, name) => sum + (counted.get(name) ?? 0), 0) * form),
  };
  if (whole === undefined || !isSentWhole(turn, sent)) {
    const defined = active.map((name) => [name, digestOf([name]), counted.get(name) ?? 0] as const);
    return { ...request, defined, behind: said };
  }
  const known = before?.defined.map(([name, , tokens]) => [name, tokens] as const) ?? [];
  const ours = Number(told?.phase1Tokens ?? 0);
  const shown = ours + Number(told?.phase2Tokens ?? 0);
  const all = definitionsOf(whole.tools, own, ours, new Map([...known, ...counted]));
  const tokens = definedTokens(all);
  const share = Math.min(1, tokens === 0 ? 1 : shown / tokens);
  const defined = all.map(([name, digest, one]) => [name, digest, Math.floor(one * share)] as const);
  return { ...request, defined, behind: said + Math.max(0, shown - tokens) };
}

/**
 * The definitions in `tools`.
 *
 * @param own the number of the agent's own, which stand first.
 * @param ours tokens of the search and of the envelope together.
 * @param counted tokens of tools by their names.
 */
function definitionsOf(
  tools: readonly JsonObject[],
  own: number,
  ours: number,
  counted: ReadonlyMap<string, number>,
): Definition[] {
  const sizes = tools.map((tool) => (isOurs(tool) ? sizeOf(tool) : 0));
  const all = sizes.reduce((sum, size) => sum + size, 0);
  return tools.map((tool, at) => {
    const { name } = definedOf(tool);
    const size = sizes[at] ?? 0;
    const others = at < own ? 0 : counted.get(name) || Math.floor(sizeOf(tool) / BYTES_A_TOKEN);
    return [name, digestOf([tool]), size > 0 ? Math.floor((ours * size) / all) : others];
  });
}

function isOurs(tool: JsonObject): boolean {
  return OURS.includes(definedOf(tool).name) || tool["type"] === "tool_search";
}

function groupsOf(messages: readonly JsonObject[]): Group[] {
  const at = Math.max(0, messages.length - APART);
  const groups = [messages.slice(0, at), ...messages.slice(at).map((message) => [message])];
  return groups.flatMap((group) => {
    const bytes = group.reduce((sum, message) => sum + sizeOf(message), 0);
    return group.length === 0 ? [] : [[group.length, digestOf(group), bytes] as const];
  });
}

/** Tokens at the beginning of a request that are those of the one before. */
function shared(before: Last, now: Last, messages: readonly JsonObject[]): number {
  if (!hasSameTools(before, now)) {
    const differs = before.defined.findIndex(([, digest], at) => now.defined[at]?.[1] !== digest);
    return definedTokens(differs < 0 ? before.defined : before.defined.slice(0, differs));
  }
  const same = definedTokens(before.defined);
  if (before.messages.length === 0 || messages.length === 0) {
    return same + (now.behind >= before.behind ? before.behind : 0);
  }
  let at = 0;
  let common = 0;
  for (const [number, digest, bytes] of before.messages) {
    if (digestOf(messages.slice(at, at + number)) !== digest) break;
    at += number;
    common += bytes;
  }
  const all = before.messages.reduce((sum, [, , bytes]) => sum + bytes, 0);
  return same + Math.floor((before.behind * common) / all);
}

/** The same where both have all tools of the catalog. */
function sharedByAll(before: Last | undefined, now: Last): number {
  return before?.catalog === now.catalog ? before.catalog + saidIn(before, now) : 0;
}

/** The same where both have the active set alone. */
function sharedAnew(before: Last | undefined, now: Last): number {
  const isSame = before !== undefined && JSON.stringify(before.active) === JSON.stringify(now.active);
  return isSame ? before.routed + saidIn(before, now) : 0;
}

/** Tokens of the messages of the request before; 0 where some were dropped since. */
function saidIn(before: Last, now: Last): number {
  return now.said >= before.said ? before.said : 0;
}

function hasSameTools(before: Last, now: Last): boolean {
  const isSame = now.defined.every(([, digest], at) => before.defined[at]?.[1] === digest);
  return isSame && now.defined.length === before.defined.length;
}

function definedTokens(defined: readonly Definition[]): number {
  return defined.reduce((sum, [, , tokens]) => sum + tokens, 0);
}

function sizeOf(part: unknown): number {
  return new TextEncoder().encode(JSON.stringify(part)).length;
}

/** A short hash that differs where parts differ, but for chance; nothing to rely on against forgery. */
function digestOf(parts: readonly unknown[]): string {
  const text = parts.map((part) => JSON.stringify(part)).join("\n");
  let low = 0x811c9dc5;
  let high = 0x41c6ce57;
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    low = Math.imul(low ^ unit, 0x01000193);
    high = Math.imul(high ^ unit, 0x5f356495);
  }
  low = Math.imul(low ^ (low >>> 16), 0x85ebca6b);
  high = Math.imul(high ^ (high >>> 15), 0xc2b2ae35);
  return (low >>> 0).toString(36) + (high >>> 0).toString(36);
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
