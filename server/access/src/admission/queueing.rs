//! Waiting time of calls before they are handled, in sockets and in the runtime's queue, where calls are not counted.
//! A queue that empties does no harm, however long it was for a moment. A standing queue makes every call late. While
//! it stands, calls whose connection's queue has waited longer than a fraction of the allowed time are refused on
//! arrival. This keeps the queue short for all others, as CoDel does (Nichols and Jacobson, "Controlling Queue
//! Delay", ACM Queue 10(5), 2012).
//!
//! Connections that ask for little compared with the busiest one are spared, because they did not cause the queue.
//!
//! CoDel uses the shortest wait of an interval. Here some calls hardly wait, however long the queue is, because the
//! runtime runs the newest task first. A queue therefore counts as standing if most calls of an interval waited too
//! long.

use std::time::{Duration, Instant};

use super::demand::Demand;

/// Divisor of the maximum wait that gives the allowed wait while the queue stands.
const WHILE_STANDING: u32 = 20;

/// Divisor of an interval's calls. More refused calls than the result mean that the queue still stands, because a
/// load that can be served has a call refused now and then as well.
const REFUSED: u32 = 16;

/// Minimum number of calls to judge an interval. One call that a stall delayed is no queue.
const ENOUGH: u32 = 8;

/// Time without a standing interval after which calls may wait longer again.
const CALM: Duration = Duration::from_secs(1);

/// State of the queue in front of admission.
#[derive(Debug)]
pub(super) struct Queueing {
    /// Maximum wait of a call, which is also the length of an interval; `None` if calls may wait forever.
    max_wait: Option<Duration>,
    interval: Interval,
    /// Time when the queue was last seen standing.
    standing: Option<Instant>,
    connections: Demand<u64>,
}

/// Counts of the calls that had their turn in one interval.
#[derive(Debug)]
struct Interval {
    began: Instant,
    calls: u32,
    /// Number of calls that waited longer than the maximum.
    long: u32,
    refused: u32,
}

impl Queueing {
    pub(super) fn new(max_wait: Option<Duration>) -> Self {
        let now = Instant::now();
        let interval = Interval::beginning(now);
        Self { max_wait, interval, standing: None, connections: Demand::new(now) }
    }

    pub(super) fn reconfigure(&mut self, max_wait: Option<Duration>) {
        self.max_wait = max_wait;
    }

    /// Returns true if a call of the connection may begin after it waited for `waited`.
    pub(super) fn is_in_time(
        &mut self,
        connection: Option<u64>,
        waited: Duration,
        now: Instant,
    ) -> bool {
        let Some(max_wait) = self.max_wait else { return true };
        self.go_on(max_wait, now);
        // A call that was let into the queue has its turn a little later than the one before it.
        let is_refused = self.most(connection, max_wait, 2, now).is_some_and(|most| waited > most);
        self.count(connection, waited > max_wait, is_refused, now);
        !is_refused
    }

    /// Returns true if a call of the connection may wait behind other calls of the connection, the first of which has
    /// waited for `queue`. A call that may wait is counted when it has its turn.
    pub(super) fn may_queue(
        &mut self,
        connection: Option<u64>,
        queue: Duration,
        now: Instant,
    ) -> bool {
        let Some(max_wait) = self.max_wait else { return true };
        self.go_on(max_wait, now);
        let is_refused = self.most(connection, max_wait, 1, now).is_some_and(|most| queue > most);
        if is_refused {
            self.count(connection, queue > max_wait, true, now);
        }
        !is_refused
    }

    /// Returns the time that calls of the connection may wait now; `None` if there is no bound. `times` multiplies
    /// the standing queue's bound for a connection that asks for much.
    fn most(
        &mut self,
        connection: Option<u64>,
        max_wait: Duration,
        times: u32,
        now: Instant,
    ) -> Option<Duration> {
        self.standing?;
        let asks_for_little =
            connection.is_some_and(|number| self.connections.is_little(&number, now));
        Some(if asks_for_little { max_wait } else { max_wait / WHILE_STANDING * times })
    }

    fn count(&mut self, connection: Option<u64>, is_long: bool, is_refused: bool, now: Instant) {
        if let Some(number) = connection {
            self.connections.count(&number, now);
        }
        self.interval.calls = self.interval.calls.saturating_add(1);
        self.interval.long += u32::from(is_long);
        self.interval.refused += u32::from(is_refused);
    }

    fn go_on(&mut self, max_wait: Duration, now: Instant) {
        if now.saturating_duration_since(self.interval.began) > max_wait {
            self.end_interval(now);
        }
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
    use std::collections::HashMap;

    use super::*;

    const MAX: Duration = Duration::from_millis(100);
    const LONG: Duration = Duration::from_millis(150);
    const MIDDLING: Duration = Duration::from_millis(20);
    const SHORT: Duration = Duration::from_millis(1);

    /// Queue with a clock that the test moves.
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

        /// Gives a hundred calls their turn in an interval of their own, and returns how many were refused.
        fn interval(&mut self, waited: impl Fn(usize) -> Duration) -> usize {
            self.interval_of(100, waited)
        }

        fn interval_of(&mut self, calls: usize, waited: impl Fn(usize) -> Duration) -> usize {
            self.now += MAX + Duration::from_millis(1);
            let is_refused =
                |call: &usize| !self.queueing.is_in_time(None, waited(*call), self.now);
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
    fn nobody_joins_a_queue_that_is_longer_than_it_may_be_while_it_stands() {
        let mut passing = Passing::new();
        let may_queue =
            |passing: &mut Passing, queue| passing.queueing.may_queue(None, queue, passing.now);
        assert!(may_queue(&mut passing, LONG), "it does not stand yet");
        passing.interval(|_| LONG);
        passing.interval(|_| LONG);
        assert!(may_queue(&mut passing, MAX / WHILE_STANDING));
        assert!(!may_queue(&mut passing, MAX / WHILE_STANDING + SHORT));
        let refused = passing.interval_of(10, |_| MAX / WHILE_STANDING * 2);
        assert_eq!(refused, 0, "what was let in has its turn a little later");
    }

    #[test]
    fn calls_may_wait_again_a_second_after_the_queue_stood() {
        let mut passing = Passing::new();
        passing.interval(|_| LONG);
        passing.interval(|_| LONG);
        // Refusals of less than a sixteenth of the calls: bursts of a load that can be served.
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
            assert!(queueing.is_in_time(None, 60 * LONG, start + Duration::from_secs(second)));
        }
    }

    #[test]
    fn a_standing_queue_is_of_those_who_ask_for_most() {
        let mut queueing = Queueing::new(Some(MAX));
        let mut now = queueing.interval.began;
        let mut refused = HashMap::<u64, usize>::new();
        for _ in 0..20 {
            now += MAX + Duration::from_millis(1);
            // Eight connections ask for two calls each, and one for a hundred.
            let calls = (0..16).map(|call| call % 8).chain([8; 100]);
            for number in calls {
                if !queueing.is_in_time(Some(number), MAX, now) {
                    *refused.entry(number).or_default() += 1;
                }
            }
            // These calls make the queue stand.
            for _ in 0..200 {
                queueing.is_in_time(None, LONG, now);
            }
        }
        assert_eq!(refused.keys().collect::<Vec<_>>(), [&8], "{refused:?}");
        assert!(queueing.standing.is_some());
        assert!(!queueing.is_in_time(Some(0), LONG, now), "it may not wait for ever");
    }

    #[test]
    fn connections_that_ask_for_as_much_as_each_other_are_all_refused() {
        let mut queueing = Queueing::new(Some(MAX));
        let mut now = queueing.interval.began;
        let mut refused = [0; 4];
        for _ in 0..20 {
            now += MAX + Duration::from_millis(1);
            for call in 0..100 {
                let number = call % 4;
                refused[number] +=
                    usize::from(!queueing.is_in_time(Some(number as u64), LONG, now));
            }
        }
        assert!(refused.iter().all(|refused| *refused > 400), "{refused:?}");
    }
}
