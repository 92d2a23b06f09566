//! Remembered calls as a source of the ranking: tools that were called for intents similar to this one.

use std::sync::Arc;

use fixedbitset::FixedBitSet;

use crate::memory::{Remembered, now_ms};
use crate::shard::snapshot::Snapshot;
use toolgate_core::quantized_embedding::{EncoderKey, QuantizedEmbedding};

/// Deduction from the cosine of two intents before it counts as an overlap. Intents are nearer to each other than to
/// summaries.
const PULL: f32 = 0.2;

/// Memory of a tenant's past calls at one moment.
#[derive(Debug, Clone)]
pub struct Recall {
    remembered: Arc<Remembered>,
    encoder: EncoderKey,
    now_ms: i64,
}

/// Tool that was called for similar intents.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::router) struct RecalledTool {
    pub(in crate::router) slot: u32,
    /// Weight of those calls; 0 to 1.
    pub(in crate::router) weight: f32,
    /// Cosine with the nearest of their intents, less [`PULL`], so that it compares with overlaps.
    pub(in crate::router) nearest: f32,
}

impl Recall {
    /// Creates the recall of a tenant's memory for embeddings of one encoder.
    #[must_use]
    pub fn new(remembered: Arc<Remembered>, encoder: EncoderKey) -> Self {
        Self { remembered, encoder, now_ms: now_ms() }
    }

    /// Returns the allowed tools that were called for similar intents, highest weight first; ties by slot. Leaves out
    /// tools that no longer exist or that this caller may not have.
    pub(in crate::router) fn tools(
        &self,
        snapshot: &Snapshot,
        embedding: &[f32],
        allowed: Option<&FixedBitSet>,
    ) -> Vec<RecalledTool> {
        let Some(intent) = QuantizedEmbedding::of(self.encoder, embedding) else {
            return Vec::new();
        };
        let recalled = self.remembered.recall(&intent, self.now_ms).into_iter();
        let known = recalled.filter_map(|one| {
            let slot = snapshot.names.key(&one.tool)?;
            let nearest = one.nearest - PULL;
            Some(RecalledTool { slot, weight: one.weight, nearest })
        });
        let is_allowed =
            |one: &RecalledTool| allowed.is_none_or(|allowed| allowed.contains(one.slot as usize));
        let mut known: Vec<RecalledTool> = known.filter(is_allowed).collect();
        known.sort_by(|a, b| b.weight.total_cmp(&a.weight).then(a.slot.cmp(&b.slot)));
        known
    }
}
