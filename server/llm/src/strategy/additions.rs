//! Additions in their places: messages of the agent's with tools amid them.

use serde_json::Value;

use super::plan::Placed;
use super::{Api, Strategy, Way, anthropic, responses, text};

/// Returns the conversation with the additions in their places.
pub(super) fn insert(way: Way, messages: Vec<Value>, additions: &[Placed]) -> Vec<Value> {
    let mut sent = Vec::with_capacity(messages.len() + additions.len());
    let mut next = additions.iter().peekable();
    for (index, message) in messages.into_iter().enumerate() {
        sent.push(message);
        while let Some(placed) = next.next_if(|placed| placed.after == index + 1) {
            add(way, &mut sent, placed);
        }
    }
    sent
}

/// Adds a change of the tools that can be found to the last message, and tools behind it.
pub(super) fn add(way: Way, sent: &mut Vec<Value>, placed: &Placed) {
    if !placed.change.is_empty() {
        text::add(way.api, sent, &placed.change.text());
    }
    let tools = &placed.tools;
    if tools.is_empty() {
        return;
    }
    match (way.strategy, way.api) {
        (Strategy::Native, Api::Anthropic) => anthropic::add(sent, tools),
        (Strategy::Native, Api::OpenAiResponses) => sent.push(responses::addition(tools)),
        _ => text::add(way.api, sent, &text::describing(tools)),
    }
}
