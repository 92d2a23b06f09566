//! Histograms that one thread counts and any thread reads.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Number of ranges of every distribution; the last range is open.
pub const RANGES: usize = 14;

/// Upper bounds, inclusive, of all ranges but the last.
pub(super) type Bounds = [u64; RANGES - 1];

/// Distribution of values over ranges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Distribution {
    /// Upper bounds, inclusive, of all ranges but the last, which is open.
    pub bounds: [u64; RANGES - 1],
    /// Number of values in each range.
    pub counts: [u64; RANGES],
    /// Sum of all values.
    pub sum: u64,
}

impl Distribution {
    /// Returns the number of values.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }
}

/// Live counters of a [`Distribution`].
#[derive(Debug)]
pub(super) struct Ranges {
    bounds: Bounds,
    counts: [AtomicU64; RANGES],
    sum: AtomicU64,
}

impl Ranges {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self { bounds, counts: Default::default(), sum: AtomicU64::new(0) }
    }

    pub(super) fn add(&self, value: u64) {
        let range = self.bounds.partition_point(|bound| *bound < value);
        self.counts[range].fetch_add(1, Relaxed);
        self.sum.fetch_add(value, Relaxed);
    }

    pub(super) fn snapshot(&self) -> Distribution {
        Distribution {
            bounds: self.bounds,
            counts: std::array::from_fn(|range| self.counts[range].load(Relaxed)),
            sum: self.sum.load(Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_belong_to_the_range_below() {
        let ranges = Ranges::new(std::array::from_fn(|i| 10 * (i as u64 + 1)));
        for value in [0, 10, 11, 130, 131, 1_000] {
            ranges.add(value);
        }
        let found = ranges.snapshot();
        assert_eq!((found.counts[0], found.counts[1]), (2, 1));
        assert_eq!((found.counts[RANGES - 2], found.counts[RANGES - 1]), (1, 2));
        assert_eq!((found.total(), found.sum), (6, 1_282));
    }
}
