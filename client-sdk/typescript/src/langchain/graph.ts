/** Nodes and an edge for LangGraph graphs of one's own: the middleware's steps, without `createAgent`. */
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { type BaseMessage, SystemMessage } from "@langchain/core/messages";
import type { StructuredToolInterface } from "@langchain/core/tools";
import {
  Annotation,
  END,
  type LangGraphRunnableConfig,
  MessagesAnnotation,
  messagesStateReducer,
} from "@langchain/langgraph";
import { ToolNode, type ToolNodeOptions } from "@langchain/langgraph/prebuilt";

import type { Held } from "../middleware.js";
import { lastAnswer, openCalls } from "./messages.js";
import { stepsOf, type ToolgateMiddleware } from "./middleware.js";
import type { AgentState, Steps } from "./steps.js";

/** State of a graph: the messages, and what Toolgate keeps. Take its `spec` for a state with more. */
export const ToolgateState = Annotation.Root({
  ...MessagesAnnotation.spec,
  _toolgate: Annotation<Held | undefined>(),
});

/** Settings of `modelNode`. */
export interface ModelNodeOptions {
  /** Tools of the graph's own, always shown and never gated; `toolNode` needs them too. Default: none. */
  readonly tools?: readonly StructuredToolInterface[];
  /** The system message, in front of the state's messages. Default: none. */
  readonly prompt?: string;
  /** Further arguments of the model's `bindTools`. Default: none. */
  readonly bind?: Record<string, unknown>;
}

/** A model that takes tools. */
type ToolModel = BaseChatModel & Required<Pick<BaseChatModel, "bindTools">>;

/**
 * Returns the node that routes, asks the model, and lets Gate decide on its calls.
 *
 *     const graph = new StateGraph(ToolgateState)
 *       .addNode("model", modelNode(toolgate, model))
 *       .addNode("tools", toolNode(toolgate))
 *       .addEdge(START, "model")
 *       .addConditionalEdges("model", callsCondition, ["tools", "model", END])
 *       .addEdge("tools", "model");
 *
 * The model's message goes to the state with the answers to refused calls and to searches.
 *
 * @param toolgate the middleware, which need not be on any agent.
 * @param model is shown the active set of the turn, by its `bindTools`.
 * @throws TypeError another middleware than Toolgate's.
 */
export function modelNode(
  toolgate: ToolgateMiddleware,
  model: ToolModel,
  { tools = [], prompt, bind = {} }: ModelNodeOptions = {},
) {
  const steps = stepsOf(toolgate);
  const first = prompt === undefined ? [] : [new SystemMessage(prompt)];
  return async (
    state: AgentState,
    config: LangGraphRunnableConfig,
  ): Promise<{ messages: BaseMessage[]; _toolgate: Held }> => {
    const { messages } = state;
    const all = [...tools, ...steps.tools()];
    const { changed, held } = await steps.routed({
      ...{ model, messages, tools: all, state, runtime: config },
      systemMessage: first[0],
    });
    const settings = { ...bind, ...changed.modelSettings };
    const bound = changed.tools.length === 0 ? model : model.bindTools(changed.tools, settings);
    const answer = await bound.invoke([...first, ...(changed.messages ?? messages)], config);
    // With an identifier, by which a corrected copy takes its place.
    const said = messagesStateReducer([], [answer]);
    const gated = await steps.gated({ messages: [...messages, ...said], _toolgate: held }, config);
    if (gated === undefined) return { messages: said, _toolgate: held };
    const { update } = gated;
    return { messages: messagesStateReducer(said, update.messages), _toolgate: update._toolgate };
  };
}

/**
 * Returns LangGraph's `ToolNode` over the tools that Toolgate manages and the graph's own. Calls that are answered already, as
 * refused ones are, keep their answers and do not run.
 *
 * @param toolgate the middleware. The node runs the tools that it has at the time of a call.
 * @param tools tools of the graph's own, as for `modelNode`.
 * @throws TypeError another middleware than Toolgate's.
 */
export function toolNode(
  toolgate: ToolgateMiddleware,
  tools: readonly StructuredToolInterface[] = [],
  options: ToolNodeOptions = {},
): ToolNode {
  return new CurrentToolNode(tools, stepsOf(toolgate), options);
}

/** A `ToolNode` whose tools are those that there are when it runs. */
class CurrentToolNode extends ToolNode {
  readonly #own: readonly StructuredToolInterface[];
  readonly #steps: Steps;

  constructor(own: readonly StructuredToolInterface[], steps: Steps, options: ToolNodeOptions) {
    super([...own, ...steps.tools()], options);
    this.#own = own;
    this.#steps = steps;
  }

  protected override async run(input: unknown, config: LangGraphRunnableConfig): Promise<unknown> {
    this.tools = [...this.#own, ...this.#steps.tools()];
    return super.run(input, config);
  }
}

/**
 * Says where a graph goes after `modelNode`; for `addConditionalEdges`.
 *
 * @returns "tools" while a call has no answer; "model" where all have one, as after a refusal, which the model can mend; `END`
 *     without calls.
 */
export function callsCondition({ messages }: AgentState): "tools" | "model" | typeof END {
  if ((lastAnswer(messages)?.tool_calls ?? []).length === 0) return END;
  return openCalls(messages).length > 0 ? "tools" : "model";
}
