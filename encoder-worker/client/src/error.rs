//! Errors of calls of a worker.

use std::time::Duration;

use tonic::{Code, Status};

/// Error of a call of an encoder worker.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The address is not one that can be called.
    #[error("invalid encoder worker address \"{address}\": {problem}; expected host:port")]
    Address {
        /// Address as it was given.
        address: String,
        /// Description of the problem.
        problem: String,
    },
    /// There is no connection, or it broke before an answer came.
    #[error("no connection to the encoder worker at {address}: {cause}")]
    Unreachable {
        /// Address that was called.
        address: String,
        /// Cause, as the network reports it.
        cause: String,
    },
    /// No answer came in time.
    #[error("{rpc}: no answer from the encoder worker at {address} within {deadline:?}")]
    Deadline {
        /// RPC, such as `Embed`.
        rpc: &'static str,
        /// Address that was called.
        address: String,
        /// Time that the call had.
        deadline: Duration,
    },
    /// The answer does not have the shape that the contract promises.
    #[error("invalid answer of the encoder worker at {address}: {problem}")]
    Answer {
        /// Address that was called.
        address: String,
        /// Description of the problem.
        problem: String,
    },
    /// The worker answered with an error.
    #[error("{rpc}: the encoder worker at {address} answered {code:?}: {message}")]
    Call {
        /// RPC, such as `Embed`.
        rpc: &'static str,
        /// Address that was called.
        address: String,
        /// gRPC status code.
        code: Code,
        /// Message of the worker.
        message: String,
    },
}

impl Error {
    pub(crate) fn from_status(rpc: &'static str, address: &str, status: &Status) -> Self {
        let address = address.to_owned();
        let code = status.code();
        // A status with a source was made on this side: no answer came. A connection that broke amid a call is INTERNAL
        // where the rules of HTTP/2 found it broken, UNKNOWN where the socket did.
        let made_here = std::error::Error::source(status).is_some();
        let is_network =
            matches!(code, Code::Unavailable | Code::Unknown | Code::Cancelled | Code::Internal);
        if made_here && is_network {
            return Self::Unreachable { address, cause: innermost(status) };
        }
        Self::Call { rpc, address, code, message: status.message().to_owned() }
    }

    /// Returns true if an answer of the worker came, whatever it says. A time limit ends a call on either side with the
    /// same codes, so that those are no answer.
    #[must_use]
    pub fn is_answer(&self) -> bool {
        match self {
            Self::Answer { .. } => true,
            Self::Call { code, .. } => !matches!(code, Code::DeadlineExceeded | Code::Cancelled),
            Self::Address { .. } | Self::Unreachable { .. } | Self::Deadline { .. } => false,
        }
    }

    /// Returns the code that the worker answered with; `None` if no answer came.
    #[must_use]
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::Call { code, .. } => Some(*code),
            _ => None,
        }
    }
}

/// Returns the message of the innermost cause.
pub(crate) fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.last().map(ToString::to_string).unwrap_or_default()
}
