//! What a replica knows of API keys, in a file of its own: for when it is started while the shared store can't be asked.
//! Of a key there is what the store has of it, a hash and no secret. What is in the file counts no longer than it would
//! have counted in memory.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::TRUSTED_BLINDLY_FOR;
use toolgate_core::identity::TenantId;
use toolgate_store::StoredKey;

/// Bytes of the file that are read: more than it holds of as many keys as are remembered.
const SIZE_MAX: u64 = 64 << 20;

/// A key, and when the store was last heard of it, in milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) key: StoredKey,
    pub(super) seen_ms: i64,
}

/// The file, and what it held when the process began.
#[derive(Debug)]
pub(super) struct KeyCopy {
    path: PathBuf,
    kept: Mutex<HashMap<String, Kept>>,
}

/// A key as it is written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    id: String,
    secret_hash: [u8; 32],
    tenant: Option<String>,
    principal: String,
    roles: Vec<String>,
    label: String,
    created_ms: i64,
    expires_ms: Option<i64>,
    revoked_ms: Option<i64>,
    used_ms: Option<i64>,
    seen_ms: i64,
}

impl KeyCopy {
    /// The copy at this place. Blocks on the file system.
    ///
    /// # Errors
    /// A file that can't be read or is no copy; there is none then until the next is written.
    pub(super) fn open(path: PathBuf) -> (Self, io::Result<()>) {
        let (kept, read) = match read(&path) {
            Ok(kept) => (kept, Ok(())),
            Err(error) => (HashMap::new(), Err(error)),
        };
        (Self { path, kept: Mutex::new(kept) }, read)
    }

    /// What was known of a key, unless that is too old to count.
    pub(super) fn find(&self, id: &str, now_ms: i64) -> Option<(StoredKey, Duration)> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let found = kept.get(id)?;
        Some((found.key.clone(), age(found.seen_ms, now_ms)?))
    }

    /// Writes these and whatever else still counts, but for `gone`. Blocks on the file system.
    ///
    /// # Errors
    /// A disk that can't be written. The file before it is whole then.
    pub(super) fn write(&self, known: Vec<Kept>, gone: &[String], now_ms: i64) -> io::Result<()> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(known.into_iter().map(|one| (one.key.id.clone(), one)));
        kept.retain(|id, one| age(one.seen_ms, now_ms).is_some() && !gone.contains(id));
        let written: Vec<Written> = kept.values().cloned().map(Written::from).collect();
        let draft = self.path.with_extension("draft");
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&draft)?;
        file.write_all(&serde_json::to_vec(&written)?)?;
        file.sync_all()?;
        fs::rename(&draft, &self.path)
    }
}

/// How old what was seen is; `None` for too old, and for a moment that has not come: clocks were set back.
fn age(seen_ms: i64, now_ms: i64) -> Option<Duration> {
    let age = Duration::from_millis(u64::try_from(now_ms.checked_sub(seen_ms)?).ok()?);
    (age < TRUSTED_BLINDLY_FOR).then_some(age)
}

fn read(path: &PathBuf) -> io::Result<HashMap<String, Kept>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(HashMap::new()),
        Err(error) => return Err(error),
    };
    let mut text = Vec::new();
    io::Read::read_to_end(&mut io::Read::take(file, SIZE_MAX), &mut text)?;
    let written: Vec<Written> = serde_json::from_slice(&text)?;
    let kept = written.into_iter().filter_map(Written::kept);
    Ok(kept.map(|one| (one.key.id.clone(), one)).collect())
}

impl From<Kept> for Written {
    fn from(Kept { key, seen_ms }: Kept) -> Self {
        Self {
            id: key.id,
            secret_hash: key.secret_hash,
            tenant: key.tenant.map(|tenant| tenant.as_str().to_owned()),
            principal: key.principal,
            roles: key.roles,
            label: key.label,
            created_ms: key.created_ms,
            expires_ms: key.expires_ms,
            revoked_ms: key.revoked_ms,
            used_ms: key.used_ms,
            seen_ms,
        }
    }
}

impl Written {
    /// `None` for a tenant that is none: without it the key would be one of any tenant.
    fn kept(self) -> Option<Kept> {
        let tenant = self.tenant.as_deref().map(TenantId::parse).transpose().ok()?;
        let key = StoredKey {
            id: self.id,
            secret_hash: self.secret_hash,
            tenant,
            principal: self.principal,
            roles: self.roles,
            label: self.label,
            created_ms: self.created_ms,
            expires_ms: self.expires_ms,
            revoked_ms: self.revoked_ms,
            used_ms: self.used_ms,
        };
        Some(Kept { key, seen_ms: self.seen_ms })
    }
}
