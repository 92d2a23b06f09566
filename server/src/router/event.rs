//! The decision event (Tool Attention, section 5: observability): one structured line per Route or
//! SearchTools call, without the intent's text.

use sha2::{Digest, Sha256};
use tracing::info;

use super::query::RouteQuery;
use super::route::Answer;
use super::search::SearchAnswer;
use crate::identity::TenantId;

/// Logs what was decided. The intents appear only as a hash of their embeddings.
pub fn log(tenant: &TenantId, query: &RouteQuery, answer: &Answer, vectors: &[Vec<f32>]) {
    if !tracing::enabled!(target: "toolgate::decision", tracing::Level::INFO) {
        return;
    }
    let names: Vec<_> =
        answer.active.iter().map(|a| &*answer.snapshot.tool(a.chosen.slot).model_name).collect();
    let overlaps: Vec<_> =
        answer.active.iter().map(|a| format!("{:.3}", a.chosen.overlap)).collect();
    let micros: u64 = answer.timings.iter().map(|(_, micros)| micros).sum();
    info!(
        target: "toolgate::decision",
        tenant = tenant.as_str(),
        turn = query.turn_id,
        model = query.options.model,
        intents = query.intents.len(),
        embedding = embedding_hash(vectors),
        revision = answer.snapshot.revision,
        candidates = answer.candidates,
        locked_or_hidden = answer.withheld,
        active = names.join(" "),
        overlaps = overlaps.join(" "),
        deferred = answer.deferral.decision.deferred,
        deferral = ?answer.deferral.decision.reason,
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

fn embedding_hash(vectors: &[Vec<f32>]) -> String {
    let mut hasher = Sha256::new();
    for value in vectors.iter().flatten() {
        hasher.update(value.to_le_bytes());
    }
    hasher.finalize()[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}
