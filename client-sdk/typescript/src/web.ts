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
  const open = settings.protocol === "connect" ? createConnectTransport : createGrpcWebTransport;
  const transport: Transport = open({
    baseUrl: settings.target.baseUrl,
    interceptors: interceptorsOf(settings),
    fetch: mendedFetch,
  });
  return {
    transport,
    close() {
      // The browser's connections are not ours; the client has ended its calls.
    },
  };
}

/** `fetch`, whose answers have no status that can't be read. */
async function mendedFetch(...request: Parameters<typeof fetch>): Promise<Response> {
  const response = await fetch(...request);
  if (!response.headers.get("content-type")?.startsWith("application/grpc-web")) {
    return response;
  }
  const headers = new Headers(response.headers);
  mend(headers);
  const body = response.body?.pipeThrough(mendedFrames()) ?? null;
  return new Response(body, { status: response.status, headers });
}
