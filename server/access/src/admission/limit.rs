//! Limit on interactive calls in progress: as many as are answered without a long wait. More calls than the process can
//! serve would only wait for each other until all of them miss their deadlines.
//!
//! Durations are compared with the best seen while little was going on, as congestion control does that avoids queues
//! instead of filling them (TCP Vegas: Brakmo and Peterson, "TCP Vegas: End to End Congestion Avoidance on a Global
//! Internet", IEEE JSAC 13(8), 1995; for calls, Netflix's concurrency-limits and Envoy's adaptive concurrency filter).
//! By Little's law the mean duration is in proportion to the calls in progress once a process is saturated, so the
//! limit is moved in proportion too.

mod pace;

use std::time::{Duration, Instant};

use pace::Pace;

/// Minimum and maximum time between two adjustments of the limit.
const WINDOW: Duration = Duration::from_millis(100);
const WINDOW_MAX: Duration = Duration::from_secs(1);

/// Number of calls of a kind that are enough to judge its durations.
const ENOUGH: u32 = 8;

/// Factors by which the limit may fall and rise in one window. Overload ends within two seconds, and so does
/// recovery.
const FALL: f64 = 0.8;
const RISE: f64 = 1.125;

/// Maximum number of missed windows, which passed without enough calls, that one adjustment makes up for.
const WINDOWS_MAX: f64 = 64.0;

/// Time that the best durations stay valid before they are measured again.
const BEST_FOR: Duration = Duration::from_secs(60);

/// Maximum time that the calls of all tenants are held down for a measurement: about the duration of the calls in
/// progress.
const PROBE: Duration = Duration::from_millis(300);

/// Kind of a measured call. Each kind has its own durations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measured {
    /// Call of Route.
    Route,
    /// Call of SearchTools.
    Search,
    /// Call of Gate.
    Gate,
}

/// Bounds of the limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Bounds {
    /// Lower bound of the limit: enough calls to keep every core busy.
    pub(super) least: usize,
    /// Number of calls below which none waits for another.
    pub(super) calm: usize,
    pub(super) most: usize,
    /// Time by which a call's average duration may exceed its best.
    pub(super) wait: Duration,
}

/// Current limit with the measurements that move it.
#[derive(Debug)]
pub(super) struct Limit {
    bounds: Bounds,
    value: f64,
    paces: [Pace; 3],
    since: Instant,
    /// Largest number of calls in progress in this window.
    peak: usize,
    refused: bool,
    /// End of the time in which few calls are admitted to measure the best durations.
    probing: Option<Instant>,
}

impl Limit {
    /// Creates a limit at its upper bound, because a process that was never slow refuses no call.
    pub(super) fn new(bounds: Bounds, now: Instant) -> Self {
        Self {
            bounds,
            value: bounds.most as f64,
            paces: [Pace::new(now), Pace::new(now), Pace::new(now)],
            since: now,
            peak: 0,
            refused: false,
            probing: None,
        }
    }

    /// Replaces the bounds. Different bounds reset the limit to its upper bound.
    pub(super) fn rebound(&mut self, bounds: Bounds) {
        if bounds != self.bounds {
            self.bounds = bounds;
            self.value = bounds.most as f64;
        }
    }

    /// Returns the number of calls that may be in progress.
    pub(super) fn now(&self) -> usize {
        if self.probing.is_some() { self.bounds.calm } else { self.settled() }
    }

    /// Returns the number of calls that could be in progress if the best durations were not being measured.
    pub(super) fn settled(&self) -> usize {
        self.value as usize
    }

    /// Returns true if a call that begins beside `under_way` others shows the best duration of its kind.
    pub(super) fn is_calm(&self, under_way: usize) -> bool {
        under_way < self.bounds.calm
    }

    /// Returns the best duration of a kind of call; `None` if it is unknown.
    pub(super) fn best(&self, kind: Measured) -> Option<Duration> {
        self.paces[kind as usize].best()
    }

    /// Records that a call asks to begin beside `under_way` others, and moves the limit when its window ends.
    pub(super) fn observe_demand(&mut self, under_way: usize, now: Instant) {
        self.peak = self.peak.max(under_way);
        if self.probing.is_some_and(|until| until <= now) {
            // Without a new best duration, the old one stays valid.
            self.paces.iter_mut().for_each(|pace| pace.keep_best(now));
            self.probing = None;
        }
        self.go_on(under_way, now);
    }

    /// Records that the limit refused a call.
    pub(super) fn refused(&mut self) {
        self.refused = true;
    }

    /// Records an answered call. `calm` is true if few calls were in progress when it began.
    pub(super) fn answered(&mut self, kind: Measured, took: Duration, calm: bool, now: Instant) {
        let pace = &mut self.paces[kind as usize];
        if calm {
            if pace.best_is_old(BEST_FOR, now) {
                // This call shows the duration that the probe looked for.
                self.probing = None;
            }
            pace.calm(took, BEST_FOR, now);
        }
        pace.add(took, self.bounds.wait);
    }

    /// Records a call that ended without an answer. A call that failed because of its caller ends early and shows
    /// nothing. A call that was given up late shows that it would have taken even longer.
    pub(super) fn given_up(&mut self, kind: Measured, took: Duration) {
        let pace = &mut self.paces[kind as usize];
        if took > pace.target(self.bounds.wait) {
            pace.add(took, self.bounds.wait);
        }
    }

    /// Moves the limit and starts a new window, if the window has ended.
    fn go_on(&mut self, under_way: usize, now: Instant) {
        let passed = now.saturating_duration_since(self.since);
        let enough = self.paces.iter().any(|pace| pace.count() >= ENOUGH);
        if passed < WINDOW || !(enough || passed >= WINDOW_MAX) {
            return;
        }
        let windows = passed.div_duration_f64(WINDOW).min(WINDOWS_MAX);
        let rise = RISE.powf(windows);
        let factor = match self.lateness(if enough { ENOUGH } else { 1 }) {
            Some(lateness) => (1.0 / lateness).clamp(FALL, rise),
            None if under_way == 0 => rise,
            // The calls in progress give no measurement yet.
            None => 1.0,
        };
        // Lower the limit only if it is used: calls that wait for something other than their turn are no reason to
        // lower it.
        if factor >= 1.0 || self.peak as f64 >= self.value / 2.0 {
            let least = self.bounds.least as f64;
            let most = self.bounds.most as f64;
            self.value = (self.value * factor).clamp(least, most);
        }
        self.probe(now);
        self.paces.iter_mut().for_each(Pace::next);
        (self.since, self.peak, self.refused) = (now, under_way, false);
    }

    /// Returns the mean duration of the worst kind as a multiple of its target; `None` without enough calls.
    fn lateness(&self, enough: u32) -> Option<f64> {
        let known = self.paces.iter().filter(|pace| pace.count() >= enough);
        known.filter_map(|pace| pace.lateness()).reduce(f64::max)
    }

    /// Starts a new measurement of the best durations, if calls are refused anyway and nothing else would show the
    /// best durations.
    fn probe(&mut self, now: Instant) {
        let stale = |pace: &Pace| pace.count() > 0 && pace.best_is_old(BEST_FOR, now);
        if self.probing.is_none() && self.refused && self.paces.iter().any(stale) {
            self.probing = Some(now + PROBE);
        }
    }
}

#[cfg(test)]
mod tests;
