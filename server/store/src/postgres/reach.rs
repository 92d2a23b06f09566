//! Reachability of the database. While the database is unreachable, calls fail at once, except one trial call from
//! time to time. Callers with a fallback then need not wait.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Pause after a failure before the next trial call.
const PAUSE: Duration = Duration::from_millis(500);

/// Last known reachability of the database.
#[derive(Debug)]
pub(super) struct Reach {
    /// Time from which the next call may try; `None` if all calls may try.
    next: Mutex<Option<Instant>>,
    /// Maximum time of a trial call.
    attempt: Duration,
}

impl Reach {
    pub(super) fn new(attempt: Duration) -> Self {
        Self { next: Mutex::default(), attempt }
    }

    /// Returns true if a call may try the database.
    pub(super) fn may_try(&self) -> bool {
        let mut next = self.next.lock();
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
        *self.next.lock() = None;
    }

    pub(super) fn missed(&self) {
        *self.next.lock() = Some(Instant::now() + PAUSE);
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
        *reach.next.lock() = Some(Instant::now());
        assert!(reach.may_try(), "the pause is over");
        assert!(!reach.may_try(), "one is trying");
        reach.reached();
        assert!(reach.may_try() && reach.may_try());
    }
}
