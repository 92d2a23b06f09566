//! Whole requests to a provider's API: definitions and messages, put together by a strategy of [`toolgate_llm`].

mod request;

use std::sync::Arc;

use prost::Message as _;
use serde_json::Value;
use toolgate_core::deferral::{Reason as DeferralReason, Source as DeferralSource};
use toolgate_core::error::Error;
use toolgate_core::policy::Choosing;
use toolgate_core::state::AgentState;
use toolgate_core::tokens;
use toolgate_llm::SEARCH_TOOL;
use toolgate_llm::price::{LEAST_REQUESTS, PromptPrices, Rates};
use toolgate_llm::render::{Loss, RenderError, Tool};
use toolgate_llm::strategy::{
    Endpoint, Listing, Offer, Prepared, Reason, Strategy, Turn, expected_requests, may_defer,
    prepare, prepare_undeferred,
};
use toolgate_proto::v1::{
    PromptStrategy, RenderLoss, RenderedTools, RouteResponse, StrategyReason,
};
use toolgate_routing::catalog::check::pool_line;
use toolgate_routing::gate::visibility::{Visibilities, Visibility};
use toolgate_routing::router::answers::answer_size::LIMIT;
use toolgate_routing::router::route::Answer;
use toolgate_routing::shard::snapshot::Snapshot;
use toolgate_routing::shard::tool;

use super::tool_format::{FIELD, forget_definition, loss_of};

pub(super) use request::PromptRequest;
use request::tokens_of;

/// Bytes of messages above which a request is put together outside the async threads. Counting their tokens takes about
/// a millisecond.
const LARGE: usize = 64 << 10;

/// Bytes of text that a token is estimated to stand for, as the clients do.
const BYTES_A_TOKEN: u64 = 4;

impl PromptRequest {
    /// Returns the request as the operator's list of models has it.
    pub(super) fn for_operator(self, denies_native: impl Fn(&str) -> bool) -> Self {
        Self { is_native_denied: denies_native(&self.model), ..self }
    }

    /// Returns the request behind a system prompt of so many tokens.
    pub(super) fn behind_system(self, system_tokens: u32) -> Self {
        Self { system_tokens, ..self }
    }

    /// Returns true if the request needs the whole catalog, whatever the tenant's mode of deferral is: the model could
    /// neither see nor find the rest.
    pub(super) fn needs_everything(&self) -> bool {
        let has_search = self.has_search && may_defer(self.own_tools.values());
        !has_search || self.strategy == Some(Strategy::Pass)
    }

    /// Returns the tokens by which a change of the active set is weighed, where the request does not say: those of the
    /// messages before the last one with [`Strategy::Cut`], whose tools stand before them. Tools that are added behind the
    /// messages take nothing out of the cache, but every later request has them: weighed as if they did, the set changes
    /// less often and conversations cost less (docs/conversations.md). An estimate is enough for that. `None` if all tools
    /// are sent.
    pub(super) fn history_tokens(&self) -> Option<u32> {
        let tokens = match self.strategy {
            Some(Strategy::Pass) => return None,
            Some(Strategy::Cut) => {
                let sent = self.messages.values();
                tokens_of(&sent[..sent.len().saturating_sub(1)])
            }
            None | Some(Strategy::Native | Strategy::Envelope) => {
                // 0 would say that the tools stand behind the messages, so that all change with each turn.
                (self.messages.bytes() as u64 / BYTES_A_TOKEN).max(1)
            }
        };
        Some(u32::try_from(tokens).unwrap_or(u32::MAX))
    }

    /// Returns about how many tokens the definitions have that stand in the request beside those of the catalog: the agent's
    /// own tools and the search, without what the search lists.
    pub(super) fn beside_tokens(&self) -> u32 {
        let search = SEARCH_TOOL.description.len() + SEARCH_TOOL.input_schema_json.len();
        let bytes = self.own_tools.bytes() + if self.has_search { search } else { 0 };
        u32::try_from(bytes as u64 / BYTES_A_TOKEN).unwrap_or(u32::MAX)
    }

    /// Returns the most tokens of what the search lists.
    pub(super) fn listing_tokens(&self) -> u32 {
        if self.has_search { self.listing_tokens } else { 0 }
    }

    /// Returns true if the search lists summaries instead of names.
    pub(super) fn lists_summaries(&self) -> bool {
        self.lists_summaries
    }

    /// Returns the prices by which a change of the active set is weighed. With [`Strategy::Cut`] the next change takes out
    /// what was kept, so that it is never carried for long.
    pub(super) fn prices(&self) -> PromptPrices {
        let requests = match self.strategy {
            Some(Strategy::Cut) => LEAST_REQUESTS,
            _ => expected_requests(self.api, self.messages.values()),
        };
        PromptPrices { rates: Rates::of(self.api, &self.endpoint()), requests }
    }

    fn endpoint(&self) -> Endpoint<'_> {
        Endpoint {
            model: &self.model,
            base_url: &self.base_url,
            // What the operator lists comes on top of the models that are known.
            denied: self.is_native_denied.then_some(&["*"][..]),
            without_native: self.without_native,
        }
    }

    /// Adds the definitions and the messages to an answer of Route, in the place of the definitions of its tools. Returns
    /// `None` if all tools are to be sent, and the answer lacks some: then the whole catalog must be routed, which
    /// [`Routed::is_whole`] tells.
    ///
    /// # Errors
    /// [`Error::AnswerTooLarge`] if the answer would have more than `message_max` bytes: neither messages nor tools are
    /// ever cut.
    pub(super) async fn complete(
        self: Arc<Self>,
        routed: Routed,
        state: AgentState,
        message_max: usize,
    ) -> Result<Option<Completed>, Error> {
        let is_large = self.messages.bytes() > LARGE;
        let work = move || self.completed(routed, &state, message_max);
        if is_large {
            tokio::task::spawn_blocking(work).await.map_err(Error::internal)?
        } else {
            work()
        }
    }

    fn completed(
        &self,
        routed: Routed,
        state: &AgentState,
        message_max: usize,
    ) -> Result<Option<Completed>, Error> {
        let Routed { mut wire, answer, is_whole } = routed;
        let catalog = Catalog::of(self, &answer, state);
        let prepared = self.prepare(catalog, is_switched_off(&answer))?;
        if prepared.missing > 0 && !answer.deferral.sends_what_it_can() {
            return Ok(None);
        }
        wire.active_tools.iter_mut().for_each(forget_definition);
        let sent = self.sent(&prepared, &answer.snapshot);
        let defined = prepared.defined.clone();
        let reason = match prepared.reason {
            reason if is_switched_off(&answer) => reason,
            reason => self.told(reason, is_whole),
        };
        let rendered = self.rendered(prepared, reason);
        let size = Size {
            tools: rendered.tools_json.len(),
            messages: rendered.messages_json.len(),
            answer: wire.encoded_len() + rendered.encoded_len() + FIELD,
        };
        size.within(message_max)?;
        wire.rendered = Some(rendered);
        Ok(Some(Completed { wire, answer, sent, defined }))
    }

    /// Counts the tokens that a request has beside the agent's own messages.
    fn sent(&self, prepared: &Prepared, snapshot: &Snapshot) -> SentTokens {
        let is_of_catalog = |tool: &&Value| {
            let name = tool.pointer("/function/name").or_else(|| tool.get("name"));
            name.and_then(Value::as_str).and_then(|name| snapshot.names.model_name(name)).is_some()
        };
        let added = self.own_tools.without(&prepared.tools);
        let (tools, search): (Vec<&Value>, Vec<&Value>) =
            added.into_iter().partition(is_of_catalog);
        let amid = self.messages.tokens_beside(&prepared.messages);
        let told: u64 = prepared.told.iter().map(|text| u64::from(tokens::count(text))).sum();
        SentTokens {
            own_tools: tokens_of(self.own_tools.values()),
            search: tokens_of(search) + told,
            tools: tokens_of(tools) + amid.saturating_sub(told),
        }
    }

    /// Prepares the request. A tool whose schema can't be parsed, such as one with a number beyond an `f64`, is left out.
    /// While deferral is switched off, nothing of it is sent.
    fn prepare(&self, mut catalog: Catalog<'_>, is_switched_off: bool) -> Result<Prepared, Error> {
        let prepare = if is_switched_off { prepare_undeferred } else { prepare };
        loop {
            let error = match prepare(&self.turn(&catalog.offer(self, &|name| catalog.find(name))))
            {
                Ok(mut prepared) => {
                    prepared.losses.append(&mut catalog.unreadable);
                    return Ok(prepared);
                }
                Err(error) => error,
            };
            if !catalog.leave_out(&error) {
                return Err(Error::internal(error));
            }
        }
    }

    /// Returns the reason to tell. That nothing is deferred has a reason of its own where the request brought it about.
    fn told(&self, reason: Reason, is_whole: bool) -> Reason {
        match reason {
            Reason::NothingDeferred if !self.has_search => Reason::NoSearch,
            Reason::NothingDeferred if !may_defer(self.own_tools.values()) => Reason::HostDefers,
            Reason::NothingDeferred if is_whole && self.strategy.is_none() => Reason::Cheapest,
            told => told,
        }
    }

    fn turn<'a>(&'a self, offer: &Offer<'a>) -> Turn<'a> {
        Turn {
            api: self.api,
            strategy: self.strategy,
            endpoint: self.endpoint(),
            offer: *offer,
            system_tokens: self.system_tokens,
            messages: self.messages.values(),
            ledger: &self.ledger,
            count: &tokens::count,
        }
    }

    fn rendered(&self, prepared: Prepared, reason: Reason) -> RenderedTools {
        let strategy = strategy_of(prepared.strategy);
        RenderedTools {
            tools_json: self.own_tools.texts_of(&prepared.tools),
            losses: prepared.losses.into_iter().map(loss_of).collect::<Vec<RenderLoss>>(),
            strategy: strategy.into(),
            reason: reason_of(reason).into(),
            reason_message: reason_message(reason, prepared.strategy),
            messages_json: self.messages.texts_of(&prepared.messages),
            ledger: prepared.ledger.to_json().to_string(),
            betas: prepared.betas.into_iter().map(str::to_owned).collect(),
        }
    }
}

/// Answer of Route whose request is to be put together.
pub(super) struct Routed {
    pub(super) wire: RouteResponse,
    pub(super) answer: Answer,
    /// True if the whole catalog was routed because the request needs it, whatever the mode of deferral is.
    pub(super) is_whole: bool,
}

/// Answer of Route with a whole request.
pub(super) struct Completed {
    pub(super) wire: RouteResponse,
    pub(super) answer: Answer,
    pub(super) sent: SentTokens,
    /// Names of the tools that the conversation has by additions.
    pub(super) defined: Vec<String>,
}

/// Tokens that a request has beside the agent's own messages.
pub(super) struct SentTokens {
    /// Tokens of the agent's own tools.
    pub(super) own_tools: u64,
    /// Tokens of the definitions of the search and of the envelope, and of what is told of tools that can be found.
    pub(super) search: u64,
    /// Tokens of the definitions of the catalog's tools, in `tools` and amid the conversation.
    pub(super) tools: u64,
}

/// Returns true if the operator switched deferral off for everybody.
pub(super) fn is_switched_off(answer: &Answer) -> bool {
    answer.deferral.decision.reason == DeferralReason::KillSwitch
}

/// Tools of one turn, from the snapshot that Route answered from.
struct Catalog<'a> {
    snapshot: &'a Snapshot,
    visibilities: Visibilities,
    always_on: Vec<Tool<'a>>,
    active: Vec<Tool<'a>>,
    deferred: usize,
    deferred_names: Vec<&'a str>,
    /// Their lines in the summary pool, if they are listed.
    deferred_lines: Vec<String>,
    /// Tokens of all tools' definitions, if they may be sent to save something.
    tokens: Option<u32>,
    /// Tools that are left out because their schemas can't be parsed.
    unreadable: Vec<Loss>,
}

impl<'a> Catalog<'a> {
    fn of(request: &PromptRequest, answer: &'a Answer, state: &AgentState) -> Self {
        let snapshot = &*answer.snapshot;
        let visibilities = Visibilities::of(snapshot, state);
        // Not by how a tool was found: from the second turn on, always-loaded and pinned tools are found as kept ones.
        let pinned = request.pinned.iter();
        let asked = pinned.filter_map(|name| snapshot.names.requested(name, &snapshot.tools));
        let by_catalog = snapshot.always_load.iter().chain(&snapshot.pinned).copied();
        let mut constant: Vec<u32> = by_catalog.chain(asked).collect();
        constant.sort_unstable();
        constant.dedup();
        let is_constant = |slot: u32| constant.binary_search(&slot).is_ok();
        let slots = answer.active.iter().map(|active| active.chosen.slot);
        let (mut always_on, active): (Vec<u32>, Vec<u32>) =
            slots.partition(|slot| is_constant(*slot));
        always_on.sort_unstable();
        let all = (0u32..).take(snapshot.tools.len());
        let shown = |slot: &u32| visibilities.tool(snapshot, *slot) != Visibility::Hidden;
        let deferred = all.filter(|slot| !is_constant(*slot)).filter(shown);
        let deferred: Vec<&tool::Tool> = deferred.map(|slot| snapshot.tool(slot)).collect();
        let summarised = deferred.iter().filter(|_| request.lists_summaries);
        let lines = summarised.map(|tool| pool_line(&tool.model_name, &tool.summary));
        let tools = |slots: Vec<u32>| {
            slots.into_iter().map(|slot| tool_of(snapshot.tool(slot))).collect::<Vec<_>>()
        };
        Self {
            always_on: tools(always_on),
            active: tools(active),
            deferred: answer.deferral.deferred_tools,
            deferred_names: deferred.iter().map(|tool| &*tool.model_name).collect(),
            deferred_lines: lines.map(|line| line.trim_end().to_owned()).collect(),
            tokens: sendable_tokens(answer),
            unreadable: Vec::new(),
            snapshot,
            visibilities,
        }
    }

    fn offer<'b>(
        &'b self,
        request: &'b PromptRequest,
        find: &'b dyn Fn(&str) -> Option<Tool<'b>>,
    ) -> Offer<'b> {
        Offer {
            own: request.own_tools.values(),
            always_on: &self.always_on,
            active: &self.active,
            deferred: self.deferred,
            catalog_tokens: self.tokens.filter(|_| !request.bounds_set),
            search: request.has_search,
            deferred_names: &self.deferred_names,
            listing: Listing { tokens: request.listing_tokens, lines: &self.deferred_lines },
            budget: request.active_budget,
            find,
        }
    }

    /// Leaves out the tool that could not be rendered. Returns false if it is left out already.
    fn leave_out(&mut self, error: &RenderError) -> bool {
        let (RenderError::NoSchema { tool } | RenderError::NotJson { tool, .. }) = error;
        if !self.is_readable(tool) {
            return false;
        }
        self.always_on.retain(|other| other.name != tool);
        self.active.retain(|other| other.name != tool);
        self.unreadable.push(Loss {
            tool: tool.clone(),
            pointer: String::new(),
            keyword: String::new(),
            note: format!("{error}: the tool is left out"),
        });
        true
    }

    fn is_readable(&self, name: &str) -> bool {
        !self.unreadable.iter().any(|loss| loss.tool == name)
    }

    /// Returns the current definition of a tool that this caller may see. A locked one is among them: the conversation has
    /// it already, and Gate refuses its calls.
    fn find(&self, name: &str) -> Option<Tool<'a>> {
        let slot = self.snapshot.names.model_name(name)?;
        let is_shown = self.visibilities.tool(self.snapshot, slot) != Visibility::Hidden;
        (is_shown && self.is_readable(name)).then(|| tool_of(self.snapshot.tool(slot)))
    }
}

/// Returns the tokens of all tools' definitions. `None` if all may not be sent to save something: somebody chose a mode of
/// deferral, the policy says how tools are chosen, some are of an untrusted server, whose number has a cap, or some have
/// preconditions. What these lock comes and goes with the turns, and with it the beginning of a request that has all tools.
fn sendable_tokens(answer: &Answer) -> Option<u32> {
    let Answer { deferral, snapshot, .. } = answer;
    let policy = &snapshot.policy;
    let is_chosen = deferral.decision.source != DeferralSource::Default
        || deferral.decision.reason == DeferralReason::Price
        || policy.defaults != Choosing::default()
        || policy.rules.iter().any(|rule| rule.choosing != Choosing::default());
    let has_untrusted = !snapshot.untrusted.is_clear();
    let has_conditions = !snapshot.requirements.conditions.is_empty();
    let tokens = u32::try_from(deferral.allowed_tokens).unwrap_or(u32::MAX);
    (!is_chosen && !has_untrusted && !has_conditions).then_some(tokens)
}

/// Sizes of an answer and of its parts, in bytes.
struct Size {
    tools: usize,
    messages: usize,
    answer: usize,
}

impl Size {
    fn within(&self, message_max: usize) -> Result<(), Error> {
        if self.answer <= message_max {
            return Ok(());
        }
        let Self { tools, messages, answer } = self;
        let instead = format!(
            "its messages have {messages} bytes and its tools {tools}, and neither are cut; shorten the conversation, \
             defer tools, or have the limit raised"
        );
        Err(Error::AnswerTooLarge {
            limit: LIMIT,
            maximum: message_max as u64,
            actual: *answer as u64,
            instead: instead.into(),
        })
    }
}

fn tool_of(tool: &tool::Tool) -> Tool<'_> {
    Tool {
        name: &tool.model_name,
        description: tool.definition.description(),
        input_schema_json: tool.definition.sent_schema(),
        output_schema_json: tool.definition.output_schema(),
        annotations_json: tool.definition.annotations(),
        signature: "",
    }
}

fn strategy_of(strategy: Strategy) -> PromptStrategy {
    match strategy {
        Strategy::Pass => PromptStrategy::Pass,
        Strategy::Native => PromptStrategy::Native,
        Strategy::Envelope => PromptStrategy::Envelope,
        Strategy::Cut => PromptStrategy::Cut,
    }
}

fn reason_of(reason: Reason) -> StrategyReason {
    match reason {
        Reason::Asked => StrategyReason::Asked,
        Reason::NothingDeferred => StrategyReason::NothingDeferred,
        Reason::HostDefers => StrategyReason::HostDefers,
        Reason::NoSearch => StrategyReason::NoSearch,
        Reason::NotTaken => StrategyReason::NotTaken,
        Reason::Kept => StrategyReason::Kept,
        Reason::Cheapest => StrategyReason::Cheapest,
    }
}

fn reason_message(reason: Reason, used: Strategy) -> String {
    let used = used.name();
    match reason {
        Reason::Asked => format!("{used} was asked for"),
        Reason::NothingDeferred => format!("{used}, because nothing is deferred"),
        Reason::HostDefers => {
            format!("{used}, because a search among the agent's own tools defers tools by itself")
        }
        Reason::NoSearch => {
            format!(
                "{used}, because nobody answers searches (render.search_tool): all tools are sent"
            )
        }
        Reason::Kept => {
            format!(
                "{used}, because earlier turns used it: another one would cost the cached prefix"
            )
        }
        Reason::NotTaken => {
            format!("{used}, because this API or model does not take what was asked for")
        }
        Reason::Cheapest => {
            format!(
                "{used}, because it costs least by the provider's prices of cached and other tokens"
            )
        }
    }
}
