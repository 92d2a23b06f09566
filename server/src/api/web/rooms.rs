//! Room in memory for bodies, which services don't know of: they count a call only from when they have its message.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A body takes a place for each of these, so that as many long ones as there are calls don't fill the memory.
const PLACE_BYTES: usize = 256 << 10;

/// The places of all bodies.
pub(super) struct Rooms {
    places: Arc<Semaphore>,
    most: usize,
}

/// The place of one call, which work that outlives its caller shares.
pub(super) type Place = Arc<OwnedSemaphorePermit>;

impl Rooms {
    pub(super) fn new(most: usize) -> Self {
        let most = most.min(Semaphore::MAX_PERMITS);
        Self { places: Arc::new(Semaphore::new(most)), most }
    }

    /// A call's own place.
    pub(super) fn enter(&self) -> Option<Place> {
        Arc::clone(&self.places).try_acquire_owned().ok().map(Arc::new)
    }

    /// No room yet, to be grown as a body comes.
    pub(super) fn for_body(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.places).try_acquire_many_owned(0).ok()
    }

    /// Room for a body of so many bytes, its call's place aside; false when there is none.
    pub(super) fn grow(&self, room: &mut OwnedSemaphorePermit, bytes: usize) -> bool {
        // One body may have all of it, or those longer than that could never be sent.
        let wanted = (bytes / PLACE_BYTES).min(self.most - 1);
        let more = wanted.saturating_sub(room.num_permits());
        let more = u32::try_from(more).unwrap_or(u32::MAX);
        let grown = Arc::clone(&self.places).try_acquire_many_owned(more);
        grown.map(|grown| room.merge(grown)).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_bodies_take_more_and_give_it_back() {
        let rooms = Rooms::new(4);
        let place = rooms.enter().expect("room");
        let mut body = rooms.for_body().expect("room");
        assert!(rooms.grow(&mut body, PLACE_BYTES - 1));
        assert_eq!(body.num_permits(), 0);
        assert!(rooms.grow(&mut body, 100 * PLACE_BYTES), "all that is left");
        assert!(rooms.enter().is_none());
        drop(body);
        assert!(rooms.enter().is_some());
        let _shared = Arc::clone(&place);
        drop(place);
        let mut other = rooms.for_body().expect("room");
        assert!(rooms.grow(&mut other, 4 * PLACE_BYTES));
        assert_eq!(other.num_permits(), 3, "work that goes on keeps its place");
        assert!(rooms.enter().is_none());
    }
}
