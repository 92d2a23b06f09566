//! Encoder that returns stored embeddings. Packs are attached many times, and no text is embedded twice.

use std::sync::Arc;
use std::time::Instant;

use crate::eval::embeddings::Embeddings;
use toolgate_core::error::Error;
use toolgate_routing::encoder::{EmbedFuture, Embedded, Encoder, Flow};

/// Stored embeddings that act as an encoder.
#[derive(Debug, Clone)]
pub(super) struct StoredEmbeddings {
    /// Stored embeddings; empty if only words decide.
    pub(super) embeddings: Arc<Embeddings>,
    pub(super) fingerprint: String,
    pub(super) dimensions: usize,
}

impl Encoder for StoredEmbeddings {
    fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn embed(&self, texts: Vec<String>, _: Flow, _: Option<Instant>) -> EmbedFuture<'_> {
        let known = |text: &String| {
            let vector = self.embeddings.vector(text)?.to_vec();
            Some(Embedded { vector, truncated: false })
        };
        let known: Option<Vec<_>> = texts.iter().map(known).collect();
        Box::pin(std::future::ready(
            known.ok_or_else(|| Error::internal("a text was not embedded before")),
        ))
    }
}
