//! Revisions of the catalogs that the routing plane's answers are based on. One that nobody here made says that somebody else has
//! changed the catalog, and may have taken this gateway's servers out of it.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

/// Shortest time between two looks at a catalog. Replicas of a plane may answer by different revisions in turn.
const LOOK_GAP: Duration = Duration::from_secs(1);

/// Catalogs that are to be looked at. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Revisions(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    known: Mutex<HashMap<String, Known>>,
    /// Tenants whose catalogs may lack servers that are registered.
    doubted: watch::Sender<BTreeSet<String>>,
}

/// Revision of a tenant's catalog that was seen last.
#[derive(Debug)]
struct Known {
    /// `None` for a catalog that is not there.
    revision: Option<u64>,
    /// Time at which it was doubted last.
    doubted: Option<Instant>,
}

impl Default for Revisions {
    fn default() -> Self {
        let doubted = watch::Sender::new(BTreeSet::new());
        Self(Arc::new(Shared { known: Mutex::default(), doubted }))
    }
}

impl Revisions {
    /// Notes the revision of a registration of this gateway.
    pub(crate) fn made(&self, tenant: &str, revision: u64) {
        let mut known = self.0.known.lock();
        let doubted = known.get(tenant).and_then(|known| known.doubted);
        known.insert(tenant.to_owned(), Known { revision: Some(revision), doubted });
    }

    /// Notes the revision that an answer is based on; `None` if the plane has no such catalog. Doubts the catalog of a tenant
    /// with registrations if it is another than before.
    pub(crate) fn saw(&self, tenant: &str, revision: Option<u64>) {
        let mut all = self.0.known.lock();
        // Without a registration there is nothing to lose.
        if let Some(known) = all.get_mut(tenant).filter(|known| known.revision != revision)
            && self.doubt_known(tenant, known)
        {
            known.revision = revision;
        }
    }

    /// Doubts the catalog of a tenant with registrations.
    pub(crate) fn doubt(&self, tenant: &str) {
        if let Some(known) = self.0.known.lock().get_mut(tenant) {
            self.doubt_known(tenant, known);
        }
    }

    /// Returns false if the catalog was doubted a moment ago: the next answer doubts it again.
    fn doubt_known(&self, tenant: &str, known: &mut Known) -> bool {
        if known.doubted.is_some_and(|doubted| doubted.elapsed() < LOOK_GAP) {
            return false;
        }
        known.doubted = Some(Instant::now());
        self.0.doubted.send_modify(|doubted| {
            doubted.insert(tenant.to_owned());
        });
        true
    }

    /// Returns a receiver that changes with each doubt.
    pub(crate) fn doubts(&self) -> watch::Receiver<BTreeSet<String>> {
        self.0.doubted.subscribe()
    }

    /// Returns the tenants whose catalogs are to be looked at.
    pub(crate) fn doubted(&self) -> BTreeSet<String> {
        self.0.doubted.borrow().clone()
    }

    /// Notes that a tenant's catalog was looked at.
    pub(crate) fn looked_at(&self, tenant: &str) {
        self.0.doubted.send_if_modified(|doubted| {
            doubted.remove(tenant);
            // Nobody waits for fewer doubts.
            false
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_revision_that_somebody_else_made_is_a_doubt() {
        let revisions = Revisions::default();
        let is_doubted = || {
            let is_doubted = revisions.doubted().contains("acme");
            revisions.looked_at("acme");
            is_doubted
        };
        revisions.saw("acme", Some(3));
        revisions.saw("acme", None);
        assert!(!is_doubted(), "nothing is registered");
        revisions.made("acme", 4);
        revisions.saw("acme", Some(4));
        revisions.saw("other", Some(9));
        assert!(!is_doubted(), "it is the gateway's own");
        let doubts = revisions.doubts();
        revisions.saw("acme", Some(5));
        assert!(doubts.has_changed().expect("a sender"));
        assert!(is_doubted());
        revisions.saw("acme", Some(5));
        assert!(!is_doubted(), "it was looked at");
        // A new database begins anew, and at first has no catalog at all.
        revisions.saw("acme", None);
        assert!(!is_doubted(), "within a second");
        tokio::time::advance(LOOK_GAP).await;
        revisions.saw("acme", None);
        assert!(is_doubted());
        tokio::time::advance(LOOK_GAP).await;
        revisions.saw("acme", Some(1));
        assert!(is_doubted());
        revisions.doubt("acme");
        assert!(!is_doubted(), "within a second");
        tokio::time::advance(LOOK_GAP).await;
        revisions.doubt("acme");
        assert!(is_doubted());
    }
}
