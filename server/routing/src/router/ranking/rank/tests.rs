//! Tests of the order of tools, by overlap, words, memory and name, for one intent and several.

use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::memory::{Remembered, now_ms};
use crate::test_catalog::{QUERY, TestCatalog, TestTool, candidate, tool};
use toolgate_core::quantized_embedding::QuantizedEmbedding;
use toolgate_store::{Exemplar, MemoryChanges};

/// Embedding that is at a right angle to [`QUERY`].
const ACROSS: [f32; 2] = [0.0, 1.0];

const ENCODER: [u8; 8] = [1; 8];

/// Returns four tools, whose names no intent of a test has in passing.
fn tools() -> [TestTool; 4] {
    [tool("s", "open_file"), tool("s", "beta"), tool("t", "gamma"), tool("t", "delta")]
}

fn catalog(overlaps: &[f32]) -> Snapshot {
    TestCatalog { tools: &tools(), overlaps, ..TestCatalog::default() }.snapshot()
}

fn intent(text: &str, weight: f32) -> Intent {
    Intent::undivided(text.to_owned(), weight)
}

fn rank(snapshot: &Snapshot, intents: &[Intent], vectors: &[Vec<f32>], k: usize) -> Vec<Candidate> {
    Embedded::new(intents, vectors).rank(snapshot, k, None).expect("a ranking")
}

fn slots(candidates: &[Candidate]) -> Vec<u32> {
    candidates.iter().map(|one| one.slot).collect()
}

fn of_slot(candidates: &[Candidate], slot: u32) -> Candidate {
    *candidates.iter().find(|one| one.slot == slot).expect("it was found")
}

#[test]
fn the_nearest_tools_come_first() {
    let snapshot = catalog(&[0.5, 0.9, 0.1, 0.7]);
    let intents = [intent("zzz", 1.0)];
    let vectors = [QUERY.to_vec()];
    let ranked = rank(&snapshot, &intents, &vectors, 3);
    assert_eq!(slots(&ranked), [1, 3, 0], "three of four");
    let best = ranked[0];
    assert_eq!((best.found_by, best.leads, best.from_context), (FoundBy::Overlap, true, false));
    assert!((best.overlap - 0.9).abs() < 1e-5);
    assert!(!ranked[1].leads);
    let allowed: FixedBitSet = [0, 2].into_iter().collect();
    let ranked = Embedded::new(&intents, &vectors).rank(&snapshot, 3, Some(&allowed));
    assert_eq!(slots(&ranked.expect("a ranking")), [0, 2]);
}

#[test]
fn words_rank_where_nothing_was_embedded() {
    let snapshot = catalog(&[0.5, 0.9, 0.1, 0.7]);
    let intents = [intent("gamma", 1.0), intent("open a file", 1.0)];
    assert!(Embedded::new(&intents, &[]).is_words_only(&snapshot));
    let ranked = rank(&snapshot, &intents, &[], 9);
    assert_eq!(slots(&ranked), [0, 2], "two words before one");
    assert!(ranked.iter().all(|one| one.found_by == FoundBy::Words && one.overlap == 0.0));
    assert!((ranked[0].score - 1.0).abs() < 1e-6 && ranked[1].score < 1.0, "{ranked:?}");
    assert!(rank(&snapshot, &[intent("zzz", 1.0)], &[], 9).is_empty(), "no shared word");
    let without = catalog(&[]);
    assert!(Embedded::new(&intents, &[QUERY.to_vec()]).is_words_only(&without));
}

#[test]
fn a_named_tool_comes_before_every_nearer_one() {
    let snapshot = catalog(&[0.1, 0.9, 0.8, 0.7]);
    let intents = [intent("run open_file", 1.0)];
    let ranked = rank(&snapshot, &intents, &[QUERY.to_vec()], 4);
    assert_eq!(slots(&ranked)[..2], [0, 1]);
    assert_eq!((ranked[0].found_by, ranked[0].leads), (FoundBy::Name, true));
    assert!((ranked[0].overlap - 0.1).abs() < 1e-5 && (ranked[0].score - 4.1).abs() < 1e-5);
    assert_eq!(ranked.iter().filter(|one| one.slot == 0).count(), 1);
    let ranked = rank(&snapshot, &intents, &[], 4);
    assert_eq!((ranked[0].slot, ranked[0].found_by), (0, FoundBy::Name), "by words too");
}

#[test]
fn a_lighter_intent_is_context() {
    let snapshot = catalog(&[0.9, 0.5, 0.1, 0.0]);
    let intents = [intent("zzz", 2.0), intent("yyy", 1.0)];
    let ranked = rank(&snapshot, &intents, &[QUERY.to_vec(), ACROSS.to_vec()], 1);
    assert_eq!(slots(&ranked), [0, 3]);
    assert!(!ranked[0].from_context && ranked[1].from_context);
    assert!(ranked[0].score > 0.5, "the scale is that of the whole catalog");
    assert!((ranked[1].score * 2.0 - ranked[0].score).abs() < 1e-5, "half of the weight");
    assert!(ranked[0].leads && ranked[1].leads, "each intent has its best");
}

#[test]
fn what_was_said_before_is_less_evidence_that_a_tool_fits() {
    let snapshot = catalog(&[0.9, 0.5, 0.1, 0.0]);
    let nearest = |beside: Intent| {
        let intents = [intent("zzz", 1.0), beside];
        let ranked = rank(&snapshot, &intents, &[QUERY.to_vec(), ACROSS.to_vec()], 4);
        of_slot(&ranked, 3).parts.nearest
    };
    let whole = nearest(intent("yyy", 0.5));
    let context = nearest(Intent::context("yyy".to_owned(), 0.5));
    assert!((context - whole / 2.0).abs() < 1e-5, "{context} {whole}");
}

#[test]
fn a_tool_keeps_the_best_that_any_intent_says_of_it() {
    let snapshot = catalog(&[0.9, 0.5, 0.1, 0.0]);
    let intents = [intent("zzz", 1.0), intent("yyy", 1.0)];
    let both = rank(&snapshot, &intents, &[QUERY.to_vec(), ACROSS.to_vec()], 9);
    let first = rank(&snapshot, &intents[..1], &[QUERY.to_vec()], 9);
    let second = rank(&snapshot, &intents[1..], &[ACROSS.to_vec()], 9);
    for slot in 0..4 {
        let [both, one, other] = [&both, &first, &second].map(|ranked| of_slot(ranked, slot));
        assert!((both.score - one.score.max(other.score)).abs() < 1e-6, "{slot}");
        assert!((both.overlap - one.overlap.max(other.overlap)).abs() < 1e-6, "{slot}");
        assert!((both.parts.nearest - one.parts.nearest.max(other.parts.nearest)).abs() < 1e-6);
        assert_eq!(both.leads, one.leads || other.leads, "{slot}");
    }
}

#[test]
fn a_tool_that_the_request_wants_more_is_not_from_its_context() {
    let mut known = Candidate { from_context: true, leads: true, ..candidate(0, 0.4) };
    let of_request = Candidate { found_by: FoundBy::Memory, ..candidate(0, 0.6) };
    known.take_better(&of_request);
    assert_eq!((known.score, known.found_by, known.from_context), (0.6, FoundBy::Memory, false));
    assert!(known.leads, "it still leads the other");
    known.take_better(&Candidate { from_context: true, ..candidate(0, 0.6) });
    assert!(!known.from_context, "no better");
}

#[test]
fn each_clause_has_a_leader() {
    let snapshot = catalog(&[0.9, 0.5, 0.1, 0.0]);
    let two = Intent::new("list the tags, then delete the old branch".to_owned(), 1.0);
    assert_eq!(two.text_count(), 3);
    let slanted = vec![0.8, 0.6];
    let after = intent("yyy", 1.0);
    let vectors = [slanted, QUERY.to_vec(), ACROSS.to_vec(), QUERY.to_vec()];
    let ranked = rank(&snapshot, &[two, after], &vectors, 4);
    assert!(of_slot(&ranked, 0).leads && of_slot(&ranked, 3).leads);
    assert!(!of_slot(&ranked, 2).leads);
    let cosine = of_slot(&ranked, 0).overlap;
    let whole = 0.8 * 0.9 + 0.6 * (1.0 - 0.9_f32 * 0.9).sqrt();
    assert!((cosine - whole.max(0.9)).abs() < 1e-5, "a cosine with whole intents: {cosine}");
}

#[test]
fn a_tool_that_was_not_found_has_a_score_too() {
    let snapshot = catalog(&[0.9, 0.5, 0.1, 0.0]);
    let intents = [intent("zzz", 2.0), intent("yyy", 1.0)];
    let vectors = [QUERY.to_vec(), ACROSS.to_vec()];
    let (overlap, score) = Embedded::new(&intents, &vectors).score_of(&snapshot, 3);
    assert!((overlap - 1.0).abs() < 1e-5 && (score - 0.5).abs() < 1e-5);
    let (overlap, score) = Embedded::new(&intents, &vectors).score_of(&snapshot, 0);
    assert!((overlap - 0.9).abs() < 1e-5 && (score - 0.9).abs() < 1e-5);
    assert_eq!(Embedded::new(&intents, &[]).score_of(&snapshot, 0), (0.0, 0.0));
}

#[test]
fn a_tool_that_was_often_called_for_the_intent_is_found_by_memory() {
    let snapshot = catalog(&[0.9, 0.5, 0.1, 0.0]);
    let exemplar = |slot, strength| {
        let exemplar = Exemplar {
            place: 0,
            intent_embedding: QuantizedEmbedding::of(ENCODER, &QUERY).expect("a direction"),
            strength,
            seen_ms: now_ms(),
            fades_ms: i64::MAX,
            owner: [7; 8],
            made: 0,
            voters: Vec::new(),
        };
        (snapshot.tool(slot).id.clone(), exemplar)
    };
    let exemplars = vec![exemplar(0, 1.0), exemplar(1, 64.0), exemplar(3, 64.0)];
    let changes = MemoryChanges { version: 1, whole: true, exemplars };
    let remembered = Remembered::default().with(changes, Duration::from_secs(86_400));
    let recall = Recall::new(Arc::new(remembered), ENCODER);
    let intents = [intent("zzz", 1.0)];
    let vectors = [QUERY.to_vec()];
    let embedded = Embedded { recall: Some(&recall), ..Embedded::new(&intents, &vectors) };
    let ranked = embedded.rank(&snapshot, 9, None).expect("a ranking");
    assert_eq!(of_slot(&ranked, 3).found_by, FoundBy::Memory);
    assert_eq!(of_slot(&ranked, 1).found_by, FoundBy::Memory, "two thirds of its score");
    assert_eq!(of_slot(&ranked, 0).found_by, FoundBy::Overlap, "two fifths of its score");
    assert!(of_slot(&ranked, 3).score > of_slot(&ranked, 2).score);
    let allowed: FixedBitSet = [0].into_iter().collect();
    let ranked = embedded.rank(&snapshot, 9, Some(&allowed)).expect("a ranking");
    assert_eq!(slots(&ranked), [0], "memory opens nothing");
}

#[test]
fn memory_finds_a_tool_only_with_half_of_the_better_of_its_scores() {
    let embedded = Embedded::new(&[], &[]);
    let remembered = embedded.blend.memory;
    let found_by = |whole, clause| {
        embedded.found_by(&Parts { whole, clause, memory: 1.0, ..Parts::default() })
    };
    let less = 1.5 * remembered;
    let more = 2.5 * remembered;
    assert_eq!(found_by(less, less), FoundBy::Memory);
    assert_eq!(found_by(more, less), FoundBy::Overlap);
    assert_eq!(found_by(less, more), FoundBy::Overlap);
}

#[test]
fn equal_scores_go_by_trust_then_by_what_was_lowered_then_by_slot() {
    let tools = [tool("far", "a"), tool("own", "b"), tool("own", "c"), tool("far", "d")];
    let untrusted = ["far"];
    let catalog = TestCatalog { tools: &tools, untrusted: &untrusted, ..TestCatalog::default() };
    let lowered = |slot, lowered| {
        let mut one = candidate(slot, 0.5);
        one.parts.lowered = lowered;
        one
    };
    let mut candidates = [lowered(0, 0.1), lowered(3, 0.3), lowered(2, 0.0), lowered(1, 0.0)];
    sort(&catalog.snapshot(), &mut candidates);
    assert_eq!(slots(&candidates), [1, 2, 3, 0]);
    candidates[3].score = 0.6;
    sort(&catalog.snapshot(), &mut candidates);
    assert_eq!(slots(&candidates), [0, 1, 2, 3], "the score comes first");
}
