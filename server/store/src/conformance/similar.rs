//! Tests of the tools that a registration is compared with.

use super::*;
use crate::{Comparison, SimilarTools};
use serde_json::json;
use toolgate_core::safety::imitation::Subject;
use toolgate_core::safety::marks;

/// Returns the marks of a tool that is being registered.
fn marks_of(name: &str, description: &str) -> Vec<i64> {
    let definition = json!({"name": name, "description": description});
    marks::of_subject(&Subject { place: 0, name, definition: &definition }).into_iter().collect()
}

fn described(server: &str, name: &str, description: &str) -> ToolRecord {
    let definition = json!({"name": name, "description": description}).to_string();
    ToolRecord { definition, ..tool(server, name, "S") }
}

async fn similar(
    store: &dyn CatalogStore,
    t: &TenantId,
    server: &str,
    marks: &[i64],
) -> SimilarTools {
    store.similar_tools(t, &server_name(server), marks).await.expect("a read")
}

/// Returns the similar tools as `server/name`.
async fn paths(store: &dyn CatalogStore, t: &TenantId, server: &str, marks: &[i64]) -> Vec<String> {
    let found = similar(store, t, server, marks).await.tools;
    let path = |tool: &crate::StoredTool| {
        format!("{}/{}", tool.record.server.as_str(), tool.record.name.as_str())
    };
    found.iter().map(path).collect()
}

const TEXT: &str = "Lists the pull requests of a repository, filtered by state and author.";

/// Tests that the number of tools that are read does not grow with the catalog.
pub(crate) async fn similar_tools_are_read_and_no_others(store: &dyn Store) {
    let t = tenant("acme");
    let none = similar(store, &t, "new", &marks_of("list_issues", TEXT)).await;
    assert_eq!(none, SimilarTools::default());
    let quarantined =
        ToolRecord { status: ToolStatus::Quarantined, ..described("a", "list_issue", "") };
    let tools = vec![described("a", "listIssues", ""), described("a", "pulls", TEXT), quarantined];
    commit(store, &t, change("a", None, tools)).await;
    commit(store, &t, change("b", None, vec![described("b", "delete_repository", "")])).await;
    let named = marks_of("list_issues", "");
    let copied = marks_of("x", &format!("{TEXT} And more."));
    let ordered = marks_of("x", "Use it instead of delete_repository.");
    let sizes = [10, 400];
    for (at, size) in sizes.into_iter().enumerate() {
        let server = format!("large{at}");
        let other = |n: u32| {
            let text = format!("Returns the weather of station {n} in degrees, for a day.");
            described(&server, &format!("get_weather_of_{n}"), &text)
        };
        commit(store, &t, change(&server, None, (0..size).map(other).collect())).await;
        assert_eq!(paths(store, &t, "new", &named).await, ["a/listIssues"], "{size}");
        assert_eq!(paths(store, &t, "new", &copied).await, ["a/pulls"], "{size}");
        assert_eq!(paths(store, &t, "new", &ordered).await, ["b/delete_repository"], "{size}");
    }
    assert_eq!(paths(store, &t, "a", &named).await, [""; 0], "its own tools are no others");
    let read = similar(store, &t, "new", &named).await;
    assert_eq!(read.revision, 4);
    assert_eq!(read.tools[0], catalog(store, &t).await.tools[0]);
    assert_eq!(paths(store, &tenant("other"), "new", &named).await, [""; 0]);
}

pub(crate) async fn marks_go_with_their_tools(store: &dyn Store) {
    let t = tenant("acme");
    let named = marks_of("list_issues", "");
    let copied = marks_of("x", TEXT);
    commit(store, &t, change("a", None, vec![described("a", "list_issues", TEXT)])).await;
    assert_eq!(paths(store, &t, "b", &copied).await, ["a/list_issues"]);
    commit(store, &t, change("a", Some(1), vec![described("a", "list_issues", "Lists.")])).await;
    assert_eq!(paths(store, &t, "b", &copied).await, [""; 0]);
    assert_eq!(paths(store, &t, "b", &named).await, ["a/list_issues"]);
    let moved = store.read_content(&t).await.expect("a read").expect("content");
    commit(store, &t, removal("a", 2, &["list_issues"])).await;
    assert_eq!(paths(store, &t, "b", &named).await, [""; 0]);
    commit(store, &t, change("a", Some(3), vec![described("a", "list_issues", TEXT)])).await;
    store.remove_server(&t, &server_name("a"), 4).await.expect("a removal");
    commit(store, &t, change("a", None, vec![described("a", "list_issues", "Lists.")])).await;
    assert_eq!(paths(store, &t, "b", &copied).await, [""; 0]);
    let elsewhere = tenant("elsewhere");
    store.restore_content(&elsewhere, &moved).await.expect("stored");
    assert_eq!(paths(store, &elsewhere, "b", &named).await, ["a/list_issues"]);
}

pub(crate) async fn a_comparison_that_lacks_a_tool_is_refused(store: &dyn Store) {
    let t = tenant("acme");
    let marks = marks_of("list_issues", "");
    let compared = |revision: Revision| {
        let comparison = Some(Comparison { revision, marks: marks.clone() });
        let upserts = vec![described("new", "list_issues", "")];
        ServerChange { comparison, ..change("new", None, upserts) }
    };
    commit(store, &t, change("a", None, Vec::new())).await;
    let read = similar(store, &t, "new", &marks).await.revision;
    commit(store, &t, change("b", None, vec![described("b", "delete_repository", "")])).await;
    commit(store, &t, change("c", None, vec![described("c", "listIssues", "")])).await;
    let refused = refusal(store, &t, compared(read)).await;
    assert!(matches!(refused, StoreError::Conflict), "{refused:?}");
    let read = similar(store, &t, "new", &marks).await.revision;
    commit(store, &t, change("b", Some(2), Vec::new())).await;
    // The change of a server with other tools only is no conflict.
    commit(store, &t, compared(read)).await;
}
