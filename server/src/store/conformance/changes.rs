//! What changed since a revision, as who watches a catalog is told it.

use super::*;
use crate::store::{Changes, REMOVED_SERVERS_KEPT};

async fn since(store: &dyn Store, t: &TenantId, revision: Revision) -> Changes {
    store.changes(t, revision).await.expect("a read")
}

fn told(revision: Revision, servers: &[&str], policy: bool) -> Changes {
    let servers = servers.iter().map(|&name| name.to_owned()).collect();
    Changes { revision, servers, policy, told: true }
}

pub(in crate::store) async fn changes_are_told_by_server(store: &dyn Store) {
    let (t, other) = (tenant("acme"), tenant("acme-2"));
    assert_eq!(since(store, &t, 0).await, told(0, &[], false));
    assert!(!since(store, &t, 3).await.told, "a revision that never was");
    commit(store, &other, change("theirs", None, vec![tool("theirs", "a", "A")])).await;
    commit(store, &t, change("git", None, vec![tool("git", "a", "A")])).await;
    commit(store, &t, change("mail", None, Vec::new())).await;
    let policy = PolicyChange { base: None, document: "{}".to_owned(), hides: false };
    store.set_policy(&t, policy).await.expect("a commit");
    assert_eq!(since(store, &t, 0).await, told(3, &["git", "mail"], true));
    assert_eq!(since(store, &t, 1).await, told(3, &["mail"], true));
    assert_eq!(since(store, &t, 3).await, told(3, &[], false));
    assert!(!since(store, &t, 4).await.told);
    store.remove_server(&t, &server_name("git"), 1).await.expect("a removal");
    assert_eq!(since(store, &t, 3).await, told(4, &["git"], false));
    assert_eq!(since(store, &t, 0).await, told(4, &["mail"], true), "it never knew of it");
    commit(store, &t, change("git", None, Vec::new())).await;
    assert_eq!(since(store, &t, 4).await, told(5, &["git"], false));
    assert_eq!(since(store, &t, 5).await, told(5, &[], false));
}

pub(in crate::store) async fn old_removals_can_not_be_told(store: &dyn Store) {
    let t = tenant("acme");
    let gone = u64::from(REMOVED_SERVERS_KEPT) + 1;
    for n in 0..gone {
        let name = format!("s{n}");
        let revision = commit(store, &t, change(&name, None, Vec::new())).await;
        store.remove_server(&t, &server_name(&name), revision).await.expect("a removal");
    }
    assert!(!since(store, &t, 1).await.told, "the first removal is forgotten");
    let after = since(store, &t, 2).await;
    assert_eq!((after.told, after.servers.len()), (true, REMOVED_SERVERS_KEPT as usize));
    assert_eq!(since(store, &t, 0).await, told(2 * gone, &[], false));
}
