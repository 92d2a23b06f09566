//! Counting what the encoder does, and bounding how many requests it holds.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// A snapshot of an encoder's counters, all since its start but the last two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EncoderStats {
    /// Device calls.
    pub batches: u64,
    /// Texts embedded.
    pub texts: u64,
    /// Tokens embedded, special ones included.
    pub tokens: u64,
    /// Texts whose end was cut off at the model's limit.
    pub truncated: u64,
    /// Requests dropped unfinished because the caller had gone.
    pub abandoned: u64,
    /// Requests dropped unfinished because their deadline had passed.
    pub expired: u64,
    /// Requests refused because the queue was full.
    pub refused: u64,
    /// Time spent in device calls.
    pub busy: Duration,
    /// Requests that wait or run now.
    pub queue_depth: usize,
    /// Whether the encoder still answers.
    pub running: bool,
}

/// The live counters. Written by the device thread, except `refused`, `depth` and places.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) batches: AtomicU64,
    pub(super) texts: AtomicU64,
    pub(super) tokens: AtomicU64,
    pub(super) truncated: AtomicU64,
    pub(super) abandoned: AtomicU64,
    pub(super) expired: AtomicU64,
    pub(super) busy_nanos: AtomicU64,
    refused: AtomicU64,
    depth: AtomicUsize,
    stopped: AtomicBool,
}

/// One request's place in the queue, given back on drop.
#[derive(Debug)]
pub(super) struct Place(Arc<Counters>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.depth.fetch_sub(1, Relaxed);
    }
}

impl Counters {
    /// A place among `capacity`, or `None` when all are taken.
    pub(super) fn take_place(self: &Arc<Self>, capacity: usize) -> Option<Place> {
        let taken = self
            .depth
            .fetch_update(Relaxed, Relaxed, |depth| (depth < capacity).then_some(depth + 1));
        if taken.is_err() {
            self.refused.fetch_add(1, Relaxed);
            return None;
        }
        Some(Place(Arc::clone(self)))
    }

    pub(super) fn is_running(&self) -> bool {
        !self.stopped.load(Relaxed)
    }

    pub(super) fn stop(&self) {
        self.stopped.store(true, Relaxed);
    }

    pub(super) fn snapshot(&self) -> EncoderStats {
        EncoderStats {
            batches: self.batches.load(Relaxed),
            texts: self.texts.load(Relaxed),
            tokens: self.tokens.load(Relaxed),
            truncated: self.truncated.load(Relaxed),
            abandoned: self.abandoned.load(Relaxed),
            expired: self.expired.load(Relaxed),
            refused: self.refused.load(Relaxed),
            busy: Duration::from_nanos(self.busy_nanos.load(Relaxed)),
            queue_depth: self.depth.load(Relaxed),
            running: self.is_running(),
        }
    }
}
