//! Conversion from the closed set of call errors to gRPC statuses.

use std::collections::HashMap;
use std::time::Duration;

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, FieldViolation, StatusExt};
use toolgate_proto::ERROR_DOMAIN;
use toolgate_proto::v1::ErrorReason;

use super::call_error::CallError;

/// Delay after which a refused call is worth trying again.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// Most bytes of a caller's own text that an error repeats.
const ECHO_MAX: usize = 128;

/// Builds the status of an error, with `ErrorInfo` and the other details that its reason requires. The device's message
/// goes to the log, not to the caller.
pub(super) fn of(failure: &CallError) -> Status {
    let (code, reason) = code_of(failure);
    let mut details = ErrorDetails::new();
    details.set_error_info(reason.name(), ERROR_DOMAIN, metadata(failure));
    if let CallError::InvalidFields(violations) = failure {
        let violation = |(field, is): &(String, String)| FieldViolation::new(field, is);
        details.set_bad_request(violations.iter().map(violation).collect::<Vec<_>>());
    }
    if matches!(code, Code::Unavailable | Code::ResourceExhausted) {
        details.set_retry_info(Some(RETRY_AFTER));
    }
    let message = match failure {
        CallError::FingerprintMismatch { .. } => "the worker's model is another one".to_owned(),
        other => other.to_string(),
    };
    Status::with_error_details(code, message, details)
}

/// Returns the names of code and reason, for metrics.
pub(super) fn names(failure: &CallError) -> (&'static str, &'static str) {
    let (code, reason) = code_of(failure);
    let code = match code {
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        _ => "UNAVAILABLE",
    };
    (code, reason.name())
}

fn code_of(failure: &CallError) -> (Code, ErrorReason) {
    match failure {
        CallError::InvalidFields(_) => (Code::InvalidArgument, ErrorReason::InvalidField),
        CallError::FingerprintMismatch { .. } => {
            (Code::FailedPrecondition, ErrorReason::FingerprintMismatch)
        }
        CallError::Overloaded => (Code::ResourceExhausted, ErrorReason::Overloaded),
        CallError::Draining => (Code::Unavailable, ErrorReason::Draining),
        CallError::Starting | CallError::Device(_) => {
            (Code::Unavailable, ErrorReason::EncoderUnavailable)
        }
        CallError::DeadlineExceeded => (Code::DeadlineExceeded, ErrorReason::DeadlineExceeded),
    }
}

fn metadata(failure: &CallError) -> HashMap<String, String> {
    let CallError::FingerprintMismatch { expected, actual } = failure else {
        return HashMap::new();
    };
    let echo = &expected[..expected.floor_char_boundary(ECHO_MAX)];
    [("expected", echo), ("actual", actual)].map(|(k, v)| (k.to_owned(), v.to_owned())).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_says_its_reason_and_when_to_come_back() {
        let mismatch =
            CallError::FingerprintMismatch { expected: "é".repeat(ECHO_MAX), actual: "f".into() };
        for (failure, code, reason, retry) in [
            (CallError::InvalidFields(Vec::new()), Code::InvalidArgument, "INVALID_FIELD", false),
            (mismatch, Code::FailedPrecondition, "FINGERPRINT_MISMATCH", false),
            (CallError::Overloaded, Code::ResourceExhausted, "OVERLOADED", true),
            (CallError::Starting, Code::Unavailable, "ENCODER_UNAVAILABLE", true),
            (CallError::Draining, Code::Unavailable, "DRAINING", true),
            (CallError::Device("secret".into()), Code::Unavailable, "ENCODER_UNAVAILABLE", true),
            (CallError::DeadlineExceeded, Code::DeadlineExceeded, "DEADLINE_EXCEEDED", false),
        ] {
            let status = of(&failure);
            let details = status.get_error_details();
            assert_eq!(status.code(), code, "{failure:?}");
            assert_eq!(details.error_info().map(|info| info.reason.as_str()), Some(reason));
            assert_eq!(details.retry_info().is_some(), retry, "{failure:?}");
            assert!(!status.message().contains("secret"));
            assert!(status.details().len() < 1_024, "{failure:?}");
        }
    }
}
