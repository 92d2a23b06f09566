//! The model from a directory that already holds its files.

use std::fs;
use std::path::Path;

use super::Fetch;
use super::error::{FetchError, io_error};

/// Copies every wanted file out of `from`. All files are looked at before the first is copied.
pub(super) fn copy(fetch: &mut Fetch<'_>, from: &Path) -> Result<(), FetchError> {
    fetch.progress.stage(&format!("copying the model from {}", from.display()));
    check_all(fetch, from)?;
    let (mut done, total) = (0, fetch.total_bytes());
    for file in fetch.missing {
        let source = from.join(&file.path);
        file.make_folder(fetch.target)?;
        fs::copy(&source, file.part_path(fetch.target)).map_err(io_error(&source))?;
        file.install(fetch.target)?;
        done += file.bytes;
        fetch.progress.bytes(done, total);
    }
    Ok(())
}

fn check_all(fetch: &Fetch<'_>, from: &Path) -> Result<(), FetchError> {
    let absent: Vec<String> = fetch
        .missing
        .iter()
        .filter(|file| !from.join(&file.path).is_file())
        .map(|file| file.path.clone())
        .collect();
    if !absent.is_empty() {
        return Err(FetchError::MissingFiles { directory: from.to_path_buf(), files: absent });
    }
    fetch.missing.iter().try_for_each(|file| file.verify(&from.join(&file.path)))
}
