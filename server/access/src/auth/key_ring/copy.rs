//! Copy of the API keys that a replica knows, in a file of its own, for a start while the shared store can't be
//! asked. It holds the same data as the store: a hash and no secret. An entry in the file is valid no longer than it
//! would have been in memory.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::TRUSTED_BLINDLY_FOR;
use toolgate_core::identity::TenantId;
use toolgate_store::StoredKey;

/// Maximum number of bytes read from the file. This is more than the copy of as many keys as are cached.
const SIZE_MAX: u64 = 64 << 20;

/// Key with the time of its last successful lookup, in milliseconds since 1970 (UTC).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) key: StoredKey,
    pub(super) seen_ms: i64,
}

/// Copy file, and the keys to write to it.
#[derive(Debug)]
pub(super) struct KeyCopy {
    path: PathBuf,
    kept: Mutex<HashMap<String, Kept>>,
}

/// Key in the format of the file.
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
    /// Opens the copy at this path. Blocks on the file system.
    ///
    /// # Errors
    /// The file can't be read or is no copy. The copy is then empty until the next write.
    pub(super) fn open(path: PathBuf) -> (Self, io::Result<()>) {
        let (kept, read) = match read(&path) {
            Ok(kept) => (kept, Ok(())),
            Err(error) => (HashMap::new(), Err(error)),
        };
        (Self { path, kept: Mutex::new(kept) }, read)
    }

    /// Returns a key from the copy and the age of its last lookup; `None` if that is too old to count.
    pub(super) fn find(&self, id: &str, now_ms: i64) -> Option<(StoredKey, Duration)> {
        let kept = self.kept.lock();
        let found = kept.get(id)?;
        Some((found.key.clone(), age(found.seen_ms, now_ms)?))
    }

    /// Writes these keys and the earlier ones that are still valid, except those in `gone`. Blocks on the file
    /// system.
    ///
    /// # Errors
    /// The disk can't be written. The previous file is intact then.
    pub(super) fn write(&self, known: Vec<Kept>, gone: &[String], now_ms: i64) -> io::Result<()> {
        let mut kept = self.kept.lock();
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

/// Returns the age of a lookup; `None` if it is too old, or if its time is in the future because a clock was set
/// back.
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
    /// Converts to a key; `None` if the tenant's name is invalid. Without its tenant, the key would be valid for any
    /// tenant.
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
