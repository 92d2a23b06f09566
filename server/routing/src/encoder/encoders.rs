//! Encoder for both sides of a search: the summaries to be found, and the intents to search with.

use std::sync::Arc;

use super::{Encoder, Intents, Prefixed};
use crate::encoder::EncoderMetrics;

/// Prefixes of texts. Both are empty for models that need none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prefixes {
    /// Prefix of an intent.
    pub query: String,
    /// Prefix of a summary.
    pub passage: String,
}

/// Pair of encoders, one for summaries and one for intents.
#[derive(Clone)]
pub struct Encoders {
    /// Encoder of summaries.
    pub passages: Arc<dyn Encoder>,
    /// Encoder of intents.
    pub intents: Arc<Intents>,
}

impl Encoders {
    /// Wraps `encoder` with the prefixes and with a cache of about `cache_memory` bytes for the embeddings of intents.
    #[must_use]
    pub fn new(
        encoder: &Arc<dyn Encoder>,
        prefixes: &Prefixes,
        cache_memory: u64,
        metrics: EncoderMetrics,
    ) -> Self {
        let with = |prefix: &str| Prefixed::new(Arc::clone(encoder), prefix);
        let intents = Intents::new(Arc::new(with(&prefixes.query)), cache_memory, metrics);
        Self { passages: Arc::new(with(&prefixes.passage)), intents: Arc::new(intents) }
    }

    /// Wraps `encoder` without prefixes and without a cache.
    #[must_use]
    pub fn bare(encoder: &Arc<dyn Encoder>) -> Self {
        Self::new(encoder, &Prefixes::default(), 0, EncoderMetrics::default())
    }
}
