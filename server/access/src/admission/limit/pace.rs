//! How long calls of one kind take: at best, and in the window that goes on.

use std::time::{Duration, Instant};

/// How many times its best a call may take beside what it may wait: texts are embedded in batches, so that a call takes
/// as long as those that share one with it.
const TOLERANCE: u32 = 2;

/// Factor of the best duration within which a call confirms it: two calls hardly ever take the same time.
const CONFIRMS: f64 = 1.25;

/// One call counts at most as much as so many that are just in time: some calls wait for something else than their
/// turn, such as a revision that other replicas have yet to tell of.
const COUNTS_AT_MOST: u32 = 8;

/// Durations of one kind of call.
#[derive(Debug)]
pub(super) struct Pace {
    /// The best, and when it was seen or last confirmed.
    best: Option<Duration>,
    best_at: Instant,
    /// Of this window, as multiples of the target.
    late: f64,
    count: u32,
}

impl Pace {
    pub(super) fn new(now: Instant) -> Self {
        Self { best: None, best_at: now, late: 0.0, count: 0 }
    }

    /// Calls of this window.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// What a call of this kind may take, when it may wait for `wait`.
    pub(super) fn target(&self, wait: Duration) -> Duration {
        wait + self.best.unwrap_or_default() * TOLERANCE
    }

    pub(super) fn add(&mut self, took: Duration, wait: Duration) {
        let target = self.target(wait).max(Duration::from_micros(1));
        self.late += took.div_duration_f64(target).min(COUNTS_AT_MOST.into());
        self.count += 1;
    }

    /// The mean duration of this window, as a multiple of the target.
    pub(super) fn lateness(&self) -> Option<f64> {
        (self.count > 0).then(|| self.late / f64::from(self.count))
    }

    /// A call that took this long had next to no others to wait for.
    pub(super) fn calm(&mut self, took: Duration, old_after: Duration, now: Instant) {
        match self.best {
            Some(best) if took > best && took <= best.mul_f64(CONFIRMS) => self.best_at = now,
            Some(best) if took > best && !self.best_is_old(old_after, now) => {}
            _ => (self.best, self.best_at) = (Some(took), now),
        }
    }

    /// Whether the best was seen so long ago that it may be another now.
    pub(super) fn best_is_old(&self, old_after: Duration, now: Instant) -> bool {
        now.saturating_duration_since(self.best_at) > old_after
    }

    /// The best counts on, though it was not seen again.
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
