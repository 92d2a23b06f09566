//! Requests that carry few tools and keep the provider's cache. [`prepare`] turns a conversation and this turn's active
//! set into the `tools` and `messages` of one request, by one of four strategies. It is a pure function: what must be
//! remembered between turns is the [`Ledger`], which the caller passes back.

mod additions;
mod anthropic;
mod auto;
mod concise;
mod digest;
mod keep;
mod ledger;
mod listing;
mod messages;
mod plan;
mod resolve;
mod responses;
mod text;
mod toolset;
mod undeferred;

use std::collections::HashSet;

use serde_json::Value;

pub use auto::{DENIED_MODELS, is_like, may_defer};
pub use digest::as_compared;
pub use keep::expected_requests;
pub use ledger::Ledger;
pub use listing::Listing;
pub use undeferred::prepare_undeferred;

use auto::Choice;
use ledger::Way;
use listing::Listed;

use crate::envelope;
use crate::render::{Loss, RenderError, Tool};

/// API that a request is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    /// Anthropic's Messages.
    Anthropic,
    /// OpenAI's Chat Completions, which other providers and local servers copy.
    OpenAiChat,
    /// OpenAI's Responses.
    OpenAiResponses,
    /// Gemini's `generateContent`.
    Gemini,
}

impl Api {
    const ALL: [Self; 4] = [Self::Anthropic, Self::OpenAiChat, Self::OpenAiResponses, Self::Gemini];

    /// Returns the name, such as `openai_chat`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAiChat => "openai_chat",
            Self::OpenAiResponses => "openai_responses",
            Self::Gemini => "gemini",
        }
    }

    /// Returns the API of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|api| api.name() == name)
    }
}

/// Way to put tools into requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// All tools are sent in `tools`, none is deferred.
    Pass,
    /// The tools of a turn are added amid the conversation, in the provider's own way: `tool_addition` of Anthropic,
    /// `additional_tools` of OpenAI's Responses. `tools` stays the same, and so does the cached prefix. Where the strategy
    /// is chosen by itself, the first tools of a conversation may stand in `tools`.
    Native,
    /// The tools of a turn are described in a text at the end of the conversation, and the model calls them through
    /// [`CALL_TOOL_NAME`](crate::envelope::CALL_TOOL_NAME). `tools` stays the same, and so does the cached prefix. Where
    /// the strategy is chosen by itself, the first tools of a conversation may stand in `tools`.
    Envelope,
    /// The active set is sent in `tools`. A change of the set costs the cached prefix.
    Cut,
}

impl Strategy {
    const ALL: [Self; 4] = [Self::Pass, Self::Native, Self::Envelope, Self::Cut];

    /// Returns the name, such as `native`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Native => "native",
            Self::Envelope => "envelope",
            Self::Cut => "cut",
        }
    }

    /// Returns the strategy of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|strategy| strategy.name() == name)
    }
}

/// Model and provider that a request is sent to.
#[derive(Debug, Clone, Copy, Default)]
pub struct Endpoint<'a> {
    /// Name of the model; empty if unknown.
    pub model: &'a str,
    /// Base URL of the API; empty for the provider's own.
    pub base_url: &'a str,
    /// Patterns of models that don't take tools amid a conversation, with `*` for any characters. `None` for those of
    /// [`DENIED_MODELS`].
    pub denied: Option<&'a [&'a str]>,
    /// True if the agent's library can't send tools amid a conversation.
    pub without_native: bool,
}

/// Tools that a request may carry.
#[derive(Clone, Copy)]
pub struct Offer<'a> {
    /// Definitions of the agent's own tools, in the API's format. They come first and are sent as they are.
    pub own: &'a [Value],
    /// Tools of the catalog that every request has, in a fixed order.
    pub always_on: &'a [Tool<'a>],
    /// Other tools of this turn's active set, in its order.
    pub active: &'a [Tool<'a>],
    /// Number of tools that are deferred. 0 means that the active set is the whole catalog.
    pub deferred: usize,
    /// Tokens of the definitions of the whole catalog. `None` means that they are not known, and never sent to save something.
    pub catalog_tokens: Option<u32>,
    /// True if the caller answers calls of [`SEARCH_TOOL`](crate::SEARCH_TOOL). Without a search nothing may be
    /// deferred.
    pub search: bool,
    /// Names of all tools that can be deferred, for the description of the search tool. They must be the same from turn
    /// to turn, whatever is active; what the request can't show of them is counted.
    pub deferred_names: &'a [&'a str],
    /// Part of them that the description lists.
    pub listing: Listing<'a>,
    /// Most tokens of the definitions of the active set and of the tools of earlier turns that a conversation carries beside
    /// it; `None` for no bound but their number.
    pub budget: Option<u32>,
    /// Finds the current definition, in full, of a tool that an earlier turn added.
    pub find: &'a dyn Fn(&str) -> Option<Tool<'a>>,
}

/// One turn of a conversation, to make a request from.
#[derive(Clone, Copy)]
pub struct Turn<'a> {
    /// API of the request.
    pub api: Api,
    /// Strategy to use; `None` for the cheapest one that the endpoint takes.
    pub strategy: Option<Strategy>,
    /// Model and provider.
    pub endpoint: Endpoint<'a>,
    /// Tools.
    pub offer: Offer<'a>,
    /// Tokens of the system prompt, which stands before the messages and is not among them; 0 if they are not known.
    pub system_tokens: u32,
    /// Conversation as the agent holds it, oldest message first, without what earlier turns added to it.
    pub messages: &'a [Value],
    /// Ledger of the turn before; [`Ledger::default`] for the first.
    pub ledger: &'a Ledger,
    /// Counts the tokens of a text.
    pub count: &'a dyn Fn(&str) -> u32,
}

/// Reason for a strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The caller asked for it.
    Asked,
    /// Nothing is deferred, so that all tools are sent.
    NothingDeferred,
    /// The agent's own tools have a search of the host's or of the provider's, which defers tools by itself.
    HostDefers,
    /// Nobody answers searches, so that all tools must be sent.
    NoSearch,
    /// The strategy that was asked for does not exist for this API or model; the next best one is used.
    NotTaken,
    /// Earlier turns used the strategy. Another one would cost more.
    Kept,
    /// The strategy costs least by the price model.
    Cheapest,
}

/// One request.
#[derive(Debug, Clone, PartialEq)]
pub struct Prepared {
    /// Strategy that was used.
    pub strategy: Strategy,
    /// Reason for it.
    pub reason: Reason,
    /// Definitions for `tools`, in the API's format. For Gemini they are `functionDeclarations`.
    pub tools: Vec<Value>,
    /// Messages to send: those of the conversation with the additions in their places. With [`Strategy::Envelope`], calls
    /// of tools that are not in `tools` are written as calls of the envelope. Messages of Anthropic's that only load
    /// tools have a text that says so. References that can't be resolved are removed.
    pub messages: Vec<Value>,
    /// Names of betas that the request needs, for the header `anthropic-beta`.
    pub betas: Vec<&'static str>,
    /// Ledger for the next turn.
    pub ledger: Ledger,
    /// Names of the catalog's tools that the conversation has by additions, of this turn and of earlier ones. They may be
    /// called, though this turn's active set may lack them.
    pub defined: Vec<String>,
    /// Texts amid the messages that tell which tools can be found, or not any more, since the search listed them.
    pub told: Vec<String>,
    /// Number of deferred tools that the model can neither see nor find. If it is not 0, the caller loads the whole
    /// catalog and prepares the request again.
    pub missing: usize,
    /// Parts of the tools of `tools`, and of those that this turn adds, that the API's format can't express.
    pub losses: Vec<Loss>,
}

/// Makes the request of one turn. References in the messages that it can't resolve are removed, as [`strip`] does.
///
/// [`strip`]: crate::history::strip
///
/// # Errors
/// [`RenderError`] if a tool came without its full schema.
pub fn prepare(turn: &Turn<'_>) -> Result<Prepared, RenderError> {
    let choice = auto::choose(turn)?;
    let strategy = choice.strategy;
    let Some(messages) = resolve::stripped(turn, strategy, &[]) else {
        return prepare_by(turn, choice);
    };
    let prepared = prepare_with(turn, &messages, choice)?;
    // The first tools of a conversation may stand in `tools`, which is known only now.
    let defined = names_in(&prepared);
    let resolved = resolve::stripped(turn, strategy, &defined);
    let resolved = resolved.unwrap_or_else(|| turn.messages.to_vec());
    if resolved == messages {
        return Ok(prepared);
    }
    // With references a request is longer, so that they may stand elsewhere then.
    let referring = prepare_with(turn, &resolved, choice)?;
    let still_defined = names_in(&referring);
    let is_defined = |name: &&str| still_defined.contains(name);
    Ok(if defined.iter().all(is_defined) { referring } else { prepared })
}

/// Returns the names of the tools that stand in `tools`.
fn names_in(prepared: &Prepared) -> Vec<&str> {
    prepared.tools.iter().flat_map(toolset::names).collect()
}

/// Makes the request of one turn by a strategy, with other messages.
fn prepare_with(
    turn: &Turn<'_>,
    messages: &[Value],
    choice: Choice,
) -> Result<Prepared, RenderError> {
    let offer = &turn.offer;
    let find = |name: &str| (offer.find)(name);
    let offer = Offer {
        own: offer.own,
        always_on: offer.always_on,
        active: offer.active,
        deferred: offer.deferred,
        catalog_tokens: offer.catalog_tokens,
        search: offer.search,
        deferred_names: offer.deferred_names,
        listing: offer.listing,
        budget: offer.budget,
        find: &find,
    };
    let turn = Turn {
        api: turn.api,
        strategy: turn.strategy,
        endpoint: turn.endpoint,
        offer,
        system_tokens: turn.system_tokens,
        messages,
        ledger: turn.ledger,
        count: turn.count,
    };
    prepare_by(&turn, choice)
}

/// Makes the request of one turn by a strategy.
fn prepare_by(turn: &Turn<'_>, choice: Choice) -> Result<Prepared, RenderError> {
    let Choice { strategy, reason } = choice;
    let way = Way { api: turn.api, strategy };
    let constant = toolset::constant(turn, strategy, &Listed::of(turn))?;
    let mut prepared = Prepared {
        strategy,
        reason,
        tools: turn.offer.own.to_vec(),
        messages: turn.messages.to_vec(),
        betas: Vec::new(),
        ledger: Ledger { way: Some(way), ..Ledger::default() },
        defined: Vec::new(),
        told: Vec::new(),
        missing: if turn.offer.search { 0 } else { turn.offer.deferred },
        losses: constant.losses,
    };
    if strategy == Strategy::Pass {
        prepared.missing = turn.offer.deferred;
    }
    prepared.tools.extend(constant.tools);
    if turn.api == Api::Anthropic {
        anthropic::settle_references(&mut prepared.messages);
    }
    match messages::place(turn.api, turn.messages) {
        Some(place) if matches!(strategy, Strategy::Native | Strategy::Envelope) => {
            add_amid(turn, way, place, &mut prepared)?;
        }
        // Without a message there is nothing that a change of `tools` could cost.
        _ => add_to_tools(turn, &mut prepared)?,
    }
    if way == (Way { api: Api::Anthropic, strategy: Strategy::Native }) {
        prepared.betas = anthropic::BETAS.to_vec();
    }
    Ok(prepared)
}

/// Adds the active set amid the conversation.
fn add_amid(
    turn: &Turn<'_>,
    way: Way,
    place: usize,
    prepared: &mut Prepared,
) -> Result<(), RenderError> {
    let constant = prepared.tools.iter().filter_map(toolset::name).collect();
    let mut plan = plan::plan(turn, way, place, &constant)?;
    prepared.ledger = plan.ledger(way);
    prepared.told = plan.told();
    prepared.defined = plan.defined();
    prepared.tools.truncate(turn.offer.own.len());
    prepared.tools.extend(toolset::constant(turn, way.strategy, &plan.listed)?.tools);
    prepared.tools.extend(plan.take_base());
    if way.strategy == Strategy::Envelope {
        let sent_names = prepared.tools.iter().flat_map(toolset::names).collect();
        envelope::wrap_history(way.api, &mut prepared.messages, &sent_names);
    }
    prepared.messages =
        additions::insert(way, std::mem::take(&mut prepared.messages), &plan.additions);
    prepared.losses.extend(plan.losses);
    Ok(())
}

/// Adds the active set to `tools`.
fn add_to_tools(turn: &Turn<'_>, prepared: &mut Prepared) -> Result<(), RenderError> {
    let known: HashSet<&str> = prepared.tools.iter().filter_map(toolset::name).collect();
    let active = turn.offer.active.iter().filter(|tool| !known.contains(tool.name));
    let rendered = toolset::render(turn.api, &active.copied().collect::<Vec<_>>())?;
    prepared.tools.extend(rendered.tools);
    prepared.losses.extend(rendered.losses);
    Ok(())
}
