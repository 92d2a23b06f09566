//! What an agent has done and may do, as preconditions see it. Parsed once at the edge; free text never
//! gets here.

use std::collections::HashSet;

/// The agent's state in one call.
#[derive(Debug, Clone, Default)]
pub struct AgentState {
    /// Scopes granted.
    pub scopes: HashSet<String>,
    /// Prior tool calls, oldest first.
    pub calls: Vec<PriorCall>,
    /// Milestones reached.
    pub milestones: HashSet<String>,
    /// Model-facing names of tools that were discovered earlier in the conversation.
    pub discovered: Vec<String>,
}

/// One finished tool call.
#[derive(Debug, Clone)]
pub struct PriorCall {
    /// Model-facing or MCP name of the tool.
    pub tool: String,
    /// Whether the tool returned a result.
    pub succeeded: bool,
    /// The turn in which it was made, from 0.
    pub turn: u32,
}
