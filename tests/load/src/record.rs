//! Outcomes and latencies of calls, by stream and by second.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use parking_lot::Mutex;
use serde::Serialize;

use crate::outcome::Outcome;

/// Longest latency that the histograms hold, in microseconds. They keep three significant digits.
const MICROS_MAX: u64 = 600_000_000;
const DIGITS: u8 = 3;

/// The report that is printed.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// Figures of each stream, named by its tenant, and of all streams together.
    pub(crate) streams: Vec<Summary>,
    pub(crate) all: Summary,
    /// Figures of all streams by the second of the planned send time.
    pub(crate) seconds: Vec<Second>,
}

/// Counts and latencies of the calls of one stream.
#[derive(Debug, Serialize)]
pub(crate) struct Summary {
    tenant: String,
    /// Calls per second that were planned.
    offered_per_second: f64,
    /// Answers per second.
    answered_per_second: f64,
    offered: u64,
    answered: u64,
    /// Answers that were found without embeddings. They are included in `answered`.
    degraded: u64,
    refused: u64,
    /// Calls that were not sent, because too many were in progress in this process.
    unsent: u64,
    failed: BTreeMap<String, u64>,
    answer_ms: Percentiles,
    refusal_ms: Percentiles,
}

/// Percentiles of the latency since the planned send time, in milliseconds.
#[derive(Debug, Serialize)]
pub(crate) struct Percentiles {
    p50: f64,
    p90: f64,
    p99: f64,
    p99_9: f64,
    max: f64,
}

/// Figures of all streams in one second.
#[derive(Debug, Serialize)]
pub(crate) struct Second {
    second: u64,
    offered: u64,
    answered: u64,
    refused: u64,
    failed: u64,
    answer_p99_ms: f64,
}

/// Collector of the outcomes of all streams.
pub(crate) struct Record {
    tenants: Vec<String>,
    streams: Mutex<Vec<Tally>>,
    seconds: Mutex<Vec<Tally>>,
}

#[derive(Clone)]
struct Tally {
    answers: Histogram<u64>,
    refusals: Histogram<u64>,
    degraded: u64,
    unsent: u64,
    failed: BTreeMap<String, u64>,
}

impl Tally {
    fn new() -> Self {
        let histogram = || {
            let mut histogram = Histogram::new_with_bounds(1, MICROS_MAX, DIGITS)
                .expect("three digits of ten minutes can be counted");
            histogram.auto(false);
            histogram
        };
        Self {
            answers: histogram(),
            refusals: histogram(),
            degraded: 0,
            unsent: 0,
            failed: BTreeMap::new(),
        }
    }

    fn add(&mut self, outcome: Option<&Outcome>, latency: Duration) {
        let micros = u64::try_from(latency.as_micros()).unwrap_or(MICROS_MAX);
        match outcome {
            None => self.unsent += 1,
            Some(Outcome::Answered) => self.answers.saturating_record(micros),
            Some(Outcome::Degraded) => {
                self.degraded += 1;
                self.answers.saturating_record(micros);
            }
            Some(Outcome::Refused) => self.refusals.saturating_record(micros),
            Some(Outcome::Failed(why)) => *self.failed.entry(why.clone()).or_default() += 1,
        }
    }

    fn merge(&mut self, other: &Self) {
        // Adding can't fail, because both have the same bounds.
        let _ = self.answers.add(&other.answers);
        let _ = self.refusals.add(&other.refusals);
        self.degraded += other.degraded;
        self.unsent += other.unsent;
        for (why, count) in &other.failed {
            *self.failed.entry(why.clone()).or_default() += count;
        }
    }

    fn failures(&self) -> u64 {
        self.failed.values().sum()
    }

    fn offered(&self) -> u64 {
        self.answers.len() + self.refusals.len() + self.unsent + self.failures()
    }

    #[expect(clippy::cast_precision_loss, reason = "calls stay far below 2^52")]
    fn summary(&self, tenant: &str, seconds: f64) -> Summary {
        Summary {
            tenant: tenant.to_owned(),
            offered_per_second: self.offered() as f64 / seconds,
            answered_per_second: self.answers.len() as f64 / seconds,
            offered: self.offered(),
            answered: self.answers.len(),
            degraded: self.degraded,
            refused: self.refusals.len(),
            unsent: self.unsent,
            failed: self.failed.clone(),
            answer_ms: Percentiles::of(&self.answers),
            refusal_ms: Percentiles::of(&self.refusals),
        }
    }
}

impl Percentiles {
    fn of(histogram: &Histogram<u64>) -> Self {
        let at = |quantile| millis(histogram.value_at_quantile(quantile));
        Self {
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p99_9: at(0.999),
            max: millis(histogram.max()),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "latencies stay far below 2^52 us")]
fn millis(micros: u64) -> f64 {
    micros as f64 / 1e3
}

impl Record {
    /// Creates a record of `seconds` seconds, rounded up.
    pub(crate) fn new(tenants: Vec<String>, seconds: f64) -> Self {
        let streams = Mutex::new(vec![Tally::new(); tenants.len()]);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a length")]
        let seconds = Mutex::new(vec![Tally::new(); seconds.ceil().max(1.0) as usize]);
        Self { tenants, streams, seconds }
    }

    /// Adds a call of stream `stream` that was planned `at` seconds after the end of the warm-up. `outcome` is `None`
    /// if it was not sent. Calls of the warm-up are left out.
    pub(crate) fn add(&self, stream: usize, at: f64, outcome: Option<&Outcome>, latency: Duration) {
        if at < 0.0 {
            return;
        }
        let mut streams = self.streams.lock();
        streams[stream].add(outcome, latency);
        drop(streams);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not below 0")]
        let second = at as usize;
        let mut seconds = self.seconds.lock();
        if let Some(tally) = seconds.get_mut(second) {
            tally.add(outcome, latency);
        }
    }

    /// Returns the report after `length` seconds.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a length")]
    pub(crate) fn report(&self, length: f64) -> Report {
        let streams = self.streams.lock();
        let mut all = Tally::new();
        streams.iter().for_each(|stream| all.merge(stream));
        let named = streams.iter().zip(&self.tenants);
        let streams = named.map(|(tally, tenant)| tally.summary(tenant, length)).collect();
        let seconds = self.seconds.lock();
        let ran = seconds.iter().take(length.ceil() as usize);
        let seconds = ran.enumerate().map(|(second, tally)| Second {
            second: second as u64,
            offered: tally.offered(),
            answered: tally.answers.len(),
            refused: tally.refusals.len(),
            failed: tally.failures() + tally.unsent,
            answer_p99_ms: Percentiles::of(&tally.answers).p99,
        });
        Report { streams, all: all.summary("", length), seconds: seconds.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_where_they_belong() {
        let record = Record::new(vec!["a".into(), "b".into()], 2.0);
        let millis = Duration::from_millis;
        record.add(0, -0.1, Some(&Outcome::Answered), millis(900));
        record.add(0, 0.1, Some(&Outcome::Answered), millis(2));
        record.add(0, 1.9, Some(&Outcome::Degraded), millis(4));
        record.add(1, 1.5, Some(&Outcome::Refused), millis(1));
        record.add(1, 1.6, Some(&Outcome::Failed("Unavailable".into())), millis(7));
        record.add(1, 1.7, None, millis(0));
        let report = record.report(2.0);
        let a = &report.streams[0];
        assert_eq!((a.offered, a.answered, a.degraded, a.refused), (2, 2, 1, 0));
        assert!((3.99..4.01).contains(&a.answer_ms.max) && (a.answered_per_second - 1.0) < 1e-9);
        let b = &report.streams[1];
        assert_eq!((b.offered, b.refused, b.unsent, b.failed["Unavailable"]), (3, 1, 1, 1));
        assert_eq!((report.all.offered, report.all.answered), (5, 2));
        let offered: Vec<_> = report.seconds.iter().map(|second| second.offered).collect();
        assert_eq!(offered, [1, 4]);
        assert_eq!(report.seconds[1].failed, 2);
    }
}
