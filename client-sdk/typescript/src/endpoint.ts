/** Says where a model is asked: Route prices requests and chooses a strategy by it. Knows no framework. */

/** APIs in whose form Route puts requests together. */
export type Api = "anthropic" | "openai_chat" | "openai_responses" | "gemini";

/** The endpoint of a model, as far as its object says. */
export interface Endpoint {
  readonly api: Api;
  /** The model's name; "": unknown. */
  readonly model: string;
  /** Base URL without credentials and query; "": the provider's own host, or unknown. */
  readonly baseUrl: string;
  /** Its context window, in tokens; absent: unknown. */
  readonly contextWindow?: number;
  /** Tokens of the system prompt, about; absent: none, or unknown. */
  readonly systemTokens?: number;
  /** True if the library can send tools amid the messages of this model. */
  readonly takesNative: boolean;
}

/** Rules by which a provider prices the tokens of a prompt, as the service has them (`server/llm/src/price.rs`). */
export interface Rates {
  /** Price of a token that is written to the cache; one that is neither written nor read costs 1. */
  readonly write: number;
  /** Price of a token that is read from the cache. */
  readonly read: number;
  /** Least tokens of a prompt that is cached. */
  readonly least: number;
  /** Tokens by which longer prefixes are told apart. */
  readonly step: number;
}

/** Nothing is known: a model of Chat Completions, which other providers and local servers have too. */
export const UNKNOWN_ENDPOINT: Endpoint = { api: "openai_chat", model: "", baseUrl: "", takesNative: false };

/** Hosts of the providers' own, and those below them. */
const OWN_HOSTS = ["api.anthropic.com", "api.openai.com", "openai.azure.com", "googleapis.com"];

/** Limits of the service. */
const MODEL_BYTES = 256;
const URL_BYTES = 2048;

/** Parts of the names of Anthropic's models that cache from another length on. */
const CLAUDE_4096 = /opus-4-[56]|haiku-4-5/;
const CLAUDE_2048 = /opus-4-7|sonnet-4-6|haiku-3|3-haiku|3-5-haiku/;
const CLAUDE_512 = /(?:opus|fable|mythos)-5/;

const ANTHROPIC: Rates = { write: 1.25, read: 0.1, least: 1024, step: 1 };
const OPENAI: Rates = { write: 1, read: 0.1, least: 1024, step: 128 };
const OPENAI_LATER: Rates = { ...OPENAI, write: 1.25 };
const GEMINI: Rates = { write: 1, read: 0.1, least: 4096, step: 1 };
const GEMINI_2_5: Rates = { ...GEMINI, least: 2048 };

/** A base URL as Route takes it, without credentials and query; undefined: none, or nothing that is a URL. */
export function baseUrlOf(url: unknown): string | undefined {
  if (typeof url !== "string" || !URL.canParse(url)) {
    return undefined;
  }
  const { protocol, host, pathname } = new URL(url);
  const clean = `${protocol}//${host}${pathname}`.replace(/\/+$/, "");
  return host === "" || clean.length > URL_BYTES ? undefined : clean;
}

/** A model's name as Route takes it. */
export function modelNameOf(name: unknown): string {
  const isTaken = typeof name === "string" && new TextEncoder().encode(name).length <= MODEL_BYTES;
  return isTaken ? name : "";
}

/** Returns true if a base URL is one of a provider's own. */
export function isOwnHost(baseUrl: string): boolean {
  const host = URL.canParse(baseUrl) ? new URL(baseUrl).hostname : "";
  return OWN_HOSTS.some((own) => host === own || host.endsWith(`.${own}`));
}

/** Returns true if tools amid the messages reach a model that takes them: the library sends them, and the host is the provider's. */
export function carriesNative({ takesNative, baseUrl }: Endpoint): boolean {
  return takesNative && (baseUrl === "" || isOwnHost(baseUrl));
}

/** The rules of an endpoint; undefined where they are not known. */
export function ratesOf({ api, model }: Pick<Endpoint, "api" | "model">): Rates | undefined {
  const name = model.toLowerCase();
  const gpt = versionOf(name, "gpt-");
  const openai = gpt !== undefined && gpt >= 5.06 ? OPENAI_LATER : OPENAI;
  switch (api) {
    case "anthropic":
      return { ...ANTHROPIC, least: leastOfClaude(name) };
    case "openai_responses":
      return openai;
    case "openai_chat":
      return gpt === undefined ? undefined : openai;
    case "gemini":
      return (versionOf(name, "gemini-") ?? 3) < 3 ? GEMINI_2_5 : GEMINI;
  }
}

/** Says why requests of an endpoint without rules have no price. */
export function unpricedOf({ model }: Pick<Endpoint, "model">): string {
  if (model === "") return "nothing says which model is asked";
  const known = "that of Anthropic's, OpenAI's (gpt-...) and Gemini's models is";
  return `how ${model} caches is not known behind Chat Completions; ${known}, and rules of other models can't be given`;
}

/**
 * The price of a prompt, in tokens of input that is neither read from a cache nor written to one.
 *
 * @param tokens tokens of the prompt.
 * @param shared those at its beginning that an earlier request had too.
 */
export function priceOf({ write, read, least, step }: Rates, tokens: number, shared: number): number {
  if (tokens < least) {
    return tokens;
  }
  const same = Math.min(shared, tokens);
  const cached = same < least ? 0 : same - ((same - least) % step);
  return cached * read + (tokens - cached) * write;
}

function leastOfClaude(name: string): number {
  if (CLAUDE_4096.test(name)) return 4096;
  if (CLAUDE_2048.test(name)) return 2048;
  return CLAUDE_512.test(name) ? 512 : ANTHROPIC.least;
}

/** The version behind a prefix in a model's name; its minor number counts hundredths. */
function versionOf(name: string, prefix: string): number | undefined {
  const at = name.indexOf(prefix);
  const [, major, minor = "0"] =
    /^(\d+)(?:\.(\d+))?/.exec(at < 0 ? "" : name.slice(at + prefix.length)) ?? [];
  return major === undefined ? undefined : Number(major) + Number(minor) / 100;
}
