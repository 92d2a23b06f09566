//! Tests of Gate as models use it: names and arguments in the envelopes that models send, and refusals that say what to
//! do next.

use serde_json::json;
use toolgate_core::state::AgentState;
use toolgate_routing::gate::calls::Call;
use toolgate_routing::gate::handle::Holder;
use toolgate_routing::gate::verdict::{RefusalCode, Refused};
use toolgate_routing::gate::{Evidence, GateQuery};
use toolgate_routing::router::query::{Options, RouteQuery};
use toolgate_routing::router::search::SearchQuery;

use crate::support::{
    Setup, ToolText, World, ask, call, granted, look_for, options, server, tenant, tool,
};

const OPEN: &str = "mcp__git__open_issue";
const CLOSE: &str = "mcp__git__close_issue";

/// Creates a world in which `open_issue` is in the active set, `git/secret` is hidden, and every other tool is
/// deferred.
async fn world() -> (World, String) {
    let world = World::new().await;
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let tools = vec![
        tool("open_issue", "open").schema(schema),
        tool("close_issue", "close"),
        tool("secret_key", "x").scope("admin"),
    ];
    world.register("acme", server("git", tools)).await;
    world.register("acme", server("hub", vec![tool("close_issue", "hub close")])).await;
    let only = Options { top_k: 1, threshold: 0.5, ..options() };
    let turn = world.route("acme", RouteQuery { options: only, ..ask("open issue: open") }).await;
    assert_eq!(turn.active.len(), 1);
    (world, turn.handle)
}

async fn refused(world: &World, handle: &str, name: &str) -> Refused {
    world.gate_one("acme", handle, call(name), AgentState::default()).await.unwrap_err()
}

#[tokio::test]
async fn names_are_taken_as_models_write_them() {
    let (world, handle) = world().await;
    for name in [
        OPEN,
        "open_issue",
        "git/open_issue",
        "git__open_issue",
        "functions.mcp__git__open_issue",
        "default_api:open_issue",
        " `mcp__git__open_issue` ",
        "functions.open_issue<|channel|>commentary",
    ] {
        let verdict = world.gate_one("acme", &handle, call(name), AgentState::default()).await;
        assert_eq!(verdict.as_deref(), Ok(OPEN), "{name}");
    }
}

#[tokio::test]
async fn a_call_with_a_mistake_in_its_form_is_refused_with_it() {
    let (world, handle) = world().await;
    for tool in [OPEN, "unknown"] {
        let mistake = Some("say which tool".to_owned());
        let call = Call { tool: tool.to_owned(), mistake, ..Call::default() };
        let verdict = world.gate_one("acme", &handle, call, AgentState::default()).await;
        let refused = verdict.unwrap_err();
        assert_eq!(refused.code, RefusalCode::ArgumentsInvalid, "{tool}");
        assert_eq!(refused.message, "say which tool");
    }
}

#[tokio::test]
async fn arguments_come_out_of_their_envelope() {
    let (world, handle) = world().await;
    for (sent, expected) in [
        (r#"{"n": 1}"#, None),
        ("", Some("{}")),
        ("null", Some("{}")),
        (r#""{\"n\": 1}""#, Some(r#"{"n": 1}"#)),
    ] {
        let call = Call { tool: OPEN.to_owned(), arguments: sent.to_owned(), ..Call::default() };
        let (_, verdicts) = world.gate("acme", &handle, vec![call], AgentState::default()).await;
        let allowed = verdicts[0].as_ref().expect(sent);
        assert_eq!(allowed.arguments.as_deref(), expected, "{sent}");
    }
    for (sent, pointer) in
        [(r#"{"n": "1"}"#, "/n"), (r#""{\"n\": \"1\"}""#, "/n"), ("[1]", ""), ("{", "")]
    {
        let call = Call { tool: OPEN.to_owned(), arguments: sent.to_owned(), ..Call::default() };
        let verdict = world.gate_one("acme", &handle, call, AgentState::default()).await;
        let refused = verdict.unwrap_err();
        assert_eq!(refused.code, RefusalCode::ArgumentsInvalid, "{sent}");
        assert_eq!(refused.violations[0].pointer, pointer, "{sent}");
        assert!(refused.input_schema.contains("integer"));
    }
}

#[tokio::test]
async fn a_deferred_tool_names_its_search() {
    let (world, handle) = world().await;
    for name in [CLOSE, "git/close_issue", "functions.mcp__git__close_issue"] {
        let refused = refused(&world, &handle, name).await;
        assert_eq!(refused.code, RefusalCode::ToolNotAvailable, "{name}");
        assert_eq!(refused.search, format!("select:{CLOSE}"));
        assert!(refused.message.contains(&refused.search), "{}", refused.message);
        assert_eq!(refused.available, [OPEN]);
    }
    let refused = refused(&world, &handle, "close_issue").await;
    assert_eq!(
        refused.search, "select:close_issue",
        "two servers have it, and the search shows both"
    );
}

#[tokio::test]
async fn an_unknown_name_gets_the_nearest_visible_one() {
    let (world, handle) = world().await;
    let loaded = refused(&world, &handle, "mcp__git__open_isue").await;
    assert_eq!((loaded.nearest.as_str(), loaded.search.as_str()), (OPEN, ""));
    let deferred = refused(&world, &handle, "mcp__git__close_isue").await;
    assert_eq!(deferred.nearest, CLOSE);
    assert_eq!(deferred.search, format!("select:{CLOSE}"));
    let nothing = refused(&world, &handle, "zzzzzzzzzzzz").await;
    assert_eq!((nothing.code, nothing.nearest.as_str()), (RefusalCode::UnknownTool, ""));
}

#[tokio::test]
async fn a_hidden_name_is_neither_found_nor_suggested() {
    let (world, handle) = world().await;
    for (hidden, absent) in [
        ("mcp__git__secret_key", "mcp__git__absent_key"),
        ("mcp__git__secret_kex", "mcp__git__absent_kex"),
        ("secret_key", "absent_key"),
        ("functions.git/secret_key", "functions.git/absent_key"),
    ] {
        let mut one = refused(&world, &handle, hidden).await;
        let other = refused(&world, &handle, absent).await;
        one.message = one.message.replace("secret", "absent");
        assert_eq!(one, other, "{hidden}");
    }
    let state = granted(&["admin"]);
    let verdict = world.gate_one("acme", &handle, call("mcp__git__secret_kex"), state).await;
    assert_eq!(verdict.unwrap_err().nearest, "mcp__git__secret_key");
}

/// Returns a tool whose schema takes longer to compile than others.
fn heavy(name: &str) -> ToolText {
    let patterns: Vec<_> =
        (0..20).map(|i| json!({"pattern": format!("^[a-z]{{9}}{i}$")})).collect();
    tool(name, &format!("does {name}")).schema(json!({"properties": {"a": {"allOf": patterns}}}))
}

#[tokio::test]
async fn what_is_shown_is_compiled_before_it_is_called() {
    let world = World::new().await;
    world.register("acme", server("s", vec![heavy("one"), heavy("two"), heavy("three")])).await;
    let compilations = || world.plane.gate.schema_compilations();
    let only = Options { top_k: 1, threshold: 0.5, ..options() };
    let turn = world.route("acme", RouteQuery { options: only, ..ask("one: does one") }).await;
    world.plane.gate.schemas_are_warm().await;
    assert_eq!(compilations(), 1);
    let state = AgentState::default();
    let verdict = world.gate_one("acme", &turn.handle, call("mcp__s__one"), state.clone()).await;
    assert_eq!(verdict.as_deref(), Ok("mcp__s__one"));
    assert_eq!(compilations(), 1, "Gate compiles nothing");
    let found =
        world.search("acme", SearchQuery { previous: turn.handle, ..look_for("select:two") });
    let handle = found.await.handle;
    world.plane.gate.schemas_are_warm().await;
    let fetched = world.schemas("acme", &["s/three"], &state, &handle).await.expect("it is there");
    world.plane.gate.schemas_are_warm().await;
    assert_eq!(compilations(), 3);
    let calls = ["one", "two", "three"].map(call).to_vec();
    let (_, verdicts) = world.gate("acme", &fetched.handle, calls, state).await;
    assert!(verdicts.iter().all(Result::is_ok), "{verdicts:?}");
    assert_eq!(compilations(), 3);
}

#[tokio::test]
async fn what_was_shown_elsewhere_is_compiled_for_the_call() {
    let world = World::new().await;
    let names: Vec<_> = (0..9).map(|i| format!("t{i}")).collect();
    let tools = names.iter().map(|name| heavy(name)).collect();
    world.register("acme", server("s", tools)).await;
    let asked: Vec<_> = names.iter().map(|name| format!("s/{name}")).collect();
    let asked: Vec<_> = asked.iter().map(String::as_str).collect();
    let state = AgentState::default();
    let shown = world.schemas("acme", &asked, &state, "").await.expect("they are there");
    let replica = world.restarted(Setup::default()).await;
    let calls: Vec<_> = names.iter().map(|name| call(name)).collect();
    let (_, verdicts) = replica.gate("acme", &shown.handle, calls.clone(), state.clone()).await;
    assert!(verdicts.iter().all(Result::is_ok), "{verdicts:?}");
    assert_eq!(replica.plane.gate.schema_compilations(), 9);
    let (_, again) = replica.gate("acme", &shown.handle, calls, state).await;
    assert_eq!(again, verdicts);
    assert_eq!(replica.plane.gate.schema_compilations(), 9);
}

/// Judges a call by tags, as a caller of this principal.
async fn judged_by_tag(
    world: &World,
    principal: &str,
    evidence: Evidence,
    call: Call,
) -> Result<(), RefusalCode> {
    let tenant = tenant("acme");
    let holder = Holder { tenant: &tenant, principal };
    let calls = vec![call];
    let state = AgentState::default();
    let query = GateQuery { evidence, intent_handle: String::new(), calls, state, min_revision: 0 };
    let judged = world.plane.gate.judge(holder, query, None).await.expect("verdicts");
    let verdict = judged.verdicts.into_iter().next().expect("a verdict");
    verdict.map(|_allowed| ()).map_err(|refused| refused.code)
}

async fn tag_of_open(world: &World, principal: &str) -> String {
    let tenant = tenant("acme");
    let holder = Holder { tenant: &tenant, principal };
    let found = world.search("acme", look_for("select:open_issue")).await;
    let slot = found.tools.first().expect("a tool").chosen.slot;
    world.plane.gate.shown_tag(holder, found.snapshot.tool(slot))
}

#[tokio::test]
async fn a_tag_proves_that_the_definition_was_shown() {
    let (world, _) = world().await;
    let tag = tag_of_open(&world, "ann").await;
    assert_eq!(tag.len(), 6);
    let call = |tool: &str, tag: &str| Call { shown_tag: tag.to_owned(), ..call(tool) };
    let judge = |principal, evidence, call| judged_by_tag(&world, principal, evidence, call);
    let changed = Err(RefusalCode::SchemaChanged);
    assert_eq!(judge("ann", Evidence::Tags, call(OPEN, &tag)).await, Ok(()));
    assert_eq!(judge("ann", Evidence::Catalog, call(OPEN, &tag)).await, Ok(()));
    assert_eq!(judge("bob", Evidence::Tags, call(OPEN, &tag)).await, changed);
    assert_eq!(judge("ann", Evidence::Tags, call(CLOSE, &tag)).await, changed);
    assert_eq!(judge("ann", Evidence::Catalog, call(OPEN, "000000")).await, changed);
    let bare = judge("ann", Evidence::Tags, call(OPEN, "")).await;
    assert_eq!(bare, Err(RefusalCode::ToolNotAvailable));
    assert_eq!(judge("ann", Evidence::Catalog, call(OPEN, "")).await, Ok(()));
}

#[tokio::test]
async fn a_tag_is_of_one_definition() {
    let (world, _) = world().await;
    let tag = tag_of_open(&world, "").await;
    world.register("acme", server("git", vec![tool("open_issue", "open another way")])).await;
    let call = Call { shown_tag: tag, ..call(OPEN) };
    let verdict = judged_by_tag(&world, "", Evidence::Tags, call).await;
    assert_eq!(verdict, Err(RefusalCode::SchemaChanged));
}

#[tokio::test]
async fn hidden_tools_are_unknown_without_a_handle_too() {
    let (world, _) = world().await;
    for name in ["mcp__git__secret_key", "mcp__git__secret_kei"] {
        for tag in ["", "000000"] {
            let call = Call { shown_tag: tag.to_owned(), ..call(name) };
            let verdict = judged_by_tag(&world, "", Evidence::Catalog, call).await;
            assert_eq!(verdict, Err(RefusalCode::UnknownTool), "{name} {tag:?}");
        }
    }
}
