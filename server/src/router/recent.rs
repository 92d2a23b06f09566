//! What the agent called before, as the learned gate sees it.

use std::collections::HashSet;

use super::rank::{Candidate, Recent};
use crate::identity::ServerName;
use crate::shard::snapshot::Snapshot;
use crate::state::AgentState;

/// Calls that are looked at, the last ones.
const CALLS_MAX: usize = 8;

/// Notes at each candidate what was called before; nothing where there was no call.
pub(super) fn note(snapshot: &Snapshot, state: &AgentState, candidates: &mut [Candidate]) {
    let names = state.calls.iter().map(|call| call.tool.as_str());
    note_calls(snapshot, names.flat_map(|name| called(snapshot, name)), candidates);
}

/// The same for the slots of called tools, the last one last.
pub fn note_calls(
    snapshot: &Snapshot,
    called: impl DoubleEndedIterator<Item = u32>,
    candidates: &mut [Candidate],
) {
    let slots: HashSet<u32> = called.rev().take(CALLS_MAX).collect();
    if slots.is_empty() {
        return;
    }
    let servers: HashSet<&ServerName> =
        slots.iter().map(|slot| &snapshot.tool(*slot).id.server).collect();
    for one in candidates {
        one.recent = Recent {
            called: slots.contains(&one.slot),
            server_called: servers.contains(&snapshot.tool(one.slot).id.server),
        };
    }
}

/// A call names the tool as the model knows it, or as MCP does, which several servers may.
fn called(snapshot: &Snapshot, name: &str) -> Vec<u32> {
    match snapshot.names.requested(name, &snapshot.tools) {
        Some(slot) => vec![slot],
        None => snapshot.names.mcp_name(name).to_vec(),
    }
}
