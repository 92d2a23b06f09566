/** Reads where a model of the AI SDK is asked. */
import type { LanguageModel } from "ai";

import { type Api, baseUrlOf, type Endpoint, modelNameOf, UNKNOWN_ENDPOINT } from "../endpoint.js";

/** Settings as the AI SDK's own providers keep them; nothing of it is promised. */
interface Config {
  readonly baseURL?: unknown;
  readonly baseUrl?: unknown;
  readonly url?: unknown;
}

/** Beginnings and parts of the providers' names, by the API that they speak. */
const APIS: readonly (readonly [part: RegExp, api: Api])[] = [
  [/anthropic/, "anthropic"],
  [/^google/, "gemini"],
  [/responses/, "openai_responses"],
];

/**
 * The endpoint of a model. A base URL that can't be read, as of a model that a middleware wraps, may be a proxy's: what only the
 * provider itself is sure to take is not sent there.
 *
 * @param said the base URL, where the caller says it.
 */
export function endpointOf(model: LanguageModel | undefined, said?: string): Endpoint {
  if (typeof model !== "object") {
    return { ...UNKNOWN_ENDPOINT, model: modelNameOf(model) };
  }
  const { provider } = model;
  const baseUrl = baseUrlOf(said) ?? readUrl(model);
  const api = APIS.find(([part]) => part.test(provider))?.[1] ?? "openai_chat";
  return {
    api,
    model: modelNameOf(model.modelId),
    baseUrl: baseUrl ?? "",
    takesNative: isAnthropic(model) && baseUrl !== undefined,
  };
}

/** Returns true if a model is one of `@ai-sdk/anthropic`, which alone has tools amid the messages. */
export function isAnthropic(model: LanguageModel | undefined): boolean {
  return typeof model === "object" && model.provider.startsWith("anthropic");
}

function readUrl(model: object): string | undefined {
  const { config } = model as { readonly config?: Config | null };
  const { modelId } = model as { readonly modelId?: unknown };
  const url = config?.baseURL ?? config?.baseUrl ?? config?.url;
  try {
    return baseUrlOf(
      typeof url === "function" ? (url as (of: object) => unknown)({ path: "", modelId }) : url,
    );
  } catch {
    return undefined;
  }
}
