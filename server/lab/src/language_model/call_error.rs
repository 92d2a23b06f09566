//! Why a call to the endpoint brought no answer, and what that means for the calls after it.

use std::time::Duration;

use thiserror::Error;

/// A call that failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CallError {
    /// The endpoint asks to come back later, or stumbled.
    #[error("it answered HTTP {status}{}", after(.message))]
    Busy {
        /// The status: 408, 429 or 5xx.
        status: u16,
        /// How long to wait, when it says so.
        retry_after: Option<Duration>,
        /// What it says.
        message: String,
    },
    /// No answer came: no connection, a deadline, a connection that broke.
    #[error("it gave no answer: {0}")]
    Unreachable(String),
    /// It will not take any call: wrong key, wrong address, wrong model.
    #[error("it answered HTTP {status}{}", after(.message))]
    Refused {
        /// The status.
        status: u16,
        /// What it says.
        message: String,
    },
    /// It did not take this call.
    #[error("it answered HTTP {status}{}", after(.message))]
    Rejected {
        /// The status: 400, 413 or 422.
        status: u16,
        /// What it says.
        message: String,
    },
    /// The answer is not what the protocol says.
    #[error("its answer can't be read: {0}")]
    Malformed(String),
}

impl CallError {
    /// Whether the same call may succeed later.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Busy { .. } | Self::Unreachable(_) | Self::Malformed(_))
    }

    /// Whether no other call can succeed either.
    #[must_use]
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Refused { .. })
    }

    /// How long the endpoint asks to be left alone.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Busy { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}

fn after(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {message}") }
}
