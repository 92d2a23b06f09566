//! Whether the database is still where it was opened. SQLite goes on writing into a file that was deleted
//! or replaced, and all of that is gone with the process.

use std::fs::Metadata;
use std::path::{Path, PathBuf};

use super::failure::OpenFailure;
use crate::store::StoreError;

/// The database file as it was opened.
#[derive(Debug)]
pub(super) struct Place {
    path: PathBuf,
    file: FileId,
}

/// Device and inode.
type FileId = (u64, u64);

impl Place {
    pub(super) fn of(path: &Path) -> Result<Self, StoreError> {
        let found = path.metadata();
        let found = found.map_err(|cause| OpenFailure::io(path, "can't be looked at", cause))?;
        Ok(Self { path: path.to_owned(), file: id(&found) })
    }

    /// Refuses when the path has no file any more, or another one. One `stat`: microseconds.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        let problem = match self.path.metadata() {
            Ok(found) if id(&found) == self.file => return Ok(()),
            Ok(_) => "the database was replaced by another file while it was in use",
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => {
                "the database was deleted or moved while it was in use"
            }
            Err(cause) => return Err(OpenFailure::io(&self.path, "can't be looked at", cause)),
        };
        Err(OpenFailure::of(&self.path, format!("{problem}: put it back, or restart the server")))
    }
}

#[cfg(unix)]
fn id(file: &Metadata) -> FileId {
    use std::os::unix::fs::MetadataExt as _;
    (file.dev(), file.ino())
}

/// Elsewhere an open file can't be deleted.
#[cfg(not(unix))]
fn id(_: &Metadata) -> FileId {
    (0, 0)
}
