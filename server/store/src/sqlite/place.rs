//! Check that the database is still the file that was opened. SQLite keeps writing to a file that was deleted or
//! replaced, and all of that data is lost when the process ends.

use std::fs::Metadata;
use std::path::{Path, PathBuf};

use super::failure::OpenFailure;
use crate::StoreError;

/// Identity of the database file as it was opened.
#[derive(Debug)]
pub(super) struct FileIdentity {
    path: PathBuf,
    file: FileId,
    log: PathBuf,
    /// Identity of the write-ahead log, which exists while the database is open.
    log_file: Option<FileId>,
}

/// Device and inode.
type FileId = (u64, u64);

impl FileIdentity {
    pub(super) fn of(path: &Path) -> Result<Self, StoreError> {
        let found = path.metadata();
        let found = found.map_err(|cause| OpenFailure::io(path, "can't be looked at", cause))?;
        let mut log = path.as_os_str().to_owned();
        log.push("-wal");
        let log = PathBuf::from(log);
        let log_file = log.metadata().ok().map(|found| id(&found));
        Ok(Self { path: path.to_owned(), file: id(&found), log, log_file })
    }

    /// Returns an error if the database or its write-ahead log is no longer the file that was opened. Costs two
    /// `stat` calls: microseconds.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        let problem = match self.path.metadata() {
            Ok(found) if id(&found) == self.file => return self.check_log(),
            Ok(_) => "the database was replaced by another file while it was in use",
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => {
                "the database was deleted or moved while it was in use"
            }
            Err(cause) => return Err(OpenFailure::io(&self.path, "can't be looked at", cause)),
        };
        Err(OpenFailure::of(&self.path, format!("{problem}: put it back, or restart the server")))
    }

    /// Returns an error if the write-ahead log was deleted or replaced. Commits go to the log first, so they would be
    /// lost with the process.
    fn check_log(&self) -> Result<(), StoreError> {
        let Some(log_file) = self.log_file else { return Ok(()) };
        let problem = match self.log.metadata() {
            Ok(found) if id(&found) == log_file => return Ok(()),
            Ok(_) => "the write-ahead log was replaced by another file while it was in use",
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => {
                "the write-ahead log was deleted or moved while it was in use"
            }
            Err(cause) => return Err(OpenFailure::io(&self.log, "can't be looked at", cause)),
        };
        let remedy = "put it back if it was moved; if it is gone, restart the server and import what \
                      was exported before (`toolgate store import`)";
        Err(OpenFailure::of(&self.log, format!("{problem}: {remedy}")))
    }
}

#[cfg(unix)]
fn id(file: &Metadata) -> FileId {
    use std::os::unix::fs::MetadataExt as _;
    (file.dev(), file.ino())
}

/// Returns a constant, because outside Unix an open file can't be deleted.
#[cfg(not(unix))]
fn id(_: &Metadata) -> FileId {
    (0, 0)
}
