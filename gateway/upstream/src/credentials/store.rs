//! The store of credentials: a file for each, encrypted with AES-256-GCM, under a name that says nothing.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use serde::{Deserialize, Serialize};

use super::tokens::{Registered, Token};
use super::{CredentialError, Secret};

/// Beginning of a file, with the version of its format.
const MAGIC: &[u8] = b"TGCRED1\n";

/// File of the key, if the operator names none.
const KEY_FILE: &str = "key";

const KEY_LEN: usize = 32;

/// Largest file, in bytes.
const FILE_MAX: u64 = 1 << 20;

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
    /// Key that seals.
    key: LessSafeKey,
    /// Keys of before, which open as well.
    old: Vec<LessSafeKey>,
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

/// Mark of a file's content, which differs after each change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stamp {
    modified: SystemTime,
    length: u64,
    #[cfg(unix)]
    inode: u64,
}

impl Owner {
    /// Returns the operator as the owner of a server's credential.
    #[must_use]
    pub fn operator(server: &str) -> Self {
        Self { tenant: String::new(), principal: String::new(), server: server.to_owned() }
    }

    /// Returns bytes that no other owner has.
    fn bytes(&self) -> Vec<u8> {
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
        let key = match key {
            Some(key) => key.reveal().trim().to_owned(),
            None => own_key(&folder.join(KEY_FILE))?,
        };
        let keys: Option<Vec<LessSafeKey>> = key.lines().map(parsed_key).collect();
        let mut keys = keys.unwrap_or_default().into_iter();
        let key = keys.next().ok_or_else(|| {
            CredentialError::Store("the key must have 64 hexadecimal digits".to_owned())
        })?;
        Ok(Self(Arc::new(Inner { folder: folder.to_owned(), key, old: keys.collect() })))
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
        let mut bytes = Vec::new();
        match File::open(&path).and_then(|file| file.take(FILE_MAX).read_to_end(&mut bytes)) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unusable(&path, &error.to_string())),
        }
        let opened = self.decrypted(owner, &bytes);
        let stored = opened.and_then(|opened| serde_json::from_slice(&opened).ok());
        let foreign =
            || format!("{}: it is damaged, or of another key: log in again", path.display());
        stored.map(Some).ok_or_else(|| CredentialError::Login(foreign()))
    }

    /// Writes a credential in the place of the one before.
    pub(crate) fn save(&self, owner: &Owner, stored: &Stored) -> Result<(), CredentialError> {
        let path = self.path(owner);
        let failed = |problem: &str| unusable(&path, problem);
        let text = serde_json::to_vec(stored).map_err(|error| failed(&error.to_string()))?;
        let sealed = self.encrypted(owner, text).ok_or_else(|| failed("it can't be encrypted"))?;
        let draft = path.with_extension(format!("draft-{}", std::process::id()));
        let written = write_new(&draft, &sealed).and_then(|()| fs::rename(&draft, &path));
        written.map_err(|error| {
            // A draft that can't be removed either is overwritten by the next.
            let _left = fs::remove_file(&draft);
            failed(&error.to_string())
        })
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
        let file = fs::metadata(self.path(owner)).ok()?;
        Some(Stamp {
            modified: file.modified().ok()?,
            length: file.len(),
            #[cfg(unix)]
            inode: std::os::unix::fs::MetadataExt::ino(&file),
        })
    }

    /// Waits until no other process renews the credential, and keeps others waiting until the file is dropped.
    pub(crate) async fn lock(&self, owner: &Owner) -> Result<File, CredentialError> {
        let path = self.path(owner).with_extension("lock");
        let locked = tokio::task::spawn_blocking(move || -> io::Result<File> {
            let file = private_options().write(true).create(true).truncate(false).open(&path)?;
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

    /// Returns a file's content. The owner is a part of what is sealed, so that no file stands for another's.
    fn encrypted(&self, owner: &Owner, mut text: Vec<u8>) -> Option<Vec<u8>> {
        let mut nonce = [0; NONCE_LEN];
        getrandom::fill(&mut nonce).ok()?;
        let sealing = Nonce::assume_unique_for_key(nonce);
        let aad = Aad::from(owner.bytes());
        self.0.key.seal_in_place_append_tag(sealing, aad, &mut text).ok()?;
        Some([MAGIC, &nonce, &text].concat())
    }

    fn decrypted(&self, owner: &Owner, bytes: &[u8]) -> Option<Vec<u8>> {
        let (nonce, sealed) = bytes.strip_prefix(MAGIC)?.split_at_checked(NONCE_LEN)?;
        let opened = |key: &LessSafeKey| {
            let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
            let mut text = sealed.to_vec();
            let opened = key.open_in_place(nonce, Aad::from(owner.bytes()), &mut text).ok()?;
            Some(opened.to_vec())
        };
        std::iter::once(&self.0.key).chain(&self.0.old).find_map(opened)
    }
}

/// Returns the key of a file, which is made if it is not there.
fn own_key(path: &Path) -> Result<String, CredentialError> {
    let failed = |error: io::Error| unusable(path, &error.to_string());
    let mut key = [0; KEY_LEN];
    getrandom::fill(&mut key)
        .map_err(|error| unusable(path, &format!("no random numbers: {error}")))?;
    // Complete before it has its name, so that no other process reads half of it.
    let draft = path.with_extension(format!("draft-{}", std::process::id()));
    write_new(&draft, hex::encode(key).as_bytes()).map_err(failed)?;
    let made = fs::hard_link(&draft, path);
    let _left = fs::remove_file(&draft);
    match made {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(failed(error)),
        _ => {}
    }
    check_private(path)?;
    fs::read_to_string(path).map(|key| key.trim().to_owned()).map_err(failed)
}

fn parsed_key(text: &str) -> Option<LessSafeKey> {
    let key: [u8; KEY_LEN] = hex::decode(text.trim()).ok()?.try_into().ok()?;
    UnboundKey::new(&AES_256_GCM, &key).ok().map(LessSafeKey::new)
}

fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
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

#[cfg(unix)]
fn check_private(path: &Path) -> Result<(), CredentialError> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = fs::metadata(path).map_err(|error| unusable(path, &error.to_string()))?;
    if mode.permissions().mode() & 0o077 == 0 {
        return Ok(());
    }
    Err(unusable(path, "others can read the key: chmod 600, and log in again if they may have"))
}

#[cfg(not(unix))]
fn check_private(_path: &Path) -> Result<(), CredentialError> {
    Ok(())
}

fn unusable(path: &Path, problem: &str) -> CredentialError {
    CredentialError::Store(format!("{}: {problem}", path.display()))
}
