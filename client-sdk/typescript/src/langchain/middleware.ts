/** The middleware: routes before the model, shows it the active set, gates its calls after it. */
import { type BaseMessage, ToolMessage } from "@langchain/core/messages";
import type { ToolCall } from "@langchain/core/messages/tool";
import type { StructuredToolInterface } from "@langchain/core/tools";
import { Command } from "@langchain/langgraph";
import { createMiddleware } from "langchain";
import { z } from "zod";

import { of as callOf } from "../calls.js";
import type { RemoteClient } from "../client.js";
import type { Endpoint } from "../endpoint.js";
import { conversationIn } from "../forms.js";
import { afterSearches, type Allowed, Gatekeeper, type Held, type MiddlewareOptions } from "../middleware.js";
import { SEARCH_TOOL } from "../offering.js";
import { checkedStrategy, type Defined, type Prompt, type Strategy } from "../prompting.js";
import { type Report, reportOf } from "../report.js";
import { ServedServers } from "../serving.js";
import { among, type Registering, servingOf } from "../settings.js";
import type { Grants } from "../state.js";
import { endpointOf } from "./endpoint.js";
import type { McpClient } from "../mcp.js";
import { ListedMcp } from "./mcp.js";
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
import { messagesOf } from "./prompt.js";
import { answeringErrors, registered, searchTool } from "./tools.js";

/** Circumstances for which a function is to give grants. */
export interface Asked {
  /** The graph's state. */
  readonly state: { readonly messages: BaseMessage[] };
  /** LangChain's runtime, with the context that the caller of the agent gave. */
  readonly runtime: unknown;
}

/** Settings of the middleware. */
export interface ToolgateMiddlewareOptions extends MiddlewareOptions {
  /** The agent's scopes, milestones and attributes, which no message can say. Default: none. */
  readonly grants?: Grants | ((asked: Asked) => Grants | Promise<Grants>);
  /**
   * Counts the tokens of the messages, which stand behind the tools: Route is told (`historyTokens`), and changes the set
   * only where that is worth the cache. Default: an estimate, a token for four bytes of text. False: not told.
   */
  readonly countTokens?: ((messages: readonly BaseMessage[]) => number) | false;
  /**
   * Way of tools into requests; other strategies than "cut" need `search`. "native" needs a `ChatAnthropic`, or a `ChatOpenAI`
   * with `useResponsesApi`; "auto" takes it there at the provider's own host. Default: "auto".
   */
  readonly strategy?: Strategy;
  /** Told after each run of the agent what its conversation cost so far. Default: nobody. */
  readonly onReport?: (report: Report, asked: Asked) => void;
}

/** Settings of a middleware that registers its tools itself; their tenant is `route.tenant`. */
export type FromMcpOptions = ToolgateMiddlewareOptions & Registering;

/** Entry of the middleware in the graph's state, and so in its checkpoints. */
const stateSchema = z.object({ _toolgate: z.custom<Held>().optional() });

/** The graph's state, as far as the middleware reads it. */
export interface AgentState {
  readonly messages: BaseMessage[];
  readonly _toolgate?: Held | undefined;
}

/** A request to the model, as far as the middleware reads it. */
interface Asking {
  readonly model: object;
  readonly messages: BaseMessage[];
  readonly tools: readonly AnyTool[];
  readonly state: AgentState;
  readonly runtime: unknown;
  readonly modelSettings?: Record<string, unknown>;
}

/** A tool of LangChain's, or a provider's definition. */
export type AnyTool = StructuredToolInterface | Record<string, unknown>;

/** Steps around a model, of agents and of graphs of one's own. */
export interface Steps {
  /** Gives the tools that Toolgate manages now, the search among them. */
  tools(): StructuredToolInterface[];
  /** Routes: the fields of the request to change, and what to remember. */
  routed(request: Asking): Promise<{
    readonly changed: {
      readonly tools: AnyTool[];
      readonly messages?: BaseMessage[];
      readonly modelSettings?: Record<string, unknown>;
    };
    readonly held: Held;
  }>;
  /** Gates the calls of the model's last message: an update of the state; undefined where it has none to answer or correct. */
  gated(
    state: AgentState,
    runtime: unknown,
  ): Promise<
    | {
        readonly update: { readonly messages: BaseMessage[]; readonly _toolgate: Held };
        /** True if all calls have their answers. */
        readonly isDone: boolean;
      }
    | undefined
  >;
}

/** The steps of each middleware. */
const steps = new WeakMap<object, Steps>();

/**
 * Returns the steps of a middleware.
 *
 * @throws TypeError another middleware than Toolgate's.
 */
export function stepsOf(middleware: object): Steps {
  const found = steps.get(middleware);
  if (found === undefined) throw new TypeError("this is no middleware of Toolgate's: make one with fromMcp");
  return found;
}

/** Toolgate's middleware. */
export type ToolgateMiddleware = ReturnType<typeof toolgateMiddleware>;

/**
 * Shows the model the active set of its turn, and lets only calls run that Gate allows.
 *
 *     const agent = createAgent({ model, middleware: [toolgateMiddleware(client, tools)] });
 *
 * Each model call is routed by the user's last message and, within a turn, by what the last tool answered. Calls that
 * may not run, whatever names they have, are answered with the refusal, in words for the model, so that it can correct
 * itself. A middleware that adds tools of its own in `wrapModelCall` goes before this one: calls of tools that this one
 * does not know of are refused. Where tools are
 * deferred, the model also sees a search for them, whose calls are answered here: what it finds is in the active set from
 * then on. Everything that a conversation needs is in the graph's state: one instance serves any number of them, and a
 * checkpointed one goes on elsewhere.
 *
 * When Toolgate can't be reached, the model keeps the active set that it has, or sees all tools; calls are refused until
 * they can be checked.
 *
 * @param tools all tools that Toolgate manages, under model-facing names (`modelFacing`). They are registered with the
 *   agent; don't give them to `createAgent` too. Tools given there are always shown and never gated.
 * @throws TypeError tools under other names, or no such strategy.
 */
export function toolgateMiddleware(
  client: RemoteClient,
  tools: readonly StructuredToolInterface[],
  options: ToolgateMiddlewareOptions = {},
) {
  return middlewareOf(client, tools, options, undefined, undefined).middleware;
}

/**
 * The middleware over tools that come from no MCP server, which are registered with their schemas, and again after the service
 * lost its catalog. Turns are routed among these servers alone, unless `route` names others.
 *
 *     const agent = createAgent({ model, middleware: [await fromTools(client, { notes: [find, erase] })] });
 *
 * @param tools the tools, by the names of the servers that they are to be in the catalog.
 * @throws TypeError settings of a server that is not among them.
 * @throws ToolgateError a registration failed.
 */
export async function fromTools(
  client: RemoteClient,
  tools: Readonly<Record<string, readonly StructuredToolInterface[]>>,
  options: FromMcpOptions = {},
) {
  const served = new ServedServers(client, Object.keys(tools), servingOf(options));
  const managed = await registered(served, tools);
  return middlewareOf(client, managed, among(served.names, options), served, undefined).middleware;
}

/**
 * The middleware over MCP servers, whose tools are registered as the servers list them, and again after the service lost its
 * catalog. Turns are routed among these servers alone, unless `route` names others.
 *
 *     const mcp = new Client({ name: "agent", version: "1" });
 *     await mcp.connect(transport);
 *     const agent = createAgent({ model, middleware: [await fromMcp(client, { everything: mcp })] });
 *
 * A server that can't be listed is left out with a warning, and so is each tool that is rejected or waits for approval.
 *
 * After a server said that its tools changed (`notifications/tools/list_changed`), the next step registers and shows what it lists
 * by then, in agents that exist too. `refresh` of the middleware does so at once, for servers that don't say it. It throws
 * ToolgateError where a registration fails.
 *
 * @param servers connected clients of `@modelcontextprotocol/sdk`, by the servers' names in the catalog; the caller closes
 *   them.
 * @throws TypeError settings of a server that is not among them.
 * @throws ToolgateError a registration failed.
 */
export async function fromMcp(
  client: RemoteClient,
  servers: Readonly<Record<string, McpClient>>,
  options: FromMcpOptions = {},
) {
  const mcp = new ListedMcp(client, servers, servingOf(options));
  await mcp.load();
  const settings = among(mcp.served.names, options);
  const { middleware, takeOver } = middlewareOf(client, mcp.tools, settings, mcp.served, mcp);
  const refresh = async (): Promise<void> => {
    await mcp.load();
    takeOver(mcp.tools);
  };
  return Object.assign(middleware, { refresh });
}

function middlewareOf(
  client: RemoteClient,
  tools: readonly StructuredToolInterface[],
  options: ToolgateMiddlewareOptions,
  served: ServedServers | undefined,
  mcp: ListedMcp | undefined,
) {
  const gatekeeper = new Gatekeeper(client, namesOf(tools), options, served);
  const search = gatekeeper.searches ? [searchTool()] : [];
  // An agent keeps the tools that it was made with: one that a refresh took away is no tool of the agent's own.
  const taken = new WeakSet<object>([...search, ...tools]);
  let managed = tools;
  let ours = byName([...search, ...tools]);
  const takeOver = (listed: readonly StructuredToolInterface[]): void => {
    gatekeeper.manage(namesOf(listed));
    for (const tool of listed) taken.add(tool);
    managed = listed;
    ours = byName([...search, ...listed]);
  };
  const { grants = {}, countTokens = tokensOf, onReport } = options;
  const strategy = checkedStrategy(options.strategy, gatekeeper.searches);
  const routed = (messages: readonly BaseMessage[], held: Held, granted: Grants, endpoint: Endpoint) => {
    const intents = intentsOf(messages);
    if (strategy !== "cut") {
      const { entries, places } = conversationIn(endpoint.api, messages.map(spokenOf));
      // What is described at the end of the messages has nothing behind it.
      const turn = { intents, historyTokens: 0, endpoint, rendered: { strategy, places } };
      return gatekeeper.route(entries, turn, held, granted);
    }
    const historyTokens = countTokens === false ? undefined : countTokens(messages);
    return gatekeeper.route(messages.map(entryOf), { intents, historyTokens, endpoint }, held, granted);
  };
  const described = (messages: readonly BaseMessage[], prompt: Prompt) => {
    const defined = new Set(prompt.tools.map(({ name }) => name));
    return messagesOf(messages, prompt, (name) => ours.has(name) && !defined.has(name));
  };
  const follow = async (): Promise<void> => {
    if (mcp === undefined) return;
    await mcp.follow();
    if (mcp.tools !== managed) takeOver(mcp.tools);
  };
  const grantsOf = async (state: AgentState, runtime: unknown) =>
    typeof grants === "function" ? grants({ state, runtime }) : grants;

  const routedRequest: Steps["routed"] = async (request) => {
    const { messages, state, runtime } = request;
    const endpoint = await endpointOf(request.model, gatekeeper.baseUrl);
    if (strategy === "native") checkNative(request.model, endpoint);
    await gatekeeper.attempt(follow);
    const granted = await grantsOf(state, runtime);
    const after = await routed(messages, heldIn(state), granted, endpoint);
    // The agent's own tools first, then the active set in its order, so that caches hold.
    const own = request.tools.filter((tool) => !taken.has(tool));
    const names = own.flatMap(({ name }) => (typeof name === "string" ? [name] : []));
    gatekeeper.tellOwn(names);
    const shown = after.active?.flatMap((name) => ours.get(name) ?? []) ?? managed;
    gatekeeper.tellMany(own.length + shown.length);
    const held = { ...after, own: names };
    const { prompt } = after;
    if (strategy === "cut" || prompt === undefined || prompt.tools.length === 0) {
      return { changed: { tools: [...own, ...shown] }, held };
    }
    const listed = prompt.tools.map((tool) => definitionOf(tool, ours));
    const isNative = prompt.changes !== undefined;
    const sent = isNative
      ? withTools(
          messagesOf(messages, prompt, () => false),
          prompt,
          endpoint,
        )
      : described(messages, prompt);
    const settings = withBetas(request.modelSettings, prompt);
    return { changed: { ...settings, messages: sent, tools: [...own, ...listed] }, held };
  };

  const gatedCalls: Steps["gated"] = async (state, runtime) => {
    const said = lastAnswer(state.messages);
    if (said === undefined || openCalls(state.messages).length === 0) {
      return undefined;
    }
    const answer = identified(said);
    const conversation = state.messages.map((message) => (message === said ? answer : message));
    const { messages, meant, held, isDone } = await answered({ ...state, messages: conversation }, runtime);
    // In the place of the model's message, since the identifier is the same.
    const corrected = meant.size > 0 ? renamed(answer, meant) : answer;
    const changed = corrected === said ? [] : [corrected];
    if (messages.length + changed.length === 0) {
      return undefined;
    }
    return { update: { messages: [...changed, ...messages], _toolgate: held }, isDone };
  };

  /** Answers to the calls that may not run and to searches; other calls are left to the agent. */
  async function answered(state: AgentState, runtime: unknown) {
    const calls = openCalls(state.messages);
    const held = heldIn(state);
    const { handle, own } = held;
    const agent = gatekeeper.state(state.messages.map(entryOf), held, await grantsOf(state, runtime));
    const gated = calls.filter(({ name }) => !gatekeeper.isSearch(name) && gatekeeper.isOurs(name, own));
    const verdicts = await gatekeeper.gate(gated.map(requested), handle, agent);
    const refused = gated.flatMap((call, at) => {
      const verdict = verdicts[at];
      return verdict !== undefined && "text" in verdict ? [messageOf(call, verdict.text, true)] : [];
    });
    const messages = [...refused];
    let carried = handle;
    const searches = calls.filter(({ name }) => gatekeeper.isSearch(name));
    for (const call of searches) {
      // One after another: each adds to the handle that the one before gave.
      const answer = await gatekeeper.search(requested(call), carried, agent);
      carried = answer.handle;
      messages.push(messageOf(call, answer.text, answer.failed));
    }
    const meant = new Map<string, Allowed>();
    gated.forEach(({ id, name }, at) => {
      const verdict = verdicts[at];
      if (verdict !== undefined && "tool" in verdict && verdict.tool !== name) meant.set(id ?? "", verdict);
    });
    const isDone = messages.length === calls.length;
    return { messages, meant, held: afterSearches(held, carried, searches.length), isDone };
  }

  const middleware = createMiddleware({
    name: "ToolgateMiddleware",
    stateSchema,
    tools: [...search, ...tools],
    wrapModelCall: async (request, handler) => {
      const { changed, held } = await routedRequest(request as Asking);
      await handler({ ...request, ...changed } as typeof request);
      // LangChain adds the model's message by itself.
      return new Command({ update: { _toolgate: held } });
    },
    // Tools that came after the agent was made are not among those that it runs.
    ...(mcp === undefined ? {} : { wrapToolCall: answeringErrors((name) => ours.get(name)) }),
    ...(onReport === undefined
      ? {}
      : {
          afterAgent: (state: AgentState, runtime: unknown) => {
            onReport(reportIn(state), { state, runtime });
            return undefined;
          },
        }),
    afterModel: {
      canJumpTo: ["model"],
      hook: async (state, runtime) => {
        const gated = await gatedCalls(state, runtime);
        if (gated === undefined) {
          return undefined;
        }
        const { update, isDone } = gated;
        // Where no call is left to run, LangChain would take the turn for over.
        return isDone ? { ...update, jumpTo: "model" as const } : update;
      },
    },
  });
  steps.set(middleware, { tools: () => [...search, ...managed], routed: routedRequest, gated: gatedCalls });
  return { middleware: Object.assign(middleware, { report: reportIn }), takeOver };
}

/** A tool of Route's answer. The search says there which tools it finds. */
function definitionOf(tool: Defined, ours: ReadonlyMap<string, StructuredToolInterface>) {
  const known = tool.name === SEARCH_TOOL.modelName ? undefined : ours.get(tool.name);
  return known ?? { type: "function", function: tool };
}

function namesOf(tools: readonly StructuredToolInterface[]): string[] {
  return tools.map(({ name }) => name);
}

function byName(tools: readonly StructuredToolInterface[]): ReadonlyMap<string, StructuredToolInterface> {
  return new Map(tools.map((tool) => [tool.name, tool]));
}

/**
 * Reports what a conversation cost so far, beside sending all tools.
 *
 * @param state the graph's state, such as `(await agent.graph.getState(thread)).values`.
 */
function reportIn(state: { readonly _toolgate?: Held | undefined }): Report {
  return reportOf(state._toolgate?.spent);
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
