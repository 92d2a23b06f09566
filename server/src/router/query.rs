//! What Route is asked, parsed: every value here is within its limits.

use crate::deferral::Asked;
use crate::identity::ServerName;
use crate::state::AgentState;
use crate::store::Revision;

/// One text that says what the agent wants this turn.
#[derive(Debug, Clone)]
pub struct Intent {
    /// The text; not empty.
    pub text: String,
    /// How much it counts beside the others; above 0.
    pub weight: f32,
}

/// How much of each tool is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Detail {
    /// Names and scores.
    Names,
    /// One-line signatures.
    Signatures,
    /// Full definitions.
    #[default]
    Schemas,
    /// Names that the provider expands to definitions.
    References,
}

/// How Route chooses.
#[derive(Debug, Clone)]
pub struct Options {
    /// The most tools to choose by rank.
    pub top_k: usize,
    /// The least overlap of a tool chosen by rank.
    pub threshold: f32,
    /// The most tokens that newly promoted tools may cost.
    pub schema_token_budget: Option<u32>,
    /// How much of each tool is sent.
    pub detail: Detail,
    /// Tools to have whatever their overlap.
    pub pinned: Vec<String>,
    /// Tools to leave out.
    pub excluded: Vec<String>,
    /// Only these MCP servers; empty means all.
    pub servers: Vec<ServerName>,
    /// The model's context window in tokens.
    pub context_window: Option<u32>,
    /// Tokens of the system prompt.
    pub system_tokens: u32,
    /// The model that will see the tools, for the decision event.
    pub model: String,
    /// Also answer with refusals.
    pub explain: bool,
    /// Whether tools are deferred.
    pub deferral: Asked,
}

/// Asks for the active set of one turn.
#[derive(Debug, Clone)]
pub struct RouteQuery {
    /// What the agent wants; at least one.
    pub intents: Vec<Intent>,
    /// What it has done and may do.
    pub state: AgentState,
    /// The handle of the turn before; empty for a new conversation.
    pub previous: String,
    /// The summary pool's revision that the client holds.
    pub known_pool_revision: Option<Revision>,
    /// How to choose.
    pub options: Options,
    /// The revision that the answer must at least be based on.
    pub min_revision: Revision,
    /// A name for this turn, for the decision event.
    pub turn_id: String,
}
