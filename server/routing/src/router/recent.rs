//! What the agent called before: as the learned gate sees it, and as a prior for what comes next.

use std::collections::HashSet;

use super::rank::{Candidate, FoundBy, Recent, sort};
use crate::shard::snapshot::Snapshot;
use toolgate_core::identity::ServerName;
use toolgate_core::state::{AgentState, CallStatus};

/// Calls that are looked at, the last ones.
const CALLS_MAX: usize = 8;

/// What the tools of the MCP server that was called last have over others: what is asked next is often asked of the same
/// one. Recall at 5 of 242 intents over the shipped catalogs with 0, .1 and .2: .881, .899, .905 where the last call was to
/// the server of a right tool, and .881, .875, .866 where it was to any other; without packs .590, .653, .686 and .589,
/// .584, .580; of the other steps, once one of an intent of several steps was called, .802, .812, .798 (without packs
/// .568, .611, .635).
const LAST_CALLED: f32 = 0.1;

/// Lifts the tools of the MCP server that was called last, and puts the best first again. Nothing changes where there
/// was no call, or where its name is not known or means tools of several servers. An untrusted tool is lifted to the best
/// score of the others at most: [`super::blend`] has seen to it that it leads none that fits.
pub(super) fn lean(snapshot: &Snapshot, state: &AgentState, candidates: &mut [Candidate]) {
    let Some(call) = state.calls.last() else { return };
    let servers: HashSet<&ServerName> =
        called(snapshot, &call.tool).iter().map(|slot| &snapshot.tool(*slot).id.server).collect();
    if servers.len() != 1 {
        return;
    }
    let is_untrusted = |one: &Candidate| snapshot.tool(one.slot).untrusted;
    let found = || candidates.iter().filter(|one| one.found_by != FoundBy::Name);
    let others = found().filter(|one| !is_untrusted(one));
    let best_of_others = others.map(|one| one.score).reduce(f32::max);
    for one in candidates.iter_mut().filter(|one| one.found_by != FoundBy::Name) {
        if !servers.contains(&snapshot.tool(one.slot).id.server) {
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

/// Returns the tools that a call to succeeded. A name that tools of several MCP servers have is none of theirs.
pub(super) fn succeeded(snapshot: &Snapshot, state: &AgentState) -> HashSet<u32> {
    let calls = state.calls.iter().filter(|call| call.status == CallStatus::Succeeded);
    let names: HashSet<&str> = calls.map(|call| call.tool.as_str()).collect();
    let slots = names.into_iter().filter_map(|name| match called(snapshot, name)[..] {
        [slot] => Some(slot),
        _ => None,
    });
    slots.collect()
}

/// A call names the tool as the model knows it, or as MCP does, which several servers may.
fn called(snapshot: &Snapshot, name: &str) -> Vec<u32> {
    match snapshot.names.requested(name, &snapshot.tools) {
        Some(slot) => vec![slot],
        None => snapshot.names.mcp_name(name).to_vec(),
    }
}
