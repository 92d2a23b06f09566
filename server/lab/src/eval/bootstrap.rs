//! Percentile bootstrap intervals over queries: the range in which a figure may lie, since other queries could have
//! been asked (B. Efron and R. J. Tibshirani, "An Introduction to the Bootstrap", 1993; for retrieval T. Sakai,
//! "Evaluating evaluation metrics based on the bootstrap", SIGIR 2006).

use super::sample::{mean, quantile};
use crate::random::Random;

/// Confidence level: the share of intervals that hold the true value.
pub const CONFIDENCE: f64 = 0.95;

/// Confidence interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

/// Value with its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Value for the given queries.
    pub value: f64,
    /// Confidence interval; `None` if nothing was resampled.
    pub interval: Option<Interval>,
}

/// Settings of the resampling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bootstrap {
    /// Number of resamples; 0 for no intervals.
    pub resamples: usize,
    /// Seed of the resamples. The same seed gives the same intervals.
    pub seed: u64,
}

impl Default for Bootstrap {
    fn default() -> Self {
        Self { resamples: 1_000, seed: 1 }
    }
}

impl Bootstrap {
    /// Returns the mean of each column. All columns must be of the same queries, and they share the same resamples.
    #[must_use]
    pub fn means(&self, columns: &[&[f64]]) -> Vec<Estimate> {
        let length = columns.first().map_or(0, |column| column.len());
        let mut resampled = vec![Vec::with_capacity(self.resamples); columns.len()];
        let mut random = Random::new(self.seed);
        let mut picks = vec![0; length];
        // Without values there is nothing to resample.
        let resamples = if length == 0 { 0 } else { self.resamples };
        for _ in 0..resamples {
            picks.iter_mut().for_each(|pick| *pick = random.below(length));
            for (column, means) in columns.iter().zip(&mut resampled) {
                means.push(picks.iter().map(|pick| column[*pick]).sum::<f64>() / length as f64);
            }
        }
        let estimates = columns.iter().zip(resampled);
        estimates.map(|(column, means)| estimate(mean(column), means)).collect()
    }

    /// Estimates a statistic of two groups that are resampled separately. `statistic` receives the number of times that
    /// each member of a group was drawn.
    pub fn of_two(
        &self,
        sizes: (usize, usize),
        statistic: impl Fn(&[u32], &[u32]) -> f64,
    ) -> Estimate {
        let value = statistic(&vec![1; sizes.0], &vec![1; sizes.1]);
        let mut random = Random::new(self.seed);
        let resamples = if sizes.0 == 0 || sizes.1 == 0 { 0 } else { self.resamples };
        let resampled = (0..resamples).map(|_| {
            let first = drawn(&mut random, sizes.0);
            statistic(&first, &drawn(&mut random, sizes.1))
        });
        estimate(value, resampled.collect())
    }
}

/// Counts how often each of `size` members is drawn in `size` draws.
fn drawn(random: &mut Random, size: usize) -> Vec<u32> {
    let mut counts = vec![0; size];
    (0..size).for_each(|_| counts[random.below(size)] += 1);
    counts
}

fn estimate(value: f64, mut resampled: Vec<f64>) -> Estimate {
    resampled.sort_by(f64::total_cmp);
    let tail = (1.0 - CONFIDENCE) / 2.0;
    let interval =
        || Interval { low: quantile(&resampled, tail), high: quantile(&resampled, 1.0 - tail) };
    Estimate { value, interval: (!resampled.is_empty()).then(interval) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_a_share_is_that_of_the_binomial() {
        let values: Vec<f64> = (0..400).map(|i| f64::from(u8::from(i % 4 == 0))).collect();
        let estimates = Bootstrap { resamples: 4_000, seed: 7 }.means(&[&values, &values]);
        assert_eq!(estimates[0], estimates[1]);
        let Estimate { value, interval: Some(interval) } = estimates[0] else {
            panic!("resampled")
        };
        // 1.96 standard errors of .25 over 400.
        let reach = 1.96 * (0.25 * 0.75 / 400.0_f64).sqrt();
        assert!((value - 0.25).abs() < 1e-12);
        assert!((interval.low - (0.25 - reach)).abs() < 0.005, "{interval:?}");
        assert!((interval.high - (0.25 + reach)).abs() < 0.005, "{interval:?}");
    }

    #[test]
    fn the_seed_decides() {
        let values: Vec<f64> = (0..50).map(f64::from).collect();
        let of = |seed| Bootstrap { resamples: 100, seed }.means(&[&values]);
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
    }

    #[test]
    fn nothing_has_no_interval() {
        let none = Bootstrap { resamples: 0, seed: 1 };
        assert_eq!(none.means(&[&[1.0, 2.0]]), [Estimate { value: 1.5, interval: None }]);
        let empty: &[f64] = &[];
        assert_eq!(Bootstrap::default().means(&[empty])[0].interval, None);
        assert_eq!(Bootstrap::default().of_two((0, 3), |_, _| 0.0).interval, None);
    }

    #[test]
    fn two_groups_are_drawn_apart_and_whole() {
        let sums = |first: &[u32], second: &[u32]| {
            assert_eq!((first.iter().sum::<u32>(), second.iter().sum::<u32>()), (5, 3));
            f64::from(first[0])
        };
        let estimate = Bootstrap::default().of_two((5, 3), sums);
        assert_eq!(estimate.value, 1.0);
        assert!(estimate.interval.is_some_and(|i| i.low == 0.0 && i.high >= 2.0), "{estimate:?}");
    }
}
