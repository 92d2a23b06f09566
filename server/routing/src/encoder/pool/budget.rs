//! RetryBudget of second attempts: a share of the requests, so that a fault never causes a flood of retries.

use std::time::Instant;

use parking_lot::Mutex;

/// Second attempts allowed per request.
const SHARE: f64 = 0.1;

/// Second attempts per second that are always allowed, even with few requests.
const FLOOR: f64 = 1.0;

/// Maximum second attempts that can be saved up.
const SAVED_MAX: f64 = 20.0;

/// Token bucket of second attempts.
#[derive(Debug)]
pub(super) struct RetryBudget(Mutex<Bucket>);

#[derive(Debug)]
struct Bucket {
    attempts: f64,
    filled: Instant,
}

impl RetryBudget {
    pub(super) fn new(now: Instant) -> Self {
        Self(Mutex::new(Bucket { attempts: FLOOR, filled: now }))
    }

    /// Adds the share that one request earns.
    pub(super) fn earn(&self, now: Instant) {
        let mut bucket = self.0.lock();
        bucket.fill(now);
        bucket.attempts = (bucket.attempts + SHARE).min(SAVED_MAX);
    }

    /// Takes one second attempt and returns true if it is allowed.
    pub(super) fn spend(&self, now: Instant) -> bool {
        let mut bucket = self.0.lock();
        bucket.fill(now);
        let allowed = bucket.attempts >= 1.0;
        if allowed {
            bucket.attempts -= 1.0;
        }
        allowed
    }
}

impl Bucket {
    /// Adds `FLOOR` attempts per second, but never fills the bucket beyond `FLOOR` attempts.
    fn fill(&mut self, now: Instant) {
        let seconds = now.saturating_duration_since(self.filled).as_secs_f64();
        self.filled = self.filled.max(now);
        self.attempts = self.attempts.max((self.attempts + FLOOR * seconds).min(FLOOR));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_tenth_of_the_requests_may_be_repeated() {
        let now = Instant::now();
        let budget = RetryBudget::new(now);
        let mut spent = 0;
        for _ in 0..10_000 {
            budget.earn(now);
            spent += i32::from(budget.spend(now));
        }
        assert!((1_000..=1_001).contains(&spent), "{spent}");
    }

    #[test]
    fn few_requests_may_be_repeated_once_a_second() {
        let mut now = Instant::now();
        let budget = RetryBudget::new(now);
        for _ in 0..5 {
            assert!(budget.spend(now));
            assert!(!budget.spend(now));
            now += Duration::from_secs(1);
        }
        now += Duration::from_secs(3_600);
        assert!(budget.spend(now) && !budget.spend(now), "the floor is not saved up");
    }

    #[test]
    fn what_is_saved_is_bounded() {
        let now = Instant::now();
        let budget = RetryBudget::new(now);
        (0..100_000).for_each(|_| budget.earn(now));
        let spent = (0..1_000).filter(|_| budget.spend(now)).count();
        assert!((19..=20).contains(&spent), "{spent}");
    }
}
