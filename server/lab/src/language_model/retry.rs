//! Retry policy: the number of tries, and the pauses between them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::call_error::CallError;

/// Interval at which a sleeping thread checks whether to stop.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Limits on tries and pauses of one call.
#[derive(Debug, Clone, Copy)]
pub struct RetryPolicy {
    /// Maximum number of tries of one call.
    pub tries: u32,
    /// Pause before the second try; doubled for each further one.
    pub first_pause: Duration,
    /// Longest pause. A call is not retried if the endpoint asks for a longer one.
    pub longest_pause: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            tries: 5,
            first_pause: Duration::from_millis(500),
            longest_pause: Duration::from_secs(60),
        }
    }
}

impl RetryPolicy {
    /// Returns the pause after the `failed`th try, counted from 1, or `None` if the call should not be retried.
    #[must_use]
    pub fn pause(&self, failed: u32, error: &CallError) -> Option<Duration> {
        if failed >= self.tries || !error.is_passing() {
            return None;
        }
        let doubled = self.first_pause.saturating_mul(1 << (failed - 1).min(16));
        match error.retry_after() {
            Some(asked) if asked > self.longest_pause => None,
            Some(asked) => Some(asked.max(self.first_pause)),
            None => Some(doubled.min(self.longest_pause)),
        }
    }
}

/// Pause that all callers of the same endpoint share.
#[derive(Debug, Default)]
pub(super) struct CommonPause(Mutex<Option<Instant>>);

impl CommonPause {
    /// Delays all calls until this pause is over.
    pub(super) fn extend(&self, pause: Duration) {
        let until = Instant::now() + pause;
        let mut known = self.0.lock();
        *known = Some(known.map_or(until, |before| before.max(until)));
    }

    /// Sleeps until calls are allowed again. Returns early if `stop` is set.
    pub(super) fn wait(&self, stop: &AtomicBool) {
        loop {
            let until = *self.0.lock();
            let left = until.and_then(|until| until.checked_duration_since(Instant::now()));
            match left {
                Some(left) if !left.is_zero() && !stop.load(Ordering::Relaxed) => {
                    thread::sleep(left.min(POLL_INTERVAL));
                }
                _ => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn busy(retry_after: Option<u64>) -> CallError {
        let retry_after = retry_after.map(Duration::from_secs);
        CallError::Busy { status: 429, retry_after, message: String::new() }
    }

    #[test]
    fn pauses_double_unless_the_endpoint_names_one() {
        let retry = RetryPolicy::default();
        let seconds = |failed, error| retry.pause(failed, &error).map(|pause| pause.as_secs());
        assert_eq!(seconds(2, busy(None)), Some(1));
        assert_eq!(seconds(4, busy(None)), Some(4));
        assert_eq!(seconds(5, busy(None)), None);
        assert_eq!(seconds(1, busy(Some(7))), Some(7));
        assert_eq!(retry.pause(1, &busy(Some(0))), Some(retry.first_pause));
        assert_eq!(seconds(1, busy(Some(3_600))), None);
        assert_eq!(seconds(1, CallError::Refused { status: 401, message: String::new() }), None);
        let persistent = RetryPolicy { tries: 40, ..retry };
        assert_eq!(persistent.pause(39, &busy(None)), Some(Duration::from_secs(60)));
    }

    #[test]
    fn a_common_pause_is_kept_until_it_is_over_or_nobody_needs_it() {
        let pause = CommonPause::default();
        let stop = AtomicBool::new(false);
        pause.extend(Duration::from_millis(80));
        pause.extend(Duration::from_millis(1));
        let began = Instant::now();
        pause.wait(&stop);
        assert!(began.elapsed() >= Duration::from_millis(70));
        pause.extend(Duration::from_secs(600));
        stop.store(true, Ordering::Relaxed);
        pause.wait(&stop);
    }
}
