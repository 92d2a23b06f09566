//! Counters of the encoder's work, and the bound on the requests that it holds.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use super::distribution::{Bounds, Distribution, Ranges};

/// Ranges for the texts of a batch.
const BATCH_TEXTS: Bounds = [1, 2, 4, 8, 12, 16, 24, 32, 64, 128, 256, 512, 1_024];
/// Ranges for the tokens of a batch.
const BATCH_TOKENS: Bounds =
    [8, 16, 32, 64, 128, 256, 512, 1_024, 2_048, 4_096, 8_192, 16_384, 32_768];
/// Ranges for the time in the queue, in microseconds.
const QUEUE_WAIT: Bounds =
    [25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 100_000, 500_000, 2_500_000];

/// Snapshot of an encoder's counters. All but the last two count since its start.
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
    /// Requests dropped unfinished because the caller had left.
    pub abandoned: u64,
    /// Requests dropped unfinished because their deadline had passed.
    pub expired: u64,
    /// Requests refused because the queue was full.
    pub refused: u64,
    /// Batches that the device failed on.
    pub failed_batches: u64,
    /// Texts that went into a batch although their caller had left, or their deadline had passed, when the batch was
    /// formed. Any value but 0 is a bug.
    pub embedded_for_gone: u64,
    /// Time spent in device calls.
    pub busy: Duration,
    /// Time spent on turning texts into tokens.
    pub tokenizing: Duration,
    /// Texts of each batch.
    pub batch_texts: Distribution,
    /// Tokens of each batch.
    pub batch_tokens: Distribution,
    /// Microseconds from each request's arrival until the device took the batch with its first text.
    pub queue_wait: Distribution,
    /// Requests that wait or run now.
    pub queue_depth: usize,
    /// True if the encoder still answers.
    pub running: bool,
}

/// Live counters. The batcher writes most of them.
#[derive(Debug)]
pub(super) struct Counters {
    pub(super) batches: AtomicU64,
    pub(super) texts: AtomicU64,
    pub(super) tokens: AtomicU64,
    pub(super) truncated: AtomicU64,
    pub(super) abandoned: AtomicU64,
    pub(super) expired: AtomicU64,
    pub(super) failed_batches: AtomicU64,
    pub(super) embedded_for_gone: AtomicU64,
    pub(super) busy_nanos: AtomicU64,
    tokenizing_nanos: AtomicU64,
    pub(super) batch_texts: Ranges,
    pub(super) batch_tokens: Ranges,
    pub(super) queue_wait: Ranges,
    refused: AtomicU64,
    /// Requests that have or had a place.
    placed: AtomicU64,
    /// Requests that the batcher had taken when it last formed a batch with no text being tokenized.
    planned: AtomicU64,
    depth: AtomicUsize,
    stopped: AtomicBool,
}

impl Default for Counters {
    fn default() -> Self {
        let zero = AtomicU64::default;
        Self {
            batches: zero(),
            texts: zero(),
            tokens: zero(),
            truncated: zero(),
            abandoned: zero(),
            expired: zero(),
            failed_batches: zero(),
            embedded_for_gone: zero(),
            busy_nanos: zero(),
            tokenizing_nanos: zero(),
            batch_texts: Ranges::new(BATCH_TEXTS),
            batch_tokens: Ranges::new(BATCH_TOKENS),
            queue_wait: Ranges::new(QUEUE_WAIT),
            refused: zero(),
            placed: zero(),
            planned: zero(),
            depth: AtomicUsize::default(),
            stopped: AtomicBool::default(),
        }
    }
}

/// Slot of one request in the queue, given back on drop.
#[derive(Debug)]
pub(super) struct QueueSlot(Arc<Counters>);

impl Drop for QueueSlot {
    fn drop(&mut self) {
        self.0.depth.fetch_sub(1, Relaxed);
    }
}

impl Counters {
    /// Takes one of `capacity` places, or returns `None` when all are taken.
    pub(super) fn take_place(self: &Arc<Self>, capacity: usize) -> Option<QueueSlot> {
        self.placed.fetch_add(1, Relaxed);
        let taken = self
            .depth
            .fetch_update(Relaxed, Relaxed, |depth| (depth < capacity).then_some(depth + 1));
        if taken.is_err() {
            self.placed.fetch_sub(1, Relaxed);
            self.refused.fetch_add(1, Relaxed);
            return None;
        }
        Some(QueueSlot(Arc::clone(self)))
    }

    /// Takes a place beyond the capacity, for a request that must not be refused.
    pub(super) fn extra_place(self: &Arc<Self>) -> QueueSlot {
        self.placed.fetch_add(1, Relaxed);
        self.depth.fetch_add(1, Relaxed);
        QueueSlot(Arc::clone(self))
    }

    pub(super) fn is_running(&self) -> bool {
        !self.stopped.load(Relaxed)
    }

    pub(super) fn stop(&self) {
        self.stopped.store(true, Relaxed);
    }

    pub(super) fn add_tokenizing(&self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.tokenizing_nanos.fetch_add(nanos, Relaxed);
    }

    /// Says that the next batch takes account of the first `requests` requests.
    pub(super) fn planned(&self, requests: u64) {
        self.planned.store(requests, Relaxed);
    }

    /// Returns true if the next batch takes account of all requests.
    #[cfg(test)]
    pub(super) fn is_planned(&self) -> bool {
        self.planned.load(Relaxed) == self.placed.load(Relaxed)
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
            failed_batches: self.failed_batches.load(Relaxed),
            embedded_for_gone: self.embedded_for_gone.load(Relaxed),
            busy: Duration::from_nanos(self.busy_nanos.load(Relaxed)),
            tokenizing: Duration::from_nanos(self.tokenizing_nanos.load(Relaxed)),
            batch_texts: self.batch_texts.snapshot(),
            batch_tokens: self.batch_tokens.snapshot(),
            queue_wait: self.queue_wait.snapshot(),
            queue_depth: self.depth.load(Relaxed),
            running: self.is_running(),
        }
    }
}
