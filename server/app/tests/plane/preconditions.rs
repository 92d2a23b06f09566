//! Tests that preconditions apply before the cutoff, so that locked tools never displace open ones.

use toolgate_core::precondition::Precondition::{
    All, Any, HasPriorToolOutput, IsAuthenticated, MilestoneReached, Not,
};
use toolgate_core::state::{AgentState, CallStatus, PriorCall};
use toolgate_routing::gate::verdict::RefusalCode;
use toolgate_routing::router::query::{Options, RouteQuery};

use crate::support::{
    World, ask, call, granted, model_names, options, reached, server, shown, tool,
};

/// Creates a world with 50 locked tools that fit best, and 12 open ones that fit less well.
async fn crowded() -> World {
    let world = World::new().await;
    let locked = |i: usize| tool(&format!("locked_{i}"), "refund invoice").after("approved");
    let open = |i: usize| tool(&format!("open_{i}"), "refund invoice customer ticket");
    let tools = (0..50).map(locked).chain((0..12).map(open)).collect();
    world.register("acme", server("billing", tools)).await;
    world
}

#[tokio::test]
async fn locked_tools_never_crowd_out_open_ones() {
    let world = crowded().await;
    let answer = world.route("acme", ask("refund invoice")).await;
    assert_eq!(answer.active.len(), 10);
    assert!(shown(&answer).iter().all(|name| name.starts_with("open_")), "{:?}", shown(&answer));
    let approved = RouteQuery { state: reached(&["approved"]), ..ask("refund invoice") };
    let answer = world.route("acme", approved).await;
    assert!(shown(&answer).iter().all(|name| name.starts_with("locked_")), "{:?}", shown(&answer));
}

#[tokio::test]
async fn explain_says_what_would_unlock() {
    let world = crowded().await;
    let explain = Options { explain: true, top_k: 3, ..options() };
    let answer =
        world.route("acme", RouteQuery { options: explain, ..ask("refund invoice") }).await;
    assert_eq!(answer.active.len(), 3);
    let with = |code| answer.refusals.iter().filter(move |refusal| refusal.code == code);
    let locked: Vec<_> = with(RefusalCode::PreconditionUnmet).collect();
    assert_eq!(locked.len(), 3, "as many as would have been candidates");
    for refusal in locked {
        let tool = answer.snapshot.tool(refusal.slot.unwrap());
        assert!(tool.id.name.as_str().starts_with("locked_"));
        assert_eq!(refusal.unlock, ["milestone_reached(\"approved\")"]);
        assert!(refusal.message.contains("milestone_reached(\"approved\")"));
    }
    assert_eq!(with(RefusalCode::BeyondTopK).count(), 9, "all other open tools");
    let quiet = Options { explain: false, top_k: 3, ..options() };
    let answer = world.route("acme", RouteQuery { options: quiet, ..ask("refund invoice") }).await;
    assert!(answer.refusals.is_empty());
}

#[tokio::test]
async fn below_threshold_is_explained() {
    let world = World::new().await;
    let tools = vec![tool("near", "refund invoice"), tool("far", "weather photo folder")];
    world.register("acme", server("s", tools)).await;
    let explain = Options { explain: true, ..options() };
    let answer =
        world.route("acme", RouteQuery { options: explain, ..ask("refund invoice") }).await;
    let [refusal] = &answer.refusals[..] else { panic!("{:?}", answer.refusals) };
    assert_eq!(refusal.code, RefusalCode::BelowThreshold);
    assert!(refusal.overlap < 0.28 && refusal.unlock.is_empty());
    let threshold = "is below the threshold of 0.280 for each tool";
    assert!(refusal.message.ends_with(threshold), "{}", refusal.message);
}

#[tokio::test]
async fn combinations_decide_as_written_in_route_and_gate() {
    let world = World::new().await;
    let milestone = |name: &str| MilestoneReached(name.to_owned());
    let paid = || IsAuthenticated("pay".to_owned());
    let looked = || HasPriorToolOutput("look_up".to_owned());
    let tools = vec![
        tool("all", "refund").needs(All(vec![milestone("a"), paid()])),
        tool("any", "refund").needs(Any(vec![milestone("a"), looked()])),
        tool("not", "refund").needs(Not(Box::new(milestone("a")))),
    ];
    let mut registration = server("s", tools);
    registration.server.precondition = Some(Not(Box::new(milestone("frozen"))));
    world.register("acme", registration).await;
    let prior = |tool: &str, succeeded| {
        let status = if succeeded { CallStatus::Succeeded } else { CallStatus::Failed };
        PriorCall { tool: tool.to_owned(), status, turn: 0 }
    };
    let with_calls = |calls| AgentState { calls, ..AgentState::default() };
    let mut both = granted(&["pay"]);
    both.milestones = reached(&["a"]).milestones;
    let cases = [
        (AgentState::default(), vec!["not"]),
        (reached(&["a"]), vec!["any"]),
        (both, vec!["all", "any"]),
        (granted(&["pay"]), vec!["not"]),
        (with_calls(vec![prior("mcp__crm__look_up_customer", true)]), vec!["any", "not"]),
        (with_calls(vec![prior("mcp__crm__look_up_customer", false)]), vec!["not"]),
        (with_calls(vec![prior("mcp__x__y", true), prior("look_up", true)]), vec!["any", "not"]),
        (reached(&["frozen"]), vec![]),
    ];
    for (state, expected) in cases {
        let answer =
            world.route("acme", RouteQuery { state: state.clone(), ..ask("refund") }).await;
        let mut names = shown(&answer);
        names.sort();
        assert_eq!(names, expected, "{state:?}");
        gate_agrees(&world, &answer.handle, &state, &expected).await;
    }
}

/// Checks that Gate allows the `open` tools of the three, and refuses the others for their preconditions.
async fn gate_agrees(world: &World, handle: &str, state: &AgentState, open: &[&str]) {
    for name in ["all", "any", "not"] {
        let model_name = format!("mcp__s__{name}");
        match world.gate_one("acme", handle, call(&model_name), state.clone()).await {
            Ok(allowed) => assert!(open.contains(&name), "{allowed} with {state:?}"),
            Err(refused) => {
                assert!(!open.contains(&name), "{name}: {refused:?} with {state:?}");
                assert_eq!(refused.code, RefusalCode::PreconditionUnmet);
                assert!(!refused.unlock.is_empty());
            }
        }
    }
}

#[tokio::test]
async fn gate_asks_the_state_again() {
    let world = World::new().await;
    let tools = vec![tool("refund", "refund").after("approved"), tool("look", "refund invoice")];
    world.register("acme", server("s", tools)).await;
    let query = RouteQuery { state: reached(&["approved"]), ..ask("refund") };
    let answer = world.route("acme", query).await;
    assert!(model_names(&answer).contains(&"mcp__s__refund".to_owned()));
    let gate = |state| world.gate_one("acme", &answer.handle, call("mcp__s__refund"), state);
    assert!(gate(reached(&["approved"])).await.is_ok());
    let refused = gate(AgentState::default()).await.unwrap_err();
    assert_eq!(refused.code, RefusalCode::PreconditionUnmet);
    assert_eq!(refused.unlock, ["milestone_reached(\"approved\")"]);
    // The next Route removes the tool from its place.
    let next = RouteQuery { previous: answer.handle.clone(), ..ask("refund") };
    assert_eq!(shown(&world.route("acme", next).await), ["look"]);
}
