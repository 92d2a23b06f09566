/** The summary pool as the client holds it. */
import type { SummaryPoolDelta } from "./gen/toolgate/v1/router_pb.js";

/** Summaries by model-facing name, in the pool's order: a `Map`, or a list of pairs. */
export type Summaries = Iterable<readonly [name: string, summary: string]>;

/**
 * The summaries by model-facing name after a change; those that were held are left alone.
 *
 * @param pool the answer of `getSummaryPool`, or `summaryPool` of an answer of `route`. Absent: nothing changed.
 * @param held the summaries before; empty at first.
 */
export function applyPool(pool: SummaryPoolDelta | undefined, held: Summaries = []): Map<string, string> {
  const after = new Map(pool?.full === true ? [] : held);
  for (const name of pool?.removed ?? []) {
    after.delete(name);
  }
  for (const { modelName, summary } of pool?.added ?? []) {
    // A changed summary moves to the end, so that a cached prefix before it holds.
    after.delete(modelName);
    after.set(modelName, summary);
  }
  return after;
}
