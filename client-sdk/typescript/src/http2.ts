/** The transport over Node's HTTP/2: gRPC. */
import type { ClientHttp2Stream, Http2Session, SecureClientSessionOptions } from "node:http2";

import { createNodeHttpClient, Http2SessionManager } from "@connectrpc/connect-node";
import type { UniversalClientFn } from "@connectrpc/connect/protocol";
import { createTransport } from "@connectrpc/connect/protocol-grpc";

import { type Connection, interceptorsOf, MAX_RECEIVED_BYTES } from "./connection.js";
import { mend } from "./details.js";
import type { Settings, TlsOptions } from "./options.js";

// A connection whose other end is gone without a word is found out within half a minute.
const PING_INTERVAL_MS = 20_000;
const PING_TIMEOUT_MS = 10_000;
const MAX_SENT_BYTES = 0xffffffff;

/** Opens a connection over HTTP/2. It is made on the first call, and made again when it was lost. */
export function connectHttp2(settings: Settings): Connection {
  const { baseUrl } = settings.target;
  const keepAlive = { pingIntervalMs: PING_INTERVAL_MS, pingTimeoutMs: PING_TIMEOUT_MS };
  const sessions = new Sessions(baseUrl, keepAlive, tlsOf(settings.tls));
  const transport = createTransport({
    baseUrl,
    interceptors: interceptorsOf(settings),
    httpClient: mendedClient(sessions),
    useBinaryFormat: true,
    readMaxBytes: MAX_RECEIVED_BYTES,
    writeMaxBytes: MAX_SENT_BYTES,
    compressMinBytes: MAX_SENT_BYTES,
    sendCompression: null,
    acceptCompression: [],
  });
  return {
    transport,
    close() {
      sessions.abort();
    },
  };
}

/**
 * Sessions whose errors are always listened to. The base lets go of a session that it replaces, although the session
 * may still have an error to tell: unheard, it would end the process.
 */
class Sessions extends Http2SessionManager {
  readonly #heard = new WeakSet<Http2Session>();

  override async request(...args: Parameters<Http2SessionManager["request"]>): Promise<ClientHttp2Stream> {
    const stream = await super.request(...args);
    const { session } = stream;
    if (session !== undefined && !this.#heard.has(session)) {
      this.#heard.add(session);
      // The calls on it fail by themselves.
      session.on("error", () => undefined);
    }
    return stream;
  }
}

/** The HTTP/2 client, whose answers have no status that can't be read. */
function mendedClient(sessions: Http2SessionManager): UniversalClientFn {
  const client = createNodeHttpClient({ httpVersion: "2", sessionProvider: () => sessions });
  return async (request) => {
    const response = await client(request);
    mend(response.header);
    return { ...response, body: mendedAtEnd(response.body, response.trailer) };
  };
}

async function* mendedAtEnd(body: AsyncIterable<Uint8Array>, trailer: Headers): AsyncGenerator<Uint8Array> {
  yield* body;
  mend(trailer);
}

function tlsOf(tls: TlsOptions | undefined): SecureClientSessionOptions {
  const { ca, cert, key, serverName } = tls ?? {};
  return {
    ...(ca === undefined ? {} : { ca: pem(ca) }),
    ...(cert === undefined ? {} : { cert: pem(cert) }),
    ...(key === undefined ? {} : { key: pem(key) }),
    ...(serverName === undefined ? {} : { servername: serverName }),
  };
}

function pem(text: string | Uint8Array): string | Buffer {
  return typeof text === "string" ? text : Buffer.from(text);
}
