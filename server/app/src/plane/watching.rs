//! Watches on catalogs. This process reports that something changed, and the store tells what changed.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;
use toolgate_serving::{Owner, Share, Shares};

use super::Plane;
use toolgate_core::error::Error;
use toolgate_core::identity::TenantId;
use toolgate_routing::router::answers::listing::known_servers;
use toolgate_routing::shard::shards::Shards;
use toolgate_store::{Changes, Revision, Store};

/// Maximum time between two reads of the store by a watcher.
const RECHECK: Duration = Duration::from_secs(30);

/// Number of watchers that may read the store at once.
const READS_AT_ONCE: usize = 4;

/// Watched tenants, and the limit on watches.
pub(super) struct Watchers {
    /// Places for watches, shared between tenants.
    places: Shares,
    /// Limit on store reads at once. A commit wakes all watchers of its tenant, and their reads must not crowd out
    /// calls.
    reads: Semaphore,
    tenants: Mutex<HashMap<TenantId, watch::Sender<Revision>>>,
}

impl Watchers {
    pub(super) fn new(max: usize) -> Self {
        let reads = Semaphore::new(READS_AT_ONCE);
        Self { places: Shares::new(max), reads, tenants: Mutex::default() }
    }

    /// Wakes the tenant's watchers.
    pub(super) fn tell(&self, tenant: &TenantId, revision: Revision) {
        if let Some(sender) = self.tenants.lock().get(tenant) {
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
        let mut tenants = self.tenants.lock();
        let sender = tenants.entry(tenant.clone()).or_insert_with(|| watch::channel(0).0);
        Ok(Seat { news: sender.subscribe(), _place: place })
    }

    /// Removes the tenant's entry if it has no watchers left.
    fn leave(&self, tenant: &TenantId) {
        let mut tenants = self.tenants.lock();
        if tenants.get(tenant).is_some_and(|sender| sender.receiver_count() == 0) {
            tenants.remove(tenant);
        }
    }
}

struct Seat {
    news: watch::Receiver<Revision>,
    _place: Share,
}

/// MCP servers that a watcher may learn about.
#[derive(Debug, Clone)]
pub enum Watched {
    /// All servers; for a watcher that maintains the catalog.
    All,
    /// Servers that an agent may know of.
    AsAgent {
        /// Maximum scopes of the agent; `None` if it may claim any.
        scopes: Option<BTreeSet<String>>,
    },
}

/// One watcher of one tenant's catalog. Dropping it ends the watch.
pub struct CatalogWatch {
    watchers: Arc<Watchers>,
    store: Arc<dyn Store>,
    shards: Arc<Shards>,
    watched: Watched,
    /// MCP servers that the watcher could know of at the last answer. `None` before the first answer, and for a watcher
    /// of all servers.
    known: Option<HashSet<String>>,
    tenant: TenantId,
    /// Place of the watcher; `None` only during drop.
    seat: Option<Seat>,
    /// Last revision that was reported to the watcher; `None` before the first answer to a watcher that gave no
    /// revision.
    seen: Option<Revision>,
}

impl CatalogWatch {
    /// Waits for a change after the last answer and returns it. Cancel safe.
    ///
    /// # Errors
    /// Returns an error if the store can't be read.
    pub async fn next(&mut self) -> Result<Changes, Error> {
        loop {
            // This comes before the store is read: a later commit then wakes the watcher again.
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

    /// Waits until a change was committed, or may have been.
    async fn news(&mut self) {
        let Some(seat) = &mut self.seat else { return };
        // A commit whose caller did not notify us is found when the store is next read.
        drop(timeout(RECHECK, seat.news.changed()).await);
    }

    /// Removes the MCP servers that the watcher may not know of, and returns those that it may know of.
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
        // For an agent that resumes, it is unknown whether it knew of a server that is hidden now.
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
    /// Watches the `watched` part of a tenant's catalog from after revision `since`, or from now on for `None`. A
    /// tenant without a catalog may be watched, because it may get one.
    ///
    /// # Errors
    /// Returns [`Error::Overloaded`] if the limit on watches or the tenant's share of it is reached.
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
        assert!(watchers.tenants.lock().is_empty(), "who got no place is not remembered");
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
