/**
 * What the middleware of every agent framework does alike: routing a step, gating calls, answering searches, and
 * what becomes of them when Toolgate can't be reached. Knows no framework.
 */
import type { RemoteClient, RequestOf } from "./client.js";
import { type StatusCode, ToolgateError } from "./errors.js";
import { toToolError } from "./gating.js";
import type { RequestedCall, RouterService, SearchToolsResponse } from "./gen/toolgate/v1/router_pb.js";
import type { AgentState } from "./gen/toolgate/v1/state_pb.js";
import type { Grants, History } from "./history/scan.js";
import { scan } from "./history/scan.js";
import type { Snapshot } from "./history/snapshot.js";
import { answerOf, SEARCH_TOOL } from "./offering.js";

/** What is told of each model call beside what the middleware itself knows. */
export type RouteDefaults = Omit<
  Exclude<RequestOf<(typeof RouterService)["method"]["route"]>, { $typeName: string }>,
  "intents" | "state" | "activeSetHandle" | "knownPoolRevision" | "$typeName"
>;

/** Settings of all middleware. */
export interface MiddlewareOptions {
  /** Whether the model may search for tools that it does not see (`SEARCH_TOOL`). Default: true. */
  readonly search?: boolean;
  /** Further fields of each `route`, such as `{ options: { topK: 5 } }`. Default: none. */
  readonly route?: RouteDefaults;
  /** Told of each fault of the service that is passed over. Default: a line by `console.warn`, without details. */
  readonly onFault?: (fault: ToolgateError) => void;
}

/** What a conversation remembers: JSON, to be kept wherever its messages are. */
export interface Held {
  /** The handle of the last active set; "" before there was one. */
  readonly handle: string;
  /** Model-facing names of the tools to show, in their order; absent while nothing was routed. */
  readonly active?: readonly string[];
  /** What the messages said about tools, also those that are gone since. */
  readonly history?: Snapshot;
}

/** A refusal, as the content of the call's result. */
export interface Refused {
  readonly text: string;
}

/** What may run: with other arguments than the model's, where those came as text. */
export interface Allowed {
  readonly argumentsJson: string;
}

const FAULTS: readonly StatusCode[] = [
  "UNAVAILABLE",
  "DEADLINE_EXCEEDED",
  "RESOURCE_EXHAUSTED",
  "INTERNAL",
  "UNKNOWN",
];
const NOT_GATED = JSON.stringify({
  error: "gate_unavailable",
  message:
    "Whether this call may run could not be checked just now, so it did not run. Try it once more, or go on without it.",
});
const NOT_SEARCHED = JSON.stringify({
  error: "search_unavailable",
  message: "Tools could not be searched just now. Try it once more, or go on without it.",
});
const MODEL_FACING = "mcp__";
const INTENT_BYTES = 16 * 1024;
const OBSERVATION_WEIGHT = 0.5;

/** An intent: what the user said, or less heavily what a tool answered since. */
export interface Intent {
  readonly text: string;
  readonly weight?: number;
}

/** Routes, gates and searches for one agent's tools. It holds nothing of a conversation. */
export class Gatekeeper {
  readonly #client: RemoteClient;
  readonly #managed: ReadonlySet<string>;
  readonly #options: MiddlewareOptions;

  /**
   * @param managed names of all tools that Toolgate manages.
   * @throws TypeError names that are not model-facing.
   */
  constructor(client: RemoteClient, managed: Iterable<string>, options: MiddlewareOptions) {
    this.#client = client;
    this.#managed = new Set(managed);
    this.#options = options;
    const bare = [...this.#managed].filter((name) => !isModelFacing(name));
    if (bare.length > 0) {
      throw new TypeError(
        `not under model-facing names: ${bare.join(", ")}; prepare an MCP server's tools with ` +
          "modelFacing(tools, client.listTools({ server })), and leave tools that Toolgate does not manage out",
      );
    }
  }

  /** Whether the model may search. */
  get searches(): boolean {
    return this.#options.search ?? true;
  }

  /** Tools of the agent's own are not gated; a name that looks like a catalog's tool is. */
  isOurs(name: string): boolean {
    return this.#managed.has(name) || isModelFacing(name);
  }

  /** Whether a call is one of the search. */
  isSearch(name: string): boolean {
    return this.searches && name === SEARCH_TOOL.modelName;
  }

  /** What is remembered after routing by these messages; when Toolgate can't be reached, the tools of before. */
  async route(
    entries: readonly unknown[],
    intents: readonly Intent[],
    held: Held,
    grants: Grants,
  ): Promise<Held> {
    const seen = scan(entries, held.history);
    const remembered = { ...held, history: snapshotOf(seen) };
    if (intents.length === 0) {
      return remembered;
    }
    const request = {
      ...this.#options.route,
      intents: intents.map((intent) => ({ ...intent })),
      state: seen.state(grants),
    };
    try {
      const turn = await this.#routeFrom(request, held.handle);
      // Once offered, the search stays: taking it away would cost the cache of what follows it.
      const offered =
        turn.deferral?.offerSearch === true || held.active?.includes(SEARCH_TOOL.modelName) === true;
      const search = offered && this.searches ? [SEARCH_TOOL.modelName] : [];
      const active = [...search, ...turn.activeTools.map(({ modelName }) => modelName)];
      return { ...remembered, handle: turn.activeSetHandle, active };
    } catch (error) {
      this.#passOver(error);
      return remembered;
    }
  }

  /** For each call, whether it may run; none may while that can't be checked. */
  async gate(calls: RequestedCall[], handle: string, state: AgentState): Promise<(Refused | Allowed)[]> {
    if (handle === "") {
      return calls.map(() => ({ text: NOT_GATED }));
    }
    if (calls.length === 0) {
      return [];
    }
    try {
      const { verdicts } = await this.#client.gate({
        ...this.#tenant(),
        calls,
        activeSetHandle: handle,
        state,
      });
      return verdicts.map((verdict) =>
        verdict.allowed ? verdict : { text: JSON.stringify(toToolError(verdict)) },
      );
    } catch (error) {
      this.#passOver(error);
      return calls.map(() => ({ text: NOT_GATED }));
    }
  }

  /** The answer to a call of the search, and the handle to carry on with. */
  async search(
    call: RequestedCall,
    handle: string,
    state: AgentState,
  ): Promise<{ text: string; failed: boolean; handle: string }> {
    if (handle === "") {
      return { text: NOT_SEARCHED, failed: true, handle };
    }
    try {
      const answer = await this.#client.answerSearch(call, { ...this.#tenant(), handle, state });
      const text = answer.found === undefined ? answer.text : answerOf(this.#ofAgent(answer.found)).text;
      return { text, failed: answer.failed, handle: answer.handle };
    } catch (error) {
      this.#passOver(error);
      return { text: NOT_SEARCHED, failed: true, handle };
    }
  }

  async #routeFrom(request: RequestOf<(typeof RouterService)["method"]["route"]>, handle: string) {
    try {
      return await this.#client.route({ ...request, activeSetHandle: handle });
    } catch (error) {
      const isForeign = error instanceof ToolgateError && error.reason === "HANDLE_INVALID";
      if (handle === "" || !isForeign) throw error;
      return await this.#client.route({ ...request, activeSetHandle: "" });
    }
  }

  /** What was found, without tools that this agent does not have, or that its turns leave out. */
  #ofAgent(found: SearchToolsResponse): SearchToolsResponse {
    const servers = this.#options.route?.options?.servers ?? [];
    const tools = found.tools.filter(
      ({ modelName, server }) =>
        this.#managed.has(modelName) && (servers.length === 0 || servers.includes(server)),
    );
    const message = found.message || (tools.length === 0 ? "No tool was found." : "");
    return { ...found, tools, message };
  }

  #tenant(): { tenant?: string } {
    const tenant = this.#options.route?.tenant;
    return tenant === undefined ? {} : { tenant };
  }

  /** A fault of the service passes; a mistake in what was asked is the caller's to mend. */
  #passOver(error: unknown): void {
    if (!(error instanceof ToolgateError) || !FAULTS.includes(error.code)) {
      throw error;
    }
    const { onFault = warn } = this.#options;
    onFault(error);
  }
}

/** Whether a name looks like one that the catalog gave. */
export function isModelFacing(name: string): boolean {
  return name.startsWith(MODEL_FACING);
}

/** An intent of a text, cut to what is worth embedding; none of a text that says nothing. */
export function intentOf(text: string, isObservation = false): Intent[] {
  const bytes = new TextEncoder().encode(text).subarray(0, INTENT_BYTES);
  // What was cut within a character is left out.
  const cut = new TextDecoder().decode(bytes, { stream: true });
  const weight = isObservation ? { weight: OBSERVATION_WEIGHT } : {};
  return cut.trim() === "" ? [] : [{ text: cut, ...weight }];
}

/**
 * A snapshot to scan the same messages with again, when some of them may be gone. Its turns end with the last call:
 * turns without one would be counted anew each time.
 */
function snapshotOf(seen: History): Snapshot {
  const turns = Math.max(0, ...seen.calls.map(({ turn }) => turn + 1));
  return { ...seen.snapshot(), turns };
}

function warn(fault: ToolgateError): void {
  console.warn(`toolgate: ${fault.reason || fault.code}`);
}
