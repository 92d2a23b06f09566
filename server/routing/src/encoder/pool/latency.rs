//! Latency of recent answers, and the delay derived from it after which a second worker is asked too.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

/// Number of recent answers that are kept.
const SAMPLES: usize = 256;

/// Number of answers after which the delay is computed again.
const REFRESH_AFTER: usize = 16;

/// Minimum and maximum delay of a hedge.
const DELAY_MIN: Duration = Duration::from_millis(20);
const DELAY_MAX: Duration = Duration::from_millis(250);

/// Delay of a hedge before there are enough answers.
const DELAY_AT_FIRST: Duration = Duration::from_millis(100);

/// Latencies of recent answers.
#[derive(Debug)]
pub(super) struct Latency {
    samples: Mutex<Samples>,
    hedge_micros: AtomicU64,
}

#[derive(Debug, Default)]
struct Samples {
    micros: Vec<u64>,
    next: usize,
}

impl Latency {
    pub(super) fn new() -> Self {
        let hedge = DELAY_AT_FIRST.as_micros() as u64;
        Self { samples: Mutex::default(), hedge_micros: AtomicU64::new(hedge) }
    }

    /// Records the time that an answer took.
    pub(super) fn record(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let mut samples = self.samples.lock();
        let next = samples.next;
        match samples.micros.get_mut(next) {
            Some(oldest) => *oldest = micros,
            None => samples.micros.push(micros),
        }
        samples.next = (next + 1) % SAMPLES;
        if samples.next.is_multiple_of(REFRESH_AFTER) {
            let mut sorted = samples.micros.clone();
            let rank = sorted.len() * 95 / 100;
            let (_, p95, _) = sorted.select_nth_unstable(rank.min(samples.micros.len() - 1));
            self.hedge_micros.store(p95.saturating_mul(2), Ordering::Relaxed);
        }
    }

    /// Returns the time to wait for the first answer before a second worker is asked: twice the 95th percentile of
    /// recent answers, within the bounds.
    pub(super) fn hedge_delay(&self) -> Duration {
        let micros = self.hedge_micros.load(Ordering::Relaxed);
        Duration::from_micros(micros).clamp(DELAY_MIN, DELAY_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delay_after(millis: impl IntoIterator<Item = u64>) -> Duration {
        let latency = Latency::new();
        millis.into_iter().for_each(|millis| latency.record(Duration::from_millis(millis)));
        latency.hedge_delay()
    }

    #[test]
    fn the_delay_is_twice_the_95th_percentile_within_bounds() {
        assert_eq!(delay_after([]), DELAY_AT_FIRST, "nothing is known yet");
        assert_eq!(delay_after([1; 64]), DELAY_MIN);
        assert_eq!(delay_after([10_000; 64]), DELAY_MAX);
        let mostly_quick = (0..256).map(|i| if i % 32 == 0 { 400 } else { 30 });
        assert_eq!(delay_after(mostly_quick), Duration::from_millis(60), "3% do not count");
        let often_slow = (0..256).map(|i| if i % 8 == 0 { 100 } else { 10 });
        assert_eq!(delay_after(often_slow), Duration::from_millis(200));
    }

    #[test]
    fn old_answers_are_forgotten() {
        let answers = std::iter::repeat_n(200, 1_000).chain(std::iter::repeat_n(15, SAMPLES));
        assert_eq!(delay_after(answers), Duration::from_millis(30));
    }
}
