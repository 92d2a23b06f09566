//! State of an agent: what it has done and may do, who it is and what time it is. Decisions depend on nothing else
//! beside the catalog and the policy. It is parsed once at the edge; free text never gets here.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// State of the agent in one call.
#[derive(Debug, Clone, Default)]
pub struct AgentState {
    /// Granted scopes.
    pub scopes: BTreeSet<String>,
    /// Prior tool calls, oldest first.
    pub calls: Vec<PriorCall>,
    /// Reached milestones.
    pub milestones: BTreeSet<String>,
    /// Model-facing names of tools that were discovered earlier in the conversation.
    pub discovered: Vec<String>,
    /// Further attributes that a policy may read.
    pub attributes: Map<String, Value>,
    /// Principal that calls; empty while authentication is off.
    pub principal: String,
    /// Time of the call in milliseconds since 1970 (UTC).
    pub now_ms: i64,
}

/// Finished tool call.
#[derive(Debug, Clone)]
pub struct PriorCall {
    /// Model-facing or MCP name of the tool.
    pub tool: String,
    /// Outcome of the call.
    pub status: CallStatus,
    /// Turn in which the call was made, from 0.
    pub turn: u32,
}

/// Outcome of a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallStatus {
    /// The tool returned a result.
    Succeeded,
    /// The tool returned an error.
    Failed,
    /// The caller did not report the outcome.
    Unknown,
}

impl CallStatus {
    /// Returns the name that conditions compare with.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
        }
    }
}
