//! Why texts were not embedded.

use thiserror::Error;

/// A request that got no embeddings.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EmbedError {
    /// As many requests as allowed wait already; nothing was done.
    #[error("the encoder's queue is full")]
    QueueFull,
    /// The deadline passed first.
    #[error("the deadline passed before the encoder was done")]
    DeadlineExceeded,
    /// The encoder's thread has ended; it will not come back.
    #[error("the encoder has stopped")]
    Stopped,
    /// A text could not be tokenized.
    #[error("text {index} cannot be tokenized: {cause}")]
    Tokenize {
        /// Its position in the request.
        index: usize,
        /// What the tokenizer said.
        cause: String,
    },
    /// The device failed on a batch that held one of the texts.
    #[error("the encoder failed: {0}")]
    Backend(String),
}
