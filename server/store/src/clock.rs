//! Clock of the store. Timestamps that one process writes and another compares all come from this one clock, so that
//! a host with a wrong clock neither shortens nor prolongs anything.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Clock of the store, derived from this process's clock and the last known difference between the two.
#[derive(Debug, Default)]
pub(super) struct StoreClock {
    /// Milliseconds by which the store's clock is ahead of this process's.
    ahead_ms: AtomicI64,
}

impl StoreClock {
    /// Records that the store's clock read `store_ms` while this process's clock went from `asked_ms` to
    /// `answered_ms`. The error is at most half of that interval.
    pub(super) fn learn(&self, store_ms: i64, asked_ms: i64, answered_ms: i64) {
        let took = answered_ms.saturating_sub(asked_ms).max(0);
        let here = asked_ms.saturating_add(took / 2);
        self.ahead_ms.store(store_ms.saturating_sub(here), Ordering::Relaxed);
    }

    /// Returns the store's time for the local time `here_ms`, both in milliseconds since 1970 (UTC).
    pub(super) fn at_ms(&self, here_ms: i64) -> i64 {
        here_ms.saturating_add(self.ahead_ms.load(Ordering::Relaxed))
    }
}

/// Returns the time by this process's clock, in milliseconds since 1970 (UTC).
pub(super) fn here_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Converts milliseconds since 1970 (UTC) to a point in time. Negative values give 1970.
#[must_use]
pub fn moment(ms: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(u64::try_from(ms).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: i64 = 60_000;

    #[test]
    fn a_skewed_host_tells_the_store_s_time() {
        for skew in [-10 * MINUTE, 0, 10 * MINUTE] {
            let clock = StoreClock::default();
            let store = 1_000 * MINUTE;
            let here = 1_000 * MINUTE + skew;
            clock.learn(store, here - 20, here + 20);
            assert_eq!(clock.at_ms(here), store);
            assert_eq!(clock.at_ms(here + MINUTE), store + MINUTE);
        }
        let clock = StoreClock::default();
        assert_eq!(clock.at_ms(7), 7, "before the store has said anything");
    }

    #[test]
    fn a_clock_that_was_set_back_while_asking_changes_nothing_else() {
        let clock = StoreClock::default();
        clock.learn(5_000, 9_000, 4_000);
        assert_eq!(clock.at_ms(9_000), 5_000);
    }
}
