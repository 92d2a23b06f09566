/** The agent's model, which is shown the active set and whose calls are gated. */
import {
  type Model,
  type ModelRequest,
  type ModelResponse,
  OpenAIResponsesModel,
  Runner,
} from "@openai/agents";

import { baseUrlOf, type Endpoint, modelNameOf } from "../endpoint.js";

/** Output of a model. */
export type Output = ModelResponse["output"];

/** Steps around a request. */
export interface Around {
  /** The request to send. */
  shown(request: ModelRequest, model: Model): Promise<ModelRequest>;
  /** The output with calls of the tools that the model meant. */
  gated(output: Output, request: ModelRequest): Promise<Output>;
}

/** Settings as the SDK's own models keep them; nothing of it is promised. */
interface Settings {
  readonly _model?: unknown;
  readonly _client?: { readonly baseURL?: unknown };
}

/** The endpoint of a model. The SDK has items of Responses, whichever API they go to. */
export function endpointOf(model: Model, named: string, said?: string): Endpoint {
  const { _model, _client } = model as Settings;
  return {
    api: "openai_responses",
    model: modelNameOf(_model ?? named),
    baseUrl: baseUrlOf(said) ?? baseUrlOf(_client?.baseURL) ?? "",
    takesNative: model instanceof OpenAIResponsesModel,
  };
}

/** The model with steps around each request. One that is known by its name is asked of the default provider. */
export function gatedModel(named: string | Model, around: Around): Model {
  let found: Promise<Model> | undefined;
  const inner = async (): Promise<Model> => {
    if (typeof named !== "string") return named;
    found ??= Promise.resolve(new Runner().config.modelProvider.getModel(named === "" ? undefined : named));
    return found;
  };
  const supportsPromptModelSelection =
    typeof named === "string" ? undefined : named.supportsPromptModelSelection;
  return {
    ...(supportsPromptModelSelection === undefined ? {} : { supportsPromptModelSelection }),
    async getResponse(request) {
      const model = await inner();
      const response = await model.getResponse(await around.shown(request, model));
      return { ...response, output: await around.gated(response.output, request) };
    },
    async *getStreamedResponse(request) {
      const model = await inner();
      for await (const event of model.getStreamedResponse(await around.shown(request, model))) {
        if (event.type !== "response_done") {
          yield event;
          continue;
        }
        const output = await around.gated(event.response.output, request);
        yield { ...event, response: { ...event.response, output: output as typeof event.response.output } };
      }
    },
    async getRetryAdvice(asked) {
      return (await inner()).getRetryAdvice?.(asked);
    },
  };
}
