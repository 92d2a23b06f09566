//! Tests of a full disk: changes that delete content get the reserved space, and no other changes do.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::super::transaction::SqliteTransaction;
use super::{Fixture, open};
use crate::conformance::{change, commit, server_name, tenant, tool};
use crate::error::DiskFull;
use crate::sql::{Backend, Scope};
use crate::sqlite::SqliteStore;
use crate::{
    CatalogStore, KeyStore as _, MemoryStore as _, PolicyChange, StoreError, StoreFuture, StoredKey,
};

/// Store whose writes fail for lack of room until the reserve is released.
struct Full {
    inner: SqliteStore,
    is_full: AtomicBool,
}

impl Backend for Full {
    type Transaction = SqliteTransaction;

    async fn begin_read(&self, scope: Scope<'_>) -> Result<SqliteTransaction, StoreError> {
        self.inner.begin_read(scope).await
    }

    async fn begin_write(&self, scope: Scope<'_>) -> Result<SqliteTransaction, StoreError> {
        match self.is_full.load(Ordering::Relaxed) {
            true => Err(StoreError::Unavailable(Box::new(DiskFull("no room".into())))),
            false => self.inner.begin_write(scope).await,
        }
    }

    async fn commit(&self, transaction: SqliteTransaction) -> Result<(), StoreError> {
        Backend::commit(&self.inner, transaction).await
    }

    async fn close(&self) -> Result<(), StoreError> {
        Backend::close(&self.inner).await
    }

    fn was_undone(error: &StoreError) -> bool {
        SqliteStore::was_undone(error)
    }

    fn make_room(&self, error: &StoreError) -> bool {
        let has_made = self.inner.make_room(error);
        self.is_full.fetch_and(!has_made, Ordering::Relaxed);
        has_made
    }

    fn failures(&self) -> &AtomicU64 {
        Backend::failures(&self.inner)
    }

    fn is_shared(&self) -> bool {
        Backend::is_shared(&self.inner)
    }

    fn clock_ms(&self) -> i64 {
        Backend::clock_ms(&self.inner)
    }

    fn hint(&self) -> StoreFuture<'_, ()> {
        Backend::hint(&self.inner)
    }
}

/// Waits until the reserve exists again. A commit fills it in the background.
async fn refilled(store: &SqliteStore, file: &Path) {
    while !file.exists() {
        tokio::task::yield_now().await;
    }
    // Wait until no thread is filling it any more.
    store.fill_reserve().await.expect("it ends");
}

#[tokio::test]
async fn a_full_disk_lets_content_be_taken_out_and_nothing_in() {
    let Fixture { store, folder } = open().await;
    let file = folder.path().join("catalog.db-reserve");
    assert!(file.exists(), "set aside when the store is opened");
    let t = tenant("acme");
    let base = commit(&store, &t, change("s", None, vec![tool("s", "a", "A")])).await;
    let key = StoredKey {
        id: "k".to_owned(),
        secret_hash: [7; 32],
        tenant: None,
        principal: "p".to_owned(),
        roles: Vec::new(),
        label: String::new(),
        created_ms: 1,
        expires_ms: None,
        revoked_ms: None,
        used_ms: None,
    };
    store.create_key(&key).await.expect("a key");
    let store = Full { inner: store, is_full: AtomicBool::new(true) };
    let more = change("more", None, vec![tool("more", "b", "B")]);
    let refused = CatalogStore::commit(&store, &t, more).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    assert!(file.exists(), "what comes gets none of it");
    for step in ["policy", "memory", "key", "server"] {
        store.is_full.store(true, Ordering::Relaxed);
        let policy = PolicyChange { base: None, document: "rules: []".to_owned(), hides: true };
        let done = match step {
            "policy" => store.set_policy(&t, policy).await.map(drop),
            "memory" => store.clear_memory(&t, None, None).await.map(drop),
            "key" => store.revoke_key("k", 5).await.map(drop),
            _ => store.remove_server(&t, &server_name("s"), base).await.map(drop),
        };
        done.expect(step);
        refilled(&store.inner, &file).await;
    }
    // Without a reserve, the error says that the disk is full.
    store.is_full.store(true, Ordering::Relaxed);
    std::fs::remove_file(&file).expect("somebody removes it");
    let full = store.remove_server(&t, &server_name("s"), base).await.expect_err("no room");
    let full: toolgate_core::error::Error = full.into();
    assert!(full.to_string().contains("disk of the store is full"), "{full}");
}
