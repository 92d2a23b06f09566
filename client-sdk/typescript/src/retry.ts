/** Repeats what was UNAVAILABLE, within the deadline and a budget. Connect has no service config for it. */
import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";

import { retryAfter } from "./details.js";
import { asFailure } from "./failures.js";
import { sleep } from "./signals.js";

const MAX_ATTEMPTS = 3;
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 1_000;
const MAX_TOKENS = 10;
const TOKEN_RATIO = 0.1;
/** By protocol: the header that tells the service how long it has. */
const TIMEOUT_HEADERS = { "grpc-timeout": "m", "connect-timeout-ms": "" } as const;

/** The budget that all calls of a client share: many failures stop retries, successes allow them again. */
export class RetryBudget {
  #tokens = MAX_TOKENS;

  /** Notes a success. */
  succeeded(): void {
    this.#tokens = Math.min(MAX_TOKENS, this.#tokens + TOKEN_RATIO);
  }

  /** Notes a failure that could be retried, and says whether it may be. */
  failed(): boolean {
    this.#tokens = Math.max(0, this.#tokens - 1);
    return this.#tokens > MAX_TOKENS / 2;
  }
}

/** Retries unary calls. UNAVAILABLE alone: nothing else says that the service did no work. */
export function retryUnavailable(budget: RetryBudget): Interceptor {
  return (next) => async (request) => {
    if (request.stream) {
      return next(request);
    }
    const { signal } = request;
    const told = timeLeft(request.header);
    for (let attempt = 1; ; attempt++) {
      try {
        const response = await next(request);
        budget.succeeded();
        return response;
      } catch (error) {
        const failure = asFailure(error, signal);
        if (failure.code !== Code.Unavailable || signal.aborted) {
          if (failure.code !== Code.DeadlineExceeded) budget.succeeded();
          throw failure;
        }
        const mayRepeat = budget.failed() && attempt < MAX_ATTEMPTS;
        const pause = pauseAfter(attempt, failure);
        if (!mayRepeat || pause >= told.left()) {
          throw failure;
        }
        await sleep(pause, signal);
        told.write();
      }
    }
  };
}

/** Exponential with jitter, and never less than the service asked for; milliseconds. */
function pauseAfter(attempt: number, failure: ConnectError): number {
  return Math.max(backoff(attempt, LONGEST_PAUSE_MS), (retryAfter(failure) ?? 0) * 1_000);
}

/** Milliseconds before the next attempt: 0.1 s, doubled each time up to a limit, give or take a fifth. */
export function backoff(attempt: number, longest: number): number {
  const doubled = Math.min(longest, FIRST_PAUSE_MS * 2 ** (attempt - 1));
  return doubled * (0.8 + 0.4 * Math.random());
}

/** The time that a request's own header gives it, so that each attempt is told what is left. */
function timeLeft(header: Headers) {
  const started = performance.now();
  const [name, unit] = Object.entries(TIMEOUT_HEADERS).find(([key]) => header.has(key)) ?? ["", ""];
  const given = Number.parseInt(header.get(name) ?? "", 10);
  const left = () => (name === "" ? Infinity : given - (performance.now() - started));
  return {
    /** Milliseconds; infinite without a deadline. */
    left,
    write(): void {
      if (name !== "") header.set(name, `${String(Math.max(1, Math.floor(left())))}${unit}`);
    },
  };
}
