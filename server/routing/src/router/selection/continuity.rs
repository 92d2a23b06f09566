//! Changes of an active set from turn to turn. Tools stay in place until the set would exceed a bound, so that prompt
//! caches remain valid. For lack of tokens, tools are evicted only if that costs less than it saves.

use toolgate_core::state::AgentState;
use toolgate_llm::price::Dropping;

/// Distance below the threshold that an overlap must fall to before a kept tool may be evicted. Without it, a tool near
/// the threshold would come and go.
pub const HYSTERESIS: f32 = 0.05;

/// Number of turns for which a called tool stays regardless of its overlap.
pub const RECENT_TURNS: u32 = 3;

/// Cost and savings of making room, in uncached input tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheCost {
    /// Tokens lost: everything after the first tool that goes is written to the cache again, instead of being read.
    pub lost: u64,
    /// Tokens saved: a search for the left-out tool would read the prompt once more, and each following request would read
    /// the tools that go.
    pub saved: u64,
}

impl CacheCost {
    /// Returns true if the change costs no more than it saves.
    #[must_use]
    pub fn pays(&self) -> bool {
        self.lost <= self.saved
    }
}

impl From<Dropping> for CacheCost {
    fn from(dropping: Dropping) -> Self {
        Self { lost: dropping.lost.round() as u64, saved: dropping.saved.round() as u64 }
    }
}

/// Calls of a conversation, as evidence for the tools that it still needs.
#[derive(Debug)]
pub struct Conversation<'a> {
    state: &'a AgentState,
    /// Last turn with a call.
    latest: u32,
    /// Overlap below which a tool may be evicted.
    lowest: f32,
}

impl<'a> Conversation<'a> {
    /// Creates the conversation from an agent's state. A tool may be evicted below `threshold` less [`HYSTERESIS`].
    #[must_use]
    pub fn new(state: &'a AgentState, threshold: f32) -> Self {
        let latest = state.calls.iter().map(|call| call.turn).max().unwrap_or(0);
        Self { state, latest, lowest: threshold - HYSTERESIS }
    }

    /// Returns true if the conversation no longer needs a kept tool: its overlap is low and it was not called lately.
    #[must_use]
    pub fn has_left(&self, names: [&str; 2], overlap: f32) -> bool {
        overlap < self.lowest && !self.called_lately(names)
    }

    /// Returns true if a tool of one of these names was called in the last [`RECENT_TURNS`] turns, counted back from
    /// the last call.
    #[must_use]
    pub fn called_lately(&self, names: [&str; 2]) -> bool {
        let since = self.latest.saturating_sub(RECENT_TURNS - 1);
        let mut calls = self.state.calls.iter();
        calls.any(|call| call.turn >= since && names.contains(&call.tool.as_str()))
    }
}

/// Difference from the active set of the previous turn, as slots. Tools that no longer exist have no slot and are not
/// listed.
#[derive(Debug, Clone, Default)]
pub struct Change {
    /// Kept tools that would be evicted if their room were needed.
    pub evictable: Vec<u32>,
    /// Tools that are no longer in the set.
    pub removed: Vec<u32>,
    /// True if tools were left out to keep the cache.
    pub kept_for_cache: bool,
    /// Cost of making room, incurred or avoided.
    pub cost: CacheCost,
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_core::state::{CallStatus, PriorCall};

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
