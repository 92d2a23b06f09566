//! The admin key, which is stored in a file and not in the store. It works before there is any other key, without
//! trusting the store, and while the store is down.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::super::api_key::ApiKey;
use super::super::caller::CallerIdentity;
use super::super::refusal::KeyFault;
use super::super::{Caller, CredentialId, Refusal};
use toolgate_core::role::{Role, Roles};
use toolgate_store::ContentHash;

/// Principal of the admin key.
const PRINCIPAL: &str = "admin";

/// Failure to load the admin key.
#[derive(Debug, thiserror::Error)]
pub enum AdminKeyError {
    /// The file can't be read.
    #[error("{}: the admin key can't be read", path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        #[source]
        source: std::io::Error,
    },
    /// The file holds no API key.
    #[error(
        "{}: not one API key; write one with `echo \"tgk_$(openssl rand -hex 6)_$(openssl rand -hex 32)\"`",
        path.display()
    )]
    NoKey {
        /// Path of the file.
        path: PathBuf,
    },
}

impl AdminKeyError {
    /// Returns true if the file does not exist.
    pub(super) fn is_absence(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == ErrorKind::NotFound)
    }
}

pub(super) struct AdminKey {
    id: String,
    secret_hash: ContentHash,
    caller: Caller,
}

impl AdminKey {
    /// Reads the key from the file.
    pub(super) fn read(path: &Path) -> Result<Self, AdminKeyError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| AdminKeyError::Io { path: path.to_owned(), source })?;
        let key = ApiKey::parse(text.trim());
        let key = key.ok_or_else(|| AdminKeyError::NoKey { path: path.to_owned() })?;
        let caller = Caller::new(CallerIdentity {
            tenant: None,
            principal: PRINCIPAL.to_owned(),
            roles: Roles::of(&[Role::Admin]),
            scopes: None,
            credential: CredentialId::ApiKey(key.id().to_owned()),
            good_until_ms: None,
        });
        Ok(Self { id: key.id().to_owned(), secret_hash: key.secret_hash(), caller })
    }

    /// Returns the admin, or a refusal for a wrong secret; `None` if the id is another key's.
    pub(super) fn caller(&self, key: &ApiKey) -> Option<Result<Caller, Refusal>> {
        if key.id() != self.id {
            return None;
        }
        let good = key.has_hash(&self.secret_hash);
        let wrong = || Refusal::Key(KeyFault::Secret, self.id.clone());
        Some(if good { Ok(self.caller.clone()) } else { Err(wrong()) })
    }

    /// Returns `Some(true)` if the id is this key's, and `None` otherwise.
    pub(super) fn has_id(&self, id: &str) -> Option<bool> {
        (id == self.id).then_some(true)
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.id == other.id && self.secret_hash == other.secret_hash
    }
}
