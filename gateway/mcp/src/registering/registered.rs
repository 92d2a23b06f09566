//! Registrations that the plane holds, rejects or refuses, for everybody who asks.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;
use toolgate_client::v1;
use toolgate_upstream::Listing;

use super::RegisteredListings;
use super::refusals::Refused;
use crate::registrations::Registration;
use crate::revisions::Revisions;

/// Servers whose tools are registered as they list them now.
#[derive(Debug, Clone)]
pub(crate) struct Registered {
    listings: watch::Sender<RegisteredListings>,
    /// Tools that the plane rejected, each with the problem.
    pub(super) rejected: Arc<Mutex<HashMap<Registration, Vec<String>>>>,
    /// Registrations that the plane refuses.
    pub(super) refused: Arc<Mutex<HashMap<Registration, Refused>>>,
    /// Revisions of the catalogs that hold them.
    pub(crate) revisions: Revisions,
}

impl Default for Registered {
    fn default() -> Self {
        Self {
            listings: watch::Sender::new(HashMap::new()),
            rejected: Arc::default(),
            refused: Arc::default(),
            revisions: Revisions::default(),
        }
    }
}

impl Registered {
    /// Returns true if this listing of a server is registered in a tenant's catalog.
    pub(crate) fn has(&self, tenant: &str, listing: &Arc<Listing>) -> bool {
        let known = self.get(tenant, &listing.server);
        known.is_some_and(|known| Arc::ptr_eq(&known, listing))
    }

    /// Returns the listing of a server that is registered in a tenant's catalog.
    pub(crate) fn get(&self, tenant: &str, server: &str) -> Option<Arc<Listing>> {
        self.listings.borrow().get(&(tenant.to_owned(), server.to_owned())).cloned()
    }

    /// Doubts a tenant's catalog if a list of its tools, of one server or of all, has none of a server whose tools are registered. A
    /// policy may hide them all as well.
    pub(crate) fn check(&self, tenant: &str, server: Option<&str>, listed: &[v1::Tool]) {
        let names: HashSet<&str> = listed.iter().map(|tool| &*tool.server).collect();
        let is_lacked = |((of, name), listing): (&(String, String), &Arc<Listing>)| {
            let is_asked = of == tenant && server.is_none_or(|server| server == name);
            is_asked && !listing.tools.is_empty() && !names.contains(&**name)
        };
        if self.listings.borrow().iter().any(is_lacked) {
            self.revisions.doubt(tenant);
        }
    }

    /// Returns a receiver that changes with each registration.
    pub(crate) fn changes(&self) -> watch::Receiver<RegisteredListings> {
        self.listings.subscribe()
    }

    /// Returns the tools of a server that the plane rejected, each with the problem.
    pub(crate) fn rejected(&self, tenant: &str, server: &str) -> Vec<String> {
        let place = (tenant.to_owned(), server.to_owned());
        self.rejected.lock().get(&place).cloned().unwrap_or_default()
    }

    /// Returns why the plane refuses all tools of a server; `None` if it does not.
    pub(crate) fn refused(&self, tenant: &str, server: &str) -> Option<String> {
        let place = (tenant.to_owned(), server.to_owned());
        self.refused.lock().get(&place).map(|refused| refused.problem.clone())
    }

    /// Returns true if the plane has refused this a moment ago, and would again.
    pub(super) fn is_refused(&self, place: &Registration, listing: Option<&Arc<Listing>>) -> bool {
        let all = self.refused.lock();
        let Some(Refused { listing: before, until, .. }) = all.get(place) else { return false };
        let is_same = match (before, listing) {
            (Some(before), Some(listing)) => Arc::ptr_eq(before, listing),
            (before, listing) => before.is_none() && listing.is_none(),
        };
        is_same && Instant::now() < *until
    }

    /// Notes that the plane refuses a registration. Returns true if the problem is news.
    pub(super) fn refuse(&self, place: &Registration, refused: Refused) -> bool {
        let problem = refused.problem.clone();
        let before = self.refused.lock().insert(place.clone(), refused);
        let is_new = before.is_none_or(|before| before.problem != problem);
        if is_new {
            // People are told of it, though no listing has changed.
            self.listings.send_modify(|_registered| {});
        }
        is_new
    }

    /// Forgets a server, which is registered again if it is still there.
    pub(crate) fn forget(&self, server: &str) {
        // A problem stays until it is known what becomes of the next registration.
        let mut refused = self.refused.lock();
        let of_server = refused.iter_mut().filter(|((_, known), _)| known == server);
        of_server.for_each(|(_, refused)| refused.until = Instant::now());
        drop(refused);
        self.listings.send_modify(|registered| registered.retain(|(_, known), _| known != server));
    }

    /// Forgets the servers of a tenant that its catalog lacks, and returns their names.
    pub(super) fn forget_lost(&self, tenant: &str, in_catalog: &BTreeSet<String>) -> Vec<String> {
        let is_lost =
            |(of, server): &(String, String)| of == tenant && !in_catalog.contains(server);
        let mut lost = Vec::new();
        self.listings.send_if_modified(|registered| {
            lost.extend(
                registered.keys().filter(|place| is_lost(place)).map(|(_, name)| name.clone()),
            );
            registered.retain(|place, _| !is_lost(place));
            !lost.is_empty()
        });
        lost
    }

    pub(super) fn add(&self, tenant: &str, listing: Arc<Listing>) {
        self.listings.send_modify(|registered| {
            registered.insert((tenant.to_owned(), listing.server.clone()), listing);
        });
    }
}
