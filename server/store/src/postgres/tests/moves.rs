//! Tests that move content from one kind of store to the other and back.

use super::open;
use crate::conformance::{by_lines, content, fill, tenant};
use crate::sqlite::SqliteStore;
use crate::{Store, TenantContent};

/// Moves a tenant to the second store and back. Returns its content before, in the second store, and back in the
/// first.
async fn there_and_back(one: &dyn Store, other: &dyn Store) -> [TenantContent; 3] {
    let t = tenant("acme");
    let back = tenant("back");
    fill(one, &t).await;
    let before = content(one, &t).await;
    other.restore_content(&t, &by_lines(&t, &before)).await.expect("stored");
    let there = content(other, &t).await;
    one.restore_content(&back, &by_lines(&t, &there)).await.expect("stored again");
    [before, there, content(one, &back).await]
}

#[tokio::test]
async fn content_moves_between_stores_and_back() {
    let shared = open().await.store;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("toolgate.db");
    let embedded = SqliteStore::open(&path).await.expect("a store");
    let [before, there, back] = there_and_back(&embedded, &shared).await;
    assert_eq!((&there, &back), (&before, &before));
    let fresh = open().await.store;
    let embedded = SqliteStore::open(&folder.path().join("b.db")).await.expect("a store");
    let [before, there, back] = there_and_back(&fresh, &embedded).await;
    assert_eq!((&there, &back), (&before, &before));
}
