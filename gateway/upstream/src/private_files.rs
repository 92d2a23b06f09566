//! Files of the gateway that nobody but their owner reads.

use std::io::{self, Write as _};
use std::path::Path;
use std::{fs, process};

use serde::Serialize;

/// Replaces a JSON file, whole, for its owner alone. Makes its folder if it is absent.
///
/// # Errors
/// Those of the file system. The file is as before then.
pub fn replace_private(path: &Path, content: &impl Serialize) -> io::Result<()> {
    let mut private = fs::DirBuilder::new();
    private.recursive(true);
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        std::os::unix::fs::DirBuilderExt::mode(&mut private, 0o700);
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    if let Some(folder) = path.parent() {
        private.create(folder)?;
    }
    // Processes in containers may share the folder and have the same number.
    let chance = getrandom::u64().map_err(io::Error::other)?;
    let new = path.with_extension(format!("{}-{chance:016x}.new", process::id()));
    let written = options
        .open(&new)
        .and_then(|mut file| file.write_all(&serde_json::to_vec(content)?))
        .and_then(|()| fs::rename(&new, path));
    if written.is_err() {
        let _absent = fs::remove_file(&new);
    }
    written
}
