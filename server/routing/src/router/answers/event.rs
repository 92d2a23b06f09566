//! Decision events (Tool Attention, section 5: observability): one structured record per Route or SearchTools
//! call, in the call's span. Gate's is in `gate/event.rs`. They contain no text of an intent, a query, an argument or a state. Intents and queries
//! have events of their own, which are off by default.

use sha2::{Digest, Sha256};
use toolgate_telemetry::{DECISIONS, INTENTS};
use tracing::{Level, debug, enabled, info};

use crate::gate::visibility::Visibility;
use crate::router::query::RouteQuery;
use crate::router::ranking::rank::Candidate;
use crate::router::route::{Active, Answer};
use crate::router::search::SearchAnswer;
use crate::router::selection::decision::Decision;
use crate::shard::snapshot::Snapshot;
use toolgate_core::identity::TenantId;

/// Logs the intents themselves, for operators who have turned this on. Without that, the filter drops this target. No
/// span carries it (`crate::logging`).
pub(in crate::router) fn intents<'a>(
    tenant: &TenantId,
    turn: &str,
    texts: impl Iterator<Item = &'a str>,
) {
    if !enabled!(target: INTENTS, Level::INFO) {
        return;
    }
    for intent in texts {
        info!(target: INTENTS, tenant = tenant.as_str(), turn, intent, "asked");
    }
}

/// Logs the decision of Route: a short record, and at level debug its components. The debug record has the intents only
/// as a hash of their embeddings. Tool names are followed by overlap and score, those of candidates by their share of
/// words as well.
pub(in crate::router) fn route(
    tenant: &TenantId,
    query: &RouteQuery,
    answer: &Answer,
    decision: &Decision,
) {
    let refused = |visibility| decision.visibilities.count(&answer.snapshot, visibility);
    info!(
        target: DECISIONS,
        tenant = tenant.as_str(),
        turn = query.turn_id,
        model = query.options.model,
        intents = query.intents.len(),
        revision = answer.snapshot.revision,
        fit = decision.fit.name(),
        candidates = decision.candidates.len(),
        locked = refused(Visibility::Locked),
        hidden = refused(Visibility::Hidden),
        active = names(answer),
        deferred = answer.deferral.decision.deferred,
        deferral = ?answer.deferral.decision.reason,
        degraded = ?answer.degraded,
        phase1_tokens = answer.account.phase1,
        phase2_tokens = answer.account.phase2,
        full_tokens = answer.account.full_catalog,
        micros = answer.timings.iter().map(|(_, micros)| micros).sum::<u64>(),
        "route"
    );
    debug!(
        target: DECISIONS,
        tenant = tenant.as_str(),
        turn = query.turn_id,
        revision = answer.snapshot.revision,
        embedding = embedding_hash(&decision.vectors),
        level = decision.level.0,
        candidates = candidates(answer, decision),
        active = scores(answer),
        "route scores"
    );
}

fn names(answer: &Answer) -> String {
    let name = |active: &Active| &*answer.snapshot.tool(active.chosen.slot).model_name;
    answer.active.iter().map(name).collect::<Vec<_>>().join(" ")
}

fn scores(answer: &Answer) -> String {
    let one = |active: &Active| {
        let chosen = &active.chosen;
        scored(&answer.snapshot, chosen.slot, chosen.overlap, chosen.score)
    };
    answer.active.iter().map(one).collect::<Vec<_>>().join(" ")
}

fn candidates(answer: &Answer, decision: &Decision) -> String {
    let one = |c: &Candidate| {
        format!("{}:{:.3}", scored(&answer.snapshot, c.slot, c.overlap, c.score), c.parts.words)
    };
    decision.candidates.iter().map(one).collect::<Vec<_>>().join(" ")
}

/// Logs the result of a search, without the query.
pub fn log_search(tenant: &TenantId, answer: &SearchAnswer) {
    info!(
        target: DECISIONS,
        tenant = tenant.as_str(),
        form = ?answer.form,
        detail = ?answer.detail,
        revision = answer.snapshot.revision,
        searched = answer.searched,
        deferred = answer.deferred,
        found = answer.tools.len(),
        refused = answer.refusals.len(),
        tokens = answer.tools.iter().map(|tool| u64::from(tool.tokens)).sum::<u64>(),
        "search"
    );
}

fn scored(snapshot: &Snapshot, slot: u32, overlap: f32, score: f32) -> String {
    format!("{}:{overlap:.3}:{score:.3}", snapshot.tool(slot).model_name)
}

/// Returns a hash of the embeddings; empty when nothing was embedded.
fn embedding_hash(vectors: &[Vec<f32>]) -> String {
    if vectors.is_empty() {
        return String::new();
    }
    let mut hasher = Sha256::new();
    for value in vectors.iter().flatten() {
        hasher.update(value.to_le_bytes());
    }
    hex::encode(&hasher.finalize()[..8])
}
