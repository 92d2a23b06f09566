/** Calls through the envelope, as a model writes them. Knows no framework. */
import { get, objectIn } from "./json.js";
import { CALL_TOOL } from "./prompting.js";

/** A call in an envelope. */
export interface Enveloped {
  /** The tool that is called; undefined for an envelope that names none. */
  readonly name: string | undefined;
  /** Its arguments as the model gave them, of whatever type; undefined where it gave none. */
  readonly args: unknown;
}

/**
 * Reads the call in an envelope; undefined for a call of another tool, and for what is no JSON object.
 *
 * @param tool the name that the model called.
 * @param argumentsJson the arguments as it wrote them.
 */
export function envelopeIn(tool: string, argumentsJson: string): Enveloped | undefined {
  const envelope = tool === CALL_TOOL ? objectIn(argumentsJson) : undefined;
  if (envelope === undefined) return undefined;
  const name = get(envelope, "name");
  return { name: typeof name === "string" ? name : undefined, args: get(envelope, "arguments") };
}
