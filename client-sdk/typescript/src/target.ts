/** Targets: where the service is, as people write it. No I/O. */

/** The address at which `toolgate serve` listens unless told otherwise. */
export const DEFAULT_TARGET = "127.0.0.1:7070";

/** A target, read. */
export interface Target {
  /** As it was given; for messages. */
  readonly given: string;
  /** `http://host:port` or `https://host:port`. */
  readonly baseUrl: string;
  readonly encrypted: boolean;
  /** True if the host is this machine itself. */
  readonly loopback: boolean;
}

const SCHEME = /^(https?):\/\/(.*)$/s;
const HOST_AND_PORT = /^(\[[0-9A-Fa-f:.]+\]|[^:/[\]\s@?#]+):([0-9]{1,5})$/;
const LOOPBACK = /^(localhost|127(\.[0-9]{1,3}){3}|\[(::1|0:0:0:0:0:0:0:1)\])$/i;

/**
 * Reads `host:port`, `http://host:port` or `https://host:port`.
 *
 * @param given the target.
 * @param hasTls true if TLS settings were given, which ask a bare `host:port` to be encrypted.
 * @throws TypeError no port, a path, another scheme, or one that says other than the TLS settings.
 */
export function readTarget(given: string, hasTls: boolean): Target {
  const [, scheme, rest = ""] = SCHEME.exec(given) ?? [];
  const address = scheme === undefined ? given : rest.replace(/\/$/, "");
  const [, host, port = ""] = HOST_AND_PORT.exec(address) ?? [];
  if (host === undefined || Number(port) < 1 || Number(port) > 65535) {
    throw new TypeError(
      `${JSON.stringify(given)} is no target: say host:port, such as ${DEFAULT_TARGET}, or ` +
        "https://host:port for TLS; without a path",
    );
  }
  if (scheme === "http" && hasTls) {
    throw new TypeError(
      `${JSON.stringify(given)} asks for no encryption, but there are TLS settings: ` +
        "say https://, or leave `tls` out",
    );
  }
  const encrypted = scheme === "https" || hasTls;
  const baseUrl = `${encrypted ? "https" : "http"}://${host}:${port}`;
  return { given, baseUrl, encrypted, loopback: LOOPBACK.test(host) };
}
