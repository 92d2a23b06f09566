//! How long answers take: ranking and choosing, query by query; embedding apart, since queries are embedded in
//! batches here and one by one in a server.

use std::time::Duration;

use super::embeddings::Batches;
use super::ranking::Answer;
use super::sample::quantile;

/// Times of an evaluation.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Latency {
    /// Microseconds of ranking and choosing that half of the queries stay below.
    pub p50: f64,
    /// The same for nine in ten.
    pub p90: f64,
    /// The same for 99 in 100.
    pub p99: f64,
    /// The most.
    pub max: f64,
    /// Queries as they were embedded.
    pub queries: Batches,
    /// Summaries as they were embedded.
    pub summaries: Batches,
}

impl Latency {
    /// The answers' times.
    #[must_use]
    pub fn of(answers: &[Answer], summaries: Batches, queries: Batches) -> Self {
        let mut times: Vec<f64> = answers.iter().map(|answer| micros(answer.time)).collect();
        times.sort_by(f64::total_cmp);
        let at = |share| quantile(&times, share);
        Self { p50: at(0.5), p90: at(0.9), p99: at(0.99), max: at(1.0), queries, summaries }
    }
}

/// A duration in microseconds.
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
