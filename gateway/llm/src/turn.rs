//! The decision on a request: which tools it is sent with, asked of the routing plane within a deadline.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use toolgate_client::{Client, Error, ErrorReason, SearchAnswer, intent as v1_intent, v1};
use toolgate_core::deferral::Pattern;
use toolgate_core::tokens;
use toolgate_llm::envelope::is_envelope;
use toolgate_llm::history;
use toolgate_llm::render::{Tool, openai_responses};
use toolgate_llm::strategy::{
    Api, Endpoint, Ledger, Listing, Offer, Prepared, Reason, Strategy, Turn as Question, prepare,
};
use toolgate_llm::{SEARCH_TOOL_NAME, context_window};

use crate::answer::{Found, Results, Search};
use crate::bounded::Bounds;
use crate::chat::{self, Chat, PassReason, Unsendable, intent};
use crate::config::{Config, GateConfig, LlmConfig, StrategyConfig};
use crate::enclosed::Enclosing;
use crate::gate::{self, Call, Check, Judged};
use crate::kept::{Behind, Kept, OpenCall, PREVIOUS};
use crate::lease::Leases;
use crate::money::{Rewritten, Tally, Tariff};
use crate::provider::Provider;
use crate::raw;
use crate::refusals::{CalledModel, Refusals};
use crate::remembered::{Form, Remembered, State};
use crate::responses::{self, are_searches, are_taken_back, first_call, open_call};
use crate::savings::{Account, Savings};
use crate::switch::Switch;
use crate::thoughts::{Noted, Said, Thoughts};
use crate::toolset::{DeferredTool, Namespaced, Toolset, Toolsets};

/// Searches of one turn that are answered.
const SEARCHES_MAX: u32 = 3;

/// Reason for which a request is sent without deferral while the operator has switched that off.
pub(crate) const SWITCHED_OFF: PassReason = "switched-off";

/// Names of servers that a model is told that searches for nothing.
const SERVERS_SHOWN_MAX: usize = 20;

/// Time from a turn's first search or refused call on for what the host does not see of it.
const HIDDEN_MAX: Duration = Duration::from_secs(8);

/// Most bytes of a model's name that the plane takes.
const MODEL_MAX: usize = 256;

/// Answers of one turn that are taken back because a call in them was refused.
const REFUSALS_MAX: u32 = 3;

/// Answers whose calls are checked at a time without anybody waiting for it. Those of more are counted as not checked.
const CHECKS_MAX: usize = 64;

/// Decides on requests. Cloning is cheap.
#[derive(Debug, Clone)]
pub(crate) struct Decider {
    plane: Client,
    config: Arc<Config>,
    toolsets: Toolsets,
    remembered: Arc<Remembered>,
    kept: Arc<Kept>,
    thoughts: Arc<Thoughts>,
    refusals: Arc<Refusals>,
    switch: Arc<Switch>,
    savings: Savings,
    checks: Arc<Semaphore>,
}

/// Host that a request is of.
#[derive(Clone, Copy)]
pub(crate) struct Owner<'a> {
    pub(crate) tenant: &'a Arc<str>,
    /// Credentials for the provider, which are hashed and not kept.
    pub(crate) keys: &'a [&'a [u8]],
}

/// Conversation that the plane is asked for.
#[derive(Clone, Copy)]
struct Conversation<'a> {
    owner: Owner<'a>,
    tools: &'a [DeferredTool],
    /// Keys of its beginnings.
    keys: &'a [u64],
}

/// Turn whose answers the provider keeps.
pub(crate) struct StoredTurn {
    pub(crate) behind: Behind,
    /// Text of the tools that the answers tell the host, if it is remembered.
    pub(crate) tools: Option<Arc<str>>,
}

/// Answer that is taken back, because a call in it was refused.
#[derive(Default)]
pub(crate) struct Refused<'a> {
    /// What the model said, as messages.
    pub(crate) said: Vec<Value>,
    /// Number of the items of it, where they are items, that the host may have seen.
    pub(crate) seen: usize,
    pub(crate) calls: &'a [Call],
    pub(crate) judged: &'a [Judged],
    pub(crate) searches: &'a [Search],
}

/// Answer that has ended, before it is decided how the turn goes on behind it.
pub(crate) struct Unsettled<'a> {
    /// IDs of the turn's answers up to this one.
    pub(crate) ids: &'a [String],
    /// Items of it, as the model wrote them.
    pub(crate) said: &'a [Value],
    pub(crate) searches: &'a [Search],
    /// True if the host has got none of its calls.
    pub(crate) is_withheld: bool,
}

/// Record of an answer behind which its host leaves.
pub(crate) struct Left {
    /// Conversation that the host may go on with; `None` if the provider does not keep it.
    behind: Option<Behind>,
    /// Thoughts that the host has seen without all that they led to.
    thoughts: Vec<Noted>,
}

/// Request as it came, but for tools that are withheld.
pub(crate) struct Thinned {
    pub(crate) text: String,
    /// Number of the tools.
    pub(crate) withheld: usize,
}

impl Thinned {
    fn of(api: Api, text: &str, withheld: &HashSet<String>) -> Result<Self, Unsendable> {
        Ok(Self { text: chat::without(api, text, withheld)?, withheld: withheld.len() })
    }
}

/// Turn whose tools were deferred.
#[derive(Debug)]
pub(crate) struct Turn {
    pub(crate) chat: Chat,
    decider: Decider,
    tenant: Arc<str>,
    account: Account,
    toolset: Arc<Toolset>,
    keys: Vec<u64>,
    /// Ledger that the turn began with, then that of its newest request.
    ledger: Ledger,
    /// State to find again by the host's messages.
    state: State,
    /// Names of the tools to describe.
    active: Vec<String>,
    /// Number of them that the newest request describes.
    told: usize,
    /// Names of the tools that the provider's own history of the conversation describes.
    described: Vec<String>,
    /// Calls that the host does not know of, and that have no answer.
    open_calls: Vec<OpenCall>,
    /// Hash of the host's credentials.
    owner: u64,
    /// Messages behind the host's: searches, and their answers.
    further: Vec<Value>,
    /// Strategy to use; `None` for the cheapest one.
    asked: Option<Strategy>,
    /// True if the conversation takes no tools amid it, or the provider refused them with this model.
    without_native: bool,
    /// Strategy of the newest request, and the betas that it needs.
    strategy: Strategy,
    betas: Vec<&'static str>,
    /// Computed tokens of what the first request has in the place of the deferred tools.
    instead: u64,
    /// Costs in money; `None` where no price is known.
    tally: Option<Tally>,
    searches: u32,
    /// Time of the first search or refused call.
    hidden_since: Option<Instant>,
    /// Answers that were taken back.
    refusals: u32,
    /// Names of tools whose schema the model was told in a refusal.
    told_schemas: Vec<String>,
}

impl Decider {
    /// Returns a decider that asks a plane. With a lease, other processes ask it too.
    pub(crate) fn new(
        plane: Client,
        leases: Option<Arc<Leases>>,
        config: &Config,
        savings: Savings,
    ) -> Self {
        let bounds = Bounds { entries: config.llm.max_toolsets, bytes: config.llm.toolset_memory };
        let toolsets = Toolsets::new(plane.clone(), leases, bounds);
        let config = Arc::new(config.clone());
        Self {
            plane,
            config,
            toolsets,
            remembered: Arc::default(),
            kept: Arc::default(),
            thoughts: Arc::default(),
            refusals: Arc::default(),
            switch: Arc::default(),
            savings,
            checks: Arc::new(Semaphore::new(CHECKS_MAX)),
        }
    }

    /// Returns true if the operator of the routing plane has switched deferral off.
    pub(crate) async fn is_switched_off(&self) -> bool {
        let settings = self.settings();
        let is_first = !self.switch.was_told();
        let limit =
            if is_first { settings.first_decision_limit() } else { settings.decision_timeout };
        self.switch.is_off(&self.plane, limit).await
    }

    fn settings(&self) -> &LlmConfig {
        &self.config.llm
    }

    /// Returns a turn and the text of its request, or the reason for which it is sent as it came.
    pub(crate) async fn decide(
        &self,
        api: Api,
        path: &str,
        text: &str,
        owner: Owner<'_>,
    ) -> Result<(Turn, String), PassReason> {
        let begun = Instant::now();
        if self.settings().strategy == StrategyConfig::Pass {
            return Err("strategy");
        }
        if self.switch.is_known_off() {
            return Err(SWITCHED_OFF);
        }
        let chat = caught(|| Chat::read(api, path, text.to_owned(), self.settings()))?;
        if self.refusals.has(&CalledModel::new(owner.tenant, api, &chat.model)) {
            return Err("refused-before");
        }
        let is_known = self.toolsets.knows(owner.tenant, &chat.deferred);
        let limit = if is_known {
            self.settings().decision_timeout
        } else {
            self.settings().first_decision_limit()
        };
        let until = begun + limit;
        let routed = AssertUnwindSafe(self.route(chat, owner, limit)).catch_unwind();
        let routed = tokio::time::timeout_at(until, routed).await;
        let routed = routed.map_err(|_| if is_known { "late" } else { "new-tools" })?;
        let mut turn = routed.unwrap_or_else(|_| Err(panicked()))?;
        let body = caught(|| turn.request())?;
        if Instant::now() > until {
            return Err("late");
        }
        turn.instead = turn.instead_tokens(&body);
        turn.take_form();
        turn.keep();
        Ok((turn, body))
    }

    /// Returns a request as it came, without the tools that the plane quarantined. `None` if it is to be sent with all of them:
    /// none is known to be quarantined, or the operator wants everything sent as it comes.
    ///
    /// # Errors
    /// [`Unsendable`] if the provider takes no such request, or the tools could not be taken out.
    pub(crate) fn without_quarantined(
        &self,
        enclosing: Enclosing,
        text: &str,
        tenant: &Arc<str>,
    ) -> Result<Option<Thinned>, Unsendable> {
        if !self.withholds(tenant) {
            return Ok(None);
        }
        let api = enclosing.api;
        let thin = |chat: &str| {
            self.thinned(api, chat, tenant, || chat::deferred(api, chat, self.settings()))
        };
        closed(|| enclosing.thinned(text, thin)).flatten()
    }

    /// Returns true if some tools of a tenant's are withheld from its requests.
    pub(crate) fn withholds(&self, tenant: &str) -> bool {
        self.settings().strategy != StrategyConfig::Pass && self.toolsets.withholds(tenant)
    }

    /// Returns a request without the tools of a set that are quarantined, where `read` gives the set.
    fn thinned(
        &self,
        api: Api,
        text: &str,
        tenant: &Arc<str>,
        read: impl FnOnce() -> Result<Vec<DeferredTool>, PassReason>,
    ) -> Result<Option<Thinned>, Unsendable> {
        let thinned = closed(|| {
            // One that can't be read is sent as it came.
            let deferred = read().ok()?;
            let withheld = self.toolsets.withheld(tenant, &deferred)?;
            Some(Thinned::of(api, text, &withheld))
        });
        thinned?.transpose()
    }

    async fn route(
        &self,
        mut chat: Chat,
        owner: Owner<'_>,
        limit: Duration,
    ) -> Result<Turn, PassReason> {
        let host = self.remembered.hash((owner.tenant, owner.keys));
        let behind = self.behind(&chat, host)?;
        let text = intent(&chat.messages);
        if text.is_none() && behind.is_none() {
            return Err("no-request");
        }
        let all = chat.deferred.clone();
        let tenant = Arc::clone(owner.tenant);
        let toolset = self.toolsets.find(&tenant, &all).await?;
        chat.withhold(&toolset.withheld);
        chat.keep(|name| !toolset.has(name));
        if chat.deferred.is_empty() {
            return Err("nothing-to-defer");
        }
        let keys = match &behind {
            // Of a conversation that the provider has, the request is no beginning.
            Some(_) => Vec::new(),
            None => {
                let told_by = (owner.keys, chat.api.name(), &chat.model, &toolset.tenant);
                self.remembered.keys(self.remembered.hash(told_by), &chat.messages)
            }
        };
        let state = self.remembered.find(&keys);
        let is_auto = self.settings().strategy == StrategyConfig::Auto;
        if is_auto && state.is_passed {
            self.remembered.keep(&tenant, &keys, state);
            return Err("cheaper");
        }
        let request = v1::RouteRequest {
            active_set_handle: state.handle.clone(),
            ..question(&toolset, &chat)
        };
        let conversation = Conversation { owner, tools: &all, keys: &keys };
        // Without a word of the user's the tools of the turn are there already.
        let routed = match text {
            Some(text) => {
                let request = v1::RouteRequest { intents: vec![v1_intent(text)], ..request };
                self.routed(request, limit, conversation).await?
            }
            None if self.is_switched_off().await => return Err(SWITCHED_OFF),
            None => v1::RouteResponse::default(),
        };
        let state = State { handle: routed.active_set_handle, ..state };
        let mut turn = Turn { keys, owner: host, ..self.begin(chat, tenant, toolset, state) };
        if let Some(behind) = behind {
            turn.go_on_behind(behind);
        }
        turn.activate(&routed.active_tools);
        Ok(turn)
    }

    /// Returns a turn that nothing is known of but its conversation's state.
    fn begin(&self, chat: Chat, tenant: Arc<str>, toolset: Arc<Toolset>, state: State) -> Turn {
        let model = CalledModel::new(&tenant, chat.api, &chat.model);
        let without_native = !takes_native(&chat) || self.refusals.has_native(&model);
        Turn {
            account: self.savings.account(&tenant, chat.api, &chat.model),
            asked: asked_strategy(self.settings().strategy, without_native),
            without_native,
            tenant,
            chat,
            strategy: Strategy::Envelope,
            betas: Vec::new(),
            instead: 0,
            tally: None,
            decider: self.clone(),
            toolset,
            keys: Vec::new(),
            ledger: state.ledger.clone(),
            state,
            active: Vec::new(),
            told: 0,
            described: Vec::new(),
            open_calls: Vec::new(),
            owner: 0,
            further: Vec::new(),
            searches: 0,
            hidden_since: None,
            refusals: 0,
            told_schemas: Vec::new(),
        }
    }

    /// Returns what is behind the answer that a request goes on from; nothing if it names none.
    fn behind(&self, chat: &Chat, owner: u64) -> Result<Option<Behind>, PassReason> {
        let Some(id) = &chat.previous else { return Ok(None) };
        self.kept.find(owner, id).map(Some).ok_or("unknown-history")
    }

    /// Returns the text of a request as the provider takes it behind hidden searches: with the answer that it goes on from, without
    /// thoughts that led to nothing that the host has seen, and with the searches that others led to. `None` if it is as it must be.
    pub(crate) fn followed(&self, api: Api, text: &str, owner: Owner<'_>) -> Option<String> {
        if api != Api::OpenAiResponses {
            return None;
        }
        let host = self.remembered.hash((owner.tenant, owner.keys));
        let going_on = || {
            let id: String = serde_json::from_str(raw::field(text, PREVIOUS)?).ok()?;
            self.kept.find(host, &id)?.request(text)
        };
        let going_on = going_on();
        let restored = self.thoughts.restored(host, going_on.as_deref().unwrap_or(text));
        restored.or(going_on)
    }

    /// Returns what is behind an answer of OpenAI's that a host names, and the text of the tools that it tells the host. `None` if
    /// the answer is not known, and was not rewritten.
    pub(crate) fn stored(&self, id: &str, owner: Owner<'_>) -> Option<StoredTurn> {
        let host = self.remembered.hash((owner.tenant, owner.keys));
        let behind = self.kept.find(host, id)?;
        Some(StoredTurn { behind, tools: self.kept.tools(host, id) })
    }

    /// Asks the plane, and forgets a set of tools or the handles of a conversation that it does not know any more.
    async fn routed(
        &self,
        request: v1::RouteRequest,
        limit: Duration,
        conversation: Conversation<'_>,
    ) -> Result<v1::RouteResponse, PassReason> {
        let Conversation { owner, tools, keys } = conversation;
        let routed = self.plane.with_deadline(limit).route(request).await;
        if let Ok(routed) = &routed {
            self.switch.note(routed);
            refuse_undeferred(routed)?;
        }
        let routed = routed.map_err(|error| {
            tracing::warn!(%error, "the routing plane gave no answer; the request is sent as it came");
            if is_lost(&error) {
                self.toolsets.drop(owner.tenant, tools);
            }
            if error.reason() == Some(ErrorReason::HandleInvalid) {
                self.remembered.forget_handles(keys);
            }
            "plane-failed"
        })?;
        if routed.accounting.as_ref().is_none_or(|counted| counted.full_catalog_tokens == 0) {
            tracing::warn!("the routing plane lost a set of tools; it is registered anew");
            self.toolsets.drop(owner.tenant, tools);
            return Err("plane-failed");
        }
        Ok(routed)
    }

    /// Takes what was registered out of the plane.
    pub(crate) async fn close(&self) {
        tokio::join!(self.switch.close(&self.plane), self.toolsets.forget_all());
    }
}

/// Returns the reason for which nothing is deferred, if the plane says so.
fn refuse_undeferred(routed: &v1::RouteResponse) -> Result<(), PassReason> {
    let Some(decided) = &routed.deferral else { return Ok(()) };
    match decided.reason() {
        v1::DeferralReason::KillSwitch => Err(SWITCHED_OFF),
        _ if decided.deferred => Ok(()),
        _ => Err("not-deferred"),
    }
}

/// Returns true if the plane does not know a set of tools any more. Other errors pass: a set that is registered anew would
/// add to what a busy plane has to do.
fn is_lost(error: &Error) -> bool {
    let lost =
        [ErrorReason::TenantNotFound, ErrorReason::ServerNotFound, ErrorReason::RevisionNotReached];
    error.reason().is_some_and(|reason| lost.contains(&reason))
}

/// Runs what reads and writes requests. If it panics, the request is sent as it came.
pub(crate) fn caught<T>(work: impl FnOnce() -> Result<T, PassReason>) -> Result<T, PassReason> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(panicked()))
}

/// Runs what takes quarantined tools out of a request. If it panics, the request is not sent, because it may have some.
fn closed<T>(work: impl FnOnce() -> T) -> Result<T, Unsendable> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| {
        tracing::error!("taking quarantined tools out of a request failed; it is not sent");
        Unsendable::Failed
    })
}

fn panicked() -> PassReason {
    tracing::error!("reading a request failed; it is sent as it came");
    "panic"
}

/// Returns what the plane is asked for the next request of a conversation, without the user's words. Whether tools are
/// deferred at all is left to the plane's settings.
fn question(toolset: &Toolset, chat: &Chat) -> v1::RouteRequest {
    let used = used(&chat.messages, toolset);
    let state = v1::AgentState { discovered_tools: used, ..Default::default() };
    let options = v1::RouteOptions {
        detail: v1::Detail::References.into(),
        model: chat.model[..chat.model.floor_char_boundary(MODEL_MAX)].to_owned(),
        context_window: context_window(&chat.model),
        ..Default::default()
    };
    v1::RouteRequest {
        tenant: toolset.tenant.clone(),
        min_revision: toolset.revision,
        state: Some(state),
        options: Some(options),
        ..Default::default()
    }
}

/// Returns the plane's names of the tools that the conversation used.
fn used(messages: &[Value], toolset: &Toolset) -> Vec<String> {
    let calls = history::scan(messages, None).calls;
    let mut names: Vec<String> = calls
        .iter()
        .filter(|call| !is_envelope(&call.tool))
        .filter_map(|call| toolset.of_plane(&call.tool))
        .map(str::to_owned)
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

impl Turn {
    /// Adds tools that the plane chose or found.
    fn activate(&mut self, tools: &[v1::ActiveTool]) {
        for tool in tools {
            let Some(name) = self.toolset.name(&tool.model_name) else { continue };
            if !self.active.iter().chain(&self.described).any(|known| known == name) {
                self.active.push(name.to_owned());
            }
        }
    }

    /// Returns the text of the turn's next request.
    fn request(&mut self) -> Result<String, PassReason> {
        let messages: Vec<Value> =
            self.chat.messages.iter().chain(&self.further).cloned().collect();
        let mut prepared = self.prepared(&messages)?;
        if self.asked.is_none() && self.is_kept() {
            // Tools that stand in `tools` are not in the conversation that the provider keeps.
            self.asked = Some(Strategy::Envelope);
            prepared = self.prepared(&messages)?;
        }
        if self.further.is_empty() {
            self.asked = Some(prepared.strategy);
        }
        let text = self.chat.with(&prepared.tools, &prepared.messages, &self.further);
        if self.further.is_empty() {
            self.state.ledger = prepared.ledger.clone();
        }
        self.ledger = prepared.ledger;
        self.told = self.active.len();
        self.strategy = prepared.strategy;
        self.betas = prepared.betas;
        Ok(text)
    }

    fn prepared(&self, messages: &[Value]) -> Result<Prepared, PassReason> {
        let active: Vec<Tool<'_>> =
            self.active.iter().filter_map(|name| self.toolset.tool(name)).collect();
        let names: Vec<&str> = self.toolset.tools.iter().map(|tool| tool.name.as_str()).collect();
        let question = Question {
            api: self.chat.api,
            strategy: self.asked,
            endpoint: self.endpoint(),
            offer: Offer {
                own: &self.chat.own,
                always_on: &[],
                active: &active,
                deferred: self.chat.deferred.len(),
                catalog_tokens: Some(self.deferred_tokens()),
                search: true,
                deferred_names: &names,
                listing: Listing::default(),
                budget: None,
                find: &|name| self.toolset.tool(name),
            },
            system_tokens: tokens_of_bytes(self.chat.system_bytes),
            messages,
            ledger: &self.ledger,
            count: &estimate,
        };
        let prepared = prepare(&question).map_err(|_| "schema")?;
        if prepared.strategy == Strategy::Pass && prepared.reason == Reason::Cheapest {
            let state = State { is_passed: true, ..State::default() };
            self.decider.remembered.keep(&self.tenant, &self.keys, state);
            return Err("cheaper");
        }
        if prepared.missing > 0 || prepared.strategy == Strategy::Pass {
            return Err("not-rewritten");
        }
        Ok(prepared)
    }

    fn endpoint(&self) -> Endpoint<'_> {
        let provider = match self.chat.api {
            Api::Anthropic => Provider::Anthropic,
            Api::OpenAiChat | Api::OpenAiResponses => Provider::OpenAi,
            Api::Gemini => Provider::Gemini,
        };
        let denied = &self.decider.settings().no_native_models;
        let denied = denied.iter().any(|text| Pattern::new(text).is_within(&self.chat.model));
        Endpoint {
            model: &self.chat.model,
            base_url: self.decider.config.upstream.of(provider).as_str(),
            denied: denied.then_some(&["*"][..]),
            without_native: self.without_native,
        }
    }

    /// Returns the tokens of the deferred definitions by the measure of the decision.
    fn deferred_tokens(&self) -> u32 {
        let texts = self.chat.deferred.iter().map(|tool| tool.text.as_str());
        texts.map(estimate).fold(0, u32::saturating_add)
    }

    /// Returns the cl100k tokens of what a request has beside the host's own text. The host's definitions that are not in
    /// it count for nothing here.
    fn instead_tokens(&self, body: &str) -> u64 {
        let kept = self.chat.bytes_kept();
        self.tokens_in(body.len().saturating_sub(kept))
    }

    /// Returns the cl100k tokens of so many bytes of a request, at the rate of the definitions. To count them would take longer than
    /// the decision.
    pub(crate) fn tokens_in(&self, bytes: usize) -> u64 {
        let share = self.chat.deferred.iter().map(|tool| tool.text.len()).sum::<usize>().max(1);
        let tokens = self.toolset.tokens.max(1) as usize;
        u64::try_from(bytes.saturating_mul(tokens) / share).unwrap_or(u64::MAX)
    }

    /// Keeps the turn's state for the next one.
    fn keep(&self) {
        self.decider.remembered.keep(&self.tenant, &self.keys, self.state.clone());
    }

    /// Returns the API of the request.
    pub(crate) fn api(&self) -> Api {
        self.chat.api
    }

    /// Returns what an answer's header says of the request.
    pub(crate) fn note(&self) -> String {
        let deferred = self.chat.deferred.len();
        let note =
            format!("{}; deferred={deferred}; shown={}", self.strategy.name(), self.active.len());
        with_withheld(note, self.withheld())
    }

    /// Returns the number of tools that are withheld from the request.
    pub(crate) fn withheld(&self) -> usize {
        self.toolset.withheld.len()
    }

    /// Returns the request as the host sent it, without the tools that are withheld. `None` if none is.
    ///
    /// # Errors
    /// [`Unsendable`] if the provider takes no such request, or the tools could not be taken out.
    pub(crate) fn original(&self) -> Result<Option<String>, Unsendable> {
        let withheld = &self.toolset.withheld;
        if withheld.is_empty() {
            return Ok(None);
        }
        let left = closed(|| self.chat.without(withheld)).flatten();
        left.map(Some).inspect_err(|unsendable| {
            self.decider.savings.metrics().refused(unsendable.name());
        })
    }

    /// Returns the betas that the request needs beside the host's, for the header `anthropic-beta`.
    pub(crate) fn betas(&self) -> &[&'static str] {
        &self.betas
    }

    /// Says that the provider refused the request though it takes the original.
    pub(crate) fn refused(&self) {
        let Self { tenant, chat, strategy, .. } = self;
        let instead = match strategy {
            Strategy::Native => "have no tools added amid the conversation",
            _ => "are sent as they come",
        };
        tracing::warn!(
            model = chat.model,
            strategy = strategy.name(),
            "the provider refused a request whose tools were deferred; requests of this model {instead} for an hour"
        );
        self.decider.refusals.note(&CalledModel::new(tenant, chat.api, &chat.model), *strategy);
    }

    /// Notes that the provider took the request, so that its deferred tools are saved.
    pub(crate) fn sent(&self) {
        self.account.rewritten(self.strategy, self.toolset.tokens, self.instead);
    }

    /// Returns the account of the request.
    pub(crate) fn account(&self) -> &Account {
        &self.account
    }

    /// Returns the name of the strategy.
    pub(crate) fn strategy(&self) -> &'static str {
        self.strategy.name()
    }

    /// Remembers what is behind the turn's answers, which have these IDs. The host knows the first.
    pub(crate) fn answered(&self, ids: &[String]) {
        if let Some(behind) = self.behind(ids) {
            self.keep_behind(&behind);
        }
    }

    fn keep_behind(&self, behind: &Behind) {
        let shown = self.chat.shown_tools();
        self.decider.kept.keep(&self.tenant, self.owner, behind, &shown);
    }

    /// Returns what is behind the turn's answers, which have these IDs. `None` if the provider does not keep them.
    fn behind(&self, ids: &[String]) -> Option<Behind> {
        if !self.is_kept() || ids.is_empty() {
            return None;
        }
        // What stands in `tools` is in no later request by itself.
        let told = if self.strategy == Strategy::Cut { 0 } else { self.told };
        let (told, found) = self.active.split_at(told);
        Some(Behind {
            ids: ids.to_vec(),
            described: self.described.iter().chain(told).cloned().collect(),
            found: found.to_vec(),
            open_calls: self.open_calls.clone(),
            names: self.chat.names.clone(),
        })
    }

    /// Returns what is to be remembered of an answer if its host leaves before the turn has gone on behind it.
    pub(crate) fn left(&self, unsettled: &Unsettled<'_>) -> Left {
        let Unsettled { ids, said, searches, is_withheld } = *unsettled;
        let thoughts = if is_withheld {
            self.thoughts_before(said, first_call(said), are_taken_back)
        } else {
            self.thoughts_before(said, said.len(), are_searches)
        };
        let behind = self.behind(ids).map(|mut behind| {
            behind.open_calls.extend(searches.iter().map(Search::open));
            if is_withheld {
                behind.open_calls.extend(said.iter().filter_map(open_call));
            }
            behind
        });
        Left { behind, thoughts }
    }

    /// Remembers an answer behind which the host has left.
    pub(crate) fn leave_behind(&self, left: &Left) {
        self.hide(&left.thoughts);
        if let Some(behind) = &left.behind {
            self.keep_behind(behind);
        }
    }

    /// Returns true if the provider keeps the conversation for requests that go on from its answers.
    fn is_kept(&self) -> bool {
        self.chat.is_kept && self.chat.api == Api::OpenAiResponses
    }

    /// Takes what is known of the answer that the request goes on from.
    fn go_on_behind(&mut self, behind: Behind) {
        self.active = behind.found;
        self.described = behind.described;
        // Sending all tools now would leave the model with calls of an envelope that is gone.
        self.asked = self.asked.or(Some(Strategy::Envelope));
    }

    /// Notes the usage of an answer.
    pub(crate) fn used(&self, usage: &Value) {
        self.account.used(usage);
    }

    /// Notes what the usage of one answer costs.
    pub(crate) fn pay(&mut self, usage: &Value) {
        if let Some(cost) = self.tally.as_mut().and_then(|tally| tally.pay(usage)) {
            self.account.cost(&cost);
        }
    }

    /// Takes the form of the turn's first request for that of the conversation, and begins to count its costs.
    fn take_form(&mut self) {
        let before = self.state.form;
        // All other strategies begin each request of a conversation with the same tools.
        let is_cut = self.strategy == Strategy::Cut;
        let names = if is_cut { self.active.as_slice() } else { &[] };
        let beginning = self.decider.remembered.hash((self.strategy.name(), names));
        let messages = self.chat.messages.len();
        self.state.form = Form { messages, beginning, instead: self.instead };
        let Some(price) = self.decider.settings().prices.of(&self.chat.model) else { return };
        let answered = self.chat.answered_at();
        let is_stored = self.chat.previous.is_some();
        let is_next = answered.is_some_and(|at| at == before.messages);
        let new = answered.or(is_stored.then_some(0));
        let is_continued = is_stored || (is_next && before.beginning == beginning);
        let rewritten = Rewritten {
            deferred: self.toolset.tokens,
            instead: self.instead,
            instead_before: if is_continued { before.instead } else { 0 },
            new: new.map(|at| self.tokens_in(self.chat.bytes_from(at))),
            is_continued,
        };
        let tariff = Tariff::new(self.chat.api, &self.chat.model, price);
        self.tally = Some(Tally::new(tariff, rewritten));
    }

    /// Finds the tools of a turn's searches without asking the model again: the next request has them. The host waits
    /// for its answer meanwhile, so that it takes no longer than a decision.
    pub(crate) async fn look_up(&mut self, searches: &[Search]) {
        let limit = self.decider.settings().first_decision_limit();
        let all = async {
            for search in searches.iter().take(SEARCHES_MAX as usize) {
                self.answer(search).await;
            }
        };
        if tokio::time::timeout(limit, all).await.is_err() {
            tracing::warn!("a search beside calls of the host's was not answered in time");
        }
    }

    /// Answers searches, and returns the text of the request that the model goes on with. `None` if enough was searched.
    pub(crate) async fn go_on(&mut self, said: Vec<Value>, searches: &[Search]) -> Option<String> {
        // After the last answer, which says that it is the last, nothing is asked again.
        if self.searches > SEARCHES_MAX {
            self.leave(searches);
            return None;
        }
        let mut found = Vec::with_capacity(searches.len());
        for search in searches {
            found.push(self.answer(search).await);
        }
        let results = Results { searches, found: &found, ..Results::default() };
        self.say(said, &results);
        self.account.searched(searches.len() as u64);
        let request = caught(|| self.request()).ok();
        if request.is_none() {
            self.leave(searches);
        }
        request
    }

    /// Notes thoughts of an answer that led to hidden searches: the host may have seen them.
    pub(crate) fn note_searched(&self, said: &[Value]) {
        self.hide(&self.thoughts_before(said, said.len(), are_searches));
    }

    /// Returns the thoughts in an answer that the host sees without all that they led to, where it sees the answer up to an item.
    fn thoughts_before(
        &self,
        items: &[Value],
        seen: usize,
        is_hidden: fn(&[Value]) -> bool,
    ) -> Vec<Noted> {
        let said = Said { items, is_kept: self.chat.is_kept, seen, is_hidden };
        match self.chat.api {
            Api::OpenAiResponses => self.decider.thoughts.noted(self.owner, said),
            Api::Anthropic | Api::OpenAiChat | Api::Gemini => Vec::new(),
        }
    }

    fn hide(&self, thoughts: &[Noted]) {
        self.decider.thoughts.note(&self.tenant, thoughts);
    }

    /// Adds what the model said and the results of its calls to the messages behind the host's.
    fn say(&mut self, said: Vec<Value>, results: &Results<'_>) {
        let results = results.messages(self.chat.api, &said);
        self.further.extend(match self.chat.api {
            Api::OpenAiResponses => responses::sent_back(&said, self.chat.is_kept),
            Api::Anthropic | Api::OpenAiChat | Api::Gemini => said,
        });
        self.further.extend(results);
    }

    /// Notes searches that have no answer in what the provider keeps.
    pub(crate) fn leave(&mut self, searches: &[Search]) {
        self.open_calls.extend(searches.iter().map(Search::open));
    }

    /// Returns true if calls are held until they are judged.
    pub(crate) fn holds_calls(&self) -> bool {
        let is_enforcing = self.decider.settings().gate == GateConfig::Enforce;
        is_enforcing && self.refusals < REFUSALS_MAX
    }

    /// Judges the calls of an answer.
    pub(crate) async fn judge(&self, calls: &[Call]) -> Vec<Judged> {
        let judged = self.check().judge(calls).await;
        note(&self.account, &judged);
        judged
    }

    /// Counts what Gate says of an answer's calls. Nobody waits for it. `None` for calls that could not be kept.
    pub(crate) fn observe(&self, calls: Option<Vec<Call>>) {
        if self.decider.settings().gate == GateConfig::Off {
            return;
        }
        let Some(calls) = calls else { return self.account.gated(gate::UNCHECKED) };
        let Ok(turn) = Arc::clone(&self.decider.checks).try_acquire_owned() else {
            return self.account.gated(gate::UNCHECKED);
        };
        if calls.is_empty() {
            return;
        }
        let toolset = Arc::clone(&self.toolset);
        let plane = self.decider.plane.clone();
        let account = self.account.clone();
        let own = self.own_names();
        let shown = self.shown_names();
        let search = self.search_name();
        tokio::spawn(async move {
            let check = Check { plane: &plane, toolset: &toolset, own, shown, search };
            note(&account, &check.judge(&calls).await);
            drop(turn);
        });
    }

    /// Takes an answer back, because a call in it was refused. Returns the text of the request that tells the model.
    pub(crate) async fn refuse(&mut self, refused: Refused<'_>) -> Option<String> {
        let Refused { said, seen, calls, judged, searches } = refused;
        self.refusals += 1;
        self.begin_hidden();
        let taken_back = self.thoughts_before(&said, seen, are_taken_back);
        let searched = self.thoughts_before(&said, said.len(), are_searches);
        let mut found = Vec::with_capacity(searches.len());
        for search in searches {
            found.push(self.answer(search).await);
        }
        let told: Vec<String> = gate::told(judged).collect();
        let described = calls.iter().zip(judged).filter(|(_, judged)| judged.has_schema);
        self.told_schemas.extend(described.map(|(call, _)| call.name.clone()));
        self.say(said, &Results { searches, found: &found, calls, told: &told });
        self.account.told_refusals();
        let request = caught(|| self.request()).ok();
        if request.is_some() {
            self.hide(&taken_back);
        } else {
            // The calls go to the host, with the thoughts that led to them.
            self.hide(&searched);
            self.leave(searches);
        }
        request
    }

    fn check(&self) -> Check<'_> {
        Check {
            plane: &self.decider.plane,
            toolset: &self.toolset,
            own: self.own_names(),
            shown: self.shown_names(),
            search: self.search_name(),
        }
    }

    /// Returns the name of the search as the model has it.
    fn search_name(&self) -> &'static str {
        let is_own = self.strategy == Strategy::Native && self.chat.api == Api::OpenAiResponses;
        if is_own { "tool_search" } else { SEARCH_TOOL_NAME }
    }

    fn own_names(&self) -> HashSet<String> {
        self.chat.own.iter().flat_map(names_of).collect()
    }

    fn shown_names(&self) -> HashSet<String> {
        let described = self.active.iter().chain(&self.described).map(String::as_str);
        let told = self.told_schemas.iter().map(String::as_str);
        described.chain(told).chain(self.ledger.names()).map(str::to_owned).collect()
    }

    /// Returns the time that is left for what the host does not see of the turn.
    pub(crate) fn time_left(&self) -> Duration {
        let spent = self.hidden_since.map_or(Duration::ZERO, |since| since.elapsed());
        HIDDEN_MAX.saturating_sub(spent)
    }

    /// Begins the time for what the host does not see, if it has not begun. Returns what is left of it.
    fn begin_hidden(&mut self) -> Duration {
        self.hidden_since.get_or_insert_with(Instant::now);
        self.time_left()
    }

    async fn answer(&mut self, search: &Search) -> Found {
        self.searches += 1;
        let left = self.begin_hidden();
        if self.searches > SEARCHES_MAX || left.is_zero() {
            self.searches = SEARCHES_MAX + 1;
            return refusal("enough_searches", "Go on with the tools that you have.");
        }
        if is_blank(&search.arguments) {
            return refusal("arguments_invalid", &self.how_to_search());
        }
        let request = v1::SearchToolsRequest {
            tenant: self.toolset.tenant.clone(),
            active_set_handle: self.state.handle.clone(),
            min_revision: self.toolset.revision,
            ..Default::default()
        };
        let plane = self.decider.plane.with_deadline(left);
        let arguments = for_plane(&search.arguments, &self.toolset);
        match plane.answer_search(&arguments, request).await {
            Ok(answer) => self.found(answer),
            Err(error) => {
                tracing::warn!(%error, "a search failed");
                refusal("search_failed", "The search is out of order. Go on without it.")
            }
        }
    }

    /// Returns what a model is told that searches for nothing.
    fn how_to_search(&self) -> String {
        let mut text =
            "Say in `query` what you want to do, such as {\"query\": \"send an e-mail\"}."
                .to_owned();
        let names = self.toolset.server_names();
        let shown = &names[..names.len().min(SERVERS_SHOWN_MAX)];
        if !shown.is_empty() {
            let more = if shown.len() < names.len() { ", and more" } else { "" };
            let servers =
                format!(" A server's name finds all of its tools: {}{more}.", shown.join(", "));
            text.push_str(&servers);
        }
        text
    }

    /// Takes what a search found. Returns the answer for the model, with the names of the request.
    fn found(&mut self, answer: SearchAnswer) -> Found {
        self.state.handle.clone_from(&answer.handle);
        self.keep();
        let Some(mut found) = answer.found else {
            return Found { text: answer.text, ..Found::default() };
        };
        self.activate(&found.tools);
        for tool in &mut found.tools {
            if let Some(name) = self.toolset.name(&tool.model_name) {
                tool.model_name = name.to_owned();
            }
        }
        let tools = self.definitions(&found.tools);
        Found { text: SearchAnswer::from_found(found).text, tools }
    }

    /// Returns the definitions of tools that a search found, where the API's own search answers with them.
    fn definitions(&self, found: &[v1::ActiveTool]) -> Vec<Value> {
        if self.chat.api != Api::OpenAiResponses || self.strategy != Strategy::Native {
            return Vec::new();
        }
        let tools = found.iter().filter_map(|tool| self.toolset.tool(&tool.model_name));
        openai_responses(&tools.collect::<Vec<_>>())
            .map(|rendered| rendered.tools)
            .unwrap_or_default()
    }
}

/// Returns true if tools may be added amid a conversation. One of OpenAI's Responses that the provider keeps would keep
/// hidden searches too, which it takes in no request without its own search, such as the host's as it came.
fn takes_native(chat: &Chat) -> bool {
    match chat.api {
        Api::Anthropic => true,
        Api::OpenAiResponses => !chat.is_kept && chat.previous.is_none(),
        Api::OpenAiChat | Api::Gemini => false,
    }
}

/// Returns what an answer's header says of a request, with the number of tools that are withheld from it.
pub(crate) fn with_withheld(note: String, withheld: usize) -> String {
    if withheld == 0 { note } else { format!("{note}; withheld={withheld}") }
}

/// Returns the names that calls of a definition's tools may have. Chat Completions nest them, and a namespace has several.
fn names_of(definition: &Value) -> Vec<String> {
    let nested = [&definition["function"]["name"], &definition["custom"]["name"]];
    let name = [&definition["name"]].into_iter().chain(nested).find_map(Value::as_str);
    let Some(name) = name else { return Vec::new() };
    let inner = definition["tools"].as_array().into_iter().flatten();
    let inner = inner.filter_map(|tool| tool["name"].as_str()).flat_map(|tool| {
        let within = Namespaced { namespace: name.to_owned(), name: tool.to_owned() };
        [tool.to_owned(), within.joined()]
    });
    inner.chain([name.to_owned()]).collect()
}

/// Estimates the tokens of a text. It weighs what stands in a conversation against what is new; exact figures are in the account.
fn estimate(text: &str) -> u32 {
    tokens_of_bytes(text.len())
}

/// Returns about how many tokens a text of so many bytes has.
fn tokens_of_bytes(bytes: usize) -> u32 {
    u32::try_from(bytes / 4).unwrap_or(u32::MAX)
}

/// Returns the strategy that the settings ask for; `None` for the cheapest one.
fn asked_strategy(setting: StrategyConfig, without_native: bool) -> Option<Strategy> {
    match setting {
        StrategyConfig::Auto => None,
        StrategyConfig::Native if !without_native => Some(Strategy::Native),
        StrategyConfig::Cut => Some(Strategy::Cut),
        StrategyConfig::Native | StrategyConfig::Envelope | StrategyConfig::Pass => {
            Some(Strategy::Envelope)
        }
    }
}

/// Notes what was said of calls. Those of the host's own tools are not counted.
fn note(account: &Account, judged: &[Judged]) {
    for judged in judged.iter().filter(|judged| judged.outcome != gate::OWN) {
        account.gated(&judged.outcome);
    }
}

/// Returns the arguments of a search with the plane's names in the place of the request's where it selects tools by name.
fn for_plane(arguments: &Value, toolset: &Toolset) -> Value {
    let mut arguments = match arguments {
        Value::String(text) => serde_json::from_str(text).unwrap_or_else(|_| arguments.clone()),
        given => given.clone(),
    };
    let Some(query) = arguments.get("query").and_then(Value::as_str) else { return arguments };
    let Some((form, names)) = query.split_once(':') else { return arguments };
    if !form.trim().eq_ignore_ascii_case("select") {
        return arguments;
    }
    let of_plane = |name: &str| toolset.of_plane(name.trim()).unwrap_or(name).to_owned();
    let names: Vec<String> = names.split(',').map(of_plane).collect();
    arguments["query"] = Value::from(format!("select:{}", names.join(",")));
    arguments
}

/// Returns true if the arguments of a search say nothing of what it is for.
fn is_blank(arguments: &Value) -> bool {
    let parsed: Value;
    let asked = match arguments {
        Value::String(text) if text.trim().is_empty() => return true,
        Value::String(text) => {
            parsed = serde_json::from_str(text).unwrap_or_default();
            &parsed
        }
        given => given,
    };
    let says_nothing = |query: &Value| query.as_str().is_some_and(|query| query.trim().is_empty());
    let query = asked.as_object().map(|asked| asked.get("query").unwrap_or(&Value::Null));
    query.is_some_and(|query| query.is_null() || says_nothing(query)) || *arguments == Value::Null
}

/// Returns the answer to a search that was not made.
fn refusal(error: &str, message: &str) -> Found {
    let text = json!({ "error": error, "message": message }).to_string();
    Found { text, ..Found::default() }
}

/// Loads the tokenizer, which takes tens of milliseconds once.
pub(crate) fn warm_up() {
    tokens::warm_up();
}

#[cfg(test)]
mod recorded;

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeMap;

    use toolgate_client::{CallError, ClientOptions, Code};

    use super::*;
    use crate::toolset;
    use crate::upstream::Failure;

    /// Returns a turn of a request, beside a plane that is not there.
    pub(crate) fn turn(api: Api, request: &str, gate: GateConfig) -> Turn {
        let plane = Client::lazy("http://127.0.0.1:9", ClientOptions::default()).expect("a URL");
        let mut config = Config::default();
        config.llm.strategy = StrategyConfig::Envelope;
        config.llm.gate = gate;
        let path = "/v1beta/models/m:generateContent";
        let chat = Chat::read(api, path, request.to_owned(), &config.llm).expect("a chat");
        let toolset = Arc::new(toolset::tests::known(&chat.deferred));
        let decider = Decider::new(plane, None, &config, Savings::default());
        decider.begin(chat, Arc::from("t"), toolset, State::default())
    }

    fn told(reason: ErrorReason) -> Error {
        Error::Call(Box::new(CallError {
            rpc: "Route",
            code: Code::Unavailable,
            reason: Some(reason),
            reason_name: String::new(),
            message: String::new(),
            metadata: BTreeMap::new(),
            violations: Vec::new(),
            retry_delay: None,
        }))
    }

    #[tokio::test]
    async fn a_search_for_nothing_is_told_how_to_search() {
        let schema = json!({ "type": "object" });
        let tools = ["mcp__mail__send", "mcp__git__log", "mcp_plain", "mcp__git__diff"]
            .map(|name| json!({ "name": name, "input_schema": schema }));
        let asked = [json!({ "role": "user", "content": "Hello." })];
        let request = json!({ "model": "m", "tools": tools, "messages": asked }).to_string();
        for arguments in [json!({}), json!(""), json!(null), json!("{}"), json!({ "query": " " })] {
            let mut turn = turn(Api::Anthropic, &request, GateConfig::Off);
            let search = Search { id: "s".to_owned(), arguments: arguments.clone() };
            let answer = turn.answer(&search).await;
            assert!(answer.tools.is_empty());
            let told: Value = serde_json::from_str(&answer.text).expect("JSON");
            let message = told["message"].as_str().unwrap_or_default();
            assert_eq!(told["error"], "arguments_invalid", "{arguments}");
            assert!(message.contains("{\"query\": \"send an e-mail\"}"), "{message}");
            assert!(message.ends_with("all of its tools: git, mail."), "{message}");
        }
        assert!(!is_blank(&json!({ "query": "mail" })) && !is_blank(&json!({ "query": 7 })));
        assert!(!is_blank(&json!("{")) && !is_blank(&json!("{\"query\":\"mail\"}")));
    }

    /// Returns the thoughts that a turn's decider remembers, of the turn's host.
    pub(crate) fn thoughts(turn: &Turn) -> Arc<Thoughts> {
        assert_eq!(turn.owner, 0);
        Arc::clone(&turn.decider.thoughts)
    }

    /// Returns what a turn's decider remembers behind an answer, for the turn's host.
    pub(crate) fn behind(turn: &Turn) -> impl Fn(&str) -> Option<Behind> + use<> {
        let kept = Arc::clone(&turn.decider.kept);
        let owner = turn.owner;
        move |id| kept.find(owner, id)
    }

    fn request_with(tools: &[&str]) -> String {
        let tool = |name: &&str| json!({ "name": name, "input_schema": { "type": "object" } });
        let asked = [json!({ "role": "user", "content": "Hello." })];
        let tools: Vec<Value> = tools.iter().map(tool).collect();
        json!({ "model": "m", "tools": tools, "messages": asked }).to_string()
    }

    #[tokio::test]
    async fn what_was_quarantined_is_in_no_request_of_a_set_that_the_plane_lost() {
        let text = request_with(&["Bash", "mcp__git__log"]);
        let turn = turn(Api::Anthropic, &text, GateConfig::Off);
        let chat = Enclosing::chat(Api::Anthropic);
        let without = || turn.decider.without_quarantined(chat, &text, &turn.tenant);
        assert!(without().is_ok_and(|thinned| thinned.is_none()));
        toolset::tests::quarantine(&turn.decider.toolsets, &turn.tenant, &turn.chat.deferred);
        let thinned = without().ok().flatten().expect("a tool is withheld");
        assert_eq!((thinned.text, thinned.withheld), (request_with(&["Bash"]), 1));
    }

    #[test]
    fn tools_are_selected_by_the_planes_names() {
        let toolset = toolset::tests::known_as("mcp_mail_send", "mcp__mail__send");
        let asked = |query: &str| {
            let arguments = json!({ "query": query, "limit": 3 });
            let text = Value::from(arguments.to_string());
            let found = for_plane(&arguments, &toolset);
            assert_eq!(for_plane(&text, &toolset), found);
            found["query"].as_str().unwrap_or_default().to_owned()
        };
        assert_eq!(asked("select:mcp_mail_send, other"), "select:mcp__mail__send, other");
        assert_eq!(asked(" Select : mcp_mail_send"), "select:mcp__mail__send");
        assert_eq!(asked("mcp_mail_send"), "mcp_mail_send", "words");
        assert_eq!(for_plane(&json!("no JSON"), &toolset), "no JSON");
    }

    #[test]
    fn a_request_whose_reading_fails_is_sent_as_it_came() {
        assert_eq!(caught::<()>(|| panic!("a defect")), Err("panic"));
    }

    #[tokio::test]
    async fn a_request_that_quarantined_tools_could_not_be_taken_out_of_is_not_sent() {
        let text = request_with(&["Bash", "mcp__git__log"]);
        let turn = turn(Api::Anthropic, &text, GateConfig::Off);
        toolset::tests::quarantine(&turn.decider.toolsets, &turn.tenant, &turn.chat.deferred);
        let thinned = |read: fn() -> Result<Vec<DeferredTool>, PassReason>| {
            turn.decider.thinned(Api::Anthropic, &text, &turn.tenant, read).map(|thinned| {
                assert!(thinned.is_none(), "there is no set");
            })
        };
        assert_eq!(thinned(|| panic!("a defect")), Err(Unsendable::Failed));
        assert_eq!(thinned(|| Err("shape")), Ok(()), "another doubt sends the original");
        let failure = Failure::from(Unsendable::Failed);
        assert_eq!(failure.status, 500);
        assert!(failure.message.contains("quarantined"), "{}", failure.message);
    }

    #[tokio::test]
    async fn the_original_has_no_tool_that_is_withheld() {
        let text = request_with(&["Bash", "mcp__git__log", "mcp__git__diff"]);
        let mut turn = turn(Api::Anthropic, &text, GateConfig::Off);
        assert_eq!(turn.original(), Ok(None), "the host's bytes are sent");
        let toolset = Arc::get_mut(&mut turn.toolset).expect("nobody else has it");
        toolset.withheld = Arc::new(HashSet::from(["mcp__git__log".to_owned()]));
        assert_eq!(turn.original(), Ok(Some(request_with(&["Bash", "mcp__git__diff"]))));
    }

    #[tokio::test]
    async fn an_original_that_cannot_be_sent_is_counted_as_refused() {
        let forced = r#""tool_choice":{"type":"any"},"model""#;
        let text = request_with(&["mcp__git__log"]).replace(r#""model""#, forced);
        let mut turn = turn(Api::Anthropic, &text, GateConfig::Off);
        let toolset = Arc::get_mut(&mut turn.toolset).expect("nobody else has it");
        toolset.withheld = Arc::new(HashSet::from(["mcp__git__log".to_owned()]));
        assert_eq!(turn.original(), Err(Unsendable::NothingLeft));
        let exposed = turn.decider.savings.metrics().exposed();
        let line = r#"toolgate_llm_refused_total{reason="quarantined"} 1"#;
        assert!(exposed.contains(line), "{exposed}");
    }

    #[tokio::test]
    async fn tokens_are_those_of_the_tools_that_are_deferred() {
        let text = request_with(&["mcp__git__log", "mcp__git__rejected"]);
        let mut turn = turn(Api::Anthropic, &text, GateConfig::Off);
        // The plane rejected the second, whose tokens it has not counted.
        turn.chat.keep(|name| name == "mcp__git__rejected");
        Arc::get_mut(&mut turn.toolset).expect("nobody else has it").tokens = 20;
        let bytes = turn.chat.deferred[0].text.len();
        assert_eq!(turn.tokens_in(bytes), 20);
        assert_eq!(turn.tokens_in(10 * bytes), 200);
    }

    #[tokio::test(start_paused = true)]
    async fn refused_calls_alone_have_the_turns_time() {
        let text = request_with(&["mcp__git__log"]);
        let mut turn = turn(Api::Anthropic, &text, GateConfig::Enforce);
        assert_eq!(turn.time_left(), HIDDEN_MAX);
        for _ in 0..2 {
            turn.refuse(Refused::default()).await.expect("a request");
            tokio::time::advance(HIDDEN_MAX / 4).await;
        }
        assert_eq!(turn.time_left(), HIDDEN_MAX / 2);
    }

    #[tokio::test]
    async fn thoughts_of_calls_that_could_not_be_taken_back_stay() {
        let tool = json!({ "type": "function", "name": "mcp__git__log",
            "parameters": { "type": "object" } });
        let text = json!({ "model": "m", "tools": [tool], "input": "Hello." }).to_string();
        let thought = |id: &str| json!({ "type": "reasoning", "id": id });
        let call = |name: &str| json!({ "type": "function_call", "name": name, "call_id": name, "arguments": "{}" });
        let said =
            [thought("r1"), call("mcp__git__log"), thought("r2"), call("toolgate_search_tools")];
        let next = json!({ "input": [thought("r1"), thought("r2")] }).to_string();
        for (is_built, left) in [(true, vec![]), (false, vec![thought("r1")])] {
            let mut turn = turn(Api::OpenAiResponses, &text, GateConfig::Enforce);
            if !is_built {
                turn.asked = Some(Strategy::Pass);
            }
            let refused = Refused { said: said.to_vec(), seen: said.len(), ..Refused::default() };
            let body = turn.refuse(refused).await;
            assert_eq!(body.is_some(), is_built);
            let sent = thoughts(&turn).restored(0, &next).expect("a thought leads to nothing");
            assert_eq!(sent, json!({ "input": left }).to_string());
        }
    }

    #[tokio::test]
    async fn a_conversation_that_openai_keeps_takes_no_tools_amid_it() {
        let function = json!({ "type": "function", "name": "mcp__git__log", "parameters": {} });
        for (more, takes) in [
            (json!({ "store": false }), true),
            (json!({ "store": false, "previous_response_id": null }), true),
            (json!({ "store": false, "previous_response_id": "r1" }), false),
            (json!({ "store": true }), false),
            (json!({ "store": null }), false),
            (json!({}), false),
        ] {
            let mut request = json!({ "model": "m", "tools": [function], "input": "Hello." });
            request
                .as_object_mut()
                .expect("an object")
                .extend(more.as_object().cloned().expect("one"));
            let turn = turn(Api::OpenAiResponses, &request.to_string(), GateConfig::Off);
            assert_eq!(!turn.endpoint().without_native, takes, "{more}");
        }
    }

    #[test]
    fn a_busy_plane_has_not_lost_its_tools() {
        for reason in [ErrorReason::TenantNotFound, ErrorReason::RevisionNotReached] {
            assert!(is_lost(&told(reason)), "{reason:?}");
        }
        for reason in [ErrorReason::Overloaded, ErrorReason::TenantLimited, ErrorReason::Draining] {
            assert!(!is_lost(&told(reason)), "{reason:?}");
        }
    }
}
