//! What a replica can vouch for: until when it knew that what it serves is what the store has. Without the store it goes on
//! serving, and says so; after a bound, calls are no longer let through on what may have been withdrawn since.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use toolgate_core::error::Error;
use toolgate_core::identity::TenantId;
use toolgate_store::Revision;

/// A shared store that nobody has asked for so long counts as one that does not answer. Longer than any interval at which
/// it is asked (`store.poll_interval`).
const UNASKED_MAX: Duration = Duration::from_secs(150);

/// What a change has to be served within, before it counts as one that is not followed.
const FOLLOWED_WITHIN: Duration = Duration::from_secs(2);

/// How a snapshot stands to what the store has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Currency {
    /// As far as is known, it is what the store has.
    Current,
    /// The store could not be compared with for a while.
    Stale,
    /// Not for longer than is allowed; `None` where it is not known for how long.
    Unvouched(Option<Duration>),
}

/// When this replica last knew that what it serves is what the store has.
#[derive(Debug)]
pub struct Freshness {
    /// How long a snapshot is vouched for without the store.
    bound: Duration,
    known: RwLock<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// Whether others may change the store, so that it has to be asked.
    is_followed: bool,
    /// When the store last answered that there is nothing new.
    answered: Option<Instant>,
    /// Whether the store answered when it was last asked.
    is_missed: bool,
    /// Tenants whose shard could not be brought to a revision that is committed.
    behind: HashMap<TenantId, Behind>,
}

#[derive(Debug, Clone, Copy)]
struct Behind {
    since: Instant,
    wanted: Revision,
}

impl Freshness {
    /// Freshness that is vouched for during `bound` without the store; a store that is not `is_followed` has no other writer.
    #[must_use]
    pub fn new(bound: Duration, is_followed: bool) -> Self {
        Self { bound, known: RwLock::new(Known { is_followed, ..Known::default() }) }
    }

    /// Notes that at `at` nothing served was older than the store.
    pub fn answered(&self, at: Instant) {
        let mut known = self.write();
        known.answered = known.answered.max(Some(at));
        known.is_missed = false;
    }

    /// Notes that the store did not answer.
    pub fn missed(&self) {
        self.write().is_missed = true;
    }

    /// Notes that the tenant's shard could not be brought to a revision that is committed.
    pub fn fell_behind(&self, tenant: &TenantId, wanted: Revision, at: Instant) {
        let mut known = self.write();
        let behind = known.behind.entry(tenant.clone()).or_insert(Behind { since: at, wanted });
        behind.wanted = behind.wanted.max(wanted);
    }

    /// Notes that the tenant is served at `revision`.
    pub fn caught_up(&self, tenant: &TenantId, revision: Revision) {
        if self.read().behind.get(tenant).is_some_and(|behind| behind.wanted <= revision) {
            self.write().behind.remove(tenant);
        }
    }

    /// Forgets which tenants are behind: the revisions are those of another store.
    pub fn forget_behind(&self) {
        self.write().behind.clear();
    }

    /// Returns how the tenant's snapshot that was read from the store at `read` stands now; `None` for one of a copy.
    #[must_use]
    pub fn of(&self, tenant: &TenantId, read: Option<Instant>, now: Instant) -> Currency {
        let known = self.read();
        // What was read after the change was known of is as old as that reading, though others have come since.
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

    /// Refuses a verdict on what can't be vouched for.
    ///
    /// # Errors
    /// [`Error::CatalogUnvouched`].
    pub fn vouch(&self, currency: Currency) -> Result<(), Error> {
        match currency {
            Currency::Current | Currency::Stale => Ok(()),
            Currency::Unvouched(age) => Err(Error::CatalogUnvouched { age, bound: self.bound }),
        }
    }

    /// Nothing panics while it holds the lock.
    fn read(&self) -> RwLockReadGuard<'_, Known> {
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Known> {
        self.known.write().unwrap_or_else(PoisonError::into_inner)
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
