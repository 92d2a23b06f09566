//! Budget of tokens for a batch: as many as the device embeds in some milliseconds. A batch is not interrupted, so the
//! next request waits for all of it, whoever sent its texts. Beyond some texts, a larger batch is hardly faster for
//! each.

use std::time::{Duration, Instant};

/// Time limit for a full batch while one flow waits: it waits only for itself.
pub(super) const OF_ONE_FLOW: Duration = Duration::from_millis(10);

/// Time limit for a full batch while several flows wait: a quiet one waits for the texts of a busy one.
pub(super) const OF_FLOWS: Duration = Duration::from_millis(3);

/// Time for which batches stay short after several flows waited. A quiet flow has nothing waiting most of the time; its
/// next text would wait for a long batch of the busy one.
const SHORT_FOR: Duration = Duration::from_millis(100);

/// Fewest tokens of a budget: short texts share a batch on any device.
const LEAST: usize = 64;

/// Weight of one batch in the running estimate, 0 to 1.
const WEIGHT: f64 = 0.25;

/// Budget of tokens for a batch, adapted to the measured speed of the device.
#[derive(Debug)]
pub(super) struct BatchBudget {
    target: Duration,
    tokens: f64,
    most: usize,
}

impl BatchBudget {
    /// Creates a budget of tokens that take `target`. It begins at `most` and never exceeds it.
    pub(super) fn new(target: Duration, most: usize) -> Self {
        Self { target, tokens: most as f64, most }
    }

    /// Returns the tokens of the next batch.
    pub(super) fn tokens(&self) -> usize {
        self.tokens as usize
    }

    /// Records that a batch of `tokens` took `time`.
    pub(super) fn took(&mut self, tokens: usize, time: Duration) {
        let fit = tokens as f64 * self.target.div_duration_f64(time.max(Duration::from_micros(1)));
        // A small batch that was in time tells nothing about larger ones: much of its time may be constant.
        if time > self.target || tokens as f64 >= self.tokens / 2.0 {
            let fit = fit.min(self.tokens * 2.0);
            let least = LEAST.min(self.most) as f64;
            let most = self.most as f64;
            self.tokens = (self.tokens + WEIGHT * (fit - self.tokens)).clamp(least, most);
        }
    }
}

/// Memory of the last time when several flows waited.
#[derive(Debug, Default)]
pub(super) struct SeveralFlows {
    last: Option<Instant>,
}

impl SeveralFlows {
    /// Returns true if several flows wait at `now`, according to `they_wait`, or waited a short while ago.
    pub(super) fn of_late(&mut self, they_wait: bool, now: Instant) -> bool {
        if they_wait {
            self.last = Some(now);
        }
        self.last.is_some_and(|last| now.saturating_duration_since(last) < SHORT_FOR)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs batches on a device that takes `start` for any batch and `each` for each token.
    fn run(budget: &mut BatchBudget, waiting: usize, start: Duration, each: Duration) {
        for _ in 0..100 {
            let tokens = budget.tokens().min(waiting);
            budget.took(tokens, start + each * u32::try_from(tokens).expect("few"));
        }
    }

    const MICRO: Duration = Duration::from_micros(1);

    #[test]
    fn batches_come_to_take_the_target() {
        let mut budget = BatchBudget::new(OF_ONE_FLOW, 512);
        run(&mut budget, 10_000, Duration::ZERO, 100 * MICRO);
        assert!(budget.tokens().abs_diff(100) <= 1, "{}", budget.tokens());
        // Twice as fast, and then as fast as possible.
        run(&mut budget, 10_000, Duration::ZERO, 50 * MICRO);
        assert!(budget.tokens().abs_diff(200) <= 2, "{}", budget.tokens());
        run(&mut budget, 10_000, 3_000 * MICRO, MICRO);
        assert_eq!(budget.tokens(), 512);
    }

    #[test]
    fn where_several_flows_wait_batches_take_three_milliseconds() {
        let mut budget = BatchBudget::new(OF_FLOWS, 512);
        run(&mut budget, 10_000, Duration::ZERO, 30 * MICRO);
        assert!(budget.tokens().abs_diff(100) <= 1, "{}", budget.tokens());
    }

    #[test]
    fn some_texts_always_share_one() {
        let mut budget = BatchBudget::new(OF_ONE_FLOW, 512);
        run(&mut budget, 10_000, Duration::ZERO, 5_000 * MICRO);
        assert_eq!(budget.tokens(), LEAST);
        let mut small = BatchBudget::new(OF_ONE_FLOW, 9);
        run(&mut small, 10_000, Duration::ZERO, 5_000 * MICRO);
        assert_eq!(small.tokens(), 9);
    }

    #[test]
    fn small_batches_in_time_change_nothing() {
        let mut budget = BatchBudget::new(OF_ONE_FLOW, 32_768);
        run(&mut budget, 16, 3_000 * MICRO, MICRO);
        assert_eq!(budget.tokens(), 32_768);
        // A single stall changes little.
        budget.took(16_384, OF_ONE_FLOW * 100);
        assert!(budget.tokens() > 20_000, "{}", budget.tokens());
    }
}
