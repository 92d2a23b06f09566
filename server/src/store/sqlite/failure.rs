//! What SQLite's failures mean to callers of the store, and the words for those that an operator can
//! mend when a database is opened.

use std::path::{Path, PathBuf};

use sqlx::error::DatabaseError;
use sqlx::migrate::MigrateError;

use crate::error::Cause;
use crate::store::StoreError;
use crate::store::error::DiskFull;

// Primary result codes, https://www.sqlite.org/rescode.html.
const BUSY: u32 = 5;
const LOCKED: u32 = 6;
const READONLY: u32 = 8;
const CORRUPT: u32 = 11;
const FULL: u32 = 13;
const CANTOPEN: u32 = 14;
const NOTADB: u32 = 26;

/// Why a database could not be opened.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {problem}")]
pub(super) struct OpenFailure {
    path: String,
    problem: String,
    #[source]
    cause: Option<Cause>,
}

impl OpenFailure {
    /// A failure without a deeper cause.
    pub(super) fn of(path: &Path, problem: impl Into<String>) -> StoreError {
        Self::wrap(path, problem, None)
    }

    /// A failure of the file system.
    pub(super) fn io(path: &Path, problem: &str, cause: std::io::Error) -> StoreError {
        Self::wrap(path, problem, Some(cause.into()))
    }

    /// A failure of SQLite.
    pub(super) fn database(path: &Path, cause: sqlx::Error) -> StoreError {
        let problem = match cause.as_database_error().and_then(primary_code) {
            Some(BUSY | LOCKED) => "locked by another process",
            Some(READONLY) => "read-only: the file and its folder must be writable",
            Some(CORRUPT) => "the database is damaged",
            Some(FULL) => "the disk is full",
            Some(CANTOPEN) => "can't be opened",
            Some(NOTADB) => "not an SQLite database",
            _ => "SQLite can't use it",
        };
        Self::wrap(path, problem, Some(cause.into()))
    }

    /// A failure to bring the schema up to date.
    pub(super) fn schema(path: &Path, latest: i64, cause: MigrateError) -> StoreError {
        let problem = match cause {
            MigrateError::Execute(cause) | MigrateError::ExecuteMigration(cause, _) => {
                return Self::database(path, cause);
            }
            MigrateError::VersionMissing(found) if found > latest => format!(
                "written by a newer version: its schema is {found}, this version knows {latest}"
            ),
            _ => "its schema is not one that this version wrote".to_owned(),
        };
        Self::wrap(path, problem, Some(cause.into()))
    }

    fn wrap(path: &Path, problem: impl Into<String>, cause: Option<Cause>) -> StoreError {
        let path = PathBuf::from(path).display().to_string();
        StoreError::Unavailable(Box::new(Self { path, problem: problem.into(), cause }))
    }
}

/// What a failed statement means.
pub(super) fn failed(error: sqlx::Error) -> StoreError {
    let code = error.as_database_error().and_then(primary_code);
    if matches!(code, Some(CORRUPT | NOTADB)) {
        return StoreError::Damaged(error.to_string());
    }
    if code == Some(FULL) {
        return StoreError::Unavailable(Box::new(DiskFull(error.into())));
    }
    match error {
        sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => {
            StoreError::Damaged(error.to_string())
        }
        other => StoreError::Unavailable(Box::new(other)),
    }
}

fn primary_code(error: &(dyn DatabaseError + 'static)) -> Option<u32> {
    Some(error.code()?.parse::<u32>().ok()? & 0xff)
}
