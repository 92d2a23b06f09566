//! Fusion of overlap, words and memory into one ranking. A weighted sum of scores scaled to 0 to 1 finds more than
//! ranks alone do (S. Bruch, S. Gai and A. Ingber, "An Analysis of Fusion Functions for Hybrid Retrieval", ACM
//! Transactions on Information Systems 42(1), 2023).

use std::collections::BTreeMap;

use crate::router::ranking::recall::RecalledTool;
use crate::shard::WordHit;

/// Minimum number of tools of each ranking that are fused.
pub(in crate::router) const POOL: usize = 100;

/// Scores of one tool for one intent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::router) struct Fused {
    /// Slot of the tool.
    pub(in crate::router) slot: u32,
    /// Overlap of the tool and the intent by which the tool is ranked.
    pub(in crate::router) overlap: f32,
    /// Score by words, as a share of the best tool's; 0 to 1.
    pub(in crate::router) words: f32,
    /// Share of the intent's words that the tool has, weighed by rarity; 0 to 1.
    pub(in crate::router) word_share: f32,
    /// Weight of earlier calls for similar intents; 0 to 1.
    pub(in crate::router) memory: f32,
    /// Overlap with the tool's row, or the value of [`RecalledTool::nearest`] if that is higher.
    pub(in crate::router) nearest: f32,
    /// Combined score; 0 to 1.
    pub(in crate::router) score: f32,
}

/// Weights of the rankings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::router) struct Weights {
    /// Weight of words against overlap; 0 to 1.
    pub(in crate::router) words: f32,
    /// Weight of memory against overlap and words together; 0 to 1.
    pub(in crate::router) memory: f32,
}

/// Functions that look up a slot.
#[derive(Debug, Clone, Copy)]
pub(in crate::router) struct Slots<O, R, S> {
    /// Overlap of a slot with the intent.
    pub(in crate::router) overlap: O,
    /// Overlap by which a slot is ranked, given its overlap.
    pub(in crate::router) ranked_by: R,
    /// True for slots over which scores are scaled.
    pub(in crate::router) sets_scale: S,
}

/// Returns all tools that overlap, words and memory found, best first; ties by slot. `near` and `worded` are slots with
/// scores, best first. `slots` looks up the overlap of a tool that only the others found.
///
/// Memory takes its weight from the other two in proportion to its highest weight for any tool. It changes nothing for
/// an intent without remembered calls. The best of the others keeps the rest of its score regardless of what is
/// remembered.
///
/// Scores are scaled over the tools for which `sets_scale` is true, if there are any. Other tools reach 1 at most.
pub(in crate::router) fn fuse(
    near: &[(u32, f32)],
    worded: &[WordHit],
    known: &[RecalledTool],
    slots: Slots<impl Fn(u32) -> f32, impl Fn(u32, f32) -> f32, impl Fn(u32) -> bool>,
    weights: Weights,
) -> Vec<Fused> {
    let Slots { overlap, ranked_by, sets_scale } = slots;
    let most_words = most(worded, &sets_scale).max(f32::MIN_POSITIVE);
    let mut found: BTreeMap<u32, Fused> = BTreeMap::new();
    for (slot, overlap) in near {
        found.insert(*slot, Fused::near(*slot, *overlap));
    }
    for WordHit { slot, score, share } in worded {
        let unseen = || Fused::near(*slot, overlap(*slot));
        let worded = found.entry(*slot).or_insert_with(unseen);
        worded.words = (score / most_words).min(1.0);
        worded.word_share = *share;
    }
    for one in known {
        let fused =
            found.entry(one.slot).or_insert_with(|| Fused::near(one.slot, overlap(one.slot)));
        fused.memory = one.weight;
        fused.nearest = fused.nearest.max(one.nearest);
    }
    found.values_mut().for_each(|fused| fused.overlap = ranked_by(fused.slot, fused.overlap));
    let has_scale = found.keys().any(|slot| sets_scale(*slot));
    let of_scale = |fused: &&Fused| !has_scale || sets_scale(fused.slot);
    let overlaps = || found.values().filter(of_scale).map(|fused| fused.overlap);
    let least = overlaps().fold(f32::INFINITY, f32::min);
    let span = (overlaps().fold(f32::NEG_INFINITY, f32::max) - least).max(f32::MIN_POSITIVE);
    let most_known = known.iter().map(|one| one.weight).fold(0.0, f32::max);
    let Weights { words, memory } = weights;
    let scored = |fused: Fused| {
        let near = ((fused.overlap - least) / span).clamp(0.0, 1.0);
        let alone = (1.0 - words) * near + words * fused.words;
        let score = (1.0 - memory * most_known) * alone + memory * fused.memory;
        Fused { score, ..fused }
    };
    let mut best: Vec<Fused> = found.into_values().map(scored).collect();
    best.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.slot.cmp(&b.slot)));
    best
}

/// Returns the highest score of the hits that set the scale, or of all hits if none does.
fn most(hits: &[WordHit], sets_scale: impl Fn(u32) -> bool) -> f32 {
    let of_scale = hits.iter().filter(|hit| sets_scale(hit.slot)).map(|hit| hit.score);
    let of_all = || hits.iter().map(|hit| hit.score).reduce(f32::max);
    of_scale.reduce(f32::max).or_else(of_all).unwrap_or(1.0)
}

impl Fused {
    /// Creates scores from the overlap alone.
    fn near(slot: u32, overlap: f32) -> Self {
        let [words, word_share, memory, score] = [0.0; 4];
        Self { slot, overlap, words, word_share, memory, nearest: overlap, score }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WEIGHTS: Weights = Weights { words: 0.4, memory: 0.3 };

    fn all(_: u32) -> bool {
        true
    }

    fn by_overlap(_: u32, overlap: f32) -> f32 {
        overlap
    }

    fn hit(slot: u32, score: f32) -> WordHit {
        WordHit { slot, score, share: 0.0 }
    }

    #[test]
    fn who_is_not_trusted_stretches_no_scale() {
        let near = [(9, 0.9), (1, 0.5), (2, 0.4), (3, 0.3)];
        let worded = [hit(9, 40.0), hit(2, 4.0)];
        let scores = |near: &[(u32, f32)], worded: &[WordHit]| {
            let fused = fuse(
                near,
                worded,
                &[],
                Slots { overlap: |_| 0.3, ranked_by: by_overlap, sets_scale: |slot| slot != 9 },
                WEIGHTS,
            );
            fused.into_iter().map(|f| (f.slot, f.score)).collect::<BTreeMap<_, _>>()
        };
        let mut with = scores(&near, &worded);
        assert!((with.remove(&9).expect("found") - 1.0).abs() < 1e-6, "1 at most");
        assert_eq!(with, scores(&near[1..], &worded[1..]), "the others' scores are as without it");
        // Untrusted tools alone set their own scale.
        let alone = fuse(
            &[(9, 0.4), (8, 0.3), (7, 0.2)],
            &[hit(9, 0.5)],
            &[],
            Slots { overlap: |_| 0.0, ranked_by: by_overlap, sets_scale: |_| false },
            WEIGHTS,
        );
        let [words, near] = [WEIGHTS.words, 1.0 - WEIGHTS.words];
        for (fused, score) in alone.iter().zip([words + near, near / 2.0, 0.0]) {
            assert!((fused.score - score).abs() < 1e-6, "{fused:?}");
        }
        // One that is farther than all others has no score below 0.
        let far = scores(&[(1, 0.5), (2, 0.4), (9, 0.1)], &[]);
        assert!(far[&9].abs() < 1e-6, "{far:?}");
    }

    #[test]
    fn a_tool_that_several_rankings_found_has_what_each_says() {
        let worded = [WordHit { slot: 1, score: 2.0, share: 0.75 }];
        let known = [
            RecalledTool { slot: 1, weight: 0.5, nearest: 0.4 },
            RecalledTool { slot: 2, weight: 0.1, nearest: 0.6 },
        ];
        let slots = Slots { overlap: |_| 0.3, ranked_by: by_overlap, sets_scale: all };
        let fused = fuse(&[(1, 0.5)], &worded, &known, slots, WEIGHTS);
        let row = |one: &Fused| (one.slot, one.overlap, one.word_share, one.memory, one.nearest);
        let rows: Vec<_> = fused.iter().map(row).collect();
        assert_eq!(rows, [(1, 0.5, 0.75, 0.5, 0.5), (2, 0.3, 0.0, 0.1, 0.6)]);
    }

    #[test]
    fn scores_are_scaled_over_what_was_found_and_added() {
        let overlap = |slot| if slot == 7 { 0.1 } else { 0.0 };
        let fused = fuse(
            &[(1, 0.5), (2, 0.3)],
            &[hit(2, 8.0), hit(7, 4.0)],
            &[],
            Slots { overlap, ranked_by: by_overlap, sets_scale: all },
            WEIGHTS,
        );
        let rows: Vec<_> = fused.iter().map(|f| (f.slot, f.overlap, f.words)).collect();
        assert_eq!(rows, [(2, 0.3, 1.0), (1, 0.5, 0.0), (7, 0.1, 0.5)]);
        for (fused, score) in fused.iter().zip([0.6 * 0.5 + 0.4, 0.6, 0.2]) {
            assert!((fused.score - score).abs() < 1e-6, "{fused:?}");
        }
    }

    #[test]
    fn what_a_tool_is_ranked_by_does_not_change_how_near_it_is() {
        let ranked_by = |slot, overlap| if slot == 7 { 0.75 } else { overlap };
        let slots = Slots { overlap: |_| 0.1, ranked_by, sets_scale: all };
        let fused = fuse(&[(1, 0.5), (2, 0.3)], &[hit(7, 1.0)], &[], slots, WEIGHTS);
        let rows: Vec<_> = fused.iter().map(|f| (f.slot, f.overlap, f.nearest)).collect();
        assert_eq!(rows, [(7, 0.75, 0.1), (1, 0.5, 0.5), (2, 0.3, 0.3)]);
    }

    #[test]
    fn one_ranking_alone_is_kept_and_ties_go_by_slot() {
        let slots = |fused: Vec<Fused>| fused.iter().map(|f| f.slot).collect::<Vec<_>>();
        let near = |_| 0.0;
        assert_eq!(
            slots(fuse(
                &[(3, 0.5), (1, 0.2)],
                &[],
                &[],
                Slots { overlap: near, ranked_by: by_overlap, sets_scale: all },
                WEIGHTS
            )),
            [3, 1]
        );
        assert_eq!(
            slots(fuse(
                &[],
                &[hit(9, 2.0), hit(4, 2.0)],
                &[],
                Slots { overlap: near, ranked_by: by_overlap, sets_scale: all },
                WEIGHTS
            )),
            [4, 9]
        );
        assert!(
            fuse(
                &[],
                &[],
                &[],
                Slots { overlap: near, ranked_by: by_overlap, sets_scale: all },
                WEIGHTS
            )
            .is_empty()
        );
    }

    #[test]
    fn what_is_remembered_lifts_a_tool_and_pushes_none_out() {
        let known = |slot, weight| RecalledTool { slot, weight, nearest: 0.4 };
        let near = [(1, 0.5), (2, 0.4), (3, 0.3)];
        let fused = |known: &[RecalledTool]| {
            fuse(
                &near,
                &[],
                known,
                Slots { overlap: |_| 0.1, ranked_by: by_overlap, sets_scale: all },
                WEIGHTS,
            )
        };
        let of = |fused: &[Fused], slot| *fused.iter().find(|f| f.slot == slot).expect("found");
        let plain = fused(&[]);
        // Words take .4 of the score, so overlaps are spread over 0 to .6. Slot 7 stretches them down to its own
        // overlap.
        let with = fused(&[known(7, 1.0), known(3, 0.5)]);
        assert_eq!(of(&with, 7).nearest, 0.4);
        for (slot, wanted) in [(7, 0.3), (1, 0.7 * 0.6), (3, 0.7 * 0.3 + 0.15)] {
            assert!((of(&with, slot).score - wanted).abs() < 1e-6, "{:?}", of(&with, slot));
        }
        assert_eq!(plain.first().map(|f| f.slot), with.first().map(|f| f.slot), "a wrong memory");
        assert_eq!(fused(&[known(2, 0.0)]), plain, "nothing to say");
    }
}
