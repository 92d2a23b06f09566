//! Tests of the tail of signatures after the chosen tools: its contents, its cost, and calls to its tools.

use serde_json::json;
use toolgate_core::state::AgentState;
use toolgate_routing::gate::verdict::RefusalCode;
use toolgate_routing::router::query::{Detail, Options, RouteQuery};
use toolgate_routing::router::route::Answer;
use toolgate_routing::router::search::SearchQuery;

use crate::support::{ToolText, World, ask, call, look_for, options, server, shown, tool};

/// Returns a tool whose definition is much longer than its signature.
fn long(name: &str, description: &str) -> ToolText {
    let property =
        |i: usize| (format!("field_{i}"), json!({"type": "string", "description": "x y z"}));
    let properties: serde_json::Map<_, _> = (0..12).map(property).collect();
    tool(name, description).schema(json!({"type": "object", "properties": properties}))
}

/// Creates a world with tools for `refund invoice`, best match first, and one for something else.
async fn world() -> World {
    let world = World::new().await;
    let near = [
        ("a", "refund invoice"),
        ("b", "refund invoice customer"),
        ("c", "refund invoice customer ticket"),
        ("d", "refund invoice customer ticket branch commit"),
    ];
    let mut tools: Vec<_> = near.map(|(name, text)| long(name, text)).into();
    tools.push(tool("other", "photo weather folder"));
    world.register("acme", server("s", tools)).await;
    world
}

fn wide(top_k: usize, tail: usize) -> Options {
    Options { top_k, signature_tail: tail, active_set_limit: Some(20), ..options() }
}

async fn route(world: &World, options: Options, text: &str, previous: &str) -> Answer {
    let previous = previous.to_owned();
    world.route("acme", RouteQuery { options, previous, ..ask(text) }).await
}

/// Returns `name` for a full definition and `name~` for a signature, with `+` before a new one.
fn forms(answer: &Answer) -> Vec<String> {
    let form = |(name, active): (String, &toolgate_routing::router::route::Active)| {
        let new = if active.chosen.newly_promoted { "+" } else { "" };
        format!("{new}{name}{}", if active.signature.is_some() { "~" } else { "" })
    };
    shown(answer).into_iter().zip(&answer.active).map(form).collect()
}

#[tokio::test]
async fn the_next_of_the_ranking_come_as_signatures_and_may_be_called() {
    let world = world().await;
    let answer = route(&world, wide(1, 2), "refund invoice", "").await;
    assert_eq!(forms(&answer), ["+a", "+b~", "+c~"]);
    assert!(answer.active[1].tokens < answer.active[0].tokens / 2, "{:?}", answer.active);
    let tokens: u64 = answer.active.iter().map(|active| u64::from(active.tokens)).sum();
    assert_eq!(answer.account.phase2, tokens);
    let gate = |name: &'static str| {
        world.gate_one("acme", &answer.handle, call(name), AgentState::default())
    };
    assert!(gate("b").await.is_ok());
    assert_eq!(gate("d").await.unwrap_err().code, RefusalCode::ToolNotAvailable);
}

#[tokio::test]
async fn a_signature_keeps_its_place_until_its_tool_is_chosen() {
    let world = world().await;
    let first = route(&world, wide(1, 2), "refund invoice", "").await;
    let second = route(&world, wide(1, 2), "refund invoice", &first.handle).await;
    assert_eq!(forms(&second), ["a", "b~", "c~"], "nothing new");
    let text = "refund invoice customer ticket";
    let third = route(&world, wide(1, 0), text, &second.handle).await;
    assert_eq!(forms(&third), ["a", "b~", "+c"], "the definition comes at the end");
    let verdict = world.gate_one("acme", &third.handle, call("c"), AgentState::default()).await;
    assert!(verdict.is_ok());
}

#[tokio::test]
async fn a_definition_that_is_asked_for_takes_the_place_of_the_signature() {
    let world = world().await;
    let first = route(&world, wide(1, 1), "refund invoice", "").await;
    let next =
        async |handle: &str| forms(&route(&world, wide(1, 0), "refund invoice", handle).await);
    let previous = first.handle.clone();
    let look = SearchQuery { detail: Detail::Signatures, previous, ..look_for("select:b") };
    let found = world.try_search("acme", look).await.expect("it is found");
    assert_eq!(next(&found.handle).await, ["a", "b~"], "another signature says nothing new");
    let state = AgentState::default();
    let found = world.schemas("acme", &["s/b"], &state, &first.handle).await.expect("it is there");
    assert!(found.tools[0].chosen.newly_promoted);
    assert_eq!(next(&found.handle).await, ["a", "b"]);
}

#[tokio::test]
async fn signatures_fill_what_the_budget_leaves() {
    let world = world().await;
    let all = route(&world, wide(4, 0), "refund invoice", "").await;
    let cost = all.active[0].tokens;
    let tight = Options { schema_token_budget: Some(cost + cost / 2), ..wide(2, 10) };
    let answer = route(&world, tight, "refund invoice", "").await;
    assert_eq!(forms(&answer)[..2], ["+a", "+b~"], "the second was chosen and is too long");
    assert!(answer.account.phase2 <= u64::from(cost + cost / 2));
    assert!(!answer.refusals.iter().any(|refusal| refusal.code == RefusalCode::OverTokenBudget));
    let whole = Options { active_token_budget: Some(cost + cost / 2), ..wide(1, 10) };
    let answer = route(&world, whole, "refund invoice", "").await;
    assert!(forms(&answer).starts_with(&["+a".into(), "+b~".into()]));
    assert!(answer.account.phase2 <= u64::from(cost + cost / 2));
}

#[tokio::test]
async fn what_may_not_be_shown_is_in_no_tail() {
    let world = world().await;
    let strict = Options { threshold: 0.999, ..wide(1, 10) };
    let none = route(&world, strict, "metric", "").await;
    assert!(none.active.is_empty(), "nothing fits: {:?}", forms(&none));
    let excluded = Options { excluded: vec!["s/b".into()], ..wide(1, 1) };
    let answer = route(&world, excluded, "refund invoice", "").await;
    assert_eq!(forms(&answer), ["+a", "+c~"]);
    let policy = r#"{"defaults": {"max_per_server": 2}, "rules": [
        {"name": "far", "match": {"tools": ["b"]}, "threshold": 0.99}]}"#;
    world.set_policy("acme", policy, "").await.expect("a policy");
    let answer = route(&world, wide(1, 10), "refund invoice", "").await;
    assert_eq!(forms(&answer), ["+a", "+c~"], "the policy's cap and threshold hold");
}
