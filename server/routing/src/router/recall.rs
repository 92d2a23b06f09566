//! What is remembered of calls, as one more source of a ranking: tools that were called for intents like this one.

use std::sync::Arc;

use fixedbitset::FixedBitSet;

use crate::memory::{Remembered, now_ms};
use crate::shard::snapshot::Snapshot;
use toolgate_core::imprint::{EncoderKey, Imprint};

/// What is taken off the cosine of two intents before it counts as an overlap: intents stand nearer to each other than
/// to summaries.
const PULL: f32 = 0.2;

/// A tenant's memory at one moment.
#[derive(Debug, Clone)]
pub struct Recall {
    remembered: Arc<Remembered>,
    encoder: EncoderKey,
    now_ms: i64,
}

/// A tool that was called for intents like this one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Known {
    pub(super) slot: u32,
    /// How much the calls speak for it, 0 to 1.
    pub(super) weight: f32,
    /// The cosine with the nearest of their intents, as an overlap.
    pub(super) nearest: f32,
}

impl Recall {
    /// What is remembered, asked with embeddings of the encoder of this key.
    #[must_use]
    pub fn new(remembered: Arc<Remembered>, encoder: EncoderKey) -> Self {
        Self { remembered, encoder, now_ms: now_ms() }
    }

    /// The allowed tools that were called for intents like this one, most first; ties by slot. A tool that is gone, or that
    /// this caller may not have, is as if it had never been called.
    pub(super) fn tools(
        &self,
        snapshot: &Snapshot,
        embedding: &[f32],
        allowed: Option<&FixedBitSet>,
    ) -> Vec<Known> {
        let Some(intent) = Imprint::of(self.encoder, embedding) else { return Vec::new() };
        let recalled = self.remembered.recall(&intent, self.now_ms).into_iter();
        let known = recalled.filter_map(|one| {
            let slot = snapshot.names.key(&one.tool)?;
            let nearest = one.nearest - PULL;
            Some(Known { slot, weight: one.weight, nearest })
        });
        let is_allowed =
            |one: &Known| allowed.is_none_or(|allowed| allowed.contains(one.slot as usize));
        let mut known: Vec<Known> = known.filter(is_allowed).collect();
        known.sort_by(|a, b| b.weight.total_cmp(&a.weight).then(a.slot.cmp(&b.slot)));
        known
    }
}
