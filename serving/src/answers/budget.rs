//! Memory budget that unread answers share, and the removal of answers that nobody reads.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};
use tracing::debug;

use crate::connections::Peer;
use crate::shares::{Owner, Share, Shares};

/// Bytes of a piece. The transport takes an answer piece by piece. A piece that it holds can be freed only by closing
/// the connection, so pieces are small.
const PIECE: usize = 16 << 10;

/// Bytes that an open answer counts for in addition to its own: its stream, its task, its encoding buffer.
pub const OPEN_COST: usize = 16 << 10;

/// Budget of bytes, shared out by connection and by tenant, with the answers that use it.
pub(super) struct ResponseBudget {
    free: Shares,
    open: Mutex<Vec<Weak<Untaken>>>,
    refused: Box<dyn Fn() + Send + Sync>,
}

impl ResponseBudget {
    pub(super) fn new(bytes: usize, refused: Box<dyn Fn() + Send + Sync>) -> Self {
        Self { free: Shares::new(bytes), open: Mutex::default(), refused }
    }

    /// Opens an answer to `owner` on the connection of `peer`; returns `None` when there is no room.
    pub(super) fn open(self: &Arc<Self>, peer: Option<Peer>, owner: Owner) -> Option<Arc<Untaken>> {
        let cost = self.take(&owner, OPEN_COST)?;
        let state = State { rest: VecDeque::new(), out: 0, moved: Instant::now(), gone: false };
        let untaken = Untaken { state: Mutex::new(state), peer, owner, _cost: cost };
        let untaken = Arc::new(untaken);
        self.open.lock().push(Arc::downgrade(&untaken));
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

/// Answer, from its first byte until the transport has released its last one.
pub(super) struct Untaken {
    state: Mutex<State>,
    peer: Option<Peer>,
    owner: Owner,
    _cost: Share,
}

struct State {
    /// Bytes that the transport has not asked for yet.
    rest: VecDeque<Held>,
    /// Pieces that the transport holds and has not sent.
    out: usize,
    /// Time when a piece was sent last, or when there was nothing to send.
    moved: Instant,
    /// True if the rest was discarded.
    gone: bool,
}

/// Bytes with their share of the budget.
struct Held {
    bytes: Bytes,
    _share: Share,
}

/// Next part of an answer.
pub(super) enum Next {
    Piece(Bytes),
    /// No added bytes are left.
    Nothing,
    /// The answer was discarded.
    Gone,
}

impl Untaken {
    /// Queues bytes to send; returns false when there is no room for them.
    pub(super) fn add(&self, budget: &ResponseBudget, mut bytes: Bytes) -> bool {
        let Some(mut share) = budget.take(&self.owner, bytes.len()) else { return false };
        let mut state = self.state.lock();
        if state.rest.is_empty() && state.out == 0 {
            state.moved = Instant::now();
        }
        // Copied, because a slice would keep the whole buffer in memory until its last piece is sent.
        while bytes.len() > PIECE {
            let piece = bytes.split_to(PIECE);
            let piece_share = share.split(PIECE);
            state
                .rest
                .push_back(Held { bytes: Bytes::copy_from_slice(&piece), _share: piece_share });
        }
        state.rest.push_back(Held { bytes: Bytes::copy_from_slice(&bytes), _share: share });
        true
    }

    pub(super) fn next(self: &Arc<Self>) -> Next {
        let mut state = self.state.lock();
        if state.gone {
            return Next::Gone;
        }
        let Some(held) = state.rest.pop_front() else { return Next::Nothing };
        state.out += 1;
        Next::Piece(Bytes::from_owner(Piece { held, answer: Arc::clone(self) }))
    }

    /// Closes the connection of the answer.
    pub(super) fn close(&self) {
        if let Some(peer) = &self.peer {
            peer.close();
        }
    }

    pub(super) fn has_rest(&self) -> bool {
        let state = self.state.lock();
        state.gone || !state.rest.is_empty()
    }

    /// Discards the rest of the answer if nothing was sent for `read_timeout`, and closes its connection after twice that
    /// time.
    fn look_after(&self, read_timeout: Duration) {
        let mut state = self.state.lock();
        if state.rest.is_empty() && state.out == 0 && !state.gone {
            return;
        }
        let still = state.moved.elapsed();
        if still >= read_timeout && !state.gone {
            debug!("an answer that nobody takes is thrown away");
            state.gone = true;
            state.rest = VecDeque::new();
        }
        // The transport still holds a piece, which only this frees.
        if still >= read_timeout * 2 {
            self.close();
        }
    }
}

/// Bytes that the transport holds; it drops them once they are sent.
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
        let mut state = self.answer.state.lock();
        state.out -= 1;
        state.moved = Instant::now();
    }
}

/// Checks the answers of a budget at intervals until the budget is dropped.
pub(super) async fn sweep(budget: Weak<ResponseBudget>, read_timeout: Duration) {
    loop {
        sleep(read_timeout / 20).await;
        let Some(budget) = budget.upgrade() else { return };
        let mut open = std::mem::take(&mut *budget.open.lock());
        open.retain(|answer| {
            let answer = answer.upgrade();
            answer.inspect(|answer| answer.look_after(read_timeout)).is_some()
        });
        budget.open.lock().append(&mut open);
    }
}

#[cfg(test)]
impl ResponseBudget {
    /// Returns the number of free bytes.
    pub(super) fn free(&self) -> usize {
        self.free.free()
    }
}
