//! Results that were cut, kept for a while so that the rest can be read by a handle.

use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::Mutex;

use crate::caller::Owner;

/// Time for which a result is kept.
const KEPT: Duration = Duration::from_secs(10 * 60);

/// Most bytes of all kept results. Those of who keeps the most leave first.
const BYTES_MAX: usize = 256 << 20;

/// Bytes that a result counts besides its text, so that many small ones are bounded too.
const OVERHEAD: usize = 512;

/// Handles of results that left, besides as many as there are results, that may stand in the order.
const ORDER_SLACK: usize = 64;

/// Mark before the place of a result in its handle.
const PLACE: char = '.';

/// Random bytes of a handle.
const HANDLE_BYTES: usize = 9;

/// Results that were cut. They stay in memory: no file holds what a tool answered.
#[derive(Default)]
pub(crate) struct Results {
    kept: Mutex<Kept>,
    /// End of each handle, by which other replicas find this one; empty if they can't.
    place: String,
}

#[derive(Default)]
struct Kept {
    by_handle: HashMap<String, KeptResult>,
    /// Handles of all results, oldest first. Some may have left.
    order: VecDeque<String>,
    shares: HashMap<Owner, Share>,
    bytes: usize,
}

struct KeptResult {
    at: Instant,
    owner: Owner,
    found: FoundResult,
}

/// Result that is kept.
#[derive(Debug, Clone)]
pub(crate) struct FoundResult {
    /// Name of its server.
    pub(crate) server: Arc<str>,
    pub(crate) text: Arc<str>,
}

/// Results of one owner.
#[derive(Default)]
struct Share {
    /// Handles, oldest first. Some may have left.
    order: VecDeque<String>,
    bytes: usize,
}

impl Results {
    /// Keeps results of a replica that the others reach at a sealed place.
    pub(crate) fn at(place: Option<String>) -> Self {
        let place = place.map(|place| format!("{PLACE}{place}")).unwrap_or_default();
        Self { kept: Mutex::default(), place }
    }

    /// Returns the sealed place in a handle, if it has one.
    pub(crate) fn place_of(handle: &str) -> Option<&str> {
        handle.split_once(PLACE).map(|(_, place)| place)
    }

    /// Keeps a text of a server and returns its handle, which no one can guess; `None` if the system has no random numbers.
    pub(crate) fn keep(&self, owner: &Owner, server: &str, text: &str) -> Option<String> {
        let mut bytes = [0; HANDLE_BYTES];
        getrandom::fill(&mut bytes).ok()?;
        let handle = format!("r_{}", URL_SAFE_NO_PAD.encode(bytes));
        let mut kept = self.kept.lock();
        let found = FoundResult { server: Arc::from(server), text: Arc::from(text) };
        kept.keep(&handle, owner, found);
        kept.forget(BYTES_MAX, KEPT);
        Some(handle + &self.place)
    }

    /// Returns the result behind a handle of this owner.
    pub(crate) fn find(&self, owner: &Owner, handle: &str) -> Option<FoundResult> {
        let handle = handle.split_once(PLACE).map_or(handle, |(name, _)| name);
        let mut kept = self.kept.lock();
        kept.forget(BYTES_MAX, KEPT);
        let result = kept.by_handle.get(handle)?;
        (result.owner == *owner).then(|| result.found.clone())
    }
}

impl Kept {
    fn keep(&mut self, handle: &str, owner: &Owner, found: FoundResult) {
        let result = KeptResult { at: Instant::now(), owner: owner.clone(), found };
        let share = self.shares.entry(owner.clone()).or_default();
        share.order.push_back(handle.to_owned());
        share.bytes += result.bytes();
        self.bytes += result.bytes();
        self.order.push_back(handle.to_owned());
        self.by_handle.insert(handle.to_owned(), result);
    }

    /// Forgets the results that are too old, and while there are too many bytes the oldest of the owner who has the most.
    fn forget(&mut self, bytes_max: usize, age_max: Duration) {
        let is_old = |result: &KeptResult| result.at.elapsed() >= age_max;
        while let Some(oldest) = self.order.front() {
            match self.by_handle.get(oldest) {
                Some(result) if !is_old(result) => break,
                Some(_) => {
                    let oldest = oldest.clone();
                    self.leave(&oldest);
                }
                None => {}
            }
            self.order.pop_front();
        }
        if self.order.len() > 2 * self.by_handle.len() + ORDER_SLACK {
            self.order.retain(|handle| self.by_handle.contains_key(handle));
        }
        while self.bytes > bytes_max {
            let Some(largest) = self.largest() else { return };
            let Some(share) = self.shares.get_mut(&largest) else { return };
            match share.order.pop_front() {
                Some(handle) => self.leave(&handle),
                None => drop(self.shares.remove(&largest)),
            }
        }
    }

    /// Returns the owner who has the most bytes, and of two the one with the older, in the tenant that has the most.
    fn largest(&self) -> Option<Owner> {
        let mut tenants: HashMap<&str, usize> = HashMap::new();
        for (owner, share) in &self.shares {
            *tenants.entry(owner.tenant()).or_default() += share.bytes;
        }
        let (tenant, _) = tenants.into_iter().max_by_key(|(_, bytes)| *bytes)?;
        let of_tenant = self.shares.iter().filter(|(owner, _)| owner.tenant() == tenant);
        let since = |share: &Share| {
            let oldest = share.order.front().and_then(|handle| self.by_handle.get(handle));
            oldest.map(|result| result.at)
        };
        let largest = of_tenant.max_by_key(|(_, share)| (share.bytes, Reverse(since(share))));
        largest.map(|(owner, _)| owner.clone())
    }

    fn leave(&mut self, handle: &str) {
        let Some(result) = self.by_handle.remove(handle) else { return };
        self.bytes -= result.bytes();
        let Some(share) = self.shares.get_mut(&result.owner) else { return };
        share.bytes -= result.bytes();
        if share.bytes == 0 {
            self.shares.remove(&result.owner);
        } else if share.order.front().is_some_and(|first| first == handle) {
            share.order.pop_front();
        }
    }
}

impl KeptResult {
    fn bytes(&self) -> usize {
        self.found.text.len() + OVERHEAD
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::caller::Caller;

    fn owner(tenant: &str, principal: &str) -> Owner {
        Caller { tenant: tenant.into(), principal: principal.into(), ..Caller::default() }.owner()
    }

    fn text(results: &Results, owner: &Owner, handle: &str) -> Option<String> {
        Some(results.find(owner, handle)?.text.to_string())
    }

    #[test]
    fn a_result_is_its_principals() {
        let results = Results::default();
        let ann = owner("acme", "ann");
        let handle = results.keep(&ann, "sea", "text").expect("a handle");
        assert_eq!(text(&results, &ann, &handle).as_deref(), Some("text"));
        assert_eq!(text(&results, &owner("acme", "bob"), &handle), None);
        assert_eq!(text(&results, &owner("other", "ann"), &handle), None);
        assert_eq!(text(&results, &ann, "r_other"), None);
    }

    #[test]
    fn a_handle_says_where_its_result_is() {
        let results = Results::at(Some("place".to_owned()));
        let ann = owner("acme", "ann");
        let handle = results.keep(&ann, "sea", "text").expect("a handle");
        assert_eq!(Results::place_of(&handle), Some("place"));
        assert_eq!(text(&results, &ann, &handle).as_deref(), Some("text"));
        let alone = Results::default().keep(&ann, "sea", "text").expect("a handle");
        assert_eq!(Results::place_of(&alone), None);
    }

    #[test]
    fn the_oldest_results_leave_first() {
        let results = Results::default();
        let owner = owner("t", "p");
        let first = results.keep(&owner, "sea", "12345").expect("a handle");
        let second = results.keep(&owner, "sea", "67890").expect("a handle");
        results.kept.lock().forget(OVERHEAD + 7, KEPT);
        assert_eq!(text(&results, &owner, &first), None);
        assert_eq!(text(&results, &owner, &second).as_deref(), Some("67890"));
        results.kept.lock().forget(OVERHEAD + 7, Duration::ZERO);
        assert_eq!(text(&results, &owner, &second), None);
        let kept = results.kept.lock();
        assert_eq!(kept.bytes, 0);
        assert!(kept.shares.is_empty() && kept.order.is_empty());
    }

    #[test]
    fn who_keeps_much_pushes_out_nobody_elses() {
        let most = 4 * (OVERHEAD + 1_000);
        let mut kept = Kept::default();
        let mut keep = |handle: &str, owner: &Owner, text: &str| {
            let found = FoundResult { server: "sea".into(), text: text.into() };
            kept.keep(handle, owner, found);
            kept.forget(most, KEPT);
            assert!(kept.bytes <= most);
            kept.by_handle.keys().cloned().collect::<HashSet<String>>()
        };
        let large = "x".repeat(1_000);
        keep("ann", &owner("acme", "ann"), "small");
        keep("bob", &owner("acme", "bob"), &large);
        let eve = owner("other", "eve");
        for number in 0..8 {
            keep(&format!("eve{number}"), &eve, &large);
        }
        // A tenant's many principals are no more than another's one.
        let mut left = HashSet::new();
        for number in 0..8 {
            left = keep(&format!("many{number}"), &owner("many", &number.to_string()), &large);
        }
        assert!(left.contains("ann") && left.contains("bob"), "{left:?}");
        assert!(left.contains("eve7") && left.contains("many7"), "{left:?}");
        assert!(!left.contains("eve0") && !left.contains("many0"), "{left:?}");
    }
}
