//! Parsed Route requests. Every value here is within its limits.

use crate::router::answers::conversation::Surroundings;
use crate::router::intent::Intent;
use crate::router::selection::caps::UntrustedCaps;
use crate::router::tool_attention;
use toolgate_core::deferral::DeferralRequest;
use toolgate_core::identity::ServerName;
use toolgate_core::policy::{Learned, Policy};
use toolgate_core::state::AgentState;
use toolgate_llm::price::PromptPrices;
use toolgate_store::Revision;

/// Amount of detail sent for each tool.
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
    /// Returns true if the model sees full definitions.
    #[must_use]
    pub fn has_schemas(self) -> bool {
        matches!(self, Self::Schemas | Self::References)
    }
}

/// Rule that chooses the tools of a turn. The wire's `SelectionRule` has the same names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SelectionRule {
    /// Toolgate's own: overlap and words, requests of packs, earlier calls, and the tools of the turn before.
    #[default]
    Own,
    /// Rule of the paper "Tool Attention": the `top_k` tools of the highest overlap whose overlap reaches the threshold
    /// and whose preconditions hold. [`crate::router::tool_attention`] has its parts.
    ToolAttention,
}

/// Options of a Route call.
#[derive(Debug, Clone)]
pub struct Options {
    /// Rule that chooses the tools.
    pub selection_rule: SelectionRule,
    /// Maximum number of tools to choose by rank.
    pub top_k: usize,
    /// Minimum overlap of a tool chosen by rank. With a `ratio`, only the best tool must reach it.
    pub threshold: f32,
    /// Overlap that the best tool must reach for any tool to fit, if the policy sets one; `None` for the level derived
    /// from the catalog.
    pub abstain_below: Option<f32>,
    /// Learned gate that replaces the ratio, if the policy has one.
    pub learned: Option<Learned>,
    /// Minimum score of a tool chosen by rank, as a share of the best score. `None` if the threshold applies to each
    /// tool.
    pub ratio: Option<f32>,
    /// Maximum tokens of newly promoted tools; `None` for no limit.
    pub schema_token_budget: Option<u32>,
    /// Amount of detail sent for each tool.
    pub detail: Detail,
    /// Maximum number of tools that are sent as signatures after the chosen ones.
    pub signature_tail: usize,
    /// Names of tools to include regardless of their overlap.
    pub pinned: Vec<String>,
    /// Names of tools to leave out.
    pub excluded: Vec<String>,
    /// MCP servers to choose from; empty for all.
    pub servers: Vec<ServerName>,
    /// Context window of the model in tokens, as the request tells it.
    pub context_window: Option<u32>,
    /// Context window that the model is known to have, for figures and warnings where the request tells none. It decides nothing
    /// about deferral.
    pub known_window: Option<u32>,
    /// Tokens of the system prompt.
    pub system_tokens: u32,
    /// Tokens of the definitions that stand in the prompt beside the active set, as far as they are known: the agent's own
    /// tools and the search. They count for the length from which a prompt is cached.
    pub beside_tokens: u32,
    /// Most tokens of the names, or of the summaries, that the search lists; 0 for none. They count for that length too.
    pub listing_tokens: u32,
    /// True if the search lists summaries.
    pub lists_summaries: bool,
    /// Model that will see the tools, for the deferral decision and the decision event.
    pub model: String,
    /// True to answer with refusals and details of the ranking as well.
    pub explain: bool,
    /// Maximum tokens of all definitions in the active set; `None` for no limit.
    pub active_token_budget: Option<u32>,
    /// Tokens of the prompt that come after the tools and are cached with them. 0 if the tools stand directly before
    /// the message; `None` if the cache is not counted.
    pub history_tokens: Option<u32>,
    /// Prices of the conversation's prompts, by which a change of the set is weighed.
    pub prices: PromptPrices,
    /// True to change the set regardless of the lost cache.
    pub ignore_cache_cost: bool,
    /// Deferral as the request asks for it.
    pub deferral: DeferralRequest,
    /// Options that the request left out, which the tenant's policy may set.
    pub unset: Unset,
    /// Limits on tools of untrusted MCP servers.
    pub untrusted: UntrustedCaps,
    /// Maximum number of tools in the active set, kept ones included. With `None` the set has up to `top_k` tools and
    /// also those that the model searched for, up to twice `top_k` and at least 10 in all.
    pub active_set_limit: Option<usize>,
    /// Maximum tokens of all always-loaded tools together.
    pub always_load_tokens: u32,
    /// Size limit of the answer in bytes.
    pub message_max: usize,
}

/// Default size limit of an answer in bytes.
pub const MESSAGE_MAX: usize = 4 << 20;

/// Options that a request left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unset {
    /// True if `top_k` was left out.
    pub top_k: bool,
    /// True if `threshold` was left out.
    pub threshold: bool,
}

impl Options {
    /// Returns what stands in a request to the model beside tools and conversation.
    #[must_use]
    pub fn surroundings(&self) -> Surroundings {
        Surroundings {
            system_tokens: self.system_tokens,
            own_tools_tokens: 0,
            context_window: self.context_window.or(self.known_window),
        }
    }

    /// Returns these options, with the policy's values for those that the request left out.
    #[must_use]
    pub fn under(&self, policy: &Policy) -> Self {
        let said = &policy.defaults;
        let unset = self.unset;
        if self.selection_rule == SelectionRule::ToolAttention {
            return tool_attention::options(self, policy);
        }
        Self {
            top_k: said.top_k.filter(|_| unset.top_k).unwrap_or(self.top_k),
            threshold: said.threshold.filter(|_| unset.threshold).unwrap_or(self.threshold),
            abstain_below: said.abstain_below,
            learned: said.learned,
            // A threshold that somebody chose applies to each tool.
            ratio: self
                .ratio
                .filter(|_| said.threshold.is_none())
                .map(|ratio| said.ratio.unwrap_or(ratio)),
            ..self.clone()
        }
    }
}

/// Multiple of `top_k` that limits an active set, including the tools that the model searched for.
const WITH_SEARCHED: usize = 2;

/// Minimum limit on an active set, even if a turn gets few tools: tools that a search finds have to stay callable.
const LEAST_HELD: usize = 10;

impl Options {
    /// Returns the maximum number of tools in an active set. `required` counts the tools that are included regardless
    /// of their overlap.
    #[must_use]
    pub fn bound(&self, required: usize) -> usize {
        let limit =
            self.active_set_limit.unwrap_or_else(|| (WITH_SEARCHED * self.top_k).max(LEAST_HELD));
        limit.max(self.top_k + required + self.signature_tail)
    }

    /// Returns the maximum number of tools in an active set that the model did not search for. By default a set is as
    /// small as a newly chosen one. If definitions precede all messages, each change costs the same, and carrying tools
    /// along costs more than it saves (docs/conversations.md).
    #[must_use]
    pub fn routed_bound(&self, required: usize) -> usize {
        let limit = self.active_set_limit.unwrap_or(self.top_k);
        limit.max(self.top_k + required + self.signature_tail)
    }
}

impl Default for Options {
    /// Returns the product's defaults.
    fn default() -> Self {
        Self {
            selection_rule: SelectionRule::Own,
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
            known_window: None,
            system_tokens: 0,
            beside_tokens: 0,
            listing_tokens: 0,
            lists_summaries: false,
            model: String::new(),
            explain: false,
            active_token_budget: None,
            history_tokens: None,
            prices: PromptPrices::default(),
            ignore_cache_cost: false,
            deferral: DeferralRequest::default(),
            unset: Unset::default(),
            untrusted: UntrustedCaps::default(),
            active_set_limit: None,
            always_load_tokens: 20_000,
            message_max: MESSAGE_MAX,
        }
    }
}

/// Part of the catalog that a prompt lists beside the active set. The wire's `PromptListing` has the same names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Listing {
    /// No tools.
    #[default]
    None,
    /// Names of all tools.
    Names,
    /// Summary pool.
    Summaries,
}

/// Request for the active set of one turn.
#[derive(Debug, Clone)]
pub struct RouteQuery {
    /// Intents of the agent; at least one.
    pub intents: Vec<Intent>,
    /// State of the agent: its calls so far and its scopes.
    pub state: AgentState,
    /// Handle of the previous turn; empty for a new conversation.
    pub previous: String,
    /// Revision of the summary pool that the client holds; `None` if it holds none.
    pub known_pool_revision: Option<Revision>,
    /// Options of the choice.
    pub options: Options,
    /// Minimum revision that the answer must be based on.
    pub min_revision: Revision,
    /// Name of this turn, for the decision event.
    pub turn_id: String,
    /// Part of the catalog that the prompt lists beside the active set; `None` if the request does not say.
    pub listing: Option<Listing>,
}

impl RouteQuery {
    /// Creates the first turn of a conversation by an agent that has done nothing, with all defaults.
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

    /// Returns this query with the intents that its rule reads.
    #[must_use]
    pub fn by_its_rule(self) -> Self {
        match self.options.selection_rule {
            SelectionRule::Own => self,
            SelectionRule::ToolAttention => {
                Self { intents: tool_attention::intents(self.intents), ..self }
            }
        }
    }

    /// Returns the part of the catalog that the prompt lists. By default these are the summaries if the client holds a
    /// revision of the pool. If everything is sent, the default is nothing, because the model has every tool already.
    #[must_use]
    pub fn listed(&self, sends_everything: bool) -> Listing {
        let holds_summaries = self.known_pool_revision.is_some() && !sends_everything;
        let by_default = if holds_summaries { Listing::Summaries } else { Listing::None };
        self.listing.unwrap_or(by_default)
    }
}
