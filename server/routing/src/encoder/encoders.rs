//! One encoder, for both sides of a search: summaries that are to be found, and intents that find them.

use std::sync::Arc;

use super::{Encoder, Intents, Prefixed};
use crate::encoder::EncoderMetrics;

/// What goes before texts; both are empty for models that want none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prefixes {
    /// Before an intent.
    pub query: String,
    /// Before a summary.
    pub passage: String,
}

/// An encoder as the plane uses it.
#[derive(Clone)]
pub struct Encoders {
    /// Embeds summaries.
    pub passages: Arc<dyn Encoder>,
    /// Embeds intents.
    pub intents: Arc<Intents>,
}

impl Encoders {
    /// `encoder` with these prefixes, remembering about `cache_memory` bytes of intents' embeddings.
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

    /// `encoder` as it is, remembering nothing.
    #[must_use]
    pub fn bare(encoder: &Arc<dyn Encoder>) -> Self {
        Self::new(encoder, &Prefixes::default(), 0, EncoderMetrics::default())
    }
}
