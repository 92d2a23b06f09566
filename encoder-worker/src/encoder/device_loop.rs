//! The thread that owns the device. It takes what waits, packs a batch up to the token budget, runs
//! it, and never waits for more: a lone text runs at once. Texts of all waiting requests take turns,
//! so a large request does not hold up a small one for longer than a batch.
//!
//! Texts are tokenized here, not by the callers: at some 20 us a short text it costs a hundredth of
//! the device call, abandoned requests cost nothing, and async threads are never blocked.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::Receiver;
use std::time::Instant;

use super::request::{Gone, Request};
use super::stats::Counters;
use super::{EmbedError, Embedding};
use crate::backend::{Backend, Batch};
use crate::tokenize::{TextTokenizer, Tokens};

pub(super) struct DeviceLoop {
    backend: Box<dyn Backend>,
    tokenizer: TextTokenizer,
    waiting: Receiver<Request>,
    max_batch_tokens: usize,
    /// Requests with work left, oldest first. Bounded: each holds one of the queue's places.
    active: Vec<Request>,
    counters: Arc<Counters>,
}

/// A packed batch and where its results belong.
#[derive(Default)]
struct Packed {
    batch: Batch,
    slots: Vec<Slot>,
}

/// One text of a batch.
struct Slot {
    /// Index of its request in `active`.
    request: usize,
    tokens: u32,
    truncated: bool,
}

/// Says so when the thread ends, however it ends.
struct StopOnExit(Arc<Counters>);

impl Drop for StopOnExit {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl DeviceLoop {
    pub(super) fn new(
        backend: Box<dyn Backend>,
        tokenizer: TextTokenizer,
        waiting: Receiver<Request>,
        max_batch_tokens: usize,
        counters: Arc<Counters>,
    ) -> Self {
        Self { backend, tokenizer, waiting, max_batch_tokens, active: Vec::new(), counters }
    }

    /// Runs until the last handle is gone and all is answered, or until the model panics. Requests
    /// left then are dropped, which tells their callers.
    pub(super) fn run(mut self) {
        let _stop = StopOnExit(Arc::clone(&self.counters));
        while self.take_waiting() {
            self.drop_gone();
            let packed = self.pack();
            if !packed.batch.is_empty()
                && let Err(panic) = self.run_batch(packed)
            {
                tracing::error!(panic, "the encoder's model panicked; the encoder stops");
                return;
            }
            self.finish_done();
        }
    }

    /// Waits only when there is nothing to do. `false` when there is nothing left to come.
    fn take_waiting(&mut self) -> bool {
        if self.active.is_empty() {
            match self.waiting.recv() {
                Ok(request) => self.active.push(request),
                Err(_) => return false,
            }
        }
        self.active.extend(self.waiting.try_iter());
        true
    }

    fn drop_gone(&mut self) {
        let now = Instant::now();
        let gone = self.active.extract_if(.., |request| request.gone(now).is_some());
        for request in gone {
            match request.gone(now) {
                Some(Gone::Expired) => {
                    self.counters.expired.fetch_add(1, Relaxed);
                    request.fail(EmbedError::DeadlineExceeded);
                }
                _ => {
                    self.counters.abandoned.fetch_add(1, Relaxed);
                }
            }
        }
    }

    /// One text of each request in turn, until the budget is reached or nothing is left.
    fn pack(&mut self) -> Packed {
        let mut packed = Packed::default();
        loop {
            let before = packed.slots.len();
            for (index, request) in self.active.iter_mut().enumerate() {
                let Some(tokens) = request.next_tokens(&self.tokenizer) else {
                    continue;
                };
                if packed.is_full_for(&tokens, self.max_batch_tokens) {
                    request.hold(tokens);
                    return packed;
                }
                packed.push(index, &tokens);
            }
            if packed.slots.len() == before {
                return packed;
            }
        }
    }

    /// Runs a batch and hands out its results. `Err` is a panic's message; those concerned are told.
    fn run_batch(&mut self, packed: Packed) -> Result<(), String> {
        let started = Instant::now();
        let backend = &mut self.backend;
        // The backend is not used again after a panic.
        let result = catch_unwind(AssertUnwindSafe(|| backend.forward(&packed.batch)));
        self.count(&packed, started);
        let (result, panicked) = match result {
            Ok(result) => (result.map_err(|error| error.to_string()), false),
            Err(panic) => (Err(panic_text(panic.as_ref())), true),
        };
        match result.and_then(|vectors| check(vectors, &packed)) {
            Ok(vectors) => self.hand_out(vectors, packed),
            Err(cause) => {
                self.fail_all(&packed, &cause);
                if panicked {
                    return Err(cause);
                }
            }
        }
        Ok(())
    }

    fn hand_out(&mut self, vectors: Vec<Vec<f32>>, packed: Packed) {
        for (vector, slot) in vectors.into_iter().zip(packed.slots) {
            self.active[slot.request].add(Embedding {
                vector,
                tokens: slot.tokens,
                truncated: slot.truncated,
            });
        }
    }

    fn finish_done(&mut self) {
        self.active.extract_if(.., |request| request.is_done()).for_each(Request::finish);
    }

    fn fail_all(&mut self, packed: &Packed, cause: &str) {
        let mut concerned: Vec<usize> = packed.slots.iter().map(|slot| slot.request).collect();
        concerned.sort_unstable();
        concerned.dedup();
        for index in concerned.into_iter().rev() {
            let request = self.active.remove(index);
            request.fail(EmbedError::Backend(cause.to_owned()));
        }
    }

    fn count(&self, packed: &Packed, started: Instant) {
        let counters = &self.counters;
        let busy = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let cut = packed.slots.iter().filter(|slot| slot.truncated).count();
        counters.batches.fetch_add(1, Relaxed);
        counters.texts.fetch_add(packed.slots.len() as u64, Relaxed);
        counters.tokens.fetch_add(packed.batch.tokens() as u64, Relaxed);
        counters.truncated.fetch_add(cut as u64, Relaxed);
        counters.busy_nanos.fetch_add(busy, Relaxed);
    }
}

impl Packed {
    fn is_full_for(&self, tokens: &Tokens, limit: usize) -> bool {
        !self.batch.is_empty() && self.batch.tokens() + tokens.ids.len() > limit
    }

    fn push(&mut self, request: usize, tokens: &Tokens) {
        self.batch.push(&tokens.ids);
        self.slots.push(Slot {
            request,
            tokens: tokens.ids.len() as u32,
            truncated: tokens.truncated,
        });
    }
}

/// A backend that returns nonsense must not fill an index with it.
fn check(vectors: Vec<Vec<f32>>, packed: &Packed) -> Result<Vec<Vec<f32>>, String> {
    if vectors.len() != packed.slots.len() {
        return Err(format!("{} vectors for {} texts", vectors.len(), packed.slots.len()));
    }
    if !vectors.iter().flatten().all(|x| x.is_finite()) {
        return Err("the result is not finite".into());
    }
    Ok(vectors)
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("panic: {}", text.unwrap_or("without a message"))
}
