//! Writing results to files that the user named.

use std::fs;
use std::path::Path;

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

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("{}: cannot be written: {error}", path.display()))
}
