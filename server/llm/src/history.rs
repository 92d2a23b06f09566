//! Message histories of conversations. [`scan`] reads the tools that were discovered and called, for the agent's state.
//! [`said`] reads the last texts of the user and of tools. [`strip`] removes what can't be sent to the provider. [`compacted`] puts a snapshot before the messages that remain
//! after a compaction.
//!
//! Histories are JSON values: messages of Anthropic's Messages API, OpenAI's Chat Completions and Responses APIs, and
//! MCP (sampling messages and JSON-RPC), also mixed. Unknown content is skipped, and no message makes a function here
//! fail. `client-sdk/conformance` holds the cases.

mod events;
mod reading;
mod said;
mod scanner;
mod snapshot;
mod strip;

pub use said::{Said, said};
use serde_json::Value;
pub use strip::{Reason, Removed, Stripped, strip};

/// Outcome of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CallStatus {
    /// The call has no answer yet.
    #[default]
    Unspecified,
    /// The call was answered.
    Succeeded,
    /// The call was answered with an error.
    Failed,
}

/// Tools that a conversation's history discovered and called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct History {
    /// Names of the tools that were loaded, in the order of their discovery. A tool counts as loaded after a reference,
    /// after a search (the provider's, or [Toolgate's own](crate::SEARCH_TOOL_NAME)), or after a successful call. Only the
    /// newest 24 KiB are kept.
    pub discovered: Vec<String>,
    /// The calls, oldest first. Only the newest 24 KiB are kept; the last success of each tool takes precedence.
    pub calls: Vec<SeenCall>,
    /// Number of the model's turns.
    pub turns: u32,
}

/// A call in a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenCall {
    /// The tool's name, as the model wrote it.
    pub tool: String,
    /// Outcome of the call; `Unspecified` until it has an answer.
    pub status: CallStatus,
    /// Turn of the model in which the call was made, counted from 0.
    pub turn: u32,
    /// The provider's ID of the call; empty if there was none.
    pub id: String,
}

impl History {
    /// Returns the history as a JSON object that survives a compaction of the history. Pass it to the next [`scan`], or
    /// leave it in the history: `scan` finds it there, and [`strip`] removes it before the history is sent.
    #[must_use]
    pub fn snapshot(&self) -> Value {
        snapshot::write(self)
    }
}

/// Reads the discovered tools and the calls from a history, oldest message first. `snapshot` is the result of
/// [`History::snapshot`] before the history was compacted.
///
/// Scanning messages again that the snapshot already covers changes at most `turns`, and only for messages without a
/// call.
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

/// Returns the history after a compaction: a snapshot of `messages`, then `kept`. `kept` holds a summary and the
/// messages that stay.
#[must_use]
pub fn compacted(
    messages: &[Value],
    kept: impl IntoIterator<Item = Value>,
    snapshot: Option<&Value>,
) -> Vec<Value> {
    std::iter::once(scan(messages, snapshot).snapshot()).chain(kept).collect()
}
