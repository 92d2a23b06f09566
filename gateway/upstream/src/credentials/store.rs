//! The store of credentials: a file for each, encrypted with AES-256-GCM, under a name that says nothing. A file says by which key
//! it is sealed; its name is a part of what is sealed, so that no file stands for another's.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::files::{Stamp, lock_file, make_folder, read, replace, unusable};
use super::key_file::{KeyFile, NO_KEY};
use super::keys::{ID_LEN, KeyId, KeyRing};
use super::tokens::{Registered, Token};
use super::{CredentialError, Secret};

/// Beginning of a file, with the version of its format.
const MAGIC: &[u8] = b"TGCRED2\n";

/// The same of the version before, whose files name no key, and are bound to their owner instead of their name.
const MAGIC_OF_BEFORE: &[u8] = b"TGCRED1\n";

/// Characters of a credential's file name.
const NAME_LEN: usize = 32;

/// Owner of a credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// Tenant; empty for the gateway's own.
    pub tenant: String,
    /// Principal within the tenant; empty for the operator.
    pub principal: String,
    /// Name of the server.
    pub server: String,
}

/// Store of credentials. Clones share it.
#[derive(Clone)]
pub struct CredentialStore(Arc<Inner>);

struct Inner {
    folder: PathBuf,
    keys: Keys,
}

/// Keys of a store, by who keeps them.
pub(super) enum Keys {
    /// The operator. They are those of the start.
    Named(Arc<KeyRing>),
    /// The store.
    Own(KeyFile),
}

/// Content of a file, as far as it is known without a key.
pub(super) enum Content<'f> {
    /// Sealed with a key, and what is sealed.
    Sealed(KeyId, &'f [u8]),
    /// The same, of the version before.
    Unnamed(&'f [u8]),
    /// No credential.
    Damaged,
}

/// Credential as it is stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Stored {
    /// URL of the server that it is for.
    pub(crate) server: String,
    /// Issuer of its tokens.
    pub(crate) issuer: String,
    /// Resource that its tokens are for.
    pub(crate) resource: String,
    /// Scopes that the next login asks for: those of the last one, and those that the server asked for since.
    #[serde(default)]
    pub(crate) scopes: Vec<String>,
    pub(crate) client: Registered,
    pub(crate) token: Token,
}

impl Owner {
    /// Returns the operator as the owner of a server's credential.
    #[must_use]
    pub fn operator(server: &str) -> Self {
        Self { tenant: String::new(), principal: String::new(), server: server.to_owned() }
    }

    /// Returns bytes that no other owner has.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let parts = [&self.tenant, &self.principal, &self.server];
        let sized = |part: &&String| {
            let length = (part.len() as u64).to_be_bytes();
            length.into_iter().chain(part.bytes()).collect::<Vec<_>>()
        };
        parts.iter().flat_map(sized).collect()
    }
}

impl std::fmt::Debug for CredentialStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("CredentialStore").field(&self.0.folder).finish()
    }
}

impl CredentialStore {
    /// Opens the store in a folder, which is made if it is not there. Without a key, one is kept in the folder, for its
    /// owner only. A key has 64 hexadecimal digits. Of several, one a line, the first seals and all open.
    ///
    /// # Errors
    /// [`CredentialError::Store`] if the folder or the key can't be used.
    pub fn open(folder: &Path, key: Option<&Secret>) -> Result<Self, CredentialError> {
        make_folder(folder).map_err(|error| unusable(folder, &error.to_string()))?;
        let keys = match key {
            Some(key) => {
                let ring = KeyRing::parse(key.reveal());
                Keys::Named(Arc::new(
                    ring.ok_or_else(|| CredentialError::Store(NO_KEY.to_owned()))?,
                ))
            }
            None => Keys::Own(KeyFile::open(folder)?),
        };
        Ok(Self(Arc::new(Inner { folder: folder.to_owned(), keys })))
    }

    /// Returns whether the store keeps its keys itself.
    #[must_use]
    pub fn has_own_keys(&self) -> bool {
        matches!(self.0.keys, Keys::Own(_))
    }

    /// Returns the scopes that the next login to a server should ask for, as far as they are known.
    #[must_use]
    pub fn scopes(&self, owner: &Owner, server: &url::Url) -> Vec<String> {
        // One that can't be read is replaced by the login.
        let stored = self.load(owner).ok().flatten();
        let stored = stored.filter(|stored| stored.server == server.as_str());
        stored.map(|stored| stored.scopes).unwrap_or_default()
    }

    /// Returns whether there is a credential for a server at this URL.
    ///
    /// # Errors
    /// [`CredentialError::Store`] if it can't be read.
    pub fn has(&self, owner: &Owner, server: &url::Url) -> Result<bool, CredentialError> {
        match self.load(owner) {
            Err(CredentialError::Login(_)) => Ok(false),
            stored => Ok(stored?.is_some_and(|stored| stored.server == server.as_str())),
        }
    }

    /// Returns a credential; `None` if there is none.
    ///
    /// # Errors
    /// [`CredentialError::Login`] if it is damaged or of another key, and [`CredentialError::Store`] if it can't be read.
    pub(crate) fn load(&self, owner: &Owner) -> Result<Option<Stored>, CredentialError> {
        let path = self.path(owner);
        let Some(bytes) = read(&path)? else { return Ok(None) };
        let stored = serde_json::from_slice(&self.opened(owner, &path, &bytes)?);
        stored.map(Some).map_err(|_other| damaged())
    }

    /// Opens the content of a credential's file.
    fn opened(&self, owner: &Owner, path: &Path, bytes: &[u8]) -> Result<Vec<u8>, CredentialError> {
        let keys = self.keys()?;
        let opened = match content(bytes) {
            Content::Sealed(id, sealed) => {
                if !keys.ids().any(|known| known == id) {
                    return Err(CredentialError::Login(missing_key(id, &keys)));
                }
                keys.opened(Some(id), &bound_to(id, path), sealed)
            }
            Content::Unnamed(sealed) => keys.opened(None, &owner.bytes(), sealed),
            Content::Damaged => None,
        };
        opened.ok_or_else(damaged)
    }

    /// Writes a credential in the place of the one before.
    pub(crate) fn save(&self, owner: &Owner, stored: &Stored) -> Result<(), CredentialError> {
        let path = self.path(owner);
        let text = serde_json::to_vec(stored);
        self.write(&path, text.map_err(|error| unusable(&path, &error.to_string()))?)
    }

    /// Seals a text with the key that seals now, and writes it in the place of what was there.
    pub(super) fn write(&self, path: &Path, text: Vec<u8>) -> Result<(), CredentialError> {
        let _keys_stay = match &self.0.keys {
            Keys::Own(file) => Some(file.hold()?),
            Keys::Named(_) => None,
        };
        let keys = self.keys()?;
        let id = keys.first();
        let sealed = keys.sealed(&bound_to(id, path), text);
        let sealed = sealed.ok_or_else(|| unusable(path, "it can't be encrypted"))?;
        replace(path, &[MAGIC, &id.bytes(), &sealed].concat())
    }

    /// Removes a credential. Returns whether there was one.
    pub(crate) fn remove(&self, owner: &Owner) -> Result<bool, CredentialError> {
        let path = self.path(owner);
        match fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(unusable(&path, &error.to_string())),
        }
    }

    /// Returns the mark of a credential's file; `None` if there is none.
    pub(crate) fn stamp(&self, owner: &Owner) -> Option<Stamp> {
        Stamp::of(&self.path(owner))
    }

    /// Waits until no other process renews the credential, and keeps others waiting until the file is dropped.
    pub(crate) async fn lock(&self, owner: &Owner) -> Result<File, CredentialError> {
        let path = self.path(owner);
        let locked = tokio::task::spawn_blocking(move || -> io::Result<File> {
            let file = lock_file(&path.with_extension("lock"))?;
            file.lock()?;
            Ok(file)
        });
        let failed = |problem: String| unusable(&self.0.folder, &problem);
        let locked: io::Result<File> = locked.await.map_err(|error| failed(error.to_string()))?;
        locked.map_err(|error| failed(error.to_string()))
    }

    fn path(&self, owner: &Owner) -> PathBuf {
        let digest = ring::digest::digest(&ring::digest::SHA256, &owner.bytes());
        self.0.folder.join(hex::encode(&digest.as_ref()[..16]))
    }

    /// Returns who keeps the keys.
    pub(super) fn kept_keys(&self) -> &Keys {
        &self.0.keys
    }

    /// Returns the keys as they are now.
    pub(super) fn keys(&self) -> Result<Arc<KeyRing>, CredentialError> {
        match &self.0.keys {
            Keys::Named(ring) => Ok(Arc::clone(ring)),
            Keys::Own(file) => file.ring(),
        }
    }

    /// Returns the paths of all credentials.
    pub(super) fn files(&self) -> Result<Vec<PathBuf>, CredentialError> {
        let folder = &self.0.folder;
        let listed = fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let listed = listed.map_err(|error| unusable(folder, &error.to_string()))?;
        let is_credential = |name: &str| {
            name.len() == NAME_LEN && name.bytes().all(|byte| byte.is_ascii_hexdigit())
        };
        let files =
            listed.into_iter().filter(|file| file.file_name().to_str().is_some_and(is_credential));
        Ok(files.map(|file| file.path()).collect())
    }
}

/// Returns what a file has, as far as it is known without a key.
pub(super) fn content(bytes: &[u8]) -> Content<'_> {
    if let Some(sealed) = bytes.strip_prefix(MAGIC_OF_BEFORE) {
        return Content::Unnamed(sealed);
    }
    let named = bytes.strip_prefix(MAGIC).and_then(<[u8]>::split_first_chunk::<ID_LEN>);
    match named {
        Some((id, sealed)) => Content::Sealed(KeyId::of_bytes(*id), sealed),
        None => Content::Damaged,
    }
}

/// Returns what a file's content is bound to: its key and its name, which is its owner's.
pub(super) fn bound_to(id: KeyId, path: &Path) -> Vec<u8> {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    [MAGIC, &id.bytes(), name].concat()
}

fn damaged() -> CredentialError {
    CredentialError::Login("it is damaged, or of another key: log in again".to_owned())
}

/// Returns what is to be done about a credential whose key is not there.
fn missing_key(id: KeyId, keys: &KeyRing) -> String {
    let there: Vec<String> = keys.ids().map(|id| id.to_string()).collect();
    format!(
        "it is sealed with the key {id}, which is not there (there is {}): add that key on a line below, or log in again",
        there.join(", ")
    )
}
