/** Credentials: checked at construction, sent with every call, never in a text. */
import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";

import { orAborted } from "./signals.js";
import type { Target } from "./target.js";

/** Gives the token to send, such as a JWT. Asked before each call, within the call's deadline. */
export type TokenSource = () => string | Promise<string>;

/** A source of what is sent; a class of its own, so that printing options shows no secret. */
export class Credentials {
  readonly #source: TokenSource;

  constructor(source: TokenSource) {
    this.#source = source;
  }

  /** The header's value. */
  async header(): Promise<string> {
    const token = await this.#source();
    if (!isToken(token)) {
      throw new TypeError("the token source gave something that is no token");
    }
    return `Bearer ${token}`;
  }
}

interface CredentialOptions {
  readonly apiKey?: string;
  readonly token?: TokenSource;
  readonly allowInsecureCredentials?: boolean;
}

/**
 * The credentials among a client's options; undefined when there are none.
 *
 * @throws TypeError both kinds, an unusable key, or a connection that would give them away.
 */
export function readCredentials(options: CredentialOptions, target: Target): Credentials | undefined {
  const { apiKey, token } = options;
  if (apiKey === undefined && token === undefined) {
    return undefined;
  }
  if (apiKey !== undefined && token !== undefined) {
    throw new TypeError("give `apiKey` or `token`, not both");
  }
  if (apiKey !== undefined && !isToken(apiKey)) {
    throw new TypeError("apiKey: must be visible ASCII characters without spaces");
  }
  if (token !== undefined && typeof token !== "function") {
    throw new TypeError("token: must be a function that gives the token; a fixed one is an `apiKey`");
  }
  if (!target.encrypted && !target.loopback && options.allowInsecureCredentials !== true) {
    throw new TypeError(
      `credentials would travel unencrypted to ${target.given}: say https://, or ` +
        "allowInsecureCredentials: true",
    );
  }
  return new Credentials(token ?? (() => apiKey ?? ""));
}

/** Sends the credentials with each call. Asks once a call: its retries carry the same token. */
export function sendCredentials(credentials: Credentials): Interceptor {
  return (next) => async (request) => {
    let header: string;
    try {
      header = await orAborted(credentials.header(), request.signal);
    } catch (error) {
      if (request.signal.aborted) throw error;
      // The source's error may hold a secret: it is the cause, and not part of the text.
      const failed = new ConnectError("the token source failed", Code.Unauthenticated);
      failed.cause = error;
      throw failed;
    }
    request.header.set("authorization", header);
    return next(request);
  };
}

function isToken(token: unknown): token is string {
  return typeof token === "string" && /^[\x21-\x7e]+$/.test(token);
}
