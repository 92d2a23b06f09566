//! Files of the store of credentials: for their owner alone, replaced whole.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::Path;
use std::time::SystemTime;

use super::CredentialError;

/// Largest file, in bytes.
const FILE_MAX: u64 = 1 << 20;

/// Mark of a file's content, which differs after each change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stamp {
    modified: SystemTime,
    length: u64,
    #[cfg(unix)]
    inode: u64,
}

impl Stamp {
    /// Returns the mark of a file; `None` if there is none.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let file = fs::metadata(path).ok()?;
        Some(Self {
            modified: file.modified().ok()?,
            length: file.len(),
            #[cfg(unix)]
            inode: std::os::unix::fs::MetadataExt::ino(&file),
        })
    }
}

/// Makes a folder for its owner alone, if it is not there.
pub(super) fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Returns a file's content; `None` if there is none.
pub(super) fn read(path: &Path) -> Result<Option<Vec<u8>>, CredentialError> {
    let mut bytes = Vec::new();
    match File::open(path).and_then(|file| file.take(FILE_MAX).read_to_end(&mut bytes)) {
        Ok(_) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unusable(path, &error.to_string())),
    }
}

/// Replaces a file, whole.
pub(super) fn replace(path: &Path, content: &[u8]) -> Result<(), CredentialError> {
    let draft = path.with_extension(format!("draft-{}", std::process::id()));
    let written = write_new(&draft, content).and_then(|()| fs::rename(&draft, path));
    written.map_err(|error| {
        // A draft that can't be removed either is overwritten by the next.
        let _left = fs::remove_file(&draft);
        unusable(path, &error.to_string())
    })
}

/// Writes a file where there is none, so that no other process reads half of it. One that is there stays.
pub(super) fn write_first(path: &Path, content: &[u8]) -> Result<(), CredentialError> {
    let failed = |error: io::Error| unusable(path, &error.to_string());
    let draft = path.with_extension(format!("draft-{}", std::process::id()));
    write_new(&draft, content).map_err(failed)?;
    let made = fs::hard_link(&draft, path);
    let _left = fs::remove_file(&draft);
    match made {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(failed(error)),
        _ => Ok(()),
    }
}

/// Opens a file that is there to be locked.
pub(super) fn lock_file(path: &Path) -> io::Result<File> {
    private_options().write(true).create(true).truncate(false).open(path)
}

/// Returns an error of the store that names the file.
pub(super) fn unusable(path: &Path, problem: &str) -> CredentialError {
    CredentialError::Store(format!("{}: {problem}", path.display()))
}

/// Refuses a file of keys that others can read.
#[cfg(unix)]
pub(super) fn check_private(path: &Path) -> Result<(), CredentialError> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = fs::metadata(path).map_err(|error| unusable(path, &error.to_string()))?;
    if mode.permissions().mode() & 0o077 == 0 {
        return Ok(());
    }
    Err(unusable(path, "others can read the key: chmod 600, and log in again if they may have"))
}

#[cfg(not(unix))]
pub(super) fn check_private(_path: &Path) -> Result<(), CredentialError> {
    Ok(())
}

fn write_new(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = private_options().write(true).create(true).truncate(true).open(path)?;
    file.write_all(content)?;
    file.sync_all()
}

fn private_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}
