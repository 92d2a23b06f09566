//! Tests of a policy's change, and of its effect on deltas of the summary pool.

use super::*;
use crate::Committed;

fn policy(base: Option<Revision>, document: &str, hides: bool) -> PolicyChange {
    PolicyChange { base, document: document.to_owned(), hides }
}

async fn set(store: &dyn CatalogStore, to: &TenantId, change: PolicyChange) -> Committed {
    store.set_policy(to, change).await.expect("a commit")
}

pub(crate) async fn a_policy_is_read_back_with_its_catalog(store: &dyn Store) {
    let t = tenant("acme");
    assert_eq!(store.read_policy(&t).await.expect("a read"), None);
    commit(store, &t, change("git", None, vec![tool("git", "a", "A")])).await;
    assert_eq!(catalog(store, &t).await.policy, None);
    let text = "rules: [] # \u{e9}\r\n";
    let committed = set(store, &t, policy(None, text, false)).await;
    assert_eq!(committed.revision, 2, "policies and registrations share the revisions");
    let stored = store.read_policy(&t).await.expect("a read").expect("a policy");
    assert_eq!((stored.document.as_str(), stored.revision), (text, 2));
    assert_eq!(stored.updated_ms, committed.updated_ms);
    let loaded = catalog(store, &t).await;
    assert_eq!((loaded.revision, loaded.policy), (2, Some(stored)));
    assert_eq!(loaded.tools.len(), 1);
    let git = loaded.servers[0].revision;
    assert_eq!(commit(store, &t, change("git", Some(git), Vec::new())).await, 3);
    assert_eq!(store.read_policy(&t).await.expect("a read").expect("a policy").revision, 2);
}

pub(crate) async fn a_stale_policy_is_refused(store: &dyn Store) {
    let t = tenant("acme");
    let early = store.set_policy(&t, policy(Some(1), "{}", false)).await;
    assert!(matches!(early, Err(StoreError::Conflict)), "{early:?}");
    assert_eq!(store.revision(&t).await.expect("a read"), None, "nothing was left");
    let first = set(store, &t, policy(None, "{}", false)).await.revision;
    for base in [None, Some(0), Some(first + 1)] {
        let stale = store.set_policy(&t, policy(base, "stale", true)).await;
        assert!(matches!(stale, Err(StoreError::Conflict)), "{base:?}: {stale:?}");
    }
    assert_eq!(set(store, &t, policy(Some(first), "next", false)).await.revision, first + 1);
    let stored = store.read_policy(&t).await.expect("a read").expect("a policy");
    assert_eq!(stored.document, "next");
}

pub(crate) async fn a_policy_begins_deltas_anew(store: &dyn Store) {
    let t = tenant("acme");
    commit(store, &t, change("git", None, vec![tool("git", "a", "A"), tool("git", "b", "B")]))
        .await;
    commit(store, &t, removal("git", 1, &["a"])).await;
    assert_eq!(catalog(store, &t).await.pool_floor, 0);
    set(store, &t, policy(None, "{}", false)).await;
    let loaded = catalog(store, &t).await;
    assert_eq!((loaded.pool_floor, loaded.removed.len()), (3, 0));
    commit(store, &t, removal("git", 2, &["b"])).await;
    let loaded = catalog(store, &t).await;
    assert_eq!((loaded.pool_floor, loaded.removed.len()), (3, 1), "one that hides nothing");
}

/// Checks that no delta contains the name of a tool that a caller never saw.
pub(crate) async fn a_policy_that_hides_tells_nobody_of_changes(store: &dyn Store) {
    let t = tenant("acme");
    set(store, &t, policy(None, "hides", true)).await;
    let tools = || vec![tool("git", "a", "A"), tool("git", "b", "B")];
    commit(store, &t, change("git", None, tools())).await;
    assert_eq!(catalog(store, &t).await.pool_floor, 1, "new tools are lines for who sees them");
    commit(store, &t, removal("git", 2, &["a"])).await;
    let loaded = catalog(store, &t).await;
    assert_eq!((loaded.pool_floor, loaded.removed.len()), (3, 0));
    // The summary stays the same, but the annotations that a rule matches may have changed.
    let mut changed = tool("git", "b", "B");
    changed.definition = "{\"annotations\": {}}".to_owned();
    commit(store, &t, change("git", Some(3), vec![changed])).await;
    assert_eq!(catalog(store, &t).await.pool_floor, 4);
    let removed = store.remove_server(&t, &server_name("git"), 4).await.expect("a removal");
    let loaded = catalog(store, &t).await;
    assert_eq!((loaded.pool_floor, loaded.removed.len()), (removed.revision, 0));
}

pub(crate) async fn policies_of_tenants_do_not_meet(store: &dyn Store) {
    let (a, b) = (tenant("a"), tenant("a-b"));
    set(store, &a, policy(None, "of a", true)).await;
    assert_eq!(store.read_policy(&b).await.expect("a read"), None);
    commit(store, &b, change("git", None, vec![tool("git", "x", "X")])).await;
    commit(store, &b, removal("git", 1, &["x"])).await;
    let loaded = catalog(store, &b).await;
    assert_eq!((loaded.policy, loaded.pool_floor, loaded.removed.len()), (None, 0, 1));
    set(store, &b, policy(None, "of b", false)).await;
    let stored = store.read_policy(&a).await.expect("a read").expect("a policy");
    assert_eq!((stored.document.as_str(), stored.revision), ("of a", 1));
}
