/** One conversation of an agent of the AI SDK: routes before each step, gates calls before they run. */
import { jsonSchema, type LanguageModel, type ModelMessage, NoSuchToolError, tool, type ToolSet } from "ai";

import { of as callOf } from "../calls.js";
import type { RemoteClient } from "../client.js";
import type { Endpoint } from "../endpoint.js";
import { conversationIn } from "../forms.js";
import { withSystem } from "../messages.js";
import {
  afterSearches,
  type Allowed,
  Gatekeeper,
  type Held,
  isModelFacing,
  type MiddlewareOptions,
  noSuchTool,
} from "../middleware.js";
import { SEARCH_TOOL } from "../offering.js";
import { checkedStrategy, type Strategy } from "../prompting.js";
import { type Report, reportOf } from "../report.js";
import { among, type Registering, servingOf } from "../settings.js";
import type { Grants } from "../state.js";
import { endpointOf, isAnthropic } from "./endpoint.js";
import { type McpSource, McpTools } from "./mcp.js";
import { entryOf, intentsOf, spokenOf, tokensOf } from "./messages.js";
import { prompted } from "./prompt.js";
import { RegisteredTools } from "./tools.js";

/** Settings of a conversation. */
export interface ToolgateOptions extends MiddlewareOptions {
  /** The agent's scopes, milestones and attributes, which no message can say; asked at each step. Default: none. */
  readonly grants?: Grants | (() => Grants | Promise<Grants>);
  /**
   * Counts the tokens of the messages. Route is told (`historyTokens`), and changes the set only where that is worth its
   * price. Default: an estimate, a token for four bytes of text. False: not told; with a strategy Route estimates it then.
   */
  readonly countTokens?: ((messages: readonly ModelMessage[]) => number) | false;
  /**
   * Way of tools into requests. "envelope" needs the model itself, not its name, and `search`; "auto" is "cut" without
   * them. "native" needs a model of `@ai-sdk/anthropic`, and `search`; "auto" takes it there at Anthropic's own host.
   * Default: "auto".
   */
  readonly strategy?: Strategy;
  /** The agent's own tools: always shown and never gated. Default: none. */
  readonly own?: ToolSet;
  /** Value of `state`, to go on with a conversation from elsewhere. Default: a new one. */
  readonly state?: Held;
}

/** Settings of a conversation that registers its tools itself; their tenant is `route.tenant`. */
export type FromMcpOptions = ToolgateOptions & Registering;

/** A step's settings, as the AI SDK asks for them before each step. */
export type PrepareStep = (options: {
  readonly messages: readonly ModelMessage[];
  readonly model?: LanguageModel;
}) => Promise<{ activeTools: string[]; model?: LanguageModel }>;

/** A call of a model, as the AI SDK hands it over to be repaired. */
export interface UnparsedCall {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly input: string;
}

/** Repairs a call of no tool that the AI SDK has, or one whose input does not fit. */
export type RepairToolCall = <C extends UnparsedCall>(options: {
  readonly toolCall: C;
  readonly tools: Readonly<Record<string, unknown>>;
  readonly error: unknown;
  readonly messages: readonly ModelMessage[];
}) => Promise<C | null>;

/** Settings of `generateText`, `streamText` and `ToolLoopAgent`. */
export interface Settings {
  readonly tools: ToolSet;
  readonly prepareStep: PrepareStep;
  /** The name in version 7 of the AI SDK. */
  readonly repairToolCall: RepairToolCall;
  /** The name in version 6. */
  readonly experimental_repairToolCall: RepairToolCall;
}

type AnyTool = ToolSet[string];
/** Words of the AI SDK to a tool's function, as far as both versions agree. */
interface Execution {
  readonly toolCallId: string;
  readonly messages: readonly ModelMessage[];
}

/** A call did not run; the message is the refusal, as JSON for the model. */
export class ToolRefusedError extends Error {
  override readonly name = "ToolRefusedError";
}

/**
 * The tools of one conversation. The model sees the active set of each step, and only calls that Gate allows run.
 *
 *     const toolgate = new ToolgateConversation(client, tools);
 *     await generateText({ model, prompt, stopWhen: stepCountIs(8), ...toolgate.settings() });
 *
 * Each step is routed by the user's last message and by what the last tool answered since. A refused call fails with
 * the refusal in words for the model, so that it can correct itself; so does a call of a name that no tool has, unless it
 * is an unambiguous bare name. Where tools are deferred, the model also sees a
 * search for them: what it finds is in the active set from then on. When Toolgate can't be reached, the model keeps the
 * active set that it has, or sees all tools; calls are refused until they can be checked. A tool without `execute` is
 * run by the caller, who gates its calls: `gate` of the client, with the handle of `state`.
 */
export class ToolgateConversation {
  /** All tools: the agent's own, the search, and those that Toolgate manages. */
  readonly tools: ToolSet;
  readonly #gatekeeper: Gatekeeper;
  readonly #listed: McpTools | undefined;
  #managed: ToolSet;
  readonly #own: readonly string[];
  readonly #grants: () => Grants | Promise<Grants>;
  readonly #countTokens: ((messages: readonly ModelMessage[]) => number) | false;
  readonly #strategy: Strategy;
  #held: Held;
  #searches: Promise<unknown> = Promise.resolve();
  /** Of this step, by the calls' identifiers. */
  readonly #repaired = new Map<string, Allowed>();

  /**
   * @param tools all tools that Toolgate manages, under model-facing names (`modelFacing`), or those that were registered
   *     (`McpTools`, `RegisteredTools`), among whose servers alone turns are routed then.
   * @throws TypeError tools under other names, or no such strategy.
   */
  constructor(
    client: RemoteClient,
    tools: ToolSet | McpTools | RegisteredTools,
    options: ToolgateOptions = {},
  ) {
    const { grants = {}, own = {}, state = { handle: "" } } = options;
    this.#listed = tools instanceof McpTools ? tools : undefined;
    const registered = tools instanceof McpTools || tools instanceof RegisteredTools ? tools : undefined;
    this.#managed = registered?.tools ?? (tools as ToolSet);
    const served = registered?.served;
    const settings = served === undefined ? options : among(served.names, options);
    this.#gatekeeper = new Gatekeeper(client, Object.keys(this.#managed), settings, served);
    this.#own = Object.keys(own);
    this.#grants = typeof grants === "function" ? grants : () => grants;
    this.#countTokens = options.countTokens ?? tokensOf;
    this.#strategy = checkedStrategy(options.strategy, this.#gatekeeper.searches);
    this.#held = state;
    const search = this.#gatekeeper.searches ? { [SEARCH_TOOL.modelName]: this.#searchTool() } : {};
    this.tools = { ...own, ...search, ...this.#gatedTools() };
    this.#gatekeeper.tellOwn(this.#own);
  }

  /**
   * A conversation over MCP servers, whose tools are registered as the servers list them, and again after the service lost
   * its catalog. Servers that can't be reached are left out with a warning. For many conversations, `McpTools.load` once.
   *
   * @param servers the MCP servers, by their names in the catalog.
   * @throws TypeError settings of a server that is not among them.
   * @throws ToolgateError a registration failed.
   */
  static async fromMcp(
    client: RemoteClient,
    servers: Readonly<Record<string, McpSource>>,
    options: FromMcpOptions = {},
  ): Promise<ToolgateConversation> {
    return new ToolgateConversation(
      client,
      await McpTools.load(client, servers, servingOf(options)),
      options,
    );
  }

  /**
   * A conversation over tools that come from no MCP server, which are registered with their schemas, and again after the service
   * lost its catalog. For many conversations, `RegisteredTools.load` once.
   *
   *     const toolgate = await ToolgateConversation.fromTools(client, { notes: { find, erase } });
   *
   * @param tools the tools, by the names of the servers that they are to be in the catalog.
   * @throws TypeError settings of a server that is not among them.
   * @throws ToolgateError a registration failed.
   */
  static async fromTools(
    client: RemoteClient,
    tools: Readonly<Record<string, ToolSet>>,
    options: FromMcpOptions = {},
  ): Promise<ToolgateConversation> {
    const registered = await RegisteredTools.load(client, tools, servingOf(options));
    return new ToolgateConversation(client, registered, options);
  }

  /**
   * Lists the MCP servers again; the next step shows their tools. See `McpTools.refresh`.
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

  /** Closes the MCP clients that `fromMcp` connected. */
  async close(): Promise<void> {
    await this.#listed?.close();
  }

  /** Gives the conversation's memory, as JSON: keep it with the messages, and give it back to go on elsewhere. */
  get state(): Held {
    return this.#held;
  }

  /** Reports the conversation's cost so far, beside sending all tools. It is kept in `state`. */
  report(): Report {
    return reportOf(this.#held.spent);
  }

  /** Gives the settings for `generateText`, `streamText` and `ToolLoopAgent`: the tools, and what to do around each step. */
  settings(): Settings {
    const { tools, prepareStep, repairToolCall } = this;
    return { tools, prepareStep, repairToolCall, experimental_repairToolCall: repairToolCall };
  }

  /** Routes, and shows the model the active set; see the AI SDK's `prepareStep`. */
  readonly prepareStep: PrepareStep = async ({ messages, model, ...step }) => {
    this.#repaired.clear();
    await this.#gatekeeper.attempt(async () => this.#listed?.follow());
    this.#takeOver();
    const endpoint = endpointOf(model, this.#gatekeeper.baseUrl);
    if (this.#strategy === "native" && !isAnthropic(model)) {
      throw new TypeError('strategy: "native" needs a model of @ai-sdk/anthropic, such as anthropic(name)');
    }
    // A model that is known by its name alone can't be given requests that Route put together.
    const strategy = this.#strategy === "auto" && typeof model !== "object" ? "cut" : this.#strategy;
    const said = this.#countTokens === false ? [] : instructionsOf(step);
    this.#held = await this.#routed(messages, strategy, withSystem(endpoint, said));
    const { active, prompt } = this.#held;
    if (strategy !== "cut" && prompt !== undefined && prompt.tools.length > 0) {
      const isOurs = (name: string) => Object.hasOwn(this.tools, name) && !this.#own.includes(name);
      // The AI SDK runs tools that are described too; the model gets those of Route's answer.
      return { activeTools: this.#watched(Object.keys(this.tools)), model: prompted(model, prompt, isOurs) };
    }
    // The agent's own tools first, then the active set in its order, so that caches hold.
    const shown = active?.filter((name) => Object.hasOwn(this.tools, name)) ?? Object.keys(this.#managed);
    const activeTools = [...this.#own, ...shown];
    this.#gatekeeper.tellMany(activeTools.length);
    return { activeTools: this.#watched(activeTools) };
  };

  /**
   * Has Gate decide on a call of a name that no tool has, which the AI SDK would answer with the names of all tools. A
   * function of your own for the AI SDK's `repairToolCall` (`experimental_repairToolCall` in version 6) calls this one first.
   */
  readonly repairToolCall: RepairToolCall = async ({ toolCall, tools, error, messages }) => {
    const { toolCallId, toolName, input } = toolCall;
    if (!NoSuchToolError.isInstance(error) || this.#own.includes(toolName)) {
      return null;
    }
    const call = callOf(toolName, input, toolCallId);
    const state = await this.#agent(messages);
    const [verdict] = await this.#gatekeeper.gate([call], this.#held.handle, state);
    if (verdict === undefined || "text" in verdict) {
      throw new ToolRefusedError(verdict?.text);
    }
    const { tool: meant, argumentsJson } = verdict;
    if (!Object.hasOwn(tools, meant)) {
      throw new ToolRefusedError(noSuchTool(toolName));
    }
    this.#repaired.set(toolCallId, verdict);
    return { ...toolCall, toolName: meant, input: argumentsJson || input };
  };

  /** Returns the list, which tells of tools beside those of `settings()`: the AI SDK asks it about each tool that it has. */
  #watched(active: string[]): string[] {
    const shown = new Set(active);
    const hidden = new Set<string>();
    const includes = (name: string): boolean => {
      const isHidden = !Object.hasOwn(this.tools, name) && !isModelFacing(name);
      if (isHidden) {
        hidden.add(name);
        // Once all tools were asked about.
        queueMicrotask(() => {
          this.#gatekeeper.tellHidden([...hidden]);
        });
      }
      return shown.has(name);
    };
    return Object.defineProperty([...active], "includes", { value: includes });
  }

  async #routed(messages: readonly ModelMessage[], strategy: Strategy, endpoint: Endpoint): Promise<Held> {
    const grants = await this.#grants();
    const intents = intentsOf(messages);
    const historyTokens = this.#countTokens === false ? undefined : this.#countTokens(messages);
    if (strategy !== "cut") {
      const { entries, places } = conversationIn(endpoint.api, messages.map(spokenOf));
      const turn = { intents, historyTokens, endpoint, rendered: { strategy, places } };
      return this.#gatekeeper.route(entries, turn, this.#held, grants);
    }
    const turn = { intents, historyTokens, endpoint };
    return this.#gatekeeper.route(messages.map(entryOf), turn, this.#held, grants);
  }

  /** Takes over what the MCP servers list since, in the object that the AI SDK was given. */
  #takeOver(): void {
    const managed = this.#listed?.tools ?? this.#managed;
    if (managed === this.#managed) {
      return;
    }
    for (const name of Object.keys(this.#managed)) Reflect.deleteProperty(this.tools, name);
    this.#managed = managed;
    this.#gatekeeper.manage(Object.keys(managed));
    Object.assign(this.tools, this.#gatedTools());
  }

  #gatedTools(): ToolSet {
    const gated = Object.entries(this.#managed).map(
      ([name, inner]) => [name, this.#gated(name, inner)] as const,
    );
    return Object.fromEntries(gated);
  }

  #gated(name: string, inner: AnyTool): AnyTool {
    // The versions of the AI SDK differ in what else they tell a tool's function, which is passed on as it came.
    const run = inner.execute as ((input: unknown, options: Execution) => unknown) | undefined;
    if (run === undefined) {
      return inner;
    }
    const gated = async (input: unknown, options: Execution): Promise<unknown> => {
      const verdict = await this.#verdict(name, input, options);
      if (verdict === undefined || "text" in verdict) {
        throw new ToolRefusedError(verdict?.text);
      }
      const { argumentsJson } = verdict;
      return last(run(argumentsJson === "" ? input : JSON.parse(argumentsJson), options));
    };
    return { ...inner, execute: gated } as AnyTool;
  }

  /** Decides on a call; one that was repaired keeps the decision of then. */
  async #verdict(name: string, input: unknown, { toolCallId, messages }: Execution) {
    const repaired = this.#repaired.get(toolCallId);
    if (repaired?.tool === name) {
      return repaired;
    }
    const call = callOf(name, input, toolCallId);
    const [verdict] = await this.#gatekeeper.gate([call], this.#held.handle, await this.#agent(messages));
    return verdict;
  }

  #searchTool(): AnyTool {
    return tool({
      description: SEARCH_TOOL.description,
      inputSchema: jsonSchema(JSON.parse(SEARCH_TOOL.inputSchemaJson) as object),
      execute: (input, { toolCallId, messages }) =>
        // One after another: each adds to the handle that the one before gave.
        (this.#searches = this.#searches
          .catch(() => undefined)
          .then(() => this.#search(input, toolCallId, messages))),
    });
  }

  async #search(input: unknown, toolCallId: string, messages: readonly ModelMessage[]): Promise<string> {
    const call = callOf(SEARCH_TOOL.modelName, input, toolCallId);
    const answer = await this.#gatekeeper.search(call, this.#held.handle, await this.#agent(messages));
    this.#held = afterSearches(this.#held, answer.handle, 1);
    if (answer.failed) throw new ToolRefusedError(answer.text);
    return answer.text;
  }

  async #agent(messages: readonly ModelMessage[]) {
    return this.#gatekeeper.state(messages.map(entryOf), this.#held, await this.#grants());
  }
}

/** The texts of the system prompt, which version 7 of the AI SDK tells of a step, and version 6 does not. */
function instructionsOf(step: object): string[] {
  const { instructions } = step as { instructions?: unknown };
  return [instructions].flat().flatMap((one) => {
    const text = typeof one === "object" && one !== null && "content" in one ? one.content : one;
    return typeof text === "string" ? [text] : [];
  });
}

/** A tool's result. Of one that gives several, the last: whether it may run is known before it gives any. */
async function last(result: unknown): Promise<unknown> {
  if (typeof result !== "object" || result === null || !(Symbol.asyncIterator in result)) {
    return result;
  }
  let final: unknown;
  for await (const one of result as AsyncIterable<unknown>) final = one;
  return final;
}
