/** Gate's verdicts, for the model. */
import { RefusalCode } from "./gen/toolgate/v1/error_pb.js";
import type { GateVerdict } from "./gen/toolgate/v1/router_pb.js";
import { parse } from "./json.js";

/** Error of a call that may not run, for the model. */
export interface ToolError {
  /** The refusal code in lower case, such as "scope_missing". */
  readonly error: string;
  /** The fault, and what to do. */
  readonly message: string;
  /** Tools that may be called instead. */
  readonly available?: string[];
  /** The search to make. */
  readonly search?: string;
  /** The places where the arguments are wrong. */
  readonly violations?: { readonly pointer: string; readonly message: string }[];
  /** The schema that the arguments do not satisfy. */
  readonly input_schema?: unknown;
  /** Steps that would unlock the tool. */
  readonly unlock?: string[];
}

const NAMES_ALTERNATIVES = [RefusalCode.TOOL_NOT_AVAILABLE, RefusalCode.UNKNOWN_TOOL];

/**
 * The tool result to hand to the model, as JSON, in place of the call's own. Keys are there when they say
 * something.
 *
 * @throws TypeError the call was allowed.
 */
export function toToolError(verdict: GateVerdict): ToolError {
  if (verdict.allowed) {
    throw new TypeError("an allowed call has no error");
  }
  const { availableTools, searchQuery, violations, inputSchemaJson, unlock } = verdict;
  const namesAlternatives = availableTools.length > 0 || NAMES_ALTERNATIVES.includes(verdict.code);
  const places = violations.map(({ pointer, message }) => ({ pointer, message }));
  return {
    error: nameOf(verdict.code),
    message: verdict.message,
    ...(namesAlternatives ? { available: [...availableTools] } : {}),
    ...(searchQuery === "" ? {} : { search: searchQuery }),
    ...(places.length === 0 ? {} : { violations: places }),
    ...(inputSchemaJson === "" ? {} : { input_schema: parse(inputSchemaJson) }),
    ...(unlock.length === 0 ? {} : { unlock: [...unlock] }),
  };
}

function nameOf(code: RefusalCode): string {
  // A later server may know codes that this version does not.
  const name = (RefusalCode as Record<number, string | undefined>)[code] ?? "UNSPECIFIED";
  return name.toLowerCase();
}
