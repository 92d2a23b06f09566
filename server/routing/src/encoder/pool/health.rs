//! Health of a worker, which decides if it is used: a state machine over instants that the caller passes in. It has no
//! clock and no network access.

use std::time::{Duration, Instant};

/// Consecutive failures after which a worker is taken out of use.
const FAILURES_MAX: u32 = 3;

/// Consecutive good canaries that bring a worker back.
const CANARIES_TO_RETURN: u32 = 3;

const EJECTION_MIN: Duration = Duration::from_secs(1);
const EJECTION_MAX: Duration = Duration::from_secs(10);

/// Time in service after which the next ejection is the shortest one again.
const FORGIVEN_AFTER: Duration = Duration::from_secs(60);

/// Limits for a worker whose answers were contradicted. They are longer, because such a worker passes every check and
/// is found only by chance.
const CONTRADICTED_MAX: Duration = Duration::from_secs(600);
const CONTRADICTED_FORGIVEN_AFTER: Duration = Duration::from_secs(3_600);

/// Interval at which a worker with another model is asked for its model again.
const OTHER_MODEL_AGAIN: Duration = Duration::from_secs(10);

/// Maximum interval at which a worker that was never in use is checked.
const NEW_AGAIN: Duration = Duration::from_secs(1);

/// State of a worker in the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Worker that has passed no check yet.
    New,
    /// Worker in use.
    Serving,
    /// Worker out of use. It gets no canary before this instant.
    Ejected(Instant),
    /// Worker that has another model and is not used.
    OtherModel,
}

/// Health of one worker.
#[derive(Debug)]
pub(super) struct Health {
    state: State,
    /// Consecutive failures.
    failures: u32,
    /// Consecutive good canaries.
    canaries: u32,
    /// Consecutive ejections.
    ejections: u32,
    /// Consecutive ejections for contradicted answers.
    contradictions: u32,
    serving_since: Option<Instant>,
    last_answer: Option<Instant>,
}

impl Health {
    pub(super) fn new() -> Self {
        Self {
            state: State::New,
            failures: 0,
            canaries: 0,
            ejections: 0,
            contradictions: 0,
            serving_since: None,
            last_answer: None,
        }
    }

    pub(super) fn state(&self) -> State {
        self.state
    }

    pub(super) fn is_serving(&self) -> bool {
        self.state == State::Serving
    }

    /// Records a correct answer to a request.
    pub(super) fn answered(&mut self, now: Instant) {
        self.failures = 0;
        self.last_answer = Some(now);
    }

    /// Records a failed request. `spread`, 0 to 1, is the jitter.
    pub(super) fn failed(&mut self, now: Instant, spread: f64) {
        // Requests that were in progress when the worker was taken out of use say nothing new.
        if !self.is_serving() {
            return;
        }
        self.failures += 1;
        if self.failures >= FAILURES_MAX {
            self.eject(now, spread);
        }
    }

    /// Records a canary that was answered correctly.
    pub(super) fn canary_passed(&mut self, now: Instant) {
        // One short text says little about real requests, so their failures still count.
        self.last_answer = Some(now);
        self.canaries += 1;
        let enough = self.state == State::New || self.canaries >= CANARIES_TO_RETURN;
        if !self.is_serving() && enough {
            self.state = State::Serving;
            self.failures = 0;
            self.serving_since = Some(now);
        }
    }

    /// Records a canary, sent at `sent`, that was not answered in time. A worker that answered other requests in the
    /// meantime is busy and stays in use.
    pub(super) fn canary_late(&mut self, sent: Instant, now: Instant, spread: f64) {
        if self.is_serving() && self.last_answer.is_some_and(|answer| answer >= sent) {
            return;
        }
        self.misbehaved(now, spread);
    }

    /// Takes the worker out of use at once, for a wrong answer or a failed canary.
    pub(super) fn misbehaved(&mut self, now: Instant, spread: f64) {
        match self.state {
            // The worker is not up yet. A longer pause each time would only keep it out for longer.
            State::New => self.canaries = 0,
            _ => self.eject(now, spread),
        }
    }

    /// Takes the worker out of use for an answer that a trusted encoder contradicts. The pause doubles each time.
    pub(super) fn contradicted(&mut self, now: Instant, spread: f64) {
        // Answers that were in progress when the worker was taken out of use say nothing new.
        if !self.is_serving() {
            return;
        }
        if self.serving_since.is_some_and(|since| now - since >= CONTRADICTED_FORGIVEN_AFTER) {
            self.contradictions = 0;
        }
        self.eject(now, spread);
        let doubled = EJECTION_MIN.saturating_mul(2_u32.saturating_pow(self.contradictions));
        let pause = doubled.min(CONTRADICTED_MAX).mul_f64(0.75 + 0.25 * spread);
        self.contradictions = self.contradictions.saturating_add(1);
        if let State::Ejected(until) = &mut self.state {
            *until = (*until).max(now + pause);
        }
    }

    /// Takes the worker out of use because it has another model.
    pub(super) fn other_model(&mut self) {
        self.state = State::OtherModel;
        self.canaries = 0;
    }

    /// Returns the time until the next canary. `interval` is the usual time.
    pub(super) fn next_canary(&self, now: Instant, interval: Duration) -> Duration {
        match self.state {
            State::Ejected(until) if until > now => until - now,
            State::OtherModel => OTHER_MODEL_AGAIN.max(interval),
            State::New => interval.min(NEW_AGAIN),
            _ => interval,
        }
    }

    fn eject(&mut self, now: Instant, spread: f64) {
        // Requests that were in progress when the worker was ejected say nothing new.
        if matches!(self.state, State::Ejected(until) if until > now) {
            return;
        }
        if self.serving_since.take().is_some_and(|since| now - since >= FORGIVEN_AFTER) {
            self.ejections = 0;
        }
        let doubled = EJECTION_MIN.saturating_mul(2_u32.saturating_pow(self.ejections));
        let pause = doubled.min(EJECTION_MAX).mul_f64(0.75 + 0.25 * spread);
        self.ejections = self.ejections.saturating_add(1);
        (self.failures, self.canaries) = (0, 0);
        self.state = State::Ejected(now + pause);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn serving(now: Instant) -> Health {
        let mut health = Health::new();
        health.canary_passed(now);
        assert!(health.is_serving());
        health
    }

    /// Returns the seconds for which the worker is ejected.
    fn pause(health: &Health, now: Instant) -> f64 {
        match health.state() {
            State::Ejected(until) => (until - now).as_secs_f64(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_failures_in_a_row_eject() {
        let now = Instant::now();
        let mut health = serving(now);
        for _ in 0..10 {
            health.failed(now, 1.0);
            health.failed(now, 1.0);
            health.answered(now);
        }
        assert!(health.is_serving());
        (0..3).for_each(|_| health.failed(now, 1.0));
        assert!((pause(&health, now) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn ejections_double_up_to_ten_seconds_and_are_forgiven() {
        let mut now = Instant::now();
        let mut health = serving(now);
        for want in [1.0, 2.0, 4.0, 8.0, 10.0, 10.0] {
            health.misbehaved(now, 1.0);
            assert!((pause(&health, now) - want).abs() < 1e-9, "{want}");
            now += EJECTION_MAX;
        }
        (0..3).for_each(|_| health.canary_passed(now));
        now += FORGIVEN_AFTER;
        health.misbehaved(now, 0.0);
        assert!((pause(&health, now) - 0.75).abs() < 1e-9, "the shortest again, less its jitter");
    }

    #[test]
    fn contradictions_double_up_to_ten_minutes_and_are_forgiven_after_an_hour() {
        let mut now = Instant::now();
        let mut health = serving(now);
        for want in [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600] {
            now += FORGIVEN_AFTER;
            health.contradicted(now, 1.0);
            // A second answer that was in progress.
            health.contradicted(now, 1.0);
            assert!((pause(&health, now) - f64::from(want)).abs() < 1e-9, "{want}");
            now += SECOND * want;
            (0..3).for_each(|_| health.canary_passed(now));
            assert!(health.is_serving());
        }
        now += CONTRADICTED_FORGIVEN_AFTER;
        health.contradicted(now, 1.0);
        assert!((pause(&health, now) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_burst_of_failures_is_one_ejection() {
        let now = Instant::now();
        let mut health = serving(now);
        (0..100).for_each(|_| health.failed(now, 1.0));
        assert!((pause(&health, now) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn it_returns_after_three_good_canaries_in_a_row() {
        let now = Instant::now();
        let mut health = serving(now);
        health.misbehaved(now, 1.0);
        assert_eq!(health.next_canary(now, SECOND / 10), SECOND);
        let later = now + SECOND;
        health.canary_passed(later);
        health.canary_passed(later);
        health.misbehaved(later, 1.0);
        let later = later + 2 * SECOND;
        (0..2).for_each(|_| health.canary_passed(later));
        assert!(!health.is_serving());
        health.canary_passed(later);
        assert!(health.is_serving());
    }

    #[test]
    fn a_worker_that_answers_others_is_busy_and_does_not_hang() {
        let sent = Instant::now();
        let mut health = serving(sent - SECOND);
        health.answered(sent + SECOND / 2);
        health.canary_late(sent, sent + SECOND, 1.0);
        assert!(health.is_serving());
        health.canary_late(sent + SECOND, sent + 2 * SECOND, 1.0);
        assert!(!health.is_serving());
    }

    #[test]
    fn one_that_is_not_up_yet_is_asked_again_soon() {
        let now = Instant::now();
        let mut health = Health::new();
        (0..20).for_each(|_| health.misbehaved(now, 1.0));
        for (interval, pause) in [(SECOND / 10, SECOND / 10), (300 * SECOND, SECOND)] {
            assert_eq!((health.state(), health.next_canary(now, interval)), (State::New, pause));
        }
        health.other_model();
        assert_eq!(health.next_canary(now, SECOND), OTHER_MODEL_AGAIN);
    }
}
