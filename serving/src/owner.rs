//! Whose a request is: its connection's from the beginning, and a tenant's once that is known. The place that it holds at
//! the door counts for both.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::connections::Peer;
use crate::shares::{Owner, Share};

/// Whose a request is. Requests carry it in their extensions.
#[derive(Debug, Clone)]
pub struct RequestOwner {
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    owner: Owner,
    place: Option<Share>,
}

/// Gives the place back when it is dropped, whoever else still knows whose the request was.
pub(crate) struct Leaves(RequestOwner);

impl RequestOwner {
    /// The owner of requests that come from `peer`.
    pub(crate) fn of(peer: Option<&Peer>) -> Self {
        let owner = Owner { connection: peer.map(Peer::connection), tenant: None };
        Self { state: Arc::new(Mutex::new(State { owner, place: None })) }
    }

    /// Has it hold `place` until what is returned is dropped.
    pub(crate) fn hold(&self, place: Share) -> Leaves {
        self.state().place = Some(place);
        Leaves(self.clone())
    }

    /// Counts the request for the tenant whose credential it shows; false when that tenant has as many as are due to it.
    #[must_use]
    pub fn count_for(&self, tenant: &str) -> bool {
        let tenant: Arc<str> = tenant.into();
        let mut state = self.state();
        if state.place.as_mut().is_some_and(|place| !place.count_for(&tenant)) {
            return false;
        }
        state.owner.tenant.get_or_insert(tenant);
        true
    }

    /// Notes the tenant that the request names, for its answer.
    pub fn name(&self, tenant: &str) {
        self.state().owner.tenant.get_or_insert_with(|| tenant.into());
    }

    /// Returns what is known.
    #[must_use]
    pub fn now(&self) -> Owner {
        self.state().owner.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it holds the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Leaves {
    fn drop(&mut self) {
        let place = self.0.state().place.take();
        drop(place);
    }
}
