/** Reads where a model of LangChain is asked. */
import { type Api, baseUrlOf, type Endpoint, modelNameOf } from "../endpoint.js";

/** Settings as LangChain's models keep them; most of it is promised to nobody. */
interface Model {
  readonly _llmType?: () => string;
  readonly _getModelInstance?: () => Promise<object>;
  readonly _useResponsesApi?: (options: object) => boolean;
  readonly lc_kwargs?: { readonly createClient?: unknown };
  readonly model?: unknown;
  readonly profile?: { readonly maxInputTokens?: unknown };
  /** Of `ChatAnthropic`. */
  readonly apiUrl?: unknown;
  readonly clientOptions?: { readonly baseURL?: unknown };
  /** Of `ChatOpenAI`. */
  readonly useResponsesApi?: boolean;
  readonly clientConfig?: { readonly baseURL?: unknown };
  /** Of `AzureChatOpenAI`. */
  readonly azureOpenAIEndpoint?: unknown;
  readonly azureOpenAIBasePath?: unknown;
  readonly azureOpenAIApiInstanceName?: unknown;
  /** Of Google's. */
  readonly baseUrl?: unknown;
}

/**
 * The endpoint of a model, also of one that was given by its name.
 *
 * @param said the base URL, where the caller says it.
 */
export async function endpointOf(asked: object, said?: string): Promise<Endpoint> {
  const { _getModelInstance } = asked as Model;
  const model = (_getModelInstance === undefined ? asked : await _getModelInstance.call(asked)) as Model;
  const kind = model._llmType?.() ?? "";
  const api = apiOf(model, kind);
  // A client of the caller's own may ask another service of the model.
  const isOwn = model.lc_kwargs?.createClient === undefined;
  const window = model.profile?.maxInputTokens;
  return {
    api,
    model: modelNameOf(model.model),
    baseUrl: baseUrlOf(said) ?? baseUrlOf(urlOf(model)) ?? "",
    ...(typeof window === "number" && window > 0 ? { contextWindow: window } : {}),
    takesNative: isOwn && (kind === "anthropic" || (kind === "openai" && api === "openai_responses")),
  };
}

function apiOf(model: Model, kind: string): Api {
  if (kind === "anthropic") return "anthropic";
  if (/google|vertex|gemini/.test(kind)) return "gemini";
  const usesResponses = model._useResponsesApi?.({}) ?? model.useResponsesApi === true;
  return usesResponses ? "openai_responses" : "openai_chat";
}

function urlOf(model: Model): unknown {
  const { azureOpenAIApiInstanceName: instance } = model;
  return (
    model.apiUrl ??
    model.clientOptions?.baseURL ??
    model.azureOpenAIEndpoint ??
    model.azureOpenAIBasePath ??
    (typeof instance === "string" ? `https://${instance}.openai.azure.com` : undefined) ??
    model.clientConfig?.baseURL ??
    model.baseUrl
  );
}
