//! API keys as they are stored: never the secret, only its hash. What a key may do is for `crate::auth`. Keys are looked up
//! before anybody knows whose call it is, so they are found by their own id and not by tenant.

use super::{ContentHash, StoreFuture};
use crate::identity::TenantId;

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
    /// When it was made, in milliseconds since 1970 (UTC), as all moments here.
    pub created_ms: i64,
    /// From when on it is no longer good; `None` for never.
    pub expires_ms: Option<i64>,
    /// From when on it is revoked.
    pub revoked_ms: Option<i64>,
    /// When it was last used, at most an hour before it really was.
    pub used_ms: Option<i64>,
}

/// Stored API keys.
pub trait KeyStore: Send + Sync + 'static {
    /// Keeps a new key; [`Conflict`](super::StoreError::Conflict) when its id is taken.
    fn create_key<'a>(&'a self, key: &'a StoredKey) -> StoreFuture<'a, ()>;

    /// The key of this id, whatever became of it.
    fn find_key<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<StoredKey>>;

    /// A page of keys, all tenants', by id, after `after`; "" for the first page.
    fn list_keys<'a>(&'a self, after: &'a str, page_size: u32) -> StoreFuture<'a, Vec<StoredKey>>;

    /// Ends a key at `at_ms`, unless it was to end before; whether there is such a key.
    fn revoke_key<'a>(&'a self, id: &'a str, at_ms: i64) -> StoreFuture<'a, bool>;

    /// Notes that these keys were used at `at_ms`; those that are not there are passed over.
    fn mark_keys_used<'a>(&'a self, ids: &'a [String], at_ms: i64) -> StoreFuture<'a, ()>;
}
