//! How many prompt calls may be in progress: as many as are answered without a long wait. Calls beyond what the process
//! can serve would only wait for each other, until all of them are out of time.
//!
//! Durations are compared with the best seen while little was going on, as congestion control does that avoids queues
//! instead of filling them (TCP Vegas: Brakmo and Peterson, "TCP Vegas: End to End Congestion Avoidance on a Global
//! Internet", IEEE JSAC 13(8), 1995; for calls, Netflix's concurrency-limits and Envoy's adaptive concurrency filter).
//! By Little's law the mean duration is in proportion to the calls in progress once a process is saturated, so the
//! limit is moved in proportion too.

mod pace;

use std::time::{Duration, Instant};

use pace::Pace;

/// How often it is moved, and when at the latest.
const WINDOW: Duration = Duration::from_millis(100);
const WINDOW_MAX: Duration = Duration::from_secs(1);

/// Calls of a kind by which it can be told how that kind is doing.
const ENOUGH: u32 = 8;

/// How far it may fall and rise in one window: the worst is over within two seconds, and so is a recovery.
const FALL: f64 = 0.8;
const RISE: f64 = 1.125;

/// How many windows count that went by without enough calls to tell.
const WINDOWS_MAX: f64 = 64.0;

/// How long the best durations count before they are looked for anew.
const BEST_FOR: Duration = Duration::from_secs(60);

/// Upper bound of the time for which everybody's calls are held down: about what those in progress may take.
const PROBE: Duration = Duration::from_millis(300);

/// What is measured: each kind of call has durations of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measured {
    /// Route.
    Route,
    /// SearchTools.
    Search,
    /// Gate.
    Gate,
}

/// What the limit is held to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Bounds {
    /// Enough to keep every core busy.
    pub(super) least: usize,
    /// So few that none waits for another.
    pub(super) calm: usize,
    pub(super) most: usize,
    /// How much longer than its best a call may take on average.
    pub(super) wait: Duration,
}

/// The limit, as it moves.
#[derive(Debug)]
pub(super) struct Limit {
    bounds: Bounds,
    value: f64,
    paces: [Pace; 3],
    since: Instant,
    /// The most that were in progress in this window.
    peak: usize,
    refused: bool,
    /// Until when so few are let in that the best durations can be seen.
    probing: Option<Instant>,
}

impl Limit {
    /// At its most: a process that was never slow refuses nobody.
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

    /// Holds it to other bounds.
    pub(super) fn rebound(&mut self, bounds: Bounds) {
        if bounds != self.bounds {
            self.bounds = bounds;
            self.value = bounds.most as f64;
        }
    }

    /// Calls that may be in progress.
    pub(super) fn now(&self) -> usize {
        if self.probing.is_some() { self.bounds.calm } else { self.settled() }
    }

    /// Calls that might be in progress if the best durations were not looked for.
    pub(super) fn settled(&self) -> usize {
        self.value as usize
    }

    /// Whether a call that begins among so many others shows how long its kind takes at best.
    pub(super) fn is_calm(&self, under_way: usize) -> bool {
        under_way < self.bounds.calm
    }

    /// How long calls of a kind take at best; `None` when that is not known.
    pub(super) fn best(&self, kind: Measured) -> Option<Duration> {
        self.paces[kind as usize].best()
    }

    /// A call wants to begin among `under_way` others.
    pub(super) fn asked(&mut self, under_way: usize, now: Instant) {
        self.peak = self.peak.max(under_way);
        if self.probing.is_some_and(|until| until <= now) {
            // Without a new one the old one counts on.
            self.paces.iter_mut().for_each(|pace| pace.keep_best(now));
            self.probing = None;
        }
        self.go_on(under_way, now);
    }

    /// A call was refused because of it.
    pub(super) fn refused(&mut self) {
        self.refused = true;
    }

    /// A call was answered, and `calm` says whether it began while little was going on.
    pub(super) fn answered(&mut self, kind: Measured, took: Duration, calm: bool, now: Instant) {
        let pace = &mut self.paces[kind as usize];
        if calm {
            if pace.best_is_old(BEST_FOR, now) {
                // It shows what was looked for.
                self.probing = None;
            }
            pace.calm(took, BEST_FOR, now);
        }
        pace.add(took, self.bounds.wait);
    }

    /// A call ended without an answer: a mistake of its caller's ends early and shows nothing, one that was given up
    /// shows that it would have taken longer.
    pub(super) fn given_up(&mut self, kind: Measured, took: Duration) {
        let pace = &mut self.paces[kind as usize];
        if took > pace.target(self.bounds.wait) {
            pace.add(took, self.bounds.wait);
        }
    }

    /// Ends the window when it is time.
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
            // Those in progress say nothing yet.
            None => 1.0,
        };
        // What is not asked for is not taken away: calls that wait for something else than their turn are no reason.
        if factor >= 1.0 || self.peak as f64 >= self.value / 2.0 {
            let least = self.bounds.least as f64;
            let most = self.bounds.most as f64;
            self.value = (self.value * factor).clamp(least, most);
        }
        self.probe(now);
        self.paces.iter_mut().for_each(Pace::next);
        (self.since, self.peak, self.refused) = (now, under_way, false);
    }

    /// The worst kind's mean duration, as a multiple of what it may be.
    fn lateness(&self, enough: u32) -> Option<f64> {
        let known = self.paces.iter().filter(|pace| pace.count() >= enough);
        known.filter_map(|pace| pace.lateness()).reduce(f64::max)
    }

    /// Looks for the best durations anew, where calls are refused anyway and nothing else would show them.
    fn probe(&mut self, now: Instant) {
        let stale = |pace: &Pace| pace.count() > 0 && pace.best_is_old(BEST_FOR, now);
        if self.probing.is_none() && self.refused && self.paces.iter().any(stale) {
            self.probing = Some(now + PROBE);
        }
    }
}

#[cfg(test)]
mod tests;
