/** The catalog's changes as one stream, whatever becomes of the connection. */
import { Code, ConnectError, type CallOptions } from "@connectrpc/connect";

import { asFailure } from "./failures.js";
import type { WatchCatalogResponse } from "./gen/toolgate/v1/catalog_pb.js";
import { backoff } from "./retry.js";
import { type Linked, linked, sleep } from "./signals.js";

const LONGEST_PAUSE_MS = 5_000;

/** Settings of a watch. */
export interface WatchPlan {
  /** Opens the stream from a revision on. */
  readonly open: (since: bigint | undefined, options: CallOptions) => AsyncIterable<WatchCatalogResponse>;
  /** The revision to begin with; undefined: what changes from now on. */
  readonly since: bigint | undefined;
  /** Milliseconds that opening may take. */
  readonly openingMs: number;
  /** Signal that ends the watch. */
  readonly signal: AbortSignal;
}

/**
 * Yields changes, and resumes after a lost connection from the last revision that was seen.
 *
 * The first opening is tried for `openingMs` in all, and fails with the last refusal when they are over. Once the
 * stream was open, it is opened again until the caller stops.
 */
export async function* watchCatalog(plan: WatchPlan): AsyncGenerator<WatchCatalogResponse, void> {
  const { signal } = plan;
  const giveUp = performance.now() + plan.openingMs;
  let { since } = plan;
  let wasOpen = false;
  let refusal: ConnectError | undefined;
  for (let failures = 1; ; failures++) {
    const openingMs: number = wasOpen ? plan.openingMs : giveUp - performance.now();
    const opening: Opening = new Opening(signal, openingMs);
    let failure: ConnectError | undefined;
    try {
      for await (const change of plan.open(since, opening.options)) {
        since = change.catalogRevision;
        failures = 1;
        yield change;
      }
    } catch (error) {
      failure = asFailure(error, signal);
    } finally {
      opening.end();
    }
    wasOpen ||= opening.succeeded;
    const pause = backoff(failures, LONGEST_PAUSE_MS);
    // What was late the first time had all the time that there is.
    const hasTime = wasOpen || (!opening.wasLate && performance.now() + pause < giveUp);
    if (failure !== undefined && !mayResume(failure, signal, hasTime)) {
      // The time that a refusal left says nothing of the service, and the refusal does.
      throw opening.wasLate && !wasOpen && !signal.aborted ? (refusal ?? failure) : failure;
    }
    refusal = failure;
    await sleep(pause, signal);
  }
}

function mayResume(failure: ConnectError, signal: AbortSignal, hasTime: boolean): boolean {
  // A stream without a deadline has this code only when opening it took too long.
  const isLost = failure.code === Code.Unavailable || failure.code === Code.DeadlineExceeded;
  return isLost && hasTime && !signal.aborted;
}

/** One attempt: ends with the watch, or when the service does not begin to answer in time. */
class Opening {
  /** True once the service has begun to answer. */
  succeeded = false;
  /** True once it was too late for that. */
  wasLate = false;
  readonly #abort = new AbortController();
  readonly #linked: Linked;
  readonly #timer: ReturnType<typeof setTimeout>;

  constructor(signal: AbortSignal, openingMs: number) {
    this.#timer = setTimeout(() => {
      this.wasLate = true;
      this.#abort.abort(new ConnectError("the watch was not opened in time", Code.DeadlineExceeded));
    }, openingMs);
    this.#linked = linked(signal, this.#abort.signal);
    this.options = {
      signal: this.#linked.signal,
      onHeader: () => {
        this.succeeded = true;
        clearTimeout(this.#timer);
      },
    };
  }

  /** Options of the stream that is opened. */
  readonly options: CallOptions;

  end(): void {
    clearTimeout(this.#timer);
    this.#abort.abort();
    this.#linked.release();
  }
}
