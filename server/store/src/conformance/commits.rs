//! Tests of the effect of a commit, and of the commits that are refused.

use super::*;
use toolgate_core::precondition::Precondition;

pub(crate) async fn an_unknown_tenant_has_nothing(store: &dyn Store) {
    let t = tenant("nobody");
    assert_eq!(store.revision(&t).await.expect("a read"), None);
    assert!(store.load_catalog(&t).await.expect("a read").is_none());
    assert!(store.read_server(&t, &server_name("git")).await.expect("a read").is_none());
    assert_eq!(store.list_servers(&t, None, 10).await.expect("a read"), []);
    assert_eq!(store.list_tools(&t, None, None, 10).await.expect("a read"), []);
    assert_eq!(store.find_request(&t, "r").await.expect("a read"), None);
    assert!(store.load_embeddings(&t, ENCODER).await.expect("a read").is_empty());
    let removed = store.remove_server(&t, &server_name("git"), 1).await;
    assert!(matches!(removed, Err(StoreError::Conflict)), "{removed:?}");
    store.ping().await.expect("a store that answers");
}

pub(crate) async fn a_commit_is_read_back_whole(store: &dyn Store) {
    let t = tenant("acme");
    let mut first = tool("git", "status", "Shows the state");
    first.precondition = Some(Precondition::Not(Box::new(Precondition::Any(vec![
        Precondition::IsAuthenticated("git:\"read\"".to_owned()),
        Precondition::MilestoneReached("plan".to_owned()),
    ]))));
    first.required_scopes = vec!["git:read".to_owned(), "b".to_owned()];
    (first.always_load, first.schema_tokens, first.summary_tokens) = (true, u32::MAX, 0);
    let mut second = tool("git", "push", "Sends commits");
    (second.critical, second.hash) = (true, [255; 32]);
    let mut wanted = change("git", None, vec![first.clone(), second.clone()]);
    wanted.server.precondition = Some(Precondition::HasPriorToolOutput("login".to_owned()));
    wanted.server.required_scopes = vec!["git".to_owned()];
    wanted.server.transport_hint = TransportHint::BuiltIn;
    wanted.server.trust_tier = TrustTier::Trusted;

    let committed = store.commit(&t, wanted.clone()).await.expect("a commit");
    assert_eq!(committed.revision, 1);
    let read = store.read_server(&t, &wanted.server.name).await.expect("a read");
    let (server, tools) = read.expect("the MCP server");
    assert_eq!(server.record, wanted.server);
    assert_eq!((server.revision, server.updated_ms), (1, committed.updated_ms));
    assert_eq!(server.tool_count, 2);
    let records: Vec<_> = tools.iter().map(|tool| tool.record.clone()).collect();
    assert_eq!(records, [second, first]);
    assert!(tools.iter().all(|tool| tool.summary_revision == 1));
    let catalog = catalog(store, &t).await;
    assert_eq!((catalog.revision, catalog.pool_floor, catalog.removed.len()), (1, 0, 0));
    assert_eq!((catalog.servers, catalog.tools), (vec![server], tools));
    assert_eq!(store.revision(&t).await.expect("a read"), Some(1));
}

pub(crate) async fn a_stale_base_is_refused(store: &dyn Store) {
    let t = tenant("acme");
    let git = server_name("git");
    let early = refusal(store, &t, change("git", Some(1), Vec::new())).await;
    assert!(matches!(early, StoreError::Conflict), "{early:?}");
    let first = commit(store, &t, change("git", None, Vec::new())).await;
    commit(store, &t, change("other", None, Vec::new())).await;
    for base in [None, Some(0), Some(2), Some(u64::MAX)] {
        let stale = refusal(store, &t, change("git", base, Vec::new())).await;
        assert!(matches!(stale, StoreError::Conflict), "{base:?}: {stale:?}");
    }
    let second = commit(store, &t, change("git", Some(first), Vec::new())).await;
    assert_eq!((first, second), (1, 3));
    let stale = store.remove_server(&t, &git, first).await;
    assert!(matches!(stale, Err(StoreError::Conflict)), "{stale:?}");
    assert_eq!(store.remove_server(&t, &git, second).await.expect("a removal").revision, 4);
}

pub(crate) async fn a_removed_server_is_gone_and_revisions_go_on(store: &dyn Store) {
    let t = tenant("acme");
    let git = server_name("git");
    let tools = || vec![tool("git", "a", "A"), tool("git", "b", "B")];
    commit(store, &t, change("git", None, tools())).await;
    let removed = store.remove_server(&t, &git, 1).await.expect("a removal");
    assert_eq!(removed.revision, 2);
    let empty = catalog(store, &t).await;
    assert_eq!((empty.revision, empty.servers.len(), empty.tools.len()), (2, 0, 0));
    let gone: Vec<_> = empty.removed.iter().map(|r| (r.model_name.as_str(), r.revision)).collect();
    assert_eq!(gone, [("mcp__git__a", 2), ("mcp__git__b", 2)]);
    assert!(store.read_server(&t, &git).await.expect("a read").is_none());
    assert_eq!(commit(store, &t, change("git", None, tools())).await, 3);
    assert_eq!(catalog(store, &t).await.removed, []);
}

pub(crate) async fn a_taken_name_is_refused(store: &dyn Store) {
    let t = tenant("acme");
    commit(store, &t, change("git", None, vec![tool("git", "a", "A")])).await;
    let named = |server: &str, name: &str, model_name: &str| ToolRecord {
        model_name: model_name.to_owned(),
        ..tool(server, name, "A")
    };
    let check = async |base: Option<Revision>, tools: Vec<ToolRecord>, taken: &str| {
        let server = tools[0].server.clone();
        let refused = refusal(store, &t, change(server.as_str(), base, tools)).await;
        assert!(matches!(&refused, StoreError::NameTaken(name) if name == taken), "{refused:?}");
    };
    check(None, vec![named("hub", "x", "mcp__git__a")], "mcp__git__a").await;
    check(Some(1), vec![named("git", "x", "mcp__git__a")], "mcp__git__a").await;
    check(None, vec![named("hub", "x", "same"), named("hub", "y", "same")], "same").await;
    check(None, vec![named("hub", "x", "one"), named("hub", "x", "two")], "two").await;
    let other = tenant("other");
    commit(store, &other, change("hub", None, vec![named("hub", "x", "mcp__git__a")])).await;
}

pub(crate) async fn names_move_within_one_change(store: &dyn Store) {
    let t = tenant("acme");
    let named = |name: &str, model_name: &str| ToolRecord {
        model_name: model_name.to_owned(),
        ..tool("git", name, name)
    };
    commit(store, &t, change("git", None, vec![named("a", "A"), named("b", "B")])).await;
    commit(store, &t, change("git", Some(1), vec![named("a", "B"), named("b", "A")])).await;
    let swapped = catalog(store, &t).await;
    let names: Vec<_> = swapped.tools.iter().map(|t| t.record.model_name.as_str()).collect();
    assert_eq!((names, swapped.removed.len()), (vec!["B", "A"], 0));
    let mut handed_on = removal("git", 2, &["a", "never-there"]);
    handed_on.upserts = vec![named("b", "B"), named("c", "C")];
    commit(store, &t, handed_on).await;
    let gone = catalog(store, &t).await.removed;
    assert_eq!(gone.iter().map(|r| r.model_name.as_str()).collect::<Vec<_>>(), ["A"]);
}

pub(crate) async fn the_stock_is_limited(store: &dyn Store) {
    let t = tenant("acme");
    let limited = |change| ServerChange { max_tools: 3, ..change };
    let tools = |server: &str, n: usize| -> Vec<_> {
        (0..n).map(|i| tool(server, &format!("t{i}"), "T")).collect()
    };
    commit(store, &t, limited(change("a", None, tools("a", 2)))).await;
    let over = refusal(store, &t, limited(change("b", None, tools("b", 2)))).await;
    assert!(matches!(over, StoreError::TooManyTools { actual: 4 }), "{over:?}");
    let few = ServerChange { max_servers: 1, ..limited(change("b", None, Vec::new())) };
    let over = refusal(store, &t, few).await;
    assert!(matches!(over, StoreError::TooManyServers { actual: 2 }), "{over:?}");
    commit(store, &t, limited(change("b", None, tools("b", 1)))).await;
    // Replacing a tool adds none, and removed tools make room.
    commit(store, &t, limited(change("a", Some(1), tools("a", 2)))).await;
    let mut exchange = limited(removal("a", 3, &["t0"]));
    exchange.upserts = vec![tool("a", "t9", "T")];
    commit(store, &t, exchange).await;
    let counts: Vec<_> = catalog(store, &t).await.servers.iter().map(|s| s.tool_count).collect();
    assert_eq!(counts, [2, 1]);
}

pub(crate) async fn a_failed_commit_leaves_nothing(store: &dyn Store) {
    let t = tenant("acme");
    commit(store, &t, change("git", None, vec![tool("git", "a", "A"), tool("git", "b", "B")]))
        .await;
    let before = catalog(store, &t).await;
    let mut bad = change("hub", None, vec![tool("hub", "x", "X"), tool("hub", "y", "Y")]);
    bad.upserts[1].model_name = "mcp__git__a".to_owned();
    bad.embeddings = vec![embedding("X", &[1.0])];
    bad.request = Some(request("r", "body"));
    let refused = refusal(store, &t, bad).await;
    assert!(matches!(refused, StoreError::NameTaken(_)), "{refused:?}");
    let mut worse = removal("git", 1, &["a"]);
    worse.max_tools = 0;
    let refused = refusal(store, &t, worse).await;
    assert!(matches!(refused, StoreError::TooManyTools { actual: 1 }), "{refused:?}");
    let after = catalog(store, &t).await;
    assert_eq!((before.servers, before.tools), (after.servers, after.tools));
    assert_eq!((after.revision, after.removed.len()), (1, 0));
    assert!(store.load_embeddings(&t, ENCODER).await.expect("a read").is_empty());
    assert_eq!(store.find_request(&t, "r").await.expect("a read"), None);
    let stale = refusal(store, &tenant("new"), change("git", Some(7), Vec::new())).await;
    assert!(matches!(stale, StoreError::Conflict), "{stale:?}");
    assert_eq!(store.revision(&tenant("new")).await.expect("a read"), None);
}

pub(crate) async fn many_tools_commit_at_once(store: &dyn Store) {
    let t = tenant("acme");
    let tools: Vec<_> =
        (0..2048).map(|i| tool("big", &format!("t{i:04}"), &format!("S{i}"))).collect();
    let mut wanted = change("big", None, tools.clone());
    wanted.embeddings = (0..2048).map(|i| embedding(&format!("S{i}"), &[0.5; 8])).collect();
    commit(store, &t, wanted).await;
    let (server, read) =
        store.read_server(&t, &server_name("big")).await.expect("a read").expect("it is there");
    assert_eq!(server.tool_count, 2048);
    assert!(read.iter().map(|tool| &tool.record).eq(tools.iter()));
    assert_eq!(store.load_embeddings(&t, ENCODER).await.expect("a read").len(), 2048);
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
    commit(store, &t, removal("big", 1, &names)).await;
    let emptied = catalog(store, &t).await;
    assert_eq!((emptied.servers[0].tool_count, emptied.tools.len()), (0, 0));
    assert_eq!(emptied.removed.len(), 2048);
    assert!(store.load_embeddings(&t, ENCODER).await.expect("a read").is_empty());
}
