//! Reserved disk space, so that content can still be deleted on a full disk. The reserve is a file beside the
//! database and is removed when its space is needed.

use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Write};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

/// Minimum reserve in bytes, unless fewer were requested.
const BYTES_MIN: u64 = 1 << 20;

/// Number of bytes per write on file systems that can't preallocate.
const CHUNK: usize = 1 << 20;

/// Disk space reserved beside one file.
#[derive(Debug)]
pub struct Reserve {
    path: PathBuf,
    /// Requested size in bytes.
    bytes: u64,
    /// True if the reserve exists. Locked while the reserve is filled or released.
    is_there: Mutex<bool>,
}

impl Reserve {
    /// Creates a reserve of `bytes` bytes beside `file`. It reserves no space yet.
    #[must_use]
    pub fn beside(file: &Path, bytes: u64) -> Self {
        let mut path = file.as_os_str().to_owned();
        path.push("-reserve");
        Self { path: path.into(), bytes, is_there: Mutex::new(false) }
    }

    /// Returns true if no space is reserved and no other thread is filling or releasing the reserve. Does not wait.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        // Another process may have used it, such as one that revoked a key.
        self.is_there.try_lock().is_some_and(|is_there| !*is_there || !self.path.exists())
    }

    /// Reserves the requested bytes, or half, a quarter and so on if there is less room. Without a reserve,
    /// everything works until the disk is full. Blocks on the file system.
    pub fn fill(&self) {
        let mut is_there = self.is_there.lock();
        *is_there &= self.path.exists();
        let mut bytes = self.bytes;
        while !*is_there && bytes >= self.bytes.min(BYTES_MIN) {
            match self.allocate(bytes) {
                Ok(()) => *is_there = true,
                Err(cause) if is_full(&cause) => bytes /= 2,
                Err(_) => return,
            }
        }
    }

    /// Releases the reserved space. Returns true if there was any.
    pub fn release(&self) -> bool {
        let mut is_there = self.is_there.lock();
        *is_there = false;
        std::fs::remove_file(&self.path).is_ok()
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

/// Allocates blocks for `bytes` bytes to the file.
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

/// Returns true if a write failed because there is no room or the quota is used up.
#[must_use]
pub fn is_full(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

/// Writes pseudorandom bytes, which no file system stores as a hole or compresses away.
fn write_out(mut file: File, bytes: u64) -> Result<(), Error> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut chunk = vec![0_u8; CHUNK.min(usize::try_from(bytes).unwrap_or(CHUNK))];
    for word in chunk.chunks_exact_mut(8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        word.copy_from_slice(&state.to_le_bytes());
    }
    let mut left = bytes;
    while left > 0 {
        let part = left.min(chunk.len() as u64);
        file.write_all(&chunk[..part as usize])?;
        left -= part;
    }
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_allocated_and_given_back() {
        let folder = tempfile::tempdir().expect("a folder");
        for bytes in [256 << 10, 4 << 20] {
            let reserve = Reserve::beside(&folder.path().join("x.db"), bytes);
            let file = folder.path().join("x.db-reserve");
            assert!(reserve.is_missing() && !reserve.release());
            reserve.fill();
            let found = file.metadata().expect("a file");
            assert_eq!(found.len(), bytes);
            #[cfg(unix)]
            assert!(std::os::unix::fs::MetadataExt::blocks(&found) * 512 >= bytes);
            assert!(!reserve.is_missing() && reserve.release());
            assert!(reserve.is_missing() && !file.exists());
        }
    }

    #[test]
    fn where_nothing_can_be_written_nothing_is_set_aside() {
        let folder = tempfile::tempdir().expect("a folder");
        let reserve = Reserve::beside(&folder.path().join("absent/x.db"), BYTES_MIN);
        reserve.fill();
        assert!(reserve.is_missing());
    }

    #[test]
    fn a_file_system_that_allocates_nothing_is_written_to() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x");
        for bytes in [256 << 10, BYTES_MIN, BYTES_MIN + 4096] {
            write_out(File::create(&path).expect("a file"), bytes).expect("written");
            let written = std::fs::read(&path).expect("a file");
            assert_eq!(written.len() as u64, bytes);
            assert!(
                written.windows(64).step_by(4096).all(|part| part.iter().any(|byte| *byte != 0))
            );
        }
    }
}
