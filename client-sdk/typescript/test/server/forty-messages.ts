/** A talk of forty messages, the same for each integration, and the requests that it makes, as a provider's cache sees them. */
import assert from "node:assert/strict";

import { type Line, type Reply } from "./anthropic-api.js";
import { CALL, type Desk, enveloped, type Listed, shipped } from "./talks.js";

const TURNS = 40;
/** Turns from one in which the model calls a tool to the next. */
const CALLS_EVERY = 5;
/** Characters at the end of a request that another message moves. */
const CLOSING = "]}".length;
/** Keys that no model sees: marks of cached prefixes, and identifiers, which sessions of the Agents SDK leave out. */
const UNSEEN = ["cache_control", "id"];
const THINGS: Readonly<Record<string, readonly string[]>> = {
  water: ["tomatoes", "orchids", "lawn"],
  feed: ["cat", "goldfish", "chickens"],
  open: ["garage", "greenhouse", "letterbox"],
  dim: ["bedroom_lights", "kitchen_lights", "porch_lights"],
  vacuum: ["carpet", "stairs", "car"],
  sharpen: ["knives", "scissors", "axe"],
};
const HOUSE = Object.entries(THINGS).flatMap(([verb, things]) => things.map((thing) => `${verb}_${thing}`));
const OTHERS: readonly (readonly [tool: string, text: string])[] = [
  ["mcp__time__get_current_time", "what time is it in Tokyo right now?"],
  ["mcp__git__git_log", "show the git log of the last ten commits"],
  ["mcp__git__git_status", "show me the git status of the working tree"],
  ["mcp__time__convert_time", "convert the time 14:30 from Oslo to Tokyo time"],
];
const OF_HOUSE = HOUSE.map((name) => [`mcp__house__${name}`, `please ${name.replaceAll("_", " ")}`] as const);
const isEven = (_: unknown, at: number) => at % 2 === 0;
const TOPICS = [...OF_HOUSE.filter(isEven), ...OTHERS, ...OF_HOUSE.filter((_, at) => !isEven(_, at))];
/** The tool that each message is about, and the message. */
const SAID = Array.from({ length: TURNS }, (_, turn) => TOPICS[turn % TOPICS.length] ?? ["", ""]);
const ANSWER =
  "That is done. " + "Here is what came of it, in a few words, as an assistant says it. ".repeat(3);
const ARGUMENTS: Readonly<Record<string, object>> = {
  mcp__time__get_current_time: { timezone: "Asia/Tokyo" },
};

/** The words of the talk. */
export const WORDS = SAID.map(([, text]) => text);
/** The tools of the talk: 18 of a house, and so many of shipped servers that sending all costs more than deferring some. */
export const DESK: Desk = {
  servers: { ...shipped("time", "git", "filesystem", "memory"), house: HOUSE.map(ofHouse) },
  returns: "It is done.",
};

function ofHouse(name: string): Listed {
  const properties = { text: { type: "string" } };
  return {
    name,
    description: `Use it to ${name.replaceAll("_", " ")} in the garden shed.`,
    inputSchema: { type: "object", properties },
  };
}

/** A request to the model. */
interface Request {
  /** The message that it is about, from 0. */
  readonly turn: number;
  /** True if nothing was called in its turn yet. */
  readonly isFirst: boolean;
  /** The names of the tools that are defined before the messages. */
  readonly tools: readonly string[];
  /** The messages or items. */
  readonly messages: readonly Readonly<Record<string, unknown>>[];
  /** The JSON of its definitions, then of its messages, as a model sees them. */
  readonly text: string;
}

/** The scripted model's side: calls the right tool every few messages; keeps its requests. */
export class Model {
  readonly requests: Request[] = [];
  /** Answers a request: more often than the talk needs it. */
  readonly script: readonly Reply[] = Array<Reply>(2 * TURNS).fill((body) => this.#answer(body));
  #turn = 0;

  #answer(body: Parameters<Reply>[0]): Line {
    const [tools, messages] = partsOf(body);
    const isFirst = this.requests.at(-1)?.turn !== this.#turn;
    const names = tools.map(nameOf);
    const text = JSON.stringify({ tools, messages }, (key, value: unknown) =>
      UNSEEN.includes(key) ? undefined : value,
    );
    this.requests.push({ turn: this.#turn, isFirst, tools: names, messages, text });
    if (isFirst && this.#turn % CALLS_EVERY === 0) {
      const [name] = SAID[this.#turn] ?? [""];
      return enveloped([name, ARGUMENTS[name] ?? { text: "now" }])(body);
    }
    this.#turn += 1;
    return ANSWER;
  }
}

type Named = Readonly<Record<string, unknown>>;

/** The definitions and the messages of a request to any API. */
function partsOf(body: Named): [tools: Named[], messages: Named[]] {
  const { tools = [] } = body as { tools?: Named[] };
  const messages = body["messages"] ?? body["input"] ?? body["contents"];
  const declared = tools.flatMap((tool) => (tool["functionDeclarations"] as Named[] | undefined) ?? [tool]);
  return [declared, messages as Named[]];
}

/** The name in a definition of any API; the type of a provider's own tool. */
function nameOf(tool: Named): string {
  const defined = (tool["function"] ?? tool) as { name?: string; type?: string };
  return defined.name ?? defined.type ?? "";
}

/** The names of the tools that the messages of a request describe, in their order. */
function described({ text }: Request): string[] {
  return Array.from(text.matchAll(/\{\\+"name\\+":\\+"(mcp__[\w-]+)/g), ([, name = ""]) => name);
}

/** The names of the tools that a request defines amid its messages. */
function added({ messages }: Request): string[] {
  return messages.flatMap(({ type, role, tools, content }) => {
    if (type === "additional_tools") return (tools as Named[]).map(nameOf);
    if (role !== "system" || !Array.isArray(content)) return [];
    const blocks = content as { tool?: { definition: Named } }[];
    return blocks.flatMap(({ tool }) => (tool === undefined ? [] : [nameOf(tool.definition)]));
  });
}

/** Gives how many characters each request shares with the beginning of the one before it. */
function cached(requests: readonly Request[]): number[] {
  return requests.map(({ text }, at) => sharedBeginning(requests[at - 1]?.text ?? "", text));
}

function sharedBeginning(before: string, after: string): number {
  let at = 0;
  while (at < before.length && before[at] === after[at]) at += 1;
  return at;
}

/** Holds that the definitions stay, and the cached prefix too, or loses tools that nothing uses. */
export function checkEnvelope(requests: readonly Request[]): void {
  for (const { tools } of requests) assert.deepEqual(tools, ["toolgate_search_tools", CALL]);
  checkPrefix(requests, described);
}

/** Holds the same of tools that are defined amid the messages. */
export function checkNative(requests: readonly Request[]): void {
  for (const { tools } of requests) assert.deepEqual(tools, requests[0]?.tools);
  assert.ok(!requests[0]?.tools.some(isOfCatalog));
  for (const request of requests) assert.deepEqual(described(request), [], "tools are defined amid them");
  checkPrefix(requests, added);
}

/** Holds that each request begins with the one before it, but for tools that are taken out. */
function checkPrefix(requests: readonly Request[], shown: (request: Request) => string[]): void {
  assert.ok(requests.length > TURNS);
  const prefixes = cached(requests);
  let whole = 0;
  requests.slice(1).forEach((after, at) => {
    const before = requests[at] ?? after;
    const isWhole = before.text.length - (prefixes[at + 1] ?? 0) <= CLOSING;
    const earlier = shown(before);
    const stay = isSame(shown(after).slice(0, earlier.length), earlier);
    assert.equal(
      isWhole,
      stay,
      `request ${String(at + 1)}: only tools that nothing uses any more are taken out`,
    );
    whole += Number(isWhole);
  });
  assert.ok(whole > (requests.length * 2) / 3);
}

/** Holds what the defaults keep: the definitions, and so the cache. The tool of each message is shown, and never all of them. */
export function checkDefault(requests: readonly Request[]): void {
  checkRight(requests);
  // A short request is in no cache, so that other tools cost nothing.
  const later = requests.slice(requests.length / 2);
  for (const { tools } of later) assert.deepEqual(tools, later[0]?.tools, "the definitions stay");
  const sent = later.reduce((sum, { text }) => sum + text.length, 0);
  const prefixes = cached(requests).slice(-later.length);
  const served = prefixes.reduce((sum, prefix) => sum + prefix, 0) / sent;
  assert.ok(served > 0.85, `the cache serves 85% or more, not ${String(served)}`);
  const every = Object.values(DESK.servers).flat().length;
  for (const request of requests) assert.ok(shownIn(request).size < every);
}

/** Holds that the tool of each message is shown. */
export function checkRight(requests: readonly Request[]): void {
  const first = requests.filter(({ isFirst }) => isFirst);
  assert.equal(first.length, TURNS);
  for (const request of first) {
    const [tool] = SAID[request.turn] ?? [""];
    assert.ok(shownIn(request).has(tool), `message ${String(request.turn)}: ${tool} is shown`);
  }
}

/** The tools of the catalog that a request defines or describes. */
function shownIn(request: Request): Set<string> {
  return new Set([...request.tools, ...described(request), ...added(request)].filter(isOfCatalog));
}

function isOfCatalog(name: string): boolean {
  return name.startsWith("mcp__");
}

function isSame(one: readonly string[], other: readonly string[] = []): boolean {
  return one.join() === other.join();
}
