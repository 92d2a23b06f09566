//! Whether the database could be reached lately: while it can't, calls are refused at once but for one a
//! moment that tries, so that those who have something to fall back to need not wait.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long nobody tries after a failure.
const PAUSE: Duration = Duration::from_millis(500);

/// What is known of the way to the database.
#[derive(Debug)]
pub(super) struct Reach {
    /// When the next call may try; `None` while all may.
    next: Mutex<Option<Instant>>,
    /// How long one that tries may take.
    attempt: Duration,
}

impl Reach {
    pub(super) fn new(attempt: Duration) -> Self {
        Self { next: Mutex::default(), attempt }
    }

    /// Whether a call may try.
    pub(super) fn may_try(&self) -> bool {
        let mut next = self.next();
        let now = Instant::now();
        match *next {
            Some(at) if now < at => false,
            Some(_) => {
                *next = Some(now + self.attempt + PAUSE);
                true
            }
            None => true,
        }
    }

    pub(super) fn reached(&self) {
        *self.next() = None;
    }

    pub(super) fn missed(&self) {
        *self.next() = Some(Instant::now() + PAUSE);
    }

    /// Nothing panics while it holds the lock.
    fn next(&self) -> MutexGuard<'_, Option<Instant>> {
        self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_call_tries_while_others_are_refused() {
        let reach = Reach::new(Duration::from_secs(60));
        assert!(reach.may_try() && reach.may_try());
        reach.missed();
        assert!(!reach.may_try());
        *reach.next() = Some(Instant::now());
        assert!(reach.may_try(), "the pause is over");
        assert!(!reach.may_try(), "one is trying");
        reach.reached();
        assert!(reach.may_try() && reach.may_try());
    }
}
