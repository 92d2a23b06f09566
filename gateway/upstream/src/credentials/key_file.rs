//! The keys that a store keeps itself, in a file of its folder. Other processes use the same file, and may replace it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::CredentialError;
use super::files::{Stamp, check_private, lock_file, replace, unusable, write_first};
use super::keys::{KEY_LEN, KeyId, KeyRing};

/// Name of the file, and of the one that is locked while it is replaced.
const KEY_FILE: &str = "key";
const LOCK_FILE: &str = "key.lock";

/// File of keys.
pub(super) struct KeyFile {
    path: PathBuf,
    read: Mutex<Read>,
}

/// Keys, as they were read last.
struct Read {
    ring: Arc<KeyRing>,
    stamp: Option<Stamp>,
}

impl KeyFile {
    /// Opens the file of a folder. One with a new key is made where there is none.
    pub(super) fn open(folder: &Path) -> Result<Self, CredentialError> {
        let path = folder.join(KEY_FILE);
        let read = read(&path)?;
        Ok(Self { path, read: Mutex::new(read) })
    }

    /// Returns the keys as they are now.
    pub(super) fn ring(&self) -> Result<Arc<KeyRing>, CredentialError> {
        let mut last = self.read.lock();
        if Stamp::of(&self.path) != last.stamp {
            *last = read(&self.path)?;
        }
        Ok(Arc::clone(&last.ring))
    }

    /// Keeps the keys as they are until the file is dropped.
    pub(super) fn hold(&self) -> Result<File, CredentialError> {
        let failed = |error: std::io::Error| unusable(&self.path, &error.to_string());
        let lock = lock_file(&self.path.with_file_name(LOCK_FILE)).map_err(failed)?;
        lock.lock_shared().map_err(failed)?;
        Ok(lock)
    }

    /// Adds a new key, which seals from now on.
    pub(super) fn add(&self) -> Result<(), CredentialError> {
        let new = new_key(&self.path)?;
        self.change(|keys| format!("{new}\n{}", keys.trim()))
    }

    /// Takes keys away. That which seals stays.
    pub(super) fn retain(&self, is_kept: impl Fn(KeyId) -> bool) -> Result<(), CredentialError> {
        self.change(|keys| {
            let kept = keys.lines().enumerate().filter(|(number, line)| {
                *number == 0 || KeyId::of_line(line).is_some_and(&is_kept)
            });
            kept.map(|(_, line)| line).collect::<Vec<_>>().join("\n")
        })
    }

    fn change(&self, change: impl FnOnce(&str) -> String) -> Result<(), CredentialError> {
        let failed = |error: std::io::Error| unusable(&self.path, &error.to_string());
        let lock = lock_file(&self.path.with_file_name(LOCK_FILE)).map_err(failed)?;
        lock.lock().map_err(failed)?;
        let keys = fs::read_to_string(&self.path).map_err(failed)?;
        replace(&self.path, change(&keys).as_bytes())
    }
}

fn read(path: &Path) -> Result<Read, CredentialError> {
    if !path.exists() {
        write_first(path, new_key(path)?.as_bytes())?;
    }
    check_private(path)?;
    // Of a file that is replaced meanwhile the mark is the older one, so that it is read again.
    let stamp = Stamp::of(path);
    let text = fs::read_to_string(path).map_err(|error| unusable(path, &error.to_string()))?;
    let ring = KeyRing::parse(&text).ok_or_else(|| unusable(path, NO_KEY))?;
    Ok(Read { ring: Arc::new(ring), stamp })
}

/// Problem of what is no key.
pub(super) const NO_KEY: &str =
    "a key must have 64 hexadecimal digits, and stand on a line of its own";

fn new_key(path: &Path) -> Result<String, CredentialError> {
    let mut key = [0; KEY_LEN];
    let failed = |error| unusable(path, &format!("no random numbers: {error}"));
    getrandom::fill(&mut key).map_err(failed)?;
    Ok(hex::encode(key))
}
