//! Operations of a replica on its shards when other replicas may have changed the store.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::Shards;
use crate::shard::freshness::{Currency, Freshness};
use crate::shard::snapshot::Snapshot;
use toolgate_core::error::Error;
use toolgate_core::identity::TenantId;
use toolgate_store::Revision;
use toolgate_store::copies::Copies;

/// Maximum time to wait for a revision.
const REACHED_WITHIN: Duration = Duration::from_secs(5);

/// First and longest pause between two checks for a revision.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(200);

/// Returns how long to wait for a revision if `left` is the time until the deadline. A quarter stays for the answer.
fn patience(left: Option<Duration>) -> Duration {
    left.map_or(REACHED_WITHIN, |left| REACHED_WITHIN.min(left * 3 / 4))
}

impl Shards {
    /// Returns the shard like [`Shards::get`], but waits for the revision if other replicas may commit it. Waits for
    /// three quarters of the remaining time, and at most five seconds.
    ///
    /// # Errors
    /// Same errors as [`Shards::get`].
    pub async fn reach(
        self: &Arc<Self>,
        tenant: &TenantId,
        min_revision: Revision,
        deadline: Option<Instant>,
    ) -> Result<Arc<Snapshot>, Error> {
        let not_reached = match self.get(tenant, min_revision).await {
            Err(error @ Error::RevisionNotReached { .. }) if self.store.is_shared() => error,
            settled => return settled,
        };
        let now = Instant::now();
        let until = now + patience(deadline.map(|at| at.saturating_duration_since(now)));
        let mut pause = FIRST_PAUSE;
        while Instant::now() + pause < until {
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
            if self.store.revision(tenant).await?.is_some_and(|found| found >= min_revision) {
                return self.get(tenant, min_revision).await;
            }
        }
        Err(not_reached)
    }

    /// Returns the freshness of these shards.
    #[must_use]
    pub fn freshness(&self) -> &Freshness {
        &self.freshness
    }

    /// Returns the currency of a tenant's snapshot relative to the store.
    #[must_use]
    pub fn currency(&self, tenant: &TenantId, snapshot: &Snapshot) -> Currency {
        self.freshness.of(tenant, snapshot.read_at, Instant::now())
    }

    /// Records that the tenant's shard could not be brought to `revision`. The next call tries again.
    pub fn fell_behind(&self, tenant: &TenantId, revision: Revision) {
        self.freshness.fell_behind(tenant, revision, Instant::now());
        if let Some(built) = self.kept.peek(tenant) {
            *built.retry_at.lock() = Some(Instant::now());
        }
    }

    /// Returns the revision at which the tenant is served, or `None` if it is not loaded.
    #[must_use]
    pub fn served(&self, tenant: &TenantId) -> Option<Revision> {
        self.kept.peek(tenant).map(|built| built.snapshot.revision)
    }

    /// Returns the loaded tenants, each with true if it is served from a copy.
    #[must_use]
    pub fn loaded(&self) -> Vec<(TenantId, bool)> {
        self.kept.all().into_iter().map(|(tenant, built)| (tenant, built.is_borrowed)).collect()
    }

    /// Returns the loaded tenants that are served from copies.
    #[must_use]
    pub fn borrowed(&self) -> Vec<(TenantId, bool)> {
        self.loaded().into_iter().filter(|(_, is_borrowed)| *is_borrowed).collect()
    }

    /// Returns the copies of loaded content, if copies are kept.
    #[must_use]
    pub fn copies(&self) -> Option<&Arc<Copies>> {
        self.copies.as_ref()
    }

    /// Deletes the tenant's copy if it is older than `committed` and no shard is loaded that would replace it.
    pub fn throw_away_older(&self, tenant: &TenantId, committed: Revision) {
        if let Some(copies) = self.copies.as_ref().filter(|_| self.served(tenant).is_none()) {
            copies.throw_away_older(tenant, committed);
        }
    }

    /// Drops the tenant's shard. The next call loads it again.
    pub fn forget(&self, tenant: &TenantId) {
        self.kept.remove(tenant);
    }

    /// Drops all shards and copies, because the store was replaced by another one.
    pub fn forget_all(&self) {
        self.kept.clear();
        self.freshness.forget_behind();
        if let Some(copies) = &self.copies {
            copies.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_is_waited_for_as_long_as_an_answer_is_still_in_time() {
        let millis = Duration::from_millis;
        assert_eq!(patience(None), millis(5_000));
        for (left, want) in [(0, 0), (400, 300), (4_000, 3_000), (6_667, 5_000), (60_000, 5_000)] {
            assert_eq!(patience(Some(millis(left))), millis(want), "{left} ms");
        }
    }
}
