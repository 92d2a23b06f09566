//! Tests that read all content of a tenant and store it elsewhere.

use super::*;
use crate::stream::{self, Reader};
use crate::{TenantContent, UsageAddition, UsageCount};

/// Fills a tenant with some content of every kind.
pub(crate) async fn fill(store: &dyn Store, t: &TenantId) {
    let mut first = change("s", None, vec![tool("s", "a", "A\0"), tool("s", "b", "B")]);
    first.upserts[0].definition = "\u{10ffff}\0{}".to_owned();
    first.embeddings = vec![embedding("A\0", &[1.0, -0.0]), embedding("B", &[f32::MIN, 0.1])];
    commit(store, t, first).await;
    let base = commit(store, t, change("gone", None, vec![tool("gone", "g", "G\0")])).await;
    store.remove_server(t, &server_name("gone"), base).await.expect("a removal");
    let policy = PolicyChange { base: None, document: "rules: []".to_owned(), hides: true };
    store.set_policy(t, policy).await.expect("a policy");
    let mut waiting = tool("o", "w", "W");
    waiting.status = ToolStatus::Quarantined;
    let approved = ToolRecord { status: ToolStatus::Approved, ..tool("o", "c", "C") };
    commit(store, t, change("o", None, vec![approved, waiting])).await;
    let base = commit(store, t, change("p", None, Vec::new())).await;
    let pending = ServerRecord { pending: true, ..ServerRecord::new(server_name("p")) };
    commit(store, t, ServerChange { server: pending, ..change("p", Some(base), Vec::new()) }).await;
    store.save_embeddings(t, "other", &[embedding("A\0", &[0.5])]).await.expect("a save");
    remember(store, t, "s", "a").await;
    let count = |hour| UsageCount { hour, item: "route_calls".to_owned(), amount: 3 };
    let added = [7, 8].map(|hour| UsageAddition { tenant: t.clone(), count: count(hour) });
    store.add_usage(&added).await.expect("added");
}

pub(crate) async fn content(store: &dyn TenantArchive, t: &TenantId) -> TenantContent {
    store.read_content(t).await.expect("a read").expect("a tenant")
}

/// Returns the content after encoding it as lines of JSON and decoding it.
pub(crate) fn by_lines(t: &TenantId, content: &TenantContent) -> TenantContent {
    let mut reader = Reader::default();
    let all = [stream::head()].into_iter().chain(stream::lines(t, content.clone()));
    let mut read: Vec<_> = all.filter_map(|line| reader.take(&line).expect("a line")).collect();
    assert!(reader.take(&stream::end(1)).expect("the end").is_none());
    let (tenant, content) = read.pop().expect("a tenant");
    assert_eq!((&tenant, read.len()), (t, 0));
    content
}

pub(crate) async fn content_is_stored_elsewhere_as_it_is(store: &dyn Store) {
    let from = tenant("from");
    let to = tenant("to");
    assert_eq!(store.read_content(&from).await.expect("a read"), None);
    fill(store, &from).await;
    let before = content(store, &from).await;
    assert_eq!(before.damage, [""; 0]);
    assert_eq!((before.catalog.tools.len(), before.embeddings.len()), (3, 3));
    assert_eq!(before.catalog.quarantined.len(), 1);
    assert_eq!(before.catalog.tools[2].record.status, ToolStatus::Approved);
    assert_eq!((before.exemplars.len(), before.usage.len(), before.hides), (1, 2, true));
    assert_eq!((before.removed_servers.len(), before.past_tools.len()), (1, 1));
    let moved = by_lines(&from, &before);
    assert_eq!(moved, before);
    let last = store.last_change().await.expect("a read");
    store.restore_content(&to, &moved).await.expect("stored");
    assert_eq!(content(store, &to).await, before);
    assert_eq!(store.last_change().await.expect("a read"), last + 1, "others hear of it");
    // The restored catalog continues at the same revision.
    let revision = commit(store, &to, change("new", None, Vec::new())).await;
    assert_eq!(revision, before.catalog.revision + 1);
    let again = store.restore_content(&to, &moved).await;
    assert!(matches!(again, Err(StoreError::Conflict)), "{again:?}");
    assert_eq!(content(store, &from).await, before, "untouched");
}
