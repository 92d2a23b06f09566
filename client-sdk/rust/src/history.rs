//! Message histories: what they say about tools, and what must not be sent on. [`scan`] reads what was
//! discovered and called, for the agent's state; [`strip`] gives the history that can be sent;
//! [`compacted`] puts a snapshot before what is left of a history that was summarised.
//!
//! Histories are JSON values: messages of Anthropic's Messages API, OpenAI's Chat Completions and Responses
//! APIs, and MCP (sampling messages and JSON-RPC), also mixed. What is unknown is passed over; nothing here
//! fails for what a message holds. `client-sdk/conformance` has the cases that all clients share.

mod events;
mod reading;
mod scanner;
mod snapshot;
mod strip;

use serde_json::Value;
use toolgate_proto::v1;

pub use strip::{Reason, Removed, Stripped, strip};
pub use v1::CallStatus;

/// What a conversation's history says about tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct History {
    /// Names of the tools that were loaded, in the order of their discovery: by a reference, by a search (the
    /// provider's, or [`SEARCH_TOOL`](crate::SEARCH_TOOL)), or because a call to them succeeded. The newest
    /// 24 KiB of them.
    pub discovered: Vec<String>,
    /// The calls, oldest first: the newest 24 KiB, the last success of each tool before others.
    pub calls: Vec<SeenCall>,
    /// How many turns of the model there were.
    pub turns: u32,
}

/// One call of a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenCall {
    /// The tool's name, as the model wrote it.
    pub tool: String,
    /// How it ended; `Unspecified` while it has no answer.
    pub status: CallStatus,
    /// The model's turn in which it was made, from 0.
    pub turn: u32,
    /// The provider's identifier of the call; empty when there was none.
    pub id: String,
}

impl History {
    /// The agent's state for `route` and `gate`. Scopes, milestones and attributes, which no history can
    /// say, are empty.
    #[must_use]
    pub fn state(&self) -> v1::AgentState {
        let prior = |call: &SeenCall| v1::PriorCall {
            tool: call.tool.clone(),
            status: call.status.into(),
            turn: call.turn,
        };
        v1::AgentState {
            calls: self.calls.iter().map(prior).collect(),
            discovered_tools: self.discovered.clone(),
            ..Default::default()
        }
    }

    /// All of it as a JSON object, to keep when the history is compacted. Hand it to the next [`scan`], or
    /// leave it in the history: `scan` finds it there, and [`strip`] takes it out before the history is
    /// sent.
    #[must_use]
    pub fn snapshot(&self) -> Value {
        snapshot::write(self)
    }
}

/// Reads a history, oldest message first, for what the model has discovered and called. `snapshot` is what
/// [`History::snapshot`] gave before the history was compacted.
///
/// Scanning messages that a snapshot covers already changes nothing but, where they hold no call, `turns`.
#[must_use]
pub fn scan(messages: &[Value], snapshot: Option<&Value>) -> History {
    let mut scanner = scanner::Scanner::default();
    if let Some(snapshot) = snapshot {
        scanner.restore(snapshot);
    }
    for message in messages {
        if snapshot::is_snapshot(message) {
            scanner.restore(message);
            continue;
        }
        for event in events::read(message) {
            scanner.take(event);
        }
    }
    scanner.finish()
}

/// The history after compaction: a snapshot of the old one, then what is kept: a summary, and those of the
/// messages that stay.
#[must_use]
pub fn compacted(
    messages: &[Value],
    kept: impl IntoIterator<Item = Value>,
    snapshot: Option<&Value>,
) -> Vec<Value> {
    std::iter::once(scan(messages, snapshot).snapshot()).chain(kept).collect()
}
