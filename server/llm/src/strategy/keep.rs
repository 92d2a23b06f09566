//! Price of keeping tools that are not used any more, against that of dropping them.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::plan::{Defined, Placed};
use super::{Api, Turn, messages, toolset};
use crate::price::{Dropped, Following, LEAST_REQUESTS, Rates};
use crate::render::Tool;

/// Tokens that a request is expected to have more than the one before: a call with its result, or an answer with the next
/// message.
const GROWTH: u32 = 100;

/// Most unused tools that a conversation keeps at a new message of the user, whatever the price. Requests of OpenAI hold 128
/// tools; this leaves half of them to the agent's own and to those in use.
const MOST_STALE: usize = 64;

/// Most tools of earlier turns that a conversation carries beside the active set, called ones included. Of the 128 tools of a
/// request of OpenAI's, this leaves a quarter to the active set and to the agent's own.
const MOST_KEPT: usize = 96;

/// Number of them that stay where there were more. It is so far below that the conversation is not written to the cache
/// again soon.
const LEFT_KEPT: usize = left_of(MOST_KEPT);

/// Returns how much stays where there was more than `most`.
const fn left_of(most: usize) -> usize {
    most / 4 * 3
}

/// Returns the names of the tools of earlier turns that are too many, or have more tokens than the budget leaves beside the
/// active set: first those that were never called, in the order of their addition, then those that were called longest ago.
pub(super) fn beyond(turn: &Turn<'_>) -> HashSet<String> {
    let active: HashSet<&str> = turn.offer.active.iter().map(|tool| tool.name).collect();
    let mut seen = HashSet::new();
    let names = turn.ledger.names().filter(|name| !active.contains(name));
    let mut others: Vec<&str> = names.filter(|name| seen.insert(*name)).collect();
    if others.len() <= MOST_KEPT && turn.offer.budget.is_none() {
        return HashSet::new();
    }
    let calls = messages::calls(turn.api, turn.messages);
    let last_calls: HashMap<&str, usize> =
        calls.iter().enumerate().map(|(at, name)| (name.as_str(), at)).collect();
    others.sort_by_key(|name| last_calls.get(name));
    let too_many = if others.len() > MOST_KEPT { others.len() - LEFT_KEPT } else { 0 };
    others.truncate(too_many.max(beyond_budget(turn, &others)));
    others.into_iter().map(str::to_owned).collect()
}

/// Returns how many of these tools go, the first ones, so that the definitions of the rest fit into the budget beside the active
/// set.
fn beyond_budget(turn: &Turn<'_>, others: &[&str]) -> usize {
    let Some(budget) = turn.offer.budget else { return 0 };
    let size = |tool: &Tool<'_>| {
        let rendered = toolset::render(turn.api, &[*tool]);
        rendered.map_or(0, |rendered| messages::tokens(turn.count, &rendered.tools) as usize)
    };
    let active: usize = turn.offer.active.iter().map(size).sum();
    let room = (budget as usize).saturating_sub(active);
    let find = |name: &&str| (turn.offer.find)(name).map_or(0, |tool| size(&tool));
    let sizes: Vec<usize> = others.iter().map(find).collect();
    let mut left: usize = sizes.iter().sum();
    if left <= room {
        return 0;
    }
    let too_large = sizes.iter().take_while(|size| {
        let goes = left > left_of(room);
        left -= if goes { **size } else { 0 };
        goes
    });
    too_large.count()
}

/// Returns the first addition from which unused tools are dropped, or `None` if keeping all is cheapest. To drop a tool
/// is to write all that stands behind it anew instead of reading it from the cache. `constant` is the tokens of the
/// definitions that the request has anyway.
pub(super) fn stale_from(
    turn: &Turn<'_>,
    additions: &[Placed],
    constant: u32,
    is_stale: &dyn Fn(&Defined) -> bool,
) -> Option<usize> {
    if !additions.iter().flat_map(|placed| &placed.tools).any(is_stale) {
        return None;
    }
    let rates = Rates::of(turn.api, &turn.endpoint);
    let requests = f64::from(expected_requests(turn.api, turn.messages));
    let size = |tool: &Defined| (turn.count)(&tool.definition.to_string());
    let added = additions.iter().flat_map(|placed| &placed.tools).map(size);
    let others = messages::tokens(turn.count, turn.offer.own.iter().chain(turn.messages));
    let parts = added.chain([others, constant, turn.system_tokens]);
    let prompt: u64 = parts.map(u64::from).sum();
    let mut best = None;
    let mut best_gain = 0.0;
    let mut stale_tools = 0;
    let mut stale = 0;
    let mut behind = 0;
    let mut end = turn.messages.len().saturating_sub(1);
    for (index, placed) in additions.iter().enumerate().rev() {
        let start = placed.after.min(end);
        behind += messages::tokens(turn.count, &turn.messages[start..end]);
        end = start;
        let before = stale_tools;
        for tool in &placed.tools {
            if is_stale(tool) {
                stale += size(tool);
                stale_tools += 1;
            } else {
                behind += size(tool);
            }
        }
        let tokens = u64::from(stale);
        let behind = u64::from(behind);
        let left = prompt.saturating_sub(tokens);
        let dropped = Dropped { tokens, behind, searched: 0, prompt, left, requests };
        let gain = rates.dropping(&dropped).gain();
        if stale_tools > before && gain > best_gain {
            best = Some(index);
            best_gain = gain;
        }
    }
    if stale_tools > MOST_STALE { Some(0) } else { best }
}

/// Returns the number of requests that a conversation is still expected to have, the next one included: as many as it
/// had turns, and at least [`LEAST_REQUESTS`]. Calls make more of them than turns; how many is not known before the model
/// answers.
#[must_use]
pub fn expected_requests(api: Api, messages: &[Value]) -> u32 {
    let turns = u32::try_from(messages::turns(api, messages)).unwrap_or(u32::MAX);
    turns.max(LEAST_REQUESTS)
}

/// Returns the requests that are expected to follow this one.
pub(super) fn following(turn: &Turn<'_>) -> Following {
    Following { requests: expected_requests(turn.api, turn.messages) - 1, growth: GROWTH }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::ledger::{Added, Addition};
    use super::super::listing::Change;
    use super::super::{Api, Endpoint, Ledger, Listing, Offer};
    use super::*;

    const TOOL: Tool<'static> = Tool {
        name: "active",
        description: "",
        input_schema_json: r#"{"type":"object"}"#,
        output_schema_json: "",
        annotations_json: "",
        signature: "",
    };

    /// Returns where dropping begins, of so many unused tools that stand before a history of 100,000 tokens.
    fn dropped_from(tools: usize) -> Option<usize> {
        let offer = Offer {
            own: &[],
            always_on: &[],
            active: &[],
            deferred: 1,
            catalog_tokens: None,
            search: true,
            deferred_names: &[],
            listing: Listing::default(),
            budget: None,
            find: &|_| None,
        };
        let turn = Turn {
            api: Api::OpenAiChat,
            strategy: None,
            endpoint: Endpoint::default(),
            offer,
            system_tokens: 0,
            messages: &[
                json!({ "role": "user", "content": "first" }),
                json!({ "role": "assistant", "content": "[long]" }),
                json!({ "role": "user", "content": "second" }),
            ],
            ledger: &Ledger::default(),
            count: &|text| if text.contains("[long]") { 100_000 } else { 10 },
        };
        let tools = (0..tools).map(|number| Defined::of(&format!("tool_{number}"))).collect();
        let placed = Placed { after: 1, tools, change: Change::default() };
        stale_from(&turn, &[placed], 0, &|_| true)
    }

    /// Returns the tools of earlier turns that go, where each of ten has 100 tokens, as has the active one.
    fn gone_beyond(budget: Option<u32>) -> Vec<String> {
        let find = |_: &str| Some(TOOL);
        let names: Vec<String> = (0..10).map(|number| format!("tool_{number}")).collect();
        let added = |name: &String| Added { name: name.clone(), definition: 0, anew: false };
        let addition = Addition {
            after: 1,
            digest: 0,
            tools: names.iter().map(added).collect(),
            change: Change::default(),
        };
        let turn = Turn {
            api: Api::OpenAiChat,
            strategy: None,
            endpoint: Endpoint::default(),
            offer: Offer {
                own: &[],
                always_on: &[],
                active: &[TOOL],
                deferred: 1,
                catalog_tokens: None,
                search: true,
                deferred_names: &[],
                listing: Listing::default(),
                budget,
                find: &find,
            },
            system_tokens: 0,
            messages: &[json!({ "role": "assistant", "tool_calls": [
                { "function": { "name": "tool_0", "arguments": "{}" } }] })],
            ledger: &Ledger { additions: vec![addition], ..Ledger::default() },
            count: &|_| 100,
        };
        let mut gone: Vec<String> = beyond(&turn).into_iter().collect();
        gone.sort();
        gone
    }

    #[test]
    fn what_earlier_turns_added_stays_within_the_budget() {
        assert_eq!(gone_beyond(None), Vec::<String>::new());
        assert_eq!(gone_beyond(Some(1_100)), Vec::<String>::new(), "the active tool and ten");
        // Three quarters of what the active tool leaves stay, so that the next turn has room; a called one goes last.
        assert_eq!(
            gone_beyond(Some(500)),
            ["tool_1", "tool_2", "tool_3", "tool_4", "tool_5", "tool_6", "tool_7"]
        );
        assert_eq!(gone_beyond(Some(0)).len(), 10);
    }

    #[test]
    fn a_conversation_keeps_a_bounded_number_of_unused_tools_whatever_the_price() {
        assert_eq!(dropped_from(MOST_STALE), None, "to write the history again costs more");
        assert_eq!(dropped_from(MOST_STALE + 1), Some(0));
    }
}
