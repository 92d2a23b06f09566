/** Following of `notifications/tools/list_changed` of connected MCP clients. Knows no framework. */

const CHANGED = "notifications/tools/list_changed";

/** A transport, as the MCP SDK's client and the AI SDK's have one. */
interface Transport {
  onmessage?: ((message: unknown, ...rest: unknown[]) => void) | undefined;
}

/**
 * Listens to a client's transport, beside whatever listens there already. A client without one, such as one in the process, is
 * not heard; nor is a server of 2026-07-28 that sends the notification to subscribers alone.
 */
export class Listener {
  readonly #heard = new WeakSet<Transport>();

  /**
   * Has a function called after each change of a client's tools. A client that was connected anew is to be given again.
   *
   * @param passesOn whether the client itself is told too; the AI SDK's takes every notification for an error.
   */
  listen(client: object, changed: () => void, passesOn: boolean): void {
    const { transport } = client as { readonly transport?: Transport | null };
    const before = transport?.onmessage;
    if (transport === undefined || transport === null || before === undefined || this.#heard.has(transport)) {
      return;
    }
    this.#heard.add(transport);
    transport.onmessage = (message, ...rest) => {
      const isChange = (message as { readonly method?: unknown } | null)?.method === CHANGED;
      if (isChange) changed();
      if (!isChange || passesOn) before.call(transport, message, ...rest);
    };
  }
}
