//! The one key that is in a file and not in the store: with it, and before there is any other, keys can be trusted that the
//! store knows nothing of, or while it is down.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::super::api_key::ApiKey;
use super::super::caller::Known;
use super::super::refusal::KeyFault;
use super::super::{Caller, CredentialId, Refusal};
use toolgate_core::role::{Role, Roles};
use toolgate_store::ContentHash;

/// Who calls with it.
const PRINCIPAL: &str = "admin";

/// The admin key can't be had.
#[derive(Debug, thiserror::Error)]
pub enum AdminKeyError {
    /// The file can't be read.
    #[error("{}: the admin key can't be read", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The file holds no API key.
    #[error(
        "{}: not one API key; write one with `echo \"tgk_$(openssl rand -hex 6)_$(openssl rand -hex 32)\"`",
        path.display()
    )]
    NoKey {
        /// The file.
        path: PathBuf,
    },
}

impl AdminKeyError {
    /// Whether there is no such file.
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
    /// Reads the file.
    pub(super) fn read(path: &Path) -> Result<Self, AdminKeyError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| AdminKeyError::Io { path: path.to_owned(), source })?;
        let key = ApiKey::parse(text.trim());
        let key = key.ok_or_else(|| AdminKeyError::NoKey { path: path.to_owned() })?;
        let caller = Caller::new(Known {
            tenant: None,
            principal: PRINCIPAL.to_owned(),
            roles: Roles::of(&[Role::Admin]),
            scopes: None,
            credential: CredentialId::ApiKey(key.id().to_owned()),
            good_until_ms: None,
        });
        Ok(Self { id: key.id().to_owned(), secret_hash: key.secret_hash(), caller })
    }

    /// The admin, or a refusal; `None` for another key's id.
    pub(super) fn caller(&self, key: &ApiKey) -> Option<Result<Caller, Refusal>> {
        if key.id() != self.id {
            return None;
        }
        let good = key.has_hash(&self.secret_hash);
        let wrong = || Refusal::Key(KeyFault::Secret, self.id.clone());
        Some(if good { Ok(self.caller.clone()) } else { Err(wrong()) })
    }

    /// `Some(true)` for this key's id.
    pub(super) fn has_id(&self, id: &str) -> Option<bool> {
        (id == self.id).then_some(true)
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.id == other.id && self.secret_hash == other.secret_hash
    }
}
