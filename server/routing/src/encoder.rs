//! The seam to sentence encoders: what the router and the catalog ask of one, and what is behind it: this
//! process, or a pool of workers. Batching, devices and models live in `toolgate-encoder-worker`.

mod cache;
mod encoders;
mod flows;
mod intents;
mod metrics;
pub mod pool;
mod prefixed;
#[cfg(test)]
mod tests;
#[cfg(any(test, feature = "word-encoder"))]
pub mod words;

use std::pin::Pin;
use std::time::Instant;

use toolgate_encoder::{EmbedError, EncoderHandle};

pub use metrics::{EncoderMetrics, WorkerMetrics};
pub use toolgate_encoder::Flow;

pub use encoders::{Encoders, Prefixes};
pub use flows::{flow_of_intents, flow_of_passages};
pub use intents::Intents;
pub use pool::EncoderPool;
pub use prefixed::Prefixed;

use toolgate_core::error::Error;

/// An embedding and how the text was read.
#[derive(Debug, Clone)]
pub struct Embedded {
    /// The embedding, unit length.
    pub vector: Vec<f32>,
    /// Whether the text was longer than the model reads.
    pub truncated: bool,
}

/// What embedding returns.
pub type EmbedFuture<'a> = Pin<Box<dyn Future<Output = Result<Vec<Embedded>, Error>> + Send + 'a>>;

/// Turns texts into embeddings.
pub trait Encoder: Send + Sync + 'static {
    /// Identifies the model, files and settings: embeddings of different fingerprints don't mix.
    fn fingerprint(&self) -> &str;

    /// The length of one embedding.
    fn dimensions(&self) -> usize;

    /// Embeds texts, one embedding each, in their order; those of one flow wait for each other, and not for those of
    /// others. Work whose deadline has passed is not begun.
    fn embed(&self, texts: Vec<String>, flow: Flow, deadline: Option<Instant>) -> EmbedFuture<'_>;
}

impl Encoder for EncoderHandle {
    fn fingerprint(&self) -> &str {
        &self.model().fingerprint
    }

    fn dimensions(&self) -> usize {
        self.model().dimensions
    }

    fn embed(&self, texts: Vec<String>, flow: Flow, deadline: Option<Instant>) -> EmbedFuture<'_> {
        Box::pin(async move {
            let embedded = self.embed(texts, flow, deadline).await.map_err(to_error)?;
            let read = |e: toolgate_encoder::Embedding| Embedded {
                vector: e.vector,
                truncated: e.truncated,
            };
            Ok(embedded.into_iter().map(read).collect())
        })
    }
}

fn to_error(error: EmbedError) -> Error {
    match error {
        EmbedError::DeadlineExceeded => Error::DeadlineExceeded,
        other => Error::EncoderUnavailable(Box::new(other)),
    }
}
