/** A connection as the client sees it, and the interceptors that every transport has. */
import type { Interceptor, Transport } from "@connectrpc/connect";

import { sendCredentials } from "./credentials.js";
import type { Settings } from "./options.js";
import { RetryBudget, retryUnavailable } from "./retry.js";

/** Bytes of the largest message that is received: a page of 1,000 tools or 100 schemas passes the usual 4 MiB. */
export const MAX_RECEIVED_BYTES = 64 * 1024 * 1024;

/** An open connection. */
export interface Connection {
  readonly transport: Transport;
  /** Gives sockets back. Calls under way are ended by the client. */
  close(): void;
}

/** Lists what happens to every call, outermost first. */
export function interceptorsOf(settings: Settings): Interceptor[] {
  const { credentials } = settings;
  return [
    // Outside of the retries, so that a source is asked once a call.
    ...(credentials === undefined ? [] : [sendCredentials(credentials)]),
    retryUnavailable(new RetryBudget()),
  ];
}
