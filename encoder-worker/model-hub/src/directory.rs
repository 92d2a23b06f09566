//! Source for models: a local directory that already holds the files. It is the user's own or the result of a fetch.

use std::fs;
use std::io;
use std::path::Path;

use super::Fetch;
use super::error::{FetchError, io_error};

/// Copies every wanted file from `from`. All files are checked before the first is copied.
pub(super) fn copy(fetch: &mut Fetch<'_>, from: &Path) -> Result<(), FetchError> {
    fetch.progress.stage(&format!("copying the model from {}", from.display()));
    install_all(fetch, from, |source, part| fs::copy(source, part).map(drop))
}

/// Moves every wanted file from `from`, which is on the same file system. All files are checked before the first is
/// moved.
pub(super) fn take(fetch: &mut Fetch<'_>, from: &Path) -> Result<(), FetchError> {
    fetch.progress.stage("checking the model's files");
    install_all(fetch, from, |source, part| fs::rename(source, part))
}

fn install_all(
    fetch: &mut Fetch<'_>,
    from: &Path,
    bring: impl Fn(&Path, &Path) -> io::Result<()>,
) -> Result<(), FetchError> {
    check_all(fetch, from)?;
    let mut done = 0;
    let total = fetch.total_bytes();
    for file in fetch.missing {
        let source = from.join(&file.path);
        file.make_folder(fetch.target)?;
        bring(&source, &file.part_path(fetch.target)).map_err(io_error(&source))?;
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
