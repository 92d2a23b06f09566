//! Lock of the data directory. Two servers can't share it, because indexes follow only the changes of their own process.

use std::fmt;
use std::fs::{DirBuilder, File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use super::ServeError;

/// File name of the lock in the data directory.
const LOCK: &str = "toolgate.lock";

/// Most bytes that are read of a lock's file: more than a process ID has.
const TEXT_MAX: u64 = 32;

/// Process that holds a data directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// ID of the process; `None` if the lock's file has none, or one of another container.
    process: Option<u32>,
    /// The lock's file.
    lock: PathBuf,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.process {
            Some(process) => write!(f, "process {process}, which `ps -p {process}` shows"),
            None => write!(f, "`fuser {}` says which process", self.lock.display()),
        }
    }
}

/// Locks the data directory, which is made if it is not there. The lock is released when the process ends, even if it is
/// killed.
///
/// # Errors
/// [`ServeError::InUse`] if another process holds it, [`ServeError::Folder`] if it can't be made or written.
pub(crate) fn hold(folder: &Path) -> Result<File, ServeError> {
    let path = folder.join(LOCK);
    let failed = |source| ServeError::Folder { folder: folder.display().to_string(), source };
    let mut private = DirBuilder::new();
    private.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut private, 0o700);
    private.create(folder).map_err(failed)?;
    let file = File::options().create(true).append(true).open(&path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => {
            // It helps people alone; a full disk must not keep a server from starting.
            let _unwritten = name_this_process(&file);
            Ok(file)
        }
        Err(TryLockError::WouldBlock) => Err(ServeError::InUse {
            folder: folder.display().to_string(),
            holder: holder_of(&path),
        }),
        Err(TryLockError::Error(source)) => Err(failed(source)),
    }
}

/// Returns the process that holds a data directory; `None` if none does. Changes nothing there.
pub(crate) fn holder(folder: &Path) -> Option<Holder> {
    let path = folder.join(LOCK);
    let file = File::open(&path).ok()?;
    // Shared, so that two that look do not take each other for a server.
    let is_held = matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
    is_held.then(|| holder_of(&path))
}

fn name_this_process(mut file: &File) -> io::Result<()> {
    file.set_len(0)?;
    writeln!(file, "{}", std::process::id())
}

fn holder_of(path: &Path) -> Holder {
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(TEXT_MAX).read_to_string(&mut text));
    let process = read.ok().and_then(|_bytes| text.trim().parse().ok());
    // Another container numbers its processes anew.
    let process = process.filter(|process| *process != std::process::id());
    Holder { process, lock: path.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_held_by_one_at_a_time() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(holder(folder.path()), None);
        let held = hold(folder.path()).expect("the lock");
        assert!(holder(folder.path()).is_some());
        assert!(matches!(hold(folder.path()), Err(ServeError::InUse { .. })));
        drop(held);
        assert_eq!(holder(folder.path()), None);
        let written = std::fs::read_to_string(folder.path().join(LOCK)).expect("a file");
        assert_eq!(written, format!("{}\n", std::process::id()));
    }

    #[test]
    fn a_directory_that_is_not_there_stays_so() {
        let folder = tempfile::tempdir().expect("a folder");
        let absent = folder.path().join("data");
        assert_eq!(holder(&absent), None);
        assert!(!absent.exists());
    }

    #[test]
    fn a_holder_is_told_by_its_process_or_how_to_find_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(LOCK);
        let told = |text: &str| {
            std::fs::write(&path, text).expect("a file");
            holder_of(&path).to_string()
        };
        assert_eq!(told("4711\n"), "process 4711, which `ps -p 4711` shows");
        let find = format!("`fuser {}` says which process", path.display());
        let own = std::process::id().to_string();
        for text in ["", "x", "99999999999", &own] {
            assert_eq!(told(text), find, "{text:?}");
        }
    }
}
