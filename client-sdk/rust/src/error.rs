//! Typed errors: those of the service, with their `google.rpc` details, and those that occurred before it could answer.
//! Advice for each is in `advice`.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use thiserror::Error;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;
use toolgate_proto::ERROR_DOMAIN;
use toolgate_proto::v1::ErrorReason;

use crate::advice;

/// Error of a call. Its text says what was wrong and what to do.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The endpoint is not a valid address.
    #[error(
        "\"{endpoint}\" is not an endpoint: {problem}; write one such as http://127.0.0.1:7070"
    )]
    Endpoint {
        /// The endpoint, as the caller gave it.
        endpoint: String,
        /// The problem with it.
        problem: String,
    },
    /// Options that can't be used together or with this target. Nothing was sent.
    #[error("the client's options: {problem}")]
    Options {
        /// The problem and its remedy.
        problem: String,
    },
    /// The token source gave no usable token. Nothing was sent.
    #[error("no token to call with: {problem}")]
    Token {
        /// The error of the source, or the problem with its token.
        problem: String,
    },
    /// There was no connection, or it broke before an answer came.
    #[error("no Toolgate server at {endpoint} ({cause}); is `toolgate serve` running there?")]
    Unreachable {
        /// Address of the service.
        endpoint: String,
        /// Error of the network.
        cause: String,
    },
    /// The request is larger than the client may send. Nothing was sent.
    #[error(
        "{rpc}: the request has {bytes} bytes, more than the {limit} that one message may have; send less at a time, or raise the client's max_request_bytes and the service's limits.max_message_size"
    )]
    TooLarge {
        /// The RPC, such as `RegisterServer`.
        rpc: &'static str,
        /// Size of the request, in bytes.
        bytes: usize,
        /// Maximum size, in bytes.
        limit: usize,
    },
    /// No answer came before the deadline.
    #[error("{rpc}: no answer from {endpoint} within {deadline:?}; try again, or allow more time")]
    Deadline {
        /// The RPC, such as `Route`.
        rpc: &'static str,
        /// Address of the service.
        endpoint: String,
        /// Time limit of the call.
        deadline: Duration,
    },
    /// The answer violates the API contract.
    #[error("the answer of {endpoint} makes no sense: {problem}")]
    Answer {
        /// Address of the service.
        endpoint: String,
        /// The problem with the answer.
        problem: String,
    },
    /// The service answered with an error.
    #[error(transparent)]
    Call(Box<CallError>),
}

/// Error that the service answered with.
#[derive(Debug, Clone)]
pub struct CallError {
    /// The RPC, such as `Route`.
    pub rpc: &'static str,
    /// The gRPC status code.
    pub code: Code,
    /// Reason of the error. `None` if the service gave none, or one that this version does not know.
    pub reason: Option<ErrorReason>,
    /// Name of the reason, such as `INVALID_FIELD`, even if this version does not know it. Empty if there is none.
    pub reason_name: String,
    /// Message of the service.
    pub message: String,
    /// Details of the reason, such as `limit`, `maximum` and `actual`.
    pub metadata: BTreeMap<String, String>,
    /// Fields that are wrong.
    pub violations: Vec<FieldViolation>,
    /// Time to wait before the next attempt, if the service gave one.
    pub retry_delay: Option<Duration>,
}

/// A field that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldViolation {
    /// Path of the field, such as `intents[2].text`.
    pub field: String,
    /// The problem with the field.
    pub description: String,
}

impl Error {
    /// Returns the service's reason, if it answered with one.
    #[must_use]
    pub fn reason(&self) -> Option<ErrorReason> {
        self.answer().and_then(|call| call.reason)
    }

    /// Returns the gRPC status code that corresponds to the error. Returns `None` for a mistake of the caller, after
    /// which nothing was sent.
    #[must_use]
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::Endpoint { .. } | Self::Options { .. } | Self::TooLarge { .. } => None,
            Self::Token { .. } => Some(Code::Unauthenticated),
            Self::Unreachable { .. } => Some(Code::Unavailable),
            Self::Deadline { .. } => Some(Code::DeadlineExceeded),
            Self::Answer { .. } => Some(Code::Internal),
            Self::Call(call) => Some(call.code),
        }
    }

    /// Returns the service's error, if the service answered.
    #[must_use]
    pub fn answer(&self) -> Option<&CallError> {
        match self {
            Self::Call(call) => Some(call),
            _ => None,
        }
    }

    /// Returns the time that the service asks to wait before the next attempt.
    #[must_use]
    pub fn retry_delay(&self) -> Option<Duration> {
        self.answer().and_then(|call| call.retry_delay)
    }

    /// Returns true if no server could be reached.
    #[must_use]
    pub fn is_unreachable(&self) -> bool {
        matches!(self, Self::Unreachable { .. })
    }

    /// Returns true if another attempt may help, which is so for UNAVAILABLE only.
    #[must_use]
    pub fn is_unavailable(&self) -> bool {
        self.is_unreachable() || self.answer().is_some_and(|call| call.code == Code::Unavailable)
    }

    pub(crate) fn from_status(rpc: &'static str, endpoint: &str, status: &Status) -> Self {
        let call = CallError::new(rpc, status);
        // A status with a source was made on this side, so no answer came. A connection that breaks during a call is
        // INTERNAL if HTTP/2 detects it, and UNKNOWN if the socket does.
        let made_here = std::error::Error::source(status).is_some();
        let is_network = matches!(
            call.code,
            Code::Unavailable | Code::Unknown | Code::Cancelled | Code::Internal
        );
        let says_nothing = call.reason_name.is_empty() && call.retry_delay.is_none();
        if says_nothing && (call.code == Code::Unavailable || (made_here && is_network)) {
            return Self::Unreachable { endpoint: endpoint.to_owned(), cause: innermost(status) };
        }
        Self::Call(Box::new(call))
    }
}

impl CallError {
    fn new(rpc: &'static str, status: &Status) -> Self {
        let details = status.get_error_details();
        let about = details.error_info().filter(|about| about.domain == ERROR_DOMAIN);
        let violations = details.bad_request().map(|bad| bad.field_violations.iter());
        Self {
            rpc,
            code: status.code(),
            reason: about.and_then(|about| ErrorReason::from_name(&about.reason)),
            reason_name: about.map(|about| about.reason.clone()).unwrap_or_default(),
            message: status.message().to_owned(),
            metadata: about
                .map(|about| about.metadata.clone().into_iter().collect())
                .unwrap_or_default(),
            violations: violations
                .into_iter()
                .flatten()
                .map(|violation| FieldViolation {
                    field: violation.field.clone(),
                    description: violation.description.clone(),
                })
                .collect(),
            retry_delay: details.retry_info().and_then(|retry| retry.retry_delay),
        }
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.reason_name.as_str() {
            "" => format!("{:?}", self.code),
            name => name.to_owned(),
        };
        let message =
            if self.message.is_empty() { "the service gave no message" } else { &self.message };
        write!(formatter, "{}: {message} [{name}]", self.rpc)?;
        // With a single wrong field, the service's message usually includes its description.
        let said = |violation: &&FieldViolation| !message.contains(&violation.description);
        for violation in self.violations.iter().filter(said) {
            write!(formatter, "\n  {}: {}", violation.field, violation.description)?;
        }
        if let Some(advice) = advice::advice(self) {
            write!(formatter, "\n  {advice}")?;
        }
        Ok(())
    }
}

impl std::error::Error for CallError {}

/// Returns the text of the innermost cause, which is the network's own error.
pub(crate) fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    // A status without a cause prints its code and details too; only its message is wanted.
    match last.downcast_ref::<Status>() {
        Some(status) => status.message().to_owned(),
        None => last.to_string(),
    }
}
