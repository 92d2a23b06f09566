//! The way of one Route call, stage by stage.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use super::account::{self, Account};
use super::allow::Allowed;
use super::caps::Caps;
use super::choose::{Choice, Chosen, LeftOut};
use super::event;
use super::explain::{self, LOOK_BEYOND, Refusal};
use super::pool::{self, PoolDelta};
use super::query::{Detail, RouteQuery};
use super::rank::Embedded;
use crate::encoder::Intents;
use crate::error::Error;
use crate::gate::calls::Schemas;
use crate::gate::handle::{ActiveSet, Holder, ShownTool};
use crate::gate::key::HandleKey;
use crate::gate::standing::Standings;
use crate::identity::TenantId;
use crate::shard::shards::Shards;
use crate::shard::snapshot::Snapshot;
use crate::store::Revision;

/// Catalogs above this many tools are searched off the async threads.
const SEARCH_INLINE_MAX: usize = 10_000;

/// Conditions that may take more steps than this, about half a millisecond, are evaluated there too.
pub(super) const STEPS_INLINE_MAX: usize = 20_000;

/// The longest that the encoder is waited for when the caller would wait longer.
const PATIENCE_MAX: Duration = Duration::from_secs(5);

/// How many times `top_k` more candidates are looked at when the policy's caps may leave some out.
const CAPS_LOOK_BEYOND: usize = 4;

/// In what way an answer is worse than usual. The wire's `DegradedReason` has the same names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Degraded {
    /// Ranked by words alone.
    LexicalOnly,
    /// An intent was longer than the encoder reads.
    IntentTruncated,
}

/// A tool of the answer.
#[derive(Debug, Clone)]
pub struct Active {
    /// Which, and how it came here.
    pub chosen: Chosen,
    /// The one-line signature, when asked for.
    pub signature: String,
    /// Tokens at the asked detail.
    pub tokens: u32,
}

/// The active set of one turn.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The snapshot that every slot here is of.
    pub snapshot: Arc<Snapshot>,
    /// How much of each tool is sent.
    pub detail: Detail,
    /// The tools, in their places.
    pub active: Vec<Active>,
    /// The handle.
    pub handle: String,
    /// When it expires, in seconds since 1970 (UTC).
    pub handle_expires: u64,
    /// What changed in the summary pool.
    pub pool: Option<PoolDelta>,
    /// What was left out.
    pub refusals: Vec<Refusal>,
    /// Tokens.
    pub account: Account,
    /// In what way it is worse than usual.
    pub degraded: Vec<Degraded>,
    /// Microseconds by stage.
    pub timings: Vec<(&'static str, u64)>,
    /// Candidates that were ranked, for the decision event.
    pub candidates: usize,
    /// Tools that the state withheld, for the decision event.
    pub withheld: usize,
}

/// Routes the calls of all tenants.
pub struct Router {
    pub(super) shards: Arc<Shards>,
    pub(super) intents: Arc<Intents>,
    pub(super) key: HandleKey,
    pub(super) handle_ttl: Duration,
    pub(super) schemas: Arc<Schemas>,
}

/// Times stages; each ends where the next begins.
struct Stages {
    started: Instant,
    timings: Vec<(&'static str, u64)>,
}

impl Stages {
    fn begin() -> Self {
        Self { started: Instant::now(), timings: Vec::with_capacity(5) }
    }

    fn end(&mut self, stage: &'static str) {
        let now = Instant::now();
        let micros = (now - self.started).as_micros();
        self.timings.push((stage, u64::try_from(micros).unwrap_or(u64::MAX)));
        self.started = now;
    }
}

impl Router {
    /// A router over `shards`, whose handles are signed with `key` and live for `handle_ttl`.
    #[must_use]
    pub fn new(
        shards: Arc<Shards>,
        intents: Arc<Intents>,
        key: HandleKey,
        handle_ttl: Duration,
    ) -> Self {
        Self { shards, intents, key, handle_ttl, schemas: Arc::default() }
    }

    /// The active set for one turn.
    ///
    /// # Errors
    /// An unknown tenant or server filter, a handle that is not this holder's, a deadline that passed, a
    /// revision not reached, a store that can't be read. An encoder that can't be reached is not an
    /// error: words decide then.
    pub async fn route(
        &self,
        holder: Holder<'_>,
        query: RouteQuery,
        deadline: Option<Instant>,
    ) -> Result<Answer, Error> {
        let mut stages = Stages::begin();
        let previous = self.previous(holder, &query.previous)?;
        let snapshot = self.shards.get(holder.tenant, query.min_revision).await?;
        stages.end("admit");
        let (vectors, mut degraded) = self.embed(holder.tenant, &query, deadline).await?;
        stages.end("embed");
        let options = query.options.under(&snapshot.policy);
        let query = Arc::new(RouteQuery { options, ..query });
        let decide = {
            let (snapshot, query) = (Arc::clone(&snapshot), Arc::clone(&query));
            move || {
                decide(&snapshot, &query, previous.as_ref(), vectors, &mut stages)
                    .map(|decision| (decision, stages))
            }
        };
        let is_long = snapshot.tools.len() > SEARCH_INLINE_MAX
            || snapshot.requirements.steps > STEPS_INLINE_MAX;
        let (decision, mut stages) = if is_long {
            tokio::task::spawn_blocking(decide).await.map_err(Error::internal)??
        } else {
            decide()?
        };
        if decision.words_only {
            degraded.push(Degraded::LexicalOnly);
        }
        let mut answer = self.promote(holder, snapshot, &query, &decision);
        stages.end("promote");
        (answer.degraded, answer.timings) = (degraded, stages.timings);
        event::log(holder.tenant, &query, &answer, &decision.vectors);
        Ok(answer)
    }

    /// An expired handle still says what was shown, in which places: Route renews it.
    pub(super) fn previous(
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

    /// The handle of an active set that begins to live now, and when it expires.
    pub(super) fn seal(
        &self,
        holder: Holder<'_>,
        revision: Revision,
        shown: Vec<ShownTool>,
    ) -> (String, u64) {
        let set = ActiveSet::new(revision, shown, SystemTime::now(), self.handle_ttl);
        (set.seal(&self.key, holder), set.expires)
    }

    async fn embed(
        &self,
        tenant: &TenantId,
        query: &RouteQuery,
        deadline: Option<Instant>,
    ) -> Result<(Vec<Vec<f32>>, Vec<Degraded>), Error> {
        let texts = query.intents.iter().map(|intent| intent.text.clone()).collect();
        let until = patience(deadline);
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
                tracing::warn!(%error, "no embedding: ranking by words");
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
        let active: Vec<Active> = decision
            .active
            .iter()
            .map(|chosen| {
                let (signature, tokens) = account::shown(&snapshot, chosen, detail);
                Active { chosen: *chosen, signature, tokens }
            })
            .collect();
        let tools = decision.active.iter().map(|chosen| snapshot.tool(chosen.slot));
        let shown = tools.map(|tool| ShownTool::new(tool.key, &tool.hash)).collect();
        let (handle, handle_expires) = self.seal(holder, snapshot.revision, shown);
        let phase2 = active.iter().map(|tool| u64::from(tool.tokens)).sum();
        let visible = decision.standings.visible_tokens(&snapshot);
        let known = query.known_pool_revision;
        let pool = known.map(|since| pool::delta(&snapshot, &decision.standings, Some(since)));
        Answer {
            detail,
            active,
            handle,
            handle_expires,
            pool: pool.filter(|delta| !delta.is_empty()),
            refusals: explain::refusals(&snapshot, &decision.standings, decision.left_out.clone()),
            account: Account::new(visible, phase2, &query.options),
            degraded: Vec::new(),
            timings: Vec::new(),
            candidates: decision.candidates,
            withheld: decision.withheld,
            snapshot,
        }
    }
}

/// Until when the encoder is waited for: three quarters of the time that is left, so that an encoder that
/// hangs or is late leaves words the time to decide.
fn patience(deadline: Option<Instant>) -> Instant {
    let now = Instant::now();
    let left =
        deadline.map_or(PATIENCE_MAX, |deadline| deadline.saturating_duration_since(now) * 3 / 4);
    now + left.min(PATIENCE_MAX)
}

/// What was decided, before anything is rendered.
struct Decision {
    standings: Standings,
    active: Vec<Chosen>,
    left_out: Vec<LeftOut>,
    vectors: Vec<Vec<f32>>,
    words_only: bool,
    candidates: usize,
    withheld: usize,
}

/// Gate, search and choose: pure, and the whole cost of a call once its intents are embedded.
fn decide(
    snapshot: &Snapshot,
    query: &RouteQuery,
    previous: Option<&ActiveSet>,
    vectors: Vec<Vec<f32>>,
    stages: &mut Stages,
) -> Result<Decision, Error> {
    let options = &query.options;
    let standings = Standings::of(snapshot, &query.state);
    let allowed = Allowed::new(snapshot, standings, options)?;
    stages.end("gate");
    let embedded = Embedded { intents: &query.intents, vectors: &vectors };
    let mut look_at = options.top_k + if options.explain { LOOK_BEYOND } else { 0 };
    if Caps::exist(&snapshot.policy) {
        look_at += CAPS_LOOK_BEYOND * options.top_k;
    }
    let candidates = embedded.rank(snapshot, look_at, allowed.slots.as_ref())?;
    let mut choice = Choice::new(snapshot, &allowed, &embedded, options);
    if let Some(previous) = previous {
        choice.keep(previous);
    }
    choice.require();
    choice.rank(&candidates);
    let (active, mut left_out) = (choice.active, choice.left_out);
    if options.explain {
        left_out.extend(explain::locked_candidates(snapshot, &allowed, &embedded, options)?);
    } else {
        left_out.retain(|tool| !tool.asked_for.is_empty());
    }
    let words_only = embedded.is_words_only(snapshot);
    let open = allowed.slots.as_ref().map_or(snapshot.tools.len(), |set| set.count_ones(..));
    let withheld = snapshot.tools.len() - open;
    let standings = allowed.standings;
    stages.end("search");
    let candidates = candidates.len();
    Ok(Decision { standings, active, left_out, vectors, words_only, candidates, withheld })
}
