/** Requests that Route puts together: its additions to items, and calls through the envelope. */
import type { AgentInputItem, ModelRequest } from "@openai/agents";

import { placeOfResult, placeOfUser } from "../forms.js";
import type { JsonObject } from "../json.js";
import { CALL_TOOL, type Defined, type Prompt } from "../prompting.js";
import { SEARCH_TOOL } from "../offering.js";
import { type Part, textOf } from "./items.js";

/** A tool as the SDK hands it to a model. */
export type Sent = ModelRequest["tools"][number];

/**
 * The items to send: copies where tools are added or described, or where calls are wrapped.
 *
 * @param isWrapped true if a tool is called through the envelope.
 */
export function itemsOf(
  items: readonly AgentInputItem[],
  { added, changes }: Prompt,
  isWrapped: (name: string) => boolean,
): AgentInputItem[] {
  let users = 0;
  return items.flatMap((item) => {
    const { type, role, callId } = item as Part;
    const isResult = type === "function_call_result";
    const place = role === "user" ? placeOfUser(users++) : isResult ? placeOfResult(String(callId)) : "";
    if (changes !== undefined) {
      const tools = changes[place] ?? [];
      const told = withText(item, added[place]);
      return tools.length === 0 ? [told] : [told, additionOf(tools)];
    }
    return [withText(type === "function_call" ? wrapped(item, isWrapped) : item, added[place])];
  });
}

/**
 * The tools to send: those of Route's answer.
 *
 * @param known the tools as the SDK has them.
 */
export function toolsOf({ tools }: Prompt, known: ReadonlyMap<string, Sent>): Sent[] {
  return tools.map((tool) => {
    // The search says there which tools it finds.
    const isSearch = tool.name === SEARCH_TOOL.modelName;
    return (isSearch ? undefined : known.get(tool.name)) ?? functionOf(tool);
  });
}

function functionOf({ name, description = "", parameters = {} }: Defined): Sent {
  const schema = { type: "object", properties: {}, required: [], ...parameters };
  return { type: "function", name, description, parameters: schema as never, strict: false };
}

/** An item that the SDK sends as it is. */
function additionOf(tools: readonly JsonObject[]): AgentInputItem {
  return { type: "unknown", providerData: { type: "additional_tools", role: "developer", tools } };
}

function wrapped(item: AgentInputItem, isWrapped: (name: string) => boolean): AgentInputItem {
  const { name, arguments: args } = item as Extract<AgentInputItem, { type: "function_call" }>;
  if (!isWrapped(name)) return item;
  return {
    ...(item as Extract<AgentInputItem, { type: "function_call" }>),
    name: CALL_TOOL,
    arguments: `{"name":${JSON.stringify(name)},"arguments":${args === "" ? "{}" : args}}`,
  };
}

/** A message or a result with a text after it. */
function withText(item: AgentInputItem, text: string | undefined): AgentInputItem {
  if (text === undefined) return item;
  const { content, output } = item as Part;
  const more = { type: "input_text", text };
  if (content !== undefined) {
    const before =
      typeof content === "string" ? [{ type: "input_text", text: content }] : (content as Part[]);
    return { ...item, content: [...before, more] } as AgentInputItem;
  }
  if (Array.isArray(output)) {
    return { ...item, output: [...(output as Part[]), more] } as AgentInputItem;
  }
  const said = textOf(output);
  return { ...item, output: said === "" ? text : `${said}\n\n${text}` } as AgentInputItem;
}
