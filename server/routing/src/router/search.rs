//! Explicit discovery: a query in the grammar of the contract, answered from the tools that the state allows. Queries
//! that words alone can answer do not use the encoder.

mod deferred;
mod empty;
pub mod grammar;
mod keywords;
mod lookup;

use std::sync::Arc;
use std::time::Instant;

use toolgate_telemetry::part;
use tracing::Instrument as _;

use crate::gate::handle::Holder;
use crate::gate::visibility::Visibilities;
use crate::router::Router;
use crate::router::answers::account;
use crate::router::answers::answer_size::AnswerSize;
use crate::router::answers::event;
use crate::router::answers::explain::{self, Refusal};
use crate::router::answers::pending;
use crate::router::aside::aside;
use crate::router::intent::{self, Intent};
use crate::router::query::Detail;
use crate::router::ranking::fuse::POOL;
use crate::router::ranking::level::Level;
use crate::router::ranking::rank::{Candidate, Embedded, FoundBy};
use crate::router::route::{Active, Degraded, Shown};
use crate::router::schemas::{check_room, show};
use crate::router::selection::caps::{Caps, UntrustedCaps};
use crate::router::selection::choose::Chosen;
use crate::router::selection::left_out::LeftOut;
use crate::shard::snapshot::Snapshot;
use empty::Nothing;
use grammar::Query;
use lookup::Looked;
use toolgate_core::error::Error;
use toolgate_core::identity::TenantId;
use toolgate_core::quantized_embedding::QuantizedEmbedding;
use toolgate_core::state::AgentState;
use toolgate_store::Revision;

/// Maximum number of pending servers that a message names.
const PENDING_NAMED: usize = 10;

/// SearchTools request.
#[derive(Debug, Clone)]
pub struct SearchQuery {
    /// Parsed query.
    pub query: Query,
    /// Maximum number of tools in the answer; a `select:` query ignores it.
    pub max_results: usize,
    /// Amount of detail sent for each tool.
    pub detail: Detail,
    /// Minimum overlap of a tool found by natural language, where the policy sets no threshold.
    pub least_overlap: f32,
    /// Limits on tools of untrusted MCP servers, except for tools that the query names.
    pub untrusted: UntrustedCaps,
    /// State of the agent: its calls so far and its scopes.
    pub state: AgentState,
    /// Handle to add the tools to; empty for a new one.
    pub previous: String,
    /// Minimum revision that the answer must be based on.
    pub min_revision: Revision,
    /// Size limit of the answer in bytes.
    pub message_max: usize,
}

/// Form in which a query was read. The wire's `SearchForm` has the same names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// List of names.
    Select,
    /// Beginning of names, or a server's name.
    Prefix,
    /// Keywords.
    Keywords,
    /// Natural language.
    Natural,
}

/// SearchTools answer.
#[derive(Debug, Clone)]
pub struct SearchAnswer {
    /// Snapshot that all slots refer to.
    pub snapshot: Arc<Snapshot>,
    /// Form in which the query was read.
    pub form: Form,
    /// Amount of detail sent for each tool.
    pub detail: Detail,
    /// Tools, best first.
    pub tools: Vec<Active>,
    /// Handle of the active set with these tools added.
    pub handle: String,
    /// Expiry of the handle, in seconds since 1970 (UTC).
    pub handle_expires: u64,
    /// Names that could not be returned, and locked tools that would have been found.
    pub refusals: Vec<Refusal>,
    /// Explanation for the model if the answer is empty or incomplete; empty otherwise.
    pub message: String,
    /// Number of tools that were searched.
    pub searched: usize,
    /// Number of tools that this caller finds only by searching.
    pub deferred: usize,
    /// Number of tools that match a term but lack a required one, when nothing was found.
    pub lacking_required: u32,
    /// MCP servers that are announced and have no tools yet.
    pub pending: Vec<String>,
    /// Reasons why the answer is worse than usual.
    pub degraded: Vec<Degraded>,
}

/// Search results before they are rendered.
#[derive(Debug)]
struct Findings {
    form: Form,
    tools: Vec<Candidate>,
    left_out: Vec<LeftOut>,
    message: String,
    searched: usize,
    lacking_required: u32,
}

/// Search results found by meaning.
struct Meant {
    findings: Findings,
    degraded: Vec<Degraded>,
    /// QuantizedEmbedding of the text; `None` where calls are not remembered.
    intent_embedding: Option<QuantizedEmbedding>,
}

impl Router {
    /// Finds tools and returns them with a handle that covers them.
    ///
    /// # Errors
    /// An unknown tenant, a handle that does not belong to this holder or has no room left, a revision not reached, a
    /// deadline that passed, or a store that can't be read. A missing encoder is no error: words decide then.
    pub async fn search(
        &self,
        holder: Holder<'_>,
        query: SearchQuery,
        deadline: Option<Instant>,
    ) -> Result<SearchAnswer, Error> {
        event::intents(holder.tenant, "", query.query.text().into_iter());
        let previous = self.previous(holder, &query.previous)?;
        let snapshot = self.shards.reach(holder.tenant, query.min_revision, deadline).await?;
        let (visibilities, looked, query) = {
            let shard = Arc::clone(&snapshot);
            let look = move || {
                let visibilities = Visibilities::of(&shard, &query.state);
                let looked = lookup::look(&shard, &query, &visibilities);
                Ok((Arc::new(visibilities), looked, Arc::new(query)))
            };
            aside(&snapshot, look).await?
        };
        let mut degraded = Vec::new();
        let mut searched_for = None;
        let findings = match looked {
            Looked::Settled(findings) => findings,
            Looked::AskEncoder(text) => {
                let meant = self
                    .by_meaning(holder.tenant, deadline, &snapshot, &query, &visibilities, text)
                    .await?;
                degraded = meant.degraded;
                searched_for = meant.intent_embedding;
                meant.findings
            }
        };
        // The intent of the turn says more than a search made on the way.
        let mut covered = previous.map_or_else(Shown::default, Shown::from);
        covered.intent_embedding = covered.intent_embedding.or(searched_for);
        degraded.extend(self.staleness(holder.tenant, &snapshot));
        let pending = pending::visible(&snapshot, &visibilities, &query.state);
        let deferred = match self.defers(holder.tenant) {
            true => deferred::count(&snapshot, &visibilities, &covered.tools),
            false => 0,
        };
        let mut answer = self.shown(holder, snapshot, &query, findings, &visibilities, covered)?;
        answer.message = with_pending(answer.message, answer.tools.is_empty(), &pending);
        answer.pending = pending;
        answer.deferred = deferred;
        answer.degraded = degraded;
        self.usage.count(holder.tenant, &account::looked_up(&answer.tools));
        let shown = answer.tools.iter();
        let shown = shown.map(|tool| answer.snapshot.tool(tool.chosen.slot).key);
        self.usage.searched(holder.tenant, holder.principal, shown);
        event::log_search(holder.tenant, &answer);
        Ok(answer)
    }

    /// Searches by the meaning of a text that names nothing. Without embeddings, words decide.
    async fn by_meaning(
        &self,
        tenant: &TenantId,
        deadline: Option<Instant>,
        snapshot: &Arc<Snapshot>,
        query: &Arc<SearchQuery>,
        visibilities: &Arc<Visibilities>,
        text: String,
    ) -> Result<Meant, Error> {
        let intents = [Intent::new(text, 1.0)];
        let texts = intent::texts(&intents);
        let embedding = self.embed(tenant, texts, deadline).instrument(part("embed"));
        let (vectors, mut degraded) = embedding.await?;
        if vectors.is_empty() || snapshot.vectors().is_none() {
            degraded.push(Degraded::LexicalOnly);
        }
        let intent_embedding = self.intent_embedding(tenant, vectors.first());
        let recall = self.recall(tenant);
        let shard = Arc::clone(snapshot);
        let query = Arc::clone(query);
        let visibilities = Arc::clone(visibilities);
        let meaning = move || {
            let embedded = Embedded::new(&intents, &vectors);
            let level = Level(query.least_overlap);
            let embedded = Embedded { recall: recall.as_ref(), level, ..embedded };
            natural(&shard, &query, &visibilities, &embedded)
        };
        let findings = aside(snapshot, meaning).await?;
        Ok(Meant { findings, degraded, intent_embedding })
    }

    /// Renders the answer and its handle. Names alone are not enough to call a tool, so they add no tools to the
    /// handle.
    fn shown(
        &self,
        holder: Holder<'_>,
        snapshot: Arc<Snapshot>,
        query: &SearchQuery,
        mut findings: Findings,
        visibilities: &Visibilities,
        mut covered: Shown,
    ) -> Result<SearchAnswer, Error> {
        let mut tools = Vec::with_capacity(findings.tools.len());
        let mut size = AnswerSize::new(query.message_max, query.detail);
        for found in &findings.tools {
            if !size.take(snapshot.tool(found.slot), false) {
                findings.left_out.push(LeftOut::over_size(found.slot, found.overlap));
                continue;
            }
            let newly_promoted = query.detail != Detail::Names
                && show(&mut covered.tools, snapshot.tool(found.slot), query.detail);
            let Candidate { slot, overlap, score, found_by, .. } = *found;
            let chosen = Chosen {
                slot,
                overlap,
                score,
                found_by,
                newly_promoted,
                is_brief: false,
                held_for: 0,
            };
            tools.push(account::active(&snapshot, chosen, query.detail));
        }
        check_room(&covered.tools)?;
        if query.detail != Detail::Names {
            self.warm_schemas(holder.tenant, &snapshot, &tools);
        }
        let left_over = findings.tools.len() - tools.len();
        if left_over > 0 {
            let more =
                format!("{left_over} more do not fit in one answer: ask for fewer at a time.");
            findings.message = format!("{} {more}", findings.message).trim_start().to_owned();
        }
        let (handle, handle_expires) = self.seal(holder, snapshot.revision, covered);
        Ok(SearchAnswer {
            form: findings.form,
            detail: query.detail,
            handle,
            handle_expires,
            refusals: explain::refusals(&snapshot, visibilities, findings.left_out),
            message: findings.message,
            pending: Vec::new(),
            searched: findings.searched,
            deferred: 0,
            lacking_required: findings.lacking_required,
            degraded: Vec::new(),
            tools,
            snapshot,
        })
    }
}

/// Adds to the message of an empty answer the pending servers that may yet have the wanted tools.
fn with_pending(message: String, is_empty: bool, pending: &[String]) -> String {
    if !is_empty || pending.is_empty() {
        return message;
    }
    let (named, more) = pending.split_at(pending.len().min(PENDING_NAMED));
    let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
    let names = named.join(", ") + &more;
    format!("{message} These MCP servers are still connecting: {names}. Search again in a while.")
}

/// Returns the minimum overlap of a tool found by meaning: half of the policy's threshold, or else the query's minimum.
fn least_overlap(snapshot: &Snapshot, query: &SearchQuery, slot: u32) -> f32 {
    let said = snapshot.tool(slot).threshold.or(snapshot.policy.defaults.threshold);
    // Half of a negative threshold would be higher.
    said.map_or(query.least_overlap, |threshold| threshold.min(threshold / 2.0))
}

/// Returns a message that caps left places empty although more tools fit; empty if they did not.
fn beyond_caps(chosen: usize, fitting: usize, places: usize) -> String {
    if chosen == fitting.min(places) {
        return String::new();
    }
    "More tools of these MCP servers fit: search for a server's name (mcp__NAME) to list all its tools."
        .to_owned()
}

/// Returns the tools nearest to a sentence, ranked as Route does and within its caps. Ranks by words if nothing was
/// embedded.
fn natural(
    snapshot: &Snapshot,
    query: &SearchQuery,
    visibilities: &Visibilities,
    embedded: &Embedded<'_>,
) -> Result<Findings, Error> {
    let by_words = embedded.is_words_only(snapshot);
    let allowed = visibilities.open(snapshot);
    let fits = |found: &Candidate| match found.found_by {
        FoundBy::Name | FoundBy::Memory => true,
        _ if by_words => found.score > 0.0,
        // A tool may be found by the sample requests of its pack, which its summary does not mention.
        _ => found.overlap.max(found.parts.nearest) >= least_overlap(snapshot, query, found.slot),
    };
    let rank = |k: usize, allowed: Option<&_>| -> Result<Vec<Candidate>, Error> {
        let look_at = if Caps::exist(snapshot) { k.max(POOL) } else { k };
        let ranked = embedded.rank(snapshot, look_at, allowed)?;
        Ok(ranked.into_iter().filter(fits).collect())
    };
    let capped = |fitting: &[Candidate], k: usize| {
        let caps = Caps::new(&snapshot.policy, query.untrusted, k);
        caps.share(snapshot, fitting.iter().copied(), k)
    };
    let fitting = rank(query.max_results, allowed.as_ref())?;
    let tools = capped(&fitting, query.max_results);
    let searched = allowed.as_ref().map_or(snapshot.tools.len(), |set| set.count_ones(..));
    let mut nothing = Nothing::default();
    if tools.is_empty() {
        let locked = lookup::locked(snapshot, visibilities);
        let fitting = rank(empty::LOCKED_MAX, Some(&locked))?;
        nothing.locked =
            capped(&fitting, empty::LOCKED_MAX).iter().map(|found| found.slot).collect();
    }
    Ok(Findings {
        form: Form::Natural,
        left_out: nothing.left_out(),
        message: if tools.is_empty() {
            nothing.message(snapshot, visibilities)
        } else {
            beyond_caps(tools.len(), fitting.len(), query.max_results)
        },
        tools,
        searched,
        lacking_required: 0,
    })
}
