/** One conversation of a loop of one's own over a provider's API. */
import { ANSWERS, type Form, messagesIn, type Result } from "./answers.js";
import { of as callOf } from "./calls.js";
import type { RemoteClient } from "./client.js";
import { type Api, baseUrlOf, type Endpoint, modelNameOf } from "./endpoint.js";
import { envelopeIn } from "./envelope.js";
import { Following, Listener } from "./following.js";
import {
  PromptStrategy,
  type RequestedCall,
  type RouteResponse,
  StrategyReason,
  ToolFormat,
} from "./gen/toolgate/v1/router_pb.js";
import { get, isObject, type JsonObject, listOf, objectIn, stringOf } from "./json.js";
import { callTool, type McpClient, toolsOf } from "./mcp.js";
import { estimatedTokens, intentOf } from "./messages.js";
import { afterSearches, Gatekeeper, type Held, type MiddlewareOptions } from "./middleware.js";
import { SEARCH_TOOL } from "./offering.js";
import { checkedWhole, type WholeStrategy } from "./prompting.js";
import { type ModelRequest, modelRequest, renderedTools } from "./rendering.js";
import { type Report, reportOf } from "./report.js";
import { ServedServers } from "./serving.js";
import { among, type Registering, servingOf } from "./settings.js";
import type { Grants } from "./state.js";

const NOTHING = "No tool fits: try other words, fewer of them with a +, or an MCP server's name.";
const LATER = " The servers in `pending_servers` are still connecting: search again in a while.";

/**
 * Runs a call that Gate allows: the server's name, the tool's own name and the arguments. A call of the agent's own tools has
 * the server "". The result is a text, or a value of JSON; what it throws is told to the model as a failure.
 */
export type RunTool = (server: string, name: string, args: JsonObject) => unknown;

/** Settings of a conversation; the tenant of its registrations is `route.tenant`. */
export interface ConversationOptions<T extends object = JsonObject, M extends object = JsonObject>
  extends Pick<MiddlewareOptions, "route" | "onFault" | "onWarning">, Omit<Registering, "onWarning"> {
  /** The model's name, by which Route prices requests and knows what the model takes. Default: unknown. */
  readonly model?: string;
  /** Base URL of the model's API. Behind a host that the service does not know, Route sends all tools. Default: the provider's own host. */
  readonly baseUrl?: string;
  /** The model's context window, in tokens. Default: unknown. */
  readonly contextWindow?: number;
  /**
   * Way of tools into requests; "auto" leaves it to Route, by the price, and may take "native", so that `betas` goes with each
   * request. Default: "auto".
   */
  readonly strategy?: WholeStrategy;
  /** The agent's scopes, milestones and attributes, which no message can say. Default: none. */
  readonly grants?: Grants;
  /** Definitions of the agent's own tools in the API's form: always sent and never gated. Default: none. */
  readonly own?: readonly T[];
  /** Runs calls of `own`. Default with `fromTools`: the function that runs the others. */
  readonly runOwn?: RunTool;
  /** Messages of before, to go on with. Default: none. */
  readonly messages?: readonly M[];
  /** Value of `state`, to go on with a conversation elsewhere. Default: a new one. */
  readonly state?: Held;
}

/** A tool that Toolgate manages. */
interface Managed {
  readonly modelName: string;
  readonly server: string;
  readonly name: string;
}

/** Answers to the calls of a model's answer. */
interface Answers {
  /** The model's answer, as JSON. */
  readonly key: string;
  /** Messages that answer the calls; none where it has none. */
  readonly messages: readonly JsonObject[];
  /** The last result that says something of what is wanted. */
  readonly observed: string;
}

/** Answer to a search of OpenAI's own. */
interface Found {
  /** Item with the definitions of what was found. */
  readonly output: JsonObject;
  /** The search's whole answer, for whose text the item has no place. */
  readonly text: string;
  readonly isEmpty: boolean;
}

/** Tools of a conversation, and how they are run. */
interface Source {
  readonly served: ServedServers;
  readonly following: Following<Managed>;
  readonly run: RunTool;
}

/**
 * Puts requests together, lets Gate decide on calls, and runs them.
 *
 *     const conversation = await Conversation.fromMcp(client, "anthropic", { git: mcp }, { model });
 *     let request: ModelRequest | undefined = await conversation.say("what changed since yesterday?");
 *     while (request !== undefined) {
 *       const { tools, messages, betas } = request;
 *       const asked = { model, max_tokens: 1024, tools, messages, betas: [...betas] };
 *       request = await conversation.take(await anthropic.beta.messages.create(asked));
 *     }
 *     console.log(conversation.text);
 *
 * The messages are kept in the provider's form, without what Route adds to requests. When Toolgate can't be reached, the tools
 * of the last request stay, and calls are refused until they can be checked.
 */
export class Conversation<T extends object = JsonObject, M extends object = JsonObject> {
  /** The conversation, without what Route adds. */
  readonly messages: M[];
  readonly #client: RemoteClient;
  readonly #source: Source;
  readonly #gatekeeper: Gatekeeper;
  readonly #form: Form;
  readonly #endpoint: Endpoint;
  readonly #tenant: { readonly tenant?: string };
  readonly #strategy: WholeStrategy;
  readonly #grants: Grants;
  readonly #own: readonly T[];
  readonly #ownNames: readonly string[];
  readonly #runOwn: RunTool;
  #managed: ReadonlyMap<string, Managed> = new Map();
  #held: Held;
  #sent: ModelRequest<T, M> | undefined;
  /** Messages that the last request has. */
  #covered = 0;
  #said = "";
  #observed = "";
  #text = "";
  /** Answers to calls that ran, while the request with them could not be had. */
  #unsent: Answers | undefined;

  private constructor(client: RemoteClient, api: Api, source: Source, options: ConversationOptions<T, M>) {
    const { own = [], runOwn = source.run, grants = {}, messages = [], state = { handle: "" } } = options;
    const settings = among(source.served.names, settingsOf(options));
    this.#client = client;
    this.#source = source;
    this.#gatekeeper = new Gatekeeper(client, [], settings, source.served);
    this.#form = ANSWERS[api];
    this.#endpoint = endpointOf(api, settings);
    const tenant = options.route?.tenant;
    this.#tenant = tenant === undefined ? {} : { tenant };
    this.#strategy = checkedWhole(options.strategy);
    this.#grants = grants;
    this.#own = own;
    this.#ownNames = own.map(nameOf).filter((name) => name !== "");
    this.#runOwn = runOwn;
    this.#held = state;
    this.messages = [...messages];
    this.#takeOver();
  }

  /**
   * A conversation over MCP servers, whose tools are registered as the servers list them, and again after the service lost
   * its catalog; calls that Gate allows are made there. A server that can't be listed is left out with a warning. What a server
   * says of its tools (`notifications/tools/list_changed`) is followed by the next request; while it can't be listed then, its
   * tools stay, and a request tries again once 30 s have passed.
   *
   * @param servers connected clients of `@modelcontextprotocol/sdk`, by the servers' names in the catalog; the caller closes
   *     them.
   * @throws TypeError no such API or strategy, or settings of a server that is not among them.
   * @throws ToolgateError a registration failed.
   */
  static async fromMcp<T extends object = JsonObject, M extends object = JsonObject>(
    client: RemoteClient,
    api: Api,
    servers: Readonly<Record<string, McpClient>>,
    options: ConversationOptions<T, M> = {},
  ): Promise<Conversation<T, M>> {
    check(api, options.strategy);
    const served = new ServedServers(client, Object.keys(servers), servingOf(options));
    const listener = new Listener();
    const following = new Following(served.names, async (server) => {
      const mcp = servers[server];
      if (mcp === undefined) return [];
      listener.listen(
        mcp,
        () => {
          following.markChanged(server);
        },
        true,
      );
      let listed: readonly object[];
      try {
        listed = await toolsOf(server, mcp);
      } catch (error) {
        return served.leaveOut(server, error);
      }
      return managedOf(server, await served.register(server, listed));
    });
    await following.load();
    const run: RunTool = async (server, name, args) => {
      const mcp = servers[server];
      if (mcp === undefined) throw new TypeError("runOwn is not given");
      return callTool(mcp, name, args);
    };
    return new Conversation(client, api, { served, following, run }, options);
  }

  /**
   * A conversation over tools of one's own, which are registered, and again after the service lost its catalog.
   *
   * @param servers definitions as MCP's `tools/list` has them, by the name of the server that they are to have in the catalog.
   * @param run runs the calls that Gate allows.
   * @throws TypeError no such API or strategy, or settings of a server that is not among them.
   * @throws ToolgateError a registration failed.
   */
  static async fromTools<T extends object = JsonObject, M extends object = JsonObject>(
    client: RemoteClient,
    api: Api,
    servers: Readonly<Record<string, readonly object[]>>,
    run: RunTool,
    options: ConversationOptions<T, M> = {},
  ): Promise<Conversation<T, M>> {
    check(api, options.strategy);
    const served = new ServedServers(client, Object.keys(servers), servingOf(options));
    const following = new Following(served.names, async (server) =>
      managedOf(server, await served.register(server, servers[server] ?? [])),
    );
    await following.load();
    return new Conversation(client, api, { served, following, run }, options);
  }

  /** Texts that the model said last. */
  get text(): string {
    return this.#text;
  }

  /** The conversation's memory, as JSON: keep it with the messages, and give it back to go on elsewhere. */
  get state(): Held {
    return this.#held;
  }

  /** The conversation's cost so far, beside sending all tools. It is kept in `state`. */
  report(): Report {
    return reportOf(this.#held.spent);
  }

  /**
   * Adds what the user says; gives the request to send to the model. After an error the conversation is as before.
   *
   * @param content a text, or the provider's blocks.
   * @throws ToolgateError Route refused what was asked.
   */
  async say(content: string | readonly object[]): Promise<ModelRequest<T, M>> {
    const said = typeof content === "string" ? content : textIn(content);
    return this.#next([this.#form.user(content)], said, "");
  }

  /**
   * Takes the model's answer, and runs what Gate allows of its calls. After an error the messages are as before: take the answer
   * again, which runs nothing twice.
   *
   * @param answer the object of the provider's package, or its JSON; of a stream, what the provider's package makes of it, and a
   *     list of Gemini's chunks.
   * @returns the next request; undefined once the model calls nothing: `text` has what it said.
   * @throws TypeError a list, of another API than Gemini's.
   * @throws ToolgateError Route or Gate refused what was asked.
   */
  async take(answer: object): Promise<ModelRequest<T, M> | undefined> {
    const said = messagesIn(this.#form, answer);
    const answers = await this.#answersTo(said);
    this.#unsent = answers.messages.length === 0 ? undefined : answers;
    let request: ModelRequest<T, M> | undefined;
    if (answers.messages.length === 0) this.#add(said);
    else request = await this.#next([...said, ...answers.messages], this.#said, answers.observed);
    this.#text = this.#form.text(said);
    return request;
  }

  /** Answers the calls of a model's answer; those that were answered already are not made again. */
  async #answersTo(said: readonly JsonObject[]): Promise<Answers> {
    const key = JSON.stringify(said);
    if (this.#unsent?.key === key) return this.#unsent;
    const held = this.#held;
    try {
      const found: Found[] = [];
      for (const item of said.filter(isOursToAnswer)) found.push(await this.#found(item));
      const answers = found.map(({ output }) => output);
      const told = toldOf(found);
      const calls = this.#form.calls(said);
      if (calls.length === 0) return { key, messages: [...answers, ...told], observed: this.#observed };
      const results = await this.#results(calls);
      const done = results.findLast(({ call, failed }) => !failed && call.tool !== SEARCH_TOOL.modelName);
      const messages = [...answers, ...this.#form.results(results), ...told];
      return { key, messages, observed: done?.text ?? this.#observed };
    } catch (error) {
      this.#held = held;
      throw error;
    }
  }

  /** The request with more messages, which are taken back if it can't be had. */
  async #next(more: readonly JsonObject[], said: string, observed: string): Promise<ModelRequest<T, M>> {
    const before = { at: this.messages.length, said: this.#said, observed: this.#observed };
    this.#add(more);
    this.#said = said;
    this.#observed = observed;
    try {
      const request = await this.#request();
      this.#unsent = undefined;
      return request;
    } catch (error) {
      this.messages.splice(before.at, more.length);
      this.#said = before.said;
      this.#observed = before.observed;
      throw error;
    }
  }

  async #request(): Promise<ModelRequest<T, M>> {
    await this.#gatekeeper.attempt(async () => {
      if (await this.#source.following.follow()) this.#takeOver();
    });
    const historyTokens = estimatedTokens(this.messages.map((message) => JSON.stringify(message)));
    const rendered = { strategy: this.#strategy, own: this.#own };
    const intents = [...intentOf(this.#said), ...intentOf(this.#observed, true)];
    const turn = { intents, historyTokens, endpoint: this.#endpoint, rendered };
    const routed = await this.#gatekeeper.routed(this.messages, turn, this.#held, this.#grants);
    const request = routed === undefined ? this.#last(intents.length > 0) : this.#requestOf(routed.turn);
    this.#held = routed?.held ?? { ...this.#held, isUnread: true };
    this.#sent = request;
    this.#covered = this.messages.length;
    return request;
  }

  /** The request of a turn. Of a conversation that one call does not take, Route gives the definitions alone. */
  #requestOf(turn: RouteResponse): ModelRequest<T, M> {
    if (turn.rendered?.messagesJson) return modelRequest<T, M>(turn);
    const tools = [...this.#own, ...renderedTools<T>(turn)];
    return { ...this.#with(tools, [...this.messages]), strategy: PromptStrategy.CUT };
  }

  /**
   * The request that is not routed, with the tools of the last one.
   *
   * @param isRoutable there is a text to route by.
   */
  #last(isRoutable: boolean): ModelRequest<T, M> {
    let why = isRoutable ? "Toolgate could not route" : "there is no text to route by";
    if (this.#gatekeeper.hasNone) why = "there are no servers to route among";
    const kept = this.#sent === undefined ? "the agent's own tools alone" : "the tools are those of before";
    const before = this.#sent ?? this.#with([...this.#own], []);
    return {
      ...before,
      messages: [...before.messages, ...this.messages.slice(this.#covered)],
      reason: StrategyReason.KEPT,
      reasonMessage: `${why}: ${kept}`,
    };
  }

  #with(tools: T[], messages: M[]): ModelRequest<T, M> {
    const { UNSPECIFIED } = PromptStrategy;
    const why = { strategy: UNSPECIFIED, reason: StrategyReason.UNSPECIFIED, reasonMessage: "" };
    return { tools, messages, betas: [], ledger: "", ...why };
  }

  /** Results of the calls, in their order; those that may run do so side by side. */
  async #results(calls: readonly RequestedCall[]): Promise<Result[]> {
    const isGated = ({ tool }: RequestedCall) =>
      !this.#ownNames.includes(tool) && tool !== SEARCH_TOOL.modelName;
    const gated = calls.filter(isGated);
    const verdicts = await this.#gatekeeper.gate(gated, this.#held.handle, this.#agent());
    // One after another, since each adds to the handle that the one before gave; and before anything runs that an error of the
    // service would have run twice.
    const found = new Map<RequestedCall, Result>();
    for (const call of calls) {
      if (call.tool === SEARCH_TOOL.modelName) found.set(call, await this.#search(call));
    }
    const answered = async (call: RequestedCall): Promise<Result> => {
      const search = found.get(call);
      if (search !== undefined) return search;
      if (!isGated(call)) {
        return this.#ran(call, () => this.#runOwn("", call.tool, argumentsOf(call)));
      }
      const verdict = verdicts[gated.indexOf(call)];
      if (verdict === undefined || "text" in verdict) {
        return { call, text: verdict?.text ?? "", failed: true };
      }
      const { server, name } = this.#managed.get(verdict.tool) ?? { server: "", name: verdict.tool };
      const args = verdict.argumentsJson === "" ? innerOf(call) : (objectIn(verdict.argumentsJson) ?? {});
      return this.#ran(call, () => this.#source.run(server, name, args));
    };
    return Promise.all(calls.map(answered));
  }

  async #ran(call: RequestedCall, run: () => unknown): Promise<Result> {
    try {
      const result = await run();
      return {
        call,
        text: typeof result === "string" ? result : JSON.stringify(result ?? null),
        failed: false,
      };
    } catch (error) {
      const said = error instanceof Error ? error.message || error.name : String(error);
      return { call, text: said, failed: true };
    }
  }

  async #search(call: RequestedCall): Promise<Result> {
    const { text, failed, handle } = await this.#gatekeeper.search(call, this.#held.handle, this.#agent());
    this.#held = afterSearches(this.#held, handle, 1);
    return { call, text, failed };
  }

  /** Answers a search of OpenAI's own, which the client is to execute. */
  async #found(item: JsonObject): Promise<Found> {
    const call = callOf(SEARCH_TOOL.modelName, item["arguments"], stringOf(item["call_id"]));
    const { text } = await this.#search(call);
    const names = listOf(get(objectIn(text) ?? {}, "tools")).map((tool) =>
      String((tool as JsonObject)["name"]),
    );
    const tools = names.length === 0 ? [] : await this.#schemas(names);
    const found = { type: "tool_search_output", execution: "client", status: "completed" };
    return { output: { ...found, call_id: item["call_id"], tools }, text, isEmpty: names.length === 0 };
  }

  async #schemas(names: string[]): Promise<JsonObject[]> {
    const render = { format: ToolFormat.OPENAI_RESPONSES };
    const asked = { ...this.#tenant, names, state: this.#agent(), render };
    let tools: JsonObject[] = [];
    await this.#gatekeeper.attempt(async () => {
      tools = renderedTools(await this.#client.batchGetToolSchemas(asked));
    });
    return tools;
  }

  /** The agent's state: what the last request was routed by. */
  #agent() {
    return this.#gatekeeper.state(this.messages.slice(0, this.#covered), this.#held, this.#grants);
  }

  #add(messages: readonly JsonObject[]): void {
    this.messages.push(...(messages as M[]));
  }

  /** Takes the tools that there are now. */
  #takeOver(): void {
    const { loaded } = this.#source.following;
    this.#managed = new Map(loaded.map((tool) => [tool.modelName, tool]));
    this.#gatekeeper.manage(this.#managed.keys());
  }
}

/** Refuses mistakes before anything is registered. */
function check(api: Api, strategy: WholeStrategy | undefined): void {
  checkedWhole(strategy);
  if (!Object.hasOwn(ANSWERS, api)) {
    throw new TypeError(`api is one of ${Object.keys(ANSWERS).join(", ")}, not "${api}"`);
  }
}

/** The settings of each turn, with what the caller says of the model. */
function settingsOf<T extends object, M extends object>(
  options: ConversationOptions<T, M>,
): MiddlewareOptions {
  const { model, baseUrl, contextWindow, route = {}, onFault, onWarning } = options;
  const of = {
    ...(model === undefined ? {} : { model }),
    ...(baseUrl === undefined ? {} : { modelBaseUrl: baseUrl }),
    ...(contextWindow === undefined ? {} : { contextWindow }),
  };
  return {
    route: { ...route, options: { ...of, ...route.options } },
    ...(onFault === undefined ? {} : { onFault }),
    ...(onWarning === undefined ? {} : { onWarning }),
  };
}

/** The model that is asked. The caller sends requests as Route put them together, so that it can send tools amid them. */
function endpointOf(api: Api, { route = {} }: MiddlewareOptions): Endpoint {
  const { model, modelBaseUrl } = route.options ?? {};
  return { api, model: modelNameOf(model), baseUrl: baseUrlOf(modelBaseUrl) ?? "", takesNative: true };
}

function managedOf(server: string, names: ReadonlyMap<string, string>): Managed[] {
  return Array.from(names, ([name, modelName]) => ({ modelName, server, name }));
}

/** Tells that an answer's item is a search of OpenAI's own that the provider does not execute itself. */
function isOursToAnswer({ type, execution }: JsonObject): boolean {
  return type === "tool_search_call" && execution !== "server";
}

/** Messages of the developer's that say why a search found nothing, or how many tools are deferred in all. */
function toldOf(found: readonly Found[]): JsonObject[] {
  const reasons = found.filter(({ isEmpty }) => isEmpty).map(({ text }) => reasonOf(text));
  if (reasons.length === 0) {
    const count = objectIn(found.at(-1)?.text ?? "")?.["deferred_tools"];
    if (count !== undefined) reasons.push(JSON.stringify({ deferred_tools: count }));
  }
  return reasons.map((content) => ({ role: "developer", content }));
}

/**
 * The answer of a search that found nothing, as the developer may say it. The search's own words are left out: the model may
 * have them from a tool's result, and a developer's message ranks above the user's.
 */
function reasonOf(text: string): string {
  const answer = objectIn(text);
  if (answer === undefined || "error" in answer || !("message" in answer)) return text;
  const later = listOf(answer["pending_servers"]).length === 0 ? "" : LATER;
  return JSON.stringify({ ...answer, message: NOTHING + later });
}

/** A definition's name, in the form of any API; "" for a tool without one, such as a provider's own. */
function nameOf(tool: object): string {
  const { name, function: defined } = tool as { name?: unknown; function?: { name?: unknown } };
  return stringOf(name ?? defined?.name);
}

/**
 * The arguments of a call of the agent's own tools.
 *
 * @throws TypeError no JSON object.
 */
function argumentsOf({ argumentsJson }: RequestedCall): JsonObject {
  const written: unknown = JSON.parse(argumentsJson === "" ? "{}" : argumentsJson);
  if (!isObject(written)) throw new TypeError("the arguments must be a JSON object");
  return written;
}

/** The arguments of a call, which may stand in an envelope. */
function innerOf({ tool, argumentsJson }: RequestedCall): JsonObject {
  const envelope = envelopeIn(tool, argumentsJson);
  const args = envelope === undefined ? argumentsJson : envelope.args;
  return (typeof args === "string" ? objectIn(args) : isObject(args) ? args : undefined) ?? {};
}

function textIn(content: readonly object[]): string {
  return content.map((part) => stringOf((part as { readonly text?: unknown }).text)).join("\n");
}
