//! Durations of one kind of call: the best, and those of the current window.

use std::time::{Duration, Instant};

/// Multiple of its best duration that a call may take, in addition to the allowed wait. Texts are embedded in
/// batches, so a call takes as long as the calls that share its batch.
const TOLERANCE: u32 = 2;

/// Factor of the best duration within which a call confirms it, because two calls hardly ever take the same time.
const CONFIRMS: f64 = 1.25;

/// Maximum weight of one call, as a number of calls that just meet the target. Some calls wait for something other
/// than their turn, such as a revision that other replicas have not published yet.
const COUNTS_AT_MOST: u32 = 8;

/// Durations of one kind of call.
#[derive(Debug)]
pub(super) struct Pace {
    /// Best duration, and the time when it was seen or last confirmed.
    best: Option<Duration>,
    best_at: Instant,
    /// Sum of this window's durations, as multiples of the target.
    late: f64,
    count: u32,
}

impl Pace {
    pub(super) fn new(now: Instant) -> Self {
        Self { best: None, best_at: now, late: 0.0, count: 0 }
    }

    /// Returns the number of calls in this window.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// Returns the target duration of a call that may wait for `wait`.
    pub(super) fn target(&self, wait: Duration) -> Duration {
        wait + self.best.unwrap_or_default() * TOLERANCE
    }

    pub(super) fn add(&mut self, took: Duration, wait: Duration) {
        let target = self.target(wait).max(Duration::from_micros(1));
        self.late += took.div_duration_f64(target).min(COUNTS_AT_MOST.into());
        self.count += 1;
    }

    /// Returns the mean duration of this window as a multiple of the target; `None` without calls.
    pub(super) fn lateness(&self) -> Option<f64> {
        (self.count > 0).then(|| self.late / f64::from(self.count))
    }

    /// Records the duration of a call that had almost no other calls to wait for.
    pub(super) fn calm(&mut self, took: Duration, old_after: Duration, now: Instant) {
        match self.best {
            Some(best) if took > best && took <= best.mul_f64(CONFIRMS) => self.best_at = now,
            Some(best) if took > best && !self.best_is_old(old_after, now) => {}
            _ => (self.best, self.best_at) = (Some(took), now),
        }
    }

    /// Returns true if the best duration was seen so long ago that it may have changed.
    pub(super) fn best_is_old(&self, old_after: Duration, now: Instant) -> bool {
        now.saturating_duration_since(self.best_at) > old_after
    }

    /// Keeps the best duration valid, although it was not seen again.
    pub(super) fn keep_best(&mut self, now: Instant) {
        self.best_at = now;
    }

    pub(super) fn best(&self) -> Option<Duration> {
        self.best
    }

    /// Begins the next window.
    pub(super) fn next(&mut self) {
        (self.late, self.count) = (0.0, 0);
    }
}
