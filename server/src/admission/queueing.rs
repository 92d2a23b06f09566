//! How long calls wait before anything is done for them: in sockets and in the runtime's queue, where none is counted. A
//! queue that empties is no harm, however long it was for a moment; one that stands makes every call late. While it
//! stands, calls that have waited for more than a fraction of what is allowed are refused, so that it is short for all
//! others, as CoDel does: Nichols and Jacobson, "Controlling Queue Delay", ACM Queue 10(5), 2012.
//!
//! CoDel looks at the shortest wait of an interval. Here some calls hardly wait, however long the queue is: the runtime
//! lets the task go first that was made last. So a queue stands where most calls of an interval have waited too long.

use std::time::{Duration, Instant};

/// The part of the longest wait that calls may have while the queue stands.
const WHILE_STANDING: u32 = 20;

/// One of how many calls of an interval must be refused for the queue to stand still: a load below what can be served has
/// a call refused now and then as well.
const REFUSED: u32 = 16;

/// Calls by which an interval can be told: one that a stall made late is no queue.
const ENOUGH: u32 = 8;

/// For how long no interval must have had as many before calls may wait for longer again.
const CALM: Duration = Duration::from_secs(1);

/// The queue before the door.
#[derive(Debug)]
pub(super) struct Queueing {
    /// The longest that calls may wait, which is the length of an interval too; `None` for any time.
    max_wait: Option<Duration>,
    interval: Interval,
    /// When the queue was last seen to stand.
    standing: Option<Instant>,
}

/// Calls that had their turn in a span of time.
#[derive(Debug)]
struct Interval {
    began: Instant,
    calls: u32,
    /// Those that had waited for longer than they may.
    long: u32,
    refused: u32,
}

impl Queueing {
    pub(super) fn new(max_wait: Option<Duration>) -> Self {
        Self { max_wait, interval: Interval::beginning(Instant::now()), standing: None }
    }

    pub(super) fn reconfigure(&mut self, max_wait: Option<Duration>) {
        self.max_wait = max_wait;
    }

    /// Returns whether a call that has its turn after so long may begin.
    pub(super) fn is_in_time(&mut self, waited: Duration, now: Instant) -> bool {
        let Some(max_wait) = self.max_wait else { return true };
        if now.saturating_duration_since(self.interval.began) > max_wait {
            self.end_interval(now);
        }
        let is_refused = self.standing.is_some() && waited > max_wait / WHILE_STANDING;
        self.interval.calls = self.interval.calls.saturating_add(1);
        self.interval.long += u32::from(waited > max_wait);
        self.interval.refused += u32::from(is_refused);
        !is_refused
    }

    fn end_interval(&mut self, now: Instant) {
        let Interval { calls, long, refused, .. } = self.interval;
        if calls >= ENOUGH && (long > calls / 2 || refused > calls / REFUSED) {
            self.standing = Some(now);
        }
        self.standing.take_if(|seen| now.saturating_duration_since(*seen) > CALM);
        self.interval = Interval::beginning(now);
    }
}

impl Interval {
    fn beginning(now: Instant) -> Self {
        Self { began: now, calls: 0, long: 0, refused: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: Duration = Duration::from_millis(100);
    const LONG: Duration = Duration::from_millis(150);
    const MIDDLING: Duration = Duration::from_millis(20);
    const SHORT: Duration = Duration::from_millis(1);

    /// A queue in front of which time passes.
    struct Passing {
        queueing: Queueing,
        now: Instant,
    }

    impl Passing {
        fn new() -> Self {
            let queueing = Queueing::new(Some(MAX));
            let now = queueing.interval.began;
            Self { queueing, now }
        }

        /// Lets a hundred calls have their turn in an interval of their own; returns how many were refused.
        fn interval(&mut self, waited: impl Fn(usize) -> Duration) -> usize {
            self.interval_of(100, waited)
        }

        fn interval_of(&mut self, calls: usize, waited: impl Fn(usize) -> Duration) -> usize {
            self.now += MAX + Duration::from_millis(1);
            let is_refused = |call: &usize| !self.queueing.is_in_time(waited(*call), self.now);
            (0..calls).filter(is_refused).count()
        }
    }

    #[test]
    fn a_queue_that_is_long_for_some_calls_refuses_nobody() {
        let mut passing = Passing::new();
        for _ in 0..20 {
            let refused =
                passing.interval(|call| if call.is_multiple_of(2) { LONG } else { MIDDLING });
            assert_eq!(refused, 0);
        }
    }

    #[test]
    fn a_few_calls_are_no_queue_however_long_they_waited() {
        let mut passing = Passing::new();
        for _ in 0..20 {
            assert_eq!(passing.interval_of(7, |_| LONG), 0);
        }
        passing.interval_of(8, |_| LONG);
        assert_eq!(passing.interval_of(8, |_| LONG), 8);
    }

    #[test]
    fn a_standing_queue_is_made_short_though_some_calls_never_wait() {
        let mut passing = Passing::new();
        let waits = |call: usize| if call.is_multiple_of(4) { SHORT } else { LONG };
        assert_eq!(passing.interval(waits), 0, "it may be for a moment");
        assert_eq!(passing.interval(waits), 75, "all that waited long");
        let refused =
            passing.interval(|call| if call.is_multiple_of(2) { SHORT } else { MIDDLING });
        assert_eq!(refused, 50, "a fifth of what is allowed is too long now");
    }

    #[test]
    fn calls_may_wait_again_a_second_after_the_queue_stood() {
        let mut passing = Passing::new();
        passing.interval(|_| LONG);
        passing.interval(|_| LONG);
        // Less than a sixteenth of the calls: bursts, of a load that can be served.
        let bursts = |call: usize| if call.is_multiple_of(20) { MIDDLING } else { SHORT };
        assert_eq!(passing.interval(bursts), 5);
        for _ in 0..11 {
            passing.interval(bursts);
        }
        assert_eq!(passing.interval(|_| LONG), 0);
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
