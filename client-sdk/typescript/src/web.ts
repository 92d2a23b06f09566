/** Transports over `fetch`, for browsers and edge runtimes. No module of Node's is used here. */
import type { Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-web";

import { type Connection, interceptorsOf } from "./connection.js";
import { mend } from "./details.js";
import type { Settings } from "./options.js";
import { mendedFrames } from "./frames.js";

/** Opens a connection over `fetch`. */
export function connectWeb(settings: Settings): Connection {
  if (settings.tls !== undefined) {
    throw new TypeError("tls: `fetch` checks certificates by itself; only Node's client takes settings");
  }
  const closing = new AbortController();
  const open = settings.protocol === "connect" ? createConnectTransport : createGrpcWebTransport;
  const transport: Transport = open({
    baseUrl: settings.target.baseUrl,
    interceptors: interceptorsOf(settings),
    fetch: fetchUntil(closing.signal),
  });
  return {
    transport,
    close() {
      closing.abort();
    },
  };
}

/** `fetch` that ends with the client, and whose answers have no status that can't be read. */
function fetchUntil(closed: AbortSignal): typeof fetch {
  return async (input, init) => {
    const signal = init?.signal ? AbortSignal.any([init.signal, closed]) : closed;
    const response = await fetch(input, { ...init, signal });
    if (!response.headers.get("content-type")?.startsWith("application/grpc-web")) {
      return response;
    }
    const headers = new Headers(response.headers);
    mend(headers);
    const body = response.body?.pipeThrough(mendedFrames()) ?? null;
    return new Response(body, { status: response.status, headers });
  };
}
