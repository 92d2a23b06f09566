//! MCP servers that are announced and have no tools yet, limited to those that one caller may know of.

use crate::gate::visibility::{Visibilities, Visibility};
use crate::shard::pending::PendingServer;
use crate::shard::snapshot::Snapshot;
use toolgate_core::state::AgentState;

/// Maximum number of pending servers that one answer names.
pub const PENDING_MAX: usize = 100;

/// Returns the names of the pending servers, at most [`PENDING_MAX`]. Leaves out servers that the caller's scopes or
/// the policy hide. A server that already has tools is hidden if all its tools are.
#[must_use]
pub fn visible(
    snapshot: &Snapshot,
    visibilities: &Visibilities,
    state: &AgentState,
) -> Vec<String> {
    let known = known(snapshot, visibilities, state).take(PENDING_MAX);
    known.map(|server| server.name.as_str().to_owned()).collect()
}

/// Returns the pending servers that the caller may know of.
pub fn known<'a>(
    snapshot: &'a Snapshot,
    visibilities: &'a Visibilities,
    state: &'a AgentState,
) -> impl Iterator<Item = &'a PendingServer> {
    let is_hidden = |slot: &u32| visibilities.tool(snapshot, *slot) == Visibility::Hidden;
    let may_know = move |server: &&PendingServer| match snapshot.servers.get(&server.name) {
        Some(slots) => !slots.iter().all(is_hidden),
        None => server.may_be_known(state),
    };
    snapshot.pending.iter().filter(may_know)
}
