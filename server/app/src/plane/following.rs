//! Following of changes that other replicas commit to a shared store. The store is polled at intervals, and at once
//! when it hints at a change. Loaded shards are rebuilt, and watchers are notified.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::Plane;
use toolgate_core::error::{Error, with_causes};
use toolgate_core::identity::TenantId;
use toolgate_store::{Revision, Sequence};

/// Number of changed tenants that are read from the store at once.
const PAGE: u32 = 500;

/// Number of shards that are rebuilt at once.
const BUILDS_AT_ONCE: usize = 2;

/// Interval at which this replica records that it is up to date.
const MARKED_EVERY: Duration = Duration::from_secs(10);

/// Minimum pause between two polls, however many hints arrive.
const LEAST_PAUSE: Duration = Duration::from_millis(10);

/// Progress of this replica in following the store.
pub(super) struct Following {
    /// Time at which the replica last knew itself to be up to date.
    up_to_date: Mutex<Instant>,
    /// Time at which that was last recorded.
    marked: Mutex<Option<Instant>>,
    /// True if the store answered the last poll; `None` before the first.
    reached: Mutex<Option<bool>>,
    /// Shards to be rebuilt, each to at least the given revision.
    builds: Mutex<HashMap<TenantId, Revision>>,
    places: Semaphore,
}

impl Default for Following {
    fn default() -> Self {
        Self {
            up_to_date: Mutex::new(Instant::now()),
            marked: Mutex::default(),
            reached: Mutex::default(),
            builds: Mutex::default(),
            places: Semaphore::new(BUILDS_AT_ONCE),
        }
    }
}

impl Following {
    fn answered(&self) {
        let before = self.reached.lock().replace(true);
        if before == Some(false) {
            info!("the store can be reached again");
        }
        if self.builds.lock().is_empty() {
            *self.up_to_date.lock() = Instant::now();
        }
    }

    fn missed(&self, error: &Error) {
        let before = self.reached.lock().replace(false);
        if before != Some(false) {
            warn!(
                error = with_causes(error),
                "the store can't be reached: what is loaded, or copied here, is served; nothing can be changed"
            );
        }
    }
}

impl Plane {
    /// Follows a shared store, polling it every `every`, until `over` is cancelled. Returns at once if no other process
    /// writes to the store.
    pub async fn keep_up(self: Arc<Self>, every: Duration, over: CancellationToken) {
        if !self.store.is_shared() {
            return;
        }
        let mut seen = self.begin_after_mark();
        loop {
            let asked = Instant::now();
            match self.catch_up(&mut seen).await {
                Ok(()) => {
                    self.following.answered();
                    self.shards.freshness().answered(asked);
                    self.mark(seen.unwrap_or_default()).await;
                }
                Err(error) => {
                    self.shards.freshness().missed();
                    self.following.missed(&error);
                }
            }
            tokio::select! {
                biased;
                () = over.cancelled() => return,
                _ = self.store.hint() => sleep(LEAST_PAUSE).await,
                () = sleep(jittered(every)) => {}
            }
        }
    }

    /// Continues from the record of the preceding process: the age of the copies, and the last change that it had
    /// followed.
    fn begin_after_mark(&self) -> Option<Sequence> {
        let mark = self.shards.copies()?.followed_before()?;
        if let Some(at) = Instant::now().checked_sub(mark.age) {
            self.shards.freshness().answered(at);
        }
        Some(mark.sequence)
    }

    /// Records at intervals, for the next process, that this one is up to date.
    async fn mark(&self, followed: Sequence) {
        let Some(copies) = self.shards.copies() else { return };
        let is_due = self.following.marked.lock().is_none_or(|at| at.elapsed() >= MARKED_EVERY);
        if !is_due {
            return;
        }
        *self.following.marked.lock() = Some(Instant::now());
        let copies = Arc::clone(copies);
        let note = move || copies.note_followed(followed);
        if let Ok(Err(error)) = tokio::task::spawn_blocking(note).await {
            warn!(%error, "it can't be written down how far the store was followed");
        }
    }

    /// Returns the time since this replica last knew itself to be up to date, or zero if no other process writes to the
    /// store.
    #[must_use]
    pub fn lag(&self) -> Duration {
        match self.store.is_shared() {
            true => self.following.up_to_date.lock().elapsed(),
            false => Duration::ZERO,
        }
    }

    /// Returns true if the shared store answered the last poll, or has not been polled yet.
    #[must_use]
    pub fn reaches_store(&self) -> bool {
        *self.following.reached.lock() != Some(false)
    }

    /// Returns the number of failed calls to the store.
    #[must_use]
    pub fn store_failures(&self) -> u64 {
        self.store.failures()
    }

    /// Processes all changes after the change with the number `seen`.
    async fn catch_up(self: &Arc<Self>, seen: &mut Option<Sequence>) -> Result<(), Error> {
        let last = self.store.last_change().await?;
        let mut after = match *seen {
            Some(seen) if last >= seen => seen,
            Some(_) => {
                warn!("the store is older than it was: everything is loaded anew");
                self.shards.forget_all();
                last
            }
            None => {
                // Shards loaded before now may be older than the change with this number.
                self.refresh(self.shards.loaded()).await?;
                last
            }
        };
        while after < last {
            let page = self.store.changed_tenants(after, PAGE).await?;
            let Some(latest) = page.last() else { break };
            after = latest.sequence;
            for changed in page {
                self.changed(changed.tenant, changed.revision);
            }
        }
        *seen = Some(after);
        self.refresh(self.shards.borrowed()).await
    }

    /// Brings loaded shards in line with the store.
    async fn refresh(self: &Arc<Self>, tenants: Vec<(TenantId, bool)>) -> Result<(), Error> {
        for (tenant, is_borrowed) in tenants {
            let revision = self.store.revision(&tenant).await?;
            if is_borrowed || self.shards.served(&tenant) != revision {
                self.shards.forget(&tenant);
            }
            self.changed(tenant, revision.unwrap_or_default());
        }
        Ok(())
    }

    /// Rebuilds the tenant's shard if it is loaded and out of date, and notifies its watchers.
    fn changed(self: &Arc<Self>, tenant: TenantId, revision: Revision) {
        let is_behind = self.shards.served(&tenant).is_some_and(|served| served < revision);
        if !is_behind {
            self.shards.throw_away_older(&tenant, revision);
            self.watchers.tell(&tenant, revision);
            return;
        }
        // Until the rebuild is done, the served shard differs from the store, and building may take long.
        let freshness = self.shards.freshness();
        freshness.fell_behind(&tenant, revision, Instant::now());
        if let Some(served) = self.shards.served(&tenant) {
            // The shard may have been built in the meantime.
            freshness.caught_up(&tenant, served);
        }
        let before = self.following.builds.lock().insert(tenant.clone(), revision);
        if before.is_some() {
            // The shard is queued already, and will be built to this revision.
            return;
        }
        let plane = Arc::clone(self);
        tokio::spawn(async move {
            let Ok(_place) = plane.following.places.acquire().await else { return };
            let wanted = plane.following.builds.lock().remove(&tenant);
            plane.follow(&tenant, wanted.unwrap_or(revision)).await;
        });
    }
}

/// Varies the interval by up to a quarter either way, so that replicas that start together do not poll together.
fn jittered(every: Duration) -> Duration {
    every.mul_f64(0.75 + 0.5 * fastrand::f64())
}

#[cfg(test)]
mod tests;
