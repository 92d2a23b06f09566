/**
 * Message histories: what they say about tools, and what must not be sent on. `scan` reads what was discovered
 * and called, for the agent's state; `strip` gives the history that can be sent; `compacted` puts a snapshot
 * before what is left of a history that was summarised.
 */
export { compacted, type Grants, History, scan } from "./scan.js";
export type { SeenCall, SeenStatus, Snapshot } from "./snapshot.js";
export { type Reason, type Removed, strip, type StripOptions, type Stripped } from "./strip.js";
