//! Tests of which candidates are near enough, and of the reasons why others are not.

use super::*;
use crate::router::ranking::rank::Recent;
use crate::test_catalog::{QUERY, TestCatalog, tool};
use toolgate_core::policy::Features;

fn candidate([score, nearest, word_share]: [f32; 3], leads: bool) -> Candidate {
    Candidate {
        slot: 0,
        overlap: nearest,
        score,
        found_by: FoundBy::Overlap,
        parts: Parts { nearest, word_share, ..Parts::default() },
        leads,
        recent: Recent::default(),
        from_context: false,
        is_reserved: false,
    }
}

#[test]
fn what_is_only_less_bad_than_others_is_no_padding() {
    let best = candidate([0.9, 0.5, 0.9], true);
    let passes = |level, one: &Candidate| {
        Bar::new(Rule::Ratio(0.5), Level(level), Best::of([&best].into_iter())).passes(one)
    };
    assert!(passes(0.4, &best));
    assert!(passes(0.4, &candidate([0.6, 0.31, 0.0], false)), "near enough by itself");
    assert!(passes(0.4, &candidate([0.6, 0.1, 0.5], false)), "it has half of the words");
    assert!(passes(0.4, &candidate([0.6, 0.1, 0.0], true)), "the best of a clause");
    assert!(!passes(0.4, &candidate([0.6, 0.29, 0.4], false)), "neither");
    assert!(!passes(0.4, &candidate([0.4, 0.5, 0.9], false)), "too far below the best");
    // Without a level, as for intents in other scripts, a tool needs no evidence of its own either.
    assert!(passes(Level::NONE.0, &candidate([0.6, -0.5, 0.0], false)));
}

#[test]
fn the_rule_that_leaves_a_tool_out_is_told() {
    let best = candidate([0.9, 0.5, 0.9], true);
    let shortfall = |rule, level, one: &Candidate| {
        let bar = Bar::new(rule, Level(level), Best::of([&best].into_iter()));
        bar.shortfall(one).expect("it falls short")
    };
    let far = candidate([0.4, 0.3, 0.0], false);
    let said = |rule, level, one: &Candidate| shortfall(rule, level, one).message(one.overlap);
    let threshold = said(Rule::Threshold(0.4), 0.2, &far);
    assert_eq!(threshold, "overlap 0.300 is below the threshold of 0.400 for each tool");
    let level = said(Rule::Ratio(0.5), 0.6, &far);
    assert_eq!(level, "no tool fits: the best overlap, 0.500, is below the level of 0.600");
    assert!(said(Rule::Ratio(0.5), 0.4, &far).contains("router.relative_cutoff"));
    let padding = candidate([0.6, 0.1, 0.4], false);
    assert!(said(Rule::Ratio(0.5), 0.4, &padding).contains("its overlap is below 0.300"));
    let strict = Learned { weights: Features::default(), bias: -100.0, least: 0.5 };
    assert!(said(Rule::Learned(&strict), 0.4, &padding).contains("learned gate"));
    assert!(said(Rule::Learned(&strict), 0.6, &padding).starts_with("no tool fits"));
}

/// Returns the bar of a rule where the best score is .8 and the best overlap .5.
fn bar_of(rule: Rule<'_>, level: f32) -> Bar<'_> {
    Bar::new(rule, Level(level), Best { score: 0.8, nearest: 0.5 })
}

#[test]
fn a_named_tool_passes_every_rule() {
    let strict = Learned { weights: Features::default(), bias: -100.0, least: 0.5 };
    let far = candidate([0.0, -1.0, 0.0], false);
    let named = Candidate { found_by: FoundBy::Name, ..far };
    for rule in [Rule::Threshold(0.9), Rule::Ratio(1.0), Rule::Learned(&strict)] {
        let bar = bar_of(rule, 0.9);
        assert!(bar.passes(&named) && !bar.passes(&far), "{rule:?}");
    }
}

#[test]
fn what_is_exactly_enough_passes() {
    let bar = bar_of(Rule::Threshold(0.5), 0.9);
    assert!(bar.passes(&candidate([0.0, 0.5, 0.0], false)), "the threshold, whatever the level");
    assert!(!bar.passes(&candidate([1.0, 0.49, 1.0], true)));
    let bar = bar_of(Rule::Ratio(0.5), 0.5);
    assert!(bar.passes(&candidate([0.4, 0.375, 0.0], false)), "half of the score, its own share");
    assert!(bar.passes(&candidate([0.4, 0.0, 0.5], false)), "half of the words");
}

#[test]
fn a_clauses_best_passes_with_a_low_score_if_it_reaches_the_level() {
    let bar = bar_of(Rule::Ratio(0.5), 0.4);
    assert!(bar.passes(&candidate([0.1, 0.4, 0.0], true)));
    let shortfall = bar.shortfall(&candidate([0.1, 0.39, 0.0], true));
    assert_eq!(shortfall, Some(Shortfall::Ratio(0.5)));
}

#[test]
fn a_learned_gate_decides_by_its_features_above_the_level() {
    let mut weights = Features::default();
    weights[3] = 1.0;
    // A score of .6 has a chance of one half.
    let gate = Learned { weights, bias: -0.6, least: 0.5 };
    let bar = bar_of(Rule::Learned(&gate), 0.4);
    assert!(bar.passes(&candidate([0.61, 0.0, 0.0], false)));
    let shortfall = bar.shortfall(&candidate([0.59, 0.5, 1.0], true));
    assert_eq!(shortfall, Some(Shortfall::LearnedGate));
    let bar = bar_of(Rule::Learned(&gate), 0.51);
    assert!(!bar.passes(&candidate([0.9, 0.0, 0.0], false)), "no tool fits");
}

#[test]
fn every_shortfall_has_its_code() {
    let level = Shortfall::Level { best: 0.1, level: 0.2 };
    let own = Shortfall::OwnThreshold(0.5);
    for below in [own, Shortfall::Threshold(0.5), level, Shortfall::Courtesy] {
        assert_eq!(below.code(), RefusalCode::BelowThreshold);
    }
    let evidence = Shortfall::OwnEvidence { least: 0.3 };
    for below in [Shortfall::Ratio(0.5), Shortfall::LearnedGate, evidence] {
        assert_eq!(below.code(), RefusalCode::BelowCutoff);
    }
}

/// Returns the reason why each candidate falls short of the cut of all of them.
fn shortfalls(
    catalog: TestCatalog<'_>,
    options: &Options,
    level: f32,
    candidates: &[Candidate],
) -> Vec<Option<Shortfall>> {
    let snapshot = catalog.snapshot();
    let vectors = [QUERY.to_vec()];
    let embedded = Embedded::new(&[], &vectors);
    let cut = Cut::of(&snapshot, &embedded, options, Level(level), candidates);
    let of = |one: &Candidate| {
        let shortfall = cut.shortfall(one);
        assert_eq!(cut.passes(one), shortfall.is_none());
        let own = matches!(shortfall, Some(Shortfall::OwnThreshold(_)));
        assert_eq!(cut.is_barred(one), own);
        shortfall
    };
    candidates.iter().map(of).collect()
}

#[test]
fn the_options_say_which_rule_cuts() {
    let tools = [tool("s", "a")];
    let catalog = TestCatalog { tools: &tools, overlaps: &[0.9], ..TestCatalog::default() };
    let strict = Learned { weights: Features::default(), bias: -100.0, least: 0.5 };
    let options = |ratio, learned| Options { ratio, learned, threshold: 0.7, ..Options::default() };
    let best = candidate([0.9, 0.6, 0.9], true);
    let weak = candidate([0.2, 0.6, 0.9], false);
    let of = |options: &Options| shortfalls(catalog, options, 0.3, &[best, weak]);
    let ratio = Some(Shortfall::Ratio(0.5));
    assert_eq!(of(&options(Some(0.5), None)), [None, ratio]);
    assert_eq!(of(&options(Some(0.5), Some(strict))), [Some(Shortfall::LearnedGate); 2]);
    let threshold = Some(Shortfall::Threshold(0.7));
    assert_eq!(of(&options(None, Some(strict))), [threshold; 2], "a threshold is for each tool");
}

#[test]
fn a_threshold_that_the_policy_has_for_a_tool_takes_the_place_of_the_rule() {
    let tools = [tool("s", "a"), tool("s", "b")];
    let catalog = TestCatalog {
        tools: &tools,
        overlaps: &[0.9, 0.9],
        policy: "rules: [{name: own, match: {tools: [b]}, threshold: 0.4}]",
        ..TestCatalog::default()
    };
    let of_b = |overlap, score| Candidate { slot: 1, score, ..at(overlap) };
    let at_most = Some(Shortfall::OwnThreshold(0.4));
    let named = Candidate { found_by: FoundBy::Name, ..of_b(0.1, 0.9) };
    let candidates = [at(0.9), of_b(0.39, 0.9), of_b(0.4, 0.0), named];
    let shortfalls = shortfalls(catalog, &Options::default(), 0.3, &candidates);
    assert_eq!(shortfalls, [None, at_most, None, None]);
}

/// Returns a candidate at slot 0 of this overlap and score.
fn at(overlap: f32) -> Candidate {
    candidate([overlap, overlap, 0.0], false)
}

#[test]
fn where_words_decide_nothing_is_cut() {
    let tools = [tool("s", "a")];
    let policy = "rules: [{name: own, match: {tools: [a]}, threshold: 0.4}]";
    let catalog = TestCatalog { tools: &tools, policy, ..TestCatalog::default() };
    assert_eq!(shortfalls(catalog, &Options::default(), 0.9, &[at(0.0)]), [None]);
}

#[test]
fn untrusted_tools_set_no_bar_for_others() {
    let tools = [tool("far", "a"), tool("own", "b"), tool("own", "c")];
    let catalog = TestCatalog {
        tools: &tools,
        untrusted: &["far"],
        overlaps: &[0.9, 0.9, 0.9],
        ..TestCatalog::default()
    };
    let own = |slot, overlap| Candidate { slot, ..at(overlap) };
    let of = |level, candidates: &[Candidate]| {
        shortfalls(catalog, &Options::default(), level, candidates)
    };
    let ratio = Some(Shortfall::Ratio(0.5));
    assert_eq!(of(0.0, &[at(0.9), own(1, 0.4), own(2, 0.1)]), [None, None, ratio]);
    let no_tool_fits = Some(Shortfall::Level { best: 0.4, level: 0.5 });
    let reached = of(0.5, &[at(0.9), own(1, 0.4)]);
    assert_eq!(reached, [None, no_tool_fits], "its overlap is enough for itself alone");
    assert_eq!(of(0.5, &[at(0.9), at(0.4)])[1], ratio, "without others they set it");
    let named = Candidate { found_by: FoundBy::Name, ..own(1, 0.9) };
    assert_eq!(of(0.0, &[at(0.9), at(0.1), named])[1], ratio, "a named one is no such other");
}

#[test]
fn leaders_come_first_and_all_keep_their_order() {
    let leads = [false, true, false, true];
    let of = |(slot, leads)| Candidate { slot, leads, ..at(0.5) };
    let mut candidates: Vec<Candidate> = (0..).zip(leads).map(of).collect();
    leaders_first(&mut candidates);
    assert_eq!(candidates.iter().map(|one| one.slot).collect::<Vec<_>>(), [1, 3, 0, 2]);
}
