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

/// Time after a look that found all servers in which a list of tools without one of them is no doubt: a policy may hide them.
const BELIEVED: Duration = Duration::from_secs(60);

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
    /// Time of the last look that found all servers.
    whole: Option<Instant>,
}

impl Default for Revisions {
    fn default() -> Self {
        let doubted = watch::Sender::new(BTreeSet::new());
        Self(Arc::new(Shared { known: Mutex::default(), doubted }))
    }
}

impl Revisions {
    /// Notes the revision of a registration of this gateway. Doubts the catalog if it does not follow the one before: somebody
    /// else has changed the catalog in between, or it is a new one.
    pub(crate) fn made(&self, tenant: &str, revision: u64) {
        let mut all = self.0.known.lock();
        let Some(known) = all.get_mut(tenant) else {
            let first = Known { revision: Some(revision), doubted: None, whole: None };
            all.insert(tenant.to_owned(), first);
            return;
        };
        let follows = |before: u64| revision == before || before.checked_add(1) == Some(revision);
        if known.revision.is_some_and(follows) || self.doubt_known(tenant, known) {
            known.revision = Some(revision);
        }
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

    /// Doubts the catalog of a tenant with registrations, because a list of tools lacks a server.
    pub(crate) fn doubt(&self, tenant: &str) {
        let mut all = self.0.known.lock();
        let Some(known) = all.get_mut(tenant) else { return };
        if known.whole.is_none_or(|whole| whole.elapsed() >= BELIEVED) {
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

    /// Returns the tenants whose catalogs are to be looked at. What is doubted from now on counts anew.
    pub(crate) fn take_doubted(&self) -> BTreeSet<String> {
        let mut taken = BTreeSet::new();
        self.0.doubted.send_if_modified(|doubted| {
            taken = std::mem::take(doubted);
            // Nobody waits for fewer doubts.
            false
        });
        taken
    }

    /// Keeps the doubt of a catalog that could not be looked at.
    pub(crate) fn keep_doubt(&self, tenant: &str) {
        self.0.doubted.send_if_modified(|doubted| {
            doubted.insert(tenant.to_owned());
            // Who looks tries again by himself.
            false
        });
    }

    /// Notes that a look found all servers in a tenant's catalog.
    pub(crate) fn is_whole(&self, tenant: &str) {
        if let Some(known) = self.0.known.lock().get_mut(tenant) {
            known.whole = Some(Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_revision_that_somebody_else_made_is_a_doubt() {
        let revisions = Revisions::default();
        let is_doubted = || revisions.take_doubted().contains("acme");
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
    #[tokio::test(start_paused = true)]
    async fn a_registration_that_does_not_follow_the_one_before_is_a_doubt() {
        let revisions = Revisions::default();
        let is_doubted = || revisions.take_doubted().contains("acme");
        for revision in [4, 5, 5, 6] {
            revisions.made("acme", revision);
        }
        assert!(!is_doubted(), "each is the gateway's own");
        revisions.made("acme", 8);
        assert!(is_doubted(), "somebody else made 7");
        // A new database counts anew. Within a second the next answer tells it.
        revisions.made("acme", 1);
        assert!(!is_doubted());
        tokio::time::advance(LOOK_GAP).await;
        revisions.saw("acme", Some(1));
        assert!(is_doubted());
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_without_a_server_that_the_catalog_has_is_no_doubt_again_and_again() {
        let revisions = Revisions::default();
        revisions.made("acme", 1);
        revisions.doubt("acme");
        assert_eq!(revisions.take_doubted().len(), 1);
        // It could not be looked at, and then was.
        revisions.keep_doubt("acme");
        assert_eq!(revisions.take_doubted().len(), 1);
        revisions.is_whole("acme");
        tokio::time::advance(BELIEVED - LOOK_GAP).await;
        revisions.doubt("acme");
        assert!(revisions.take_doubted().is_empty());
        revisions.saw("acme", Some(2));
        assert_eq!(revisions.take_doubted().len(), 1, "another revision is a doubt at any time");
        tokio::time::advance(LOOK_GAP).await;
        revisions.doubt("acme");
        assert_eq!(revisions.take_doubted().len(), 1);
    }
}
