//! The room that untaken answers share, and what becomes of those that nobody takes.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, sleep};
use tracing::debug;

use crate::connections::Peer;
use crate::shares::{Owner, Share, Shares};

/// The transport takes an answer piece by piece. What it has taken can't be taken back from it, but by
/// closing the connection: hence small.
const PIECE: usize = 16 << 10;

/// Bytes that an open answer counts for besides its own: its stream, its task, the buffer it is encoded in.
pub const OPEN_COST: usize = 16 << 10;

/// Room for bytes, shared out by connection and by tenant, and the answers that are in it.
pub(super) struct Room {
    free: Shares,
    open: Mutex<Vec<Weak<Untaken>>>,
    refused: Box<dyn Fn() + Send + Sync>,
}

impl Room {
    pub(super) fn new(bytes: usize, refused: Box<dyn Fn() + Send + Sync>) -> Self {
        Self { free: Shares::new(bytes), open: Mutex::default(), refused }
    }

    /// Opens an answer to `owner` on the connection of `peer`; `None` when there is no room.
    pub(super) fn open(self: &Arc<Self>, peer: Option<Peer>, owner: Owner) -> Option<Arc<Untaken>> {
        let cost = self.take(&owner, OPEN_COST)?;
        let state = State { rest: VecDeque::new(), out: 0, moved: Instant::now(), gone: false };
        let untaken = Untaken { state: Mutex::new(state), peer, owner, _cost: cost };
        let untaken = Arc::new(untaken);
        locked(&self.open).push(Arc::downgrade(&untaken));
        Some(untaken)
    }

    fn take(&self, owner: &Owner, bytes: usize) -> Option<Share> {
        let taken = self.free.take(owner, bytes);
        if taken.is_none() {
            (self.refused)();
        }
        taken
    }
}

/// One answer, from its first byte until the transport has let go of its last one.
pub(super) struct Untaken {
    state: Mutex<State>,
    peer: Option<Peer>,
    owner: Owner,
    _cost: Share,
}

struct State {
    /// What the transport has not asked for yet.
    rest: VecDeque<Held>,
    /// Pieces that the transport has and has not sent.
    out: usize,
    /// When a piece was sent last, or there was nothing to send.
    moved: Instant,
    /// Whether the rest was thrown away.
    gone: bool,
}

/// Bytes and their room.
struct Held {
    bytes: Bytes,
    _room: Share,
}

/// What comes next of an answer.
pub(super) enum Next {
    Piece(Bytes),
    /// Nothing that was added is left.
    Nothing,
    /// It was thrown away.
    Gone,
}

impl Untaken {
    /// Adds bytes to what is to be sent; false when there is no room for them.
    pub(super) fn add(&self, room: &Room, mut bytes: Bytes) -> bool {
        let Some(mut share) = room.take(&self.owner, bytes.len()) else { return false };
        let mut state = locked(&self.state);
        if state.rest.is_empty() && state.out == 0 {
            state.moved = Instant::now();
        }
        // Copies: a slice would keep the whole in memory until its last piece is sent.
        while bytes.len() > PIECE {
            let piece = bytes.split_to(PIECE);
            let room = share.split(PIECE);
            state.rest.push_back(Held { bytes: Bytes::copy_from_slice(&piece), _room: room });
        }
        state.rest.push_back(Held { bytes: Bytes::copy_from_slice(&bytes), _room: share });
        true
    }

    pub(super) fn next(self: &Arc<Self>) -> Next {
        let mut state = locked(&self.state);
        if state.gone {
            return Next::Gone;
        }
        let Some(held) = state.rest.pop_front() else { return Next::Nothing };
        state.out += 1;
        Next::Piece(Bytes::from_owner(Piece { held, answer: Arc::clone(self) }))
    }

    /// Closes its connection.
    pub(super) fn close(&self) {
        if let Some(peer) = &self.peer {
            peer.close();
        }
    }

    pub(super) fn has_rest(&self) -> bool {
        let state = locked(&self.state);
        state.gone || !state.rest.is_empty()
    }

    /// Acts on an answer of which nothing was sent for `patience`, or for twice that.
    fn look_after(&self, patience: Duration) {
        let mut state = locked(&self.state);
        if state.rest.is_empty() && state.out == 0 && !state.gone {
            return;
        }
        let still = state.moved.elapsed();
        if still >= patience && !state.gone {
            debug!("an answer that nobody takes is thrown away");
            state.gone = true;
            state.rest = VecDeque::new();
        }
        // The transport keeps a piece of it, which nothing but this frees.
        if still >= patience * 2 {
            self.close();
        }
    }
}

/// Bytes in the transport's hands; it drops them when they are sent.
struct Piece {
    held: Held,
    answer: Arc<Untaken>,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.held.bytes
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        let mut state = locked(&self.answer.state);
        state.out -= 1;
        state.moved = Instant::now();
    }
}

/// Looks after the answers of a room until it is gone.
pub(super) async fn sweep(room: Weak<Room>, patience: Duration) {
    loop {
        sleep(patience / 20).await;
        let Some(room) = room.upgrade() else { return };
        let mut open = std::mem::take(&mut *locked(&room.open));
        open.retain(|answer| {
            let answer = answer.upgrade();
            answer.inspect(|answer| answer.look_after(patience)).is_some()
        });
        locked(&room.open).append(&mut open);
    }
}

/// Nothing panics while it holds a lock, and what was written is whole.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
impl Room {
    /// Bytes that are free.
    pub(super) fn free(&self) -> usize {
        self.free.free()
    }
}
