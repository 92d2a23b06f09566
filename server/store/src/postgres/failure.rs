//! Mapping of PostgreSQL errors to [`StoreError`], with messages for the ones that an operator can fix.

use std::borrow::Cow;

use sqlx::Error as SqlxError;

use crate::StoreError;
use crate::error::DiskFull;
use toolgate_core::error::Cause;

// Error codes, https://www.postgresql.org/docs/current/errcodes-appendix.html.
const DISK_FULL: &str = "53100";
const SERIALIZATION: &str = "40001";
const DEADLOCK: &str = "40P01";
const TOO_MANY_CONNECTIONS: &str = "53300";
const STATEMENT_CANCELED: &str = "57014";
const SHUTDOWNS: [&str; 3] = ["57P01", "57P02", "57P03"];
const CORRUPTED: [&str; 2] = ["XX001", "XX002"];

/// Failure to use the store, with the address of the database.
#[derive(Debug, thiserror::Error)]
#[error("{place}: {problem}")]
pub(super) struct UseFailure {
    place: String,
    problem: Cow<'static, str>,
    /// True if the failure may be temporary.
    is_outage: bool,
    #[source]
    cause: Option<Cause>,
}

impl UseFailure {
    /// Creates a failure that only an operator can fix.
    pub(super) fn lasting(place: &str, problem: impl Into<Cow<'static, str>>) -> StoreError {
        Self::wrap(place, problem.into(), false, None)
    }

    /// Creates the failure of a call that is refused because the database was unreachable a moment ago.
    pub(super) fn outage(place: &str) -> StoreError {
        let problem = Cow::Borrowed("not tried: it could not be reached a moment ago");
        Self::wrap(place, problem, true, None)
    }

    /// Creates the failure for an error of PostgreSQL or of the connection at the start of a transaction.
    pub(super) fn of(place: &str, cause: SqlxError) -> StoreError {
        let code = code_of(&cause);
        let problem = match (&cause, code.as_deref()) {
            (_, Some("28000" | "28P01")) => "this user and password are refused",
            (_, Some("3D000")) => "there is no such database",
            (_, Some("42501")) => "this user lacks a right (docs/store.md lists them)",
            (SqlxError::PoolTimedOut, _) => "no connection within store.connect_timeout",
            (SqlxError::Tls(_), _) => "no TLS connection",
            _ => "can't be used",
        };
        let is_outage = is_passing(&cause);
        Self::wrap(place, Cow::Borrowed(problem), is_outage, Some(cause.into()))
    }

    fn wrap(
        place: &str,
        problem: Cow<'static, str>,
        is_outage: bool,
        cause: Option<Cause>,
    ) -> StoreError {
        let place = place.to_owned();
        StoreError::Unavailable(Box::new(Self { place, problem, is_outage, cause }))
    }
}

/// Converts the error of a failed statement.
pub(super) fn failed(error: SqlxError) -> StoreError {
    let is_damage = matches!(
        error,
        SqlxError::ColumnDecode { .. } | SqlxError::Decode(_) | SqlxError::ColumnNotFound(_)
    );
    let corrupted = code_of(&error).is_some_and(|code| CORRUPTED.contains(&code.as_ref()));
    if is_damage || corrupted {
        return StoreError::Damaged(error.to_string());
    }
    if code_of(&error).is_some_and(|code| code == DISK_FULL) {
        return StoreError::Unavailable(Box::new(DiskFull(error.into())));
    }
    StoreError::Unavailable(Box::new(error))
}

/// Returns true if PostgreSQL rolled a transaction back because of a conflict with others. Never true for a commit
/// whose answer was lost.
pub(super) fn was_undone(error: &StoreError) -> bool {
    let StoreError::Unavailable(cause) = error else { return false };
    let code = cause.downcast_ref().and_then(code_of);
    matches!(code.as_deref(), Some(SERIALIZATION | DEADLOCK))
}

/// Returns true if the database can't be reached now, which may be temporary.
pub(super) fn is_outage(error: &StoreError) -> bool {
    let StoreError::Unavailable(cause) = error else { return false };
    if cause.is::<DiskFull>() {
        return false;
    }
    match (cause.downcast_ref::<UseFailure>(), cause.downcast_ref::<SqlxError>()) {
        (Some(failure), _) => failure.is_outage,
        (_, Some(error)) => is_passing(error),
        // The call exceeded its time limit.
        _ => true,
    }
}

fn is_passing(error: &SqlxError) -> bool {
    if let Some(code) = code_of(error) {
        return code.starts_with("08")
            || code == TOO_MANY_CONNECTIONS
            || code == STATEMENT_CANCELED
            || SHUTDOWNS.contains(&code.as_ref());
    }
    matches!(error, SqlxError::Io(_) | SqlxError::PoolTimedOut | SqlxError::Protocol(_))
}

fn code_of(error: &SqlxError) -> Option<Cow<'_, str>> {
    error.as_database_error().and_then(sqlx::error::DatabaseError::code)
}
