//! Owners of requests: the connection from the beginning, and the tenant once it is known. The place that a request
//! holds in [`BoundRequests`](crate::BoundRequests) counts for both.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use crate::connections::Peer;
use crate::shares::{Owner, Share};

/// Owner of a request. Requests carry it in their extensions.
#[derive(Debug, Clone)]
pub struct RequestOwner {
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    owner: Owner,
    place: Option<Share>,
}

/// Guard that gives the place back when it is dropped, even while other clones of the owner exist.
pub(crate) struct Leaves(RequestOwner);

impl RequestOwner {
    /// Returns the owner of requests that come from `peer`.
    pub(crate) fn of(peer: Option<&Peer>) -> Self {
        let owner = Owner { connection: peer.map(Peer::connection), tenant: None };
        Self { state: Arc::new(Mutex::new(State { owner, place: None })) }
    }

    /// Stores `place` until the returned guard is dropped.
    pub(crate) fn hold(&self, place: Share) -> Leaves {
        self.state().place = Some(place);
        Leaves(self.clone())
    }

    /// Counts the request for the tenant whose credential it carries; returns false when that tenant has its whole
    /// share.
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

    /// Records the tenant that the request names, which its answer then counts for.
    pub fn name(&self, tenant: &str) {
        self.state().owner.tenant.get_or_insert_with(|| tenant.into());
    }

    /// Returns the owner as far as it is known now.
    #[must_use]
    pub fn now(&self) -> Owner {
        self.state().owner.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // The lock is never held across a panic.
        self.state.lock()
    }
}

impl Drop for Leaves {
    fn drop(&mut self) {
        let place = self.0.state().place.take();
        drop(place);
    }
}
