//! Log of the times without embeddings: one warning when calls begin to be ranked by words, one line when that is over.
//! A line for each call would fill the log just when it is read.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tracing::{debug, info, warn};

/// Time without a failure after which an outage is over. A busy encoder fails one call and answers the next.
const QUIET: Duration = Duration::from_secs(10);

/// Outage of the encoder, as calls see it.
#[derive(Debug, Default)]
pub(in crate::router) struct Outage {
    is_on: AtomicBool,
    state: Mutex<Option<Failures>>,
}

/// Failures of one outage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Failures {
    first: Instant,
    last: Instant,
    calls: u64,
}

impl Outage {
    /// Notes a call that is ranked by words.
    pub(in crate::router) fn failed(&self, error: &dyn fmt::Display) {
        if self.failed_at(Instant::now()) {
            warn!(%error, "no embedding: ranking by words, until further notice");
        } else {
            debug!(%error, "no embedding: ranking by words");
        }
    }

    /// Notes a call whose intents were embedded.
    pub(in crate::router) fn answered(&self) {
        if let Some(over) = self.answered_at(Instant::now()) {
            let seconds = (over.last - over.first).as_secs_f32();
            info!(calls = over.calls, seconds, "intents are embedded again");
        }
    }

    /// Returns true if this failure begins an outage.
    fn failed_at(&self, now: Instant) -> bool {
        let mut state = self.state.lock();
        let failures = state.get_or_insert(Failures { first: now, last: now, calls: 0 });
        failures.last = now;
        failures.calls += 1;
        !self.is_on.swap(true, Ordering::Relaxed)
    }

    /// Returns the failures of the outage that this answer ends, if it ends one.
    fn answered_at(&self, now: Instant) -> Option<Failures> {
        if !self.is_on.load(Ordering::Relaxed) {
            return None;
        }
        let mut state = self.state.lock();
        let over = state.take_if(|failures| now.duration_since(failures.last) >= QUIET)?;
        self.is_on.store(false, Ordering::Relaxed);
        Some(over)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_begins_once_and_ends_after_a_quiet_time() {
        let outage = Outage::default();
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(outage.answered_at(at(0)), None);
        assert!(outage.failed_at(at(0)));
        assert!(!outage.failed_at(at(3)));
        assert_eq!(outage.answered_at(at(12)), None, "the last failure was nine seconds ago");
        let over = Failures { first: at(0), last: at(3), calls: 2 };
        assert_eq!(outage.answered_at(at(13)), Some(over));
        assert_eq!(outage.answered_at(at(14)), None);
        assert!(outage.failed_at(at(15)), "another one");
    }
}
