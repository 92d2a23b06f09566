//! What it costs to keep tools that are not used any more, against what it costs to drop them.

use serde_json::Value;

use super::plan::{Defined, Placed};
use super::{Api, Turn, messages};

/// Least number of turns that a conversation is expected to go on for. A conversation of unknown length is expected to
/// last as long again as it has lasted (the best guess without knowledge of its kind); in its first turns that would be
/// next to nothing, and tools would be dropped at the price of a cache that most conversations still use.
const LEAST_TURNS: usize = 5;

/// Most unused tools that a conversation keeps, whatever the price. Requests of OpenAI hold 128 tools; this leaves half
/// of them to the agent's own and to those in use.
const MOST_STALE: usize = 64;

/// Returns the first addition from which unused tools are dropped, or `None` if keeping all is cheapest. To drop a tool
/// is to write all that stands behind it anew instead of reading it from the cache.
pub(super) fn stale_from(
    turn: &Turn<'_>,
    additions: &[Placed],
    is_stale: &dyn Fn(&Defined) -> bool,
) -> Option<usize> {
    if !additions.iter().flat_map(|placed| &placed.tools).any(is_stale) {
        return None;
    }
    let costs = Costs::of(turn);
    let mut best = None;
    let mut best_gain = 0.0;
    let mut stale_tools = 0;
    let mut stale = 0;
    let mut behind = 0;
    let mut end = turn.messages.len().saturating_sub(1);
    for (index, placed) in additions.iter().enumerate().rev() {
        let start = placed.after.min(end);
        behind += tokens(turn, &turn.messages[start..end]);
        end = start;
        let before = stale_tools;
        for tool in &placed.tools {
            let size = (turn.count)(&tool.definition.to_string());
            if is_stale(tool) {
                stale += size;
                stale_tools += 1;
            } else {
                behind += size;
            }
        }
        let gain = costs.gain(stale, behind);
        if stale_tools > before && gain > best_gain {
            best = Some(index);
            best_gain = gain;
        }
    }
    if stale_tools > MOST_STALE { Some(0) } else { best }
}

/// Prices of a conversation, in uncached input tokens.
struct Costs {
    /// Price of a token that is written to the cache.
    write: f64,
    /// Price of a token that is read from the cache.
    read: f64,
    /// Turns that are still expected.
    turns: f64,
}

impl Costs {
    fn of(turn: &Turn<'_>) -> Self {
        let turns = messages::turns(turn.api, turn.messages).max(LEAST_TURNS);
        Self { turns: f64::from(u32::try_from(turns).unwrap_or(u32::MAX)), ..rates(turn.api) }
    }

    /// Returns what is saved by dropping `stale` tokens that have `behind` tokens behind them.
    fn gain(&self, stale: u32, behind: u32) -> f64 {
        f64::from(stale) * self.read * self.turns - f64::from(behind) * (self.write - self.read)
    }
}

/// Returns the prices of an API's own provider, for no turn.
fn rates(api: Api) -> Costs {
    let write = match api {
        // For 5 minutes.
        Api::Anthropic => 1.25,
        Api::OpenAiChat | Api::OpenAiResponses | Api::Gemini => 1.0,
    };
    Costs { write, read: 0.1, turns: 0.0 }
}

fn tokens(turn: &Turn<'_>, messages: &[Value]) -> u32 {
    messages.iter().map(|message| (turn.count)(&message.to_string())).sum()
}
