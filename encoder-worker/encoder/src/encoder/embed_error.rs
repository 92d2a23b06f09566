//! Reasons that texts were not embedded.

use thiserror::Error;

/// Reason that a request got no embeddings.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EmbedError {
    /// The queue is full; nothing was done.
    #[error("the encoder's queue is full")]
    QueueFull,
    /// The deadline passed before the encoder was done.
    #[error("the deadline passed before the encoder was done")]
    DeadlineExceeded,
    /// The encoder's thread has ended and will not restart.
    #[error("the encoder has stopped")]
    Stopped,
    /// A text could not be tokenized.
    #[error("text {index} cannot be tokenized: {cause}")]
    Tokenize {
        /// Its position in the request.
        index: usize,
        /// Error of the tokenizer.
        cause: String,
    },
    /// The device failed on a batch that held one of the texts.
    #[error("the encoder failed: {0}")]
    Backend(String),
}
