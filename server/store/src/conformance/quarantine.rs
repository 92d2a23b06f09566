//! Tests that quarantined tools are kept, listed and counted, but are no part of the summary pool.

use super::*;

fn quarantined(server: &str, name: &str, summary: &str) -> ToolRecord {
    ToolRecord { status: ToolStatus::Quarantined, ..tool(server, name, summary) }
}

fn approved(server: &str, name: &str, summary: &str) -> ToolRecord {
    ToolRecord { status: ToolStatus::Approved, ..tool(server, name, summary) }
}

/// Returns the names of the shown tools, of the quarantined ones, and of the removed ones.
async fn parts(store: &dyn Store, t: &TenantId) -> [Vec<String>; 3] {
    let catalog = catalog(store, t).await;
    let line = |tool: &crate::StoredTool| {
        format!("{}@{}", tool.record.name.as_str(), tool.summary_revision)
    };
    let name = |tool: &crate::StoredTool| tool.record.name.as_str().to_owned();
    [
        catalog.tools.iter().map(line).collect(),
        catalog.quarantined.iter().map(name).collect(),
        catalog.removed.iter().map(|gone| gone.model_name.clone()).collect(),
    ]
}

pub(crate) async fn a_quarantined_tool_is_read_back_apart(store: &dyn Store) {
    let t = tenant("acme");
    let tools = vec![
        quarantined("s", "z", "Z"),
        tool("s", "a", "A"),
        quarantined("s", "b", "B"),
        approved("s", "c", "C"),
    ];
    commit(store, &t, change("s", None, tools.clone())).await;
    let read = catalog(store, &t).await;
    let records: Vec<_> = read.quarantined.iter().map(|stored| stored.record.clone()).collect();
    assert_eq!(records, [tools[2].clone(), tools[0].clone()]);
    let records: Vec<_> = read.tools.iter().map(|stored| stored.record.clone()).collect();
    assert_eq!(records, [tools[1].clone(), tools[3].clone()]);
    let (server, listed) =
        store.read_server(&t, &server_name("s")).await.expect("a read").expect("the server");
    assert_eq!((server.tool_count, listed.len()), (4, 4), "who keeps the catalog sees all");
    let page = store.list_tools(&t, None, None, 9).await.expect("a page");
    assert_eq!(page, listed);
    let taken = ToolRecord { model_name: "mcp__s__b".to_owned(), ..tool("o", "b", "B") };
    let refused = refusal(store, &t, change("o", None, vec![taken])).await;
    assert!(matches!(refused, StoreError::NameTaken(_)), "its name is taken");
    let full = ServerChange { max_tools: 4, ..change("o", None, vec![tool("o", "x", "X")]) };
    assert!(matches!(refusal(store, &t, full).await, StoreError::TooManyTools { actual: 5 }));
}

pub(crate) async fn quarantine_is_told_as_a_removal(store: &dyn Store) {
    let t = tenant("acme");
    let none: [&str; 0] = [];
    commit(store, &t, change("s", None, vec![tool("s", "a", "A"), tool("s", "b", "B")])).await;
    commit(store, &t, change("s", Some(1), vec![quarantined("s", "a", "A")])).await;
    let [pool, aside, removed] = parts(store, &t).await;
    assert_eq!((pool, aside, removed), texts(&["b@1"], &["a"], &["mcp__s__a"]));
    commit(store, &t, change("s", Some(2), vec![quarantined("s", "a", "A2")])).await;
    let [pool, aside, removed] = parts(store, &t).await;
    assert_eq!((pool, aside, removed), texts(&["b@1"], &["a"], &["mcp__s__a"]), "still gone");
    commit(store, &t, change("s", Some(3), vec![approved("s", "a", "A2")])).await;
    let [pool, aside, removed] = parts(store, &t).await;
    assert_eq!((pool, aside, removed), texts(&["b@1", "a@4"], &none, &none), "the line is new");
    commit(store, &t, change("s", Some(4), vec![tool("s", "a", "A2")])).await;
    let [pool, ..] = parts(store, &t).await;
    assert_eq!(pool, ["b@1", "a@4"], "approved or active is the same line");
    commit(store, &t, change("s", Some(5), vec![quarantined("s", "c", "C")])).await;
    commit(store, &t, removal("s", 6, &["c"])).await;
    let [.., removed] = parts(store, &t).await;
    assert_eq!(removed, none, "nobody was ever told of it");
    assert_eq!(catalog(store, &t).await.pool_floor, 0);
}

pub(crate) async fn quarantine_of_a_scoped_tool_begins_deltas_anew(store: &dyn Store) {
    let t = tenant("acme");
    let scoped = |tool: ToolRecord| ToolRecord { required_scopes: vec!["admin".into()], ..tool };
    commit(store, &t, change("s", None, vec![scoped(tool("s", "a", "A"))])).await;
    commit(store, &t, change("s", Some(1), vec![scoped(quarantined("s", "a", "A"))])).await;
    let read = catalog(store, &t).await;
    assert_eq!((read.pool_floor, read.removed.len()), (2, 0), "not everybody saw it");
    commit(store, &t, change("s", Some(2), vec![scoped(quarantined("s", "a", "A3"))])).await;
    assert_eq!(catalog(store, &t).await.pool_floor, 2, "nobody saw anything change");
    store.remove_server(&t, &server_name("s"), 3).await.expect("a removal");
    assert_eq!(catalog(store, &t).await.removed.len(), 0);
}

fn texts(
    pool: &[&str],
    quarantined: &[&str],
    removed: &[&str],
) -> (Vec<String>, Vec<String>, Vec<String>) {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    (owned(pool), owned(quarantined), owned(removed))
}
