//! Tests of an active set under a token budget: which tools are removed, which stay, and when none is removed because
//! the prompt's cache is worth more.

use toolgate_core::state::{AgentState, CallStatus, PriorCall};
use toolgate_routing::gate::verdict::RefusalCode;
use toolgate_routing::router::intent::Intent;
use toolgate_routing::router::query::{Options, RouteQuery};
use toolgate_routing::router::route::Answer;

use crate::support::{Mode, ToolText, World, ask, call, model_names, options, server, shown, tool};

const TOPICS: [&str; 3] = ["refund invoice", "deploy branch", "calendar meeting"];

/// Returns two tools for each topic, all with the same cost.
fn tools() -> Vec<ToolText> {
    let topic = |(i, text)| (0..2).map(move |n| tool(&format!("topic{i}_{n}"), text));
    TOPICS.into_iter().enumerate().flat_map(topic).collect()
}

/// Returns a conversation after turns on the first two topics, and the cost of a tool.
async fn two_turns() -> (World, Answer, u32) {
    let world = World::new().await;
    world.register("acme", server("s", tools())).await;
    let first = world.route("acme", ask(TOPICS[0])).await;
    let second = RouteQuery { previous: first.handle, ..ask(TOPICS[1]) };
    let second = world.route("acme", second).await;
    assert_eq!(shown(&second), ["topic0_0", "topic0_1", "topic1_0", "topic1_1"]);
    let cost = second.active.iter().map(|active| active.tokens).max().unwrap();
    (world, second, cost)
}

/// Asks for the third topic with a budget for four tools.
fn third(before: &Answer, cost: u32) -> RouteQuery {
    let options = Options { active_token_budget: Some(4 * cost), ..options() };
    RouteQuery { previous: before.handle.clone(), options, ..ask(TOPICS[2]) }
}

fn names(answer: &Answer, slots: &[u32]) -> Vec<String> {
    let name = |slot: &u32| answer.snapshot.tool(*slot).id.name.as_str().to_owned();
    slots.iter().map(name).collect()
}

fn called(tool: &str, turn: u32) -> AgentState {
    let call = PriorCall { tool: tool.to_owned(), status: CallStatus::Succeeded, turn };
    AgentState { calls: vec![call], ..AgentState::default() }
}

#[tokio::test]
async fn without_a_budget_nobody_goes_and_all_that_may_is_named() {
    let (world, before, _) = two_turns().await;
    let query = RouteQuery { previous: before.handle, ..ask(TOPICS[2]) };
    let answer = world.route("acme", query).await;
    assert_eq!(answer.active.len(), 6);
    assert!(answer.change.removed.is_empty());
    let evictable = ["topic0_0", "topic0_1", "topic1_0", "topic1_1"];
    assert_eq!(names(&answer, &answer.change.evictable), evictable);
}

#[tokio::test]
async fn under_a_budget_tools_that_were_left_behind_go_for_new_ones() {
    let (world, before, cost) = two_turns().await;
    let answer = world.route("acme", third(&before, cost)).await;
    assert_eq!(answer.active.len(), 4);
    assert!(shown(&answer).contains(&"topic2_0".to_owned()), "{:?}", shown(&answer));
    assert!(shown(&answer).contains(&"topic2_1".to_owned()));
    assert_eq!(answer.change.removed.len(), 2);
    let spent: u32 = answer.active.iter().map(|active| active.tokens).sum();
    assert!(spent <= 4 * cost);
    // A removed tool may no longer be called.
    let gone = names(&answer, &answer.change.removed);
    let gone = format!("mcp__s__{}", gone[0]);
    let verdict = world.gate_one("acme", &answer.handle, call(&gone), AgentState::default());
    assert_eq!(verdict.await.unwrap_err().code, RefusalCode::ToolNotAvailable);
}

#[tokio::test]
async fn a_long_history_keeps_the_set_unless_the_caller_insists() {
    let (world, before, cost) = two_turns().await;
    let mut query = third(&before, cost);
    query.options.history_tokens = Some(50_000);
    query.options.explain = true;
    let kept = world.route("acme", query.clone()).await;
    assert_eq!(model_names(&kept), model_names(&before));
    assert!(kept.change.kept_for_cache && kept.change.cost.lost > kept.change.cost.saved);
    assert!(kept.change.removed.is_empty());
    let over = kept.refusals.iter().filter(|r| r.code == RefusalCode::OverTokenBudget).count();
    assert_eq!(over, 2);

    query.options.ignore_cache_cost = true;
    let changed = world.route("acme", query).await;
    assert!(!changed.change.kept_for_cache);
    assert_eq!(changed.change.removed.len(), 2);
}

#[tokio::test]
async fn with_the_cache_counted_what_a_message_does_not_need_goes_where_that_pays() {
    let (world, before, _) = two_turns().await;
    let counted = |text: &str| {
        let options = Options { history_tokens: Some(5_000), ..options() };
        let state = called("mcp__s__topic0_0", 2);
        RouteQuery { previous: before.handle.clone(), options, state, ..ask(text) }
    };
    // No remaining tool follows the removed ones. A past call of a removed tool does not justify keeping it.
    let other = world.route("acme", counted(TOPICS[2])).await;
    assert_eq!(shown(&other), ["topic2_0", "topic2_1"]);
    // Removing two tools would force two others to be read again.
    let both = world.route("acme", counted(&TOPICS[1..].join(" "))).await;
    assert_eq!(shown(&both)[..4], ["topic0_0", "topic0_1", "topic1_0", "topic1_1"]);
    // No tool is added, so none is removed.
    let same = world.route("acme", counted(TOPICS[1])).await;
    assert_eq!(model_names(&same), model_names(&before));
}

#[tokio::test]
async fn what_a_call_found_takes_no_tool_of_the_turn_out() {
    let (world, before, _) = two_turns().await;
    let options = Options { history_tokens: Some(5_000), ..options() };
    let state = called("mcp__s__topic0_0", 2);
    let mut query = RouteQuery { previous: before.handle, options, state, ..ask(TOPICS[1]) };
    query.intents.push(Intent::new(TOPICS[2].to_owned(), 0.5));
    let answer = world.route("acme", query).await;
    assert_eq!(shown(&answer)[..4], ["topic0_0", "topic0_1", "topic1_0", "topic1_1"]);
    assert_eq!(answer.active.len(), 5, "{:?}", shown(&answer));
}

#[tokio::test]
async fn nothing_is_carried_along_where_nothing_behind_the_tools_is_cached() {
    let (world, before, _) = two_turns().await;
    let options = Options { history_tokens: Some(0), ..options() };
    let query = RouteQuery { previous: before.handle, options, ..ask(TOPICS[1]) };
    let answer = world.route("acme", query).await;
    assert_eq!(shown(&answer), ["topic1_0", "topic1_1"]);
    assert_eq!(answer.change.removed.len(), 2);
}

#[tokio::test]
async fn what_was_called_lately_pinned_or_named_stays() {
    let (world, before, cost) = two_turns().await;
    let stays = |answer: &Answer| shown(answer).contains(&"topic0_0".to_owned());
    let called = RouteQuery { state: called("mcp__s__topic0_0", 3), ..third(&before, cost) };
    assert!(stays(&world.route("acme", called).await));
    let mut pinned = third(&before, cost);
    pinned.options.pinned = vec!["mcp__s__topic0_0".to_owned()];
    assert!(stays(&world.route("acme", pinned).await));
    let mut named = third(&before, cost);
    named.intents[0].text.push_str(" with topic0_0");
    assert!(stays(&world.route("acme", named).await));
}

#[tokio::test]
async fn without_overlaps_nobody_goes_on_a_guess() {
    let (world, before, cost) = two_turns().await;
    world.encoder.set(Mode::Fails);
    let answer = world.route("acme", third(&before, cost)).await;
    assert_eq!(model_names(&answer), model_names(&before));
    assert!(answer.change.removed.is_empty() && answer.change.evictable.is_empty());
}

#[tokio::test]
async fn a_budget_that_shrank_is_met_as_far_as_tools_may_go() {
    let (world, before, cost) = two_turns().await;
    let mut query = third(&before, cost);
    query.intents[0].text = TOPICS[1].to_owned();
    query.options.active_token_budget = Some(cost);
    let answer = world.route("acme", query).await;
    // The turn is about these two, so they stay although they exceed the budget.
    assert_eq!(shown(&answer), ["topic1_0", "topic1_1"]);
}

#[tokio::test]
async fn discovered_tools_are_in_the_set_and_may_be_called() {
    let world = World::new().await;
    world.register("acme", server("s", tools())).await;
    let discovered = vec!["mcp__s__topic1_0".to_owned(), "mcp__s__unheard_of".to_owned()];
    let state = AgentState { discovered, ..AgentState::default() };
    let answer = world.route("acme", RouteQuery { state, ..ask(TOPICS[0]) }).await;
    assert_eq!(shown(&answer), ["topic1_0", "topic0_0", "topic0_1"]);
    assert!(answer.active[0].chosen.newly_promoted, "its schema may be gone with the history");
    let verdict = world.gate_one("acme", &answer.handle, call("topic1_0"), AgentState::default());
    assert_eq!(verdict.await.unwrap(), "mcp__s__topic1_0");
}
