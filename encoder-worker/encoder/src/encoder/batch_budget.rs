//! How many tokens go into a batch: as many as the device takes some milliseconds for. A batch is not interrupted, so
//! that whoever comes next waits for all of it, whoever's texts it has; and beyond some texts a larger one is hardly
//! faster for each.

use std::time::{Duration, Instant};

/// The time that a full batch may take where one flow waits: it waits for itself only.
pub(super) const OF_ONE_FLOW: Duration = Duration::from_millis(10);

/// The time that a full batch may take where more than one flow waits: a quiet one waits for the texts of a busy one.
pub(super) const OF_FLOWS: Duration = Duration::from_millis(3);

/// The time for which batches stay short after more than one flow waited. A quiet flow waits for nothing most of the time;
/// its next text would wait for a long batch of the busy one.
const SHORT_FOR: Duration = Duration::from_millis(100);

/// Short texts that share a batch on any device.
const LEAST: usize = 64;

/// The part that one batch has in what is known.
const WEIGHT: f64 = 0.25;

/// Tokens of a batch, as the device turns out to be.
#[derive(Debug)]
pub(super) struct BatchBudget {
    target: Duration,
    tokens: f64,
    most: usize,
}

impl BatchBudget {
    /// As many tokens as take `target`, and never more than `most`, which is where it begins.
    pub(super) fn new(target: Duration, most: usize) -> Self {
        Self { target, tokens: most as f64, most }
    }

    /// Tokens of the next batch.
    pub(super) fn tokens(&self) -> usize {
        self.tokens as usize
    }

    /// A batch of so many tokens took so long.
    pub(super) fn took(&mut self, tokens: usize, time: Duration) {
        let fit = tokens as f64 * self.target.div_duration_f64(time.max(Duration::from_micros(1)));
        // A small batch that was in time says nothing of larger ones: much of it may be the same for any.
        if time > self.target || tokens as f64 >= self.tokens / 2.0 {
            let fit = fit.min(self.tokens * 2.0);
            let least = LEAST.min(self.most) as f64;
            let most = self.most as f64;
            self.tokens = (self.tokens + WEIGHT * (fit - self.tokens)).clamp(least, most);
        }
    }
}

/// Remembers when more than one flow waited.
#[derive(Debug, Default)]
pub(super) struct SeveralFlows {
    last: Option<Instant>,
}

impl SeveralFlows {
    /// Returns whether several flows wait at `now`, as `they_wait` says, or did a short while ago.
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

    /// A device that takes `start` for any batch and `each` for a token more.
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
        // Twice as fast, and then as fast as can be.
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
        // And one stall little.
        budget.took(16_384, OF_ONE_FLOW * 100);
        assert!(budget.tokens() > 20_000, "{}", budget.tokens());
    }
}
