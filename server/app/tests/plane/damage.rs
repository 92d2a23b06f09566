//! Tests of rows that a bad disk changed. Derived data is rebuilt, and data that must be trusted is not served.

use toolgate_app::plane::listing::ToolPage;
use toolgate_core::error::Error;
use toolgate_core::identity::ServerName;
use toolgate_core::state::AgentState;
use toolgate_routing::catalog::approval::{Approval, NotApproved};
use toolgate_routing::gate::handle::Holder;
use toolgate_routing::gate::{Evidence, GateQuery};
use toolgate_store::ToolCursor;

use crate::support::{Setup, World, ask, call, granted, model_names, server, shown, tenant, tool};

async fn world() -> World {
    let world = World::new().await;
    let tools = vec![
        tool("alpha", "refund invoice"),
        tool("beta", "refund order"),
        tool("gamma", "refund card"),
    ];
    world.register("acme", server("s", tools)).await;
    world
}

/// Returns the MCP names of the tools that are listed in pages of `size`.
async fn listed(world: &World, size: u32, agent: Option<AgentState>) -> Vec<String> {
    let mut page = ToolPage { server: None, after: None, size };
    let mut names = Vec::new();
    loop {
        let listed = world.plane.list_tools(&tenant("acme"), page.clone(), agent.clone()).await;
        let rows = listed.expect("a page");
        names.extend(rows.iter().map(|row| row.record.name.as_str().to_owned()));
        let Some(last) = rows.last().filter(|_| rows.len() == size as usize) else { return names };
        let server = last.record.server.as_str();
        let name = last.record.name.as_str();
        page.after = Some(ToolCursor { server: server.to_owned(), name: name.to_owned() });
    }
}

#[tokio::test]
async fn damaged_vectors_are_made_anew() {
    let one = "WHERE text_hash = (SELECT min(text_hash) FROM embeddings)";
    for (sql, what) in [
        ("UPDATE embeddings SET vector = CAST(x'0000c07f' || substr(vector, 5) AS BLOB)", "NaN"),
        (
            "UPDATE embeddings SET vector = CAST(x'0000807f' || substr(vector, 5) AS BLOB)",
            "infinity",
        ),
        (
            "UPDATE embeddings SET vector = CAST(x'00000041' || substr(vector, 5) AS BLOB)",
            "too long",
        ),
        ("UPDATE embeddings SET vector = x'00'", "no vector"),
        ("UPDATE embeddings SET vector = x'0000803f'", "another length"),
    ] {
        let world = world().await;
        world.encoder.take_count();
        let sql: &'static str = format!("{sql} {one}").leak();
        world.damage(sql).await;
        let restarted = world.restarted(Setup::default()).await;
        let answer = restarted.route("acme", ask("refund")).await;
        assert_eq!(shown(&answer).len(), 3, "{what}");
        assert!(answer.snapshot.vectors().is_some(), "{what}");
        // Two texts are embedded: the intent and one summary.
        assert_eq!(restarted.encoder.take_count(), 2, "{what}");
        let again = world.restarted(Setup::default()).await;
        assert_eq!(shown(&again.route("acme", ask("refund")).await).len(), 3, "{what}");
        assert_eq!(again.encoder.take_count(), 1, "{what}: it was stored");
    }
}

#[tokio::test]
async fn a_damaged_policy_is_told_and_lets_nothing_pass() {
    let world = world().await;
    world
        .set_policy("acme", "rules: [{name: r, match: {tools: [beta]}, denied: true}]", "")
        .await
        .unwrap();
    let handle = world.route("acme", ask("refund")).await.handle;
    world.damage("UPDATE policies SET document = replace(document, 'rules', 'rulfs')").await;
    let restarted = world.restarted(Setup::default()).await;
    let told = restarted.try_route("acme", ask("refund")).await.expect_err("no answer");
    assert!(matches!(told, Error::StoreDamaged(_)), "{told:?}");
    assert!(told.to_string().contains("damaged"), "{told}");
    let t = tenant("acme");
    let calls = vec![call("mcp__s__alpha")];
    let evidence = Evidence::Handle(handle);
    let query = GateQuery {
        evidence,
        intent_handle: String::new(),
        calls,
        state: AgentState::default(),
        min_revision: 0,
    };
    let holder = Holder { tenant: &t, principal: "" };
    let told = restarted.plane.gate.judge(holder, query, None).await.err().expect("no verdict");
    assert!(matches!(told, Error::StoreDamaged(_)), "{told:?}");
    restarted.set_policy("acme", "rules: []", "").await.expect("setting it again mends it");
    assert_eq!(shown(&restarted.route("acme", ask("refund")).await).len(), 3);
}

#[tokio::test]
async fn a_damaged_definition_is_neither_listed_nor_approved() {
    let world = world().await;
    let page = ToolPage { server: None, after: None, size: 9 };
    let rows = world.plane.list_tools(&tenant("acme"), page, None).await.expect("a page");
    assert_eq!(shown(&world.route("acme", ask("refund")).await).len(), 3, "the shard is loaded");
    world
        .damage(
            "UPDATE tools SET definition = replace(definition, 'refund', 'refund all')
             WHERE name <> 'gamma'",
        )
        .await;
    for size in 1..=3 {
        assert_eq!(listed(&world, size, None).await, ["gamma"], "pages of {size}");
        // The loaded shard is still intact.
        assert_eq!(listed(&world, size, Some(granted(&[]))).await, ["gamma"], "pages of {size}");
    }
    world.damage("UPDATE tools SET status = 'quarantined' WHERE name <> 'beta'").await;
    let approvals = rows.iter().map(|row| Approval {
        name: row.record.name.as_str().to_owned(),
        hash: Some(row.record.hash),
    });
    let approvals: Vec<_> = approvals.collect();
    let name = ServerName::parse("s").expect("a name");
    let done = world.plane.approve(&tenant("acme"), &name, &approvals).await.expect("an answer");
    assert_eq!(done.approved, ["gamma"]);
    let changed = |name: &str| (name.to_owned(), NotApproved::Changed);
    assert_eq!(done.refused, [changed("alpha"), changed("beta")]);
    let routed = world.restarted(Setup::default()).await.route("acme", ask("refund")).await;
    assert_eq!(model_names(&routed), ["mcp__s__gamma"]);
}
