//! Tests of what earlier calls of the agent do to a ranking.

use super::*;
use crate::test_catalog::{TestTool, candidate, snapshot, tool};
use toolgate_core::state::PriorCall;

/// Returns the calls of these names, one a turn.
fn called_in_turn(names: &[&str]) -> AgentState {
    let call = |(turn, name): (u32, &&str)| PriorCall {
        tool: (*name).to_owned(),
        status: CallStatus::Succeeded,
        turn,
    };
    AgentState { calls: (0..).zip(names).map(call).collect(), ..AgentState::default() }
}

/// Returns four tools: slots 0 and 1 of `s`, 2 and 3 of `t`. Both servers have a tool `list`.
fn tools() -> [TestTool; 4] {
    [tool("s", "read"), tool("s", "list"), tool("t", "write"), tool("t", "list")]
}

/// Returns slot, score and lift of the candidates, best first, after these calls. Slots from 0 have these scores.
fn leaning(calls: &[&str], untrusted: &[&str], scores: &[f32]) -> Vec<(u32, f32, f32)> {
    let snapshot = snapshot(&tools(), untrusted);
    let mut candidates: Vec<Candidate> =
        (0..).zip(scores).map(|(slot, score)| candidate(slot, *score)).collect();
    lean(&snapshot, &called_in_turn(calls), &mut candidates);
    candidates.iter().map(|one| (one.slot, one.score, one.parts.last_called)).collect()
}

fn order(ranked: &[(u32, f32, f32)]) -> Vec<u32> {
    ranked.iter().map(|(slot, ..)| *slot).collect()
}

#[test]
fn tools_of_the_server_that_was_called_last_are_lifted() {
    let scores = [0.5, 0.3, 0.45, 0.1];
    let ranked = leaning(&["mcp__s__read", "mcp__t__list"], &[], &scores);
    assert_eq!(order(&ranked), [2, 0, 1, 3]);
    let (_, score, lift) = ranked[0];
    assert!((score - 0.55).abs() < 1e-6 && (lift - 0.1).abs() < 1e-6);
    assert_eq!(ranked[1], (0, 0.5, 0.0), "the call before does not count");
}

#[test]
fn a_call_that_means_no_server_lifts_nothing() {
    let scores = [0.5, 0.3, 0.45, 0.1];
    let plain = [(0, 0.5, 0.0), (1, 0.3, 0.0), (2, 0.45, 0.0), (3, 0.1, 0.0)];
    for calls in [&[][..], &["nothing"], &["list"], &["write", "nothing"]] {
        assert_eq!(leaning(calls, &[], &scores), plain, "{calls:?}");
    }
    assert_eq!(order(&leaning(&["write"], &[], &scores))[0], 2, "an MCP name of one server");
}

#[test]
fn an_untrusted_tool_is_lifted_to_the_best_of_the_others_at_most() {
    let ranked = leaning(&["write"], &["t"], &[0.5, 0.3, 0.45, 0.1]);
    assert_eq!(order(&ranked), [0, 2, 1, 3]);
    assert!((ranked[1].1 - 0.5).abs() < 1e-6);
    assert!((ranked[3].2 - 0.1).abs() < 1e-6, "the whole amount further down");
    let ranked = leaning(&["write"], &["t"], &[0.2, 0.1, 0.9, 0.85]);
    assert_eq!(ranked[..2], [(2, 0.9, 0.0), (3, 0.85, 0.0)], "nothing is taken from them");
    let ranked = leaning(&["write"], &["s", "t"], &[0.5, 0.3, 0.45, 0.1]);
    assert_eq!(order(&ranked)[0], 2, "there are no others");
}

#[test]
fn a_named_tool_is_neither_lifted_nor_the_best_of_the_others() {
    let snapshot = snapshot(&tools(), &["t"]);
    let named = Candidate { found_by: FoundBy::Name, ..candidate(0, 4.5) };
    let mut candidates = [named, candidate(1, 0.4), candidate(2, 0.35)];
    lean(&snapshot, &called_in_turn(&["write"]), &mut candidates);
    assert!((candidates[2].score - 0.4).abs() < 1e-6, "{candidates:?}");
    lean(&snapshot, &called_in_turn(&["read"]), &mut candidates);
    assert!((candidates[0].score - 4.5).abs() < 1e-6);
}

#[test]
fn candidates_know_the_last_eight_calls() {
    let snapshot = snapshot(&tools(), &[]);
    let noted = |calls: &[&str]| {
        let mut candidates = [candidate(0, 0.5), candidate(1, 0.4), candidate(2, 0.3)];
        note(&snapshot, &called_in_turn(calls), &mut candidates);
        candidates.map(|one| (one.recent.called, one.recent.server_called))
    };
    assert_eq!(noted(&[]), [(false, false); 3]);
    assert_eq!(noted(&["mcp__s__read"]), [(true, true), (false, true), (false, false)]);
    let mut calls = ["write"; 9];
    calls[0] = "read";
    assert_eq!(noted(&calls), [(false, false), (false, false), (true, true)]);
    assert_eq!(noted(&calls[..8]), [(true, true), (false, true), (true, true)]);
}

#[test]
fn tools_called_with_success_are_known_unless_the_name_is_shared() {
    let snapshot = snapshot(&tools(), &[]);
    let mut state = called_in_turn(&["read", "read", "list", "t/list", "nothing", "write"]);
    state.calls[5].status = CallStatus::Failed;
    assert_eq!(succeeded(&snapshot, &state), HashSet::from([0, 3]));
    state.calls[5].status = CallStatus::Unknown;
    assert_eq!(succeeded(&snapshot, &state), HashSet::from([0, 3]));
}

#[test]
fn the_servers_that_were_called_last_are_each_named_once() {
    let snapshot = snapshot(&tools(), &[]);
    let servers = |calls: &[&str], most| {
        let state = called_in_turn(calls);
        let names = last_servers(&snapshot, &state, most).into_iter();
        names.map(ServerName::as_str).collect::<Vec<_>>()
    };
    let calls = ["read", "write", "list", "mcp__t__list", "nothing"];
    assert_eq!(servers(&calls, 2), ["t", "s"]);
    assert_eq!(servers(&calls, 1), ["t"]);
    assert!(servers(&["list", "nothing"], 2).is_empty(), "several servers, or none");
}
