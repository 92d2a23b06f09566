//! The time that each stage of a call takes.

use std::time::Instant;

/// Times stages; each ends where the next begins.
pub(super) struct Stages {
    started: Instant,
    /// Microseconds by stage.
    pub(super) timings: Vec<(&'static str, u64)>,
}

impl Stages {
    /// Begins the first one.
    pub(super) fn begin() -> Self {
        Self { started: Instant::now(), timings: Vec::with_capacity(5) }
    }

    /// Ends one, and begins the next.
    pub(super) fn end(&mut self, stage: &'static str) {
        let now = Instant::now();
        let micros = (now - self.started).as_micros();
        self.timings.push((stage, u64::try_from(micros).unwrap_or(u64::MAX)));
        self.started = now;
    }
}
