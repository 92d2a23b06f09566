//! What can go wrong with a call, as one closed set.

use toolgate_encoder::EmbedError;

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum CallError {
    /// Fields are out of range: each with what would be right.
    #[error("{}", list(.0))]
    InvalidFields(Vec<(String, String)>),
    /// The caller expects another model.
    #[error("the worker's fingerprint is {actual:?}, not {expected:?}")]
    FingerprintMismatch {
        /// What the caller expects.
        expected: String,
        /// The worker's.
        actual: String,
    },
    /// As much waits as may.
    #[error("at capacity: retry after the delay given, or at another worker")]
    Overloaded,
    /// The model is not loaded or not warm.
    #[error("the worker is starting: retry, or use another one")]
    Starting,
    /// The worker is about to end.
    #[error("the worker is stopping: use another one")]
    Draining,
    /// The device failed, or can't be trusted.
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
            // The tokenizer's own words may hold some of the text.
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
