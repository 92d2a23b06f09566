//! Collector of the k best of a stream of hits, and the order in which hits are ranked.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::Hit;

/// Compares hits, best first: by higher overlap, then by lower slot.
fn rank(a: &Hit, b: &Hit) -> Ordering {
    b.overlap.total_cmp(&a.overlap).then(a.slot.cmp(&b.slot))
}

/// Hit in an order whose greatest element ranks worst.
#[derive(Debug, Clone, Copy)]
struct Ranked(Hit);

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        rank(&self.0, &other.0)
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Ranked {}

/// Collector of the `k` best hits.
#[derive(Debug)]
pub(super) struct Top {
    worst_first: BinaryHeap<Ranked>,
    k: usize,
}

impl Top {
    /// Creates a collector. `k` must be at least 1 and at most the number of slots, because memory for `k` hits is
    /// reserved at once.
    pub(super) fn new(k: usize) -> Self {
        Self { worst_first: BinaryHeap::with_capacity(k), k }
    }

    pub(super) fn offer(&mut self, hit: Hit) {
        if self.worst_first.len() < self.k {
            self.worst_first.push(Ranked(hit));
        } else if let Some(mut worst) = self.worst_first.peek_mut()
            && rank(&hit, &worst.0).is_lt()
        {
            *worst = Ranked(hit);
        }
    }

    /// Returns the overlap that a hit must reach to be kept. Negative infinity until `k` hits are held.
    pub(super) fn bar(&self) -> f32 {
        match self.worst_first.peek() {
            Some(worst) if self.worst_first.len() == self.k => worst.0.overlap,
            _ => f32::NEG_INFINITY,
        }
    }

    /// Returns the hits, best first.
    pub(super) fn into_hits(self) -> Vec<Hit> {
        self.worst_first.into_sorted_vec().into_iter().map(|ranked| ranked.0).collect()
    }
}
