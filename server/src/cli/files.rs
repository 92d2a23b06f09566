//! Writes results to files that the user named.

use std::fs;
use std::path::{Path, PathBuf};

use super::failure::Failure;

/// Checks that a path can be written, so that a problem shows before minutes of work.
pub(super) fn check_writable(path: &Path) -> Result<(), Failure> {
    let opened = fs::OpenOptions::new().append(true).create(true).open(path);
    opened.map(drop).map_err(|error| unwritable(path, &error))
}

/// Writes a result to a file.
pub(super) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|error| unwritable(path, &error))
}

/// Returns the path of a temporary file, which replaces `path` once it is complete.
pub(super) fn draft_of(path: &Path) -> PathBuf {
    let mut draft = path.to_owned().into_os_string();
    draft.push(format!(".{}.tmp", std::process::id()));
    draft.into()
}

/// Replaces a file completely or not at all, even if the process is killed meanwhile.
pub(super) fn replace(path: &Path, content: impl AsRef<[u8]>) -> Result<(), Failure> {
    let draft = draft_of(path);
    let written = fs::write(&draft, content).and_then(|()| fs::rename(&draft, path));
    written.map_err(|error| {
        // The draft may not exist; the first error is the one that matters.
        let _ = fs::remove_file(&draft);
        unwritable(path, &error)
    })
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("{}: cannot be written: {error}", path.display()))
}
