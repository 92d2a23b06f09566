//! Results that were cut, kept for a while so that the rest can be read by a handle.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::Mutex;

use crate::caller::Owner;

/// Time for which a result is kept.
const KEPT: Duration = Duration::from_secs(10 * 60);

/// Most bytes of all kept results. The oldest leave first.
const BYTES_MAX: usize = 256 << 20;

/// Random bytes of a handle.
const HANDLE_BYTES: usize = 9;

/// Results that were cut. They stay in memory: no file holds what a tool answered.
#[derive(Default)]
pub(crate) struct Results(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    by_handle: HashMap<String, KeptResult>,
    order: VecDeque<String>,
    bytes: usize,
}

struct KeptResult {
    at: Instant,
    owner: Owner,
    text: Arc<str>,
}

impl Results {
    /// Keeps a text and returns its handle, which no one can guess; `None` if the system has no random numbers.
    pub(crate) fn keep(&self, owner: &Owner, text: &str) -> Option<String> {
        let mut bytes = [0; HANDLE_BYTES];
        getrandom::fill(&mut bytes).ok()?;
        let handle = format!("r_{}", URL_SAFE_NO_PAD.encode(bytes));
        let mut kept = self.0.lock();
        kept.bytes += text.len();
        let result = KeptResult { at: Instant::now(), owner: owner.clone(), text: Arc::from(text) };
        kept.by_handle.insert(handle.clone(), result);
        kept.order.push_back(handle.clone());
        kept.forget(BYTES_MAX, KEPT);
        Some(handle)
    }

    /// Returns the text behind a handle of this owner.
    pub(crate) fn text(&self, owner: &Owner, handle: &str) -> Option<Arc<str>> {
        let mut kept = self.0.lock();
        kept.forget(BYTES_MAX, KEPT);
        let result = kept.by_handle.get(handle)?;
        (result.owner == *owner).then(|| Arc::clone(&result.text))
    }
}

impl Kept {
    /// Forgets the results that are too old, and the oldest while there are too many bytes.
    fn forget(&mut self, bytes_max: usize, age_max: Duration) {
        while let Some(oldest) = self.order.front() {
            let is_old =
                self.by_handle.get(oldest).is_none_or(|result| result.at.elapsed() >= age_max);
            if !is_old && self.bytes <= bytes_max {
                return;
            }
            if let Some(result) = self.by_handle.remove(oldest) {
                self.bytes -= result.text.len();
            }
            self.order.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caller::Caller;

    fn owner(tenant: &str, principal: &str) -> Owner {
        Caller { tenant: tenant.into(), principal: principal.into(), ..Caller::default() }.owner()
    }

    #[test]
    fn a_result_is_its_principals() {
        let results = Results::default();
        let ann = owner("acme", "ann");
        let handle = results.keep(&ann, "text").expect("a handle");
        assert_eq!(results.text(&ann, &handle).as_deref(), Some("text"));
        assert_eq!(results.text(&owner("acme", "bob"), &handle), None);
        assert_eq!(results.text(&owner("other", "ann"), &handle), None);
        assert_eq!(results.text(&ann, "r_other"), None);
    }

    #[test]
    fn the_oldest_results_leave_first() {
        let results = Results::default();
        let owner = owner("t", "p");
        let first = results.keep(&owner, "12345").expect("a handle");
        let second = results.keep(&owner, "67890").expect("a handle");
        results.0.lock().forget(7, KEPT);
        assert_eq!(results.text(&owner, &first), None);
        assert_eq!(results.text(&owner, &second).as_deref(), Some("67890"));
        results.0.lock().forget(7, Duration::ZERO);
        assert_eq!(results.text(&owner, &second), None);
        assert_eq!(results.0.lock().bytes, 0);
    }
}
