/** Steps around a model, of agents and of graphs of one's own: routing before it, gating of its calls after it. */
import { type BaseMessage, ToolMessage } from "@langchain/core/messages";
import type { ToolCall } from "@langchain/core/messages/tool";
import type { StructuredToolInterface } from "@langchain/core/tools";

import { of as callOf } from "../calls.js";
import type { Endpoint } from "../endpoint.js";
import { conversationIn } from "../forms.js";
import type { AgentState as CallersState } from "../gen/toolgate/v1/state_pb.js";
import { withSystem } from "../messages.js";
import { afterSearches, type Allowed, type Gatekeeper, type Held, type Refused } from "../middleware.js";
import { SEARCH_TOOL } from "../offering.js";
import { checkedStrategy, type Defined, type Prompt, type Strategy } from "../prompting.js";
import type { Grants } from "../state.js";
import { endpointOf } from "./endpoint.js";
import type { ManagedTools } from "./managed.js";
import {
  entryOf,
  identified,
  intentsOf,
  lastAnswer,
  openCalls,
  renamed,
  spokenOf,
  tokensOf,
} from "./messages.js";
import { checkNative, withBetas, withTools } from "./native.js";
import type { ToolgateMiddlewareOptions } from "./options.js";
import { messagesOf } from "./prompt.js";

/** The graph's state, as far as the steps read it. */
export interface AgentState {
  readonly messages: BaseMessage[];
  readonly _toolgate?: Held | undefined;
}

/** A tool of LangChain's, or a provider's definition. */
export type AnyTool = StructuredToolInterface | Record<string, unknown>;

/** A request to the model, as far as the steps read it. */
export interface Asking {
  readonly model: object;
  readonly messages: BaseMessage[];
  readonly tools: readonly AnyTool[];
  readonly state: AgentState;
  readonly runtime: unknown;
  readonly modelSettings?: Record<string, unknown>;
  readonly systemMessage?: BaseMessage | undefined;
}

/** Fields of a request that are to be others. */
interface Changed {
  readonly tools: AnyTool[];
  readonly messages?: BaseMessage[];
  readonly modelSettings?: Record<string, unknown>;
}

/** An update of the graph's state after the model's calls were decided on. */
interface Gated {
  readonly update: { readonly messages: BaseMessage[]; readonly _toolgate: Held };
  /** True if all calls have their answers. */
  readonly isDone: boolean;
}

/** Answers to calls that may not run and to searches; other calls are left to the agent. */
interface Answered {
  readonly messages: ToolMessage[];
  /** The verdicts on calls under other names than their tools', by the calls' identifiers. */
  readonly meant: ReadonlyMap<string, Allowed>;
  readonly held: Held;
  /** True if all calls have their answers. */
  readonly isDone: boolean;
}

/** A call, and Gate's verdict on it. */
interface Judged {
  readonly call: ToolCall;
  readonly verdict: Refused | Allowed;
}

/** Steps around a model. They hold nothing of a conversation. */
export class Steps {
  readonly #gatekeeper: Gatekeeper;
  readonly #managed: ManagedTools;
  readonly #options: ToolgateMiddlewareOptions;
  readonly #strategy: Strategy;

  /** @throws TypeError no such strategy, or one that needs the search. */
  constructor(gatekeeper: Gatekeeper, managed: ManagedTools, options: ToolgateMiddlewareOptions) {
    this.#gatekeeper = gatekeeper;
    this.#managed = managed;
    this.#options = options;
    this.#strategy = checkedStrategy(options.strategy, gatekeeper.searches);
  }

  /** Gives the tools that Toolgate manages now, the search among them. */
  tools(): StructuredToolInterface[] {
    return this.#managed.all;
  }

  /** Routes: the fields of the request to change, and what to remember. */
  async routed(request: Asking): Promise<{ readonly changed: Changed; readonly held: Held }> {
    const endpoint = await endpointOf(request.model, this.#gatekeeper.baseUrl);
    if (this.#strategy === "native") checkNative(request.model, endpoint);
    await this.#gatekeeper.attempt(() => this.#managed.follow());
    const after = await this.#route(request, this.#withSystem(endpoint, request));
    const own = request.tools.filter((tool) => !this.#managed.hasTaken(tool));
    const names = own.flatMap(({ name }) => (typeof name === "string" ? [name] : []));
    const shown = this.#shownAfter(after);
    this.#gatekeeper.tellOwn(names);
    this.#gatekeeper.tellMany(own.length + shown.length);
    const { prompt } = after;
    const isPutTogether = this.#strategy !== "cut" && prompt !== undefined && prompt.tools.length > 0;
    // The agent's own tools first, then the active set in its order, so that caches hold.
    const changed = isPutTogether
      ? { ...this.#additions(request, prompt, endpoint), tools: [...own, ...this.#definedIn(prompt)] }
      : { tools: [...own, ...shown] };
    return { changed, held: { ...after, own: names } };
  }

  /** Gates the calls of the model's last message; undefined where it has none to answer or correct. */
  async gated(state: AgentState, runtime: unknown): Promise<Gated | undefined> {
    const said = lastAnswer(state.messages);
    if (said === undefined || openCalls(state.messages).length === 0) {
      return undefined;
    }
    const answer = identified(said);
    const conversation = state.messages.map((message) => (message === said ? answer : message));
    const { messages, meant, held, isDone } = await this.#answered(
      { ...state, messages: conversation },
      runtime,
    );
    // In the place of the model's message, since the identifier is the same.
    const corrected = meant.size > 0 ? renamed(answer, meant) : answer;
    const changed = corrected === said ? [] : [corrected];
    if (messages.length + changed.length === 0) {
      return undefined;
    }
    return { update: { messages: [...changed, ...messages], _toolgate: held }, isDone };
  }

  /** Asks Route by the messages, in the way that the strategy needs them. */
  async #route({ messages, state, runtime }: Asking, endpoint: Endpoint): Promise<Held> {
    const granted = await this.#grants(state, runtime);
    const held = heldIn(state);
    const intents = intentsOf(messages);
    const historyTokens = this.#historyTokens(messages);
    if (this.#strategy === "cut") {
      const turn = { intents, historyTokens, endpoint };
      return this.#gatekeeper.route(messages.map(entryOf), turn, held, granted);
    }
    const { entries, places } = conversationIn(endpoint.api, messages.map(spokenOf));
    const turn = { intents, historyTokens, endpoint, rendered: { strategy: this.#strategy, places } };
    return this.#gatekeeper.route(entries, turn, held, granted);
  }

  async #grants(state: AgentState, runtime: unknown): Promise<Grants> {
    const { grants = {} } = this.#options;
    return typeof grants === "function" ? grants({ state, runtime }) : grants;
  }

  /** The endpoint with the system prompt that is sent, unless the caller has no tokens told. */
  #withSystem(endpoint: Endpoint, { systemMessage }: Asking): Endpoint {
    const isTold = this.#options.countTokens !== false && systemMessage !== undefined;
    return isTold ? withSystem(endpoint, [systemMessage.text]) : endpoint;
  }

  #historyTokens(messages: readonly BaseMessage[]): number | undefined {
    const { countTokens = tokensOf } = this.#options;
    return countTokens === false ? undefined : countTokens(messages);
  }

  /** The active set; all tools where there is none. */
  #shownAfter({ active }: Held): readonly StructuredToolInterface[] {
    return active?.flatMap((name) => this.#managed.named(name) ?? []) ?? this.#managed.listed;
  }

  /** The tools to define in a request that Route put together. The search says there which tools it finds. */
  #definedIn({ tools }: Prompt): AnyTool[] {
    return tools.map((tool: Defined) => {
      const known = tool.name === SEARCH_TOOL.modelName ? undefined : this.#managed.named(tool.name);
      return known ?? { type: "function", function: tool };
    });
  }

  /** The messages and settings of a request that Route put together. */
  #additions(
    { messages, modelSettings }: Asking,
    prompt: Prompt,
    endpoint: Endpoint,
  ): Omit<Changed, "tools"> {
    const isNative = prompt.changes !== undefined;
    const defined = new Set(prompt.tools.map(({ name }) => name));
    const isWrapped = (name: string): boolean =>
      !isNative && this.#managed.named(name) !== undefined && !defined.has(name);
    const described = messagesOf(messages, prompt, isWrapped);
    const sent = isNative ? withTools(described, prompt, endpoint) : described;
    return { ...withBetas(modelSettings, prompt), messages: sent };
  }

  async #answered(state: AgentState, runtime: unknown): Promise<Answered> {
    const calls = openCalls(state.messages);
    const held = heldIn(state);
    const granted = await this.#grants(state, runtime);
    const callers = this.#gatekeeper.state(state.messages.map(entryOf), held, granted);
    const judged = await this.#judged(calls, held, callers);
    const searches = calls.filter(({ name }) => this.#gatekeeper.isSearch(name));
    const found = await this.#searched(searches, held.handle, callers);
    const messages = [...refusalsOf(judged), ...found.messages];
    return {
      messages,
      meant: meantIn(judged),
      held: afterSearches(held, found.handle, searches.length),
      isDone: messages.length === calls.length,
    };
  }

  /** Lets Gate decide on the calls that are neither searches nor of the agent's own tools. */
  async #judged(calls: readonly ToolCall[], held: Held, callers: CallersState): Promise<Judged[]> {
    const gated = calls.filter(
      ({ name }) => !this.#gatekeeper.isSearch(name) && this.#gatekeeper.isOurs(name, held.own),
    );
    const verdicts = await this.#gatekeeper.gate(gated.map(requested), held.handle, callers);
    return gated.flatMap((call, at) => {
      const verdict = verdicts[at];
      return verdict === undefined ? [] : [{ call, verdict }];
    });
  }

  /** Answers searches one after another: each adds to the handle that the one before gave. */
  async #searched(
    searches: readonly ToolCall[],
    handle: string,
    callers: CallersState,
  ): Promise<{ readonly messages: ToolMessage[]; readonly handle: string }> {
    const messages: ToolMessage[] = [];
    let carried = handle;
    for (const call of searches) {
      const answer = await this.#gatekeeper.search(requested(call), carried, callers);
      carried = answer.handle;
      messages.push(messageOf(call, answer.text, answer.failed));
    }
    return { messages, handle: carried };
  }
}

function refusalsOf(judged: readonly Judged[]): ToolMessage[] {
  return judged.flatMap(({ call, verdict }) =>
    "text" in verdict ? [messageOf(call, verdict.text, true)] : [],
  );
}

function meantIn(judged: readonly Judged[]): ReadonlyMap<string, Allowed> {
  const meant = new Map<string, Allowed>();
  for (const { call, verdict } of judged) {
    if ("tool" in verdict && verdict.tool !== call.name) meant.set(call.id ?? "", verdict);
  }
  return meant;
}

function heldIn(state: AgentState): Held {
  return state._toolgate ?? { handle: "" };
}

function requested({ name, args, id }: ToolCall) {
  return callOf(name, args, id ?? "");
}

function messageOf({ name, id }: ToolCall, content: string, failed: boolean): ToolMessage {
  return new ToolMessage({ content, name, tool_call_id: id ?? "", status: failed ? "error" : "success" });
}
