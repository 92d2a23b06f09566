//! Tests of a tenant's policy: the tools that each agent sees, the tools that are chosen, and the agreement of every
//! API on them.

use serde_json::json;
use toolgate_app::plane::policies::ToolVerdict;
use toolgate_core::error::Error;
use toolgate_core::precondition::Precondition;
use toolgate_core::state::AgentState;
use toolgate_routing::gate::verdict::RefusalCode;
use toolgate_routing::router::query::{Options, RouteQuery, Unset};
use toolgate_routing::router::ranking::rank::FoundBy;

use crate::support::{
    ToolText, World, ask, call, found, granted, look_for, options, reached, server, shown, tool,
};

/// Returns `n` tools that fit the same intent.
fn refunds(n: usize) -> Vec<ToolText> {
    (0..n).map(|i| tool(&format!("refund_{i}"), "refund invoice")).collect()
}

async fn world(tools: Vec<ToolText>) -> World {
    let world = World::new().await;
    world.register("acme", server("s", tools)).await;
    world
}

fn unset(text: &str) -> RouteQuery {
    let unset = Unset { top_k: true, threshold: true };
    RouteQuery { options: Options { unset, ..options() }, ..ask(text) }
}

#[tokio::test]
async fn rules_lock_until_their_precondition_holds() {
    let world = world(vec![tool("refund", "refund invoice")]).await;
    let document = "rules: [{name: plan, match: {tools: [ref*]}, precondition:
        {all: [{milestone_reached: planned}, {cel: \"'pay' in state.scopes\"}]}}]";
    world.set_policy("acme", document, "").await.unwrap();
    let explain = Options { explain: true, ..options() };
    let query = |state: AgentState| RouteQuery { options: explain.clone(), state, ..ask("refund") };
    let locked = world.route("acme", query(reached(&["planned"]))).await;
    assert!(shown(&locked).is_empty());
    assert_eq!(locked.refusals[0].code, RefusalCode::PreconditionUnmet);
    assert_eq!(locked.refusals[0].unlock, ["'pay' in state.scopes"]);
    let both = AgentState { milestones: reached(&["planned"]).milestones, ..granted(&["pay"]) };
    let open = world.route("acme", query(both.clone())).await;
    assert_eq!(shown(&open), ["refund"]);
    let name = "mcp__s__refund";
    assert!(world.gate_one("acme", &open.handle, call(name), both).await.is_ok());
    let refused = world.gate_one("acme", &open.handle, call(name), granted(&["pay"])).await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.code, RefusalCode::PreconditionUnmet);
    assert_eq!(refused.unlock, ["milestone_reached(\"planned\")"]);
}

#[tokio::test]
async fn a_condition_without_an_answer_denies_and_says_why() {
    let world = world(vec![tool("refund", "refund invoice"), tool("other", "refund")]).await;
    let document = "rules: [{name: tier, match: {tools: [refund]}, \
        precondition: {not: {cel: \"state.attributes.tier == 'free'\"}}}]";
    world.set_policy("acme", document, "").await.unwrap();
    let query = RouteQuery { options: Options { explain: true, ..options() }, ..ask("refund") };
    let answer = world.route("acme", query.clone()).await;
    assert_eq!(shown(&answer), ["other"], "the others are there");
    let unlock = &answer.refusals[0].unlock[0];
    assert!(unlock.contains("can't be evaluated: there is no key \"tier\""), "{unlock}");
    let mut state = AgentState::default();
    state.attributes.insert("tier".to_owned(), "pro".into());
    let mut names = shown(&world.route("acme", RouteQuery { state, ..query }).await);
    names.sort();
    assert_eq!(names, ["other", "refund"]);
}

#[tokio::test]
async fn a_registration_may_have_conditions() {
    let condition = "tool.annotations.readOnlyHint || 'write' in state.scopes";
    let mut reading = tool("read", "refund invoice");
    reading.definition["annotations"] = serde_json::json!({"readOnlyHint": true});
    let cel = || Precondition::Cel(condition.to_owned());
    let world =
        world(vec![reading.needs(cel()), tool("write", "refund invoice").needs(cel())]).await;
    assert_eq!(shown(&world.route("acme", ask("refund invoice")).await), ["read"]);
    let query = RouteQuery { state: granted(&["write"]), ..ask("refund invoice") };
    assert_eq!(shown(&world.route("acme", query).await).len(), 2);
    // The policy is read back from the store unchanged.
    let restarted = world.restarted(crate::support::Setup::default()).await;
    assert_eq!(shown(&restarted.route("acme", ask("refund invoice")).await), ["read"]);
}

#[tokio::test]
async fn rules_load_pin_and_set_thresholds() {
    let world = world(vec![
        tool("refund", "refund invoice"),
        tool("clock", "tells the time"),
        tool("calendar", "lists appointments"),
        tool("weather", "forecasts rain"),
    ])
    .await;
    let document = "rules:
      - {name: a, match: {tools: [clock]}, pinned: true}
      - {name: b, match: {tools: [calendar]}, always_load: true, critical: true}
      - {name: c, match: {tools: [weather]}, threshold: -1}
      - {name: d, match: {tools: [refund]}, threshold: 0.99}";
    world.set_policy("acme", document, "").await.unwrap();
    let answer = world.route("acme", ask("please refund the invoice of may")).await;
    let found: Vec<_> = answer.active.iter().map(|active| active.chosen.found_by).collect();
    assert_eq!(shown(&answer), ["calendar", "clock", "weather"]);
    assert_eq!(found, [FoundBy::AlwaysLoad, FoundBy::Pin, FoundBy::Overlap]);
    assert!(answer.snapshot.tools.iter().any(|tool| !tool.deferrable));
}

#[tokio::test]
async fn a_search_by_meaning_goes_by_half_the_policys_threshold() {
    let world =
        world(vec![tool("refund", "refund invoice"), tool("weather", "forecasts rain")]).await;
    let names = async |document: &str| {
        world.set_policy("acme", document, "").await.unwrap();
        let query = look_for("please refund all of the money of this invoice right now");
        let mut names = found(&world.search("acme", query).await);
        names.sort();
        names
    };
    assert_eq!(names("{}").await, ["mcp__s__refund"]);
    assert!(names("rules: [{name: r, match: {tools: [refund]}, threshold: 1}]").await.is_empty());
    let all = ["mcp__s__refund", "mcp__s__weather"];
    assert_eq!(names("defaults: {threshold: -1}").await, all);
}

#[tokio::test]
async fn caps_leave_room_for_other_servers() {
    let world = world(refunds(8)).await;
    world.register("acme", server("t", refunds(8))).await;
    let names = |answer: &toolgate_routing::router::route::Answer| {
        let ids = answer.active.iter().map(|a| answer.snapshot.tool(a.chosen.slot).id.to_string());
        ids.collect::<Vec<_>>()
    };
    let of = |names: &[String], server: &str| {
        names.iter().filter(|name| name.starts_with(server)).count()
    };
    world.set_policy("acme", "defaults: {max_per_server: 3, top_k: 5}", "").await.unwrap();
    let chosen = names(&world.route("acme", unset("refund invoice")).await);
    assert_eq!((of(&chosen, "s/"), of(&chosen, "t/")), (3, 2), "{chosen:?}");
    let document = "rules: [{name: r, match: {servers: [s]}, top_k: 1}]";
    world.set_policy("acme", document, "").await.unwrap();
    let answer = world.route("acme", unset("refund invoice")).await;
    let chosen = names(&answer);
    assert_eq!((of(&chosen, "s/"), of(&chosen, "t/")), (1, 8), "{chosen:?}");
    // Kept tools stay, and count against the limit.
    let next = RouteQuery { previous: answer.handle, ..unset("refund invoice") };
    assert_eq!(names(&world.route("acme", next).await), chosen);
}

#[tokio::test]
async fn defaults_hold_for_what_a_request_leaves_out() {
    let world = world(refunds(6)).await;
    world.set_policy("acme", "defaults: {threshold: -1, top_k: 2}", "").await.unwrap();
    assert_eq!(shown(&world.route("acme", unset("something else")).await).len(), 2);
    assert_eq!(shown(&world.route("acme", ask("refund invoice")).await).len(), 6, "it said 10");
    assert_eq!(shown(&world.route("acme", ask("something else")).await).len(), 0, "it said .28");
}

#[tokio::test]
async fn policies_have_etags_and_bad_ones_change_nothing() {
    let world = world(vec![tool("refund", "refund invoice")]).await;
    let first = world.set_policy("acme", "rules: []", "").await.unwrap();
    assert_eq!(first.revision, 2);
    let stale = world.set_policy("acme", "{}", "p1").await.unwrap_err();
    assert!(matches!(stale, Error::EtagMismatch { ref actual, .. } if *actual == first.etag()));
    let same = world.set_policy("acme", "rules: []", "").await.unwrap();
    assert_eq!(same.revision, 2, "nothing changed");
    let wrong = world.set_policy("acme", "rules: [{name: a, precondition: {cel: 'x'}}]", "").await;
    let wrong = wrong.unwrap_err().to_string();
    assert!(wrong.contains("unknown variable `x`") && wrong.contains("line 1"), "{wrong}");
    let second = world.set_policy("acme", "{}", &first.etag()).await.unwrap();
    assert_eq!((second.revision, second.document.as_str()), (3, "{}"));
    let none = world.set_policy("other", "{}", &first.etag()).await.unwrap_err();
    assert!(matches!(none, Error::EtagMismatch { .. }), "another tenant's etag is nobody's");
}

#[tokio::test]
async fn one_snapshot_holds_both() {
    let world = world(vec![tool("refund", "refund invoice")]).await;
    let before = world.route("acme", ask("refund")).await;
    let set = world.set_policy("acme", "rules: [{name: no, denied: true}]", "").await.unwrap();
    let after = world.route("acme", ask("refund")).await;
    assert_eq!(after.snapshot.revision, set.revision);
    assert_eq!(after.snapshot.policy_revision, Some(set.revision));
    assert!(shown(&after).is_empty() && shown(&before) == ["refund"]);
    let refused =
        world.gate_one("acme", &before.handle, call("mcp__s__refund"), AgentState::default());
    assert_eq!(refused.await.unwrap_err().code, RefusalCode::UnknownTool);
}

type Row = (String, Option<RefusalCode>, String, Vec<String>);

fn row(name: &str, code: Option<RefusalCode>, rule: &str, unlock: &[&str]) -> Row {
    let unlock = unlock.iter().map(|text| (*text).to_owned()).collect();
    (name.to_owned(), code, rule.to_owned(), unlock)
}

async fn check(world: &World, document: Option<&str>) -> Vec<Row> {
    let verdicts =
        world.check_policy("acme", document, AgentState::default()).await.unwrap().verdicts;
    let row = |verdict: ToolVerdict| {
        let rule = verdict.rule.as_deref().unwrap_or("-").to_owned();
        (verdict.id.name.as_str().to_owned(), verdict.refused, rule, verdict.unlock)
    };
    verdicts.into_iter().map(row).collect()
}

#[tokio::test]
async fn a_check_names_the_rule_that_decided_and_what_unlocks() {
    let tools = vec![
        tool("a", "A"),
        tool("b", "B").scope("own"),
        tool("c", "C"),
        tool("d", "D").after("planned"),
        tool("e", "E"),
    ];
    let world = world(tools).await;
    let document = "rules:
      - {name: scoped, match: {tools: [c, e]}, required_scopes: [staff]}
      - {name: late, match: {tools: [c, d]}, precondition: {cel: 'size(state.calls) > 0'}}
      - {name: never, match: {tools: [e]}, denied: true}";
    let expected = [
        row("a", None, "-", &[]),
        row("b", Some(RefusalCode::ScopeMissing), "-", &["scope \"own\""]),
        row(
            "c",
            Some(RefusalCode::ScopeMissing),
            "scoped",
            &["scope \"staff\"", "size(state.calls) > 0"],
        ),
        row(
            "d",
            Some(RefusalCode::PreconditionUnmet),
            "-",
            &["milestone_reached(\"planned\")", "size(state.calls) > 0"],
        ),
        row("e", Some(RefusalCode::UnknownTool), "never", &[]),
    ];
    assert_eq!(check(&world, Some(document)).await, expected);
    assert_eq!(check(&world, None).await[4].1, None, "nothing was set by that");
    world.set_policy("acme", document, "").await.unwrap();
    assert_eq!(check(&world, None).await, expected);
}

fn hinted(name: &str, annotations: serde_json::Value) -> ToolText {
    let mut tool = tool(name, "refund invoice");
    tool.definition["annotations"] = annotations;
    tool
}

#[tokio::test]
async fn a_tool_that_only_reads_destroys_nothing() {
    let tools = vec![
        hinted("reads", json!({"readOnlyHint": true})),
        hinted("writes", json!({"destructiveHint": false})),
        hinted("unknown", json!({})),
    ];
    let world = world(tools).await;
    let document =
        "rules: [{name: no, match: {annotations: {destructiveHint: true}}, denied: true}]";
    let denied = row("unknown", Some(RefusalCode::UnknownTool), "no", &[]);
    let expected = [row("reads", None, "-", &[]), denied, row("writes", None, "-", &[])];
    assert_eq!(check(&world, Some(document)).await, expected);
}

#[tokio::test]
async fn a_check_says_how_far_each_rule_reaches() {
    let world = world(refunds(3)).await;
    let document = "rules:
      - {name: some, match: {tools: ['refund_[12]', refund_1, refund_2]}, pinned: true}
      - {name: model-facing, match: {tools: [mcp__s__refund_1]}, denied: true}
      - {name: elsewhere, match: {servers: [other]}, denied: true}
      - {name: idle}";
    let checked = world.check_policy("acme", Some(document), AgentState::default()).await.unwrap();
    let rules: Vec<_> = checked.coverage.iter().map(|c| (&*c.rule, c.tools, &*c.hint)).collect();
    assert_eq!(rules[0], ("some", 2, ""));
    assert_eq!((rules[1].0, rules[1].1), ("model-facing", 0));
    assert!(
        rules[1].2.contains("\"mcp__s__refund_1\" is held against MCP names"),
        "{}",
        rules[1].2
    );
    assert_eq!(rules[2], ("elsewhere", 0, "matches no tool"));
    assert_eq!(rules[3], ("idle", 3, "says nothing of the tools that it matches"));
}

/// Returns a policy with conditions of 200 nodes each, which differ from tool to tool.
fn one_condition_a_tool(rules: usize) -> String {
    let words = (0..200).map(|n| format!("'{n}'")).collect::<Vec<_>>().join(", ");
    let rule = |n| {
        let cel = format!("[{words}].exists(a, a + tool.name + '{n}' in state.scopes)");
        format!("  - {{name: r{n}, precondition: {{cel: \"{cel}\"}}}}\n")
    };
    format!("rules:\n{}", (0..rules).map(rule).collect::<String>())
}

#[tokio::test]
async fn a_policy_that_expands_to_too_many_conditions_is_refused() {
    let world = world(refunds(100)).await;
    world.set_policy("acme", &one_condition_a_tool(2), "").await.unwrap();
    let huge = one_condition_a_tool(40);
    for refused in [
        world.set_policy("acme", &huge, "").await.map(|_| ()),
        world.check_policy("acme", Some(&huge), AgentState::default()).await.map(|_| ()),
    ] {
        let Err(Error::InvalidFields(fields)) = refused else { panic!("{refused:?}") };
        assert!(fields[0].problem.contains("expands to more conditions"), "{fields:?}");
    }
    let verdicts = check(&world, None).await;
    assert_eq!(verdicts.len(), 100, "the policy of before is still there");
}

#[tokio::test]
async fn what_a_cap_leaves_out_is_said_to_be_so() {
    let world = world(refunds(3)).await;
    world.set_policy("acme", "defaults: {max_per_server: 1}", "").await.unwrap();
    let query = RouteQuery {
        options: Options { explain: true, top_k: 2, ..options() },
        ..ask("refund invoice")
    };
    let answer = world.route("acme", query).await;
    let codes: Vec<_> = answer.refusals.iter().map(|refusal| refusal.code).collect();
    assert_eq!((shown(&answer).len(), codes), (1, vec![RefusalCode::BeyondCap; 2]));
}

#[tokio::test]
async fn needs_are_one_text_each_where_or_would_bind_less_than_and() {
    let world = world(vec![tool("refund", "refund invoice").after("planned")]).await;
    let document = "rules: [{name: either, precondition: {cel: \"'a' in state.scopes || 'b' in state.scopes\"}}]";
    let unlock = ["milestone_reached(\"planned\")", "('a' in state.scopes || 'b' in state.scopes)"];
    let locked = row("refund", Some(RefusalCode::PreconditionUnmet), "-", &unlock);
    assert_eq!(check(&world, Some(document)).await, [locked]);
}
