//! Mapping of SQLite errors to [`StoreError`], with messages for the ones that an operator can fix when a database is
//! opened.

use std::path::{Path, PathBuf};

use sqlx::error::DatabaseError;
use sqlx::migrate::MigrateError;

use crate::StoreError;
use crate::error::DiskFull;
use toolgate_core::error::Cause;

// Primary result codes, https://www.sqlite.org/rescode.html.
const BUSY: u32 = 5;
const LOCKED: u32 = 6;
const READONLY: u32 = 8;
const CORRUPT: u32 = 11;
const FULL: u32 = 13;
const CANTOPEN: u32 = 14;
const NOTADB: u32 = 26;

/// Extended result code: the shared memory of the write-ahead log can't grow because there is no room.
const IOERR_SHMSIZE: u32 = 4874;

/// Failure to open a database.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {problem}")]
pub(super) struct OpenFailure {
    path: String,
    problem: String,
    #[source]
    cause: Option<Cause>,
}

impl OpenFailure {
    /// Creates a failure without an underlying error.
    pub(super) fn of(path: &Path, problem: impl Into<String>) -> StoreError {
        Self::wrap(path, problem, None)
    }

    /// Creates a failure of the file system.
    pub(super) fn io(path: &Path, problem: &str, cause: std::io::Error) -> StoreError {
        Self::wrap(path, problem, Some(cause.into()))
    }

    /// Creates a failure of SQLite.
    pub(super) fn database(path: &Path, cause: sqlx::Error) -> StoreError {
        let problem = match cause.as_database_error().and_then(code) {
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

    /// Creates a failure to migrate the schema.
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

/// Converts the error of a failed statement.
pub(super) fn failed(error: sqlx::Error) -> StoreError {
    let code = error.as_database_error().and_then(code);
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

/// Returns the primary result code; [`FULL`] for every code that means a lack of room.
fn code(error: &(dyn DatabaseError + 'static)) -> Option<u32> {
    match error.code()?.parse::<u32>().ok()? {
        IOERR_SHMSIZE => Some(FULL),
        extended => Some(extended & 0xff),
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::error::Error;

    use sqlx::error::ErrorKind;

    use super::*;

    /// Error of SQLite with an extended result code.
    #[derive(Debug, thiserror::Error)]
    #[error("code {0}")]
    struct Answer(u32);

    impl DatabaseError for Answer {
        fn message(&self) -> &str {
            "an answer"
        }

        fn code(&self) -> Option<Cow<'_, str>> {
            Some(self.0.to_string().into())
        }

        fn as_error(&self) -> &(dyn Error + Send + Sync + 'static) {
            self
        }

        fn as_error_mut(&mut self) -> &mut (dyn Error + Send + Sync + 'static) {
            self
        }

        fn into_error(self: Box<Self>) -> Box<dyn Error + Send + Sync + 'static> {
            self
        }

        fn kind(&self) -> ErrorKind {
            ErrorKind::Other
        }
    }

    #[test]
    fn a_full_disk_is_told_by_whatever_finds_no_room() {
        const IOERR_READ: u32 = 266;
        for (code, is_full) in [(FULL, true), (IOERR_SHMSIZE, true), (IOERR_READ, false)] {
            let answer = || sqlx::Error::Database(Box::new(Answer(code)));
            let told = failed(answer());
            let found = matches!(&told, StoreError::Unavailable(cause) if cause.is::<DiskFull>());
            assert_eq!(found, is_full, "{code}: {told:?}");
            let opening = OpenFailure::database(Path::new("x.db"), answer());
            let cause = opening.source().expect("a cause").to_string();
            assert_eq!(cause.ends_with("the disk is full"), is_full, "{code}: {cause}");
        }
        const CORRUPT_INDEX: u32 = 779;
        let told = failed(sqlx::Error::Database(Box::new(Answer(CORRUPT_INDEX))));
        assert!(matches!(told, StoreError::Damaged(_)), "{told:?}");
    }
}
