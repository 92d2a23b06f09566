/** The agent's state with its conversation, from which the service reads what was called and discovered. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";

import { type AgentState, AgentStateSchema } from "./gen/toolgate/v1/state_pb.js";
import { isObject, type JsonObject } from "./json.js";

/** The part of an agent's state that no conversation says. */
export type Grants = Pick<MessageInitShape<typeof AgentStateSchema>, "scopes" | "milestones" | "attributes">;

/** An agent's state with its conversation. */
export interface ConversationState extends Grants {
  /**
   * The conversation, oldest message first, in the shape of the provider's API: Anthropic's Messages, OpenAI's Chat
   * Completions or Responses, or MCP. At most 1 MiB as JSON, unless the service says otherwise. Absent: none.
   */
  readonly messages?: Iterable<unknown> | undefined;
  /**
   * `conversationSnapshot` of an earlier `route`, as text or parsed. It stands for the messages that were read for it, which
   * may be summarised, left out, or be among `messages` again. Absent or "": none.
   */
  readonly snapshot?: string | JsonObject | undefined;
}

/**
 * The state for `route`, and with the snapshot alone for `gate` and searches of the same turn.
 *
 *     const turn = await client.route({ intents, state: agentState({ messages, scopes }) });
 *     const state = agentState({ snapshot: turn.conversationSnapshot, scopes });
 *
 * @throws TypeError messages that are no list, or a snapshot that is no JSON object.
 */
export function agentState({ messages, snapshot, ...grants }: ConversationState): AgentState {
  if (messages !== undefined && !isList(messages)) {
    throw new TypeError("messages: must be a list of messages");
  }
  const before = snapshot === undefined || snapshot === "" ? [] : [objectOf(snapshot)];
  if (messages === undefined && before.length === 0) {
    return create(AgentStateSchema, grants);
  }
  const messagesJson = wellFormed(JSON.stringify([...before, ...(messages ?? [])]));
  return create(AgentStateSchema, { ...grants, messagesJson });
}

/** Tells whether it has entries to go through; a text has characters. */
function isList(messages: unknown): boolean {
  return typeof messages === "object" && messages !== null && Symbol.iterator in messages;
}

function objectOf(snapshot: string | JsonObject): JsonObject {
  const read = typeof snapshot === "string" ? parsed(snapshot) : snapshot;
  if (!isObject(read)) {
    throw new TypeError("snapshot: must be the `conversationSnapshot` of a turn");
  }
  return read;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** JSON without escaped lone surrogates, which no parser but JavaScript's takes. */
function wellFormed(json: string): string {
  // Escaped backslashes match first, so that what follows them is no escape.
  return json.replace(/\\\\|\\ud[89a-f][0-9a-f]{2}/g, (escape) => (escape === "\\\\" ? escape : "\ufffd"));
}
