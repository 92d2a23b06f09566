//! Freshness of the shards that a replica serves: until when they were known to match the store. Without the store, the
//! replica keeps serving and reports that its data are stale. After a bound it allows no more calls, because
//! permissions may have been withdrawn since.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::RwLock;
use toolgate_core::error::Error;
use toolgate_core::identity::TenantId;
use toolgate_store::Revision;

/// Time after which a shared store that was not polled counts as one that does not answer. Longer than any polling
/// interval (`store.poll_interval`).
const UNASKED_MAX: Duration = Duration::from_secs(150);

/// Time within which a change must be served. After it, the shard counts as behind.
const FOLLOWED_WITHIN: Duration = Duration::from_secs(2);

/// Currency of a snapshot relative to the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Currency {
    /// Snapshot that matches the store as far as is known.
    Current,
    /// Snapshot that could not be compared with the store for a while.
    Stale,
    /// Snapshot that could not be compared for longer than the bound allows. The time is `None` if it is unknown.
    Unvouched(Option<Duration>),
}

/// Record of the times at which this replica's shards were known to match the store.
#[derive(Debug)]
pub struct Freshness {
    /// Time for which a snapshot may be used for verdicts without the store.
    bound: Duration,
    known: RwLock<LastSeen>,
}

#[derive(Debug, Default)]
struct LastSeen {
    /// True if other processes may change the store, so that it must be polled.
    is_followed: bool,
    /// Instant at which the store last confirmed that there is nothing new.
    answered: Option<Instant>,
    /// True if the store did not answer the last poll.
    is_missed: bool,
    /// Tenants whose shard could not be brought to a committed revision.
    behind: HashMap<TenantId, Behind>,
}

#[derive(Debug, Clone, Copy)]
struct Behind {
    since: Instant,
    wanted: Revision,
}

impl Freshness {
    /// Creates a record with the time `bound` for which snapshots may be used without the store. A store that is not
    /// `is_followed` has no other writer.
    #[must_use]
    pub fn new(bound: Duration, is_followed: bool) -> Self {
        Self { bound, known: RwLock::new(LastSeen { is_followed, ..LastSeen::default() }) }
    }

    /// Records that at `at` no served shard was older than the store.
    pub fn answered(&self, at: Instant) {
        let mut known = self.known.write();
        known.answered = known.answered.max(Some(at));
        known.is_missed = false;
    }

    /// Records that the store did not answer.
    pub fn missed(&self) {
        self.known.write().is_missed = true;
    }

    /// Records that the tenant's shard could not be brought to a committed revision.
    pub fn fell_behind(&self, tenant: &TenantId, wanted: Revision, at: Instant) {
        let mut known = self.known.write();
        let behind = known.behind.entry(tenant.clone()).or_insert(Behind { since: at, wanted });
        behind.wanted = behind.wanted.max(wanted);
    }

    /// Records that the tenant is served at `revision`.
    pub fn caught_up(&self, tenant: &TenantId, revision: Revision) {
        if self.known.read().behind.get(tenant).is_some_and(|behind| behind.wanted <= revision) {
            self.known.write().behind.remove(tenant);
        }
    }

    /// Forgets which tenants are behind. Needed when the store is replaced by another one, with other revisions.
    pub fn forget_behind(&self) {
        self.known.write().behind.clear();
    }

    /// Returns the currency of a tenant's snapshot. `read` is the instant at which it was read from the store, or
    /// `None` if it comes from a copy.
    #[must_use]
    pub fn of(&self, tenant: &TenantId, read: Option<Instant>, now: Instant) -> Currency {
        let known = self.known.read();
        // A shard that was read after the change became known is only as old as that reading, even if others came
        // since.
        let since = |behind: &Behind| read.map_or(behind.since, |read| behind.since.max(read));
        let grace = FOLLOWED_WITHIN.min(self.bound);
        let is_late = |since: &Instant| now.saturating_duration_since(*since) >= grace;
        let behind = known.behind.get(tenant).map(since).filter(is_late);
        let mut vouched = match known.is_followed {
            true => known.answered.max(read),
            false => Some(now),
        };
        if let Some(since) = behind {
            vouched = vouched.map(|at| at.min(since));
        }
        let age = vouched.map(|at| now.saturating_duration_since(at));
        let is_unasked = age.is_none_or(|age| age > UNASKED_MAX);
        let is_cut_off = known.is_followed && (known.is_missed || read.is_none() || is_unasked);
        match age {
            _ if !is_cut_off && behind.is_none() => Currency::Current,
            Some(age) if age < self.bound => Currency::Stale,
            age => Currency::Unvouched(age),
        }
    }

    /// Refuses verdicts on a snapshot that is too old.
    ///
    /// # Errors
    /// [`Error::CatalogUnvouched`] for [`Currency::Unvouched`].
    pub fn vouch(&self, currency: Currency) -> Result<(), Error> {
        match currency {
            Currency::Current | Currency::Stale => Ok(()),
            Currency::Unvouched(age) => Err(Error::CatalogUnvouched { age, bound: self.bound }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);
    const BOUND: Duration = Duration::from_secs(15 * 60);

    fn tenant() -> TenantId {
        TenantId::parse("acme").expect("a tenant")
    }

    #[test]
    fn what_is_cut_off_is_stale_and_then_no_longer_vouched_for() {
        let freshness = Freshness::new(BOUND, true);
        let begun = Instant::now();
        let of = |read, at| freshness.of(&tenant(), read, at);
        assert_eq!(of(Some(begun), begun + MINUTE), Currency::Current, "read a minute ago");
        freshness.answered(begun + MINUTE);
        freshness.missed();
        assert_eq!(of(Some(begun), begun + MINUTE), Currency::Stale);
        assert_eq!(of(Some(begun), begun + 15 * MINUTE), Currency::Stale);
        assert_eq!(of(Some(begun), begun + 16 * MINUTE), Currency::Unvouched(Some(BOUND)));
        assert_eq!(of(None, begun + 16 * MINUTE), Currency::Unvouched(Some(BOUND)), "a copy");
        freshness.answered(begun + 17 * MINUTE);
        assert_eq!(of(Some(begun), begun + 17 * MINUTE), Currency::Current);
        assert_eq!(of(None, begun + 17 * MINUTE), Currency::Stale, "until it is read anew");
    }

    #[test]
    fn a_copy_of_nobody_knows_when_is_not_vouched_for() {
        let freshness = Freshness::new(BOUND, true);
        let now = Instant::now();
        assert_eq!(freshness.of(&tenant(), None, now), Currency::Unvouched(None));
        let refused = freshness.vouch(Currency::Unvouched(None));
        assert!(matches!(refused, Err(Error::CatalogUnvouched { .. })), "{refused:?}");
    }

    #[test]
    fn a_store_that_nobody_asks_is_one_that_does_not_answer() {
        let freshness = Freshness::new(BOUND, true);
        let begun = Instant::now();
        freshness.answered(begun);
        let later = begun + UNASKED_MAX + MINUTE;
        assert_eq!(freshness.of(&tenant(), Some(begun), later), Currency::Stale);
        let own = Freshness::new(BOUND, false);
        assert_eq!(own.of(&tenant(), Some(begun), begun + 1_000 * MINUTE), Currency::Current);
    }

    #[test]
    fn a_shard_that_can_t_follow_is_stale_from_the_change_on() {
        for is_followed in [true, false] {
            let freshness = Freshness::new(BOUND, is_followed);
            let begun = Instant::now();
            freshness.answered(begun);
            freshness.fell_behind(&tenant(), 7, begun + MINUTE);
            freshness.answered(begun + 20 * MINUTE);
            let at = |minutes| freshness.of(&tenant(), Some(begun), begun + minutes * MINUTE);
            assert_eq!(at(1), Currency::Current, "it may take a moment");
            assert_eq!(at(2), Currency::Stale);
            assert_eq!(at(20), Currency::Unvouched(Some(19 * MINUTE)));
            let read_later = Some(begun + 10 * MINUTE);
            let later = freshness.of(&tenant(), read_later, begun + 20 * MINUTE);
            assert_eq!(later, Currency::Stale, "it follows, though never to the last change");
            let other = TenantId::parse("other").expect("a tenant");
            let other = freshness.of(&other, Some(begun), begun + 20 * MINUTE);
            assert_eq!(other, Currency::Current, "it is its own tenant's");
            freshness.caught_up(&tenant(), 6);
            assert_eq!(at(2), Currency::Stale);
            freshness.caught_up(&tenant(), 7);
            assert_eq!(at(20), Currency::Current);
        }
    }
}
