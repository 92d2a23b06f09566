//! Tests of the whole index: both search paths against a plain sort, and against each other.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::sync::Barrier;

use fixedbitset::FixedBitSet;
use proptest::prelude::*;

use super::graph::Graph;
use super::permits::Permits;
use super::samples::Samples;
use super::{Hit, IndexError, IndexOptions, VectorIndex};

const WIDTH: usize = 32;

/// Options for exact search over the rows alone, for any number of rows.
const PLAIN: IndexOptions = IndexOptions {
    graph_above: usize::MAX,
    codes_above: usize::MAX,
    exact_selectivity: 1.0,
    expansion: 128,
};
/// Options for exact search with byte codes.
const CODED: IndexOptions = IndexOptions { codes_above: 0, ..PLAIN };
/// Options for search in the graph, at every selectivity.
const GRAPH: IndexOptions = IndexOptions { graph_above: 0, exact_selectivity: 0.0, ..CODED };

fn index(rows: &[f32], options: &IndexOptions) -> VectorIndex {
    VectorIndex::build_with(WIDTH, rows.to_vec(), options).unwrap()
}

/// Returns clustered rows, and queries of the same kind.
fn sample(rows: usize, queries: usize) -> (Vec<f32>, Vec<f32>) {
    let mut all = Samples::new(1, WIDTH).clustered_rows(rows + queries, rows / 20 + 1);
    let queries = all.split_off(rows * WIDTH);
    (all, queries)
}

/// Returns about one slot in `one_in`.
fn some(slots: usize, one_in: usize) -> FixedBitSet {
    let mut samples = Samples::new(one_in as u64, WIDTH);
    (0..slots).filter(|_| samples.below(one_in) == 0).collect()
}

/// Searches by definition: computes all overlaps and sorts them.
fn naive(rows: &[f32], query: &[f32], k: usize, allowed: Option<&FixedBitSet>) -> Vec<(u32, f64)> {
    let mut all: Vec<(u32, f64)> = (0..)
        .zip(rows.chunks_exact(query.len()))
        .filter(|(slot, _)| allowed.is_none_or(|bits| bits.contains(*slot as usize)))
        .map(|(slot, row)| {
            (slot, row.iter().zip(query).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum())
        })
        .collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    all.truncate(k);
    all
}

fn slots(hits: &[Hit]) -> Vec<u32> {
    hits.iter().map(|hit| hit.slot).collect()
}

/// Checks that the hits are ordered, allowed and distinct, and as good as the best at each rank.
fn check_exact(hits: &[Hit], best: &[(u32, f64)], allowed: Option<&FixedBitSet>) {
    assert_eq!(hits.len(), best.len());
    for (hit, (_, overlap)) in hits.iter().zip(best) {
        assert!((f64::from(hit.overlap) - overlap).abs() < 1e-5, "{hit:?} for {overlap}");
        assert!(allowed.is_none_or(|bits| bits.contains(hit.slot as usize)), "{hit:?}");
    }
    for pair in hits.windows(2) {
        let tie = pair[0].overlap == pair[1].overlap;
        assert!(pair[0].overlap > pair[1].overlap || tie && pair[0].slot < pair[1].slot);
    }
}

#[test]
fn exact_paths_are_the_naive_sort_and_agree_bit_for_bit() {
    let (rows, queries) = sample(700, 12);
    let plain = index(&rows, &PLAIN);
    let coded = index(&rows, &CODED);
    for query in queries.chunks_exact(WIDTH) {
        for allowed in [None, Some(some(700, 2)), Some(some(700, 30))] {
            let allowed = allowed.as_ref();
            for k in [1, 10, 5_000] {
                let hits = plain.search(query, k, allowed).unwrap();
                check_exact(&hits, &naive(&rows, query, k, allowed), allowed);
                assert_eq!(hits, coded.search(query, k, allowed).unwrap());
            }
        }
    }
}

#[test]
fn the_graph_recalls_what_the_exact_scan_finds() {
    let (rows, queries) = sample(2_000, 30);
    let exact = index(&rows, &PLAIN);
    let graph = index(&rows, &GRAPH);
    assert!(graph.has_graph() && !exact.has_graph());
    for one_in in [1, 2, 10, 100] {
        let allowed = (one_in > 1).then(|| some(2_000, one_in));
        let mut found = 0;
        let mut wanted = 0;
        for query in queries.chunks_exact(WIDTH) {
            let best = slots(&exact.search(query, 10, allowed.as_ref()).unwrap());
            let hits = graph.search(query, 10, allowed.as_ref()).unwrap();
            assert!(hits.is_sorted_by(|a, b| a.overlap >= b.overlap));
            assert!(
                hits.iter()
                    .all(|hit| allowed.as_ref().is_none_or(|a| a.contains(hit.slot as usize)))
            );
            found += hits.iter().filter(|hit| best.contains(&hit.slot)).count();
            wanted += best.len();
        }
        let recall = found as f64 / wanted as f64;
        assert!(recall >= 0.98, "recall@10 is {recall} with one in {one_in} allowed");
    }
}

#[test]
fn a_graph_can_follow_the_exact_index() {
    let (rows, queries) = sample(300, 1);
    let exact = VectorIndex::build_exact(WIDTH, rows.clone(), &GRAPH).unwrap();
    assert!(exact.lacks_graph() && !exact.has_graph());
    let whole = exact.with_graph();
    assert!(whole.has_graph() && !whole.lacks_graph());
    assert!(whole.memory_bytes() > exact.memory_bytes());
    assert_eq!(slots(&whole.search(&queries, 3, None).unwrap()).len(), 3);
    assert!(!index(&rows, &PLAIN).lacks_graph());
}

#[test]
fn a_filtered_graph_search_is_never_short() {
    let (rows, queries) = sample(1_500, 5);
    let graph = index(&rows, &GRAPH);
    let mut far = FixedBitSet::with_capacity(1_500);
    far.extend([3, 700, 1_499]);
    for query in queries.chunks_exact(WIDTH) {
        let hits = graph.search(query, 10, Some(&far)).unwrap();
        check_exact(&hits, &naive(&rows, query, 10, Some(&far)), Some(&far));
        assert_eq!(graph.search(query, 1_500, None).unwrap().len(), 1_500);
    }
}

#[test]
fn the_graph_is_the_same_every_time() {
    let (rows, queries) = sample(600, 20);
    let one = index(&rows, &GRAPH);
    let other = index(&rows, &GRAPH);
    for query in queries.chunks_exact(WIDTH) {
        assert_eq!(one.search(query, 10, None), other.search(query, 10, None));
    }
}

#[test]
fn many_more_searches_than_contexts_all_succeed_and_agree() {
    let (rows, queries) = sample(600, 16);
    let mut index = index(&rows, &GRAPH);
    // usearch fails a search if every context is taken. With one context, any overlap would show.
    index.graph = Some(Graph::build(&index.flat, 128, Permits::new(1)).unwrap());
    let index = &index;
    let half = some(600, 2);
    let search = |query| {
        // The graph is asked directly first, because the exact scan would hide a failure.
        assert!(index.graph.as_ref().unwrap().candidates(query, 10, Some(&half)).is_some());
        index.search(query, 10, Some(&half)).unwrap()
    };
    let expected: Vec<_> = queries.chunks_exact(WIDTH).map(search).collect();
    let threads = 8 * std::thread::available_parallelism().map_or(8, usize::from).max(8);
    let started = Barrier::new(threads);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                started.wait();
                for (query, expected) in queries.chunks_exact(WIDTH).zip(&expected) {
                    assert_eq!(&search(query), expected);
                }
            });
        }
    });
}

#[test]
fn equal_rows_come_by_slot() {
    let row = Samples::new(5, WIDTH).unit_rows(1);
    let rows = row.repeat(300);
    for options in [PLAIN, CODED] {
        let hits = index(&rows, &options).search(&row, 7, None).unwrap();
        assert_eq!(slots(&hits), [0, 1, 2, 3, 4, 5, 6]);
    }
    // Equal rows split a graph in two: fewer than 200 can be reached, so the exact scan is used.
    let graph = index(&rows, &GRAPH);
    assert_eq!(graph.search(&row, 7, None).unwrap().len(), 7);
    assert_eq!(graph.graph.as_ref().unwrap().candidates(&row, 200, None), None);
    assert_eq!(slots(&graph.search(&row, 200, None).unwrap()), (0..200).collect::<Vec<_>>());
}

#[test]
fn one_great_component_costs_time_but_no_hit() {
    let mut rows = Samples::new(6, WIDTH).clustered_rows(400, 9);
    for (slot, row) in rows.chunks_exact_mut(WIDTH).enumerate().step_by(5) {
        row.fill(0.0);
        row[slot % WIDTH] = if slot % 2 == 0 { 1.0 } else { -1.0 };
    }
    let queries = Samples::new(7, WIDTH).unit_rows(20);
    for query in queries.chunks_exact(WIDTH).chain(rows.chunks_exact(WIDTH).take(20)) {
        assert_eq!(
            index(&rows, &PLAIN).search(query, 10, None),
            index(&rows, &CODED).search(query, 10, None)
        );
    }
}

#[test]
fn nothing_to_find_is_an_empty_answer() {
    let query = Samples::new(8, WIDTH).unit_rows(1);
    for options in [PLAIN, CODED, GRAPH] {
        let empty = index(&[], &options);
        assert!(empty.is_empty());
        assert_eq!(empty.search(&query, 10, None), Ok(Vec::new()));
        assert_eq!(empty.overlap(&query, 0), None);
        let one = index(&query, &options);
        assert_eq!(one.search(&query, 0, None), Ok(Vec::new()));
        assert_eq!(one.search(&query, 9, Some(&FixedBitSet::with_capacity(1))), Ok(Vec::new()));
        assert_eq!(one.search(&query, 9, Some(&FixedBitSet::new())), Ok(Vec::new()));
        assert_eq!(slots(&one.search(&query, usize::MAX, None).unwrap()), [0]);
    }
}

#[test]
fn bits_beyond_the_last_slot_are_ignored() {
    let (rows, queries) = sample(200, 1);
    let mut allowed = FixedBitSet::with_capacity(4_000);
    allowed.extend([5, 199, 200, 3_999]);
    for options in [PLAIN, CODED, GRAPH] {
        let mut hits = slots(&index(&rows, &options).search(&queries, 10, Some(&allowed)).unwrap());
        hits.sort_unstable();
        assert_eq!(hits, [5, 199]);
    }
}

#[test]
fn wrong_vectors_are_refused() {
    let good = Samples::new(9, WIDTH).unit_rows(3);
    let build = |dimensions, rows: &[f32]| VectorIndex::build(dimensions, rows.to_vec()).err();
    assert_eq!(build(0, &good), Some(IndexError::Dimensions(0)));
    assert_eq!(build(1 << 20, &good), Some(IndexError::Dimensions(1 << 20)));
    assert_eq!(build(64, &good), Some(IndexError::PartialRow { values: 96, dimensions: 64 }));
    let index = index(&good, &PLAIN);
    let short = index.search(&good[1..WIDTH], 1, None);
    assert_eq!(short, Err(IndexError::QueryLength { given: 31, expected: 32 }));
    for wrong in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, 2.0] {
        let mut rows = good.clone();
        rows[WIDTH + 3] = wrong;
        assert_eq!(build(WIDTH, &rows), Some(IndexError::RowNotUnit { slot: 1 }));
        let query = &rows[WIDTH..2 * WIDTH];
        assert_eq!(index.search(query, 1, None), Err(IndexError::QueryNotUnit));
        assert_eq!(index.overlap(query, 0), None);
    }
    assert_eq!(build(WIDTH, &[0.0; WIDTH]), Some(IndexError::RowNotUnit { slot: 0 }));
}

#[test]
fn overlap_is_the_cosine_of_one_slot() {
    let rows = Samples::new(10, WIDTH).unit_rows(4);
    let index = index(&rows, &PLAIN);
    assert!((index.overlap(&rows[..WIDTH], 0).unwrap() - 1.0).abs() < 1e-6);
    assert_eq!(index.overlap(&rows[..WIDTH], 4), None);
    assert_eq!((index.len(), index.dimensions()), (4, WIDTH));
    assert!(index.memory_bytes() >= 4 * WIDTH * 4);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn exact_search_is_the_naive_sort(
        seed in any::<u64>(),
        width in 1_usize..70,
        count in 0_usize..300,
        k in 0_usize..400,
        one_in in 1_usize..6,
        coded in any::<bool>(),
    ) {
        let mut samples = Samples::new(seed, width);
        let rows = samples.unit_rows(count);
        let query = samples.unit_rows(1);
        let allowed = (one_in > 1).then(|| some(count, one_in));
        let options = if coded { CODED } else { PLAIN };
        let index = VectorIndex::build_with(width, rows.clone(), &options).unwrap();
        let hits = index.search(&query, k, allowed.as_ref()).unwrap();
        check_exact(&hits, &naive(&rows, &query, k, allowed.as_ref()), allowed.as_ref());
    }

    #[test]
    fn any_values_are_answered_or_refused(
        rows in prop::collection::vec(any::<f32>(), 0..64),
        query in prop::collection::vec(any::<f32>(), 0..10),
        dimensions in 0_usize..9,
    ) {
        if let Ok(index) = VectorIndex::build_with(dimensions, rows, &GRAPH) {
            let _ = index.search(&query, 3, None);
            let _ = index.overlap(&query, 1);
        }
    }
}
