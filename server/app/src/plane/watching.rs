//! Who watches catalogs, and what they are told: that something changed comes from this process, what changed from
//! the store.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;
use toolgate_serving::{Owner, Share, Shares};

use super::Plane;
use toolgate_core::error::Error;
use toolgate_core::identity::TenantId;
use toolgate_routing::router::listing::known_servers;
use toolgate_routing::shard::shards::Shards;
use toolgate_store::{Changes, Revision, Store};

/// How long a watcher goes without reading the store.
const RECHECK: Duration = Duration::from_secs(30);

/// Watchers that read the store at a time.
const READS_AT_ONCE: usize = 4;

/// The tenants that are watched, and how many may watch.
pub(super) struct Watchers {
    /// Shared out by tenant.
    places: Shares,
    /// A commit wakes all watchers of its tenant, whose reads must not take the store from calls.
    reads: Semaphore,
    tenants: Mutex<HashMap<TenantId, watch::Sender<Revision>>>,
}

impl Watchers {
    pub(super) fn new(max: usize) -> Self {
        let reads = Semaphore::new(READS_AT_ONCE);
        Self { places: Shares::new(max), reads, tenants: Mutex::default() }
    }

    /// Wakes those who watch the tenant.
    pub(super) fn tell(&self, tenant: &TenantId, revision: Revision) {
        if let Some(sender) = self.tenants().get(tenant) {
            sender.send_if_modified(|told| {
                let newer = revision > *told;
                *told = revision.max(*told);
                newer
            });
        }
    }

    fn join(&self, tenant: &TenantId) -> Result<Seat, Error> {
        let owner = Owner { connection: None, tenant: Some(tenant.as_str().into()) };
        let place = self.places.take(&owner, 1).ok_or(Error::Overloaded)?;
        let mut tenants = self.tenants();
        let sender = tenants.entry(tenant.clone()).or_insert_with(|| watch::channel(0).0);
        Ok(Seat { news: sender.subscribe(), _place: place })
    }

    /// Forgets the tenant when nobody watches it any longer.
    fn leave(&self, tenant: &TenantId) {
        let mut tenants = self.tenants();
        if tenants.get(tenant).is_some_and(|sender| sender.receiver_count() == 0) {
            tenants.remove(tenant);
        }
    }

    /// Nothing panics while it holds the lock.
    fn tenants(&self) -> MutexGuard<'_, HashMap<TenantId, watch::Sender<Revision>>> {
        self.tenants.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Seat {
    news: watch::Receiver<Revision>,
    _place: Share,
}

/// Of which MCP servers a watcher is told.
#[derive(Debug, Clone)]
pub enum Watched {
    /// All: the watcher keeps the catalog.
    All,
    /// Those that an agent may know of.
    AsAgent {
        /// The scopes that it may have; `None` for any that it says.
        scopes: Option<BTreeSet<String>>,
    },
}

/// One watcher of one tenant's catalog. Dropping it ends the watch.
pub struct CatalogWatch {
    watchers: Arc<Watchers>,
    store: Arc<dyn Store>,
    shards: Arc<Shards>,
    watched: Watched,
    /// The MCP servers that the watcher could know of at the answer before; `None` before the first, and where it is
    /// told of all.
    known: Option<HashSet<String>>,
    tenant: TenantId,
    /// `None` only while it is dropped.
    seat: Option<Seat>,
    /// What the watcher has been told of; `None` before the first answer to one that named no revision.
    seen: Option<Revision>,
}

impl CatalogWatch {
    /// What changed since the last answer, as soon as anything did. Safe to cancel.
    ///
    /// # Errors
    /// A store that can't be read.
    pub async fn next(&mut self) -> Result<Changes, Error> {
        loop {
            // Before the store is read: what is committed after that wakes us again.
            if let Some(seat) = &mut self.seat {
                seat.news.borrow_and_update();
            }
            let changes = self.changes().await?;
            if self.seen != Some(changes.revision) {
                let (changes, known) = self.visible(changes).await?;
                self.known = known;
                self.seen = Some(changes.revision);
                return Ok(changes);
            }
            self.news().await;
        }
    }

    /// Waits until something was committed, or may have been.
    async fn news(&mut self) {
        let Some(seat) = &mut self.seat else { return };
        // What a commit's caller did not live to tell is seen when the store is next read.
        drop(timeout(RECHECK, seat.news.changed()).await);
    }

    /// Leaves out the MCP servers of which the watcher may not know, and returns those of which it may.
    async fn visible(
        &self,
        mut changes: Changes,
    ) -> Result<(Changes, Option<HashSet<String>>), Error> {
        let Watched::AsAgent { scopes } = &self.watched else { return Ok((changes, None)) };
        let tenant = &self.tenant;
        let revision = changes.revision;
        let now = known_servers(&self.shards, tenant, revision, scopes.as_ref()).await?;
        let is_known = |name: &String| {
            now.contains(name) || self.known.as_ref().is_some_and(|known| known.contains(name))
        };
        let named = changes.servers.len();
        changes.servers.retain(is_known);
        // What an agent that resumes could know of before can't be told any more where it is gone now.
        let is_resumed = self.known.is_none() && self.seen.is_some_and(|seen| seen > 0);
        if is_resumed && changes.servers.len() < named {
            changes = Changes { revision, ..Changes::default() };
        }
        Ok((changes, Some(now)))
    }

    async fn changes(&self) -> Result<Changes, Error> {
        let _turn = self.watchers.reads.acquire().await.map_err(Error::internal)?;
        let Some(seen) = self.seen else {
            let revision = self.store.revision(&self.tenant).await?.unwrap_or_default();
            return Ok(Changes { revision, told: true, ..Changes::default() });
        };
        Ok(self.store.changes(&self.tenant, seen).await?)
    }
}

impl Drop for CatalogWatch {
    fn drop(&mut self) {
        self.seat = None;
        self.watchers.leave(&self.tenant);
    }
}

impl Plane {
    /// Watches what is `watched` of a tenant's catalog from after revision `since`, or from now on for `None`. A tenant
    /// without a catalog may be watched: it may get one.
    ///
    /// # Errors
    /// [`Error::Overloaded`]: as many watch as may, or the tenant has as many as are due to it.
    pub fn watch(
        &self,
        tenant: &TenantId,
        since: Option<Revision>,
        watched: Watched,
    ) -> Result<CatalogWatch, Error> {
        Ok(CatalogWatch {
            seat: Some(self.watchers.join(tenant)?),
            watchers: Arc::clone(&self.watchers),
            store: Arc::clone(&self.store),
            shards: Arc::clone(&self.shards),
            watched,
            known: None,
            tenant: tenant.clone(),
            seen: since,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant(name: &str) -> TenantId {
        TenantId::parse(name).expect("a tenant")
    }

    #[tokio::test]
    async fn only_the_tenants_own_watchers_wake() {
        let watchers = Watchers::new(4);
        let mut a = watchers.join(&tenant("a")).expect("room");
        let b = watchers.join(&tenant("b"));
        watchers.tell(&tenant("a"), 7);
        a.news.changed().await.expect("a sender");
        assert_eq!(*a.news.borrow(), 7);
        assert!(!b.expect("room").news.has_changed().expect("a sender"));
        watchers.tell(&tenant("a"), 6);
        assert!(!a.news.has_changed().expect("a sender"), "older news");
    }

    #[test]
    fn places_are_bounded_and_come_back() {
        let watchers = Watchers::new(2);
        let seats = (watchers.join(&tenant("a")), watchers.join(&tenant("b")));
        assert!(seats.0.is_ok() && seats.1.is_ok());
        assert!(matches!(watchers.join(&tenant("c")), Err(Error::Overloaded)), "all are taken");
        drop(seats);
        watchers.leave(&tenant("a"));
        watchers.leave(&tenant("b"));
        assert!(watchers.tenants().is_empty(), "who got no place is not remembered");
        assert!(watchers.join(&tenant("c")).is_ok());
    }

    #[test]
    fn two_greedy_tenants_leave_places_for_a_third() {
        let watchers = Watchers::new(100);
        let all = |name| -> Vec<Seat> {
            std::iter::from_fn(|| watchers.join(&tenant(name)).ok()).collect()
        };
        let first = all("a");
        let second = all("b");
        assert_eq!((first.len(), second.len()), (80, 16));
        assert!(watchers.join(&tenant("c")).is_ok());
    }
}
