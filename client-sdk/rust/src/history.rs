//! Message histories of conversations. [`scan`] reads the tools that were discovered and called; [`state`] makes the
//! agent's state of them. [`strip`] removes what can't be sent to the provider. [`compacted`] puts a snapshot before the
//! messages that remain after a compaction.
//!
//! Histories are JSON values: messages of Anthropic's Messages API, OpenAI's Chat Completions and Responses APIs, and
//! MCP (sampling messages and JSON-RPC), also mixed. Unknown content is skipped, and no message makes a function here
//! fail. `client-sdk/conformance` holds the cases that all clients share.

pub use toolgate_llm::history::{
    CallStatus, History, Reason, Removed, SeenCall, Stripped, compacted, scan, strip,
};
use toolgate_proto::v1;

/// Returns the agent's state after a history, for `route` and `gate`. Scopes, milestones and attributes are empty,
/// because a history does not hold them.
#[must_use]
pub fn state(history: &History) -> v1::AgentState {
    let prior = |call: &SeenCall| v1::PriorCall {
        tool: call.tool.clone(),
        status: match call.status {
            CallStatus::Unspecified => v1::CallStatus::Unspecified,
            CallStatus::Succeeded => v1::CallStatus::Succeeded,
            CallStatus::Failed => v1::CallStatus::Failed,
        }
        .into(),
        turn: call.turn,
    };
    v1::AgentState {
        calls: history.calls.iter().map(prior).collect(),
        discovered_tools: history.discovered.clone(),
        ..Default::default()
    }
}
