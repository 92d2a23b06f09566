//! Tests of conversations with several turns. Shown tools keep their places, changed tools are shown again, and handles
//! are either valid or refused.

use std::time::Duration;

use serde_json::json;
use toolgate_core::error::Error;
use toolgate_core::state::{AgentState, CallStatus, PriorCall};
use toolgate_routing::gate::calls::Call;
use toolgate_routing::gate::verdict::RefusalCode;
use toolgate_routing::router::intent::Intent;
use toolgate_routing::router::query::{Options, RouteQuery};

use crate::support::{
    Setup, ToolText, World, ask, call, model_names, options, server, shown, tool,
};

const TOPICS: [&str; 10] = [
    "refund invoice",
    "deploy branch",
    "calendar meeting",
    "weather photo",
    "ticket customer",
    "email folder",
    "alert metric",
    "payroll salary",
    "shipment parcel",
    "translate sentence",
];

fn topic(i: usize) -> impl Iterator<Item = ToolText> {
    (0..4).map(move |n| tool(&format!("topic{i}_{n}"), TOPICS[i]))
}

#[tokio::test]
async fn forty_turns_stay_within_the_bound() {
    let world = World::new().await;
    world.register("acme", server("s", (0..10).flat_map(topic).collect())).await;
    let mut names = Vec::<String>::new();
    let mut handle = String::new();
    let mut changes = 0;
    for turn in 0..40 {
        let topic = turn % 10;
        let query = RouteQuery { previous: handle.clone(), ..ask(TOPICS[topic]) };
        let answer = world.route("acme", query).await;
        let now = model_names(&answer);
        assert!(now.len() <= 10, "turn {turn}: {now:?}");
        let of_topic = now.iter().filter(|name| name.contains(&format!("topic{topic}_")));
        assert_eq!(of_topic.count(), 4, "turn {turn} has its topic: {now:?}");
        if answer.change.removed.is_empty() {
            assert_eq!(now[..names.len()], names, "turn {turn} moved what was there");
        } else {
            changes += 1;
        }
        (names, handle) = (now, answer.handle);
    }
    assert!((1..=30).contains(&changes), "{changes}");
    let again = world.route("acme", RouteQuery { previous: handle, ..ask(TOPICS[9]) }).await;
    assert_eq!(model_names(&again), names, "a turn that needs nothing new changes nothing");
}

#[tokio::test]
async fn what_was_called_does_not_pile_up() {
    let world = World::new().await;
    let found = tool("found", "compile kernel");
    let tools = (0..10).flat_map(topic).chain([found]).collect();
    world.register("acme", server("s", tools)).await;
    let found = "mcp__s__found".to_owned();
    for keeps_handle in [true, false] {
        let mut handle = String::new();
        // A scan of the history gives this state: the searched tools, and each tool with a successful call.
        let discovered = vec![found.clone()];
        let mut state = AgentState { discovered, ..AgentState::default() };
        for turn in 0..40 {
            let text = TOPICS[turn % 10];
            let route = async |previous: &str, state: &AgentState| {
                let previous = previous.to_owned();
                let state = state.clone();
                world.route("acme", RouteQuery { previous, state, ..ask(text) }).await
            };
            let answer = route(&handle, &state).await;
            let now = model_names(&answer);
            assert!(now.len() <= 10 + 1, "turn {turn}: {now:?}");
            assert!(now.contains(&found), "turn {turn} lost what was searched for: {now:?}");
            let called = format!("mcp__s__topic{}_{}", turn % 10, turn / 10);
            assert!(now.contains(&called), "turn {turn}: {now:?}");
            let status = CallStatus::Succeeded;
            let number = u32::try_from(turn).unwrap();
            state.calls.push(PriorCall { tool: called.clone(), status, turn: number });
            state.discovered.push(called);
            if keeps_handle {
                handle = answer.handle;
                let after = route(&handle, &state).await;
                assert_eq!(model_names(&after), now, "turn {turn}: a call changed the set");
            }
        }
    }
}

#[tokio::test]
async fn what_was_called_lately_outlives_the_handle() {
    let world = World::new().await;
    world.register("acme", server("s", (0..4).flat_map(topic).collect())).await;
    let name = |i: u32| format!("mcp__s__topic{i}_0");
    let call = |turn| PriorCall { tool: name(turn), status: CallStatus::Succeeded, turn };
    let state = AgentState {
        calls: (0..4).map(call).collect(),
        discovered: (0..4).map(name).collect(),
        ..AgentState::default()
    };
    let answer = world.route("acme", RouteQuery { state, ..ask(TOPICS[3]) }).await;
    let lately = shown(&answer)[..3].to_vec();
    assert_eq!(lately, ["topic1_0", "topic2_0", "topic3_0"], "of the last three turns");
}

#[tokio::test]
async fn a_limit_bounds_the_set_and_keeps_what_the_turn_needs() {
    let world = World::new().await;
    world.register("acme", server("s", (0..3).flat_map(topic).collect())).await;
    let limited = Options { top_k: 4, active_set_limit: Some(6), ..options() };
    let route = async |text: &str, previous: &str, state: AgentState| {
        let options = limited.clone();
        let previous = previous.to_owned();
        world.route("acme", RouteQuery { options, previous, state, ..ask(text) }).await
    };
    let first = route(TOPICS[0], "", AgentState::default()).await;
    let called = model_names(&first)[1].clone();
    let state = || {
        let call = PriorCall { tool: called.clone(), status: CallStatus::Succeeded, turn: 1 };
        AgentState { calls: vec![call], ..AgentState::default() }
    };
    let second = route(TOPICS[1], &first.handle, state()).await;
    let names = model_names(&second);
    assert_eq!((names.len(), &names[0]), (5, &called), "what was called lately stays: {names:?}");
    assert_eq!(second.change.removed.len(), 3);
}

#[tokio::test]
async fn what_the_model_searched_for_stays_for_the_next_route() {
    let world = World::new().await;
    world.register("acme", server("s", (0..3).flat_map(topic).collect())).await;
    let limited = Options { top_k: 4, active_set_limit: Some(5), ..options() };
    let route = async |text: &str, previous: &str| {
        let options = limited.clone();
        let previous = previous.to_owned();
        world.route("acme", RouteQuery { options, previous, ..ask(text) }).await
    };
    let first = route(TOPICS[0], "").await;
    let state = AgentState::default();
    let found = world.schemas("acme", &["s/topic1_0"], &state, &first.handle).await.unwrap();
    let mut handle = found.handle;
    let mut held = Vec::new();
    for text in [TOPICS[0], TOPICS[2], TOPICS[0], TOPICS[2]] {
        let answer = route(text, &handle).await;
        held.push(shown(&answer).contains(&"topic1_0".to_owned()));
        handle = answer.handle;
    }
    assert_eq!(held, [true, true, true, false]);
}

#[tokio::test]
async fn what_the_model_searched_for_has_places_beside_top_k() {
    let world = World::new().await;
    world.register("acme", server("s", (0..4).flat_map(topic).collect())).await;
    let four = Options { top_k: 4, ..options() };
    let route = async |text: &str, previous: &str| {
        let options = four.clone();
        let previous = previous.to_owned();
        world.route("acme", RouteQuery { options, previous, ..ask(text) }).await
    };
    let count = |answer: &_, topic: &str| {
        shown(answer).iter().filter(|name| name.starts_with(topic)).count()
    };
    let first = route(TOPICS[0], "").await;
    let second = route(TOPICS[1], &first.handle).await;
    assert_eq!((shown(&second).len(), count(&second, "topic1_")), (4, 4), "by default top_k");
    let state = AgentState::default();
    let search = ["s/topic2_0", "s/topic2_1", "s/topic2_2", "s/topic2_3"];
    let found = world.schemas("acme", &search, &state, &second.handle).await.unwrap();
    let third = route(TOPICS[3], &found.handle).await;
    assert_eq!((count(&third, "topic3_"), count(&third, "topic2_")), (4, 4));
    assert_eq!(shown(&third).len(), 8, "what the turn does not need went: {:?}", shown(&third));
    let more = ["s/topic0_0", "s/topic0_1", "s/topic0_2", "s/topic0_3"];
    let found = world.schemas("acme", &more, &state, &third.handle).await.unwrap();
    let fourth = route(TOPICS[1], &found.handle).await;
    assert_eq!((shown(&fourth).len(), count(&fourth, "topic1_")), (10, 4), "bounded as well");
}

#[tokio::test]
async fn a_calls_result_brings_its_best_tool_and_no_others() {
    let world = World::new().await;
    world.register("acme", server("s", (0..2).flat_map(topic).collect())).await;
    let first = world.route("acme", ask(TOPICS[0])).await;
    let mut query = RouteQuery { previous: first.handle.clone(), ..ask(TOPICS[0]) };
    query.intents.push(Intent::new(TOPICS[1].to_owned(), 0.5));
    let after = world.route("acme", query.clone()).await;
    let of_result = shown(&after).iter().filter(|name| name.starts_with("topic1_")).count();
    assert_eq!((after.active.len(), of_result), (5, 1), "{:?}", shown(&after));
    query.intents[1].weight = 1.0;
    let both = world.route("acme", query).await;
    assert_eq!(both.active.len(), 8, "what is asked as well is chosen: {:?}", shown(&both));
}

#[tokio::test]
async fn a_place_belongs_to_a_tool_of_the_set() {
    let world = World::new().await;
    let long = "refund invoice ".to_owned() + &"customer ticket ".repeat(200);
    let tools = vec![
        tool("best", "refund invoice").schema(json!({"type": "object", "description": long})),
        tool("second", "refund invoice"),
        tool("third", "refund invoice customer"),
    ];
    world.register("acme", server("s", tools)).await;
    let tight = Options { top_k: 2, schema_token_budget: Some(150), explain: true, ..options() };
    let answer = world.route("acme", RouteQuery { options: tight, ..ask("refund invoice") }).await;
    assert_eq!(shown(&answer).len(), 2, "{:?}", answer.refusals);
    let codes: Vec<_> = answer.refusals.iter().map(|refusal| refusal.code).collect();
    assert_eq!(codes, [RefusalCode::OverTokenBudget]);
}

#[tokio::test]
async fn with_a_long_history_only_a_better_tool_changes_the_set() {
    let world = World::new().await;
    let tools = vec![
        tool("a", "refund invoice"),
        tool("b", "refund invoice customer"),
        tool("c", "deploy branch"),
    ];
    world.register("acme", server("s", tools)).await;
    let one = Options { top_k: 1, ..options() };
    let first = world.route("acme", RouteQuery { options: one, ..ask("refund invoice") }).await;
    assert_eq!(shown(&first), ["a"]);
    let long = Options { history_tokens: Some(50_000), explain: true, ..options() };
    let next = async |text: &str, options: &Options| {
        let options = options.clone();
        let previous = first.handle.clone();
        world.route("acme", RouteQuery { options, previous, ..ask(text) }).await
    };
    let kept = next("refund invoice", &long).await;
    assert_eq!((shown(&kept), kept.change.kept_for_cache), (vec!["a".to_owned()], true));
    let codes = kept.refusals.iter().filter(|r| r.code == RefusalCode::KeptForCache).count();
    assert_eq!(codes, 1);
    let insisting = Options { ignore_cache_cost: true, ..long.clone() };
    assert_eq!(shown(&next("refund invoice", &insisting).await), ["a", "b"]);
    // The change invalidates the history's cache, and no tool follows "a".
    assert_eq!(shown(&next("deploy branch", &long).await), ["c"]);
}

fn typed(kind: &str) -> ToolText {
    let schema = json!({"type": "object", "properties": {"amount": {"type": kind}}});
    tool("refund", "refund invoice").schema(schema)
}

#[tokio::test]
async fn a_changed_definition_must_be_shown_anew() {
    let world = World::new().await;
    let others = || vec![tool("other", "refund invoice ticket"), tool("third", "refund invoice")];
    let with = |kind| server("s", [vec![typed(kind)], others()].concat());
    world.register("acme", with("string")).await;
    let before = world.route("acme", ask("refund invoice")).await;
    world.register("acme", with("integer")).await;

    let amount = |text: &str| Call {
        tool: "mcp__s__refund".to_owned(),
        arguments: format!("{{\"amount\": {text}}}"),
        ..Call::default()
    };
    let state = AgentState::default;
    let refused = world.gate_one("acme", &before.handle, amount("\"3\""), state()).await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.code, RefusalCode::SchemaChanged);
    assert_eq!(refused.search, "select:mcp__s__refund");
    let unchanged = world.gate_one("acme", &before.handle, call("mcp__s__other"), state()).await;
    assert_eq!(unchanged.unwrap(), "mcp__s__other", "the rest of the set still holds");

    let query = RouteQuery { previous: before.handle.clone(), ..ask("refund invoice") };
    let after = world.route("acme", query).await;
    let kept: Vec<_> = shown(&before).into_iter().filter(|name| name != "refund").collect();
    assert_eq!(shown(&after), [kept, vec!["refund".to_owned()]].concat());
    let last = after.active.last().unwrap();
    assert!(last.chosen.newly_promoted, "the new definition goes to the end and is sent again");
    let refused =
        world.gate_one("acme", &after.handle, amount("\"3\""), state()).await.unwrap_err();
    assert_eq!(refused.code, RefusalCode::ArgumentsInvalid);
    assert_eq!(refused.violations[0].pointer, "/amount");
    assert!(refused.input_schema.contains("integer"));
    assert!(world.gate_one("acme", &after.handle, amount("3"), state()).await.is_ok());
}

#[tokio::test]
async fn a_removed_tool_is_gone_from_its_place_and_unknown() {
    let world = World::new().await;
    let all = ["a", "b", "c"].map(|name| tool(name, "refund invoice"));
    world.register("acme", server("s", all.to_vec())).await;
    let before = world.route("acme", ask("refund invoice")).await;
    assert_eq!(before.active.len(), 3);
    world.register("acme", server("s", vec![all[0].clone(), all[2].clone()])).await;
    let verdict = world.gate_one("acme", &before.handle, call("mcp__s__b"), AgentState::default());
    let refused = verdict.await.unwrap_err();
    assert_eq!(refused.code, RefusalCode::UnknownTool);
    assert!(!refused.available.contains(&"mcp__s__b".to_owned()));
    assert_eq!(refused.available.len(), 2);
    let query = RouteQuery { previous: before.handle.clone(), ..ask("refund invoice") };
    let after = world.route("acme", query).await;
    let left: Vec<_> = shown(&before).into_iter().filter(|name| name != "b").collect();
    assert_eq!(shown(&after), left);
}

#[tokio::test]
async fn what_was_not_shown_is_not_available() {
    let world = World::new().await;
    let tools = vec![tool("near", "refund invoice"), tool("far", "weather photo")];
    world.register("acme", server("s", tools)).await;
    let answer = world.route("acme", ask("refund invoice")).await;
    let gate =
        |name: &str| world.gate_one("acme", &answer.handle, call(name), AgentState::default());
    let refused = gate("mcp__s__far").await.unwrap_err();
    assert_eq!(refused.code, RefusalCode::ToolNotAvailable);
    assert_eq!(refused.available, ["mcp__s__near"]);
    assert_eq!(refused.search, "select:mcp__s__far");
    assert_eq!(
        gate("near").await.unwrap(),
        "mcp__s__near",
        "the MCP name will do when it is plain"
    );
    assert_eq!(gate("far").await.unwrap_err().search, "select:mcp__s__far");
    // A tool that is fetched by name joins the set.
    let fetched = world.schemas("acme", &["s/far"], &AgentState::default(), &answer.handle).await;
    let fetched = fetched.unwrap();
    assert!(fetched.tools[0].chosen.newly_promoted);
    for name in ["mcp__s__near", "mcp__s__far"] {
        let verdict = world.gate_one("acme", &fetched.handle, call(name), AgentState::default());
        assert_eq!(verdict.await.unwrap(), name);
    }
}

#[tokio::test]
async fn an_expired_handle_is_refused_by_gate_and_renewed_by_route() {
    let dead = World::with(Setup { handle_ttl: Duration::ZERO, ..Setup::default() }).await;
    let tools: Vec<_> = (0..2).flat_map(topic).collect();
    dead.register("acme", server("s", tools)).await;
    let first = dead.route("acme", ask(TOPICS[0])).await;
    let calls = vec![call(&model_names(&first)[0]), call("nothing")];
    let (_, verdicts) = dead.gate("acme", &first.handle, calls, AgentState::default()).await;
    let codes: Vec<_> = verdicts.into_iter().map(|verdict| verdict.unwrap_err().code).collect();
    assert_eq!(codes, [RefusalCode::HandleExpired; 2], "and nothing is said about either tool");
    // On a replica with the same key and a longer lifetime of handles, the places stay the same.
    let alive = dead.restarted(Setup::default()).await;
    let query = RouteQuery { previous: first.handle.clone(), ..ask(TOPICS[1]) };
    let renewed = alive.route("acme", query).await;
    assert_eq!(model_names(&renewed)[..first.active.len()], model_names(&first));
    let verdict = alive.gate_one(
        "acme",
        &renewed.handle,
        call(&model_names(&first)[0]),
        AgentState::default(),
    );
    assert!(verdict.await.is_ok());
}

#[tokio::test]
async fn a_forged_handle_is_nothing() {
    let world = World::new().await;
    world.register("acme", server("s", topic(0).collect())).await;
    let answer = world.route("acme", ask(TOPICS[0])).await;
    let mut characters: Vec<char> = answer.handle.chars().collect();
    let middle = characters.len() / 2;
    characters[middle] = if characters[middle] == 'A' { 'B' } else { 'A' };
    let flipped: String = characters.into_iter().collect();
    let cut = answer.handle[..answer.handle.len() - 4].to_owned();
    for forged in [flipped, cut, "forged".to_owned(), "é".repeat(50), "A".repeat(100_000)] {
        let query = RouteQuery { previous: forged.clone(), ..ask(TOPICS[0]) };
        let routed = world.try_route("acme", query).await;
        assert!(matches!(routed, Err(Error::HandleInvalid(_))), "{forged}");
        let names = model_names(&answer);
        let fetched = world.schemas("acme", &[&names[0]], &AgentState::default(), &forged).await;
        assert!(matches!(fetched, Err(Error::HandleInvalid(_))));
        let calls = vec![call(&names[0]), call("nothing")];
        let (_, verdicts) = world.gate("acme", &forged, calls, AgentState::default()).await;
        for verdict in verdicts {
            let refused = verdict.unwrap_err();
            assert_eq!(refused.code, RefusalCode::HandleInvalid);
            assert!(refused.available.is_empty() && refused.unlock.is_empty());
        }
    }
}

#[tokio::test]
async fn kept_tools_cost_nothing_of_the_budget() {
    let world = World::new().await;
    world.register("acme", server("s", (0..2).flat_map(topic).collect())).await;
    let first = world.route("acme", ask(TOPICS[0])).await;
    let broke = Options { schema_token_budget: Some(0), explain: true, ..options() };
    let query = RouteQuery { previous: first.handle.clone(), options: broke, ..ask(TOPICS[1]) };
    let second = world.route("acme", query).await;
    assert_eq!(model_names(&second), model_names(&first));
    let over = |r: &&toolgate_routing::router::answers::explain::Refusal| {
        r.code == RefusalCode::OverTokenBudget
    };
    assert!(second.refusals.iter().filter(over).count() >= 4);
}

#[tokio::test]
async fn always_loaded_tools_are_there_whatever_the_budget() {
    let world = World::new().await;
    let tools = vec![tool("always", "unrelated").always(), tool("refund", "refund invoice")];
    world.register("acme", server("s", tools)).await;
    for options in [
        Options { schema_token_budget: Some(0), ..options() },
        Options { active_token_budget: Some(0), ..options() },
    ] {
        let answer = world.route("acme", RouteQuery { options, ..ask("refund invoice") }).await;
        assert_eq!(model_names(&answer), ["mcp__s__always"]);
    }
}

#[tokio::test]
async fn the_server_that_was_called_last_is_the_likelier_one() {
    let world = World::new().await;
    let tools = || vec![tool("refund", "refund invoice"), tool("close", "close ticket")];
    for name in ["a", "b"] {
        world.register("acme", server(name, tools())).await;
    }
    let first = async |called: &str| {
        let call = PriorCall { tool: called.to_owned(), status: CallStatus::Succeeded, turn: 1 };
        let state = AgentState { calls: vec![call], ..AgentState::default() };
        let answer = world.route("acme", RouteQuery { state, ..ask("refund invoice") }).await;
        model_names(&answer)[0].clone()
    };
    assert_eq!(first("mcp__a__close").await, "mcp__a__refund");
    assert_eq!(first("mcp__b__close").await, "mcp__b__refund");
    for neutral in ["close", "mcp__c__close", ""] {
        assert_eq!(first(neutral).await, "mcp__a__refund", "{neutral:?} says nothing");
    }
}

#[tokio::test]
async fn a_sandbox_needs_the_servers_of_the_active_tools_best_tool_first() {
    let world = World::new().await;
    world.register("acme", server("pay", vec![tool("refund", "refund invoice")])).await;
    let ship = vec![tool("deploy", "deploy branch"), tool("undo", "deploy branch")];
    world.register("acme", server("ship", ship)).await;
    world.register("acme", server("idle", vec![tool("rest", "weather photo")])).await;
    let servers = |answer: &toolgate_routing::router::route::Answer| {
        answer.servers().iter().map(|name| name.as_str().to_owned()).collect::<Vec<_>>()
    };
    let first = world.route("acme", ask("refund invoice")).await;
    assert_eq!(servers(&first), ["pay"]);
    let both = RouteQuery { previous: first.handle, ..ask("deploy branch") };
    let both = world.route("acme", both).await;
    assert_eq!(model_names(&both)[0], "mcp__pay__refund", "a kept tool keeps its place");
    assert_eq!(servers(&both), ["ship", "pay"], "each once, those of the best tools first");
    let nothing = Options { threshold: 1.1, ..options() };
    let nothing = world.route("acme", RouteQuery { options: nothing, ..ask("zebra") }).await;
    assert_eq!(servers(&nothing), Vec::<String>::new());
}
