//! How long calls wait before anything is done for them: in sockets and in the runtime's queue, where none is counted. A
//! queue that empties is no harm, however long it was for a moment; one that stands makes every call late, and those
//! that have waited in it too long are refused until it is short again (as CoDel does: Nichols and Jacobson, "Controlling
//! Queue Delay", ACM Queue 10(5), 2012).

use std::time::{Duration, Instant};

/// The queue before the door.
#[derive(Debug)]
pub(super) struct Queueing {
    /// The longest that calls may wait; `None` for any time.
    max_wait: Option<Duration>,
    /// Since when every call has waited longer than that.
    long_since: Option<Instant>,
}

impl Queueing {
    pub(super) fn new(max_wait: Option<Duration>) -> Self {
        Self { max_wait, long_since: None }
    }

    pub(super) fn reconfigure(&mut self, max_wait: Option<Duration>) {
        self.max_wait = max_wait;
    }

    /// Returns whether a call that has waited this long may begin.
    pub(super) fn is_in_time(&mut self, waited: Duration, now: Instant) -> bool {
        let Some(max_wait) = self.max_wait.filter(|most| waited > *most) else {
            self.long_since = None;
            return true;
        };
        let since = *self.long_since.get_or_insert(now);
        now.saturating_duration_since(since) <= max_wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: Duration = Duration::from_millis(100);
    const LONG: Duration = Duration::from_millis(150);

    #[test]
    fn a_moment_refuses_nobody_and_a_standing_queue_does() {
        let start = Instant::now();
        let mut queueing = Queueing::new(Some(MAX));
        for millis in [0, 50, 100] {
            assert!(queueing.is_in_time(LONG, start + Duration::from_millis(millis)), "{millis}");
        }
        assert!(!queueing.is_in_time(LONG, start + LONG));
        assert!(queueing.is_in_time(MAX, start + LONG), "its wait is short");
        assert!(queueing.is_in_time(LONG, start + LONG), "the queue was short a moment ago");
    }

    #[test]
    fn without_a_bound_nobody_is_refused() {
        let start = Instant::now();
        let mut queueing = Queueing::new(None);
        for second in 0..10 {
            assert!(queueing.is_in_time(60 * LONG, start + Duration::from_secs(second)));
        }
    }
}
