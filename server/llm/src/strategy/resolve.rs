//! References in a conversation that a request can't resolve.

use std::collections::HashSet;

use serde_json::Value;

use super::auto::{may_defer, takes_additions};
use super::{Api, Strategy, Turn, keep, toolset};
use crate::SEARCH_TOOL_NAME;
use crate::history::{is_snapshot, strip};

/// Returns the messages without the references that the request can't resolve, and without snapshots; `None` if there
/// are none. `in_tools` names tools that stand in `tools`, as far as they are known.
pub(super) fn stripped(
    turn: &Turn<'_>,
    strategy: Strategy,
    in_tools: &[&str],
) -> Option<Vec<Value>> {
    let defined = defined(turn, strategy);
    let names = defined.iter().chain(in_tools);
    let stripped = strip(turn.messages, names, takes_references(turn, strategy));
    let is_changed = !stripped.removed.is_empty() || turn.messages.iter().any(is_snapshot);
    is_changed.then_some(stripped.messages)
}

/// Returns the names of the tools that references may name. A tool that is added amid the conversation is not among
/// them, because its definition follows the reference or may be dropped. Those that begin a conversation in `tools` are
/// known once the request is made.
fn defined<'a>(turn: &Turn<'a>, strategy: Strategy) -> HashSet<&'a str> {
    let offer = &turn.offer;
    let mut names: HashSet<&str> = offer.own.iter().flat_map(toolset::names).collect();
    names.extend(offer.always_on.iter().map(|tool| tool.name));
    names.insert(SEARCH_TOOL_NAME);
    if matches!(strategy, Strategy::Pass | Strategy::Cut) {
        names.extend(offer.active.iter().map(|tool| tool.name));
    }
    if turn.api == Api::OpenAiResponses {
        // Answers of its search hold definitions themselves, so that a tool need only exist.
        names.extend(offer.active.iter().map(|tool| tool.name));
        names.extend(offer.deferred_names);
    }
    let beyond = keep::beyond(turn);
    let base = turn.ledger.additions.iter().filter(|addition| addition.after == 0);
    let base = base.flat_map(|addition| &addition.tools);
    let base = base.filter(|tool| !beyond.contains(&tool.name));
    names.extend(base.filter_map(|tool| (offer.find)(&tool.name)).map(|tool| tool.name));
    names
}

/// Returns true if the request may hold references: where the host defers tools by itself, and where the API and the
/// model take tools amid a conversation.
fn takes_references(turn: &Turn<'_>, strategy: Strategy) -> bool {
    let is_native = strategy == Strategy::Native;
    !may_defer(turn.offer.own)
        || match turn.api {
            Api::Anthropic => is_native || takes_additions(turn.api, &turn.endpoint),
            // Without the search of its own, the API takes no calls of it.
            Api::OpenAiResponses => is_native,
            Api::OpenAiChat | Api::Gemini => false,
        }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::ledger::{Added, Addition, Way};
    use super::super::listing::Change;
    use super::super::{Endpoint, Ledger, Listing, Offer};
    use super::*;
    use crate::render::Tool;

    /// Returns a catalog that has a tool beside these, and a search.
    fn offer_of<'a>(
        active: &'a [Tool<'a>],
        find: &'a dyn Fn(&str) -> Option<Tool<'a>>,
    ) -> Offer<'a> {
        Offer {
            own: &[],
            always_on: &[],
            active,
            deferred: 1,
            catalog_tokens: None,
            search: true,
            deferred_names: &[],
            listing: Listing::default(),
            budget: None,
            find,
        }
    }

    #[test]
    fn a_reference_to_a_tool_that_is_one_too_many_goes_with_it() {
        let names: Vec<String> = (0..97).map(|number| format!("tool_{number}")).collect();
        let added = |name: &String| Added { name: name.clone(), definition: 0, anew: false };
        let tools = names.iter().map(added).collect();
        let in_tools = Addition { after: 0, digest: 0, tools, change: Change::default() };
        let way = Way { api: Api::Anthropic, strategy: Strategy::Native };
        let ledger = Ledger { way: Some(way), additions: vec![in_tools], listed: None };
        let find = |name: &str| {
            let found = names.iter().find(|one| *one == name)?;
            Some(Tool { name: found, input_schema_json: "{}", ..Tool::default() })
        };
        let refer = |name: &str| json!({ "type": "tool_reference", "tool_name": name });
        let turn = Turn {
            api: Api::Anthropic,
            strategy: None,
            endpoint: Endpoint::default(),
            offer: offer_of(&[], &find),
            system_tokens: 0,
            messages: &[
                json!({ "role": "assistant", "content": [
                    { "type": "tool_use", "id": "1", "name": SEARCH_TOOL_NAME, "input": {} },
                    { "type": "tool_use", "id": "2", "name": "tool_1", "input": {} }] }),
                json!({ "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "1",
                    "content": [refer("tool_0"), refer("tool_1"), refer("tool_96")] }] }),
            ],
            ledger: &ledger,
            count: &|_| 1,
        };
        let sent = stripped(&turn, Strategy::Native, &[]).expect("a reference is gone");
        let kept = json!([refer("tool_1"), refer("tool_96")]);
        assert_eq!(sent[1]["content"][0]["content"], kept, "one was called, and one is the last");
    }

    #[test]
    fn a_reference_to_a_tool_that_begins_the_conversation_in_tools_stays() {
        let names: Vec<String> = (0..10).map(|number| format!("tool_{number}")).collect();
        let tool =
            |name| Tool { name, input_schema_json: r#"{"type":"object"}"#, ..Tool::default() };
        let active: Vec<Tool<'_>> = names.iter().map(|name| tool(name)).collect();
        let find = |name: &str| active.iter().find(|tool| tool.name == name).copied();
        let turn = Turn {
            api: Api::Anthropic,
            strategy: None,
            endpoint: Endpoint { model: "claude-opus-4-8", ..Endpoint::default() },
            offer: offer_of(&active, &find),
            // So long that the request is cached.
            system_tokens: 2_000,
            messages: &[
                json!({ "role": "user", "content": "go" }),
                json!({ "role": "assistant", "content": [
                    { "type": "tool_use", "id": "1", "name": SEARCH_TOOL_NAME, "input": {} }] }),
                json!({ "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "1",
                    "content": [{ "type": "tool_reference", "tool_name": "tool_0" }] }] }),
            ],
            ledger: &Ledger::default(),
            count: &|text| u32::try_from(text.len() / 4).expect("a short text"),
        };
        let prepared = super::super::prepare(&turn).expect("the tools have their schemas");
        assert!(matches!(prepared.strategy, Strategy::Native | Strategy::Envelope));
        assert!(prepared.tools.iter().any(|tool| tool["name"] == "tool_0"));
        let found = &prepared.messages[2]["content"][0]["content"][0];
        assert_eq!(found["type"], "tool_reference", "{found}");
    }
}
