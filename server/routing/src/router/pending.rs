//! MCP servers that are announced and have no tools yet, as one caller may know of them.

use crate::gate::standing::{Standing, Standings};
use crate::shard::pending::PendingServer;
use crate::shard::snapshot::Snapshot;
use toolgate_core::state::AgentState;

/// The most servers that one answer names.
pub const PENDING_MAX: usize = 100;

/// The names of pending servers, at most [`PENDING_MAX`], but for those that the caller's scopes or the policy
/// hide. One that has tools already is hidden as they are.
#[must_use]
pub fn visible(snapshot: &Snapshot, standings: &Standings, state: &AgentState) -> Vec<String> {
    let known = known(snapshot, standings, state).take(PENDING_MAX);
    known.map(|server| server.name.as_str().to_owned()).collect()
}

/// The pending servers that the caller may know of.
pub fn known<'a>(
    snapshot: &'a Snapshot,
    standings: &'a Standings,
    state: &'a AgentState,
) -> impl Iterator<Item = &'a PendingServer> {
    let is_hidden = |slot: &u32| standings.tool(snapshot, *slot) == Standing::Hidden;
    let may_know = move |server: &&PendingServer| match snapshot.servers.get(&server.name) {
        Some(slots) => !slots.iter().all(is_hidden),
        None => server.may_be_known(state),
    };
    snapshot.pending.iter().filter(may_know)
}
