//! Memory for request bodies. Services count a call only once they have its message, so bodies are limited here. The
//! memory is shared by connection and by tenant, so that slow bodies of one caller do not take it from others.

use std::sync::Arc;

use toolgate_serving::{Owner, Share, Shares};

/// Bytes of a body for which it takes one place, so that many long bodies do not fill the memory.
const PLACE_BYTES: usize = 256 << 10;

/// Places of all bodies.
pub(super) struct BodyBudget {
    places: Shares,
    most: usize,
}

/// Place of one call. Work that outlives the caller keeps it too.
pub(super) type Place = Arc<Share>;

impl BodyBudget {
    pub(super) fn new(most: usize) -> Self {
        Self { places: Shares::new(most), most }
    }

    /// Takes the call's own place.
    pub(super) fn enter(&self, owner: &Owner) -> Option<Place> {
        self.places.take(owner, 1).map(Arc::new)
    }

    /// Takes an empty share, which grows as the body arrives.
    pub(super) fn for_body(&self, owner: &Owner) -> Option<Share> {
        self.places.take(owner, 0)
    }

    /// Grows the share for a body of this many bytes, in addition to the call's own place. Returns false if there is no
    /// room.
    pub(super) fn grow(&self, share: &mut Share, bytes: usize) -> bool {
        // One body counts for at most half of the places, because longer ones could never be sent otherwise.
        let wanted = (bytes / PLACE_BYTES).min(self.most / 2);
        share.grow(wanted.saturating_sub(share.amount()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_bodies_take_more_and_give_it_back() {
        let budget = BodyBudget::new(4);
        let nobody = Owner::default();
        let place = budget.enter(&nobody).expect("room");
        let mut body = budget.for_body(&nobody).expect("room");
        assert!(budget.grow(&mut body, PLACE_BYTES - 1));
        assert_eq!(body.amount(), 0);
        assert!(budget.grow(&mut body, 100 * PLACE_BYTES), "half of it");
        assert_eq!(body.amount(), 2);
        let other = budget.enter(&nobody).expect("the last one");
        assert!(budget.enter(&nobody).is_none());
        drop((body, other));
        assert!(budget.enter(&nobody).is_some());
        let _shared = Arc::clone(&place);
        drop(place);
        let more: Vec<_> = std::iter::from_fn(|| budget.enter(&nobody)).collect();
        assert_eq!(more.len(), 3, "work that goes on keeps its place");
    }

    #[test]
    fn one_tenants_bodies_leave_room_for_others() {
        let budget = BodyBudget::new(10);
        let owner = |connection: u64, tenant: &str| Owner {
            connection: Some(connection),
            tenant: Some(tenant.into()),
        };
        let greedy: Vec<_> = (0..20).filter_map(|id| budget.enter(&owner(id, "greedy"))).collect();
        assert_eq!(greedy.len(), 8);
        assert!(budget.enter(&owner(99, "other")).is_some());
    }
}
