//! Mapping of the domain's closed set of errors to gRPC statuses. No other place maps them.

use std::collections::HashMap;
use std::error::Error as StdError;
use std::time::Duration;

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, FieldViolation as Violation, StatusExt};
use toolgate_proto::ERROR_DOMAIN;
use toolgate_proto::v1::ErrorReason;
use tracing::error;

use toolgate_core::error::{Error, FieldViolation};

/// Delay after which a shed or failed call should be retried.
pub(super) const RETRY_AFTER: Duration = Duration::from_millis(100);

/// Maximum number of violations in a status, and maximum bytes of its message. A status is sent in headers, which
/// clients bound.
const VIOLATIONS_SHOWN: usize = 16;
const MESSAGE_MAX: usize = 1_024;

/// Returns the status of an error, with `ErrorInfo` and the details that its reason requires. Causes go to the log, not
/// to the caller.
pub(super) fn of(failure: &Error) -> Status {
    log(failure);
    let (code, reason) = code_of(failure);
    let mut details = ErrorDetails::new();
    details.set_error_info(reason.name(), ERROR_DOMAIN, metadata(failure));
    if let Error::InvalidFields(violations) | Error::ToolsRejected(violations) = failure {
        let shown = violations.iter().take(VIOLATIONS_SHOWN);
        details.set_bad_request(shown.map(violation).collect::<Vec<_>>());
    }
    if let Some(wait) = retry_after(failure, code) {
        details.set_retry_info(Some(wait));
    }
    Status::with_error_details(code, shortened(failure.to_string()), details)
}

fn shortened(text: String) -> String {
    if text.len() <= MESSAGE_MAX {
        return text;
    }
    format!("{}...", &text[..text.floor_char_boundary(MESSAGE_MAX)])
}

/// Returns the delay before a retry, or `None` if a retry can't help.
fn retry_after(failure: &Error, code: Code) -> Option<Duration> {
    match failure {
        Error::TenantLimited { retry_after, .. } => Some(*retry_after),
        Error::Overloaded => Some(RETRY_AFTER),
        _ => (code == Code::Unavailable).then_some(RETRY_AFTER),
    }
}

/// Returns the names of code and reason, for metrics and spans.
pub(super) fn names(failure: &Error) -> (&'static str, &'static str) {
    let (code, reason) = code_of(failure);
    let code = match code {
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::Unauthenticated => "UNAUTHENTICATED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Unavailable => "UNAVAILABLE",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::DataLoss => "DATA_LOSS",
        _ => "INTERNAL",
    };
    (code, reason.name())
}

fn code_of(failure: &Error) -> (Code, ErrorReason) {
    match failure {
        Error::InvalidFields(_) => (Code::InvalidArgument, ErrorReason::InvalidField),
        Error::LimitExceeded { .. } => (Code::InvalidArgument, ErrorReason::LimitExceeded),
        Error::StockExceeded { .. } => (Code::ResourceExhausted, ErrorReason::LimitExceeded),
        Error::AnswerTooLarge { .. } => (Code::ResourceExhausted, ErrorReason::LimitExceeded),
        Error::MalformedCatalog { .. } => (Code::InvalidArgument, ErrorReason::MalformedCatalog),
        Error::TenantNotFound(_) => (Code::NotFound, ErrorReason::TenantNotFound),
        Error::ServerNotFound(_) => (Code::NotFound, ErrorReason::ServerNotFound),
        Error::EtagMismatch { .. } => (Code::Aborted, ErrorReason::EtagMismatch),
        Error::Contended => (Code::Aborted, ErrorReason::EtagMismatch),
        Error::RequestIdReused(_) => (Code::AlreadyExists, ErrorReason::RequestIdReused),
        Error::ToolsRejected(_) => (Code::FailedPrecondition, ErrorReason::ToolsRejected),
        Error::HandleInvalid(_) => (Code::InvalidArgument, ErrorReason::HandleInvalid),
        Error::PageTokenInvalid => (Code::InvalidArgument, ErrorReason::PageTokenInvalid),
        Error::Unauthenticated(_) => (Code::Unauthenticated, ErrorReason::Unauthenticated),
        Error::PermissionDenied(_) => (Code::PermissionDenied, ErrorReason::PermissionDenied),
        Error::Overloaded => (Code::ResourceExhausted, ErrorReason::Overloaded),
        Error::TenantLimited { .. } => (Code::ResourceExhausted, ErrorReason::TenantLimited),
        Error::Draining => (Code::Unavailable, ErrorReason::Draining),
        Error::DeadlineExceeded => (Code::DeadlineExceeded, ErrorReason::DeadlineExceeded),
        Error::EncoderUnavailable(_) => (Code::Unavailable, ErrorReason::EncoderUnavailable),
        Error::StoreUnavailable(_) => (Code::Unavailable, ErrorReason::StoreUnavailable),
        Error::StoreDamaged(_) => (Code::DataLoss, ErrorReason::StoreUnavailable),
        Error::StoreFull(_) => (Code::Unavailable, ErrorReason::StoreUnavailable),
        Error::CatalogUnvouched { .. } => (Code::Unavailable, ErrorReason::StoreUnavailable),
        Error::AuditUnavailable(_) => (Code::Unavailable, ErrorReason::StoreUnavailable),
        Error::AuditFull(_) => (Code::Unavailable, ErrorReason::StoreUnavailable),
        Error::RevisionNotReached { .. } => (Code::Unavailable, ErrorReason::RevisionNotReached),
        Error::NotImplemented(_) => (Code::Unimplemented, ErrorReason::NotImplemented),
        Error::Internal(_) => (Code::Internal, ErrorReason::Internal),
    }
}

fn metadata(failure: &Error) -> HashMap<String, String> {
    let pairs: Vec<(&str, String)> = match failure {
        Error::LimitExceeded { limit, maximum, actual }
        | Error::StockExceeded { limit, maximum, actual }
        | Error::AnswerTooLarge { limit, maximum, actual, .. } => vec![
            ("limit", (*limit).to_owned()),
            ("maximum", maximum.to_string()),
            ("actual", actual.to_string()),
        ],
        Error::MalformedCatalog { line, column, .. } => {
            vec![("line", line.to_string()), ("column", column.to_string())]
        }
        Error::TenantNotFound(tenant) => vec![("tenant", tenant.clone())],
        Error::ServerNotFound(server) => vec![("server", server.clone())],
        Error::EtagMismatch { actual, .. } => vec![("etag", actual.clone())],
        Error::RevisionNotReached { wanted, seen } => {
            vec![("min_revision", wanted.to_string()), ("revision", seen.to_string())]
        }
        Error::TenantLimited { limit, .. } => vec![("limit", (*limit).to_owned())],
        Error::NotImplemented(what) => vec![("rpc", (*what).to_owned())],
        _ => Vec::new(),
    };
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

fn violation(violation: &FieldViolation) -> Violation {
    Violation::new(violation.field.clone(), violation.problem.clone())
}

/// Logs an error that has causes, with the chain of them. Each error is logged only here.
fn log(failure: &Error) {
    let mut cause = failure.source();
    let mut chain = String::new();
    while let Some(inner) = cause {
        chain.push_str(": ");
        chain.push_str(&inner.to_string());
        cause = inner.source();
    }
    if !chain.is_empty() {
        error!(reason = names(failure).1, "{failure}{chain}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_store::StoreError;

    #[test]
    fn what_is_damaged_is_told_as_lost_and_not_as_a_defect() {
        let status = of(&StoreError::Damaged("a hash of 3 bytes".to_owned()).into());
        assert_eq!(status.code(), Code::DataLoss);
        assert!(status.message().contains("damaged"), "{}", status.message());
        assert!(!status.message().contains("3 bytes"), "the cause is for the log");
        let details = status.get_error_details();
        assert!(details.retry_info().is_none(), "it does not mend itself");
    }

    #[test]
    fn a_full_disk_is_named_and_may_be_tried_again() {
        for full in [Error::AuditFull("no room".into()), Error::StoreFull("no room".into())] {
            let status = of(&full);
            assert_eq!(status.code(), Code::Unavailable);
            assert!(status.message().contains("disk"), "{}", status.message());
            assert!(status.get_error_details().retry_info().is_some());
        }
    }
}
