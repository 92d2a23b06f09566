//! Counters and log lines for refused credentials. The log rate is bounded, so that a sender of bad credentials can't
//! fill a disk.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tracing::warn;

use super::{Caller, Refusal};
use crate::auth::AuthMetrics;
use toolgate_core::error::Error;

/// Maximum number of log lines in one span of time.
const LINES_MAX: u32 = 20;
const SPAN: Duration = Duration::from_secs(10);

pub(super) struct Failures {
    metrics: AuthMetrics,
    budget: Mutex<LogBudget>,
}

struct LogBudget {
    since: Instant,
    lines: u32,
    left_out: u64,
}

impl Failures {
    pub(super) fn new(metrics: AuthMetrics) -> Self {
        let budget = LogBudget { since: Instant::now(), lines: 0, left_out: 0 };
        Self { metrics, budget: Mutex::new(budget) }
    }

    /// Counts and logs refused credentials.
    pub(super) fn note(&self, refusal: Refusal) -> Error {
        let reason = refusal.reason();
        self.metrics.failed(reason);
        if let Some(left_out) = self.line() {
            let method = refusal.method();
            let credential = refusal.credential();
            warn!(target: "toolgate::auth", method, credential, reason, left_out, "credentials refused");
        }
        refusal.into()
    }

    /// Counts and logs a call that the caller's roles do not allow.
    pub(super) fn denied(&self, caller: &Caller, rpc: &str) {
        self.metrics.failed("role");
        if let Some(left_out) = self.line() {
            let method = caller.credential().method();
            let credential = caller.credential();
            warn!(target: "toolgate::auth", method, %credential, reason = "role", rpc, left_out, "call refused");
        }
    }

    /// Takes a log line from the budget. Returns the number of lines that were left out before it; `None` if it must
    /// be left out too.
    fn line(&self) -> Option<u64> {
        let mut budget = self.budget.lock();
        budget.take(Instant::now())
    }
}

impl LogBudget {
    fn take(&mut self, now: Instant) -> Option<u64> {
        if now.duration_since(self.since) >= SPAN {
            (self.since, self.lines) = (now, 0);
        }
        if self.lines == LINES_MAX {
            self.left_out += 1;
            return None;
        }
        self.lines += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_bounded_and_those_left_out_are_counted() {
        let start = Instant::now();
        let mut budget = LogBudget { since: start, lines: 0, left_out: 0 };
        let written = (0..100).filter(|_| budget.take(start).is_some()).count();
        assert_eq!(written, LINES_MAX as usize);
        assert_eq!(budget.take(start + SPAN), Some(80));
        assert_eq!(budget.take(start + SPAN), Some(0));
    }
}
