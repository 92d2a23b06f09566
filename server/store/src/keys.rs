//! API keys as they are stored: never the secret, only its hash. What a key may do is for `toolgate_access::auth`. Keys are looked up
//! before anybody knows whose call it is, so they are found by their own id and not by tenant.

use super::{ContentHash, StoreFuture};
use toolgate_core::identity::TenantId;

/// One API key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredKey {
    /// Names the key; no secret.
    pub id: String,
    /// SHA-256 of its secret.
    pub secret_hash: ContentHash,
    /// Whose calls it may make; `None` for those of any tenant that a call names.
    pub tenant: Option<TenantId>,
    /// Who calls with it; stays when the key is rotated.
    pub principal: String,
    /// What it may do, by name.
    pub roles: Vec<String>,
    /// What people know it by.
    pub label: String,
    /// When it was made, in milliseconds since 1970 (UTC) by the store's clock, as all moments here.
    pub created_ms: i64,
    /// From when on it is no longer good; `None` for never.
    pub expires_ms: Option<i64>,
    /// From when on it is revoked.
    pub revoked_ms: Option<i64>,
    /// When it was last used, at most an hour before it really was.
    pub used_ms: Option<i64>,
}

/// An API key as it was read, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyReading {
    /// The key.
    pub key: StoredKey,
    /// The time of the reading by the store's clock: what the key's moments are compared with.
    pub now_ms: i64,
}

impl KeyReading {
    /// Returns the key with its moments moved to a clock that said `here_ms` at the reading: whoever judges it later has
    /// that clock only.
    #[must_use]
    pub fn by_clock(self, here_ms: i64) -> StoredKey {
        let moved = |at: i64| at.saturating_sub(self.now_ms).saturating_add(here_ms);
        StoredKey {
            created_ms: moved(self.key.created_ms),
            expires_ms: self.key.expires_ms.map(moved),
            revoked_ms: self.key.revoked_ms.map(moved),
            ..self.key
        }
    }
}

/// Stored API keys.
pub trait KeyStore: Send + Sync + 'static {
    /// Keeps a new key; [`Conflict`](super::StoreError::Conflict) when its id is taken.
    fn create_key<'a>(&'a self, key: &'a StoredKey) -> StoreFuture<'a, ()>;

    /// The key of this id, whatever became of it.
    fn find_key<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<KeyReading>>;

    /// Reads the store's clock, in milliseconds since 1970: what keys are stamped with. The clock of whoever makes or
    /// revokes a key may be wrong.
    fn read_clock_ms(&self) -> StoreFuture<'_, i64>;

    /// A page of keys, all tenants', by id, after `after`; "" for the first page.
    fn list_keys<'a>(&'a self, after: &'a str, page_size: u32) -> StoreFuture<'a, Vec<StoredKey>>;

    /// Ends a key at `at_ms` by the store's clock, unless it was to end before; whether there is such a key.
    fn revoke_key<'a>(&'a self, id: &'a str, at_ms: i64) -> StoreFuture<'a, bool>;

    /// Notes that these keys were used at `at_ms`; those that are not there are passed over.
    fn mark_keys_used<'a>(&'a self, ids: &'a [String], at_ms: i64) -> StoreFuture<'a, ()>;
}
