/** Faults of the connection, told from what the service itself answered, and named as gRPC names them. */
import { Code, ConnectError } from "@connectrpc/connect";

/**
 * A failed call as gRPC tells it: a connection that could not be had, or broke, is UNAVAILABLE.
 *
 * Connect says "aborted", "canceled" or "unknown" for some of those.
 */
export function asFailure(error: unknown, signal: AbortSignal): ConnectError {
  const failure = ConnectError.from(error);
  if (signal.aborted || !isLocal(failure) || failure.code === Code.Unavailable) {
    return failure;
  }
  return lostConnection(failure) ? withCode(failure, Code.Unavailable) : failure;
}

/** Tells that the service had no part in it. What it answers has headers. */
export function isLocal(error: ConnectError): boolean {
  return [...error.metadata.keys()].length === 0 && error.details.length === 0;
}

function lostConnection(error: ConnectError): boolean {
  if (error.code === Code.Aborted || error.code === Code.Canceled) {
    return true;
  }
  // A body that ended too early: the process at the other end is gone, or something cut the stream.
  if (/missing trailer|missing end|premature (eof|end)|missing output message/i.test(error.rawMessage)) {
    return true;
  }
  return isNetworkFault(error.cause);
}

/** Node's system errors have a code such as ECONNRESET; `fetch` throws a TypeError. */
function isNetworkFault(cause: unknown): boolean {
  if (cause instanceof TypeError) {
    return true;
  }
  return cause instanceof Error && "code" in cause && typeof cause.code === "string";
}

function withCode(error: ConnectError, code: Code): ConnectError {
  const named = new ConnectError(error.rawMessage, code);
  named.cause = error.cause ?? error;
  return named;
}
