//! What becomes of an active set from turn to turn. Tools stay where they are, so that prompt caches hold, until the
//! set would pass a bound; for want of tokens they go only when that costs less than it saves.

use toolgate_core::state::AgentState;

/// How far under the threshold an overlap must fall before a kept tool may go. A tool near the threshold
/// would otherwise come and go.
pub const HYSTERESIS: f32 = 0.05;

/// Turns for which a tool that was called stays whatever its overlap.
pub const RECENT_TURNS: u32 = 3;

/// Turns over which removed tools are counted as saved.
const TURNS_AHEAD: u64 = 5;

/// A cached input token costs a tenth of an uncached one (the list prices of providers with prompt caches,
/// 2025-2026).
const CACHED_PRICE_TENTHS: u64 = 1;

/// What making room costs and saves, in uncached input tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheCost {
    /// Nine tenths of what has to be read anew: everything after the first tool that goes.
    pub lost: u64,
    /// A tenth of the prompt, which a search for the left-out tool would read once more, and a tenth of
    /// the tools that go, turn by turn.
    pub saved: u64,
}

/// The prompt that a change of tools is made to.
#[derive(Debug, Clone, Copy)]
pub struct Prompt {
    /// Tokens of all tools.
    pub tools: u64,
    /// Tokens after the tools.
    pub history: u64,
}

impl CacheCost {
    /// Of taking tools of `gone` tokens out of `prompt`, where `after` tokens of tools follow the first of
    /// them.
    #[must_use]
    pub fn new(prompt: Prompt, gone: u64, after: u64) -> Self {
        let reread = after + prompt.history;
        let round_trip = prompt.tools + prompt.history;
        Self {
            lost: reread * (10 - CACHED_PRICE_TENTHS) / 10,
            saved: (round_trip + gone * TURNS_AHEAD) * CACHED_PRICE_TENTHS / 10,
        }
    }

    /// Whether the change pays.
    #[must_use]
    pub fn pays(&self) -> bool {
        self.lost <= self.saved
    }
}

/// What the conversation says about the tools it holds.
#[derive(Debug)]
pub struct Conversation<'a> {
    state: &'a AgentState,
    /// The last turn with a call.
    latest: u32,
    /// The overlap under which a tool may go.
    lowest: f32,
}

impl<'a> Conversation<'a> {
    /// The conversation that `state` tells of.
    #[must_use]
    pub fn new(state: &'a AgentState, threshold: f32) -> Self {
        let latest = state.calls.iter().map(|call| call.turn).max().unwrap_or(0);
        Self { state, latest, lowest: threshold - HYSTERESIS }
    }

    /// Whether the conversation has left a kept tool behind.
    #[must_use]
    pub fn has_left(&self, names: [&str; 2], overlap: f32) -> bool {
        overlap < self.lowest && !self.called_lately(names)
    }

    /// Returns true if it was called in the last [`RECENT_TURNS`] turns with a call.
    #[must_use]
    pub fn called_lately(&self, names: [&str; 2]) -> bool {
        let since = self.latest.saturating_sub(RECENT_TURNS - 1);
        let mut calls = self.state.calls.iter();
        calls.any(|call| call.turn >= since && names.contains(&call.tool.as_str()))
    }
}

/// How the set differs from that of the turn before; slots but for those that are gone.
#[derive(Debug, Clone, Default)]
pub struct Change {
    /// Kept tools that would go if their room were needed.
    pub evictable: Vec<u32>,
    /// Tools that are in the set no longer.
    pub removed: Vec<u32>,
    /// Tools were left out to keep the cache.
    pub kept_for_cache: bool,
    /// What making room cost, or would have cost.
    pub cost: CacheCost,
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_core::state::{CallStatus, PriorCall};

    #[test]
    fn a_long_history_is_dearer_than_a_search() {
        let tools = 2_000;
        let cost = |history| CacheCost::new(Prompt { tools, history }, 300, 1_000);
        assert_eq!(cost(0), CacheCost { lost: 900, saved: 350 });
        assert!(!cost(20_000).pays());
        // The last tool of the set, and nothing after it: nothing is lost.
        assert!(CacheCost::new(Prompt { tools, history: 0 }, 300, 0).pays());
    }

    fn called(turns: &[u32]) -> AgentState {
        let call =
            |&turn| PriorCall { tool: "mcp__a__b".to_owned(), status: CallStatus::Succeeded, turn };
        AgentState { calls: turns.iter().map(call).collect(), ..AgentState::default() }
    }

    #[test]
    fn a_tool_near_the_threshold_or_called_lately_stays() {
        let left = |state: &AgentState, overlap| {
            Conversation::new(state, 0.3).has_left(["mcp__a__b", "b"], overlap)
        };
        let quiet = AgentState::default();
        assert!(!left(&quiet, 0.26));
        assert!(left(&quiet, 0.24));
        assert!(!left(&called(&[5]), 0.0));
        let mut long_ago = called(&[2]);
        long_ago.calls.push(PriorCall {
            tool: "other".to_owned(),
            status: CallStatus::Succeeded,
            turn: 5,
        });
        assert!(left(&long_ago, 0.0));
    }
}
