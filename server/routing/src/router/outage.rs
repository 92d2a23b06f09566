//! Warnings about calls without embeddings, which are ranked by words: one when that begins, one when its reason changes,
//! and one a minute while it lasts. A line for each call would fill the log just when it is read.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use toolgate_core::error::{Error, Reason};
use toolgate_telemetry::DEGRADED;
use tracing::warn;

/// Minimum time between two warnings for one reason.
const EVERY: Duration = Duration::from_secs(60);

/// Failures of the encoder, as calls see them.
#[derive(Debug, Default)]
pub(in crate::router) struct Outage(Mutex<Option<Warned>>);

/// Last warning, and the calls since.
#[derive(Debug)]
struct Warned {
    at: Instant,
    reason: Reason,
    calls: u64,
}

impl Outage {
    /// Notes a call that is ranked by words because of this error: in its span always, in the log when that is due.
    pub(in crate::router) fn failed(&self, error: &Error) {
        warn!(target: DEGRADED, %error, "no embedding: ranking by words");
        if let Some(calls) = self.due(error.reason(), Instant::now()) {
            warn!(%error, calls, "no embedding: ranking by words");
        }
    }

    /// Returns the number of calls to warn about, this one included, if a warning is due.
    fn due(&self, reason: Reason, now: Instant) -> Option<u64> {
        let mut warned = self.0.lock();
        match warned.as_mut() {
            Some(last) if last.reason == reason && now.duration_since(last.at) < EVERY => {
                last.calls += 1;
                None
            }
            last => {
                let calls = last.map_or(0, |last| last.calls) + 1;
                *warned = Some(Warned { at: now, reason, calls: 0 });
                Some(calls)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_is_due_at_first_for_another_reason_and_each_minute() {
        let outage = Outage::default();
        let start = Instant::now();
        let due = |reason, seconds| outage.due(reason, start + Duration::from_secs(seconds));
        assert_eq!(due(Reason::EncoderUnavailable, 0), Some(1));
        assert_eq!(due(Reason::EncoderUnavailable, 1), None);
        assert_eq!(due(Reason::EncoderUnavailable, 59), None);
        assert_eq!(due(Reason::EncoderUnavailable, 60), Some(3), "with those since");
        assert_eq!(due(Reason::DeadlineExceeded, 61), Some(1), "another reason");
        assert_eq!(due(Reason::DeadlineExceeded, 120), None);
        assert_eq!(due(Reason::DeadlineExceeded, 900), Some(2));
    }
}
