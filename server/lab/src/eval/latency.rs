//! Latency of answers: the time to rank and choose, query by query. Embedding is timed separately, because queries are
//! embedded in batches here and one by one in a server.

use std::time::Duration;

use super::embeddings::Batches;
use super::ranking::Answer;
use super::sample::quantile;

/// Latency of an evaluation.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Latency {
    /// Median time to rank and choose, in microseconds.
    pub p50: f64,
    /// 90th percentile of the same, in microseconds.
    pub p90: f64,
    /// 99th percentile of the same, in microseconds.
    pub p99: f64,
    /// Longest time, in microseconds.
    pub max: f64,
    /// Embedding of the queries.
    pub queries: Batches,
    /// Embedding of the summaries.
    pub summaries: Batches,
}

impl Latency {
    /// Computes the percentiles of the answers' times.
    #[must_use]
    pub fn of(answers: &[Answer], summaries: Batches, queries: Batches) -> Self {
        let mut times: Vec<f64> = answers.iter().map(|answer| micros(answer.time)).collect();
        times.sort_by(f64::total_cmp);
        let at = |share| quantile(&times, share);
        Self { p50: at(0.5), p90: at(0.9), p99: at(0.99), max: at(1.0), queries, summaries }
    }
}

/// Converts a duration to microseconds.
#[must_use]
pub fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_answers() {
        let answer = |micros| Answer { time: Duration::from_micros(micros), ..Answer::default() };
        let answers: Vec<_> = (1..=101).rev().map(answer).collect();
        let batches = Batches { texts: 4, time: Duration::from_micros(10) };
        let latency = Latency::of(&answers, batches, batches);
        let percentiles = [latency.p50, latency.p90, latency.p99, latency.max];
        for (actual, wanted) in percentiles.into_iter().zip([51.0, 91.0, 100.0, 101.0]) {
            assert!((actual - wanted).abs() < 1e-6, "{actual} for {wanted}");
        }
        assert!((latency.queries.micros_a_text() - 2.5).abs() < 1e-9);
        assert_eq!(Batches::default().micros_a_text(), 0.0);
    }
}
