//! Stages of a call: the duration of each, and its span if the call is traced.

use std::time::Instant;

use toolgate_telemetry::part;
use tracing::Span;

/// Timer of stages; each ends where the next begins.
pub(in crate::router) struct Stages {
    stage: &'static str,
    span: Span,
    started: Instant,
    /// Duration of each finished stage, in microseconds.
    pub(in crate::router) timings: Vec<(&'static str, u64)>,
}

impl Stages {
    /// Begins the first stage.
    pub(in crate::router) fn begin(stage: &'static str) -> Self {
        let timings = Vec::with_capacity(5);
        Self { stage, span: part(stage), started: Instant::now(), timings }
    }

    /// Ends the current stage and begins the next.
    pub(in crate::router) fn next(&mut self, stage: &'static str) {
        self.end();
        self.stage = stage;
        self.span = part(stage);
    }

    /// Ends the last stage.
    pub(in crate::router) fn end(&mut self) {
        let now = Instant::now();
        let micros = (now - self.started).as_micros();
        self.timings.push((self.stage, u64::try_from(micros).unwrap_or(u64::MAX)));
        self.started = now;
        self.span = Span::none();
    }

    /// Returns the span of the current stage, for work that has spans of its own.
    pub(in crate::router) fn span(&self) -> Span {
        self.span.clone()
    }
}
