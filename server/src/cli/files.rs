//! Writing results to files that the user named.

use std::fs;
use std::path::{Path, PathBuf};

use super::failure::Failure;

/// A path that can't be written is better known before minutes of work than after.
pub(super) fn check_writable(path: &Path) -> Result<(), Failure> {
    let opened = fs::OpenOptions::new().append(true).create(true).open(path);
    opened.map(drop).map_err(|error| unwritable(path, &error))
}

/// Writes a result.
pub(super) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|error| unwritable(path, &error))
}

/// Where a file is written that takes another's place only when it is whole.
pub(super) fn draft_of(path: &Path) -> PathBuf {
    let mut draft = path.to_owned().into_os_string();
    draft.push(format!(".{}.tmp", std::process::id()));
    draft.into()
}

/// Writes a file as a whole or not at all, whatever ends the process meanwhile.
pub(super) fn replace(path: &Path, content: impl AsRef<[u8]>) -> Result<(), Failure> {
    let draft = draft_of(path);
    let written = fs::write(&draft, content).and_then(|()| fs::rename(&draft, path));
    written.map_err(|error| {
        // There may be none; the error that counts is the one before.
        let _ = fs::remove_file(&draft);
        unwritable(path, &error)
    })
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("{}: cannot be written: {error}", path.display()))
}
