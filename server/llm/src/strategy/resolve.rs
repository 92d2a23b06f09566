//! References in a conversation that a request can't resolve.

use std::collections::HashSet;

use serde_json::Value;

use super::auto::{may_defer, takes_additions};
use super::{Api, Strategy, Turn, toolset};
use crate::SEARCH_TOOL_NAME;
use crate::history::{is_snapshot, strip};

/// Returns the messages without the references that the request can't resolve, and without snapshots; `None` if there
/// are none.
pub(super) fn stripped(turn: &Turn<'_>, strategy: Strategy) -> Option<Vec<Value>> {
    let stripped = strip(turn.messages, defined(turn, strategy), takes_references(turn, strategy));
    let is_changed = !stripped.removed.is_empty() || turn.messages.iter().any(is_snapshot);
    is_changed.then_some(stripped.messages)
}

/// Returns the names of the tools that references may name. A tool that is added amid the conversation is not among
/// them, because its definition follows the reference or may be dropped.
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
    let base = turn.ledger.additions.iter().filter(|addition| addition.after == 0);
    let base = base.flat_map(|addition| &addition.tools);
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
