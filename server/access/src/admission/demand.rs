//! Number of interactive calls that each tenant or connection asks for. While calls wait for each other, the calls of
//! those that ask for most are refused, as Core-Stateless Fair Queueing does with packets (Stoica, Shenker and Zhang,
//! SIGCOMM 1998). The number of calls in progress is no measure: one that asks for little has many in progress when
//! they wait for the calls of others.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, Instant};

/// Interval after which a part of the counts is forgotten.
const INTERVAL: Duration = Duration::from_millis(100);

/// Divisor of a count that gives the part forgotten after each interval.
const FORGOTTEN: u32 = 8;

/// Number of intervals after which nothing is left of any count that matters.
const INTERVALS_MAX: u32 = 64;

/// Maximum number of tenants or connections that are counted.
const COUNTED: usize = 4_096;

/// Factor by which the busiest one must ask for more calls than another for the other to count as asking for little.
const LITTLE: u32 = 2;

/// Recent calls by tenant or connection, admitted or not.
#[derive(Debug)]
pub(super) struct Demand<Who> {
    calls: HashMap<Who, u32>,
    /// Largest count of one tenant or connection when the interval began.
    busiest: u32,
    began: Instant,
}

impl<Who: Clone + Eq + Hash> Demand<Who> {
    pub(super) fn new(now: Instant) -> Self {
        Self { calls: HashMap::new(), busiest: 0, began: now }
    }

    /// Counts a call that `who` asks for.
    pub(super) fn count(&mut self, who: &Who, now: Instant) {
        self.go_on(now);
        if let Some(calls) = self.calls.get_mut(who) {
            *calls = calls.saturating_add(1);
        } else if self.calls.len() < COUNTED {
            self.calls.insert(who.clone(), 1);
        }
    }

    /// Returns true if `who` asks for at most half as many calls as the busiest one.
    pub(super) fn is_little(&mut self, who: &Who, now: Instant) -> bool {
        self.go_on(now);
        let own = self.calls.get(who).copied().unwrap_or(0);
        own.saturating_mul(LITTLE) <= self.busiest
    }

    fn go_on(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.began);
        if passed >= INTERVAL {
            let intervals = passed.div_duration_f64(INTERVAL).min(f64::from(INTERVALS_MAX));
            self.forget(intervals as u32);
            self.began = now;
        }
    }

    fn forget(&mut self, intervals: u32) {
        self.busiest = self.calls.values().copied().max().unwrap_or(0);
        for _ in 0..intervals {
            self.calls.values_mut().for_each(|calls| *calls -= calls.div_ceil(FORGOTTEN));
        }
        self.calls.retain(|_, calls| *calls > 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts ten seconds of calls, with this number of calls per interval for each name.
    fn demand(all: &[(&'static str, u32)]) -> Demand<&'static str> {
        let start = Instant::now();
        let mut demand = Demand::new(start);
        for interval in 0..100 {
            for (name, calls) in all {
                (0..*calls).for_each(|_| demand.count(name, start + INTERVAL * interval));
            }
        }
        demand
    }

    #[test]
    fn who_asks_for_half_of_the_most_or_less_asks_for_little() {
        let mut demand = demand(&[("busy", 40), ("middling", 24), ("half", 19), ("quiet", 4)]);
        let now = demand.began;
        let little = ["busy", "middling", "half", "quiet", "unknown"]
            .map(|name| demand.is_little(&name, now));
        assert_eq!(little, [false, false, true, true, true]);
    }

    #[test]
    fn where_all_ask_for_as_much_nobody_asks_for_little() {
        let mut demand = demand(&[("a", 10), ("b", 12), ("c", 8)]);
        let now = demand.began;
        assert!(["a", "b", "c"].iter().all(|name| !demand.is_little(name, now)));
    }

    #[test]
    fn who_asked_for_much_is_forgotten() {
        let mut demand = demand(&[("busy", 400), ("quiet", 4)]);
        let mut now = demand.began + Duration::from_secs(10);
        demand.count(&"quiet", now);
        assert_eq!(demand.calls.len(), 1);
        now += INTERVAL;
        demand.count(&"quiet", now);
        assert!(!demand.is_little(&"quiet", now), "it is the busiest");
    }

    #[test]
    fn those_that_are_counted_are_bounded() {
        let start = Instant::now();
        let mut demand = Demand::new(start);
        (0..10_000).for_each(|number| demand.count(&number, start));
        assert_eq!(demand.calls.len(), COUNTED);
    }
}
