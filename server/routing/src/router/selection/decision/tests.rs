//! Tests of the decision of a whole turn, over a catalog with and without embeddings.

use std::sync::Arc;

use super::*;
use crate::router::intent::Intent;
use crate::router::ranking::cut::Shortfall;
use crate::router::ranking::rank::FoundBy;
use crate::router::selection::deferring::Costs;
use crate::test_catalog::{QUERY, TestCatalog, TestTool, tool};
use toolgate_core::deferral::{self, Mode};
use toolgate_core::identity::{ServerName, TenantId};
use toolgate_core::state::{CallStatus, PriorCall};

/// Overlaps of the four tools of [`tools`].
const OVERLAPS: [f32; 4] = [0.9, 0.8, 0.6, 0.1];

fn tools() -> [TestTool; 4] {
    [tool("s", "alpha"), tool("s", "beta"), tool("t", "gamma"), tool("t", "delta")]
}

fn catalog(overlaps: &[f32], rules: &str) -> Snapshot {
    let policy = if rules.is_empty() { String::new() } else { format!("rules:\n{rules}") };
    TestCatalog { tools: &tools(), overlaps, policy: &policy, ..TestCatalog::default() }.snapshot()
}

/// Returns a query that shares no word with any tool.
fn query(top_k: usize) -> RouteQuery {
    let mut query = RouteQuery::of(vec![Intent::undivided("zzz".to_owned(), 1.0)]);
    query.options.top_k = top_k;
    query
}

fn decide_under(
    policy: deferral::Policy,
    snapshot: &Snapshot,
    query: &RouteQuery,
    vectors: Vec<Vec<f32>>,
) -> Result<Decision, Error> {
    let deferring = Deferring {
        tenant: TenantId::parse("acme").expect("a tenant"),
        policy: Arc::new(policy),
        costs: Arc::<Costs>::default(),
    };
    let inputs = RouteInputs {
        snapshot,
        query,
        deferring: &deferring,
        previous: None,
        background: &[],
        recall: None,
    };
    inputs.decide(vectors, &mut Stages::begin("gate"))
}

fn decide(snapshot: &Snapshot, query: &RouteQuery) -> Decision {
    let vectors = vec![QUERY.to_vec()];
    decide_under(deferral::Policy::default(), snapshot, query, vectors).expect("a decision")
}

fn slots(decision: &Decision) -> Vec<u32> {
    decision.active.iter().map(|chosen| chosen.slot).collect()
}

#[test]
fn a_turn_gets_the_nearest_tools_and_defers_the_others() {
    let snapshot = catalog(&OVERLAPS, "");
    let decision = decide(&snapshot, &query(2));
    assert_eq!(slots(&decision), [0, 1]);
    assert!(decision.deferral.decision.deferred && !decision.words_only);
    assert_eq!(decision.deferral.deferred_tools, 2);
    assert_eq!(decision.fit, Fit::Clear);
    assert!((decision.level.0 - 0.28).abs() < 1e-6, "without a background the threshold");
    assert_eq!(decision.vectors, [QUERY.to_vec()]);
    assert!(decision.left_out.is_empty(), "nobody asked for reasons");
    let decision = decide(&catalog(&[0.9, 0.89, 0.1, 0.0], ""), &query(1));
    assert_eq!((slots(&decision), decision.fit), (vec![0], Fit::Ambiguous(vec![0, 1])));
}

#[test]
fn nothing_is_sent_where_no_tool_fits() {
    let snapshot = catalog(&[0.2, 0.1, 0.0, -0.1], "");
    let mut query = query(2);
    query.options.explain = true;
    let decision = decide(&snapshot, &query);
    assert_eq!((slots(&decision), &decision.fit), (vec![], &Fit::None));
    let shortfall = decision.left_out[0].shortfall;
    assert!(matches!(shortfall, Some(Shortfall::Level { .. })), "{shortfall:?}");
}

#[test]
fn a_courtesy_gets_a_tool_only_by_name_or_where_all_are_sent() {
    let snapshot = catalog(&OVERLAPS, "");
    let courtesy = |text: &str| {
        let intent = Intent::undivided(text.to_owned(), 1.0).as_courtesy();
        let mut query = RouteQuery::of(vec![intent]);
        query.options.explain = true;
        query
    };
    let decision = decide(&snapshot, &courtesy("zzz"));
    assert_eq!((slots(&decision), &decision.fit), (vec![], &Fit::Courtesy));
    let shortfall = decision.left_out[0].shortfall;
    assert_eq!(shortfall, Some(Shortfall::Courtesy));
    let decision = decide(&snapshot, &courtesy("s/alpha"));
    assert_eq!((slots(&decision), &decision.fit), (vec![0], &Fit::Clear));
    let mut by_threshold = courtesy("zzz");
    by_threshold.options.ratio = None;
    assert_eq!(slots(&decide(&snapshot, &by_threshold)), [0, 1, 2], "each above a threshold");
    let mut all = courtesy("zzz");
    all.options.deferral.mode = Some(Mode::Off);
    assert_eq!(slots(&decide(&snapshot, &all)).len(), OVERLAPS.len());
}

#[test]
fn without_embeddings_words_decide_and_the_fit_is_unknown() {
    let snapshot = catalog(&OVERLAPS, "");
    let mut query = query(2);
    query.intents = vec![Intent::undivided("delta".to_owned(), 1.0)];
    let policy = deferral::Policy::default();
    let decision = decide_under(policy, &snapshot, &query, Vec::new()).expect("a decision");
    assert_eq!((slots(&decision), decision.words_only), (vec![3], true));
    assert_eq!((decision.active[0].found_by, &decision.fit), (FoundBy::Words, &Fit::Unknown));
}

#[test]
fn everything_is_sent_where_nothing_is_deferred() {
    let snapshot = catalog(&OVERLAPS, "");
    let policy = deferral::Policy { mode: Some(Mode::Off), ..deferral::Policy::default() };
    let vectors = vec![QUERY.to_vec()];
    let decision = decide_under(policy, &snapshot, &query(1), vectors).expect("a decision");
    assert_eq!(slots(&decision), [0, 1, 2, 3]);
    assert!(decision.deferral.sends_everything());
}

#[test]
fn tools_outside_the_requests_filters_are_not_chosen() {
    let snapshot = catalog(&OVERLAPS, "");
    let mut query = query(3);
    query.options.excluded = vec!["alpha".to_owned(), "nothing".to_owned()];
    let decision = decide(&snapshot, &query);
    assert_eq!(slots(&decision), [1, 2]);
    let unknown = &decision.left_out[0];
    assert_eq!((unknown.asked_for.as_str(), unknown.code), ("nothing", RefusalCode::UnknownTool));
    query.options.servers = vec![ServerName::parse("t").expect("a name")];
    assert_eq!(slots(&decide(&snapshot, &query)), [2]);
    query.options.servers = vec![ServerName::parse("nowhere").expect("a name")];
    let vectors = vec![QUERY.to_vec()];
    let error = decide_under(deferral::Policy::default(), &snapshot, &query, vectors).err();
    assert!(matches!(error, Some(Error::ServerNotFound(_))), "{error:?}");
}

#[test]
fn a_locked_tool_is_not_chosen_and_explained_on_request() {
    let rules = "- {name: locks, match: {tools: [alpha]}, precondition: {milestone_reached: ok}}";
    let snapshot = catalog(&OVERLAPS, rules);
    let mut query = query(1);
    assert_eq!(slots(&decide(&snapshot, &query)), [1]);
    query.options.explain = true;
    let decision = decide(&snapshot, &query);
    let reasons: Vec<_> = decision.left_out.iter().map(|one| (one.slot, one.code)).collect();
    assert!(reasons.contains(&(Some(0), RefusalCode::PreconditionUnmet)), "{reasons:?}");
    assert!(reasons.contains(&(Some(2), RefusalCode::BeyondTopK)), "{reasons:?}");
    query.state.milestones.insert("ok".to_owned());
    assert_eq!(slots(&decide(&snapshot, &query)), [0]);
}

#[test]
fn as_many_candidates_are_reported_as_somebody_looks_at() {
    let plain = catalog(&OVERLAPS, "");
    let capped = catalog(&OVERLAPS, "- {name: cap, match: {servers: [s]}, top_k: 1}");
    let mut query = query(1);
    assert_eq!(decide(&plain, &query).candidates.len(), 1);
    assert_eq!(decide(&capped, &query).candidates.len(), 4, "a cap may leave some out");
    query.options.signature_tail = 1;
    assert_eq!(decide(&plain, &query).candidates.len(), 2);
    query.options.explain = true;
    assert_eq!(decide(&plain, &query).candidates.len(), 4);
}

#[test]
fn the_mcp_server_that_was_called_last_is_nearer() {
    let snapshot = catalog(&[0.9, 0.8, 0.85, 0.1], "");
    let mut query = query(2);
    assert_eq!(slots(&decide(&snapshot, &query)), [0, 2]);
    let status = CallStatus::Succeeded;
    query.state.calls = vec![PriorCall { tool: "mcp__t__delta".to_owned(), status, turn: 0 }];
    let decision = decide(&snapshot, &query);
    assert_eq!(slots(&decision), [2, 0]);
    let first = decision.candidates[0].recent;
    assert!(first.server_called && !first.called);
}

/// Returns the chosen slots of six tools of `s` and of three of `t`, which are less near, in order. The message leans on an
/// earlier one, and a tool of `t` was called last.
fn chosen_after_a_call(catalog: TestCatalog<'_>, change: impl Fn(&mut RouteQuery)) -> Vec<u32> {
    let of_s = ["a", "b", "c", "d", "e", "f"].map(|name| tool("s", name));
    let of_t = ["g", "h", "i"].map(|name| tool("t", name));
    let tools: Vec<TestTool> = of_s.into_iter().chain(of_t).collect();
    let snapshot = TestCatalog { tools: &tools, ..catalog }.snapshot();
    let mut query = query(5);
    query.intents.push(Intent::context("yyy\nzzz".to_owned(), 0.9));
    let status = CallStatus::Succeeded;
    query.state.calls = vec![PriorCall { tool: "h".to_owned(), status, turn: 0 }];
    change(&mut query);
    let vectors = vec![QUERY.to_vec(); query.intents.len()];
    let policy = deferral::Policy::default();
    let decision = decide_under(policy, &snapshot, &query, vectors).expect("a decision");
    let mut slots = slots(&decision);
    slots.sort_unstable();
    slots
}

/// Overlaps of the tools of [`chosen_after_a_call`].
const NINE: [f32; 9] = [0.9, 0.89, 0.88, 0.87, 0.86, 0.85, 0.3, 0.29, 0.05];

#[test]
fn a_message_that_leans_on_another_keeps_places_for_the_server_that_was_called_last() {
    let catalog = TestCatalog { overlaps: &NINE, ..TestCatalog::default() };
    assert_eq!(chosen_after_a_call(catalog, |_| ()), [0, 1, 6, 7, 8], "three of five places");
    let alone = |query: &mut RouteQuery| query.intents.truncate(1);
    assert_eq!(chosen_after_a_call(catalog, alone), [0, 1, 2, 3, 4], "nothing to lean on");
    let uncalled = |query: &mut RouteQuery| query.state.calls.clear();
    assert_eq!(chosen_after_a_call(catalog, uncalled), [0, 1, 2, 3, 4]);
    let one = |query: &mut RouteQuery| query.options.top_k = 1;
    assert_eq!(chosen_after_a_call(catalog, one), [0]);
    let threshold = |query: &mut RouteQuery| query.options.ratio = None;
    assert_eq!(chosen_after_a_call(catalog, threshold), [0, 1, 2, 3, 4], "each by its overlap");
}

#[test]
fn tools_of_two_servers_that_were_called_last_are_found_however_far_down_they_rank() {
    let near = (0..2 * POOL).map(|number| tool("s", String::leak(format!("near{number}"))));
    let far = [tool("t", "g"), tool("t", "h"), tool("u", "i"), tool("v", "j")];
    let tools: Vec<TestTool> = near.chain(far).collect();
    let last = [0.3, 0.29, 0.28, 0.27];
    let overlaps: Vec<f32> = std::iter::repeat_n(0.9, 2 * POOL).chain(last).collect();
    let catalog = TestCatalog { tools: &tools, overlaps: &overlaps, ..TestCatalog::default() };
    let snapshot = catalog.snapshot();
    let mut query = query(5);
    query.options.explain = true;
    query.intents.push(Intent::context("yyy\nzzz".to_owned(), 0.9));
    let call =
        |name: &str| PriorCall { tool: name.to_owned(), status: CallStatus::Succeeded, turn: 0 };
    query.state.calls = ["j", "i", "h"].map(call).to_vec();
    let policy = deferral::Policy::default();
    let vectors = vec![QUERY.to_vec(); 2];
    let decision = decide_under(policy, &snapshot, &query, vectors).expect("a decision");
    let first = u32::try_from(2 * POOL).expect("few tools");
    let chosen = slots(&decision);
    assert_eq!(chosen[2..], [first, first + 1, first + 2], "t and u, not v, behind what is nearer");
    assert!(chosen[..2].iter().all(|slot| *slot < first), "{chosen:?}");
    let reported = &decision.candidates;
    assert_eq!(reported.len(), look_at(&snapshot, &query.options));
    let is_chosen = |one: &&Candidate| one.is_reserved && one.recent.server_called;
    assert_eq!(reported.iter().filter(is_chosen).count(), 3, "they are explained");
}

#[test]
fn reserved_places_are_for_tools_that_may_be_chosen_where_some_tool_fits() {
    let catalog = TestCatalog { overlaps: &NINE, ..TestCatalog::default() };
    let untrusted = TestCatalog { untrusted: &["t"], ..catalog };
    assert_eq!(chosen_after_a_call(untrusted, |_| ()), [0, 1, 2], "nothing of an untrusted server");
    let policy = "rules: [{name: bar, match: {tools: [h]}, threshold: 0.95}]";
    let barred = TestCatalog { policy, ..catalog };
    assert_eq!(chosen_after_a_call(barred, |_| ()), [0, 1, 2, 6, 8]);
    let excluded = |query: &mut RouteQuery| query.options.excluded = vec!["t/i".to_owned()];
    assert_eq!(chosen_after_a_call(catalog, excluded), [0, 1, 2, 6, 7]);
    let far = TestCatalog { overlaps: &NINE.map(|overlap| overlap / 5.0), ..catalog };
    assert!(chosen_after_a_call(far, |_| ()).is_empty());
}
