//! Room on the disk that is set aside, so that content can still be taken out of a store whose disk is full: a file beside
//! the database, which is removed when it is needed.

use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What is set aside: the write-ahead log of a change that removes an MCP server of some thousand tools.
pub(super) const BYTES: u64 = 32 << 20;

/// The least that is worth it.
const BYTES_MIN: u64 = 1 << 20;

/// Bytes that are written at a time where a file system can't be told to allocate.
const CHUNK: usize = 1 << 20;

/// The reserve of one database.
#[derive(Debug)]
pub(super) struct Reserve {
    path: PathBuf,
    /// Held while it is set aside or given back.
    is_there: Mutex<bool>,
}

impl Reserve {
    /// The reserve of the database at `database`. Nothing is set aside yet.
    pub(super) fn beside(database: &Path) -> Self {
        let mut path = database.as_os_str().to_owned();
        path.push("-reserve");
        Self { path: path.into(), is_there: Mutex::new(false) }
    }

    /// Returns true if nothing is set aside, and nobody is about to do it. Doesn't wait.
    pub(super) fn is_missing(&self) -> bool {
        self.is_there.try_lock().is_ok_and(|is_there| !*is_there)
    }

    /// Sets [`BYTES`] aside, or the half or quarter that there is room for. Without any the store works all the same.
    /// Blocks.
    pub(super) fn fill(&self) {
        let mut is_there = self.lock();
        let mut bytes = BYTES;
        while !*is_there && bytes >= BYTES_MIN {
            match self.allocate(bytes) {
                Ok(()) => *is_there = true,
                Err(cause) if cause.kind() == ErrorKind::StorageFull => bytes /= 2,
                Err(_) => return,
            }
        }
    }

    /// Gives back what is set aside; returns true if there was anything.
    pub(super) fn release(&self) -> bool {
        let mut is_there = self.lock();
        *is_there = false;
        std::fs::remove_file(&self.path).is_ok()
    }

    /// Nothing panics while it holds the lock.
    fn lock(&self) -> MutexGuard<'_, bool> {
        self.is_there.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn allocate(&self, bytes: u64) -> Result<(), Error> {
        let mut create = OpenOptions::new();
        create.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut create, 0o600);
        let done = create.open(&self.path).and_then(|file| extend(file, bytes));
        if done.is_err() {
            drop(std::fs::remove_file(&self.path));
        }
        done
    }
}

/// Gives the file blocks for so many bytes.
fn extend(file: File, bytes: u64) -> Result<(), Error> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{FallocateFlags, fallocate};
        use rustix::io::Errno;
        match fallocate(&file, FallocateFlags::empty(), 0, bytes) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
            done => return done.map_err(Error::from),
        }
    }
    write_out(file, bytes)
}

/// Writes what no file system stores as nothing.
fn write_out(mut file: File, bytes: u64) -> Result<(), Error> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut chunk = vec![0_u8; CHUNK];
    for word in chunk.chunks_exact_mut(8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        word.copy_from_slice(&state.to_le_bytes());
    }
    for _ in 0..bytes.div_ceil(CHUNK as u64) {
        file.write_all(&chunk)?;
    }
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_allocated_and_given_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let reserve = Reserve::beside(&folder.path().join("x.db"));
        let file = folder.path().join("x.db-reserve");
        assert!(reserve.is_missing() && !reserve.release());
        reserve.fill();
        let found = file.metadata().expect("a file");
        assert_eq!(found.len(), BYTES);
        #[cfg(unix)]
        assert!(std::os::unix::fs::MetadataExt::blocks(&found) * 512 >= BYTES);
        assert!(!reserve.is_missing() && reserve.release());
        assert!(reserve.is_missing() && !file.exists());
    }

    #[test]
    fn where_nothing_can_be_written_nothing_is_set_aside() {
        let folder = tempfile::tempdir().expect("a folder");
        let reserve = Reserve::beside(&folder.path().join("absent/x.db"));
        reserve.fill();
        assert!(reserve.is_missing());
    }

    #[test]
    fn a_file_system_that_allocates_nothing_is_written_to() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x");
        write_out(File::create(&path).expect("a file"), BYTES_MIN).expect("written");
        let written = std::fs::read(path).expect("a file");
        assert_eq!(written.len() as u64, BYTES_MIN);
        assert!(written.windows(64).step_by(4096).all(|part| part.iter().any(|byte| *byte != 0)));
    }
}
