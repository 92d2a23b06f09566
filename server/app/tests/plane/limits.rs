//! Tests of invalid and oversize registrations: they are refused with the right error, and nothing of them is stored.

use std::time::Instant;

use serde_json::json;
use toolgate_config::LimitsConfig;
use toolgate_core::error::Error;
use toolgate_routing::catalog::outcome::OutcomeKind;
use toolgate_routing::catalog::plan::Mode;

use crate::support::{Setup, ToolText, World, ask, server, tenant, tool};

fn tools(range: std::ops::Range<usize>) -> Vec<ToolText> {
    range.map(|i| tool(&format!("t{i}"), &format!("tool number {i}"))).collect()
}

async fn small() -> World {
    let limits = LimitsConfig {
        max_tools_per_tenant: 5,
        max_servers_per_tenant: 3,
        max_tools_per_registration: 8,
        max_schema_bytes: 2_000,
        max_schema_nesting: 12,
        ..LimitsConfig::default()
    };
    World::with(Setup { limits, ..Setup::default() }).await
}

async fn count(world: &World) -> usize {
    world.route("acme", ask("tool")).await.snapshot.tools.len()
}

#[tokio::test]
async fn one_mcp_server_too_many_for_the_tenant_is_refused() {
    let world = small().await;
    for name in ["a", "b", "c"] {
        world.register("acme", server(name, Vec::new())).await;
    }
    let error = world.try_register("acme", server("d", Vec::new())).await.unwrap_err();
    let Error::StockExceeded { limit, maximum, actual } = error else { panic!("{error}") };
    assert_eq!((limit, maximum, actual), ("limits.max_servers_per_tenant", 3, 4));
    world.register("acme", server("a", tools(0..1))).await;
    world.register("other", server("d", Vec::new())).await;
}

#[tokio::test]
async fn nobody_compiles_schemas_for_a_caller_whose_deadline_has_passed() {
    let world = World::new().await;
    let acme = tenant("acme");
    let late = world.plane.register(&acme, server("a", tools(0..3)), Some(Instant::now()));
    assert!(matches!(late.await, Err(Error::DeadlineExceeded)));
    world.register("acme", server("a", tools(0..1))).await;
    assert_eq!(count(&world).await, 1);
}

/// Corresponds to the 100,001st tool, with the limit at 5.
#[tokio::test]
async fn one_tool_too_many_for_the_tenant_is_refused_whole() {
    let world = small().await;
    world.register("acme", server("a", tools(0..3))).await;
    let error = world.try_register("acme", server("b", tools(0..3))).await.unwrap_err();
    match error {
        Error::StockExceeded { limit, maximum, actual } => {
            assert_eq!((limit, maximum, actual), ("limits.max_tools_per_tenant", 5, 6));
        }
        other => panic!("{other}"),
    }
    assert_eq!(count(&world).await, 3);
    world.register("acme", server("b", tools(0..2))).await;
    let mut merge = server("b", tools(2..3));
    merge.mode = Mode::Merge;
    assert!(matches!(world.try_register("acme", merge).await, Err(Error::StockExceeded { .. })));
    // At the limit, replacing tools is fine, and so are another tenant's registrations.
    world.register("acme", server("a", tools(7..10))).await;
    assert_eq!(count(&world).await, 5);
    world.register("other", server("a", tools(0..5))).await;
}

#[tokio::test]
async fn too_many_tools_in_one_body_are_refused() {
    let world = small().await;
    match world.try_register("acme", server("a", tools(0..9))).await.unwrap_err() {
        Error::LimitExceeded { limit, maximum, actual } => {
            assert_eq!((limit, maximum, actual), ("limits.max_tools_per_registration", 8, 9));
        }
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn one_bad_tool_does_not_lose_the_rest_unless_asked() {
    let world = small().await;
    let cyclic = json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}});
    let mut deep = json!({"type": "object"});
    (0..12).for_each(|_| deep = json!({"not": deep.clone()}));
    let remote = json!({"$ref": "https://example.com/schema.json"});
    let bad = [
        tool("cyclic", "x").schema(cyclic),
        tool("deep", "x").schema(deep),
        tool("remote", "x").schema(remote),
        tool("typed", "x").schema(json!({"type": 3})),
        tool("huge", &"x ".repeat(2_000)),
        tool("list", "x").schema(json!([])),
    ];
    let body: Vec<_> = [&bad[..], &[tool("good", "y")]].concat();
    let mut strict = server("s", body.clone());
    strict.all_or_nothing = true;
    match world.try_register("acme", strict).await.unwrap_err() {
        Error::ToolsRejected(violations) => assert_eq!(violations.len(), bad.len()),
        other => panic!("{other}"),
    }
    let registered = world.try_register("acme", server("s", body)).await.unwrap();
    let kinds: Vec<_> = registered.outcomes.iter().map(|outcome| outcome.kind).collect();
    assert_eq!(kinds[..6], [OutcomeKind::Rejected; 6]);
    assert_eq!(kinds[6], OutcomeKind::Accepted);
    for (i, outcome) in registered.outcomes.iter().enumerate().take(6) {
        assert!(outcome.field.starts_with(&format!("tools[{i}]")), "{outcome:?}");
        assert!(!outcome.problem.is_empty());
    }
    assert_eq!(count(&world).await, 1);
}

#[tokio::test]
async fn bodies_that_are_no_list_are_malformed() {
    let world = small().await;
    let bodies: [&[u8]; 7] =
        [b"", b"{", b"\xff\xfe", b"{\"tools\": 3}", b"null", b"{\"result\": {}}", b"[1, 2"];
    for body in bodies {
        let mut registration = server("s", Vec::new());
        registration.body = body.into();
        let error = world.try_register("acme", registration).await.unwrap_err();
        assert!(matches!(error, Error::MalformedCatalog { .. }), "{body:?}: {error}");
    }
    let unknown = world.try_route("acme", ask("x")).await.unwrap_err();
    assert!(matches!(unknown, Error::TenantNotFound(_)), "nothing was registered by any of them");
}

#[tokio::test]
async fn stale_etags_and_reused_request_ids_are_refused() {
    let world = World::new().await;
    let first = world.try_register("acme", server("s", tools(0..1))).await.unwrap();
    let with_etag = |etag: String, range| {
        let mut registration = server("s", tools(range));
        registration.etag = etag;
        registration
    };
    let etag = first.server.etag();
    let second = world.try_register("acme", with_etag(etag.clone(), 0..2)).await.unwrap();
    let stale = world.try_register("acme", with_etag(etag.clone(), 0..3)).await.unwrap_err();
    assert!(matches!(stale, Error::EtagMismatch { actual, .. } if actual == second.server.etag()));

    let with_id = |hash: u8, range| {
        let mut registration = server("t", tools(range));
        registration.request = Some(("once".to_owned(), [hash; 32]));
        registration
    };
    let done = world.try_register("acme", with_id(1, 0..2)).await.unwrap();
    let again = world.try_register("acme", with_id(1, 0..2)).await.unwrap();
    assert!(again.replayed && !done.replayed);
    assert_eq!((again.revision, again.outcomes), (done.revision, done.outcomes));
    let reused = world.try_register("acme", with_id(2, 0..3)).await.unwrap_err();
    assert!(matches!(reused, Error::RequestIdReused(id) if id == "once"));
    assert!(world.try_register("other", with_id(2, 0..3)).await.is_ok(), "ids are a tenant's own");
}
