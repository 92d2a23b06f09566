//! Steps of one Route call, stage by stage.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tracing::Instrument as _;

use crate::catalog::signature::Signature;
use crate::encoder::Intents;
use crate::gate::handle::{ActiveSet, Holder, ShownTool};
use crate::gate::key::HandleKey;
use crate::gate::warmer::Warmer;
use crate::memory::Memory;
use crate::router::answers::account::{self, Account};
use crate::router::answers::conversation::TextTokens;
use crate::router::answers::event;
use crate::router::answers::explain::{self, Refusal};
use crate::router::answers::pool::{self, PoolDelta};
use crate::router::aside::aside;
use crate::router::intent;
use crate::router::outage::Outage;
use crate::router::query::{Detail, Listing, RouteQuery};
use crate::router::ranking::background::Background;
use crate::router::ranking::fit::Fit;
use crate::router::ranking::level::Level;
use crate::router::ranking::rank::Candidate;
use crate::router::ranking::recall::Recall;
use crate::router::selection::choose::Chosen;
use crate::router::selection::continuity::Change;
use crate::router::selection::decision::{Decision, RouteInputs};
use crate::router::selection::deferring::{Costs, Deferral, Deferring};
use crate::router::stages::Stages;
use crate::shard::freshness::Currency;
use crate::shard::shards::Shards;
use crate::shard::snapshot::Snapshot;
use crate::usage::Ledger;
use toolgate_core::deferral::Policy;
use toolgate_core::error::Error;
use toolgate_core::identity::{ServerName, TenantId};
use toolgate_core::live::Live;
use toolgate_core::quantized_embedding::{QuantizedEmbedding, encoder_key};
use toolgate_store::Revision;

/// Maximum time to wait for the encoder, even if the caller would wait longer.
const ENCODER_WAIT_MAX: Duration = Duration::from_secs(5);

/// Reason why an answer is worse than usual. The wire's `DegradedReason` has the same names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Degraded {
    /// Ranking by words alone.
    LexicalOnly,
    /// Unreachable store: there may be a newer catalog.
    StaleCatalog,
    /// Intent longer than the encoder reads.
    IntentTruncated,
}

impl Degraded {
    /// All reasons.
    pub const ALL: [Self; 3] = [Self::LexicalOnly, Self::StaleCatalog, Self::IntentTruncated];

    /// Returns the name on the wire and in metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::LexicalOnly => "LEXICAL_ONLY",
            Self::StaleCatalog => "STALE_CATALOG",
            Self::IntentTruncated => "INTENT_TRUNCATED",
        }
    }
}

/// Tool of an answer.
#[derive(Debug, Clone)]
pub struct Active {
    /// Chosen tool and the reason why it is in the set.
    pub chosen: Chosen,
    /// One-line signature, if it was requested.
    pub signature: Option<Signature>,
    /// Tokens at the requested detail.
    pub tokens: u32,
}

/// Details of the ranking, for an explanation.
#[derive(Debug, Clone)]
pub struct Ranking {
    /// Level that the best overlap must reach.
    pub level: Level,
    /// Best candidates, chosen or not.
    pub candidates: Vec<Candidate>,
}

/// Content of a handle that is to be sealed.
#[derive(Debug, Default)]
pub(in crate::router) struct Shown {
    /// Tools of the active set.
    pub tools: Vec<ShownTool>,
    /// Tools of earlier turns whose definitions the request still has.
    pub carried: Vec<ShownTool>,
    /// Quantized embedding of the intent that the tools are for; `None` where calls are not remembered.
    pub intent_embedding: Option<QuantizedEmbedding>,
}

impl From<ActiveSet> for Shown {
    fn from(set: ActiveSet) -> Self {
        let ActiveSet { tools, carried, intent_embedding, .. } = set;
        Self { tools, carried, intent_embedding }
    }
}

/// Answer of a Route call: the active set of one turn.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Snapshot that all slots refer to.
    pub snapshot: Arc<Snapshot>,
    /// Amount of detail sent for each tool.
    pub detail: Detail,
    /// Tools in their places.
    pub active: Vec<Active>,
    /// Tools beside them that may be called: the request has their definitions from earlier turns.
    pub carried: Vec<u32>,
    /// Handle of the active set.
    pub handle: String,
    /// Expiry of the handle, in seconds since 1970 (UTC).
    pub handle_expires: u64,
    /// Changes of the summary pool; `None` if the client holds no revision of it or nothing changed.
    pub pool: Option<PoolDelta>,
    /// Difference from the active set of the previous turn.
    pub change: Change,
    /// Tools that were left out, with the reasons.
    pub refusals: Vec<Refusal>,
    /// Details of the ranking, if they were requested.
    pub ranking: Option<Ranking>,
    /// Fit of the best tool.
    pub fit: Fit,
    /// Token counts of the turn.
    pub account: Account,
    /// Deferral decision, with its reason.
    pub deferral: Deferral,
    /// MCP servers that are announced and have no tools yet.
    pub pending: Vec<String>,
    /// Reasons why the answer is worse than usual.
    pub degraded: Vec<Degraded>,
    /// Duration of each stage, in microseconds.
    pub timings: Vec<(&'static str, u64)>,
}

impl Answer {
    /// Returns the MCP servers of the active tools, in the order of their best tools, and then those of carried tools.
    #[must_use]
    pub fn servers(&self) -> Vec<&ServerName> {
        let mut tools: Vec<&Active> = self.active.iter().collect();
        tools.sort_by(|a, b| b.chosen.score.total_cmp(&a.chosen.score));
        let mut servers: Vec<&ServerName> = Vec::new();
        let slots = tools.iter().map(|tool| &tool.chosen.slot).chain(&self.carried);
        for slot in slots {
            let server = &self.snapshot.tool(*slot).id.server;
            if !servers.contains(&server) {
                servers.push(server);
            }
        }
        servers
    }
}

/// Router for the calls of all tenants.
pub struct Router {
    pub(in crate::router) shards: Arc<Shards>,
    pub(in crate::router) intents: Arc<Intents>,
    pub(in crate::router) usage: Arc<Ledger>,
    key: HandleKey,
    handle_ttl: Duration,
    warmer: Arc<Warmer>,
    memory: Option<Arc<Memory>>,
    deferral: Arc<Live<Policy>>,
    costs: Arc<Costs>,
    pub(in crate::router) text_tokens: Arc<TextTokens>,
    background: Background,
    outage: Outage,
}

impl Router {
    /// Creates a router over `shards` that counts in `usage`. Its handles are signed with `key` and live for
    /// `handle_ttl`. The schemas of tools that it shows are compiled by `warmer`.
    #[must_use]
    pub fn new(
        shards: Arc<Shards>,
        intents: Arc<Intents>,
        usage: Arc<Ledger>,
        key: HandleKey,
        handle_ttl: Duration,
        warmer: Arc<Warmer>,
    ) -> Self {
        let deferral = Arc::default();
        let costs = Arc::default();
        let background = Background::default();
        let memory = None;
        Self {
            shards,
            intents,
            usage,
            key,
            handle_ttl,
            warmer,
            memory,
            deferral,
            costs,
            text_tokens: Arc::default(),
            background,
            outage: Outage::default(),
        }
    }

    /// Returns the same router, with a memory of the tools that were called for each intent.
    #[must_use]
    pub fn with_memory(self, memory: Arc<Memory>) -> Self {
        Self { memory: Some(memory), ..self }
    }

    /// Returns the same router, under an operator's policy on deferral.
    #[must_use]
    pub fn with_deferral(self, deferral: Arc<Live<Policy>>) -> Self {
        Self { deferral, ..self }
    }

    /// Returns the same router, with the background requests' embeddings by its encoder, if they are known.
    #[must_use]
    pub fn with_background(self, known: Option<Arc<Vec<Vec<f32>>>>) -> Self {
        Self { background: Background::of(known), ..self }
    }

    /// Starts embedding the background requests, from which the level of "no tool fits" is derived, before the first
    /// call needs them. Does nothing if their embeddings are known.
    pub fn warm(&self) {
        self.background.begin(&self.intents);
    }

    /// Returns the active set for one turn.
    ///
    /// # Errors
    /// An unknown tenant or server filter, a handle that does not belong to this holder, a deadline that passed, a
    /// revision not reached, or a store that can't be read. An unreachable encoder is no error: words decide then.
    pub async fn route(
        &self,
        holder: Holder<'_>,
        query: RouteQuery,
        deadline: Option<Instant>,
    ) -> Result<Answer, Error> {
        let mut stages = Stages::begin("admit");
        let previous = self.previous(holder, &query.previous)?;
        let snapshot = self.shards.reach(holder.tenant, query.min_revision, deadline).await?;
        stages.next("embed");
        let query = query.by_its_rule();
        let texts = intent::texts(&query.intents);
        let embedding = self.embed(holder.tenant, texts, deadline).instrument(stages.span());
        let (vectors, degraded) = embedding.await?;
        let options = query.options.under(&snapshot.policy);
        // If words decide, or each tool must reach the threshold, no level is needed.
        let needs_level = !vectors.is_empty() && options.ratio.is_some();
        let background = match needs_level {
            true => self.background.get(&self.intents, wait_until(deadline).into()).await,
            false => None,
        };
        stages.next("gate");
        let query = Arc::new(RouteQuery { options, ..query });
        let deferring = self.deferring(holder.tenant);
        let recall = self.recall(holder.tenant);
        let decide = {
            let snapshot = Arc::clone(&snapshot);
            let query = Arc::clone(&query);
            move || {
                let snapshot = &*snapshot;
                let query = &*query;
                let previous = previous.as_ref();
                let background = background.as_deref().map_or(&[][..], Vec::as_slice);
                let deferring = &deferring;
                let recall = recall.as_ref();
                let case = RouteInputs { snapshot, query, deferring, previous, background, recall };
                case.decide(vectors, &mut stages).map(|decision| (decision, stages))
            }
        };
        let (decision, mut stages) = aside(&snapshot, decide).await?;
        let mut answer = self.promote(holder, snapshot, &query, &decision);
        self.warm_schemas(holder.tenant, &answer.snapshot, &answer.active);
        stages.end();
        answer.degraded.extend(degraded);
        answer.timings = stages.timings;
        let own = query.intents.iter().filter(|intent| !intent.is_context());
        let texts = own.map(|intent| intent.text.as_str());
        event::intents(holder.tenant, &query.turn_id, texts);
        event::route(holder.tenant, &query, &answer, &decision);
        Ok(answer)
    }

    /// Counts an answer in the tenant's usage.
    pub fn count(&self, tenant: &TenantId, answer: &Answer) {
        self.usage.count(tenant, &account::counted(answer));
    }

    /// Opens the handle of the previous turn; an empty text means none. An expired handle still names the shown tools
    /// and their places, and Route renews it.
    pub(in crate::router) fn previous(
        &self,
        holder: Holder<'_>,
        text: &str,
    ) -> Result<Option<ActiveSet>, Error> {
        if text.is_empty() {
            return Ok(None);
        }
        let opened = ActiveSet::open(text, &self.key, holder);
        let invalid = |_| Error::HandleInvalid("not issued by this service for this tenant");
        opened.map(Some).map_err(invalid)
    }

    /// Queues the schemas of shown tools for compilation, before the tools are called.
    pub(in crate::router) fn warm_schemas(
        &self,
        tenant: &TenantId,
        snapshot: &Arc<Snapshot>,
        shown: &[Active],
    ) {
        self.warmer.want(tenant, snapshot, shown.iter().map(|tool| tool.chosen.slot));
    }

    /// Returns [`Degraded::StaleCatalog`] if an answer from this snapshot may be older than the store.
    pub(in crate::router) fn staleness(
        &self,
        tenant: &TenantId,
        snapshot: &Snapshot,
    ) -> Option<Degraded> {
        let is_current = self.shards.currency(tenant, snapshot) == Currency::Current;
        (!is_current).then_some(Degraded::StaleCatalog)
    }

    /// Returns the handle of an active set that is valid from now on, and its expiry in seconds since 1970 (UTC).
    pub(in crate::router) fn seal(
        &self,
        holder: Holder<'_>,
        revision: Revision,
        shown: Shown,
    ) -> (String, u64) {
        let Shown { tools, carried, intent_embedding } = shown;
        let set = ActiveSet::new(revision, tools, self.shards.clock(), self.handle_ttl);
        let set = set.carrying(carried).with_embedding(intent_embedding);
        (set.seal(&self.key, holder), set.expires)
    }

    /// Lets the tools of these model-facing names be called beside the active set of an answer: the request has their definitions
    /// from earlier turns.
    ///
    /// # Errors
    /// [`Error::Internal`] if the answer's handle is not this holder's.
    pub fn carry<'n>(
        &self,
        holder: Holder<'_>,
        answer: &mut Answer,
        names: impl Iterator<Item = &'n str>,
    ) -> Result<(), Error> {
        let set = ActiveSet::open(&answer.handle, &self.key, holder).map_err(Error::internal)?;
        let snapshot = &answer.snapshot;
        let slots = names.filter_map(|name| snapshot.names.model_name(name));
        let is_beside = |slot: &u32| {
            let key = snapshot.tool(*slot).key;
            set.tools.iter().all(|shown| shown.id != key)
        };
        let slots: Vec<u32> = slots.filter(is_beside).collect();
        if !slots.is_empty() {
            let shown = |slot: &u32| {
                let tool = snapshot.tool(*slot);
                ShownTool::new(tool.key, &tool.hash)
            };
            let set = set.carrying(slots.iter().map(shown).collect());
            answer.handle = set.seal(&self.key, holder);
            answer.carried = slots;
        }
        Ok(())
    }

    fn deferring(&self, tenant: &TenantId) -> Deferring {
        let policy = self.deferral.now();
        let costs = Arc::clone(&self.costs);
        Deferring { tenant: tenant.clone(), policy, costs }
    }

    /// Returns false if the operator lets none of the tenant's tools be deferred.
    pub(in crate::router) fn defers(&self, tenant: &TenantId) -> bool {
        !self.deferral.now().is_off(tenant)
    }

    /// Returns true while the operator has switched deferral off for everybody.
    #[must_use]
    pub fn is_deferral_switched_off(&self) -> bool {
        self.deferral.now().kill_switch
    }

    /// Returns true if the operator says that a model takes no tools amid a conversation.
    #[must_use]
    pub fn denies_native(&self, model: &str) -> bool {
        self.deferral.now().no_native_models.iter().any(|pattern| pattern.is_within(model))
    }

    /// Returns the memory of the tenant's past calls; `None` where there is none.
    pub(in crate::router) fn recall(&self, tenant: &TenantId) -> Option<Recall> {
        let remembered = self.memory.as_ref()?.of(tenant)?;
        Some(Recall::new(remembered, encoder_key(self.intents.encoder().fingerprint())))
    }

    /// Returns the quantized embedding of the intent that the tools of an answer are for; `None` where calls are not remembered.
    pub(in crate::router) fn intent_embedding(
        &self,
        tenant: &TenantId,
        embedding: Option<&Vec<f32>>,
    ) -> Option<QuantizedEmbedding> {
        self.memory.as_ref()?.intent_embedding(tenant, embedding.map(Vec::as_slice))
    }

    /// Embeds the texts. Returns no embeddings if the encoder is unavailable, so that words decide.
    pub(in crate::router) async fn embed(
        &self,
        tenant: &TenantId,
        texts: Vec<String>,
        deadline: Option<Instant>,
    ) -> Result<(Vec<Vec<f32>>, Vec<Degraded>), Error> {
        let until = wait_until(deadline);
        let embedding = self.intents.embed(tenant, texts, Some(until));
        let embedded = tokio::time::timeout_at(until.into(), embedding).await;
        match embedded.unwrap_or(Err(Error::DeadlineExceeded)) {
            Ok(embedded) => {
                let truncated = embedded.iter().any(|e| e.truncated);
                let degraded = truncated.then_some(Degraded::IntentTruncated);
                let vectors = embedded.into_iter().map(|e| e.vector).collect();
                Ok((vectors, degraded.into_iter().collect()))
            }
            Err(_) if deadline.is_some_and(|deadline| deadline <= Instant::now()) => {
                Err(Error::DeadlineExceeded)
            }
            Err(error) => {
                self.outage.failed(&error);
                Ok((Vec::new(), Vec::new()))
            }
        }
    }

    fn promote(
        &self,
        holder: Holder<'_>,
        snapshot: Arc<Snapshot>,
        query: &RouteQuery,
        decision: &Decision,
    ) -> Answer {
        let detail = query.options.detail;
        let active = |chosen: &Chosen| account::active(&snapshot, *chosen, detail);
        let active: Vec<Active> = decision.active.iter().map(active).collect();
        let main = intent::main(&query.intents, &decision.vectors);
        let shown = Shown {
            tools: decision.active.iter().map(|chosen| chosen.shown(&snapshot)).collect(),
            carried: Vec::new(),
            intent_embedding: self.intent_embedding(holder.tenant, main),
        };
        let (handle, handle_expires) = self.seal(holder, snapshot.revision, shown);
        let phase2 = active.iter().map(|tool| u64::from(tool.tokens)).sum();
        let mut visible = decision.visibilities.visible_tokens(&snapshot);
        visible.pool = match query.listed(decision.deferral.sends_everything()) {
            Listing::None => 0,
            Listing::Names => pool::name_tokens(&snapshot, &decision.visibilities),
            Listing::Summaries => visible.pool,
        };
        let lexical = decision.words_only.then_some(Degraded::LexicalOnly);
        let stale = self.staleness(holder.tenant, &snapshot);
        let known = query.known_pool_revision;
        let pool = known.map(|since| pool::delta(&snapshot, &decision.visibilities, Some(since)));
        Answer {
            detail,
            active,
            carried: Vec::new(),
            handle,
            handle_expires,
            pool: pool.filter(|delta| !delta.is_empty()),
            change: decision.change.clone(),
            refusals: explain::refusals(
                &snapshot,
                &decision.visibilities,
                decision.left_out.clone(),
            ),
            ranking: query.options.explain.then(|| Ranking {
                level: decision.level,
                candidates: decision.candidates.clone(),
            }),
            account: Account::new(visible, phase2, query.options.surroundings()),
            deferral: decision.deferral,
            fit: decision.fit.clone(),
            pending: decision.pending.clone(),
            degraded: lexical.into_iter().chain(stale).collect(),
            timings: Vec::new(),
            snapshot,
        }
    }
}

/// Returns the time until which calls wait for the encoder: three quarters of the time left, but at most
/// [`ENCODER_WAIT_MAX`]. If the encoder hangs or is late, words then still have time to decide.
fn wait_until(deadline: Option<Instant>) -> Instant {
    let now = Instant::now();
    let left = deadline
        .map_or(ENCODER_WAIT_MAX, |deadline| deadline.saturating_duration_since(now) * 3 / 4);
    now + left.min(ENCODER_WAIT_MAX)
}
