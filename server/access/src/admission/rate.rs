//! Calls per second: the generic cell rate algorithm (ITU-T I.371, annex A), which stores one time for each tenant.

use std::time::{Duration, Instant};

/// Rate of calls: this many per second on average, and up to a second's worth at once.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rate {
    interval: Duration,
    ahead_max: Duration,
}

impl Rate {
    pub(super) fn per_second(calls: u32) -> Self {
        let interval = Duration::from_secs(1) / calls.max(1);
        Self { interval, ahead_max: Duration::from_secs(1).saturating_sub(interval) }
    }
}

/// Use of a tenant's rate: the time up to which it is used.
#[derive(Debug, Default)]
pub(super) struct Spent(Option<Instant>);

impl Spent {
    /// Takes one call from the rate, or returns the time to wait for it.
    pub(super) fn spend(&mut self, rate: &Rate, now: Instant) -> Result<(), Duration> {
        let until = self.0.map_or(now, |until| until.max(now));
        let ahead = until - now;
        if ahead > rate.ahead_max {
            return Err(ahead - rate.ahead_max);
        }
        self.0 = Some(until + rate.interval);
        Ok(())
    }

    pub(super) fn is_nothing(&self) -> bool {
        self.0.is_none()
    }

    /// Returns true if the use still matters at the time `now`.
    pub(super) fn counts_at(&self, now: Instant) -> bool {
        self.0.is_some_and(|until| until > now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seconds_worth_at_once_and_then_one_by_one() {
        let start = Instant::now();
        let rate = Rate::per_second(4);
        let mut spent = Spent::default();
        let at = |millis| start + Duration::from_millis(millis);
        assert!((0..4).all(|_| spent.spend(&rate, start).is_ok()));
        assert_eq!(spent.spend(&rate, start), Err(Duration::from_millis(250)));
        assert_eq!(spent.spend(&rate, at(100)), Err(Duration::from_millis(150)));
        assert_eq!(spent.spend(&rate, at(250)), Ok(()));
        assert!(spent.spend(&rate, at(250)).is_err());
        assert!((0..4).all(|_| spent.spend(&rate, at(10_000)).is_ok()));
        assert!(spent.spend(&rate, at(10_000)).is_err(), "no more is saved up than a second's");
    }

    #[test]
    fn one_call_a_second() {
        let start = Instant::now();
        let rate = Rate::per_second(1);
        let mut spent = Spent::default();
        assert_eq!(spent.spend(&rate, start), Ok(()));
        assert_eq!(spent.spend(&rate, start), Err(Duration::from_secs(1)));
        assert!(spent.counts_at(start) && !spent.counts_at(start + Duration::from_secs(1)));
    }
}
