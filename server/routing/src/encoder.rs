//! Interface to sentence encoders for the router and the catalog. The encoder is in this process or in a pool of
//! workers. Batching, devices and models are in `toolgate-encoder-worker`.

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

/// Embedding of one text.
#[derive(Debug, Clone)]
pub struct Embedded {
    /// Vector of unit length.
    pub vector: Vec<f32>,
    /// True if the text was longer than the model reads.
    pub truncated: bool,
}

/// Future of the embeddings of a list of texts.
pub type EmbedFuture<'a> = Pin<Box<dyn Future<Output = Result<Vec<Embedded>, Error>> + Send + 'a>>;

/// Encoder of texts into embeddings.
pub trait Encoder: Send + Sync + 'static {
    /// Returns the fingerprint of the model, its files and settings. Embeddings of different fingerprints can't be
    /// compared.
    fn fingerprint(&self) -> &str;

    /// Returns the number of values in an embedding.
    fn dimensions(&self) -> usize;

    /// Embeds texts and returns one embedding each, in their order. Texts of one flow wait for each other, but not for
    /// those of other flows. Work whose deadline has passed is not begun.
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
