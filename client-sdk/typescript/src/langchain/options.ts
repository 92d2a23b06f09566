/** Settings of the middleware. */
import type { BaseMessage } from "@langchain/core/messages";

import type { MiddlewareOptions } from "../middleware.js";
import type { Strategy } from "../prompting.js";
import type { Report } from "../report.js";
import type { Registering } from "../settings.js";
import type { Grants } from "../state.js";

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
   * Counts the tokens of the messages. Route is told (`historyTokens`), and changes the set only where that is worth its
   * price. Default: an estimate, a token for four bytes of text. False: not told; with a strategy Route estimates it then.
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
