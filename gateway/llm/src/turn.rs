//! The decision on a request: which tools it is sent with, asked of the routing plane within a deadline.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::Instant;
use toolgate_client::{Client, Error, ErrorReason, SearchAnswer, intent as v1_intent, v1};
use toolgate_core::tokens;
use toolgate_llm::envelope::is_envelope;
use toolgate_llm::history;
use toolgate_llm::render::Tool;
use toolgate_llm::strategy::{
    Api, Endpoint, Ledger, Offer, Prepared, Strategy, Turn as Question, prepare,
};

use crate::answer::{self, Search};
use crate::chat::{Chat, PassReason, intent};
use crate::config::{LlmConfig, StrategyConfig};
use crate::remembered::{Remembered, State};
use crate::savings::Savings;
use crate::toolset::{DeferredTool, Toolset, Toolsets};

/// Searches of one turn that are answered.
const SEARCHES_MAX: u32 = 3;

/// Time from a turn's first search on in which searches are answered.
const SEARCHING_MAX: Duration = Duration::from_secs(8);

/// Time for which a model that refused a rewritten request gets requests as they come.
const REFUSED_FOR: Duration = Duration::from_secs(60 * 60);

/// Most models that are remembered for a refusal.
const REFUSALS_MAX: usize = 256;

/// Decides on requests. Cloning is cheap.
#[derive(Debug, Clone)]
pub(crate) struct Decider {
    plane: Client,
    config: Arc<LlmConfig>,
    toolsets: Toolsets,
    remembered: Arc<Remembered>,
    refusals: Arc<Mutex<HashMap<(&'static str, String), Instant>>>,
    savings: Savings,
}

/// Turn whose tools were deferred.
#[derive(Debug)]
pub(crate) struct Turn {
    pub(crate) chat: Chat,
    decider: Decider,
    toolset: Arc<Toolset>,
    keys: Vec<u64>,
    /// Ledger that the turn began with, then that of its newest request.
    ledger: Ledger,
    /// State to find again by the host's messages.
    state: State,
    /// Names of the tools to describe.
    active: Vec<String>,
    /// Messages behind the host's: searches, and their answers.
    further: Vec<Value>,
    /// Strategy of the newest request, and the betas that it needs.
    strategy: Strategy,
    betas: Vec<&'static str>,
    /// Computed tokens of what the first request has in the place of the deferred tools.
    instead: u64,
    searches: u32,
    searching_since: Option<Instant>,
}

impl Decider {
    pub(crate) fn new(plane: Client, config: &LlmConfig, savings: Savings) -> Self {
        let toolsets = Toolsets::new(plane.clone(), config.max_toolsets);
        let config = Arc::new(config.clone());
        Self {
            plane,
            config,
            toolsets,
            remembered: Arc::default(),
            refusals: Arc::default(),
            savings,
        }
    }

    /// Returns a turn and the text of its request, or the reason for which it is sent as it came. `owner` are the host's
    /// credentials, which are hashed.
    pub(crate) async fn decide(
        &self,
        api: Api,
        text: &str,
        owner: &[&[u8]],
    ) -> Result<(Turn, String), PassReason> {
        let begun = Instant::now();
        if self.config.strategy == StrategyConfig::Pass {
            return Err("strategy");
        }
        let chat = caught(|| Chat::read(api, text.to_owned(), &self.config))?;
        if self.is_refused(api, &chat.model) {
            return Err("refused-before");
        }
        let is_known = self.toolsets.knows(&chat.deferred);
        let limit = if is_known {
            self.config.decision_timeout
        } else {
            self.config.first_decision_timeout
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
        turn.keep();
        Ok((turn, body))
    }

    async fn route(
        &self,
        mut chat: Chat,
        owner: &[&[u8]],
        limit: Duration,
    ) -> Result<Turn, PassReason> {
        let text = intent(&chat.messages).ok_or("no-request")?;
        let all = chat.deferred.clone();
        let toolset = self.toolsets.find(&all).await?;
        chat.keep(|name| !toolset.has(name));
        if chat.deferred.is_empty() {
            return Err("nothing-to-defer");
        }
        let owner = self.remembered.hash((owner, chat.api.name(), &chat.model, &toolset.tenant));
        let keys = self.remembered.keys(owner, &chat.messages);
        let state = self.remembered.find(&keys);
        let request = v1::RouteRequest {
            tenant: toolset.tenant.clone(),
            intents: vec![v1_intent(text)],
            active_set_handle: state.handle.clone(),
            min_revision: toolset.revision,
            state: Some(v1::AgentState {
                discovered_tools: used(&chat.messages, &toolset),
                ..Default::default()
            }),
            options: Some(v1::RouteOptions {
                detail: v1::Detail::References.into(),
                deferral: v1::DeferralMode::Always.into(),
                ..Default::default()
            }),
            ..Default::default()
        };
        let routed = self.routed(request, limit, &all, &keys).await?;
        let is_native = self.config.strategy == StrategyConfig::Native;
        let takes_native = chat.api == Api::Anthropic && is_native;
        let mut turn = Turn {
            chat,
            strategy: if takes_native { Strategy::Native } else { Strategy::Envelope },
            betas: Vec::new(),
            instead: 0,
            decider: self.clone(),
            toolset,
            keys,
            ledger: state.ledger.clone(),
            state: State { handle: routed.active_set_handle, ..state },
            active: Vec::new(),
            further: Vec::new(),
            searches: 0,
            searching_since: None,
        };
        turn.activate(&routed.active_tools);
        Ok(turn)
    }

    /// Asks the plane, and forgets a set of tools or the handles of a conversation that it does not know any more.
    async fn routed(
        &self,
        request: v1::RouteRequest,
        limit: Duration,
        tools: &[DeferredTool],
        keys: &[u64],
    ) -> Result<v1::RouteResponse, PassReason> {
        let routed = self.plane.with_deadline(limit).route(request).await;
        let routed = routed.map_err(|error| {
            tracing::warn!(%error, "the routing plane gave no answer; the request is sent as it came");
            if is_lost(&error) {
                self.toolsets.drop(tools);
            }
            if error.reason() == Some(ErrorReason::HandleInvalid) {
                self.remembered.forget_handles(keys);
            }
            "plane-failed"
        })?;
        if routed.accounting.as_ref().is_none_or(|counted| counted.full_catalog_tokens == 0) {
            tracing::warn!("the routing plane lost a set of tools; it is registered anew");
            self.toolsets.drop(tools);
            return Err("plane-failed");
        }
        Ok(routed)
    }

    /// Has requests of a model sent as they come for an hour.
    pub(crate) fn refused(&self, api: Api, model: &str) {
        tracing::warn!(
            model,
            "the provider refused a request whose tools were deferred; requests of this model are sent as they come for an hour"
        );
        let mut refusals = self.refusals.lock();
        refusals.retain(|_, since| since.elapsed() < REFUSED_FOR);
        if refusals.len() < REFUSALS_MAX {
            refusals.insert((api.name(), model.to_owned()), Instant::now());
        }
    }

    fn is_refused(&self, api: Api, model: &str) -> bool {
        let refusals = self.refusals.lock();
        let since = refusals.get(&(api.name(), model.to_owned()));
        since.is_some_and(|since| since.elapsed() < REFUSED_FOR)
    }

    /// Takes what was registered out of the plane.
    pub(crate) async fn close(&self) {
        self.toolsets.forget_all().await;
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
fn caught<T>(work: impl FnOnce() -> Result<T, PassReason>) -> Result<T, PassReason> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(panicked()))
}

fn panicked() -> PassReason {
    tracing::error!("reading a request failed; it is sent as it came");
    "panic"
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
            if !self.active.iter().any(|active| active == name) {
                self.active.push(name.to_owned());
            }
        }
    }

    /// Returns the text of the turn's next request.
    fn request(&mut self) -> Result<String, PassReason> {
        let messages: Vec<Value> =
            self.chat.messages.iter().chain(&self.further).cloned().collect();
        let prepared = self.prepared(&messages)?;
        let text = self.chat.with(&prepared.tools, &prepared.messages, &self.further);
        if self.further.is_empty() {
            self.state.ledger = prepared.ledger.clone();
        }
        self.ledger = prepared.ledger;
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
            strategy: Some(self.strategy),
            endpoint: Endpoint { model: &self.chat.model, ..Endpoint::default() },
            offer: Offer {
                own: &self.chat.own,
                always_on: &[],
                active: &active,
                deferred: self.chat.deferred.len(),
                catalog_tokens: None,
                search: true,
                deferred_names: &names,
                find: &|name| self.toolset.tool(name),
            },
            messages,
            ledger: &self.ledger,
            // Weighs what stands in a conversation against what is new; exact figures are in the account.
            count: &|text| u32::try_from(text.len() / 4).unwrap_or(u32::MAX),
        };
        let prepared = prepare(&question).map_err(|_| "schema")?;
        let is_deferring = matches!(prepared.strategy, Strategy::Native | Strategy::Envelope);
        if prepared.missing > 0 || !is_deferring {
            return Err("not-rewritten");
        }
        Ok(prepared)
    }

    /// Returns the cl100k tokens of what a request has beside the host's own text. The host's definitions that are not in
    /// it count for nothing here.
    fn instead_tokens(&self, body: &str) -> u64 {
        let kept = self.chat.bytes_kept();
        // Counting the whole would take longer than the decision.
        let added = body.len().saturating_sub(kept);
        let share = self.toolset.tools.iter().map(|tool| tool.text.len()).sum::<usize>().max(1);
        let tokens = self.toolset.tokens.max(1) as usize;
        u64::try_from(added.saturating_mul(tokens) / share).unwrap_or(u64::MAX)
    }

    /// Keeps the turn's state for the next one.
    fn keep(&self) {
        self.decider.remembered.keep(&self.keys, self.state.clone());
    }

    /// Returns the API of the request.
    pub(crate) fn api(&self) -> Api {
        self.chat.api
    }

    /// Returns what an answer's header says of the request.
    pub(crate) fn note(&self) -> String {
        let deferred = self.chat.deferred.len();
        format!("{}; deferred={deferred}; shown={}", self.strategy.name(), self.active.len())
    }

    /// Returns the betas that the request needs beside the host's, for the header `anthropic-beta`.
    pub(crate) fn betas(&self) -> &[&'static str] {
        &self.betas
    }

    /// Says that the provider refused the request though it takes the original.
    pub(crate) fn refused(&self) {
        self.decider.refused(self.chat.api, &self.chat.model);
    }

    /// Notes that the provider took the request, so that its deferred tools are saved.
    pub(crate) fn sent(&self) {
        self.decider.savings.rewritten(self.toolset.tokens, self.instead);
    }

    /// Notes the usage of an answer.
    pub(crate) fn used(&self, usage: &Value) {
        self.decider.savings.used(usage);
    }

    /// Finds the tools of a turn's searches without asking the model again: the next request has them. The host waits
    /// for its answer meanwhile, so that it takes no longer than a decision.
    pub(crate) async fn look_up(&mut self, searches: &[Search]) {
        let limit = self.decider.config.first_decision_timeout;
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
    pub(crate) async fn go_on(&mut self, said: Value, searches: &[Search]) -> Option<String> {
        // After the last answer, which says that it is the last, nothing is asked again.
        if self.searches > SEARCHES_MAX {
            return None;
        }
        let mut texts = Vec::with_capacity(searches.len());
        for search in searches {
            texts.push(self.answer(search).await);
        }
        self.further.push(said);
        self.further.extend(answer::results(self.chat.api, searches, &texts));
        self.decider.savings.searched(searches.len() as u64);
        caught(|| self.request()).ok()
    }

    async fn answer(&mut self, search: &Search) -> String {
        self.searches += 1;
        let since = *self.searching_since.get_or_insert_with(Instant::now);
        let left = SEARCHING_MAX.saturating_sub(since.elapsed());
        if self.searches > SEARCHES_MAX || left.is_zero() {
            self.searches = SEARCHES_MAX + 1;
            return failure("enough_searches", "Go on with the tools that you have.");
        }
        let request = v1::SearchToolsRequest {
            tenant: self.toolset.tenant.clone(),
            active_set_handle: self.state.handle.clone(),
            min_revision: self.toolset.revision,
            ..Default::default()
        };
        let plane = self.decider.plane.with_deadline(left);
        match plane.answer_search(&search.arguments, request).await {
            Ok(answer) => self.found(answer),
            Err(error) => {
                tracing::warn!(%error, "a search failed");
                failure("search_failed", "The search is out of order. Go on without it.")
            }
        }
    }

    /// Takes what a search found. Returns the text for the model, with the names of the request.
    fn found(&mut self, answer: SearchAnswer) -> String {
        self.state.handle.clone_from(&answer.handle);
        self.keep();
        let Some(mut found) = answer.found else { return answer.text };
        self.activate(&found.tools);
        for tool in &mut found.tools {
            if let Some(name) = self.toolset.name(&tool.model_name) {
                tool.model_name = name.to_owned();
            }
        }
        SearchAnswer::from_found(found).text
    }
}

fn failure(error: &str, message: &str) -> String {
    json!({ "error": error, "message": message }).to_string()
}

/// Loads the tokenizer, which takes tens of milliseconds once.
pub(crate) fn warm_up() {
    tokens::warm_up();
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use toolgate_client::{CallError, Code};

    use super::*;

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
