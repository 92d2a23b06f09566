//! Tests of the changes since a revision, as watchers of a catalog receive them.

use super::*;
use crate::{ChangedTenant, Changes, REMOVED_SERVERS_KEPT, Sequence};

async fn since(store: &dyn ChangeFeed, t: &TenantId, revision: Revision) -> Changes {
    store.changes(t, revision).await.expect("a read")
}

fn told(revision: Revision, servers: &[&str], policy: bool) -> Changes {
    let servers = servers.iter().map(|&name| name.to_owned()).collect();
    Changes { revision, servers, policy, told: true }
}

pub(crate) async fn changes_are_told_by_server(store: &dyn Store) {
    let t = tenant("acme");
    let other = tenant("acme-2");
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

pub(crate) async fn old_removals_can_not_be_told(store: &dyn Store) {
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

/// Returns the changed tenants as `name revision`, with the number of the last change.
async fn changed(store: &dyn ChangeFeed, after: Sequence, most: u32) -> (Vec<String>, Sequence) {
    let found = store.changed_tenants(after, most).await.expect("a read");
    let last = found.last().map_or(after, |changed| changed.sequence);
    let name =
        |changed: &ChangedTenant| format!("{} {}", changed.tenant.as_str(), changed.revision);
    (found.iter().map(name).collect(), last)
}

pub(crate) async fn changed_tenants_are_told_in_order(store: &dyn Store) {
    let a = tenant("acme");
    let b = tenant("b");
    assert_eq!(store.last_change().await.expect("a read"), 0);
    assert_eq!(changed(store, 0, 10).await.0, [""; 0]);
    commit(store, &b, change("s", None, Vec::new())).await;
    commit(store, &a, change("s", None, Vec::new())).await;
    commit(store, &b, change("t", None, Vec::new())).await;
    let (names, last) = changed(store, 0, 10).await;
    assert_eq!((names, last), (vec!["acme 1".to_owned(), "b 2".to_owned()], 3));
    assert_eq!(changed(store, 0, 1).await.0, ["acme 1"]);
    assert_eq!(changed(store, last, 10).await.0, [""; 0]);
    // A failed commit, or one that changes no catalog, gets no number.
    refusal(store, &a, change("s", None, Vec::new())).await;
    store.record_request(&tenant("new"), request("r", "body")).await.expect("a record");
    remember(store, &a, "s", "a").await;
    assert_eq!(store.last_change().await.expect("a read"), last);
    let policy = PolicyChange { base: None, document: "{}".to_owned(), hides: false };
    store.set_policy(&a, policy).await.expect("a commit");
    store.remove_server(&b, &server_name("t"), 2).await.expect("a removal");
    assert_eq!(changed(store, last, 10).await, (vec!["acme 2".to_owned(), "b 3".to_owned()], 5));
    assert_eq!(store.last_change().await.expect("a read"), 5);
}

pub(crate) async fn tenants_are_listed_by_name(store: &dyn Store) {
    for name in ["b", "a-1", "a"] {
        commit(store, &tenant(name), change("s", None, Vec::new())).await;
    }
    store.record_request(&tenant("aa"), request("r", "body")).await.expect("a record");
    let mut names = Vec::new();
    let mut after = None;
    while let Some(last) = {
        let page = store.list_tenants(after.as_ref(), 2).await.expect("a read");
        names.extend(page.iter().map(|tenant| tenant.as_str().to_owned()));
        page.last().cloned()
    } {
        after = Some(last);
    }
    assert_eq!(names, ["a", "a-1", "b"], "those that have a catalog");
}
