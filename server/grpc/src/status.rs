//! Mapping of the domain's closed set of errors to gRPC statuses. No other place maps them.

use std::collections::HashMap;
use std::time::Duration;

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, FieldViolation as Violation, StatusExt};
use toolgate_proto::ERROR_DOMAIN;

use toolgate_core::error::{self, Error, FieldViolation};

/// Delay after which a shed or failed call should be retried.
pub(super) const RETRY_AFTER: Duration = Duration::from_millis(100);

/// Maximum number of violations in a status, and maximum bytes of its message. A status is sent in headers, which
/// clients bound.
const VIOLATIONS_SHOWN: usize = 16;
const MESSAGE_MAX: usize = 1_024;

/// Returns the status of an error, with `ErrorInfo` and the details that its reason requires. Causes go to the log, which is
/// the pipeline's, and not to the caller.
pub(super) fn of(failure: &Error) -> Status {
    let code = code_of(failure);
    let mut details = ErrorDetails::new();
    details.set_error_info(failure.reason().name(), ERROR_DOMAIN, metadata(failure));
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

fn code_of(failure: &Error) -> Code {
    match failure.code() {
        error::Code::InvalidArgument => Code::InvalidArgument,
        error::Code::ResourceExhausted => Code::ResourceExhausted,
        error::Code::NotFound => Code::NotFound,
        error::Code::Aborted => Code::Aborted,
        error::Code::AlreadyExists => Code::AlreadyExists,
        error::Code::FailedPrecondition => Code::FailedPrecondition,
        error::Code::Unauthenticated => Code::Unauthenticated,
        error::Code::PermissionDenied => Code::PermissionDenied,
        error::Code::Unavailable => Code::Unavailable,
        error::Code::DeadlineExceeded => Code::DeadlineExceeded,
        error::Code::DataLoss => Code::DataLoss,
        error::Code::Unimplemented => Code::Unimplemented,
        error::Code::Internal => Code::Internal,
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

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_core::error::Reason;
    use toolgate_proto::v1::ErrorReason;
    use toolgate_store::StoreError;

    #[test]
    fn every_reason_is_one_of_the_contract() {
        for reason in Reason::ALL {
            assert!(ErrorReason::from_name(reason.name()).is_some(), "{}", reason.name());
        }
    }

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
    fn a_conflict_is_aborted() {
        let status =
            of(&Error::Contended { what: "registration conflicted with others", tries: 8 });
        assert_eq!(status.code(), Code::Aborted);
        assert_eq!(status.message(), "registration conflicted with others 8 times; retry");
        assert!(status.get_error_details().retry_info().is_none(), "it is prepared anew");
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
