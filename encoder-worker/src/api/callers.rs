//! Count of the servers that share a worker. Each of them checks the worker, the less often the more there are.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Time after its last request for which a server counts. A server sends each worker a check every ten seconds at least.
const COUNTED_FOR: Duration = Duration::from_secs(30);

/// Most servers that are told apart.
const CALLERS_MAX: usize = 1_024;

/// Pause between two searches for servers that are gone.
const SWEPT_EVERY: Duration = Duration::from_secs(1);

/// Servers with a request of late.
#[derive(Debug, Default)]
pub(super) struct Callers(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    /// Last request of each server, by the number that the server drew.
    last: HashMap<u64, Instant>,
    swept: Option<Instant>,
}

impl Callers {
    /// Records a request of the server with the number `caller`; 0 is none. Returns the number of servers of late.
    pub(super) fn called(&self, caller: u64, now: Instant) -> u32 {
        let mut seen = self.0.lock();
        if seen.swept.is_none_or(|swept| now.saturating_duration_since(swept) >= SWEPT_EVERY) {
            seen.last.retain(|_, last| now.saturating_duration_since(*last) < COUNTED_FOR);
            seen.swept = Some(now);
        }
        let has_room = seen.last.len() < CALLERS_MAX;
        if caller != 0 && (has_room || seen.last.contains_key(&caller)) {
            seen.last.insert(caller, now);
        }
        u32::try_from(seen.last.len()).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_count_once_and_for_half_a_minute() {
        let callers = Callers::default();
        let start = Instant::now();
        assert_eq!(callers.called(0, start), 0, "an older server has no number");
        assert_eq!([7, 8, 7, 0].map(|caller| callers.called(caller, start)), [1, 2, 2, 2]);
        let later = start + COUNTED_FOR - SWEPT_EVERY;
        assert_eq!(callers.called(8, later), 2);
        assert_eq!(callers.called(8, start + COUNTED_FOR), 1, "7 is gone");
    }

    #[test]
    fn callers_who_invent_numbers_take_no_memory() {
        let callers = Callers::default();
        let now = Instant::now();
        let counts = (1..=2 * CALLERS_MAX as u64).map(|caller| callers.called(caller, now));
        assert_eq!(counts.last(), Some(CALLERS_MAX as u32));
        assert_eq!(callers.0.lock().last.len(), CALLERS_MAX);
    }
}
