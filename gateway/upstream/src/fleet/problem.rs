//! Problems of servers, for operators and for callers.

use crate::error::UpstreamError;

/// Problem of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Problem {
    /// The whole of it, for operators.
    pub(super) shown: String,
    /// The same for callers, who are told no path of the gateway's machine.
    pub(super) told: String,
}

impl From<String> for Problem {
    fn from(problem: String) -> Self {
        Self { told: problem.clone(), shown: problem }
    }
}

impl From<&UpstreamError> for Problem {
    fn from(error: &UpstreamError) -> Self {
        Self { shown: error.to_string(), told: error.told() }
    }
}
