//! Stored API keys. The store holds only the hash of a secret, never the secret. `toolgate_access::auth` decides the
//! permissions of a key. Keys are looked up before the tenant of a call is known, so they are found by their own id
//! and not by tenant.

use super::{ContentHash, StoreFuture};
use toolgate_core::identity::TenantId;

/// Stored API key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredKey {
    /// Public name of the key; not secret.
    pub id: String,
    /// SHA-256 of the key's secret.
    pub secret_hash: ContentHash,
    /// Tenant whose calls the key may make; `None` for any tenant that a call names.
    pub tenant: Option<TenantId>,
    /// Principal that calls with the key; unchanged when the key is rotated.
    pub principal: String,
    /// Names of the roles that the key grants.
    pub roles: Vec<String>,
    /// Label for people.
    pub label: String,
    /// Creation time, in milliseconds since 1970 (UTC) by the store's clock, like all times here.
    pub created_ms: i64,
    /// Expiry time, from which the key is invalid; `None` if it never expires.
    pub expires_ms: Option<i64>,
    /// Revocation time, from which the key is invalid.
    pub revoked_ms: Option<i64>,
    /// Recorded time of the last use, at most an hour before the actual last use.
    pub used_ms: Option<i64>,
}

/// API key as read, with the time of the reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyReading {
    /// API key.
    pub key: StoredKey,
    /// Time of the reading by the store's clock. The key's times are compared with it.
    pub now_ms: i64,
}

impl KeyReading {
    /// Returns the key with its times converted to a clock that read `here_ms` at the time of the reading. Use it if
    /// the key is judged later by that clock only.
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

/// Storage for API keys.
pub trait KeyStore: Send + Sync + 'static {
    /// Stores a new key. Returns [`Conflict`](super::StoreError::Conflict) if the id is taken.
    fn create_key<'a>(&'a self, key: &'a StoredKey) -> StoreFuture<'a, ()>;

    /// Returns the key with this id, even if it is expired or revoked.
    fn find_key<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<KeyReading>>;

    /// Reads the store's clock, in milliseconds since 1970 (UTC). Keys get their times from it, because the clock of
    /// a host that creates or revokes a key may be wrong.
    fn read_clock_ms(&self) -> StoreFuture<'_, i64>;

    /// Returns a page of keys of all tenants, by id, after `after`; "" gives the first page.
    fn list_keys<'a>(&'a self, after: &'a str, page_size: u32) -> StoreFuture<'a, Vec<StoredKey>>;

    /// Revokes a key at `at_ms` by the store's clock; an earlier revocation time is kept. Returns true if the key
    /// exists.
    fn revoke_key<'a>(&'a self, id: &'a str, at_ms: i64) -> StoreFuture<'a, bool>;

    /// Records that these keys were used at `at_ms`. Unknown ids are ignored.
    fn mark_keys_used<'a>(&'a self, ids: &'a [String], at_ms: i64) -> StoreFuture<'a, ()>;
}
