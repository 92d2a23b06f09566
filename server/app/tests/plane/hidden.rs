//! Tests that a tool whose scope the caller lacks does not exist for that caller. No answer differs from that for a
//! name which was never registered.

use toolgate_core::state::AgentState;
use toolgate_routing::gate::verdict::{RefusalCode, Refused};
use toolgate_routing::router::query::{Listing, Options, RouteQuery};

use crate::support::{World, ask, call, granted, model_names, options, server, shown, tool};

/// Creates a world in which `secret` needs a scope of its own, `vault/key` needs one of its server, and `absent` was
/// never registered.
async fn world() -> World {
    let world = World::new().await;
    let tools = vec![
        tool("open", "refund invoice"),
        tool("secret", "refund invoice").scope("admin"),
        tool("locked", "refund invoice").after("approved"),
    ];
    world.register("acme", server("s", tools)).await;
    let mut vault = server("vault", vec![tool("key", "refund invoice")]);
    vault.server.required_scopes = vec!["vault:read".to_owned()];
    world.register("acme", vault).await;
    world
}

fn nobody() -> AgentState {
    AgentState::default()
}

#[tokio::test]
async fn route_never_shows_it_and_never_says_that_it_is_there() {
    let world = world().await;
    let explain = Options { explain: true, threshold: -1.0, ..options() };
    for text in ["refund invoice", "use mcp__s__secret and mcp__vault__key now, or secret"] {
        let query = RouteQuery { options: explain.clone(), ..ask(text) };
        let answer = world.route("acme", query).await;
        assert_eq!(shown(&answer), ["open"]);
        let refused = answer.refusals.iter().filter_map(|refusal| refusal.slot);
        let refused: Vec<_> = refused.map(|slot| &*answer.snapshot.tool(slot).model_name).collect();
        assert_eq!(refused, ["mcp__s__locked"]);
    }
    let state = granted(&["admin", "vault:read"]);
    let seen = world.route("acme", RouteQuery { state, ..ask("refund invoice") }).await;
    let mut names = shown(&seen);
    names.sort();
    assert_eq!(names, ["key", "open", "secret"]);
}

#[tokio::test]
async fn pinning_it_is_pinning_nothing() {
    let world = world().await;
    let pin = |name: &str| {
        let pinned = vec![name.to_owned()];
        RouteQuery { options: Options { pinned, explain: true, ..options() }, ..ask("refund") }
    };
    let absent = world.route("acme", pin("mcp__s__absent")).await;
    for hidden in ["mcp__s__secret", "mcp__vault__key"] {
        let answer = world.route("acme", pin(hidden)).await;
        assert_eq!(shown(&answer), shown(&absent));
        let mut refusals = answer.refusals;
        assert_eq!(refusals.len(), absent.refusals.len());
        for refusal in &mut refusals {
            if refusal.asked_for == hidden {
                refusal.asked_for = "mcp__s__absent".to_owned();
            }
        }
        assert_eq!(refusals, absent.refusals);
    }
    let of_locked = world.route("acme", pin("mcp__s__locked")).await;
    assert!(of_locked.refusals.iter().any(|r| r.code == RefusalCode::PreconditionUnmet));
}

#[tokio::test]
async fn gate_refuses_it_as_unknown() {
    let world = world().await;
    let answer = world.route("acme", ask("refund invoice")).await;
    let refusal = |name: &'static str| {
        let world = &world;
        let handle = &answer.handle;
        async move {
            let refused = world.gate_one("acme", handle, call(name), nobody()).await.unwrap_err();
            Refused { message: refused.message.replace(name, "NAME"), ..refused }
        }
    };
    let absent = refusal("mcp__s__absent").await;
    assert_eq!(absent.code, RefusalCode::UnknownTool);
    for hidden in ["mcp__s__secret", "mcp__vault__key", "secret", "key"] {
        assert_eq!(refusal(hidden).await, absent, "{hidden}");
    }
    // The handle of a caller who saw the tool: its holder knows that the tool exists, and is told what is missing.
    let state = granted(&["admin"]);
    let seen = world.route("acme", RouteQuery { state, ..ask("refund invoice") }).await;
    let verdict = world.gate_one("acme", &seen.handle, call("mcp__s__secret"), nobody()).await;
    let refused = verdict.unwrap_err();
    assert_eq!(refused.code, RefusalCode::ScopeMissing);
    assert_eq!(refused.unlock, ["scope \"admin\""]);
    assert!(!refused.available.contains(&"mcp__s__secret".to_owned()));
}

#[tokio::test]
async fn fetching_it_by_name_finds_nothing() {
    let world = world().await;
    let fetch = |name: &'static str| {
        let world = &world;
        async move {
            let mut found = world.schemas("acme", &[name], &nobody(), "").await.unwrap();
            assert!(found.tools.is_empty());
            let mut refusal = found.refusals.remove(0);
            assert_eq!(refusal.asked_for, name);
            refusal.asked_for = String::new();
            refusal
        }
    };
    let absent = fetch("mcp__s__absent").await;
    assert_eq!((absent.code, absent.slot), (RefusalCode::UnknownTool, None));
    for hidden in ["mcp__s__secret", "s/secret", "mcp__vault__key", "vault/key"] {
        assert_eq!(fetch(hidden).await, absent, "{hidden}");
    }
    let seen = world.schemas("acme", &["s/secret"], &granted(&["admin"]), "").await.unwrap();
    assert_eq!(seen.tools.len(), 1);
}

#[tokio::test]
async fn pool_and_accounting_leave_it_out() {
    let world = world().await;
    let (snapshot, pool) = world.pool("acme", &nobody(), None).await;
    let names: Vec<_> = pool.added.iter().map(|slot| &*snapshot.tool(*slot).model_name).collect();
    assert_eq!(names, ["mcp__s__locked", "mcp__s__open"], "a locked tool may be known of");
    let all = granted(&["admin", "vault:read"]);
    let (_, whole) = world.pool("acme", &all, None).await;
    assert_eq!(whole.added.len(), 4);
    assert!(whole.pool_tokens > pool.pool_tokens);
    let listing = Some(Listing::Summaries);
    let mine = world.route("acme", RouteQuery { listing, ..ask("refund") }).await.account;
    let theirs = RouteQuery { state: all, listing, ..ask("refund") };
    let theirs = world.route("acme", theirs).await.account;
    assert!(mine.full_catalog < theirs.full_catalog && mine.phase1 < theirs.phase1);
}

#[tokio::test]
async fn its_removal_is_not_announced() {
    let world = world().await;
    let (before, _) = world.pool("acme", &nobody(), None).await;
    let left =
        vec![tool("open", "refund invoice"), tool("locked", "refund invoice").after("approved")];
    world.register("acme", server("s", left)).await;
    world.unregister("acme", "vault").await.unwrap();
    let (_, delta) = world.pool("acme", &nobody(), Some(before.revision)).await;
    assert_eq!(delta.removed, Vec::<String>::new(), "names of tools that this caller never saw");
    let query = RouteQuery { known_pool_revision: Some(before.revision), ..ask("refund") };
    let routed = world.route("acme", query).await;
    assert!(routed.pool.is_none_or(|delta| delta.removed.is_empty()));
    assert_eq!(model_names(&world.route("acme", ask("refund invoice")).await), ["mcp__s__open"]);
}
