//! Outcomes of calls.

use tonic::{Code, Status};
use tonic_types::StatusExt as _;

/// Outcome of a call, as its caller sees it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    /// Answered with tools that were found by embeddings.
    Answered,
    /// Answered with tools that were found without embeddings.
    Degraded,
    /// Refused at once because of load. The caller may retry.
    Refused,
    /// Failed otherwise. Holds the code, and the reason if the server gave one.
    Failed(String),
}

impl Outcome {
    pub(crate) fn of(status: &Status) -> Self {
        let reason = status.get_details_error_info().map(|info| info.reason).unwrap_or_default();
        let refusals = ["OVERLOADED", "TENANT_LIMITED"];
        if status.code() == Code::ResourceExhausted && refusals.contains(&reason.as_str()) {
            return Self::Refused;
        }
        let code = format!("{:?}", status.code());
        Self::Failed(if reason.is_empty() { code } else { format!("{code} {reason}") })
    }
}

#[cfg(test)]
mod tests {
    use tonic_types::ErrorDetails;

    use super::*;

    #[test]
    fn refusals_are_no_failures() {
        let with = |code, reason: &str| {
            let mut details = ErrorDetails::new();
            details.set_error_info(reason, "toolgate", []);
            Outcome::of(&Status::with_error_details(code, "", details))
        };
        assert_eq!(with(Code::ResourceExhausted, "OVERLOADED"), Outcome::Refused);
        let other = with(Code::ResourceExhausted, "LIMIT_EXCEEDED");
        assert_eq!(other, Outcome::Failed("ResourceExhausted LIMIT_EXCEEDED".into()));
        let plain = Outcome::of(&Status::unavailable("gone"));
        assert_eq!(plain, Outcome::Failed("Unavailable".into()));
    }
}
