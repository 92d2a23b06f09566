//! Errors of a call to the endpoint, and their meaning for the calls that follow.

use std::time::Duration;

use thiserror::Error;

/// Failure of one call to the endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CallError {
    /// Temporary failure on the server: the endpoint is overloaded or failed internally.
    #[error("it answered HTTP {status}{}", after(.message))]
    Busy {
        /// HTTP status: 408, 429 or 5xx.
        status: u16,
        /// Delay that the endpoint asks for, if it names one.
        retry_after: Option<Duration>,
        /// Error message of the endpoint.
        message: String,
    },
    /// No answer: the connection failed or broke, or the call timed out.
    #[error("it gave no answer: {0}")]
    Unreachable(String),
    /// Permanent refusal of every call: wrong key, wrong address or wrong model.
    #[error("it answered HTTP {status}{}", after(.message))]
    Refused {
        /// HTTP status.
        status: u16,
        /// Error message of the endpoint.
        message: String,
    },
    /// Refusal of this call only.
    #[error("it answered HTTP {status}{}", after(.message))]
    Rejected {
        /// HTTP status: 400, 413 or 422.
        status: u16,
        /// Error message of the endpoint.
        message: String,
    },
    /// Answer that does not follow the protocol.
    #[error("its answer can't be read: {0}")]
    Malformed(String),
}

impl CallError {
    /// Returns true if the same call may succeed later.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Busy { .. } | Self::Unreachable(_) | Self::Malformed(_))
    }

    /// Returns true if no other call can succeed either.
    #[must_use]
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Refused { .. })
    }

    /// Returns the delay that the endpoint asks for before the next call.
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
