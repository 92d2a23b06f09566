//! Tests of conditions: their answers, refused expressions and attacks.

use std::time::{Duration, Instant};

use serde_json::json;

use super::*;
use crate::state::{CallStatus, PriorCall};

fn state() -> AgentState {
    let call = |tool: &str, status, turn| PriorCall { tool: tool.to_owned(), status, turn };
    let attributes = json!({"plan": "pro", "seats": 3, "beta": true, "none": null,
        "teams": ["a", "b"], "nested": {"region": "eu"}});
    AgentState {
        scopes: ["repo:read".to_owned(), "repo:write".to_owned()].into(),
        calls: vec![
            call("mcp__git__git_status", CallStatus::Succeeded, 0),
            call("git_push", CallStatus::Failed, 2),
        ],
        milestones: ["planned".to_owned()].into(),
        attributes: attributes.as_object().expect("a map").clone(),
        principal: "ann".to_owned(),
        // 2026-11-20T17:05:09.250Z, a Friday.
        now_ms: 1_795_194_309_250,
        ..AgentState::default()
    }
}

fn tool() -> ToolFacts {
    ToolFacts {
        server: "git".into(),
        name: "git_push".into(),
        model_name: "mcp__git__git_push".into(),
        tags: ["write".into()].into(),
        read_only: false,
        destructive: true,
        idempotent: false,
        open_world: true,
    }
}

fn evaluate(source: &str) -> Result<bool, Fault> {
    let condition = Condition::compile(source).unwrap_or_else(|e| panic!("{source}: {e}"));
    condition.bind(&tool(), &mut 0).holds(&state(), &mut Fuel::default())
}

#[track_caller]
fn check(source: &str, expected: bool) {
    assert_eq!(evaluate(source), Ok(expected), "{source}");
}

#[track_caller]
fn refused(source: &str, line: usize, column: usize, part: &str) {
    let mistake = Condition::compile(source).expect_err(source);
    assert!(mistake.problem.contains(part), "{source}: {mistake}");
    assert_eq!((mistake.line, mistake.column), (line, column), "{source}: {mistake}");
}

#[test]
fn the_state_is_read() {
    check("'repo:read' in state.scopes", true);
    check("\"admin\" in state.scopes", false);
    check("state.milestones.size() == 1 && 'planned' in state.milestones", true);
    check(
        "state.calls.exists(c, c.tool == 'git_push' && c.status == 'failed' && c.turn == 2)",
        true,
    );
    check("state.calls.all(c, c.status == 'succeeded')", false);
    check("state.calls.exists_one(c, c.turn > 1)", true);
    check("size(state.calls.filter(c, c.status == 'failed')) >= 1", true);
    check("'git_push' in state.calls.map(c, c.tool)", true);
    check("state.calls.map(c, c.turn > 0, c.tool) == ['git_push']", true);
    check("state.calls[1].turn == 2", true);
    check("principal.id == 'ann' && principal.id.startsWith('a')", true);
}

#[test]
fn attributes_are_of_any_type() {
    check("state.attributes.plan == 'pro'", true);
    check("state.attributes['plan'] != 'free'", true);
    check("state.attributes.seats >= 3 && state.attributes.seats == 3.0", true);
    check("has(state.attributes.none) && state.attributes.none == null", true);
    check("!has(state.attributes.missing)", true);
    check("'b' in state.attributes.teams && state.attributes.teams[0] == 'a'", true);
    check("state.attributes.nested.region in ['eu', 'uk']", true);
    check("state.attributes.exists(key, key == 'plan')", true);
    check(
        "has(state.attributes.x) ? state.attributes.x == 1 : state.attributes.beta == true",
        true,
    );
}

#[test]
fn tools_and_time_are_read() {
    check("tool.server == 'git' && tool.name.endsWith('push') && 'write' in tool.tags", true);
    check("tool.annotations.destructiveHint && !tool.annotations.readOnlyHint", true);
    check("(tool.server + ':write') in state.scopes", false);
    check("tool.name.matches('^git_(push|pull)$')", true);
    check("now > timestamp('2026-11-20T00:00:00Z') && now.getHours() == 17", true);
    check("now - timestamp('2026-11-20T17:00:00Z') < duration('10m')", true);
    check("now.getDayOfWeek() in [1, 2, 3, 4, 5] && now.getFullYear() == 2026", true);
}

#[test]
fn arithmetic_and_logic() {
    check("1 + 2 * 3 == 7 && 7 / 2 == 3 && 7 % 2 == 1 && -(3) < 0", true);
    check("1.5 * 2.0 == 3.0 && 3 == 3.0 && 'a' + 'b' == 'ab' && 'b' > 'a'", true);
    check("false && state.attributes.missing == 1", false);
    check("state.attributes.missing == 1 && false", false);
    check("state.attributes.missing == 1 || true", true);
    check("[1, 2] == [1, 2] && [1] != [1, 2] && !(1 in [])", true);
}

#[test]
fn what_has_no_answer_is_a_fault() {
    assert_eq!(evaluate("state.attributes.missing == 1"), Err(Fault::NoSuchKey("missing".into())));
    assert!(matches!(evaluate("state.attributes.plan > 3"), Err(Fault::WrongType(_))));
    assert!(matches!(evaluate("!(state.attributes.seats)"), Err(Fault::WrongType(_))));
    assert_eq!(evaluate("state.calls[7].turn == 1"), Err(Fault::NoSuchElement(7)));
    assert_eq!(evaluate("1 / state.calls[0].turn == 1"), Err(Fault::DivisionByZero));
    assert_eq!(evaluate("9223372036854775807 + 1 == 0"), Err(Fault::OutOfRange));
    assert!(
        evaluate("!(state.attributes.missing == 1)").is_err(),
        "a fault is never turned around"
    );
    let first = "state.attributes.missing == 1 && state.attributes.other == 1";
    assert_eq!(evaluate(first), Err(Fault::NoSuchKey("missing".into())));
}

#[test]
fn mistakes_have_their_place() {
    refused("'a' in state.scopes &&\n  foo == 1", 2, 3, "unknown variable `foo`");
    refused("'é' == 'x' && foo == 1", 1, 15, "unknown variable `foo`");
    refused("state.scope == []", 1, 6, "no field `scope`");
    refused("tool.annotations.title == ''", 1, 17, "no field `title`");
    refused("state.calls.exists(c, c.name == 'x')", 1, 24, "no field `name`");
    refused("frobnicate(1) == 2", 1, 11, "unknown function `frobnicate` of 1 argument");
    refused("state.scopes.all(1)", 1, 17, "unknown function `all`");
    refused("state.calls.size()", 1, 17, "must be a bool");
    refused("state.attributes.beta", 1, 17, "must be a bool: compare it");
    refused("state.scopes == 3", 1, 14, "never equals");
    refused("state.calls.exists(c, c.turn == '2')", 1, 30, "a int never equals a string");
    refused("state == 3", 1, 1, "`state` is no value");
    refused("'a' < 3", 1, 5, "have no order");
    refused("true && 3", 1, 9, "must be a bool");
    refused("1 + 'a' == 2", 1, 3, "can't be taken of");
    refused("{'a': 1} == 3", 1, 1, "can't make maps");
    refused("1u == 1", 1, 1, "unsigned");
    refused("b'a' == b'a'", 1, 1, "no bytes");
    refused("a +", 1, 4, "syntax error");
    refused("", 1, 1, "syntax error");
    refused("1 == 1 )", 1, 8, "syntax error");
}

#[test]
fn patterns_are_literal_and_small() {
    refused("principal.id.matches(state.attributes.p)", 1, 38, "literal");
    refused("principal.id.matches('(')", 1, 22, "pattern is wrong");
    refused("principal.id.matches('(a{50}){50}')", 1, 22, "states");
    refused("principal.id.matches('a{1000000}')", 1, 22, "states");
    refused(&format!("principal.id.matches('{}')", "a".repeat(300)), 1, 22, "bytes");
    refused("principal.id.matches('(a)\\\\1')", 1, 22, "backreferences");
    check("principal.id.matches('^(a+)+n*$')", true);
}

#[test]
fn what_cannot_be_bounded_is_refused() {
    let nested = "state.calls.all(a, state.calls.all(b, state.calls.all(c, a.turn < c.turn)))";
    refused(nested, 1, 1, "steps");
    let doubled = "state.scopes.map(a, state.scopes.map(b, state.scopes.map(c, a + b + c))) == []";
    refused(doubled, 1, 1, "steps");
    let long = format!("'{}' == principal.id", "x".repeat(SOURCE_MAX));
    refused(&long, 1, 1, "bytes; at most");
    for bomb in [
        format!("{}true{}", "(".repeat(900), ")".repeat(900)),
        format!("{}true", "!".repeat(2_000)),
        format!("{}1 == 1", "-".repeat(2_000)),
        format!("[{}] == []", vec!["1"; 900].join(",")),
        format!("1{} == 1", "+1".repeat(900)),
        format!("state{}", ".a".repeat(1_000)),
        format!("state.attributes{} == 1", ".a".repeat(900)),
        format!("state.calls{} == []", "[0]".repeat(600)),
        vec!["true"; 300].join("&&"),
        "true?true:".repeat(200),
        "a.map(x, ".repeat(200),
        "?:".repeat(900),
        "\u{0}\u{1}\"".to_owned(),
    ] {
        // Accepted or refused, but at once and without a crash.
        let started = Instant::now();
        if let Ok(condition) = Condition::compile(&bomb) {
            let _ = condition.holds(&state(), &mut Fuel::default());
        }
        assert!(started.elapsed() < Duration::from_secs(60), "{}", &bomb[..20.min(bomb.len())]);
    }
}

/// Returns the largest states that the edge accepts, one for each kind of content.
fn large_states() -> Vec<AgentState> {
    let call = |n: usize| PriorCall { tool: format!("t{n}"), status: CallStatus::Unknown, turn: 0 };
    let calls = AgentState { calls: (0..30_000).map(call).collect(), ..AgentState::default() };
    let scopes = (0..20_000).map(|n| format!("s{n}")).collect();
    let scopes = AgentState { scopes, ..AgentState::default() };
    let list: Vec<_> = (0..20_000).collect();
    let text = format!("{}b", "a".repeat(60_000));
    let attributes =
        json!({ "list": list, "text": text, "other": format!("{}c", "a".repeat(60_000)) });
    let attributes = attributes.as_object().expect("a map").clone();
    vec![calls, scopes, AgentState { attributes, ..AgentState::default() }]
}

#[test]
fn evaluation_stops_within_its_budget() {
    let bombs = [
        "state.calls.all(a, state.calls.all(b, a.tool != b.tool || a.turn == b.turn))",
        "state.scopes.map(a, a + a).map(a, a + a).map(a, a + a).map(a, a + a).size() > 0",
        "state.scopes.filter(a, state.scopes.exists(b, a == b + 'x')).size() > 0",
        "state.attributes.list.all(a, a in state.attributes.list)",
        "state.attributes.list.all(a, state.attributes.list == state.attributes.list)",
        "state.attributes.list.all(a, state.attributes.text < state.attributes.other)",
        "state.attributes.list.all(a, !state.attributes.text.contains('aaaaaaaaac'))",
        "state.attributes.list.all(a, state.attributes.text.matches('^(a|aa)+$'))",
        "state.attributes.list.all(a, state.attributes.text.matches('[ab]*a[ab]{12}c'))",
        "state.attributes.list.all(a, size(state.attributes.text) > 0)",
        "state.attributes.list.all(a, state.scopes[19999] == 'x')",
        "state.calls.map(c, [c, c, c, c]).map(l, [l, l, l]).size() > 0",
    ];
    for (n, state) in large_states().iter().enumerate() {
        let mut fuel = Fuel::default();
        let started = Instant::now();
        for source in bombs {
            let condition = Condition::compile(source).expect(source);
            let before = fuel.spent();
            let _ = condition.holds(state, &mut fuel);
            assert!(fuel.spent() - before <= STEPS_A_CONDITION, "{source}");
        }
        assert!(fuel.spent() <= STEPS_A_CALL);
        // An evaluation without a bound takes hours.
        assert!(started.elapsed() < Duration::from_secs(60), "state {n}: {:?}", started.elapsed());
    }
}

#[test]
fn a_spent_budget_is_a_fault_for_all_that_follow() {
    let state = &large_states()[0];
    let mut fuel = Fuel::default();
    let bomb = "state.calls.all(a, state.calls.all(b, a.tool != b.tool || a.turn == b.turn))";
    let bomb = Condition::compile(bomb).expect("a condition");
    while fuel.spent() < STEPS_A_CALL {
        assert_eq!(bomb.holds(state, &mut fuel), Err(Fault::OutOfSteps));
    }
    assert_eq!(Condition::scope("x").holds(state, &mut fuel), Err(Fault::OutOfSteps));
}

#[test]
fn binding_settles_what_only_the_tool_decides() {
    let bound = |source: &str| Condition::compile(source).expect(source).bind(&tool(), &mut 0);
    assert_eq!(bound("tool.server == 'git'").settled(), Some(true));
    assert_eq!(bound("tool.annotations.readOnlyHint || 'x' in tool.tags").settled(), Some(false));
    assert_eq!(bound("'a' in state.scopes").settled(), None);
    let left = bound("tool.annotations.destructiveHint && 'a' in state.scopes");
    assert_eq!(left, Condition::scope("a"), "what is left is shared with others");
    assert_eq!(bound("(tool.server + ':write') in state.scopes"), Condition::scope("git:write"));
    assert_eq!(
        bound("tool.name == 'x' ? 'a' in state.scopes : 'b' in state.scopes"),
        Condition::scope("b")
    );
    assert!(bound("1 / 0 == 1").settled().is_none(), "a fault is for the evaluation");
}

#[test]
fn named_predicates_are_conditions() {
    let holds = |condition: Condition| condition.holds(&state(), &mut Fuel::default());
    assert_eq!(holds(Condition::scope("repo:read")), Ok(true));
    assert_eq!(holds(Condition::milestone("other")), Ok(false));
    assert_eq!(holds(Condition::prior_output("git_status")), Ok(true));
    assert_eq!(holds(Condition::prior_output("git_push")), Ok(false), "it failed");
    let both = [Condition::scope("repo:read"), Condition::milestone("other")];
    assert_eq!(holds(Condition::all(&both)), Ok(false));
    assert_eq!(holds(Condition::any(&both)), Ok(true));
    assert_eq!(holds(Condition::negation(&both[1])), Ok(true));
    assert_eq!(
        Condition::any(&both).to_string(),
        "any(is_authenticated(\"repo:read\"), milestone_reached(\"other\"))"
    );
}
