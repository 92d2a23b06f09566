//! Tests of which kept tools go for new ones, when, and at what price.

use super::*;
use crate::router::answers::answer_size::AnswerSize;
use crate::router::intent::Intent;
use crate::router::query::Detail;
use crate::router::selection::active_set::Bounds;
use crate::test_catalog::{TestTool, snapshot, tool};
use toolgate_core::state::{CallStatus, PriorCall};
use toolgate_llm::price::Rates;

/// Overlap that is far enough below the default threshold of .28 for a tool to go.
const LEFT: f32 = 0.1;

/// Returns six tools of 10 tokens, `mcp__s__a` to `mcp__s__f`.
fn catalog() -> Snapshot {
    let tools: [TestTool; 6] = ["a", "b", "c", "d", "e", "f"].map(|name| tool("s", name));
    snapshot(&tools, &[])
}

fn query() -> RouteQuery {
    RouteQuery::of(vec![Intent::undivided("please".to_owned(), 1.0)])
}

/// Returns a query whose caller has `tokens` of history after the tools.
fn with_history(tokens: u32) -> RouteQuery {
    let mut query = query();
    query.options.history_tokens = Some(tokens);
    query
}

fn call(tool: &str, turn: u32) -> PriorCall {
    PriorCall { tool: tool.to_owned(), status: CallStatus::Succeeded, turn }
}

fn bounds(tools: usize, tokens: Option<u32>) -> Bounds {
    let size = AnswerSize::new(1 << 20, Detail::Schemas);
    Bounds { tools, routed: tools, tokens, new_tokens: None, size }
}

fn kept(slot: u32, overlap: f32) -> Chosen {
    Chosen {
        slot,
        overlap,
        score: overlap,
        found_by: FoundBy::Kept,
        newly_promoted: false,
        is_brief: false,
        held_for: 0,
    }
}

/// Returns a set of these kept tools, slots from 0 in the order of their overlaps.
fn set<'a>(snapshot: &'a Snapshot, bounds: Bounds, overlaps: &[f32]) -> ActiveSetBuilder<'a> {
    let mut set = ActiveSetBuilder::new(snapshot, bounds);
    for (slot, overlap) in (0..).zip(overlaps) {
        set.keep(kept(slot, *overlap));
    }
    set
}

fn slots(set: &ActiveSetBuilder<'_>) -> Vec<u32> {
    set.tools().iter().map(slot).collect()
}

fn eviction<'a>(snapshot: &'a Snapshot, query: &'a RouteQuery) -> Eviction<'a> {
    Eviction::new(snapshot, query, HashSet::new(), true)
}

#[test]
fn nobody_goes_while_there_is_room() {
    let snapshot = catalog();
    let query = query();
    let mut set = set(&snapshot, bounds(3, Some(30)), &[LEFT, LEFT]);
    let mut eviction = eviction(&snapshot, &query);
    eviction.make_room(&mut set, 5, false);
    eviction.trim(&mut set, 1);
    eviction.trim_by_price(&mut set, 1);
    assert_eq!(slots(&set), [0, 1]);
}

#[test]
fn for_tokens_the_tool_with_the_lowest_overlap_goes() {
    let snapshot = catalog();
    let query = query();
    let mut set = set(&snapshot, bounds(9, Some(30)), &[0.15, LEFT, 0.5]);
    eviction(&snapshot, &query).make_room(&mut set, 5, false);
    assert_eq!(slots(&set), [0, 2]);
}

#[test]
fn for_tokens_as_many_go_as_it_takes_or_none() {
    let tools = [
        TestTool { schema_tokens: 25, ..tool("s", "large") },
        tool("s", "b"),
        tool("s", "c"),
        tool("s", "d"),
    ];
    let snapshot = snapshot(&tools, &[]);
    let query = query();
    let room_for_large = |overlaps: [f32; 3]| {
        let mut set = ActiveSetBuilder::new(&snapshot, bounds(9, Some(35)));
        for (slot, overlap) in (1..).zip(overlaps) {
            set.keep(kept(slot, overlap));
        }
        eviction(&snapshot, &query).make_room(&mut set, 0, false);
        slots(&set)
    };
    assert_eq!(room_for_large([LEFT, 0.2, 0.15]), [2], "10 tokens are not enough");
    assert_eq!(room_for_large([LEFT, 0.5, 0.5]), [1, 2, 3], "one would not do");
}

#[test]
fn for_tokens_no_tool_goes_that_the_conversation_may_need() {
    let snapshot = catalog();
    let stays = |tool: Chosen, query: &RouteQuery, has_overlaps: bool| {
        let needed = HashSet::from([4]);
        let mut eviction = Eviction::new(&snapshot, query, needed, has_overlaps);
        let mut set = ActiveSetBuilder::new(&snapshot, bounds(9, Some(10)));
        set.keep(tool);
        eviction.make_room(&mut set, 5, false);
        set.contains(tool.slot)
    };
    let left = kept(0, LEFT);
    let quiet = query();
    assert!(!stays(left, &quiet, true));
    assert!(stays(left, &quiet, false), "overlaps are not known");
    assert!(stays(kept(0, 0.24), &quiet, true), "it is near the threshold");
    assert!(stays(kept(4, LEFT), &quiet, true), "it is needed");
    assert!(stays(Chosen { held_for: 1, ..left }, &quiet, true), "the model asked for it");
    assert!(stays(Chosen { newly_promoted: true, ..left }, &quiet, true), "it was just shown");
    assert!(stays(Chosen { found_by: FoundBy::Overlap, ..left }, &quiet, true), "it was chosen");
    for name in ["mcp__s__a", "a"] {
        let mut called = query();
        called.state.calls = vec![call(name, 3)];
        assert!(stays(left, &called, true), "it was called lately as {name}");
    }
}

#[test]
fn a_long_history_is_not_read_again_for_a_small_saving() {
    let snapshot = catalog();
    let make_room = |query: &RouteQuery, bounds: Bounds| {
        let mut set = set(&snapshot, bounds, &[LEFT, 0.5]);
        let mut eviction = eviction(&snapshot, query);
        eviction.make_room(&mut set, 5, false);
        let slots = slots(&set);
        let (active, removed) = set.finish();
        (slots, eviction.finish(&active, removed))
    };
    let (slots, change) = make_room(&with_history(1_000), bounds(9, Some(20)));
    assert_eq!(slots, [0, 1]);
    assert!(change.kept_for_cache);
    // Nine tenths of the 10 tokens behind and of the history, for a tenth of the prompt and of 10 tokens in five requests.
    assert_eq!(change.cost, CacheCost { lost: 909, saved: 107 });
    let mut regardless = with_history(1_000);
    regardless.options.ignore_cache_cost = true;
    let (slots, change) = make_room(&regardless, bounds(9, Some(20)));
    assert_eq!((slots, change.removed, change.kept_for_cache), (vec![1], vec![0], false));
    let (slots, _) = make_room(&query(), bounds(9, Some(20)));
    assert_eq!(slots, [1], "nobody counts the cache");
    let (slots, change) = make_room(&with_history(1_000), bounds(2, None));
    assert_eq!((slots, change.kept_for_cache), (vec![1], false), "the number of tools is firm");
}

#[test]
fn the_cache_counts_only_where_the_provider_caches_a_prompt_of_that_length() {
    let snapshot = catalog();
    let cost = |system_tokens, beside_tokens| {
        let mut query = with_history(1_000);
        query.options.prices.rates = Rates::GEMINI;
        query.options.system_tokens = system_tokens;
        query.options.beside_tokens = beside_tokens;
        let mut set = set(&snapshot, bounds(9, Some(20)), &[LEFT, 0.5]);
        let mut eviction = eviction(&snapshot, &query);
        eviction.make_room(&mut set, 5, false);
        eviction.finish(&[], Vec::new())
    };
    // All of the prompt for a search, and 10 tokens in five requests, at the full price.
    let short = cost(0, 0);
    assert_eq!((short.cost, short.kept_for_cache), (CacheCost { lost: 0, saved: 1_070 }, false));
    // The system prompt and the agent's own tools make it longer, and neither is weighed.
    for long in [cost(4_000, 0), cost(0, 4_000), cost(2_000, 2_000)] {
        assert_eq!((long.cost, long.kept_for_cache), (CacheCost { lost: 909, saved: 107 }, true));
    }
}

#[test]
fn what_the_search_lists_makes_a_prompt_longer_up_to_the_names_that_there_are() {
    let snapshot = catalog();
    let is_kept = |system_tokens, listing_tokens, lists_summaries| {
        let mut query = with_history(1_000);
        query.options.prices.rates = Rates::GEMINI;
        query.options.system_tokens = system_tokens;
        query.options.listing_tokens = listing_tokens;
        query.options.lists_summaries = lists_summaries;
        let mut set = set(&snapshot, bounds(9, Some(20)), &[LEFT, 0.5]);
        let mut eviction = eviction(&snapshot, &query);
        eviction.make_room(&mut set, 5, false);
        eviction.finish(&[], Vec::new()).kept_for_cache
    };
    // With the system prompt alone one token is missing from those that Gemini caches.
    assert!(!is_kept(3_075, 0, false));
    assert!(is_kept(3_075, 1, false));
    assert!(is_kept(3_075, 1, true));
    assert!(!is_kept(0, 4_000, false), "the catalog has few names");
}

#[test]
fn tools_are_carried_for_as_many_requests_as_are_expected() {
    let snapshot = catalog();
    let trim = |requests| {
        let mut query = with_history(1_000);
        query.options.prices.requests = requests;
        let mut set = set(&snapshot, bounds(9, None), &[0.5, 0.4, 0.3]);
        let mut eviction = eviction(&snapshot, &query);
        eviction.want(1..3);
        eviction.trim_by_price(&mut set, 1);
        slots(&set)
    };
    // 20 tokens behind the first tool would be written again, for 10 that are not read.
    assert_eq!(trim(5), [0, 1, 2]);
    assert_eq!(trim(18), [1, 2]);
}

#[test]
fn for_a_place_the_tools_go_first_that_neither_turn_nor_model_needs() {
    let snapshot = catalog();
    let mut query = query();
    query.state.calls = vec![call("a", 7)];
    // Called lately; wanted; and of the other two, the one with the lower overlap.
    let mut set = set(&snapshot, bounds(4, None), &[0.1, 0.2, 0.6, 0.5]);
    let mut eviction = eviction(&snapshot, &query);
    eviction.want([1].into_iter());
    eviction.make_room(&mut set, 5, false);
    assert_eq!(slots(&set), [0, 1, 2]);
}

#[test]
fn every_kept_tool_goes_for_a_place_before_a_needed_one_does() {
    let snapshot = catalog();
    let mut query = query();
    query.state.calls = vec![call("a", 7)];
    let order = |needed: &[u32]| {
        let mut set = set(&snapshot, bounds(4, None), &[0.1, 0.2, 0.6, 0.5]);
        let mut eviction = eviction(&snapshot, &query);
        eviction.want([1].into_iter());
        eviction.need(needed.iter().copied());
        let mut order = Vec::new();
        for tools in (0..4).rev() {
            let left = slots(&set);
            let excess = Excess { tools: left.len() - tools, ..Excess::default() };
            let victims = eviction.with_count(&set, excess, Vec::new());
            order.extend(victims.iter().copied());
            set.remove(&victims);
        }
        order
    };
    assert_eq!(order(&[]), [3, 2, 0, 1], "unneeded by overlap, called lately, wanted");
    assert_eq!(order(&[3]), [2, 0, 1]);
}

#[test]
fn no_tool_goes_for_a_place_that_is_not_won_by_it() {
    let snapshot = catalog();
    let query = query();
    let of_tools = Bounds { routed: 9, ..bounds(1, None) };
    let of_turn = Bounds { routed: 1, ..bounds(9, None) };
    for limits in [of_tools, of_turn] {
        let mut set = set(&snapshot, limits, &[0.5, 0.4]);
        let mut eviction = eviction(&snapshot, &query);
        eviction.need([0].into_iter());
        eviction.make_room(&mut set, 5, false);
        assert_eq!(slots(&set), [0, 1], "two would have to go: {limits:?}");
    }
}

#[test]
fn searched_tools_give_no_place_to_the_turn() {
    let snapshot = catalog();
    let query = query();
    let limits = Bounds { routed: 2, ..bounds(9, None) };
    let mut set = set(&snapshot, limits, &[0.1, 0.5, 0.4]);
    set.note_searched(0);
    eviction(&snapshot, &query).make_room(&mut set, 5, false);
    assert_eq!(slots(&set), [0, 1], "the lowest of the turn's own");
}

#[test]
fn a_new_tool_over_the_bound_takes_all_that_is_unneeded_along() {
    let snapshot = catalog();
    let mut query = query();
    query.state.calls = vec![call("c", 7)];
    let trim = |joining, has_overlaps| {
        let mut set = set(&snapshot, bounds(4, None), &[0.5, 0.4, 0.3, 0.2]);
        let mut eviction = Eviction::new(&snapshot, &query, HashSet::new(), has_overlaps);
        eviction.want([3].into_iter());
        eviction.trim(&mut set, joining);
        slots(&set)
    };
    assert_eq!(trim(0, true), [0, 1, 2, 3]);
    assert_eq!(trim(1, true), [2, 3], "a change costs the same however many go");
    assert_eq!(trim(1, false), [1, 2, 3], "without overlaps only as many as must");
    assert_eq!(trim(3, true), [3], "beyond those, called ones before wanted ones");
}

#[test]
fn a_set_over_its_bounds_is_trimmed_even_if_nothing_joins() {
    let snapshot = catalog();
    let query = query();
    let mut few = set(&snapshot, bounds(2, None), &[0.5, 0.4, 0.3, 0.2]);
    eviction(&snapshot, &query).trim(&mut few, 0);
    assert_eq!(slots(&few), [2, 3], "no more than must go, the first unneeded ones");
    let mut dear = set(&snapshot, bounds(9, Some(25)), &[LEFT, 0.5, 0.15, 0.05]);
    eviction(&snapshot, &query).trim(&mut dear, 0);
    assert_eq!(slots(&dear), [1, 2], "the lowest overlaps");
}

#[test]
fn unneeded_tools_go_where_carrying_them_along_costs_more_than_it_saves() {
    let snapshot = catalog();
    let trim = |query: &RouteQuery, bounds: Bounds, joining| {
        let mut set = set(&snapshot, bounds, &[0.5, 0.4, 0.3]);
        let mut eviction = eviction(&snapshot, query);
        eviction.want([0, 1].into_iter());
        eviction.trim_by_price(&mut set, joining);
        slots(&set)
    };
    let loose = bounds(9, None);
    let counted = with_history(1_000);
    // Slot 2 is the last: nothing behind it is read again.
    assert_eq!(trim(&counted, loose, 1), [0, 1]);
    assert_eq!(trim(&counted, loose, 0), [0, 1, 2], "nothing joins");
    assert_eq!(trim(&counted, bounds(9, Some(90)), 1), [0, 1, 2], "the budget decides");
    assert_eq!(trim(&query(), loose, 1), [0, 1, 2], "nobody counts the cache");
    assert_eq!(trim(&with_history(0), loose, 0), [0, 1], "nothing behind the tools is cached");
    let mut regardless = with_history(0);
    regardless.options.ignore_cache_cost = true;
    assert_eq!(trim(&regardless, loose, 1), [0, 1, 2]);
}

#[test]
fn unneeded_tools_before_needed_ones_go_only_for_a_place() {
    let snapshot = catalog();
    let query = with_history(1_000);
    let trim = |bounds: Bounds, has_overlaps| {
        let mut set = set(&snapshot, bounds, &[0.5, 0.4, 0.3, 0.2, 0.1]);
        let mut eviction = Eviction::new(&snapshot, &query, HashSet::new(), has_overlaps);
        eviction.want(1..5);
        eviction.trim_by_price(&mut set, 1);
        slots(&set)
    };
    assert_eq!(trim(bounds(9, None), true), [0, 1, 2, 3, 4], "40 tokens would be read again");
    assert_eq!(trim(bounds(5, None), true), [1, 2, 3, 4]);
    assert_eq!(trim(bounds(5, None), false), [0, 1, 2, 3, 4], "overlaps are not known");
}

#[test]
fn tools_that_the_model_asked_for_are_not_unneeded() {
    let snapshot = catalog();
    let query = with_history(0);
    let mut set = set(&snapshot, bounds(9, None), &[0.5, 0.4]);
    set.note_searched(0);
    set.keep(Chosen { newly_promoted: true, ..kept(2, 0.3) });
    eviction(&snapshot, &query).trim_by_price(&mut set, 1);
    assert_eq!(slots(&set), [0, 2]);
}

#[test]
fn a_changed_set_pays_where_the_tools_outweigh_the_history() {
    let snapshot = catalog();
    let pays = |query: &RouteQuery| {
        let mut eviction = eviction(&snapshot, query);
        let pays = eviction.pays(&set(&snapshot, bounds(9, None), &[0.5; 6]));
        let change = eviction.finish(&[], Vec::new());
        assert_eq!(change.kept_for_cache, !pays);
        assert_eq!(change.cost == CacheCost::default(), pays, "what was avoided is reported");
        pays
    };
    // 60 tokens of tools: a search reads a tenth of them and of the history again, a change nine tenths of the history.
    assert!(pays(&with_history(7)));
    assert!(!pays(&with_history(10)));
    assert!(pays(&query()), "nobody counts the cache");
    let mut regardless = with_history(10_000);
    regardless.options.ignore_cache_cost = true;
    assert!(pays(&regardless));
}

#[test]
fn the_change_names_the_tools_that_may_go_next() {
    let snapshot = catalog();
    let query = query();
    let active = [kept(0, LEFT), kept(1, 0.5), Chosen { found_by: FoundBy::Pin, ..kept(2, LEFT) }];
    let change = eviction(&snapshot, &query).finish(&active, vec![3]);
    assert_eq!((change.evictable, change.removed), (vec![0], vec![3]));
}
