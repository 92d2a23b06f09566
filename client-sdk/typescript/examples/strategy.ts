import type Anthropic from "@anthropic-ai/sdk";
import { agentState, type Client, modelRequest, v1 } from "@toolgate/client";

type Message = Anthropic.Beta.BetaMessageParam;

/** Asks the model about a conversation; `held` is what is kept beside its messages: "" at first. */
export async function ask(
  client: Client,
  anthropic: Anthropic,
  model: string,
  conversation: Message[],
  held: { intent: string; handle: string; snapshot: string; ledger: string },
) {
  const { ANTHROPIC: format } = v1.ToolFormat;
  const { AUTO: strategy } = v1.PromptStrategy;
  const turn = await client.route({
    intents: [{ text: held.intent }],
    activeSetHandle: held.handle,
    state: agentState({ messages: conversation, snapshot: held.snapshot }),
    options: { model },
    render: { format, strategy, searchTool: true, ledger: held.ledger },
  });
  const { tools, messages, betas, ledger } = modelRequest<Anthropic.Beta.BetaToolUnion, Message>(turn);
  Object.assign(held, { handle: turn.activeSetHandle, snapshot: turn.conversationSnapshot, ledger });
  return anthropic.beta.messages.create({ model, max_tokens: 1024, tools, messages, betas: [...betas] });
}
