//! Rule of A. Sadani, "Tool Attention Is All You Need" (2026), section 4, to the letter: the `top_k` tools of the highest
//! overlap among those whose overlap reaches the threshold, each by itself, and whose preconditions hold. Names, words,
//! packs, earlier messages, earlier calls and the turn before decide nothing. Preconditions, scopes, quarantine,
//! filters of the request and the policy's limits hold as they do for the other rule.
//!
//! The overlap is the cosine of the intent as it stands and the tool's summary. In the index, the row of a tool with a
//! pack is mixed from its summary and the pack's requests; [`Dense::cosine`] takes the requests out again, to within
//! rounding (about 1e-6).

use std::collections::BTreeMap;

use fixedbitset::FixedBitSet;

use crate::router::intent::Intent;
use crate::router::query::Options;
use crate::router::ranking::rank::{Candidate, sort};
use crate::shard::Dense;
use crate::shard::snapshot::Snapshot;
use toolgate_core::error::Error;
use toolgate_core::policy::Policy;

/// Threshold where the request names none.
pub const THRESHOLD: f32 = 0.28;

/// Returns the options under the rule: the request's threshold or [`THRESHOLD`] for each tool, and the request's `top_k`
/// or the policy's. Of the policy's other defaults, those on scores do not apply.
pub(super) fn options(request: &Options, policy: &Policy) -> Options {
    let unset = request.unset;
    Options {
        top_k: policy.defaults.top_k.filter(|_| unset.top_k).unwrap_or(request.top_k),
        threshold: if unset.threshold { THRESHOLD } else { request.threshold },
        abstain_below: None,
        learned: None,
        ratio: None,
        ..request.clone()
    }
}

/// Returns the intents that the rule reads: those of the message, whole and as they stand.
pub(super) fn intents(intents: Vec<Intent>) -> Vec<Intent> {
    let own = intents.into_iter().filter(|intent| !intent.is_context());
    own.map(|intent| Intent::verbatim(intent.text, intent.weight)).collect()
}

/// Returns at least the `k` allowed tools of the highest overlap, best first. Of several intents, the highest overlap
/// counts, whatever their weights. `vectors` are the embeddings of the intents.
///
/// # Errors
/// [`Error::Internal`] when an embedding does not fit the index.
pub(super) fn rank<'v>(
    snapshot: &Snapshot,
    index: Dense<'_>,
    vectors: impl Iterator<Item = &'v Vec<f32>>,
    k: usize,
    allowed: Option<&FixedBitSet>,
) -> Result<Vec<Candidate>, Error> {
    let mut overlaps: BTreeMap<u32, f32> = BTreeMap::new();
    for vector in vectors {
        for hit in index.search_summaries(vector, k, allowed).map_err(Error::internal)? {
            let known = overlaps.entry(hit.slot).or_insert(hit.overlap);
            *known = known.max(hit.overlap);
        }
    }
    let by_overlap =
        overlaps.into_iter().map(|(slot, overlap)| Candidate::of_overlap(slot, overlap));
    let mut candidates: Vec<Candidate> = by_overlap.collect();
    sort(snapshot, &mut candidates);
    Ok(candidates)
}
