//! Overlap and words together: two rankings on one scale. A weighted sum of scores scaled to 0 to 1 finds
//! more than ranks alone do (S. Bruch, S. Gai and A. Ingber, "An Analysis of Fusion Functions for Hybrid
//! Retrieval", ACM Transactions on Information Systems 42(1), 2023).

use std::collections::BTreeMap;

/// Tools of each ranking that are fused, at least.
pub(super) const POOL: usize = 100;

/// What is known of one tool and one intent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Fused {
    /// Which tool.
    pub(super) slot: u32,
    /// The cosine of its summary and the intent.
    pub(super) overlap: f32,
    /// What its words have in common with the intent, as a share of the best tool's; 0 to 1.
    pub(super) words: f32,
    /// Both together, 0 to 1.
    pub(super) score: f32,
}

/// All that overlap and words found, best first; ties by slot. `near` and `worded` are slots with scores, best
/// first; `overlap` gives that of a slot that only words found; `weight` is that of words, 0 to 1.
pub(super) fn fuse(
    near: &[(u32, f32)],
    worded: &[(u32, f32)],
    overlap: impl Fn(u32) -> f32,
    weight: f32,
) -> Vec<Fused> {
    let most_words = worded.first().map_or(1.0, |(_, score)| *score).max(f32::MIN_POSITIVE);
    let mut found: BTreeMap<u32, Fused> = BTreeMap::new();
    for (slot, overlap) in near {
        found.insert(*slot, Fused { slot: *slot, overlap: *overlap, words: 0.0, score: 0.0 });
    }
    for (slot, score) in worded {
        let unseen = || Fused { slot: *slot, overlap: overlap(*slot), words: 0.0, score: 0.0 };
        found.entry(*slot).or_insert_with(unseen).words = score / most_words;
    }
    let overlaps = || found.values().map(|fused| fused.overlap);
    let least = overlaps().fold(f32::INFINITY, f32::min);
    let span = (overlaps().fold(f32::NEG_INFINITY, f32::max) - least).max(f32::MIN_POSITIVE);
    let scored = |fused: Fused| {
        let score = (1.0 - weight) * (fused.overlap - least) / span + weight * fused.words;
        Fused { score, ..fused }
    };
    let mut best: Vec<Fused> = found.into_values().map(scored).collect();
    best.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.slot.cmp(&b.slot)));
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_scaled_over_what_was_found_and_added() {
        let overlap = |slot| if slot == 7 { 0.1 } else { 0.0 };
        let fused = fuse(&[(1, 0.5), (2, 0.3)], &[(2, 8.0), (7, 4.0)], overlap, 0.4);
        let rows: Vec<_> = fused.iter().map(|f| (f.slot, f.overlap, f.words)).collect();
        assert_eq!(rows, [(2, 0.3, 1.0), (1, 0.5, 0.0), (7, 0.1, 0.5)]);
        for (fused, score) in fused.iter().zip([0.6 * 0.5 + 0.4, 0.6, 0.2]) {
            assert!((fused.score - score).abs() < 1e-6, "{fused:?}");
        }
    }

    #[test]
    fn one_ranking_alone_is_kept_and_ties_go_by_slot() {
        let slots = |fused: Vec<Fused>| fused.iter().map(|f| f.slot).collect::<Vec<_>>();
        assert_eq!(slots(fuse(&[(3, 0.5), (1, 0.2)], &[], |_| 0.0, 0.4)), [3, 1]);
        assert_eq!(slots(fuse(&[], &[(9, 2.0), (4, 2.0)], |_| 0.0, 0.4)), [4, 9]);
        assert!(fuse(&[], &[], |_| 0.0, 0.4).is_empty());
    }
}
