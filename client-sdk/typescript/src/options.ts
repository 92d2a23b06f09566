/** Checks the options of clients and calls. No I/O. */
import { type Credentials, readCredentials, type TokenSource } from "./credentials.js";
import { readTarget, type Target } from "./target.js";

/** Milliseconds that a call may take, its retries included, unless told otherwise. */
export const DEFAULT_TIMEOUT_MS = 5_000;

/** Items that a listing fetches at a time unless told otherwise. */
export const PAGE_SIZE = 100;

// gRPC's header takes eight digits: a little over a day.
const MAX_TIMEOUT_MS = 99_999_999;

/** Checks of an encrypted connection; for Node. A browser has settings of its own. */
export interface TlsOptions {
  /** Certificates of the authorities to trust, PEM. Absent: the system's. */
  readonly ca?: string | Uint8Array;
  /** The client's own certificate, PEM; together with `key`. */
  readonly cert?: string | Uint8Array;
  /** The private key of `cert`, PEM. */
  readonly key?: string | Uint8Array;
  /** The name that the server's certificate must have. Absent: the target's host. */
  readonly serverName?: string;
}

/** Protocol of requests. */
export type Protocol =
  /** gRPC over HTTP/2: Node. */
  | "grpc"
  /** gRPC-Web: over `fetch`, unless told otherwise. */
  | "grpc-web"
  /** Connect with JSON: over `fetch`; plain requests that a browser's developer tools can show. */
  | "connect";

/** Settings of a client. */
export interface ClientOptions {
  /** Put into every request whose own tenant is empty. Default: none, which is the tenant "default". */
  readonly tenant?: string;
  /** Milliseconds for each call, its retries included. Default: 5,000. */
  readonly timeoutMs?: number;
  /** Sent with every call as `authorization: Bearer <key>`. Not together with `token`. */
  readonly apiKey?: string;
  /** Asked for a token before each call, for tokens that rotate; sent the same way. */
  readonly token?: TokenSource;
  /** Send credentials over an unencrypted connection to another machine. Default: false. */
  readonly allowInsecureCredentials?: boolean;
  /** Checks of an encrypted connection. With it, `host:port` alone means TLS. Node only. */
  readonly tls?: TlsOptions;
  /** The protocol. Default: "grpc" in Node, "grpc-web" elsewhere and with `@toolgate/client/web`. */
  readonly protocol?: Protocol;
}

/** Settings of one call. */
export interface CallOptions {
  /** Milliseconds for this call, its retries included. Default: the client's. */
  readonly timeoutMs?: number;
  /** Signal that ends the call with CANCELLED. */
  readonly signal?: AbortSignal;
}

/** A client's settings, checked. */
export interface Settings {
  readonly target: Target;
  readonly tenant: string;
  readonly timeoutMs: number;
  readonly credentials: Credentials | undefined;
  readonly tls: TlsOptions | undefined;
  readonly protocol: Protocol;
}

const KNOWN = new Set([
  ...["tenant", "timeoutMs", "apiKey", "token", "allowInsecureCredentials", "tls", "protocol"],
]);

/**
 * Checks a client's settings.
 *
 * @throws TypeError what was wrong, and what would be right.
 */
export function readOptions(
  target: string,
  options: ClientOptions,
  protocols: readonly [Protocol, ...Protocol[]],
): Settings {
  const unknown = Object.keys(options).filter((key) => !KNOWN.has(key));
  if (unknown.length > 0) {
    throw new TypeError(`no such option: ${unknown.join(", ")}; there are ${[...KNOWN].join(", ")}`);
  }
  const { tls, protocol = protocols[0] } = options;
  if (!protocols.includes(protocol)) {
    throw new TypeError(
      `protocol: ${JSON.stringify(protocol)} is not to be had here, but ${protocols.join(", ")}`,
    );
  }
  if ((tls?.cert === undefined) !== (tls?.key === undefined)) {
    throw new TypeError("tls: a client's certificate takes both `cert` and `key`");
  }
  const read = readTarget(target, tls !== undefined);
  return {
    target: read,
    tenant: options.tenant ?? "",
    timeoutMs: checkedTimeout(options.timeoutMs ?? DEFAULT_TIMEOUT_MS),
    credentials: readCredentials(options, read),
    tls,
    protocol,
  };
}

/**
 * A number of milliseconds that a deadline can have.
 *
 * @throws TypeError not above 0: nothing is without a deadline.
 */
export function checkedTimeout(timeoutMs: number): number {
  if (!(timeoutMs > 0)) {
    throw new TypeError(`timeoutMs: must be above 0 milliseconds, not ${String(timeoutMs)}`);
  }
  return Math.min(Math.ceil(timeoutMs), MAX_TIMEOUT_MS);
}
