//! Tests of the choice of an active set: by rank, kept from the previous turn, required, and without deferral.

use std::time::{Duration, SystemTime};

use super::*;
use crate::gate::visibility::Visibilities;
use crate::router::intent::Intent;
use crate::router::ranking::cut::Shortfall;
use crate::test_catalog::{QUERY, TestCatalog, TestTool, candidate, tool};
use toolgate_core::identity::ServerName;
use toolgate_core::state::{CallStatus, PriorCall};

/// Overlaps of the six tools of [`tools`].
const OVERLAPS: [f32; 6] = [0.9, 0.8, 0.7, 0.6, 0.5, 0.1];

/// Definition that no tool of a test has.
const OTHER: [u8; 32] = [0xF0; 32];

/// Returns six tools of 10 tokens, `mcp__s__a` to `mcp__s__f`.
fn tools() -> [TestTool; 6] {
    ["a", "b", "c", "d", "e", "f"].map(|name| tool("s", name))
}

fn catalog() -> Snapshot {
    ruled("")
}

/// Returns the six tools under a policy of these rules.
fn ruled(rules: &str) -> Snapshot {
    let policy = if rules.is_empty() { String::new() } else { format!("rules:\n{rules}") };
    TestCatalog { tools: &tools(), overlaps: &OVERLAPS, policy: &policy, ..TestCatalog::default() }
        .snapshot()
}

/// Returns candidates of these slots with the overlaps of the catalog, the first of which leads.
fn candidates(slots: &[u32]) -> Vec<Candidate> {
    let of = |slot: &u32| candidate(*slot, OVERLAPS[*slot as usize]);
    let mut candidates: Vec<Candidate> = slots.iter().map(of).collect();
    candidates.iter_mut().take(1).for_each(|first| first.leads = true);
    candidates
}

fn query(top_k: usize) -> RouteQuery {
    let mut query = RouteQuery::of(vec![Intent::undivided("please".to_owned(), 1.0)]);
    query.options.top_k = top_k;
    query
}

fn shown(snapshot: &Snapshot, slot: u32) -> ShownTool {
    let tool = snapshot.tool(slot);
    ShownTool::new(tool.key, &tool.hash)
}

fn previous(tools: Vec<ShownTool>) -> ActiveSet {
    ActiveSet::new(1, tools, SystemTime::UNIX_EPOCH, Duration::from_secs(60))
}

/// Previous turn in which these tools were shown.
fn turn_of(snapshot: &Snapshot, slots: &[u32]) -> ActiveSet {
    previous(slots.iter().map(|slot| shown(snapshot, *slot)).collect())
}

/// Makes the choice, with tools deferred or not.
fn make(
    snapshot: &Snapshot,
    query: &RouteQuery,
    previous: Option<&ActiveSet>,
    candidates: &[Candidate],
    deferred: bool,
) -> Outcome {
    let visibilities = Visibilities::of(snapshot, &query.state);
    let allowed = Allowed::new(snapshot, visibilities, &query.options, &[]).expect("known servers");
    let vectors = [QUERY.to_vec()];
    let embedded = Embedded::new(&query.intents, &vectors);
    let choice = Choice::new(snapshot, &allowed, &embedded, query, Level::NONE);
    choice.make(previous, candidates, deferred)
}

/// Chooses for the first turn of a conversation.
fn first(snapshot: &Snapshot, query: &RouteQuery, slots: &[u32]) -> Outcome {
    make(snapshot, query, None, &candidates(slots), true)
}

/// Chooses for a turn that follows one in which `kept` were shown.
fn next(snapshot: &Snapshot, query: &RouteQuery, kept: &[u32], slots: &[u32]) -> Outcome {
    make(snapshot, query, Some(&turn_of(snapshot, kept)), &candidates(slots), true)
}

fn slots(outcome: &Outcome) -> Vec<u32> {
    outcome.active.iter().map(|chosen| chosen.slot).collect()
}

fn left_out(outcome: &Outcome) -> Vec<(u32, RefusalCode)> {
    outcome.left_out.iter().map(|one| (one.slot.expect("a known tool"), one.code)).collect()
}

fn call(tool: &str, turn: u32) -> PriorCall {
    PriorCall { tool: tool.to_owned(), status: CallStatus::Succeeded, turn }
}

#[test]
fn the_best_that_pass_the_cut_are_chosen_up_to_top_k() {
    let outcome = first(&catalog(), &query(2), &[0, 1, 2, 5]);
    assert_eq!(slots(&outcome), [0, 1]);
    assert!(outcome.active.iter().all(|one| one.newly_promoted && !one.is_brief));
    let below = RefusalCode::BelowCutoff;
    assert_eq!(left_out(&outcome), [(2, RefusalCode::BeyondTopK), (5, below)]);
    assert_eq!(outcome.left_out[1].shortfall, Some(Shortfall::Ratio(0.5)));
    assert!((outcome.left_out[1].overlap - 0.1).abs() < 1e-6);
}

#[test]
fn each_intents_best_has_a_place_before_better_tools_of_another() {
    let mut candidates = candidates(&[0, 1, 2, 5]);
    candidates[3].leads = true;
    let outcome = make(&catalog(), &query(2), None, &candidates, true);
    assert_eq!(slots(&outcome), [0, 5], "in the order of their scores");
}

#[test]
fn a_chosen_tool_has_the_overlap_of_the_catalog_and_the_score_of_its_rank() {
    let mut candidates = candidates(&[0]);
    candidates[0].score = 0.75;
    let mut query = query(1);
    query.options.pinned = vec!["s/b".to_owned()];
    let outcome = make(&catalog(), &query, None, &candidates, true);
    let pinned = outcome.active[0];
    let ranked = outcome.active[1];
    assert_eq!((pinned.found_by, ranked.found_by), (FoundBy::Pin, FoundBy::Overlap));
    assert!((ranked.overlap - 0.9).abs() < 1e-5 && (ranked.score - 0.75).abs() < 1e-6);
    assert!((pinned.overlap - 0.8).abs() < 1e-5 && (pinned.score - 0.8).abs() < 1e-5);
}

#[test]
fn a_tool_without_room_leaves_its_place_to_the_next() {
    let mut tools = tools();
    tools[1].schema_tokens = 100;
    let snapshot = TestCatalog { tools: &tools, overlaps: &OVERLAPS, ..TestCatalog::default() };
    let mut query = query(2);
    query.options.schema_token_budget = Some(25);
    let outcome = first(&snapshot.snapshot(), &query, &[0, 1, 2, 3]);
    assert_eq!(slots(&outcome), [0, 2]);
    let code = RefusalCode::OverTokenBudget;
    assert_eq!(left_out(&outcome), [(1, code), (3, RefusalCode::BeyondTopK)]);
}

#[test]
fn definitions_take_no_more_bytes_than_an_answer_has() {
    let mut query = query(3);
    query.options.message_max = 400;
    let outcome = first(&catalog(), &query, &[0, 1]);
    assert_eq!(slots(&outcome), [0]);
    assert_eq!(left_out(&outcome), [(1, RefusalCode::OverTokenBudget)]);
    assert_eq!(outcome.left_out[0].limit, Some(answer_size::LIMIT));
    let outcome = next(&catalog(), &query, &[2, 3], &[]);
    assert_eq!((slots(&outcome), &outcome.change.removed[..]), (vec![2], &[3][..]));
    assert_eq!(left_out(&outcome), [(3, RefusalCode::OverTokenBudget)]);
    assert_eq!(outcome.left_out[0].limit, Some(answer_size::LIMIT));
}

#[test]
fn words_alone_cut_nothing() {
    let snapshot = TestCatalog { tools: &tools(), ..TestCatalog::default() }.snapshot();
    let outcome = first(&snapshot, &query(3), &[0, 5]);
    assert_eq!(slots(&outcome), [0, 5]);
}

#[test]
fn kept_tools_stay_in_their_places_before_better_ones() {
    let outcome = next(&catalog(), &query(3), &[3, 1], &[0, 1]);
    assert_eq!(slots(&outcome), [3, 1, 0]);
    let of = |one: &Chosen| (one.found_by, one.newly_promoted);
    let kept = (FoundBy::Kept, false);
    let states: Vec<_> = outcome.active.iter().map(of).collect();
    assert_eq!(states, [kept, kept, (FoundBy::Overlap, true)]);
    assert!(outcome.change.removed.is_empty());
}

#[test]
fn kept_tools_that_the_turn_does_not_need_go_when_new_ones_need_the_places() {
    let snapshot = catalog();
    let outcome = next(&snapshot, &query(2), &[3, 1, 4], &[0, 1]);
    assert_eq!((slots(&outcome), outcome.change.removed), (vec![1, 0], vec![3, 4]));
    let outcome = next(&snapshot, &query(2), &[3, 1], &[1]);
    assert_eq!(slots(&outcome), [3, 1], "nothing new joins");
    let mut called = query(3);
    called.state.calls = vec![call("mcp__s__d", 4)];
    let outcome = next(&snapshot, &called, &[3, 4], &[0, 1]);
    assert_eq!(slots(&outcome), [3, 0, 1], "a tool that was called lately goes last");
}

#[test]
fn a_new_tool_over_the_limit_takes_all_unneeded_ones_along() {
    let mut query = query(2);
    query.options.active_set_limit = Some(3);
    let outcome = next(&catalog(), &query, &[3, 1, 4], &[0, 1]);
    assert_eq!((slots(&outcome), outcome.change.removed), (vec![1, 0], vec![3, 4]));
}

#[test]
fn a_set_over_its_budget_is_trimmed_before_pinned_tools_join() {
    let mut tools = tools();
    tools[5].schema_tokens = 20;
    let catalog = TestCatalog { tools: &tools, overlaps: &OVERLAPS, ..TestCatalog::default() };
    let mut query = query(3);
    query.options.active_token_budget = Some(25);
    query.options.history_tokens = Some(10_000);
    query.options.pinned = vec!["s/b".to_owned()];
    let outcome = next(&catalog.snapshot(), &query, &[5, 0], &[]);
    assert_eq!((slots(&outcome), outcome.change.removed), (vec![0, 1], vec![5]));
}

#[test]
fn a_kept_tool_that_the_turn_wants_as_a_signature_is_needed() {
    let mut query = query(1);
    query.options.signature_tail = 1;
    query.options.active_set_limit = Some(6);
    query.options.history_tokens = Some(0);
    let outcome = next(&catalog(), &query, &[1, 3], &[0, 1]);
    let briefs: Vec<_> = outcome.active.iter().map(|one| (one.slot, one.is_brief)).collect();
    assert_eq!(briefs, [(1, false), (0, false)]);
    assert_eq!(outcome.change.removed, [3]);
}

#[test]
fn a_changed_definition_is_shown_again_at_the_end() {
    let snapshot = catalog();
    let changed = ShownTool::new(snapshot.tool(0).key, &OTHER);
    let before = previous(vec![changed, shown(&snapshot, 1)]);
    let outcome = make(&snapshot, &query(3), Some(&before), &[], true);
    assert_eq!(slots(&outcome), [1, 0]);
    let of = |one: &Chosen| (one.found_by, one.newly_promoted);
    let states: Vec<_> = outcome.active.iter().map(of).collect();
    assert_eq!(states, [(FoundBy::Kept, false), (FoundBy::Kept, true)]);
}

#[test]
fn tools_that_may_no_longer_run_go_and_hidden_ones_go_silently() {
    let snapshot = ruled(
        "- {name: locks, match: {tools: [b]}, precondition: {milestone_reached: approved}}\n\
         - {name: hides, match: {tools: [c]}, required_scopes: [admin]}",
    );
    let outcome = next(&snapshot, &query(3), &[0, 1, 2], &[]);
    assert_eq!((slots(&outcome), outcome.change.removed), (vec![0], vec![1]));
    let gone = ShownTool::new([9; 16], &OTHER);
    let outcome = make(&snapshot, &query(3), Some(&previous(vec![gone])), &[], true);
    assert!(outcome.active.is_empty() && outcome.change.removed.is_empty());
}

#[test]
fn a_tool_that_the_model_asked_for_is_held_and_takes_no_place_of_the_turn() {
    let snapshot = catalog();
    let held = previous(vec![shown(&snapshot, 3).held_for(2), shown(&snapshot, 4)]);
    let outcome = make(&snapshot, &query(1), Some(&held), &candidates(&[0]), true);
    assert_eq!((slots(&outcome), &outcome.change.removed[..]), (vec![3, 0], &[4][..]));
    assert_eq!(outcome.active[0].held_for, 2);
    let next = outcome.active[0].shown(&snapshot);
    assert_eq!(next.routes_held(&snapshot.tool(3).hash), 1, "one Route call is used up");
}

#[test]
fn a_signature_that_is_wanted_again_becomes_a_definition_at_the_end() {
    let snapshot = catalog();
    let of_b = snapshot.tool(1);
    let before = previous(vec![ShownTool::by_signature(of_b.key, &of_b.hash), shown(&snapshot, 0)]);
    let outcome = make(&snapshot, &query(3), Some(&before), &[], true);
    let briefs: Vec<_> = outcome.active.iter().map(|one| (one.slot, one.is_brief)).collect();
    assert_eq!(briefs, [(1, true), (0, false)], "nobody wants it");
    assert!(outcome.active[0].shown(&snapshot).is_signature_of(&of_b.hash));
    let outcome = make(&snapshot, &query(3), Some(&before), &candidates(&[1]), true);
    let briefs: Vec<_> = outcome.active.iter().map(|one| (one.slot, one.is_brief)).collect();
    assert_eq!(briefs, [(0, false), (1, false)]);
}

#[test]
fn a_set_whose_cache_counts_is_not_changed_for_tools_that_fit_no_better() {
    let snapshot = catalog();
    let mut query = query(3);
    let outcome = next(&snapshot, &query, &[0], &[0, 1]);
    assert_eq!(slots(&outcome), [0, 1], "nobody counts the cache");
    query.options.history_tokens = Some(10_000);
    let outcome = next(&snapshot, &query, &[0], &[0, 1]);
    assert_eq!(slots(&outcome), [0]);
    assert_eq!(left_out(&outcome), [(1, RefusalCode::KeptForCache)]);
    assert!(outcome.change.kept_for_cache);
    let outcome = next(&snapshot, &query, &[0], &[1, 0, 2]);
    assert_eq!(slots(&outcome), [0, 1, 2], "the best of an intent is worth the cache");
    let mut worded = candidates(&[0, 1]);
    worded[1].found_by = FoundBy::Words;
    let outcome = make(&snapshot, &query, Some(&turn_of(&snapshot, &[0])), &worded, true);
    assert_eq!(slots(&outcome), [0, 1], "so is a tool found by words");
    let changed = ShownTool::new(snapshot.tool(5).key, &OTHER);
    let before = previous(vec![shown(&snapshot, 0), changed]);
    let outcome = make(&snapshot, &query, Some(&before), &candidates(&[0, 1]), true);
    assert_eq!(slots(&outcome), [0, 5, 1], "the cache is lost anyway");
}

#[test]
fn unneeded_tools_at_the_end_go_for_a_tool_of_the_message() {
    let snapshot = catalog();
    let mut query = query(3);
    query.options.history_tokens = Some(1_000);
    assert_eq!(slots(&next(&snapshot, &query, &[0, 3], &[1, 0])), [0, 1]);
    let mut of_context = candidates(&[1, 0]);
    of_context[0].from_context = true;
    let before = turn_of(&snapshot, &[0, 3]);
    let outcome = make(&snapshot, &query, Some(&before), &of_context, true);
    assert_eq!(slots(&outcome), [0, 3, 1], "context is not worth it");
}

#[test]
fn under_a_budget_tools_that_the_conversation_left_make_room() {
    let snapshot = catalog();
    let mut query = query(3);
    query.options.active_token_budget = Some(20);
    let outcome = next(&snapshot, &query, &[5, 0], &[0, 1]);
    assert_eq!((slots(&outcome), outcome.change.removed), (vec![0, 1], vec![5]));
    query.options.active_token_budget = Some(10);
    let mut first = candidates(&[5, 1]);
    first[0].score = 0.95;
    let outcome = make(&snapshot, &query, Some(&turn_of(&snapshot, &[5])), &first, true);
    assert_eq!(slots(&outcome), [5], "it is chosen again, before the other");
    assert_eq!(left_out(&outcome), [(1, RefusalCode::OverTokenBudget)]);
}

#[test]
fn under_a_budget_named_and_pinned_tools_stay() {
    let snapshot = catalog();
    let mut query = query(3);
    query.options.active_token_budget = Some(10);
    let outcome = next(&snapshot, &query, &[5, 0], &[]);
    assert_eq!(slots(&outcome), [0]);
    let mut named = candidates(&[5]);
    named[0].found_by = FoundBy::Name;
    let outcome = make(&snapshot, &query, Some(&turn_of(&snapshot, &[5, 0])), &named, true);
    assert_eq!(slots(&outcome), [5, 0]);
    let pinned = ruled("- {name: pins, match: {tools: [f]}, pinned: true}");
    assert_eq!(slots(&next(&pinned, &query, &[5, 0], &[])), [5, 0]);
}

#[test]
fn context_adds_one_tool_to_a_set_and_only_if_it_leads() {
    let snapshot = catalog();
    let mut candidates = candidates(&[3, 0, 1, 2]);
    for of_context in &mut candidates[1..] {
        of_context.from_context = true;
    }
    candidates[2].leads = true;
    let before = turn_of(&snapshot, &[4]);
    let mut query = query(5);
    let outcome = make(&snapshot, &query, Some(&before), &candidates, true);
    assert_eq!(slots(&outcome), [4, 1, 3]);
    let outcome = make(&snapshot, &query, None, &candidates, true);
    assert_eq!(slots(&outcome), [0, 1, 2, 3], "there is no set to keep yet");
    candidates[2].leads = false;
    query.options.top_k = 4;
    let outcome = make(&snapshot, &query, Some(&before), &candidates, true);
    assert_eq!(slots(&outcome), [4, 3]);
}

#[test]
fn discovered_tools_are_sent_again_until_they_were_called() {
    let snapshot = catalog();
    let mut query = query(1);
    query.state.discovered = vec!["mcp__s__c".to_owned(), "mcp__s__nothing".to_owned()];
    let outcome = first(&snapshot, &query, &[0]);
    assert_eq!(slots(&outcome), [2, 0]);
    assert_eq!(outcome.active[0].found_by, FoundBy::Kept);
    query.state.calls = vec![call("mcp__s__c", 1), call("mcp__s__f", 9)];
    assert_eq!(slots(&first(&snapshot, &query, &[0])), [0], "it was called long ago");
    query.state.calls[0].turn = 8;
    let outcome = make(&snapshot, &query, None, &[], true);
    assert_eq!(slots(&outcome), [2], "it was called lately");
    query.options.history_tokens = Some(100);
    let outcome = next(&snapshot, &query, &[0], &[]);
    assert_eq!(slots(&outcome), [0], "the cache of this set is counted");
}

#[test]
fn only_the_last_discovered_tools_have_places_beside_a_turns_own() {
    let snapshot = catalog();
    let mut query = query(1);
    query.options.active_set_limit = Some(3);
    query.state.discovered = ["d", "e", "f"].map(|name| format!("mcp__s__{name}")).to_vec();
    assert_eq!(slots(&first(&snapshot, &query, &[0])), [4, 5, 0]);
    query.state.calls = vec![call("mcp__s__d", 1), call("mcp__s__e", 1)];
    query.state.discovered.pop();
    let outcome = make(&snapshot, &query, None, &[], true);
    assert_eq!(slots(&outcome), [4], "as many called tools as a turn has");
}

#[test]
fn always_loaded_tools_come_whatever_their_rank_within_a_limit_of_their_own() {
    let snapshot = ruled("- {name: always, match: {tools: [e, f]}, always_load: true}");
    let mut query = query(1);
    let outcome = first(&snapshot, &query, &[0]);
    assert_eq!(slots(&outcome), [4, 5, 0]);
    assert_eq!(outcome.active[0].found_by, FoundBy::AlwaysLoad);
    query.options.schema_token_budget = Some(0);
    assert_eq!(slots(&first(&snapshot, &query, &[0])), [4, 5], "no budget binds them");
    query.options.schema_token_budget = None;
    query.options.always_load_tokens = 15;
    let outcome = first(&snapshot, &query, &[0]);
    assert_eq!(slots(&outcome), [4, 0]);
    assert_eq!(left_out(&outcome), [(5, RefusalCode::OverTokenBudget)]);
    assert_eq!(outcome.left_out[0].limit, Some("router.always_load_tokens"));
}

#[test]
fn the_policy_and_the_request_pin_tools() {
    let rules = "- {name: pins, match: {tools: [b, f]}, pinned: true}\n\
                 - {name: locks, match: {tools: [b]}, precondition: {milestone_reached: approved}}\n\
                 - {name: hides, match: {tools: [c]}, required_scopes: [admin]}";
    let snapshot = ruled(rules);
    let mut query = query(1);
    query.options.pinned = ["s/e", "s/b", "s/c", "s/d", "s/nothing"].map(str::to_owned).to_vec();
    query.options.excluded = vec!["s/d".to_owned()];
    let outcome = first(&snapshot, &query, &[0]);
    assert_eq!(slots(&outcome), [5, 4, 0]);
    assert_eq!(outcome.active[1].found_by, FoundBy::Pin);
    let of = |one: &LeftOut| (one.asked_for.clone(), one.slot, one.code);
    let left_out: Vec<_> = outcome.left_out.iter().map(of).collect();
    let unknown = RefusalCode::UnknownTool;
    let wanted = [
        ("s/b", Some(1), RefusalCode::PreconditionUnmet),
        ("s/c", None, unknown),
        ("s/d", Some(3), RefusalCode::Excluded),
        ("s/nothing", None, unknown),
    ];
    assert_eq!(left_out, wanted.map(|(name, slot, code)| (name.to_owned(), slot, code)));
}

#[test]
fn a_tool_of_another_server_than_the_request_wants_is_excluded() {
    let tools = [tool("s", "a"), tool("t", "b")];
    let snapshot = TestCatalog { tools: &tools, ..TestCatalog::default() }.snapshot();
    let mut query = query(1);
    query.options.servers = vec![ServerName::parse("s").expect("a name")];
    query.options.pinned = vec!["t/b".to_owned()];
    let outcome = make(&snapshot, &query, None, &[], true);
    assert_eq!(left_out(&outcome), [(1, RefusalCode::Excluded)]);
}

#[test]
fn the_next_candidates_are_sent_as_signatures() {
    let mut query = query(1);
    query.options.signature_tail = 2;
    let outcome = first(&catalog(), &query, &[0, 1, 5, 4]);
    let briefs: Vec<_> = outcome.active.iter().map(|one| (one.slot, one.is_brief)).collect();
    assert_eq!(briefs, [(0, false), (1, true), (4, true)], "those that pass the cut first");
    let rules = "- {name: bar, match: {tools: [b]}, threshold: 0.95}";
    let outcome = first(&ruled(rules), &query, &[0, 1, 5]);
    assert_eq!(slots(&outcome), [0, 5], "a threshold of the policy keeps a tool out");
    assert_eq!(left_out(&outcome), [(1, RefusalCode::BelowThreshold)]);
    let outcome = make(&catalog(), &query, None, &[], true);
    assert!(outcome.active.is_empty());
    query.options.signature_tail = 1;
    let snapshot = catalog();
    let of_b = snapshot.tool(1);
    let before = previous(vec![ShownTool::by_signature(of_b.key, &of_b.hash)]);
    let outcome = make(&snapshot, &query, Some(&before), &candidates(&[0, 1, 2]), true);
    assert_eq!(slots(&outcome), [1, 0], "a signature of the set is one of them");
}

#[test]
fn an_untrusted_server_does_not_fill_the_set_with_always_loaded_tools() {
    let tools = [tool("far", "a"), tool("far", "b")];
    let snapshot = TestCatalog {
        tools: &tools,
        untrusted: &["far"],
        policy: "rules: [{name: always, match: {servers: [far]}, always_load: true}]",
        ..TestCatalog::default()
    };
    let snapshot = snapshot.snapshot();
    let mut query = query(4);
    query.options.untrusted.per_server = 1;
    for outcome in [first(&snapshot, &query, &[]), next(&snapshot, &query, &[0], &[])] {
        assert_eq!(slots(&outcome), [0]);
        assert_eq!(left_out(&outcome), [(1, RefusalCode::BeyondCap)]);
        assert_eq!(outcome.left_out[0].limit, Some("safety.untrusted_max_per_server"));
    }
}

#[test]
fn untrusted_tools_beyond_their_share_get_what_others_leave() {
    let tools =
        [tool("far", "a"), tool("far", "b"), tool("far", "c"), tool("own", "d"), tool("own", "e")];
    let catalog = TestCatalog { tools: &tools, untrusted: &["far"], ..TestCatalog::default() };
    let snapshot = catalog.snapshot();
    let outcome = first(&snapshot, &query(3), &[0, 1, 2, 3]);
    assert_eq!(slots(&outcome), [0, 1, 3], "one of three places, and the one that nobody wants");
    assert_eq!(left_out(&outcome), [(2, RefusalCode::BeyondCap)]);
    let outcome = first(&snapshot, &query(3), &[0, 1, 2, 3, 4]);
    assert_eq!(slots(&outcome), [0, 3, 4]);
    assert_eq!(left_out(&outcome), [(1, RefusalCode::BeyondCap), (2, RefusalCode::BeyondCap)]);
    let mut query = query(2);
    query.options.untrusted.per_server = 0;
    let outcome = first(&snapshot, &query, &[0, 3]);
    assert_eq!(slots(&outcome), [3]);
    assert_eq!(left_out(&outcome), [(0, RefusalCode::BeyondCap)]);
}

#[test]
fn nothing_deferred_is_everything_in_the_catalogs_order() {
    let snapshot = ruled("- {name: hides, match: {tools: [c]}, required_scopes: [admin]}");
    let outcome = make(&snapshot, &query(1), None, &candidates(&[4, 0, 5]), false);
    assert_eq!(slots(&outcome), [0, 1, 3, 4, 5]);
    assert!(outcome.active.iter().all(|one| one.found_by == FoundBy::NotDeferred));
    assert!(outcome.left_out.is_empty());
}

#[test]
fn the_best_go_first_where_not_all_have_room() {
    let mut query = query(2);
    query.options.schema_token_budget = Some(30);
    let outcome = make(&catalog(), &query, None, &candidates(&[3, 4]), false);
    assert_eq!(slots(&outcome), [3, 4, 0]);
    let code = RefusalCode::OverTokenBudget;
    assert_eq!(left_out(&outcome), [(1, code), (2, code), (5, code)]);
    query.options.schema_token_budget = Some(60);
    let outcome = make(&catalog(), &query, None, &candidates(&[3, 5]), false);
    assert_eq!(slots(&outcome), [3, 0, 1, 2, 4, 5]);
    assert!(outcome.left_out.is_empty(), "the cut left out a tool that is sent after all");
}
