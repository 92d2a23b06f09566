//! Fuzz target for policy documents and CEL expressions. Any input gives a policy, or mistakes that name the problem.
//! An accepted condition is evaluated within its limit of steps.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use serde_json::json;
use toolgate_core::condition::{Condition, Fuel, STEPS_A_CALL, ToolFacts};
use toolgate_core::policy::Policy;
use toolgate_core::state::{AgentState, CallStatus, PriorCall};

static STATE: LazyLock<AgentState> = LazyLock::new(|| {
    let attributes = json!({"a": 1, "b": "text", "c": ["x", {"d": null}], "e": {"f": true}});
    let call = |n: u32| PriorCall { tool: format!("t{n}"), status: CallStatus::Succeeded, turn: n };
    AgentState {
        scopes: (0..50).map(|n| format!("s{n}")).collect(),
        calls: (0..50).map(call).collect(),
        milestones: ["m".to_owned()].into(),
        attributes: attributes.as_object().expect("a map").clone(),
        principal: "ann".to_owned(),
        now_ms: 1_795_194_309_250,
        ..AgentState::default()
    }
});

static TOOL: LazyLock<ToolFacts> = LazyLock::new(|| ToolFacts {
    server: "git".into(),
    name: "push".into(),
    model_name: "mcp__git__push".into(),
    tags: ["prod".into()].into(),
    read_only: false,
    destructive: true,
    idempotent: false,
    open_world: true,
});

fuzz_target!(|input: &[u8]| {
    let text = String::from_utf8_lossy(input);
    match Policy::parse(&text) {
        Ok(policy) => {
            for rule in &policy.rules {
                let _ = rule.matches(&TOOL, &mut 0);
                settle(&rule.conditions);
            }
        }
        Err(mistakes) => assert!(!mistakes.is_empty() && mistakes.len() <= 16),
    }
    match Condition::compile(&text) {
        Ok(condition) => settle(&[condition]),
        Err(mistake) => assert!(mistake.line >= 1 && mistake.column >= 1, "{mistake}"),
    }
});

fn settle(conditions: &[Condition]) {
    let mut fuel = Fuel::default();
    for condition in conditions {
        let bound = condition.bind(&TOOL, &mut 0);
        let answer = bound.holds(&STATE, &mut fuel);
        if let Some(settled) = bound.settled() {
            assert_eq!(answer, Ok(settled));
        }
    }
    assert!(fuel.spent() <= STEPS_A_CALL);
}
