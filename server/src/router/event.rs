//! The decision events (Tool Attention, section 5: observability): one structured record per Route, SearchTools
//! or Gate call, in the call's span. None has a word of an intent, a query, an argument or a state; intents and queries
//! have events of their own, which are off by default.

use std::time::Duration;

use sha2::{Digest, Sha256};
use toolgate_serving::telemetry::INTENTS;
use tracing::{Level, enabled, info};

use super::decision::Decision;
use super::query::RouteQuery;
use super::rank::Candidate;
use super::route::Answer;
use super::search::SearchAnswer;
use crate::gate::standing::Standing;
use crate::identity::TenantId;
use crate::shard::snapshot::Snapshot;
use crate::store::Revision;
use crate::usage::Amounts;

/// Logs intents themselves, for who has turned this on: the filter of nobody else lets the target through, and no span
/// has it (`crate::logging`).
pub(super) fn intents<'a>(tenant: &TenantId, turn: &str, texts: impl Iterator<Item = &'a str>) {
    if !enabled!(target: INTENTS, Level::INFO) {
        return;
    }
    for intent in texts {
        info!(target: INTENTS, tenant = tenant.as_str(), turn, intent, "asked");
    }
}

/// Logs what Route decided. The intents appear only as a hash of their embeddings; names are followed by
/// overlap and score, those of candidates by their share of words as well.
pub(super) fn route(tenant: &TenantId, query: &RouteQuery, answer: &Answer, decision: &Decision) {
    if !enabled!(target: "toolgate::decision", Level::INFO) {
        return;
    }
    let snapshot = &*answer.snapshot;
    let scored = |slot, overlap, score| scored(snapshot, slot, overlap, score);
    let candidate =
        |c: &Candidate| format!("{}:{:.3}", scored(c.slot, c.overlap, c.score), c.parts.words);
    let candidates: Vec<_> = decision.candidates.iter().map(candidate).collect();
    let chosen = answer.active.iter().map(|active| active.chosen);
    let active: Vec<_> = chosen.map(|c| scored(c.slot, c.overlap, c.score)).collect();
    let refused = |standing| decision.standings.count(snapshot, standing);
    let micros: u64 = answer.timings.iter().map(|(_, micros)| micros).sum();
    info!(
        target: "toolgate::decision",
        tenant = tenant.as_str(),
        turn = query.turn_id,
        model = query.options.model,
        intents = query.intents.len(),
        embedding = embedding_hash(&decision.vectors),
        revision = snapshot.revision,
        level = decision.level.0,
        fit = decision.fit.name(),
        candidates = candidates.join(" "),
        locked = refused(Standing::Locked),
        hidden = refused(Standing::Hidden),
        active = active.join(" "),
        deferred = answer.deferral.decision.deferred,
        deferral = ?answer.deferral.decision.reason,
        degraded = ?answer.degraded,
        phase1_tokens = answer.account.phase1,
        phase2_tokens = answer.account.phase2,
        full_tokens = answer.account.full_catalog,
        micros,
        "route"
    );
}

/// Logs what was searched, without the query.
pub fn log_search(tenant: &TenantId, answer: &SearchAnswer) {
    info!(
        target: "toolgate::decision",
        tenant = tenant.as_str(),
        form = ?answer.form,
        detail = ?answer.detail,
        revision = answer.snapshot.revision,
        searched = answer.searched,
        found = answer.tools.len(),
        refused = answer.refusals.len(),
        tokens = answer.tools.iter().map(|tool| u64::from(tool.tokens)).sum::<u64>(),
        "search"
    );
}

/// Logs what Gate decided, as codes and counts.
pub(super) fn gate(tenant: &TenantId, revision: Revision, counted: &Amounts, took: Duration) {
    if !enabled!(target: "toolgate::decision", Level::INFO) {
        return;
    }
    let refused: Vec<_> =
        counted.refused.iter().map(|(code, calls)| format!("{code}:{calls}")).collect();
    info!(
        target: "toolgate::decision",
        tenant = tenant.as_str(),
        revision,
        allowed = counted.allowed_calls,
        refused = refused.join(" "),
        micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
        "gate"
    );
}

fn scored(snapshot: &Snapshot, slot: u32, overlap: f32, score: f32) -> String {
    format!("{}:{overlap:.3}:{score:.3}", snapshot.tool(slot).model_name)
}

/// Empty when nothing was embedded.
fn embedding_hash(vectors: &[Vec<f32>]) -> String {
    if vectors.is_empty() {
        return String::new();
    }
    let mut hasher = Sha256::new();
    for value in vectors.iter().flatten() {
        hasher.update(value.to_le_bytes());
    }
    hasher.finalize()[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}
