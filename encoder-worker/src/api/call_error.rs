//! Closed set of errors that a call can end with.

use toolgate_encoder::EmbedError;

/// Reason that a call failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum CallError {
    /// Fields are out of range: pairs of a field and its requirement.
    #[error("{}", list(.0))]
    InvalidFields(Vec<(String, String)>),
    /// The caller expects another model.
    #[error("the worker's fingerprint is {actual:?}, not {expected:?}")]
    FingerprintMismatch {
        /// Fingerprint that the caller expects.
        expected: String,
        /// Fingerprint of the worker's model.
        actual: String,
    },
    /// The queue is full.
    #[error("at capacity: retry after the delay given, or at another worker")]
    Overloaded,
    /// The model is not loaded or not warm.
    #[error("the worker is starting: retry, or use another one")]
    Starting,
    /// The worker is about to end.
    #[error("the worker is stopping: use another one")]
    Draining,
    /// The device failed or can't be trusted.
    #[error("the device failed: use another worker")]
    Device(String),
    /// The caller's deadline has passed.
    #[error("the deadline passed before the answer was ready")]
    DeadlineExceeded,
}

impl From<EmbedError> for CallError {
    fn from(error: EmbedError) -> Self {
        match error {
            EmbedError::QueueFull => Self::Overloaded,
            EmbedError::DeadlineExceeded => Self::DeadlineExceeded,
            EmbedError::Stopped => Self::Device("the encoder has stopped".into()),
            EmbedError::Backend(cause) => Self::Device(cause),
            // The tokenizer's own message may contain part of the text.
            EmbedError::Tokenize { index, .. } => {
                Self::InvalidFields(vec![(format!("texts[{index}]"), "must have tokens".into())])
            }
        }
    }
}

fn list(violations: &[(String, String)]) -> String {
    let lines: Vec<_> = violations.iter().map(|(field, is)| format!("{field}: {is}")).collect();
    lines.join("; ")
}
