/**
 * Places phase 1 and phase 2 in the prompt so that the provider's prompt cache holds. Phase 1, one line for
 * each tool, ends the stable prefix, at a cache breakpoint: its bytes change with the catalog only. Phase 2, the
 * definitions of the active set, stands directly before the user's message. What stays in the history is never
 * rewritten.
 */
import type { ActiveTool } from "./gen/toolgate/v1/router_pb.js";
import type { Summaries } from "./pool.js";
import { minified, oneLine } from "./texts.js";

const PHASE_1 = "Tools that can be made available when they are needed, one on each line:";
const PHASE_2 = "Tools that are available for the following message:";

/** The part of a tool of the active set that a prompt has. */
export type Definable = Pick<ActiveTool, "modelName" | "description" | "inputSchemaJson" | "signature">;

/** A block of text. */
export interface TextBlock {
  readonly type: "text";
  readonly text: string;
}

/** A block of the Messages API's `system`. */
export interface SystemBlock extends TextBlock {
  readonly cache_control?: { readonly type: "ephemeral" };
}

/** The summary pool as text; the same summaries in the same order give the same bytes. */
export function phase1(summaries: Summaries): string {
  const lines = Array.from(summaries, ([name, summary]) => `${name}: ${oneLine(summary)}`);
  return [PHASE_1, ...lines].join("\n");
}

/**
 * Definitions as text, one JSON object on each line; a signature where no schema was sent.
 *
 * @param tools the tools to define: those that are `newlyPromoted`, as the history has the others.
 */
export function phase2(tools: Iterable<Definable>): string {
  return [PHASE_2, ...Array.from(tools, definition)].join("\n");
}

/**
 * The `system` of the Messages API: your own text, then phase 1 with a cache breakpoint.
 *
 * @param system the system prompt. "": none.
 */
export function anthropicSystem(system: string, summaries: Summaries): SystemBlock[] {
  const pool: SystemBlock = { ...textBlock(phase1(summaries)), cache_control: { type: "ephemeral" } };
  return system === "" ? [pool] : [textBlock(system), pool];
}

/**
 * The system message of OpenAI's APIs: your own text, then phase 1. OpenAI caches the longest prefix that it has
 * seen and takes no breakpoints.
 *
 * @param system the system prompt. "": none.
 */
export function openaiSystem(system: string, summaries: Summaries): { role: "system"; content: string } {
  const pool = phase1(summaries);
  return { role: "system", content: system === "" ? pool : `${system}\n\n${pool}` };
}

/**
 * The user's message with phase 2 directly before it, for Anthropic and Chat Completions. Keep it in the history
 * as it is. With no tool to define it is the user's message alone.
 *
 * @param content the user's message: a text, or the provider's blocks.
 * @param tools as in `phase2`.
 */
export function userMessage<B>(
  content: string | readonly B[],
  tools: Iterable<Definable>,
): { role: "user"; content: string | (B | TextBlock)[] } {
  const defined = [...tools];
  const said = typeof content === "string" ? content : [...content];
  if (defined.length === 0) {
    return { role: "user", content: said };
  }
  const blocks = typeof said === "string" ? [textBlock(said)] : said;
  return { role: "user", content: [textBlock(phase2(defined)), ...blocks] };
}

/** An item of the Responses API's `input`. */
export interface InputItem<P> {
  readonly role: "developer" | "user";
  readonly content: string | readonly P[];
}

/**
 * The items of a turn for the Responses API: phase 2, then the user's message.
 *
 * @param content the user's message: a text, or the API's content parts.
 * @param tools as in `phase2`.
 */
export function responsesInput<P>(
  content: string | readonly P[],
  tools: Iterable<Definable>,
): InputItem<P>[] {
  const defined = [...tools];
  const said: InputItem<P> = { role: "user", content };
  return defined.length === 0 ? [said] : [{ role: "developer", content: phase2(defined) }, said];
}

function textBlock(text: string): TextBlock {
  return { type: "text", text };
}

function definition(tool: Definable): string {
  if (tool.inputSchemaJson === "") {
    return tool.signature || tool.modelName;
  }
  const [name, description] = [tool.modelName, tool.description].map((text) => JSON.stringify(text));
  const schema = minified(tool.inputSchemaJson);
  return `{"name":${name ?? ""},"description":${description ?? ""},"input_schema":${schema}}`;
}
