/** Makes the errors of failed calls: the status and its details, parsed. */
import { Code, ConnectError } from "@connectrpc/connect";

import { type FieldViolation, readDetails } from "./details.js";
import { isLocal } from "./failures.js";
import type { ErrorReason } from "./gen/toolgate/v1/error_pb.js";

export type { FieldViolation } from "./details.js";

const STATUS_CODES = {
  [Code.Canceled]: "CANCELLED",
  [Code.Unknown]: "UNKNOWN",
  [Code.InvalidArgument]: "INVALID_ARGUMENT",
  [Code.DeadlineExceeded]: "DEADLINE_EXCEEDED",
  [Code.NotFound]: "NOT_FOUND",
  [Code.AlreadyExists]: "ALREADY_EXISTS",
  [Code.PermissionDenied]: "PERMISSION_DENIED",
  [Code.ResourceExhausted]: "RESOURCE_EXHAUSTED",
  [Code.FailedPrecondition]: "FAILED_PRECONDITION",
  [Code.Aborted]: "ABORTED",
  [Code.OutOfRange]: "OUT_OF_RANGE",
  [Code.Unimplemented]: "UNIMPLEMENTED",
  [Code.Internal]: "INTERNAL",
  [Code.Unavailable]: "UNAVAILABLE",
  [Code.DataLoss]: "DATA_LOSS",
  [Code.Unauthenticated]: "UNAUTHENTICATED",
} as const;

/** Matches the words of a transport for a request that can't be encoded. */
const UNSENDABLE = /^serialize (?:binary|json): (.*)$/s;

/** A gRPC status code by its name. */
export type StatusCode = (typeof STATUS_CODES)[Code];

/** Cause of a failed call: a name of `v1.ErrorReason`, or one that this version does not know. */
export type Reason = keyof typeof ErrorReason | (string & {});

/** Contents of a `ToolgateError` beside its code and detail. */
export interface ErrorParts {
  readonly reason?: Reason;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly fieldViolations?: readonly FieldViolation[];
  readonly retryAfter?: number | undefined;
  readonly cause?: unknown;
}

/** A call failed. Switch on `reason`; the text may change at any time. A refused tool call is no error. */
export class ToolgateError extends Error {
  override readonly name = "ToolgateError";
  /** The gRPC status code. */
  readonly code: StatusCode;
  /**
   * One of `v1.ErrorReason`, such as "ETAG_MISMATCH"; "" when the failure did not come from Toolgate itself
   * (nobody listens, a proxy answered, the deadline passed on this side).
   */
  readonly reason: Reason;
  /** The fault, for a reader; `message` has the reason and the fields at fault too. */
  readonly detail: string;
  /** Further facts about the reason, such as `limit`, `maximum`, `actual`. */
  readonly metadata: Readonly<Record<string, string>>;
  /** The fields at fault, with INVALID_ARGUMENT. */
  readonly fieldViolations: readonly FieldViolation[];
  /** Seconds to wait before another try; undefined when no retry helps or none was asked. */
  readonly retryAfter: number | undefined;

  constructor(code: StatusCode, detail: string, parts: ErrorParts = {}) {
    const { reason = "", metadata = {}, fieldViolations = [], retryAfter, cause } = parts;
    // The service's message says its violations already, unless they are many.
    const more = fieldViolations.filter(
      ({ field, description }) => !(detail.includes(field) && detail.includes(description)),
    );
    const fields = more.map(({ field, description }) => `; ${field}: ${description}`).join("");
    super(`${reason || code}: ${detail}${fields}`, cause === undefined ? {} : { cause });
    this.code = code;
    this.reason = reason;
    this.detail = detail;
    this.metadata = metadata;
    this.fieldViolations = fieldViolations;
    this.retryAfter = retryAfter;
  }
}

/**
 * Converts what a transport threw: a local mistake to a `TypeError`, all else to a `ToolgateError`.
 *
 * @param error the error of the call.
 * @param target where the call went, to say so when nobody answered there.
 */
export function toThrown(error: unknown, target: string): ToolgateError | TypeError {
  if (error instanceof ToolgateError || error instanceof TypeError) {
    return error;
  }
  const failure = ConnectError.from(error);
  const [, mistake] = UNSENDABLE.exec(failure.rawMessage) ?? [];
  if (mistake !== undefined && isLocal(failure)) {
    return new TypeError(mistake, { cause: error });
  }
  const code = (STATUS_CODES as Record<number, StatusCode>)[failure.code] ?? "UNKNOWN";
  const said = failure.rawMessage.trim() || code;
  const isNobody = failure.code === Code.Unavailable && isLocal(failure);
  const detail = isNobody ? `${said}; is \`toolgate serve\` running at ${target}?` : said;
  return new ToolgateError(code, detail, { ...readDetails(failure), cause: failure.cause });
}
