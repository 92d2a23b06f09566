/** Messages that a run of the AI SDK adds to a conversation, in versions 6 and 7. */
import type { ModelMessage } from "ai";

/** Returns those of all steps: `response.messages` of version 7 has the last step's alone. */
export function saidIn(result: { readonly response: { readonly messages: ModelMessage[] } }): ModelMessage[] {
  const { response, responseMessages } = result as typeof result & { responseMessages?: ModelMessage[] };
  return responseMessages ?? response.messages;
}
