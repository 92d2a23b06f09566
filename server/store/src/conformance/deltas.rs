//! Tests of the summary pool's order and of the data for its deltas.

use super::*;

/// Returns the tools as `name@summary revision`, in the pool's order.
async fn pool(store: &dyn CatalogStore, t: &TenantId) -> Vec<String> {
    let tools = catalog(store, t).await.tools;
    tools.iter().map(|t| format!("{}@{}", t.record.name.as_str(), t.summary_revision)).collect()
}

pub(crate) async fn the_pool_keeps_its_order(store: &dyn Store) {
    let t = tenant("acme");
    let tools = vec![tool("z", "b", "B"), tool("z", "a", "A")];
    commit(store, &t, change("z", None, tools)).await;
    commit(store, &t, change("a", None, vec![tool("a", "c", "C")])).await;
    assert_eq!(pool(store, &t).await, ["a@1", "b@1", "c@2"]);
    // Neither the definition nor the flags are part of the line.
    let mut same_line = tool("z", "a", "A");
    (same_line.definition, same_line.critical) = ("{}".to_owned(), true);
    let new_line = tool("z", "b", "B, and more");
    commit(store, &t, change("z", Some(1), vec![same_line.clone(), new_line])).await;
    assert_eq!(pool(store, &t).await, ["a@1", "c@2", "b@3"]);
    assert_eq!(catalog(store, &t).await.tools[0].record, same_line);
    let mut renamed = tool("a", "c", "C");
    renamed.model_name = "renamed".to_owned();
    commit(store, &t, change("a", Some(2), vec![renamed, tool("a", "d", "D")])).await;
    assert_eq!(pool(store, &t).await, ["a@1", "b@3", "c@4", "d@4"]);
    let removed = catalog(store, &t).await.removed;
    assert_eq!((removed[0].model_name.as_str(), removed[0].revision), ("mcp__a__c", 4));
    assert_eq!(removed.len(), 1);
}

pub(crate) async fn a_name_taken_again_is_no_removal(store: &dyn Store) {
    let t = tenant("acme");
    let one = || change("s", None, vec![tool("s", "a", "A"), tool("s", "b", "B")]);
    commit(store, &t, one()).await;
    commit(store, &t, removal("s", 1, &["a", "b"])).await;
    assert_eq!(catalog(store, &t).await.removed.len(), 2);
    // The name is taken by another tool of another server, with an identical line.
    let mut heir = tool("heir", "x", "A");
    heir.model_name = "mcp__s__a".to_owned();
    commit(store, &t, change("heir", None, vec![heir])).await;
    assert_eq!(pool(store, &t).await, ["x@3"]);
    let removed = catalog(store, &t).await.removed;
    assert_eq!(removed.len(), 1);
    assert_eq!((removed[0].model_name.as_str(), removed[0].revision), ("mcp__s__b", 2));
    store.remove_server(&t, &server_name("heir"), 3).await.expect("a removal");
    let removed = catalog(store, &t).await.removed;
    let names: Vec<_> = removed.iter().map(|r| (r.model_name.as_str(), r.revision)).collect();
    assert_eq!(names, [("mcp__s__b", 2), ("mcp__s__a", 4)]);
}

pub(crate) async fn scopes_begin_deltas_anew(store: &dyn Store) {
    let t = tenant("acme");
    let scoped = |name: &str| {
        let mut tool = tool("s", name, "S");
        tool.required_scopes = vec!["admin".to_owned()];
        tool
    };
    let open = |name: &str| tool("s", name, "S");
    let floor = async || {
        let catalog = catalog(store, &t).await;
        (catalog.pool_floor, catalog.removed.len())
    };
    let first = vec![open("a"), open("b"), open("d"), scoped("c")];
    commit(store, &t, change("s", None, first)).await;
    commit(store, &t, removal("s", 1, &["a"])).await;
    assert_eq!(floor().await, (0, 1), "what everybody saw is told by name");
    // The name is taken again for some callers only. The others still need to know that the old line is gone.
    commit(store, &t, change("s", Some(2), vec![scoped("a")])).await;
    assert_eq!(floor().await, (0, 1));
    commit(store, &t, removal("s", 3, &["c"])).await;
    assert_eq!(floor().await, (4, 0), "a tool that not everybody saw is removed");
    commit(store, &t, change("s", Some(4), vec![scoped("b")])).await;
    assert_eq!(floor().await, (5, 0), "a tool is hidden from some");
    commit(store, &t, change("s", Some(5), vec![open("b")])).await;
    assert_eq!(floor().await, (6, 0), "a tool is shown to more");
    let mut all = change("s", Some(6), Vec::new());
    all.server.required_scopes = vec!["staff".to_owned()];
    commit(store, &t, all).await;
    assert_eq!(floor().await, (7, 0), "all tools of a server are hidden from some");
    store.remove_server(&t, &server_name("s"), 7).await.expect("a removal");
    assert_eq!(floor().await, (8, 0), "and removed");
}

pub(crate) async fn removed_names_are_pruned_by_whole_revisions(store: &dyn Store) {
    let t = tenant("acme");
    let many = |server: &str, n: usize| -> Vec<_> {
        (0..n).map(|i| tool(server, &format!("t{i}"), "S")).collect()
    };
    let add_and_remove = async |server: &str, n: usize| {
        let base = commit(store, &t, change(server, None, many(server, n))).await;
        let removed = store.remove_server(&t, &server_name(server), base).await;
        removed.expect("a removal").revision
    };
    let floor_and_count = async || {
        let catalog = catalog(store, &t).await;
        assert!(catalog.removed.iter().all(|r| r.revision > catalog.pool_floor));
        (catalog.pool_floor, catalog.removed.len())
    };
    let first = add_and_remove("a", 1_800).await;
    assert_eq!(floor_and_count().await, (0, 1_800));
    add_and_remove("b", 1_200).await;
    assert_eq!(floor_and_count().await, (0, 3_000));
    add_and_remove("c", 1).await;
    assert_eq!(floor_and_count().await, (first, 1_201));
    let whole = add_and_remove("d", 3_001).await;
    assert_eq!(floor_and_count().await, (whole, 0));
}
