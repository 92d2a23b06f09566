/** Abort signals: several as one, and waiting that ends with one. */

/** A signal that others end, as long as it is not released. */
export interface Linked {
  readonly signal: AbortSignal;
  /** Lets go of the others. */
  readonly release: () => void;
}

/** A signal that ends with any of others. `AbortSignal.any` leaves something with a long-lived one for each call. */
export function linked(...signals: readonly (AbortSignal | undefined)[]): Linked {
  const controller = new AbortController();
  const given = signals.filter((signal) => signal !== undefined);
  const stop = (): void => {
    controller.abort(given.find(({ aborted }) => aborted)?.reason);
  };
  for (const signal of given) {
    signal.addEventListener("abort", stop);
  }
  if (given.some(({ aborted }) => aborted)) stop();
  return {
    signal: controller.signal,
    release() {
      for (const signal of given) signal.removeEventListener("abort", stop);
    },
  };
}

/** Waits for a promise, or throws the signal's reason as soon as there is one. */
export async function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  let stop = (): void => undefined;
  const aborted = new Promise<never>((_, reject) => {
    stop = () => {
      reject(signal.reason as Error);
    };
    signal.addEventListener("abort", stop);
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

/** Waits, or throws the signal's reason as soon as there is one. */
export async function sleep(milliseconds: number, signal: AbortSignal): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const over = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, milliseconds);
  });
  try {
    await orAborted(over, signal);
  } finally {
    clearTimeout(timer);
  }
}
