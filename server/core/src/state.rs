//! What an agent has done and may do, who it is and what time it is: all that a decision depends on beside
//! the catalog and the policy. Parsed once at the edge; free text never gets here.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// The agent's state in one call.
#[derive(Debug, Clone, Default)]
pub struct AgentState {
    /// Scopes granted.
    pub scopes: BTreeSet<String>,
    /// Prior tool calls, oldest first.
    pub calls: Vec<PriorCall>,
    /// Milestones reached.
    pub milestones: BTreeSet<String>,
    /// Model-facing names of tools that were discovered earlier in the conversation.
    pub discovered: Vec<String>,
    /// What else a policy may look at.
    pub attributes: Map<String, Value>,
    /// Who asks; empty while authentication is off.
    pub principal: String,
    /// When, in milliseconds since 1970 (UTC).
    pub now_ms: i64,
}

/// One finished tool call.
#[derive(Debug, Clone)]
pub struct PriorCall {
    /// Model-facing or MCP name of the tool.
    pub tool: String,
    /// How it ended.
    pub status: CallStatus,
    /// The turn in which it was made, from 0.
    pub turn: u32,
}

/// How a tool call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallStatus {
    /// The tool returned a result.
    Succeeded,
    /// The tool returned an error.
    Failed,
    /// Nobody said.
    Unknown,
}

impl CallStatus {
    /// The name that conditions compare with.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
        }
    }
}
