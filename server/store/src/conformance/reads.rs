//! Tests of pages, of isolation between tenants, and of texts that must be kept unchanged.

use super::*;
use crate::{StoredTool, ToolCursor, ToolRecord};

pub(crate) async fn pages_follow_each_other(store: &dyn Store) {
    let t = tenant("acme");
    // Ordered by bytes: upper case before lower case, `-` before digits, ASCII before the rest.
    for (server, names) in
        [("b", ["Z", "a", "ä"]), ("B", ["1", "-x", "日"]), ("b-1", ["a", "b", "c"])]
    {
        let tools = names.iter().map(|name| tool(server, name, "S")).collect();
        commit(store, &t, change(server, None, tools)).await;
    }
    let whole = all_servers(store, &t, 1).await;
    assert_eq!(whole, ["B", "b", "b-1"]);
    assert_eq!(whole, all_servers(store, &t, 2).await);
    assert_eq!(store.list_servers(&t, Some("b-"), 9).await.expect("a page").len(), 1);

    let one_by_one = all_tools(store, &t, None, 1).await;
    let expected = ["B/-x", "B/1", "B/日", "b/Z", "b/a", "b/ä", "b-1/a", "b-1/b", "b-1/c"];
    assert_eq!(one_by_one, expected);
    for page_size in [2, 4, 9, 50] {
        assert_eq!(all_tools(store, &t, None, page_size).await, expected);
    }
    let of_b = server_name("b");
    assert_eq!(all_tools(store, &t, Some(&of_b), 2).await, expected[3..6]);
    assert_eq!(store.list_tools(&t, None, None, 0).await.expect("a page"), []);
    let elsewhere = ToolCursor { server: "b-1".to_owned(), name: "a".to_owned() };
    let page = store.list_tools(&t, Some(&of_b), Some(&elsewhere), 9).await.expect("a page");
    assert_eq!(page, [], "the cursor stands after every tool of the server");
}

async fn all_servers(store: &dyn CatalogStore, t: &TenantId, page_size: u32) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    loop {
        let after = names.last().map(String::as_str);
        let page = store.list_servers(t, after, page_size).await.expect("a page");
        if page.is_empty() {
            return names;
        }
        names.extend(page.iter().map(|server| server.record.name.as_str().to_owned()));
    }
}

async fn all_tools(
    store: &dyn CatalogStore,
    t: &TenantId,
    server: Option<&ServerName>,
    page_size: u32,
) -> Vec<String> {
    let mut found: Vec<StoredTool> = Vec::new();
    loop {
        let after = found.last().map(|tool| ToolCursor {
            server: tool.record.server.as_str().to_owned(),
            name: tool.record.name.as_str().to_owned(),
        });
        let page = store.list_tools(t, server, after.as_ref(), page_size).await.expect("a page");
        assert!(page.len() <= page_size as usize);
        if page.is_empty() {
            let path =
                |t: &StoredTool| format!("{}/{}", t.record.server.as_str(), t.record.name.as_str());
            return found.iter().map(path).collect();
        }
        found.extend(page);
    }
}

pub(crate) async fn tenants_do_not_meet(store: &dyn Store) {
    let a = tenant("acme");
    let b = tenant("acme-2");
    let mut of_a = change("git", None, vec![tool("git", "status", "from a")]);
    of_a.embeddings = vec![embedding("from a", &[1.0])];
    of_a.request = Some(request("r", "a"));
    let mut of_b = change("git", None, vec![tool("git", "status", "from b")]);
    of_b.embeddings = vec![embedding("from a", &[2.0]), embedding("from b", &[3.0])];
    of_b.request = Some(request("r", "b"));
    commit(store, &a, of_a).await;
    commit(store, &b, of_b).await;
    let git = server_name("git");
    let before = catalog(store, &a).await;
    commit(store, &b, change("git", Some(1), vec![tool("git", "status", "again")])).await;
    store.remove_server(&b, &git, 2).await.expect("a removal");
    let after = catalog(store, &a).await;
    assert_eq!((before.servers, before.tools), (after.servers, after.tools));
    assert_eq!((after.revision, after.removed.len()), (1, 0));
    let kept = store.load_embeddings(&a, ENCODER).await.expect("a read");
    assert_eq!(kept, [(hash_of("from a"), vec![1.0])].into());
    let recorded = store.find_request(&a, "r").await.expect("a read").expect("the request");
    assert_eq!(recorded.answer, b"answer to a");
    assert_eq!(catalog(store, &b).await.revision, 3);
}

const ODD_TEXTS: [&str; 7] = [
    "",
    "\0",
    "a\0b",
    "'; DROP TABLE tools; --",
    "\u{1f9f0}\r\n\t\u{202e}",
    "\"\\\"",
    " \u{feff} ",
];

const ODD_NAMES: [&str; 7] = ["it's", "a\"b\\c", "日本 語", "%_*", "[1]", "\u{1f9f0}", "null"];

/// Returns tools with names and texts that a careless statement would corrupt.
fn odd_tools() -> Vec<ToolRecord> {
    ODD_NAMES
        .iter()
        .zip(ODD_TEXTS)
        .enumerate()
        .map(|(i, (name, text))| {
            let mut tool = tool("s", name, text);
            tool.model_name = format!("{i}{text}");
            (tool.search_hint, tool.definition) = (text.to_owned(), text.to_owned());
            tool.required_scopes = vec![text.to_owned()];
            tool
        })
        .collect()
}

pub(crate) async fn texts_are_kept_byte_for_byte(store: &dyn Store) {
    let t = tenant("acme");
    let tools = odd_tools();
    let mut wanted = change("s", None, tools.clone());
    wanted.server.description = ODD_TEXTS.concat();
    commit(store, &t, wanted.clone()).await;
    // Commit once more: now every name and text passes through the statements that look for stored ones.
    wanted.base = Some(1);
    commit(store, &t, wanted.clone()).await;
    let read = catalog(store, &t).await;
    assert_eq!(read.servers[0].record.description, ODD_TEXTS.concat());
    assert_eq!(read.tools.len(), tools.len());
    for tool in &tools {
        let is_there = |t: &StoredTool| t.record == *tool && t.summary_revision == 1;
        assert!(read.tools.iter().any(is_there), "{tool:?}");
    }
    // Without scopes, so that their removal is listed by name.
    wanted.base = Some(2);
    wanted.upserts.iter_mut().for_each(|tool| tool.required_scopes.clear());
    commit(store, &t, wanted).await;
    commit(store, &t, removal("s", 3, &ODD_NAMES)).await;
    assert_eq!(catalog(store, &t).await.tools, []);
    assert_eq!(catalog(store, &t).await.removed.len(), ODD_NAMES.len());
}
