/**
 * The snapshot: what a history said, as a JSON object that outlives its compaction. It is an entry of its own
 * kind, never text: a message that writes one down does not forge it.
 */
import { type JsonObject, isObject, listOf } from "../json.js";
import { fields, name, text } from "./reading.js";

/** The `type` of a snapshot among the entries of a history. */
const KIND = "toolgate_snapshot";
const VERSION = 1;
// Well below what the wire carries, so that turns can be counted on from here.
const MAX_TURNS = 2 ** 31 - 1;

/** How a call ended; "unspecified" while it has no answer. */
export type SeenStatus = "unspecified" | "succeeded" | "failed";

/** One call of a history. */
export interface SeenCall {
  /** The tool's name, as the model wrote it. */
  readonly tool: string;
  /** How it ended. */
  readonly status: SeenStatus;
  /** The model's turn in which it was made, from 0. */
  readonly turn: number;
  /** The provider's identifier of the call; "" when there was none. */
  readonly id: string;
}

/** What a history said, as a JSON object. */
export interface Snapshot {
  readonly type: typeof KIND;
  readonly version: number;
  readonly turns: number;
  readonly discovered: readonly string[];
  readonly calls: readonly SeenCall[];
}

/** What a snapshot holds. */
export interface Restored {
  readonly discovered: readonly string[];
  readonly calls: readonly SeenCall[];
  readonly turns: number;
}

/** The snapshot's JSON object. */
export function write(held: Restored): Snapshot {
  const calls = held.calls.map(({ tool, status, turn, id }) => ({ tool, status, turn, id }));
  return { type: KIND, version: VERSION, turns: held.turns, discovered: [...held.discovered], calls };
}

/** Whether an entry of a history is a snapshot, of whichever version. */
export function isSnapshot(entry: unknown): boolean {
  return isObject(entry) && fields(entry)["type"] === KIND;
}

/** Reads what can be read; a later version's snapshot is read as far as it is the same. */
export function read(snapshot: unknown): Restored {
  const values = fields(snapshot);
  return {
    discovered: listOf(values["discovered"]).map(name).filter(Boolean),
    calls: listOf(values["calls"])
      .map((entry) => call(fields(entry)))
      .filter(({ tool }) => tool !== ""),
    turns: count(values["turns"]),
  };
}

function call(values: JsonObject): SeenCall {
  const status = text(values["status"]);
  return {
    tool: name(values["tool"]),
    status: status === "succeeded" || status === "failed" ? status : "unspecified",
    turn: count(values["turn"]),
    id: text(values["id"]),
  };
}

function count(value: unknown): number {
  return Number.isInteger(value) ? Math.min(Math.max(value as number, 0), MAX_TURNS) : 0;
}
