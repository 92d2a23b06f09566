//! Tests of the bounds and books of an active set.

use proptest::prelude::*;

use super::*;
use crate::router::query::Detail;
use crate::test_catalog::{TestTool, snapshot, tool};

const LARGE: usize = 1 << 20;

/// Returns ten tools of 10, 20 ... 100 tokens.
fn tools() -> Vec<TestTool> {
    const NAMES: [&str; 10] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
    let tokens = (10..).step_by(10);
    NAMES
        .iter()
        .zip(tokens)
        .map(|(n, schema_tokens)| TestTool { schema_tokens, ..tool("s", n) })
        .collect()
}

fn bounds() -> Bounds {
    let size = AnswerSize::new(LARGE, Detail::Schemas);
    Bounds { tools: 10, routed: 10, tokens: None, new_tokens: None, size }
}

fn chosen(slot: u32) -> Chosen {
    Chosen {
        slot,
        overlap: 0.5,
        score: 0.5,
        found_by: FoundBy::Overlap,
        newly_promoted: true,
        is_brief: false,
        held_for: 0,
    }
}

fn slots(set: &ActiveSetBuilder<'_>) -> Vec<u32> {
    set.tools().iter().map(|one| one.slot).collect()
}

#[test]
fn a_set_has_at_most_its_number_of_tools() {
    let snapshot = snapshot(&tools(), &[]);
    for most in 0..3 {
        let mut set = ActiveSetBuilder::new(&snapshot, Bounds { tools: most, ..bounds() });
        let added: Vec<bool> = (0..3).map(|slot| set.add(chosen(slot))).collect();
        assert_eq!(added, (0..3).map(|slot| slot < most).collect::<Vec<_>>());
        assert_eq!(set.tools().len(), most);
        assert_eq!(set.excess(9, false).tools, 1);
    }
}

#[test]
fn tools_that_the_model_searched_for_leave_routed_ones_their_places() {
    let snapshot = snapshot(&tools(), &[]);
    let mut set = ActiveSetBuilder::new(&snapshot, Bounds { tools: 4, routed: 2, ..bounds() });
    set.note_searched(0);
    set.note_searched(1);
    assert!((0..4).all(|slot| set.add(chosen(slot))), "two searched and two routed");
    assert_eq!(set.excess(4, false), Excess { tokens: 0, tools: 1, routed: 1 });
    set.remove(&[0]);
    assert_eq!(set.excess(4, false), Excess { tokens: 0, tools: 0, routed: 1 });
    assert!(!set.add(chosen(4)), "a third routed tool");
    set.note_searched(4);
    assert!(set.add(chosen(4)));
}

#[test]
fn a_budget_may_be_met_exactly_and_not_exceeded_by_a_token() {
    let snapshot = snapshot(&tools(), &[]);
    for (tokens, fits) in [(30, true), (29, false)] {
        let mut set = ActiveSetBuilder::new(&snapshot, Bounds { tokens: Some(tokens), ..bounds() });
        assert!(set.add(chosen(0)), "10 tokens");
        assert_eq!(set.add(chosen(1)), fits, "20 more of {tokens}");
        assert_eq!(set.used(), if fits { 30 } else { 10 });
    }
}

#[test]
fn kept_tools_cost_nothing_of_the_budget_for_new_ones() {
    let snapshot = snapshot(&tools(), &[]);
    let mut set = ActiveSetBuilder::new(&snapshot, Bounds { new_tokens: Some(30), ..bounds() });
    set.keep(Chosen { newly_promoted: false, ..chosen(9) });
    assert_eq!(set.affordable([9, 0, 9, 2, 1].into_iter()), 2, "10 and 20, not the 30 between");
    assert!(set.add(chosen(0)) && set.add(chosen(1)));
    assert!(!set.affords(0, false), "nothing is left");
    assert!(!set.add(chosen(2)));
    assert_eq!(slots(&set), [9, 0, 1]);
}

#[test]
fn always_loaded_tools_pass_every_bound_but_the_bytes() {
    let snapshot = snapshot(&tools(), &[]);
    let none = Bounds { tools: 0, routed: 0, tokens: Some(0), new_tokens: Some(0), ..bounds() };
    let always = Chosen { found_by: FoundBy::AlwaysLoad, ..chosen(3) };
    assert!(ActiveSetBuilder::new(&snapshot, none).add(always));
    let size = AnswerSize::new(8, Detail::Schemas);
    assert!(!ActiveSetBuilder::new(&snapshot, Bounds { size, ..none }).add(always));
}

#[test]
fn a_tool_in_another_form_moves_and_is_counted_once() {
    let snapshot = snapshot(&tools(), &[]);
    let mut set = ActiveSetBuilder::new(&snapshot, bounds());
    let brief = Chosen { is_brief: true, ..chosen(9) };
    assert!(set.add(brief) && set.add(chosen(0)));
    assert!(set.is_brief(9));
    let signature = u64::from(snapshot.tool(9).signature_tokens());
    assert_eq!(set.used(), signature + 10);
    assert!(set.add(chosen(9)));
    assert_eq!((slots(&set), set.used()), (vec![0, 9], 110));
    assert!(!set.is_brief(9));
}

#[test]
fn an_evicted_tool_leaves_no_place_behind() {
    let snapshot = snapshot(&tools(), &[]);
    let tight = Bounds { tools: 2, routed: 2, tokens: Some(30), ..bounds() };
    let mut set = ActiveSetBuilder::new(&snapshot, tight);
    set.keep(chosen(0));
    set.keep(chosen(1));
    assert!(!set.add(chosen(2)));
    set.remove(&[0, 1]);
    assert_eq!(set.used(), 0);
    assert!(set.add(chosen(2)));
    let (tools, removed) = set.finish();
    assert_eq!(tools.iter().map(|one| one.slot).collect::<Vec<_>>(), [2]);
    assert_eq!(removed, [0, 1]);
}

#[test]
fn a_tool_that_comes_back_was_not_removed() {
    let snapshot = snapshot(&tools(), &[]);
    let mut set = ActiveSetBuilder::new(&snapshot, bounds());
    set.keep(Chosen { newly_promoted: false, ..chosen(0) });
    assert!(!set.has_changed());
    set.remove(&[0]);
    assert!(set.has_changed());
    assert!(set.add(chosen(0)));
    assert_eq!(set.finish().1, Vec::<u32>::new());
}

/// Step in the life of a set.
#[derive(Debug, Clone, Copy)]
enum Step {
    Keep(u32),
    Add(u32, bool),
    Remove(u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0..10u32).prop_map(Step::Keep),
        (0..10u32, any::<bool>()).prop_map(|(slot, is_brief)| Step::Add(slot, is_brief)),
        (0..10u32).prop_map(Step::Remove),
    ];
    proptest::collection::vec(step, 0..40)
}

proptest! {
    #[test]
    fn the_books_always_agree_with_the_tools(steps in steps(), tokens in 0..300u32, most in 0..8usize) {
        let snapshot = snapshot(&tools(), &[]);
        let limits = Bounds { tools: most, tokens: Some(tokens), ..bounds() };
        let mut set = ActiveSetBuilder::new(&snapshot, limits);
        for step in steps {
            let before = set.overrun();
            match step {
                Step::Keep(slot) => set.keep(chosen(slot)),
                Step::Add(slot, is_brief) => {
                    if set.add(Chosen { is_brief, ..chosen(slot) }) {
                        prop_assert!(set.overrun().is_none(), "an added tool exceeds a bound");
                    } else {
                        prop_assert_eq!(set.overrun(), before, "a refused tool changes nothing");
                    }
                }
                Step::Remove(slot) => set.remove(&[slot]),
            }
            let cost = |one: &Chosen| {
                let tool = snapshot.tool(one.slot);
                u64::from(if one.is_brief { tool.signature_tokens() } else { tool.schema_tokens })
            };
            prop_assert_eq!(set.used(), set.tools().iter().map(cost).sum::<u64>());
            let unique: HashSet<u32> = slots(&set).into_iter().collect();
            prop_assert_eq!(unique.len(), set.tools().len());
            prop_assert!(unique.iter().all(|slot| set.contains(*slot)));
        }
    }
}
