//! Tests of the options of a request: pins, exclusions, servers, budgets and detail.

use toolgate_core::error::Error;
use toolgate_core::identity::ServerName;
use toolgate_routing::gate::verdict::RefusalCode;
use toolgate_routing::router::query::{Detail, Options, RouteQuery};
use toolgate_routing::router::ranking::rank::FoundBy;

use crate::support::{ToolText, World, ask, options, server, shown, tool};

async fn two_servers() -> World {
    let world = World::new().await;
    let near = |name: &str| tool(name, "refund invoice");
    let tools = vec![near("a1"), near("a2"), tool("far", "weather photo")];
    world.register("acme", server("a", tools)).await;
    world.register("acme", server("b", vec![near("b1"), near("b2")])).await;
    world
}

fn names(list: &[&str]) -> Vec<String> {
    list.iter().map(|name| (*name).to_owned()).collect()
}

async fn with(world: &World, options: Options) -> toolgate_routing::router::route::Answer {
    world.route("acme", RouteQuery { options, ..ask("refund invoice") }).await
}

#[tokio::test]
async fn pinned_tools_come_whatever_their_overlap() {
    let world = two_servers().await;
    for name in ["mcp__a__far", "a/far"] {
        let answer = with(&world, Options { pinned: names(&[name]), ..options() }).await;
        assert_eq!(shown(&answer)[0], "far", "pinned ones go before ranked ones");
        assert_eq!(answer.active[0].chosen.found_by, FoundBy::Pin);
        assert_eq!(answer.active.len(), 5);
    }
    let unknown = with(&world, Options { pinned: names(&["a/nothing"]), ..options() }).await;
    let [refusal] = &unknown.refusals[..] else { panic!("{:?}", unknown.refusals) };
    assert_eq!((refusal.code, refusal.asked_for.as_str()), (RefusalCode::UnknownTool, "a/nothing"));
}

#[tokio::test]
async fn excluded_tools_never_come() {
    let world = two_servers().await;
    for name in ["mcp__a__a1", "a/a1"] {
        let excluded = Options { excluded: names(&[name]), ..options() };
        let mut left = shown(&with(&world, excluded.clone()).await);
        left.sort();
        assert_eq!(left, ["a2", "b1", "b2"]);
        // A tool that is both pinned and excluded is excluded, and the answer says so.
        let both = Options { pinned: names(&["a/a1"]), ..excluded.clone() };
        let answer = with(&world, both).await;
        assert!(!shown(&answer).contains(&"a1".to_owned()));
        assert_eq!(answer.refusals[0].code, RefusalCode::Excluded);
        // A tool that was kept from an earlier turn is removed if it is excluded now.
        let previous = with(&world, options()).await.handle;
        let query = RouteQuery { previous, options: excluded, ..ask("refund invoice") };
        assert!(!shown(&world.route("acme", query).await).contains(&"a1".to_owned()));
    }
    // An MCP name applies to every tool that has it.
    let by_mcp_name = Options { excluded: names(&["a1"]), ..options() };
    let answer = with(&world, by_mcp_name).await;
    assert!(!shown(&answer).contains(&"a1".to_owned()));
    assert!(answer.refusals.is_empty(), "{:?}", answer.refusals);
}

#[tokio::test]
async fn a_name_to_exclude_that_no_tool_has_is_told() {
    let world = two_servers().await;
    let none = Options { excluded: names(&["a/nothing"]), ..options() };
    let answer = with(&world, none).await;
    assert_eq!(answer.active.len(), 4, "excluding nothing changes nothing");
    let told: Vec<_> =
        answer.refusals.iter().map(|one| (one.code, one.asked_for.as_str())).collect();
    assert_eq!(told, [(RefusalCode::UnknownTool, "a/nothing")]);
}

#[tokio::test]
async fn the_server_filter_holds_and_never_matches_nothing_in_silence() {
    let world = two_servers().await;
    let of = |list: &[&str]| Options {
        servers: list.iter().map(|name| ServerName::parse(name).unwrap()).collect(),
        ..options()
    };
    assert_eq!(shown(&with(&world, of(&["b"])).await), ["b1", "b2"]);
    assert_eq!(with(&world, of(&["a", "b"])).await.active.len(), 4);
    let query = RouteQuery { options: of(&["b", "c"]), ..ask("refund invoice") };
    match world.try_route("acme", query).await {
        Err(Error::ServerNotFound(name)) => assert_eq!(name, "c"),
        other => panic!("{other:?}"),
    }
}

fn long(name: &str, lines: usize) -> ToolText {
    let mut tool = tool(name, "refund invoice");
    let note = "a parameter that takes a while to explain ".repeat(lines);
    tool.definition["inputSchema"]["description"] = note.into();
    tool
}

#[tokio::test]
async fn the_token_budget_is_kept_and_used() {
    let world = World::new().await;
    let tools =
        vec![long("a_long", 40), long("b_short", 1), long("c_long", 30), long("d_short", 2)];
    world.register("acme", server("s", tools)).await;
    let free = with(&world, options()).await;
    assert_eq!(free.active.len(), 4);
    let cost = |name: &str| {
        let place = shown(&free).iter().position(|shown| shown == name).unwrap();
        free.active[place].tokens
    };
    let budget = cost("b_short") + cost("d_short") + cost("a_long") / 2;
    let tight = Options { schema_token_budget: Some(budget), explain: true, ..options() };
    let answer = with(&world, tight).await;
    let mut short = shown(&answer);
    short.sort();
    assert_eq!(short, ["b_short", "d_short"], "what does not fit makes way for what does");
    assert!(answer.account.phase2 <= u64::from(budget));
    let over: Vec<_> =
        answer.refusals.iter().filter(|r| r.code == RefusalCode::OverTokenBudget).collect();
    assert_eq!(over.len(), 2);
    assert!(over[0].message.contains("tokens"));
    // A budget of exactly the sum is enough.
    let all = free.active.iter().map(|tool| tool.tokens).sum();
    let exact = Options { schema_token_budget: Some(all), ..options() };
    assert_eq!(with(&world, exact).await.active.len(), 4);
    let less = Options { schema_token_budget: Some(all - 1), ..options() };
    assert_eq!(with(&world, less).await.active.len(), 3);
}

#[tokio::test]
async fn always_loaded_tools_come_first_and_obey_preconditions() {
    let world = World::new().await;
    let tools = vec![
        tool("near", "refund invoice"),
        tool("always", "weather photo").always(),
        tool("locked", "weather photo").always().after("never"),
    ];
    world.register("acme", server("s", tools)).await;
    let answer = with(&world, options()).await;
    assert_eq!(shown(&answer), ["always", "near"]);
    assert_eq!(answer.active[0].chosen.found_by, FoundBy::AlwaysLoad);
}

#[tokio::test]
async fn detail_changes_what_is_sent_and_counted_but_not_what_is_chosen() {
    let world = two_servers().await;
    let at = |detail| Options { detail, ..options() };
    let schemas = with(&world, at(Detail::Schemas)).await;
    let signatures = with(&world, at(Detail::Signatures)).await;
    let named = with(&world, at(Detail::Names)).await;
    assert_eq!(shown(&schemas), shown(&signatures));
    assert_eq!(shown(&schemas), shown(&named));
    assert!(named.account.phase2 <= signatures.account.phase2);
    assert!(signatures.account.phase2 < schemas.account.phase2);
    let first = &signatures.active[0];
    let name = &signatures.snapshot.tool(first.chosen.slot).model_name;
    let line = first.signature.as_ref().unwrap();
    assert!(line.text.starts_with(&format!("{name}() - ")) && !line.lossy, "{line:?}");
}
