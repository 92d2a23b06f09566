/** The scan of a history: which tools were discovered, which calls were made and how they ended. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";

import { type AgentState, AgentStateSchema, CallStatus } from "../gen/toolgate/v1/state_pb.js";
import { SEARCH_TOOL } from "../offering.js";
import { type Event, read } from "./events.js";
import { bounded, bytesOf, foundTools } from "./reading.js";
import * as snapshots from "./snapshot.js";
import type { SeenCall, Snapshot } from "./snapshot.js";

// The state is at most 64 KiB on the wire; the rest is for scopes, milestones and attributes.
const DISCOVERED_BYTES = 24 * 1024;
const CALLS_BYTES = 24 * 1024;
const CALL_OVERHEAD = 16;
const NAME_OVERHEAD = 4;

const STATUSES = {
  unspecified: CallStatus.UNSPECIFIED,
  succeeded: CallStatus.SUCCEEDED,
  failed: CallStatus.FAILED,
} as const;

/** What a history can't say of an agent's state. */
export type Grants = Pick<MessageInitShape<typeof AgentStateSchema>, "scopes" | "milestones" | "attributes">;

/** What a conversation's history says about tools. */
export class History {
  /**
   * Names of the tools that were loaded, in the order of their discovery: by a reference, by a search (the
   * provider's, or `SEARCH_TOOL`), or because a call to them succeeded. The newest 24 KiB of them.
   */
  readonly discovered: readonly string[];
  /** The calls, oldest first: the newest 24 KiB, the last success of each tool before others. */
  readonly calls: readonly SeenCall[];
  /** How many turns of the model there were. */
  readonly turns: number;

  constructor(discovered: readonly string[], calls: readonly SeenCall[], turns: number) {
    this.discovered = discovered;
    this.calls = calls;
    this.turns = turns;
  }

  /**
   * The agent's state for `route` and `gate`.
   *
   * @param grants the agent's scopes, milestones and attributes, which no history can say.
   */
  state(grants: Grants = {}): AgentState {
    return create(AgentStateSchema, {
      ...grants,
      calls: this.calls.map(({ tool, status, turn }) => ({ tool, status: STATUSES[status], turn })),
      discoveredTools: [...this.discovered],
    });
  }

  /**
   * All of it as a JSON object, to keep when the history is compacted. Hand it to the next `scan`, or leave it in
   * the history: `scan` finds it there, and `strip` takes it out before the history is sent.
   */
  snapshot(): Snapshot {
    return snapshots.write(this);
  }
}

/**
 * Reads a history for what the model has discovered and called.
 *
 * Takes messages of Anthropic's Messages API, OpenAI's Chat Completions and Responses APIs, and MCP (sampling
 * messages and JSON-RPC), also mixed. What it does not know it passes over; it never throws for what a message
 * holds. Scanning messages that a snapshot covers already changes nothing but, where they hold no call, `turns`.
 *
 * @param messages the history, oldest first.
 * @param snapshot what `History.snapshot` gave before the history was compacted.
 */
export function scan(messages: Iterable<unknown>, snapshot?: unknown): History {
  const scanner = new Scanner();
  if (snapshot !== undefined && snapshot !== null) {
    scanner.restore(snapshot);
  }
  for (const message of messages) {
    if (snapshots.isSnapshot(message)) {
      scanner.restore(message);
      continue;
    }
    for (const event of read(message)) {
      scanner.take(event);
    }
  }
  return scanner.result();
}

/**
 * The history after compaction: a snapshot of the old one, then what is kept.
 *
 * @param messages the history before, whole.
 * @param kept what stands for it now: a summary, and those of the messages that stay.
 * @param snapshot as in `scan`.
 */
export function compacted<T>(
  messages: Iterable<unknown>,
  kept: Iterable<T>,
  snapshot?: unknown,
): [Snapshot, ...T[]] {
  return [scan(messages, snapshot).snapshot(), ...kept];
}

/** Folds events into a `History`. */
class Scanner {
  readonly #found = new Set<string>();
  readonly #calls: SeenCall[] = [];
  readonly #open = new Map<string, number>();
  readonly #anonymous: number[] = [];
  readonly #restored = new Map<string, number>();
  #turn = -1;
  #turns = 0;
  #modelSpeaks = false;

  restore(snapshot: unknown): void {
    const restored = snapshots.read(snapshot);
    for (const tool of restored.discovered) {
      this.#found.add(tool);
    }
    const known = new Set(this.#calls.map(({ id }) => id).filter(Boolean));
    for (const call of restored.calls) {
      if (known.has(call.id)) continue;
      if (call.id !== "") {
        this.#restored.set(call.id, this.#calls.length);
        this.#open.set(call.id, this.#calls.length);
      }
      this.#calls.push(call);
    }
    this.#turns = Math.max(this.#turns, restored.turns);
    this.#turn = this.#turns - 1;
    this.#modelSpeaks = false;
  }

  take(event: Event): void {
    switch (event.kind) {
      case "spoke":
        this.#spoke(event.model);
        break;
      case "found":
        this.#found.add(event.tool);
        break;
      case "called":
        this.#called(event.key ?? "", event.tool);
        break;
      case "answered":
        this.#answered(event.key, event.failed, event.content);
    }
  }

  result(): History {
    return new History(newestNames([...this.#found]), newestCalls(this.#calls), this.#turns);
  }

  #spoke(model: boolean): void {
    if (model && !this.#modelSpeaks) {
      this.#turn += 1;
      this.#turns = Math.max(this.#turns, this.#turn + 1);
    }
    this.#modelSpeaks = model;
  }

  #called(key: string, tool: string): void {
    const known = this.#calls[this.#restored.get(key) ?? -1];
    if (known?.tool === tool) {
      // This turn was counted before the compaction.
      this.#restored.delete(key);
      this.#turn = known.turn;
      this.#turns = Math.max(this.#turns, this.#turn + 1);
      return;
    }
    if (this.#calls[this.#open.get(key) ?? -1]?.tool === tool) {
      return;
    }
    // Some providers use an identifier again: with another tool, it is another call.
    if (key !== "") {
      this.#open.set(key, this.#calls.length);
    } else {
      this.#anonymous.push(this.#calls.length);
    }
    this.#calls.push({ tool, status: "unspecified", turn: Math.max(this.#turn, 0), id: key });
  }

  #answered(key: string | undefined, failed: boolean, content: unknown): void {
    const index = key === undefined ? this.#anonymous.shift() : this.#open.get(key);
    const call = this.#calls[index ?? -1];
    if (key !== undefined) this.#open.delete(key);
    if (index === undefined || call === undefined) {
      return;
    }
    this.#calls[index] = { ...call, status: failed ? "failed" : "succeeded" };
    if (!failed) {
      // The search is no tool of the catalog: its answer says what it loaded.
      const tools = call.tool === SEARCH_TOOL.modelName ? foundTools(content) : [call.tool];
      for (const tool of tools) this.#found.add(tool);
    }
  }
}

function newestNames(found: string[]): string[] {
  return bounded(found.reverse(), (tool) => bytesOf(tool) + NAME_OVERHEAD, DISCOVERED_BYTES).reverse();
}

/** The newest calls, but the last success of each tool first: preconditions ask for it. */
function newestCalls(calls: readonly SeenCall[]): SeenCall[] {
  const newest = [...calls.keys()].reverse();
  const successes = new Map<string, number>();
  for (const index of newest) {
    const call = calls[index];
    if (call?.status === "succeeded" && !successes.has(call.tool)) successes.set(call.tool, index);
  }
  const order = new Set([...successes.values(), ...newest]);
  const size = (index: number) => bytesOf(calls[index]?.tool ?? "") + CALL_OVERHEAD;
  const chosen = new Set(bounded(order, size, CALLS_BYTES));
  return calls.filter((_, index) => chosen.has(index));
}
