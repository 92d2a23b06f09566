/** Transports over Node's HTTP/2: gRPC, and gRPC-Web and Connect where those are asked for. */
import type { SecureClientSessionOptions } from "node:http2";

import type { Transport } from "@connectrpc/connect";
import {
  createConnectTransport,
  createGrpcWebTransport,
  createNodeHttpClient,
  Http2SessionManager,
} from "@connectrpc/connect-node";
import type { UniversalClientFn } from "@connectrpc/connect/protocol";
import { createTransport as createGrpcTransport } from "@connectrpc/connect/protocol-grpc";

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
  const sessions = new Http2SessionManager(baseUrl, keepAlive, tlsOf(settings.tls));
  return {
    transport: transportOf(settings, sessions),
    close() {
      sessions.abort();
    },
  };
}

function transportOf(settings: Settings, sessions: Http2SessionManager): Transport {
  const { baseUrl } = settings.target;
  const interceptors = interceptorsOf(settings);
  const http = {
    ...{ baseUrl, interceptors, httpVersion: "2" as const, sessionManager: sessions },
    readMaxBytes: MAX_RECEIVED_BYTES,
  };
  switch (settings.protocol) {
    case "connect":
      return createConnectTransport({ ...http, useBinaryFormat: false });
    case "grpc-web":
      return createGrpcWebTransport(http);
    case "grpc":
      return createGrpcTransport({
        ...{ baseUrl, interceptors, useBinaryFormat: true },
        httpClient: mendedClient(sessions),
        ...{ readMaxBytes: MAX_RECEIVED_BYTES, writeMaxBytes: MAX_SENT_BYTES, compressMinBytes: 1024 },
        ...{ sendCompression: null, acceptCompression: [] },
      });
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
