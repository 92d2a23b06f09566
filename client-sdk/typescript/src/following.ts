/** Following of MCP servers whose lists of tools change. Knows no framework. */

const CHANGED = "notifications/tools/list_changed";
/** Milliseconds before a server that failed is loaded again. */
const PAUSE_MS = 30_000;

/** A transport, as the MCP SDK's client and the AI SDK's have one. */
interface Transport {
  onmessage?: ((message: unknown, ...rest: unknown[]) => void) | undefined;
}

/** Listeners to each transport. They end with what holds them, however long the transport is used. */
const LISTENERS = new WeakMap<Transport, Set<WeakRef<Listener>>>();

/**
 * Listens to a client's transport, beside whatever listens there already. A client without one, such as one in the process, is
 * not heard; nor is a server of 2026-07-28 that sends the notification to subscribers alone.
 */
export class Listener {
  readonly #told = new WeakMap<object, () => void>();

  /**
   * Has a function called after each change of a client's tools. A client that was connected anew is to be given again.
   *
   * @param passesOn true if the client itself is told too; the AI SDK's takes every notification for an error.
   */
  listen(client: object, changed: () => void, passesOn: boolean): void {
    const { transport } = client as { readonly transport?: Transport | null };
    const before = transport?.onmessage;
    if (transport === undefined || transport === null || before === undefined || this.#told.has(transport)) {
      return;
    }
    this.#told.set(transport, changed);
    const known = LISTENERS.get(transport);
    const listeners = known ?? new Set<WeakRef<Listener>>();
    for (const one of listeners) if (one.deref() === undefined) listeners.delete(one);
    listeners.add(new WeakRef(this));
    if (known !== undefined) return;
    LISTENERS.set(transport, listeners);
    transport.onmessage = (message, ...rest) => {
      const isChange = (message as { readonly method?: unknown } | null)?.method === CHANGED;
      if (isChange) for (const one of listeners) one.deref()?.tell(transport);
      if (!isChange || passesOn) before.call(transport, message, ...rest);
    };
  }

  /** Tells who listens here of a change behind a transport. */
  tell(transport: object): void {
    this.#told.get(transport)?.();
  }
}

/** Keeps what servers list, loaded again after one said that its list changed. */
export class Following<T> {
  readonly #names: readonly string[];
  readonly #load: (name: string) => Promise<readonly T[] | undefined>;
  readonly #now: () => number;
  readonly #changed = new Set<string>();
  /** Times of the last failures, by the servers' names. */
  readonly #failed = new Map<string, number>();
  readonly #loaded = new Map<string, readonly T[]>();
  #following: Promise<void> | undefined;

  /**
   * Loads nothing yet.
   *
   * @param load lists and registers a server; undefined: what was loaded before stays, and a `follow` tries again, but
   *     not before 30 s have passed.
   * @param now gives a time in milliseconds that never goes back.
   */
  constructor(
    names: readonly string[],
    load: (name: string) => Promise<readonly T[] | undefined>,
    now: () => number = () => performance.now(),
  ) {
    this.#names = names;
    this.#load = load;
    this.#now = now;
  }

  /** The lists that were loaded last, in the servers' order. */
  get loaded(): T[] {
    return this.#names.flatMap((name) => this.#loaded.get(name) ?? []);
  }

  /** Has a server loaded by the next `follow`. */
  markChanged(name: string): void {
    this.#changed.add(name);
  }

  /**
   * Loads servers; all of them by default.
   *
   * @throws what `load` throws: a `follow` tries again as above.
   */
  async load(names: readonly string[] = this.#names): Promise<void> {
    await Promise.all(
      names.map(async (name) => {
        this.#changed.delete(name);
        try {
          const loaded = await this.#load(name);
          if (loaded === undefined) {
            this.#fail(name);
            return;
          }
          this.#failed.delete(name);
          this.#loaded.set(name, loaded);
        } catch (error) {
          this.#fail(name);
          throw error;
        }
      }),
    );
  }

  /**
   * Loads the servers that changed, but for those that failed less than 30 s ago; once, however many conversations ask at a time.
   *
   * @returns true if something was loaded.
   */
  async follow(): Promise<boolean> {
    const due = [...this.#changed].filter((name) => this.#isDue(name));
    if (due.length === 0 && this.#following === undefined) {
      return false;
    }
    this.#following ??= this.load(due).finally(() => (this.#following = undefined));
    await this.#following;
    return true;
  }

  #fail(name: string): void {
    this.#changed.add(name);
    this.#failed.set(name, this.#now());
  }

  #isDue(name: string): boolean {
    const failed = this.#failed.get(name);
    return failed === undefined || this.#now() - failed >= PAUSE_MS;
  }
}
