//! Failures as types: what the service said in `google.rpc` details, and what happened before it could say
//! anything. What to do about each is in `advice`.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use thiserror::Error;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;
use toolgate_proto::ERROR_DOMAIN;
use toolgate_proto::v1::ErrorReason;

use crate::advice;

/// A call failed. The text says what was wrong and what to do.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The endpoint is not an address that can be called.
    #[error(
        "\"{endpoint}\" is not an endpoint: {problem}; write one such as http://127.0.0.1:7070"
    )]
    Endpoint {
        /// As it was given.
        endpoint: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Options that can't be used together, or not with this target; nothing was sent.
    #[error("the client's options: {problem}")]
    Options {
        /// What is wrong, and what would be right.
        problem: String,
    },
    /// The token source gave nothing to call with; nothing was sent.
    #[error("no token to call with: {problem}")]
    Token {
        /// What the source said, or what is wrong with its token.
        problem: String,
    },
    /// No connection, or it broke before an answer came.
    #[error("no Toolgate server at {endpoint} ({cause}); is `toolgate serve` running there?")]
    Unreachable {
        /// The address called.
        endpoint: String,
        /// What the network said.
        cause: String,
    },
    /// The request is larger than the client may send; nothing was sent.
    #[error(
        "{rpc}: the request has {bytes} bytes, more than the {limit} that one message may have; send less at a time, or raise the client's max_request_bytes and the service's limits.max_message_size"
    )]
    TooLarge {
        /// The RPC, such as `RegisterServer`.
        rpc: &'static str,
        /// Its size in bytes.
        bytes: usize,
        /// The most, in bytes.
        limit: usize,
    },
    /// No answer came in time.
    #[error("{rpc}: no answer from {endpoint} within {deadline:?}; try again, or allow more time")]
    Deadline {
        /// The RPC, such as `Route`.
        rpc: &'static str,
        /// The address called.
        endpoint: String,
        /// The time that the call had.
        deadline: Duration,
    },
    /// The answer is not of the shape that the contract promises.
    #[error("the answer of {endpoint} makes no sense: {problem}")]
    Answer {
        /// The address called.
        endpoint: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The service answered with an error.
    #[error(transparent)]
    Call(Box<CallError>),
}

/// An error that the service answered with.
#[derive(Debug, Clone)]
pub struct CallError {
    /// The RPC, such as `Route`.
    pub rpc: &'static str,
    /// The gRPC status code.
    pub code: Code,
    /// The reason; `None` when the service gave none, or one of a newer contract.
    pub reason: Option<ErrorReason>,
    /// The reason's name, such as `INVALID_FIELD`, also of a newer contract; empty when there is none.
    pub reason_name: String,
    /// The service's words.
    pub message: String,
    /// More about the reason, such as `limit`, `maximum` and `actual`.
    pub metadata: BTreeMap<String, String>,
    /// The fields at fault.
    pub violations: Vec<FieldViolation>,
    /// How long to wait before trying again, when the service said so.
    pub retry_delay: Option<Duration>,
}

/// One field at fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldViolation {
    /// The field's path, such as `intents[2].text`.
    pub field: String,
    /// What is wrong with it.
    pub description: String,
}

impl Error {
    /// The service's reason, when it answered with one.
    #[must_use]
    pub fn reason(&self) -> Option<ErrorReason> {
        self.answer().and_then(|call| call.reason)
    }

    /// The status code of gRPC that says the same; `None` for a mistake of the caller's, of which nothing was
    /// sent.
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

    /// The service's error, when it answered at all.
    #[must_use]
    pub fn answer(&self) -> Option<&CallError> {
        match self {
            Self::Call(call) => Some(call),
            _ => None,
        }
    }

    /// How long the service asked to wait before trying again.
    #[must_use]
    pub fn retry_delay(&self) -> Option<Duration> {
        self.answer().and_then(|call| call.retry_delay)
    }

    /// Whether no server could be spoken to.
    #[must_use]
    pub fn is_unreachable(&self) -> bool {
        matches!(self, Self::Unreachable { .. })
    }

    /// Whether trying again may help: UNAVAILABLE only.
    #[must_use]
    pub fn is_unavailable(&self) -> bool {
        self.is_unreachable() || self.answer().is_some_and(|call| call.code == Code::Unavailable)
    }

    pub(crate) fn from_status(rpc: &'static str, endpoint: &str, status: &Status) -> Self {
        let call = CallError::new(rpc, status);
        // A status with a source was made on this side: no answer came. A connection that broke amid a call
        // is INTERNAL where the rules of HTTP/2 found it broken, UNKNOWN where the socket did.
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
        // With one field at fault, the service's message usually says it already.
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

/// The network's own words: the last of the chain of causes.
pub(crate) fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    // A status without a cause prints its code and details as well as its words.
    match last.downcast_ref::<Status>() {
        Some(status) => status.message().to_owned(),
        None => last.to_string(),
    }
}
