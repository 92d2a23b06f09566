// The wire's messages as proto3 JSON with proto field names, and errors as the protocol tells them.
import { fromJson, toJson } from "@bufbuild/protobuf";
import { ToolgateError } from "@toolgate/client";

/** A message out of its JSON. */
export function read(schema, json) {
  return fromJson(schema, json ?? {});
}

/** A message as JSON. */
export function write(schema, message, options = {}) {
  return toJson(schema, message, { useProtoFieldName: true, ...options });
}

/** An error as the protocol tells it. */
export function told(error) {
  if (error instanceof ToolgateError) {
    const { code, reason, detail: message, metadata, fieldViolations, retryAfter } = error;
    return {
      ...{ kind: "call", code, reason, message, metadata },
      ...{ field_violations: fieldViolations, retry_after: retryAfter ?? null },
    };
  }
  // The engine throws TypeErrors too: those are defects, and no refusals.
  const isDefect = /^Cannot |is not (a function|iterable|a constructor|an object)/.test(error?.message);
  if (error instanceof TypeError && !isDefect) {
    return { kind: "usage", message: error.message };
  }
  return { kind: "crash", message: String(error?.stack ?? error) };
}
