//! What a replica asks of its shards when others may have changed what they are of.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::Shards;
use crate::shard::freshness::{Currency, Freshness};
use crate::shard::snapshot::Snapshot;
use toolgate_core::error::Error;
use toolgate_core::identity::TenantId;
use toolgate_store::Revision;
use toolgate_store::copies::Copies;

/// The longest that a revision is waited for.
const REACHED_WITHIN: Duration = Duration::from_secs(5);

/// Between two questions whether it is reached.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(200);

impl Shards {
    /// As [`Shards::get`], waiting for the revision while others may commit it: for three quarters of the time left,
    /// and at most five seconds.
    ///
    /// # Errors
    /// As [`Shards::get`].
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
        let left = deadline.map_or(REACHED_WITHIN, |at| at.saturating_duration_since(now) * 3 / 4);
        let until = now + left.min(REACHED_WITHIN);
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

    /// Returns what of these shards can be vouched for.
    #[must_use]
    pub fn freshness(&self) -> &Freshness {
        &self.freshness
    }

    /// Returns how a snapshot of the tenant stands to what the store has.
    #[must_use]
    pub fn currency(&self, tenant: &TenantId, snapshot: &Snapshot) -> Currency {
        self.freshness.of(tenant, snapshot.read_at, Instant::now())
    }

    /// Notes that the tenant's shard could not be brought to `revision`: it is tried again with the next call.
    pub fn fell_behind(&self, tenant: &TenantId, revision: Revision) {
        self.freshness.fell_behind(tenant, revision, Instant::now());
        if let Some(built) = self.kept.peek(tenant) {
            *built.retry_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        }
    }

    /// The revision at which the tenant is served; `None` when it is not loaded.
    #[must_use]
    pub fn served(&self, tenant: &TenantId) -> Option<Revision> {
        self.kept.peek(tenant).map(|built| built.snapshot.revision)
    }

    /// The tenants that are loaded, and whether from copies.
    #[must_use]
    pub fn loaded(&self) -> Vec<(TenantId, bool)> {
        self.kept.all().into_iter().map(|(tenant, built)| (tenant, built.is_borrowed)).collect()
    }

    /// Those of them that are served from copies.
    #[must_use]
    pub fn borrowed(&self) -> Vec<(TenantId, bool)> {
        self.loaded().into_iter().filter(|(_, is_borrowed)| *is_borrowed).collect()
    }

    /// Returns the copies that are kept of what is loaded.
    #[must_use]
    pub fn copies(&self) -> Option<&Arc<Copies>> {
        self.copies.as_ref()
    }

    /// Throws the tenant's copy away where it is older than what is committed, and nothing newer is loaded that replaces it.
    pub fn throw_away_older(&self, tenant: &TenantId, committed: Revision) {
        if let Some(copies) = self.copies.as_ref().filter(|_| self.served(tenant).is_none()) {
            copies.throw_away_older(tenant, committed);
        }
    }

    /// Forgets the tenant's shard: the next call loads it.
    pub fn forget(&self, tenant: &TenantId) {
        self.kept.remove(tenant);
    }

    /// Forgets all shards and copies: the store is another one than it was.
    pub fn forget_all(&self) {
        self.kept.clear();
        self.freshness.forget_behind();
        if let Some(copies) = &self.copies {
            copies.clear();
        }
    }
}
