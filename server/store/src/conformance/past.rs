//! Tests of the records of removed tools.

use super::*;
use crate::{PAST_TOOL_KEPT, PAST_TOOLS_KEPT, PastTool, TenantContent};

async fn past(store: &dyn CatalogStore, t: &TenantId, server: &str) -> Vec<PastTool> {
    store.past_tools(t, &server_name(server)).await.expect("a read")
}

fn names(past: &[PastTool]) -> Vec<&str> {
    past.iter().map(|tool| tool.name.as_str()).collect()
}

pub(crate) async fn removed_tools_are_remembered(store: &dyn Store) {
    let t = tenant("acme");
    let with = |status, name| ToolRecord { status, ..tool("s", name, "S") };
    let tools = vec![
        with(ToolStatus::Active, "a"),
        with(ToolStatus::Approved, "b"),
        with(ToolStatus::Quarantined, "c"),
    ];
    let base = commit(store, &t, change("s", None, tools.clone())).await;
    assert_eq!(past(store, &t, "s").await, []);
    let base = commit(store, &t, removal("s", base, &["b", "never"])).await;
    assert_eq!(names(&past(store, &t, "s").await), ["b"]);
    store.remove_server(&t, &server_name("s"), base).await.expect("a removal");
    let kept = past(store, &t, "s").await;
    assert_eq!(kept.len(), tools.len());
    for (kept, tool) in kept.iter().zip(&tools) {
        let is_same = (&kept.name, kept.hash, &kept.search_hint, kept.status)
            == (&tool.name, tool.hash, &tool.search_hint, tool.status);
        assert!(is_same && kept.summary_hash == hash_of("S"), "{kept:?}");
        assert!((store.clock_ms() - kept.removed_ms).abs() < 60_000, "by the store's clock");
    }
    assert_eq!(past(store, &tenant("other"), "s").await, []);
    assert_eq!(past(store, &t, "other").await, []);
    // A tool that is registered again has a row, so its record is dropped.
    let base = commit(store, &t, change("s", None, vec![tools[0].clone()])).await;
    assert_eq!(names(&past(store, &t, "s").await), ["b", "c"]);
    let changed = ToolRecord { hash: [9; 32], ..tools[1].clone() };
    let base = commit(store, &t, change("s", Some(base), vec![changed])).await;
    commit(store, &t, removal("s", base, &["b"])).await;
    assert_eq!(past(store, &t, "s").await[0].hash, [9; 32], "as it was last");
}

fn old(server: &str, name: &str, removed_ms: i64) -> PastTool {
    PastTool {
        server: server_name(server),
        name: tool_name(name),
        hash: [1; 32],
        summary_hash: [2; 32],
        search_hint: String::new(),
        status: ToolStatus::Active,
        removed_ms,
    }
}

/// Returns a tenant's content that holds only records of removed tools.
fn remembered(past_tools: Vec<PastTool>) -> TenantContent {
    let catalog = StoredCatalog { revision: 1, ..StoredCatalog::default() };
    TenantContent { catalog, past_tools, ..TenantContent::default() }
}

pub(crate) async fn removed_tools_are_forgotten_in_time(store: &dyn Store) {
    let t = tenant("acme");
    let kept_ms = i64::try_from(PAST_TOOL_KEPT.as_millis()).expect("some days");
    let now = store.clock_ms();
    let tools = vec![old("s", "long_ago", now - kept_ms - 1), old("s", "lately", now - 60_000)];
    store.restore_content(&t, &remembered(tools)).await.expect("stored");
    assert_eq!(names(&past(store, &t, "s").await), ["lately"]);
    commit(store, &t, change("other", None, Vec::new())).await;
    let left = content(store, &t).await.past_tools;
    assert_eq!(names(&left), ["lately"], "the next change drops the row");
}

pub(crate) async fn removing_many_tools_makes_no_others_forgotten(store: &dyn Store) {
    let t = tenant("acme");
    let now = store.clock_ms();
    let many = (0..PAST_TOOLS_KEPT).map(|n| old("many", &format!("t{n:05}"), now - i64::from(n)));
    let mut tools = vec![old("few", "oldest", now - 1_000_000)];
    tools.extend(many);
    store.restore_content(&t, &remembered(tools)).await.expect("stored");
    let base = commit(store, &t, change("s", None, vec![tool("s", "a", "A")])).await;
    store.remove_server(&t, &server_name("s"), base).await.expect("a removal");
    let left = content(store, &t).await.past_tools;
    assert_eq!(left.len(), PAST_TOOLS_KEPT as usize);
    assert_eq!(names(&past(store, &t, "few").await), ["oldest"]);
    assert_eq!(names(&past(store, &t, "s").await), ["a"]);
    let many = past(store, &t, "many").await;
    assert_eq!(many.last().map(|tool| tool.name.as_str()), Some("t09997"), "its oldest went");
}
