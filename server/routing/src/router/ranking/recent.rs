//! Earlier calls of the agent, as features of the learned gate and as a prior of the ranking.

use std::collections::HashSet;

use crate::router::ranking::rank::{Candidate, FoundBy, Recent, sort};
use crate::shard::snapshot::Snapshot;
use toolgate_core::identity::ServerName;
use toolgate_core::state::{AgentState, CallStatus};

/// Number of latest calls that are considered.
const CALLS_MAX: usize = 8;

/// Score added to the tools of the MCP server that was called last, because the next request often needs the same
/// server. Recall at 5 of 242 intents over the shipped catalogs with 0, .1 and .2 is .881, .899, .905 if the last call
/// was to the server of a right tool. It is .881, .875, .866 if the last call was to any other server. Without packs it
/// is .590, .653, .686 and .589, .584, .580. Once one step of an intent of several steps was called, recall of the
/// other steps is .802, .812, .798 (without packs .568, .611, .635).
const LAST_CALLED: f32 = 0.1;

/// Raises the scores of tools of the MCP server that was called last, and sorts again. Does nothing if there was no
/// call, or if its name is unknown or means tools of several servers. An untrusted tool is raised to the best score of
/// the others at most: [`crate::router::ranking::blend`] has ensured that it does not rank above a tool that fits.
pub fn lean(snapshot: &Snapshot, state: &AgentState, candidates: &mut [Candidate]) {
    let Some(call) = state.calls.last() else { return };
    let Some(server) = server_of(snapshot, &call.tool) else { return };
    let is_untrusted = |one: &Candidate| snapshot.tool(one.slot).untrusted;
    let found = || candidates.iter().filter(|one| one.found_by != FoundBy::Name);
    let others = found().filter(|one| !is_untrusted(one));
    let best_of_others = others.map(|one| one.score).reduce(f32::max);
    for one in candidates.iter_mut().filter(|one| one.found_by != FoundBy::Name) {
        if snapshot.tool(one.slot).id.server != *server {
            continue;
        }
        let lift = match best_of_others {
            Some(best) if is_untrusted(one) => (best - one.score).clamp(0.0, LAST_CALLED),
            _ => LAST_CALLED,
        };
        one.score += lift;
        one.parts.last_called = lift;
    }
    sort(snapshot, candidates);
}

/// Returns the MCP servers of the latest calls, the last called first, `most` at most. A call of an unknown name, or of one
/// that tools of several servers have, counts for none.
pub(super) fn last_servers<'s>(
    snapshot: &'s Snapshot,
    state: &AgentState,
    most: usize,
) -> Vec<&'s ServerName> {
    let mut servers: Vec<&ServerName> = Vec::new();
    for call in state.calls.iter().rev() {
        if servers.len() == most {
            break;
        }
        if let Some(server) = server_of(snapshot, &call.tool)
            && !servers.contains(&server)
        {
            servers.push(server);
        }
    }
    servers
}

/// Sets [`Candidate::recent`] from the calls of the state. Does nothing if there was no call.
pub fn note(snapshot: &Snapshot, state: &AgentState, candidates: &mut [Candidate]) {
    let names = state.calls.iter().map(|call| call.tool.as_str());
    note_calls(snapshot, names.flat_map(|name| called(snapshot, name)), candidates);
}

/// Sets [`Candidate::recent`] from the slots of called tools, the last one last. Only the last 8 count.
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

/// Returns the tools that were called with success. A name that tools of several MCP servers share counts for none of
/// them.
pub(in crate::router) fn succeeded(snapshot: &Snapshot, state: &AgentState) -> HashSet<u32> {
    let calls = state.calls.iter().filter(|call| call.status == CallStatus::Succeeded);
    let names: HashSet<&str> = calls.map(|call| call.tool.as_str()).collect();
    let slots = names.into_iter().filter_map(|name| match called(snapshot, name)[..] {
        [slot] => Some(slot),
        _ => None,
    });
    slots.collect()
}

/// Returns the MCP server of the tools that a called name means; `None` if there are none, or several.
fn server_of<'s>(snapshot: &'s Snapshot, name: &str) -> Option<&'s ServerName> {
    let mut servers = called(snapshot, name).into_iter().map(|slot| &snapshot.tool(slot).id.server);
    let server = servers.next()?;
    servers.all(|other| other == server).then_some(server)
}

/// Returns the tools that a called name means. A model-facing name means one tool; an MCP name may mean tools of
/// several servers.
fn called(snapshot: &Snapshot, name: &str) -> Vec<u32> {
    match snapshot.names.requested(name, &snapshot.tools) {
        Some(slot) => vec![slot],
        None => snapshot.names.mcp_name(name).to_vec(),
    }
}

#[cfg(test)]
mod tests;
