/** Following of MCP servers whose lists of tools change. Knows no framework. */

const CHANGED = "notifications/tools/list_changed";

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
   * @param passesOn whether the client itself is told too; the AI SDK's takes every notification for an error.
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
  readonly #changed = new Set<string>();
  readonly #loaded = new Map<string, readonly T[]>();
  #following: Promise<void> | undefined;

  /**
   * Loads nothing yet.
   *
   * @param load lists and registers a server; undefined: what was loaded before stays, and the next `follow` tries again.
   */
  constructor(names: readonly string[], load: (name: string) => Promise<readonly T[] | undefined>) {
    this.#names = names;
    this.#load = load;
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
   * @throws what `load` throws: the next `follow` tries again.
   */
  async load(names: readonly string[] = this.#names): Promise<void> {
    await Promise.all(
      names.map(async (name) => {
        this.#changed.delete(name);
        try {
          const loaded = await this.#load(name);
          if (loaded === undefined) this.#changed.add(name);
          else this.#loaded.set(name, loaded);
        } catch (error) {
          this.#changed.add(name);
          throw error;
        }
      }),
    );
  }

  /**
   * Loads the servers that changed; once, however many conversations ask at a time.
   *
   * @returns true if something was loaded.
   */
  async follow(): Promise<boolean> {
    if (this.#changed.size === 0 && this.#following === undefined) {
      return false;
    }
    this.#following ??= this.load([...this.#changed]).finally(() => (this.#following = undefined));
    await this.#following;
    return true;
  }
}
