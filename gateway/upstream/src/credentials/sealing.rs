//! Which keys stored credentials are sealed with, and how they come to another.

use std::io;

use super::CredentialError;
use super::files::{lock_file, read, unusable};
use super::keys::KeyId;
use super::store::{Content, CredentialStore, Keys, bound_to, content};

/// Stored credentials by the keys that they are sealed with.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Sealing {
    /// Keys of the store, that which seals first.
    pub keys: Vec<KeyUse>,
    /// Keys that are not there.
    pub missing: Vec<KeyUse>,
    /// Number of credentials that an earlier version wrote, which name no key.
    pub unnamed: usize,
    /// Number of files that are no credentials.
    pub damaged: usize,
}

/// Key, and how many credentials are sealed with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyUse {
    /// ID of the key.
    pub id: KeyId,
    /// Number of credentials.
    pub credentials: usize,
}

impl Sealing {
    fn count(&mut self, id: KeyId) {
        let mut known = self.keys.iter_mut().chain(&mut self.missing);
        match known.find(|key| key.id == id) {
            Some(key) => key.credentials += 1,
            None => self.missing.push(KeyUse { id, credentials: 1 }),
        }
    }
}

impl CredentialStore {
    /// Counts the credentials by the keys that they are sealed with.
    ///
    /// # Errors
    /// [`CredentialError::Store`] if the folder or a file can't be read.
    pub fn sealing(&self) -> Result<Sealing, CredentialError> {
        let unused = |id| KeyUse { id, credentials: 0 };
        let keys = self.keys()?.ids().map(unused).collect();
        let mut sealing = Sealing { keys, ..Sealing::default() };
        for path in self.files()? {
            let Some(bytes) = read(&path)? else { continue };
            match content(&bytes) {
                Content::Sealed(id, _) => sealing.count(id),
                Content::Unnamed(_) => sealing.unnamed += 1,
                Content::Damaged => sealing.damaged += 1,
            }
        }
        Ok(sealing)
    }

    /// Seals anew, with the key that seals now, what other keys of the store had sealed. Returns the number of credentials. One that
    /// another process renews at this time is left to it.
    ///
    /// # Errors
    /// [`CredentialError::Store`] if the folder can't be read, or a file can't be read or written.
    pub fn reseal(&self) -> Result<usize, CredentialError> {
        let keys = self.keys()?;
        let mut resealed = 0;
        let is_first =
            |bytes: &[u8]| matches!(content(bytes), Content::Sealed(id, _) if id == keys.first());
        for path in self.files()? {
            if read(&path)?.is_some_and(|bytes| is_first(&bytes)) {
                continue;
            }
            let failed = |error: io::Error| unusable(&path, &error.to_string());
            let lock = lock_file(&path.with_extension("lock")).map_err(failed)?;
            if lock.try_lock().is_err() {
                continue;
            }
            let Some(bytes) = read(&path)? else { continue };
            let Content::Sealed(id, sealed) = content(&bytes) else { continue };
            if is_first(&bytes) {
                continue;
            }
            if let Some(text) = keys.opened(Some(id), &bound_to(id, &path), sealed) {
                self.write(&path, text)?;
                resealed += 1;
            }
        }
        Ok(resealed)
    }

    /// Makes a new key in the folder, seals all credentials with it, and takes away the keys that nothing needs any more. Processes
    /// that use the store take the new key from then on. Returns the number of credentials that were sealed anew.
    ///
    /// # Errors
    /// [`CredentialError::Store`] if the operator keeps the keys, or a file can't be read or written.
    pub fn rotate(&self) -> Result<usize, CredentialError> {
        let Keys::Own(file) = self.kept_keys() else {
            return Err(CredentialError::Store("the operator keeps their keys".to_owned()));
        };
        file.add()?;
        let resealed = self.reseal()?;
        let Sealing { keys, unnamed, .. } = self.sealing()?;
        let is_needed =
            |id| keys.iter().any(|key| key.id == id && (key.credentials > 0 || unnamed > 0));
        file.retain(is_needed)?;
        Ok(resealed)
    }
}
