//! Callers by API key. Keys are looked up in the store and cached for seconds. A revoked key therefore stops working
//! soon on every replica, and a failing store does not disable known keys.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};
use quick_cache::sync::Cache;
use tokio::sync::watch;
use tokio::time::{interval, timeout};
use tokio_util::sync::CancellationToken;
use toolgate_serving::Network;
use tracing::{error, info, warn};

use self::admin::AdminKey;
use self::bucket::Questions;
use self::copy::{Kept, KeyCopy};
use super::api_key::ApiKey;
use super::caller::CallerIdentity;
use super::refusal::KeyFault;
use super::{Caller, CredentialId, Now, Refusal};
use toolgate_core::error::Cause;
use toolgate_core::role::Roles;
use toolgate_store::{KeyReading, KeyStore, StoredKey};

mod admin;
mod bucket;
mod copy;

pub use admin::AdminKeyError;

/// Age from which a cached key is looked up again in the background.
const RENEWED_AFTER: Duration = Duration::from_secs(2);

/// Age from which a cached key is looked up before it is accepted. A revoked key therefore stops working within 5 s.
const TRUSTED_FOR: Duration = Duration::from_millis(4_500);

/// Time that a cached key stays valid while the store can't be asked.
const TRUSTED_BLINDLY_FOR: Duration = Duration::from_secs(90 * 60);

/// Maximum time that a call waits for the store.
const LOOKUP_MAX: Duration = Duration::from_secs(2);

/// Time that an unknown id is cached. It is short, so that a new key works soon.
const UNKNOWN_KEPT: Duration = Duration::from_secs(2);

/// Maximum number of cached keys, and of cached ids without a key.
const REMEMBERED_MAX: usize = 20_000;

/// Interval between writes of key use to the store.
const USE_NOTED_EVERY: Duration = Duration::from_secs(60);

/// Interval between writes of newly seen keys to the copy.
const COPIED_EVERY: Duration = Duration::from_secs(5);

/// Time after a recorded use during which further use is not recorded, in milliseconds.
const USE_GRAIN_MS: i64 = 3_600_000;

/// API keys of callers, cached from the store.
pub struct KeyRing {
    store: Arc<dyn KeyStore>,
    admin_file: Option<PathBuf>,
    /// Copy on disk, for a start while the store can't be asked.
    copy: Option<Arc<KeyCopy>>,
    /// True if the copy lacks a key. The next field lists keys that were deleted from the store.
    met: AtomicBool,
    gone: Mutex<Vec<String>>,
    admin: RwLock<Option<AdminKey>>,
    known: Cache<String, Arc<Entry>>,
    unknown: Cache<String, Instant>,
    strangers: Mutex<Questions>,
    used: Mutex<HashSet<String>>,
}

/// Cached key that exists in the store.
struct Entry {
    seen: Mutex<Seen>,
    /// Lock that a lookup of the key holds.
    looking: Arc<tokio::sync::Mutex<()>>,
    /// Time of the last recorded use, in milliseconds since 1970 (UTC).
    noted_ms: AtomicI64,
}

#[derive(Clone)]
struct Seen {
    key: Arc<StoredKey>,
    caller: Caller,
    at: Instant,
    /// True if the last lookup failed because the store could not be asked.
    failing: bool,
}

impl KeyRing {
    /// Creates a key ring for the keys of a store and the key in the admin key file.
    ///
    /// # Errors
    /// The file can't be read or holds no key.
    pub fn new(
        store: Arc<dyn KeyStore>,
        admin_file: Option<PathBuf>,
    ) -> Result<Self, AdminKeyError> {
        let admin = admin_file.as_deref().map(AdminKey::read).transpose()?;
        Ok(Self {
            store,
            admin_file,
            copy: None,
            met: AtomicBool::new(false),
            gone: Mutex::default(),
            admin: RwLock::new(admin),
            known: Cache::new(REMEMBERED_MAX),
            unknown: Cache::new(REMEMBERED_MAX),
            strangers: Mutex::new(Questions::full(Instant::now())),
            used: Mutex::default(),
        })
    }

    /// Checks that a file holds an admin key.
    ///
    /// # Errors
    /// The file can't be read or holds no key.
    pub fn look(admin_file: &Path) -> Result<(), AdminKeyError> {
        AdminKey::read(admin_file).map(drop)
    }

    /// Adds a file that keeps a copy of the known keys. Blocks on the file system.
    #[must_use]
    pub fn with_copy(self, path: PathBuf) -> Self {
        let (copy, read) = KeyCopy::open(path);
        if let Err(error) = read {
            warn!(%error, "the copy of API keys can't be read: another is made");
        }
        Self { copy: Some(Arc::new(copy)), ..self }
    }

    /// Returns the caller with this key from this network; `None` stands for this host.
    pub(super) async fn caller(
        self: &Arc<Self>,
        text: &str,
        network: Option<Network>,
        now: Now,
    ) -> Result<Caller, Refusal> {
        let key = ApiKey::parse(text).ok_or(Refusal::Malformed)?;
        let of_admin = self.admin.read().as_ref().and_then(|admin| admin.caller(&key));
        if let Some(told) = of_admin {
            return told;
        }
        let (entry, seen) = self.find(key.id(), network, now).await?;
        if !key.has_hash(&seen.key.secret_hash) {
            return Err(Refusal::Key(KeyFault::Secret, key.id().to_owned()));
        }
        judge(&seen.key, now)?;
        self.note_use(&entry, &seen.key, now);
        Ok(seen.caller)
    }

    /// Returns true if the key of an accepted caller is still valid, or if the store can't be asked about it.
    pub(super) async fn is_still_good(self: &Arc<Self>, id: &str, now: Now) -> bool {
        let of_admin = self.admin.read().as_ref().and_then(|admin| admin.has_id(id));
        if let Some(is_good) = of_admin {
            return is_good;
        }
        match self.find(id, None, now).await {
            Ok((_, seen)) => judge(&seen.key, now).is_ok(),
            Err(Refusal::Key(..)) => false,
            Err(_) => true,
        }
    }

    async fn find(
        self: &Arc<Self>,
        id: &str,
        network: Option<Network>,
        now: Now,
    ) -> Result<(Arc<Entry>, Seen), Refusal> {
        let Some(entry) = self.known.get(id) else { return self.meet(id, network, now).await };
        let seen = entry.seen();
        if seen.age(now) < RENEWED_AFTER {
            return Ok((entry, seen));
        }
        if seen.counts(now) {
            if let Ok(turn) = Arc::clone(&entry.looking).try_lock_owned() {
                let ring = Arc::clone(self);
                let entry = Arc::clone(&entry);
                let id = id.to_owned();
                tokio::spawn(async move {
                    ring.renew(&entry, &id, now).await.ok();
                    drop(turn);
                });
            }
            return Ok((entry, seen));
        }
        // One call looks the key up; the others wait and use its result.
        let _turn = Arc::clone(&entry.looking).lock_owned().await;
        let seen = entry.seen();
        if seen.counts(now) {
            return Ok((entry, seen));
        }
        let seen = self.renew(&entry, id, now).await?;
        Ok((entry, seen))
    }

    /// Looks a cached key up again.
    async fn renew(&self, entry: &Entry, id: &str, now: Now) -> Result<Seen, Refusal> {
        match self.look_up(id).await {
            Ok(Some(read)) => Ok(entry.set(Seen::read(read, now))),
            Ok(None) => {
                self.known.remove(id);
                self.gone.lock().push(id.to_owned());
                Err(Refusal::Key(KeyFault::Unknown, id.to_owned()))
            }
            Err(cause) => {
                let mut seen = entry.seen();
                if seen.age(now) >= TRUSTED_BLINDLY_FOR {
                    return Err(Refusal::unasked(cause));
                }
                if !seen.failing {
                    warn!(%cause, credential = id, "the store can't be asked about an API key: what is known of it counts");
                }
                seen.failing = true;
                Ok(entry.set(seen))
            }
        }
    }

    /// Looks up a key that is not cached. The rate of these lookups is bounded, because ids are easily made up.
    async fn meet(
        &self,
        id: &str,
        network: Option<Network>,
        now: Now,
    ) -> Result<(Arc<Entry>, Seen), Refusal> {
        let unknown = || Refusal::Key(KeyFault::Unknown, id.to_owned());
        let is_recent = |since| now.moment.saturating_duration_since(since) < UNKNOWN_KEPT;
        if self.unknown.get(id).is_some_and(is_recent) {
            return Err(unknown());
        }
        let may_ask = self.may_ask(network, now);
        if !may_ask {
            return Err(Refusal::Busy);
        }
        let seen = match self.look_up(id).await {
            Ok(Some(read)) => Seen::read(read, now),
            Ok(None) => {
                self.unknown.insert(id.to_owned(), now.moment);
                return Err(unknown());
            }
            Err(cause) => self.remember(id, now).ok_or_else(|| Refusal::unasked(cause))?,
        };
        self.met.store(true, Ordering::Relaxed);
        let entry = Arc::new(Entry {
            noted_ms: AtomicI64::new(seen.key.used_ms.unwrap_or(i64::MIN)),
            seen: Mutex::new(seen.clone()),
            looking: Arc::default(),
        });
        self.known.insert(id.to_owned(), Arc::clone(&entry));
        Ok((entry, seen))
    }

    /// Returns what an earlier process knew of a key.
    fn remember(&self, id: &str, now: Now) -> Option<Seen> {
        let (key, age) = self.copy.as_ref()?.find(id, now.ms)?;
        let at = now.moment.checked_sub(age)?;
        warn!(
            credential = id,
            "the store can't be asked about an API key: what the copy has of it counts"
        );
        Some(Seen { at, failing: true, ..Seen::new(key, now) })
    }

    fn may_ask(&self, network: Option<Network>, now: Now) -> bool {
        let mut strangers = self.strangers.lock();
        strangers.take(network, now.moment)
    }

    async fn look_up(&self, id: &str) -> Result<Option<KeyReading>, Cause> {
        match timeout(LOOKUP_MAX, self.store.find_key(id)).await {
            Ok(found) => found.map_err(Cause::from),
            Err(_) => Err(format!("no answer within {LOOKUP_MAX:?}").into()),
        }
    }

    fn note_use(&self, entry: &Entry, key: &StoredKey, now: Now) {
        let noted = entry.noted_ms.load(Ordering::Relaxed);
        if now.ms.saturating_sub(noted) < USE_GRAIN_MS {
            return;
        }
        entry.noted_ms.store(now.ms, Ordering::Relaxed);
        self.used.lock().insert(key.id.clone());
    }

    /// Records key use in the store, writes the copy, and reads the admin key file again on hangups, until `over` is
    /// cancelled.
    pub(super) async fn keep(&self, mut hangups: watch::Receiver<()>, over: CancellationToken) {
        let mut turns = interval(USE_NOTED_EVERY);
        let mut copies = interval(COPIED_EVERY);
        loop {
            let is_over = tokio::select! {
                () = over.cancelled() => true,
                _ = turns.tick() => false,
                _ = copies.tick() => {
                    if self.met.swap(false, Ordering::Relaxed) {
                        self.write_copy(Now::read()).await;
                    }
                    continue;
                }
                Ok(()) = hangups.changed() => {
                    self.read_admin_key_again();
                    continue;
                }
            };
            self.write_use().await;
            self.write_copy(Now::read()).await;
            if is_over {
                return;
            }
        }
    }

    async fn write_use(&self) {
        let used = std::mem::take(&mut *self.used.lock());
        if used.is_empty() {
            return;
        }
        let ids: Vec<_> = used.into_iter().collect();
        // A later use is recorded within the hour. Only this record is lost.
        if let Err(cause) = self.store.mark_keys_used(&ids, Now::read().ms).await {
            warn!(%cause, keys = ids.len(), "the use of API keys can't be noted");
        }
    }

    async fn write_copy(&self, now: Now) {
        let Some(copy) = self.copy.clone() else { return };
        let kept = |seen: Seen| {
            let age = i64::try_from(seen.age(now).as_millis()).unwrap_or(i64::MAX);
            Kept { key: (*seen.key).clone(), seen_ms: now.ms.saturating_sub(age) }
        };
        let known: Vec<_> = self.known.iter().map(|(_, entry)| kept(entry.seen())).collect();
        let gone = std::mem::take(&mut *self.gone.lock());
        let write = move || copy.write(known, &gone, now.ms);
        if let Ok(Err(error)) = tokio::task::spawn_blocking(write).await {
            warn!(%error, "the copy of API keys can't be written");
        }
    }

    fn read_admin_key_again(&self) {
        let Some(path) = &self.admin_file else { return };
        let read = AdminKey::read(path);
        let mut admin = self.admin.write();
        match read {
            Ok(key) => {
                let changed = admin.as_ref().is_none_or(|before| !before.is_same(&key));
                *admin = Some(key);
                if changed {
                    info!("the admin key is another one now");
                }
            }
            Err(problem) if problem.is_absence() => {
                *admin = None;
                warn!("the admin key file is gone: there is no admin key any more");
            }
            Err(problem) => error!(%problem, "the admin key file is not good: the key stays"),
        }
    }
}

impl Entry {
    fn seen(&self) -> Seen {
        self.seen.lock().clone()
    }

    fn set(&self, seen: Seen) -> Seen {
        *self.seen.lock() = seen.clone();
        seen
    }
}

impl Seen {
    /// Creates an entry from a reading. From here on, the key's times are on this process's clock and not on the
    /// store's.
    fn read(reading: KeyReading, now: Now) -> Self {
        Self::new(reading.by_clock(now.ms), now)
    }

    fn new(key: StoredKey, now: Now) -> Self {
        let caller = Caller::new(CallerIdentity {
            tenant: key.tenant.clone(),
            principal: key.principal.clone(),
            roles: Roles::named(key.roles.iter().map(String::as_str)),
            scopes: None,
            credential: CredentialId::ApiKey(key.id.clone()),
            good_until_ms: key.expires_ms,
        });
        Self { key: Arc::new(key), caller, at: now.moment, failing: false }
    }

    fn age(&self, now: Now) -> Duration {
        now.moment.saturating_duration_since(self.at)
    }

    /// Returns true if the entry is still valid: recent enough, or old while the store can't be asked.
    fn counts(&self, now: Now) -> bool {
        self.age(now) < if self.failing { TRUSTED_BLINDLY_FOR } else { TRUSTED_FOR }
    }
}

/// Checks that a key is neither revoked nor expired now.
fn judge(key: &StoredKey, now: Now) -> Result<(), Refusal> {
    if key.revoked_ms.is_some_and(|at| at <= now.ms) {
        return Err(Refusal::Key(KeyFault::Revoked, key.id.clone()));
    }
    if key.expires_ms.is_some_and(|at| at <= now.ms) {
        return Err(Refusal::KeyExpired(key.id.clone()));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
