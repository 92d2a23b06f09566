//! What Route is asked, parsed: every value here is within its limits.

use super::caps::UntrustedCaps;
use super::intent::Intent;
use toolgate_core::deferral::Asked;
use toolgate_core::identity::ServerName;
use toolgate_core::policy::{Learned, Policy};
use toolgate_core::state::AgentState;
use toolgate_store::Revision;

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

impl Detail {
    /// Whether the model gets to see full definitions.
    #[must_use]
    pub fn has_schemas(self) -> bool {
        matches!(self, Self::Schemas | Self::References)
    }
}

/// How Route chooses.
#[derive(Debug, Clone)]
pub struct Options {
    /// The most tools to choose by rank.
    pub top_k: usize,
    /// The least overlap of a tool chosen by rank; with a `ratio`, of the best one.
    pub threshold: f32,
    /// What the best overlap must reach, or no tool fits, where the policy says so; `None` for the level that is
    /// told by the catalog.
    pub abstain_below: Option<f32>,
    /// The learned gate in place of the ratio, where the policy has one.
    pub learned: Option<Learned>,
    /// The least score of a tool chosen by rank, as a share of the best one's; `None` when the threshold is for
    /// each tool.
    pub ratio: Option<f32>,
    /// The most tokens that newly promoted tools may cost.
    pub schema_token_budget: Option<u32>,
    /// How much of each tool is sent.
    pub detail: Detail,
    /// The most tools that are sent as signatures after the chosen ones.
    pub signature_tail: usize,
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
    /// The most tokens that all definitions of the active set may cost.
    pub active_token_budget: Option<u32>,
    /// Tokens of the prompt that come after the tools and are cached with them; 0 where the tools stand directly before
    /// the message.
    pub history_tokens: Option<u32>,
    /// Change the set whatever the lost cache costs.
    pub ignore_cache_cost: bool,
    /// Whether tools are deferred.
    pub deferral: Asked,
    /// Options that the request left out: the tenant's policy may say them.
    pub unset: Unset,
    /// How many tools of untrusted MCP servers are chosen.
    pub untrusted: UntrustedCaps,
    /// The most tools of the active set, kept ones included; `None` for `top_k`, and on top what the model
    /// searched for, up to twice `top_k` and at least 10 in all.
    pub active_set_limit: Option<usize>,
    /// The most tokens that always-loaded tools cost together.
    pub always_load_tokens: u32,
    /// Bytes of the largest answer.
    pub message_max: usize,
}

/// Bytes of the largest answer, as the product's default.
pub const MESSAGE_MAX: usize = 4 << 20;

/// Which options a request left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unset {
    /// `top_k`.
    pub top_k: bool,
    /// `threshold`.
    pub threshold: bool,
}

impl Options {
    /// These options with what the policy says for those that the request left out.
    #[must_use]
    pub fn under(&self, policy: &Policy) -> Self {
        let said = &policy.defaults;
        let unset = self.unset;
        Self {
            top_k: said.top_k.filter(|_| unset.top_k).unwrap_or(self.top_k),
            threshold: said.threshold.filter(|_| unset.threshold).unwrap_or(self.threshold),
            abstain_below: said.abstain_below,
            learned: said.learned,
            // A threshold that somebody chose is for each tool.
            ratio: self
                .ratio
                .filter(|_| said.threshold.is_none())
                .map(|ratio| said.ratio.unwrap_or(ratio)),
            ..self.clone()
        }
    }
}

/// How many times `top_k` tools an active set has at most, with those that the model searched for.
const WITH_SEARCHED: usize = 2;

/// What a conversation may hold however few tools a turn gets: what a search finds has to stay callable.
const LEAST_HELD: usize = 10;

impl Options {
    /// The most tools of an active set with so many that are there whatever they are for.
    #[must_use]
    pub fn bound(&self, required: usize) -> usize {
        let limit =
            self.active_set_limit.unwrap_or_else(|| (WITH_SEARCHED * self.top_k).max(LEAST_HELD));
        limit.max(self.top_k + required + self.signature_tail)
    }

    /// The most of them that the model did not search for. By default a set is as small as one that is chosen anew: where
    /// definitions precede all messages each change costs the same, and what is carried along costs more than it spares
    /// (docs/conversations.md).
    #[must_use]
    pub fn routed_bound(&self, required: usize) -> usize {
        let limit = self.active_set_limit.unwrap_or(self.top_k);
        limit.max(self.top_k + required + self.signature_tail)
    }
}

impl Default for Options {
    /// As the product's defaults.
    fn default() -> Self {
        Self {
            top_k: 10,
            threshold: 0.28,
            abstain_below: None,
            learned: None,
            ratio: Some(0.5),
            schema_token_budget: None,
            detail: Detail::Schemas,
            signature_tail: 0,
            pinned: Vec::new(),
            excluded: Vec::new(),
            servers: Vec::new(),
            context_window: None,
            system_tokens: 0,
            model: String::new(),
            explain: false,
            active_token_budget: None,
            history_tokens: None,
            ignore_cache_cost: false,
            deferral: Asked::default(),
            unset: Unset::default(),
            untrusted: UntrustedCaps::default(),
            active_set_limit: None,
            always_load_tokens: 20_000,
            message_max: MESSAGE_MAX,
        }
    }
}

/// What a prompt lists of a catalog's tools beside the active set. The wire's `PromptListing` has the same names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Listing {
    /// Nothing.
    #[default]
    None,
    /// The names of all tools.
    Names,
    /// The summary pool.
    Summaries,
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
    /// What the prompt lists beside the active set; `None` where nobody says.
    pub listing: Option<Listing>,
}

impl RouteQuery {
    /// A conversation's first turn by an agent that has done nothing, with all defaults.
    #[must_use]
    pub fn of(intents: Vec<Intent>) -> Self {
        Self {
            intents,
            state: AgentState::default(),
            previous: String::new(),
            known_pool_revision: None,
            options: Options::default(),
            min_revision: 0,
            turn_id: String::new(),
            listing: None,
        }
    }

    /// Returns what the prompt lists: what is said, or the summaries that a client with a revision of the pool holds,
    /// unless everything is sent, so that there is nothing to list that the model does not have.
    #[must_use]
    pub fn listed(&self, sends_everything: bool) -> Listing {
        let holds_summaries = self.known_pool_revision.is_some() && !sends_everything;
        let by_default = if holds_summaries { Listing::Summaries } else { Listing::None };
        self.listing.unwrap_or(by_default)
    }
}
