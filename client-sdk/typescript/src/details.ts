/** The details of a failed call, as google.rpc defines them. Nothing here throws for what was received. */
import { fromBinary } from "@bufbuild/protobuf";
import { base64Decode } from "@bufbuild/protobuf/wire";
import type { ConnectError } from "@connectrpc/connect";

import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "./gen/google/rpc/error_details_pb.js";
import { StatusSchema } from "./gen/google/rpc/status_pb.js";

/** The domain whose reasons are ours to read. */
const DOMAIN = "toolgate";
const STATUS = "grpc-status";
const MESSAGE = "grpc-message";
const DETAILS = "grpc-status-details-bin";

/** One field at fault. */
export interface FieldViolation {
  /** The field's path, such as `intents[0].text`. */
  readonly field: string;
  /** The fault, and what would be right. */
  readonly description: string;
}

/** Details of a failed call beside code and message. */
export interface Details {
  readonly reason: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly fieldViolations: readonly FieldViolation[];
  readonly retryAfter: number | undefined;
}

/** Reads the details that the service sends; what is not there, or not readable, is empty. */
export function readDetails(error: ConnectError): Details {
  const info = error.findDetails(ErrorInfoSchema).find(({ domain }) => domain === DOMAIN);
  const requests = error.findDetails(BadRequestSchema);
  return {
    reason: info?.reason ?? "",
    metadata: { ...info?.metadata },
    fieldViolations: requests.flatMap(({ fieldViolations }) =>
      fieldViolations.map(({ field, description }) => ({ field, description })),
    ),
    retryAfter: retryAfter(error),
  };
}

/** Seconds that the service asks to wait before another try; undefined when it asks for none. */
export function retryAfter(error: ConnectError): number | undefined {
  const delay = error.findDetails(RetryInfoSchema)[0]?.retryDelay;
  return delay === undefined ? undefined : Number(delay.seconds) + delay.nanos / 1e9;
}

/**
 * Takes out of a response's headers or trailers what the transport would fail on, so that the status that the
 * service sent is not lost with it: details that are no status, or another one, and a message that is not
 * percent-encoded.
 */
export function mend(headers: Headers): void {
  const details = headers.get(DETAILS);
  if (details !== null && !isStatus(details, headers.get(STATUS))) {
    headers.delete(DETAILS);
  }
  const message = headers.get(MESSAGE);
  if (message !== null && !isPercentEncoded(message)) {
    headers.set(MESSAGE, message.replaceAll("%", "%25"));
  }
}

function isStatus(encoded: string, status: string | null): boolean {
  try {
    const { code } = fromBinary(StatusSchema, base64Decode(encoded));
    return status === null || String(code) === status;
  } catch {
    return false;
  }
}

function isPercentEncoded(message: string): boolean {
  try {
    decodeURIComponent(message);
    return true;
  } catch {
    return false;
  }
}
