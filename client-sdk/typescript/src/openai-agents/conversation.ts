/** One conversation of an agent of the Agents SDK: routes before the model, gates its calls after it. */
import {
  type Agent,
  type AgentInputItem,
  type MCPServer,
  type Model,
  type ModelRequest,
  OpenAIResponsesModel,
  type protocol,
  tool,
} from "@openai/agents";

import { of as callOf } from "../calls.js";
import type { RemoteClient } from "../client.js";
import { envelopeIn } from "../envelope.js";
import { conversationIn } from "../forms.js";
import { objectIn, stringOf } from "../json.js";
import { withSystem } from "../messages.js";
import {
  afterSearches,
  type Allowed,
  Gatekeeper,
  type Held,
  type MiddlewareOptions,
  noSuchTool,
  type Refused,
} from "../middleware.js";
import { SEARCH_TOOL } from "../offering.js";
import { checkedStrategy, type Strategy } from "../prompting.js";
import { type Report, reportOf } from "../report.js";
import type { ServedServers } from "../serving.js";
import { among, type Registering, servingOf } from "../settings.js";
import type { Grants } from "../state.js";
import { intentsOf, listed, spokenOf, tokensOf } from "./items.js";
import { McpTools } from "./mcp.js";
import { endpointOf, gatedModel, type Output } from "./model.js";
import { itemsOf, type Sent, toolsOf } from "./prompt.js";
import { type AnyTool, RegisteredTools } from "./tools.js";

/** Settings of a conversation. */
export interface ToolgateOptions extends MiddlewareOptions {
  /** The agent's scopes, milestones and attributes, which no item can say; asked at each request. Default: none. */
  readonly grants?: Grants | (() => Grants | Promise<Grants>);
  /**
   * Counts the tokens of the items. Route is told (`historyTokens`), and changes the set only where that is worth its
   * price. Default: an estimate, a token for four bytes of text. False: not told; with a strategy Route estimates it then.
   */
  readonly countTokens?: ((items: readonly AgentInputItem[]) => number) | false;
  /**
   * Way of tools into requests; other strategies than "cut" need `search`. "native" needs an `OpenAIResponsesModel`; "auto"
   * takes it there at OpenAI's own host. Default: "auto".
   */
  readonly strategy?: Strategy;
  /** Value of `state`, to go on with a conversation elsewhere. Default: a new one. */
  readonly state?: Held;
}

/** Settings of a conversation that registers its tools itself; their tenant is `route.tenant`. */
export type FromMcpOptions = ToolgateOptions & Registering;

type Call = protocol.FunctionCallItem;
type Verdict = Refused | Allowed;
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- The SDK's types of agents are invariant.
type AnyAgent = Agent<any, any>;

/**
 * The tool that answers calls of names that no tool has, where the SDK itself would end the run, and refused calls whose
 * arguments are no JSON, to which it would say less. No model is shown it.
 */
const REFUSED_CALL = "toolgate_refused_call";

/**
 * The tools of one conversation. The model sees the active set of each request, and only calls that Gate allows run.
 *
 *     const toolgate = new ToolgateConversation(client, tools);
 *     const result = await run(toolgate.agent(agent), "...", { session });
 *
 * Each model call is routed by the user's last message and, within a turn, by what the last tool answered. Calls that may not
 * run are answered with the refusal, in words for the model, so that it can correct itself; so are calls of names that no tool
 * has and of disabled tools, which the run's items show as calls of `toolgate_refused_call`. Where tools are deferred, the model
 * also sees a search for them. Make one for each conversation and use it for its runs, one after another. When Toolgate can't be
 * reached, the model keeps the active set that it has, or sees all tools; calls are refused until they can be checked.
 */
export class ToolgateConversation {
  readonly #gatekeeper: Gatekeeper;
  readonly #listed: McpTools | undefined;
  readonly #grants: () => Grants | Promise<Grants>;
  readonly #countTokens: ((items: readonly AgentInputItem[]) => number) | false;
  readonly #strategy: Strategy;
  /** The tools that Toolgate manages, as they came. */
  #taken: readonly AnyTool[];
  #tools: AnyTool[] = [];
  #managed: ReadonlySet<string> = new Set();
  #held: Held;
  #items: readonly AgentInputItem[] = [];
  #searches: Promise<unknown> = Promise.resolve();
  /** Of the last answer, by the calls' identifiers. */
  #verdicts = new Map<string, Verdict>();

  /**
   * @param tools all tools that Toolgate manages, under model-facing names (`modelFacing`), or those that were registered
   *     (`McpTools`, `RegisteredTools`), among whose servers alone turns are routed then. Don't give them to the agent too. Tools
   *     given there are always shown and never gated.
   * @throws TypeError tools under other names, or no such strategy.
   */
  constructor(
    client: RemoteClient,
    tools: readonly AnyTool[] | McpTools | RegisteredTools,
    options: ToolgateOptions = {},
  ) {
    const { grants = {}, state = { handle: "" } } = options;
    this.#listed = tools instanceof McpTools ? tools : undefined;
    const registered = tools instanceof McpTools || tools instanceof RegisteredTools ? tools : undefined;
    this.#taken = registered?.tools ?? (tools as readonly AnyTool[]);
    const served: ServedServers | undefined = registered?.served;
    const settings = served === undefined ? options : among(served.names, options);
    this.#gatekeeper = new Gatekeeper(client, [], settings, served);
    this.#grants = typeof grants === "function" ? grants : () => grants;
    this.#countTokens = options.countTokens ?? tokensOf;
    this.#strategy = checkedStrategy(options.strategy, this.#gatekeeper.searches);
    this.#held = state;
    this.#takeOver(this.#taken);
  }

  /**
   * A conversation over MCP servers, whose tools are registered as the servers list them, and again after the service lost
   * its catalog. For many conversations, `McpTools.load` once.
   *
   *     const server = new MCPServerStdio({ command: "npx", args: ["-y", "@modelcontextprotocol/server-everything"] });
   *     await server.connect();
   *     const toolgate = await ToolgateConversation.fromMcp(client, { everything: server });
   *
   * @param servers connected servers, by their names in the catalog; see `McpTools.load`.
   * @throws TypeError settings of a server that is not among them.
   * @throws ToolgateError a registration failed.
   */
  static async fromMcp(
    client: RemoteClient,
    servers: Readonly<Record<string, MCPServer>>,
    options: FromMcpOptions = {},
  ): Promise<ToolgateConversation> {
    const mcp = await McpTools.load(client, servers, servingOf(options));
    return new ToolgateConversation(client, mcp, options);
  }

  /**
   * A conversation over tools that come from no MCP server, which are registered with their schemas, and again after the service
   * lost its catalog. For many conversations, `RegisteredTools.load` once.
   *
   *     const toolgate = await ToolgateConversation.fromTools(client, { notes: [find, erase] });
   *
   * @param tools the tools, by the names of the servers that they are to be in the catalog.
   * @throws TypeError settings of a server that is not among them.
   * @throws ToolgateError a registration failed.
   */
  static async fromTools(
    client: RemoteClient,
    tools: Readonly<Record<string, readonly AnyTool[]>>,
    options: FromMcpOptions = {},
  ): Promise<ToolgateConversation> {
    const registered = await RegisteredTools.load(client, tools, servingOf(options));
    return new ToolgateConversation(client, registered, options);
  }

  /**
   * Lists the MCP servers again; the next request shows their tools. See `McpTools.refresh`.
   *
   * @throws TypeError the conversation has no MCP servers.
   * @throws ToolgateError a registration failed.
   */
  async refresh(): Promise<void> {
    if (this.#listed === undefined) {
      throw new TypeError("only a conversation over MCP servers (fromMcp) can be refreshed");
    }
    await this.#listed.refresh();
  }

  /** The conversation's memory, as JSON: keep it with the session, and give it back to go on elsewhere. */
  get state(): Held {
    return this.#held;
  }

  /** The conversation's cost so far, beside sending all tools. It is kept in `state`. */
  report(): Report {
    return reportOf(this.#held.spent);
  }

  /**
   * A copy of the agent for this conversation, whose model sees the active set. A `model` of the runner would be asked instead of
   * the agent's: leave it out there.
   *
   * @param agent the agent; any number of conversations may share it.
   */
  agent<A extends AnyAgent>(agent: A): A {
    const named = agent.model;
    const own = [...agent.tools];
    const model = gatedModel(named, {
      shown: (request, inner) => this.#shown(request, inner, typeof named === "string" ? named : ""),
      gated: (output, request) => this.#gated(output, request),
    });
    const gated = agent.clone({ model, tools: [...own, ...this.#tools] }) as A;
    const listTools = gated.getAllTools.bind(gated);
    // The agent's tools are asked for before each request to the model.
    gated.getAllTools = async (...asked) => {
      await this.#gatekeeper.attempt(async () => this.#listed?.follow());
      this.#takeOver(this.#listed?.tools ?? this.#taken);
      gated.tools = [...own, ...this.#tools];
      return listTools(...asked);
    };
    return gated;
  }

  /** Routes; the request with the agent's own tools first, then the active set in its order, so that caches hold. */
  async #shown(request: ModelRequest, model: Model, named: string): Promise<ModelRequest> {
    if (this.#strategy === "native" && !(model instanceof OpenAIResponsesModel)) {
      throw new TypeError(
        `strategy: "native" needs an OpenAIResponsesModel, not ${model.constructor.name}: take "auto", "cut" or "envelope"`,
      );
    }
    const items = listed(request.input);
    this.#items = items;
    const endpoint = endpointOf(model, named, this.#gatekeeper.baseUrl);
    const { systemInstructions = "" } = request;
    const said = this.#countTokens === false ? [] : [systemInstructions];
    this.#held = await this.#routed(items, request, withSystem(endpoint, said));
    const known = new Map(request.tools.flatMap((one) => (this.#isManaged(one) ? [[one.name, one]] : [])));
    const own = request.tools.filter((one) => !this.#isManaged(one) && nameOf(one) !== REFUSED_CALL);
    this.#gatekeeper.tellOwn(own.map(nameOf));
    const { active, prompt } = this.#held;
    if (prompt !== undefined && prompt.tools.length > 0 && !isKeptThere(request)) {
      const defined = new Set(prompt.tools.map(({ name }) => name));
      const isWrapped = (name: string) => this.#managed.has(name) && !defined.has(name);
      const tools = [...own, ...toolsOf(prompt, known)];
      this.#gatekeeper.tellMany(tools.length + request.handoffs.length);
      return { ...request, input: itemsOf(items, prompt, isWrapped), tools };
    }
    const shown = active ?? [...known.keys()].filter((name) => name !== SEARCH_TOOL.modelName);
    const tools = [...own, ...shown.flatMap((name) => known.get(name) ?? [])];
    this.#gatekeeper.tellMany(tools.length + request.handoffs.length);
    return { ...request, tools };
  }

  async #routed(
    items: readonly AgentInputItem[],
    request: ModelRequest,
    endpoint: ReturnType<typeof endpointOf>,
  ): Promise<Held> {
    const grants = await this.#grants();
    const intents = intentsOf(items);
    const { entries, places } = conversationIn(endpoint.api, items.flatMap(spokenOf));
    const historyTokens = this.#countTokens === false ? undefined : this.#countTokens(items);
    if (this.#strategy !== "cut" && !isKeptThere(request)) {
      const turn = { intents, historyTokens, endpoint, rendered: { strategy: this.#strategy, places } };
      return this.#gatekeeper.route(entries, turn, this.#held, grants);
    }
    return this.#gatekeeper.route(entries, { intents, historyTokens, endpoint }, this.#held, grants);
  }

  /** Gates the calls of an answer, all at once. */
  async #gated(output: Output, { tools, handoffs }: ModelRequest): Promise<Output> {
    const known = new Set([...tools.map(nameOf), ...handoffs.map(({ toolName }) => toolName)]);
    const isOurs = (item: Output[number]): item is Call =>
      // Names in a namespace are of tools that the provider found.
      item.type === "function_call" &&
      (this.#managed.has(item.name) || (!known.has(item.name) && item.namespace === undefined));
    const calls = output.filter(isOurs);
    const verdicts = await this.#gatekeeper.gate(
      calls.map(requested),
      this.#held.handle,
      await this.#agent(),
    );
    this.#verdicts = new Map(
      calls.flatMap(({ callId }, at) => {
        const verdict = verdicts[at];
        return verdict === undefined ? [] : [[callId, verdict]];
      }),
    );
    return output.map((item) => (isOurs(item) ? this.#meant(item, known) : item));
  }

  /**
   * The call of the tool that the model meant; instead of one that the SDK would not bring to its tool, a call that is answered
   * with the refusal.
   *
   * @param known names that the SDK has: no disabled tools.
   */
  #meant(call: Call, known: ReadonlySet<string>): Call {
    const verdict = this.#verdicts.get(call.callId);
    if (verdict !== undefined && "tool" in verdict && known.has(verdict.tool)) {
      // Arguments that came otherwise than as a JSON object are put right.
      return { ...call, name: verdict.tool, arguments: verdict.argumentsJson || call.arguments };
    }
    const opened = openedCall(call);
    if (verdict === undefined || "tool" in verdict) {
      this.#verdicts.set(call.callId, { text: noSuchTool(opened.name) });
    } else if (
      this.#managed.has(opened.name) &&
      known.has(opened.name) &&
      objectIn(opened.arguments) !== undefined
    ) {
      return opened;
    }
    return { ...call, name: REFUSED_CALL, arguments: JSON.stringify({ tool: opened.name }) };
  }

  /** Takes the tools that there are now. */
  #takeOver(tools: readonly AnyTool[]): void {
    if (tools === this.#taken && this.#tools.length > 0) {
      return;
    }
    this.#gatekeeper.manage(tools.map(({ name }) => name));
    this.#taken = tools;
    this.#managed = new Set(tools.map(({ name }) => name));
    const search = this.#gatekeeper.searches ? [this.#searchTool()] : [];
    this.#tools = [...tools.map((one) => this.#guarded(one)), this.#refusingTool(), ...search];
  }

  #isManaged(one: Sent): one is Extract<Sent, { type: "function" }> {
    const isOurs = this.#managed.has(nameOf(one)) || this.#gatekeeper.isSearch(nameOf(one));
    return one.type === "function" && isOurs;
  }

  #guarded(inner: AnyTool): AnyTool {
    const guard: NonNullable<AnyTool["inputGuardrails"]>[number] = {
      type: "tool_input",
      name: "toolgate",
      run: async ({ toolCall }) => {
        const refusal = await this.#refusal(toolCall);
        const behavior =
          refusal === undefined
            ? ({ type: "allow" } as const)
            : ({ type: "rejectContent", message: refusal } as const);
        return { behavior };
      },
    };
    return { ...inner, inputGuardrails: [guard, ...(inner.inputGuardrails ?? [])] };
  }

  async #refusal(call: Call): Promise<string | undefined> {
    let verdict = this.#verdicts.get(call.callId);
    if (verdict === undefined) {
      // A call that waited for an approval elsewhere, and is made now.
      [verdict] = await this.#gatekeeper.gate([requested(call)], this.#held.handle, await this.#agent());
    }
    return verdict === undefined || "text" in verdict ? (verdict?.text ?? noSuchTool(call.name)) : undefined;
  }

  #refusingTool(): AnyTool {
    return functionTool(REFUSED_CALL, "Answers calls of tools that are not there.", {}, (_, callId) => {
      const verdict = this.#verdicts.get(callId);
      return verdict !== undefined && "text" in verdict ? verdict.text : noSuchTool(REFUSED_CALL);
    });
  }

  #searchTool(): AnyTool {
    const { modelName, description, inputSchemaJson } = SEARCH_TOOL;
    const schema = JSON.parse(inputSchemaJson) as object;
    return functionTool(
      modelName,
      description,
      schema,
      (input, callId) =>
        // One after another: each adds to the handle that the one before gave.
        (this.#searches = this.#searches.catch(() => undefined).then(() => this.#search(input, callId))),
    );
  }

  async #search(input: unknown, callId: string): Promise<string> {
    const call = callOf(SEARCH_TOOL.modelName, input, callId);
    const answer = await this.#gatekeeper.search(call, this.#held.handle, await this.#agent());
    this.#held = afterSearches(this.#held, answer.handle, 1);
    return answer.text;
  }

  async #agent() {
    const { entries } = conversationIn("openai_responses", this.#items.flatMap(spokenOf));
    return this.#gatekeeper.state(entries, this.#held, await this.#grants());
  }
}

/** Tells that the provider keeps the items before those of a request. */
function isKeptThere({ previousResponseId, conversationId }: ModelRequest): boolean {
  return (previousResponseId ?? conversationId) !== undefined;
}

function nameOf(one: Sent): string {
  return stringOf((one as { readonly name?: unknown }).name);
}

function requested({ name, arguments: args, callId }: Call) {
  return callOf(name, args, callId);
}

/** The call in an envelope as the tool's own; others as they are. */
function openedCall(call: Call): Call {
  const envelope = envelopeIn(call.name, call.arguments);
  if (envelope?.name === undefined) return call;
  const args = envelope.args ?? {};
  return {
    ...call,
    name: envelope.name,
    arguments: typeof args === "string" ? args : JSON.stringify(args),
  };
}

function functionTool(
  name: string,
  description: string,
  schema: object,
  run: (input: unknown, callId: string) => unknown,
): AnyTool {
  const parameters = { type: "object", properties: {}, required: [], ...schema, additionalProperties: true };
  return tool({
    ...{ name, description, strict: false },
    parameters: parameters as never,
    execute: (input: unknown, _context?: unknown, details?: { toolCall?: { callId?: string } }) =>
      run(input, details?.toolCall?.callId ?? ""),
  });
}
