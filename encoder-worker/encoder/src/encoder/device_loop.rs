//! Thread that owns the device. It takes the waiting requests, packs a batch up to the token budget, runs it, and never
//! waits for more: a lone text runs at once. Texts of all flows take turns, so neither a large request nor a busy
//! tenant holds up the others for longer than a batch.
//!
//! Texts are tokenized here, not by the callers. At some 20 us a short text, this costs a hundredth of the device call.
//! Abandoned requests cost nothing, and async threads are never blocked.

use std::any::Any;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::Receiver;
use std::time::Instant;

use super::batch_budget::{BatchBudget, OF_FLOWS, OF_ONE_FLOW, SeveralFlows};
use super::batch_spans::BatchSpans;
use super::request::{Gone, Request};
use super::stats::Counters;
use super::turns::Turns;
use super::{EmbedError, Embedding};
use crate::backend::{Backend, Batch};
use crate::tokenize::{TextTokenizer, Tokens};

pub(super) struct DeviceLoop {
    backend: Box<dyn Backend>,
    tokenizer: TextTokenizer,
    waiting: Receiver<Request>,
    /// Budget of a batch while one flow waits. The next field is the budget while several do or did of late. Each
    /// learns from its own batches: a device may take as long to start a small one as a large one.
    budget_of_one: BatchBudget,
    budget_of_several: BatchBudget,
    several_flows: SeveralFlows,
    /// Requests with work left, oldest first. The list is bounded, because each holds a place of the queue.
    active: Vec<Request>,
    turns: Turns,
    /// True if a request that goes first was in the last batch: the next batch is for the others.
    first_went: bool,
    counters: Arc<Counters>,
}

/// Texts that will share a batch.
#[derive(Default)]
struct Packed {
    slots: Vec<Slot>,
    tokens: usize,
}

/// Text of a batch.
pub(super) struct Slot {
    /// Index of its request in `active`.
    pub(super) request: usize,
    tokens: Tokens,
    /// True if no text of its request was in a batch before.
    is_first: bool,
}

/// Batch for the device, with the destinations of its results.
struct Formed {
    batch: Batch,
    slots: Vec<Slot>,
    at: Instant,
    /// True if several flows waited, then or of late.
    of_several: bool,
    spans: BatchSpans,
}

/// Guard that marks the encoder as stopped when the thread ends, however it ends.
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
        Self {
            backend,
            tokenizer,
            waiting,
            budget_of_one: BatchBudget::new(OF_ONE_FLOW, max_batch_tokens),
            budget_of_several: BatchBudget::new(OF_FLOWS, max_batch_tokens),
            several_flows: SeveralFlows::default(),
            active: Vec::new(),
            turns: Turns::default(),
            first_went: false,
            counters,
        }
    }

    /// Runs until the last handle is dropped and all requests are answered, or until the model panics. Remaining
    /// requests are then dropped, which tells their callers.
    pub(super) fn run(mut self) {
        let _stop = StopOnExit(Arc::clone(&self.counters));
        self.backend.settle();
        while self.take_waiting() {
            // The device wakes while texts are tokenized.
            self.backend.rouse();
            self.drop_gone();
            let formed = self.next_batch(Instant::now());
            if !formed.batch.is_empty()
                && let Err(panic) = self.run_batch(formed)
            {
                tracing::error!(panic, "the encoder's model panicked; the encoder stops");
                return;
            }
            self.finish_done();
        }
    }

    /// Takes waiting requests; blocks only when there is nothing to do. Returns false when no more can come.
    fn take_waiting(&mut self) -> bool {
        if self.active.is_empty() {
            match self.waiting.recv() {
                Ok(request) => self.accept(request),
                Err(_) => return false,
            }
        }
        while let Ok(request) = self.waiting.try_recv() {
            self.accept(request);
        }
        true
    }

    fn accept(&mut self, mut request: Request) {
        request.join(&mut self.turns);
        self.active.push(request);
    }

    fn drop_gone(&mut self) {
        let now = Instant::now();
        let gone = self.active.extract_if(.., |request| request.gone(now).is_some());
        for request in gone {
            request.leave(&mut self.turns);
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

    /// Forms the batch of the texts that are due at `now`.
    fn next_batch(&mut self, now: Instant) -> Formed {
        let they_wait = self.several_flows_wait();
        let of_several = self.several_flows.of_late(they_wait, now);
        let packed = self.pack(of_several);
        self.form(packed, of_several)
    }

    fn several_flows_wait(&self) -> bool {
        let mut flows = self.active.iter().map(Request::flow);
        let first = flows.next();
        flows.any(|flow| Some(flow) != first)
    }

    /// Packs texts in the order of their turns, until the budget is reached or nothing is left.
    fn pack(&mut self, of_several: bool) -> Packed {
        let started = Instant::now();
        let budget = if of_several { &self.budget_of_several } else { &self.budget_of_one };
        let packed = self.take_turns(budget.tokens());
        self.turns.forget_idle(self.active.len());
        self.counters.tokenizing_nanos.fetch_add(nanos_since(started), Relaxed);
        packed
    }

    fn take_turns(&mut self, budget: usize) -> Packed {
        let mut packed = Packed::default();
        let after_first = mem::take(&mut self.first_went);
        // Among equal turns, the request that came first wins.
        let due = |(index, request): (usize, &Request)| {
            Some(Reverse((request.rank(after_first), request.turn()?, index)))
        };
        let mut queue: BinaryHeap<_> = self.active.iter().enumerate().filter_map(due).collect();
        while let Some(Reverse((rank, turn, index))) = queue.pop() {
            let request = &mut self.active[index];
            let is_first = request.is_untouched();
            let Some(tokens) = request.next_tokens(&self.tokenizer) else { continue };
            if packed.is_full_for(&tokens, budget) {
                request.hold(tokens);
                break;
            }
            packed.push(Slot { request: index, tokens, is_first });
            self.first_went |= request.goes_first();
            queue.extend(request.turn().map(|next| Reverse((rank, next, index))));
            self.turns.taken(turn);
        }
        packed
    }

    /// Builds the batch. This is the last moment at which a caller may leave at no cost: tokenizing a large batch takes
    /// a while. Requests that are left out here are dropped before the next batch.
    fn form(&mut self, packed: Packed, of_several: bool) -> Formed {
        let at = Instant::now();
        let mut batch = Batch::default();
        let mut slots = packed.slots;
        slots.retain(|slot| self.active[slot.request].gone(at).is_none());
        for slot in &slots {
            batch.push(&slot.tokens.ids);
            if slot.is_first {
                self.counters.queue_wait.add(self.active[slot.request].waited(at));
                self.active[slot.request].leave_queue();
            }
        }
        let spans = BatchSpans::begin(&self.active, &slots, &batch);
        Formed { batch, slots, at, of_several, spans }
    }

    /// Runs a batch and hands out its results. `Err` is the message of a panic; the affected callers are told.
    fn run_batch(&mut self, mut formed: Formed) -> Result<(), String> {
        let started = Instant::now();
        let backend = &mut self.backend;
        // The backend is not used again after a panic.
        let result = catch_unwind(AssertUnwindSafe(|| backend.forward(&formed.batch)));
        let budget =
            if formed.of_several { &mut self.budget_of_several } else { &mut self.budget_of_one };
        budget.took(formed.batch.tokens(), started.elapsed());
        self.count(&formed, started);
        formed.spans.end();
        let (result, panicked) = match result {
            Ok(result) => (result.map_err(|error| error.to_string()), false),
            Err(panic) => (Err(panic_text(panic.as_ref())), true),
        };
        match result.and_then(|vectors| check(vectors, &formed)) {
            Ok(vectors) => self.hand_out(vectors, formed),
            Err(cause) => {
                self.counters.failed_batches.fetch_add(1, Relaxed);
                self.fail_all(&formed, &cause);
                if panicked {
                    return Err(cause);
                }
            }
        }
        Ok(())
    }

    fn hand_out(&mut self, vectors: Vec<Vec<f32>>, formed: Formed) {
        for (vector, slot) in vectors.into_iter().zip(formed.slots) {
            let request = &mut self.active[slot.request];
            if request.had_gone(formed.at) {
                self.counters.embedded_for_gone.fetch_add(1, Relaxed);
            }
            request.add(Embedding {
                vector,
                tokens: slot.tokens.ids.len() as u32,
                truncated: slot.tokens.truncated,
            });
        }
    }

    fn finish_done(&mut self) {
        for request in self.active.extract_if(.., |request| request.is_done()) {
            request.leave(&mut self.turns);
            request.finish();
        }
    }

    fn fail_all(&mut self, formed: &Formed, cause: &str) {
        let mut concerned: Vec<usize> = formed.slots.iter().map(|slot| slot.request).collect();
        concerned.sort_unstable();
        concerned.dedup();
        for index in concerned.into_iter().rev() {
            let request = self.active.remove(index);
            request.leave(&mut self.turns);
            request.fail(EmbedError::Backend(cause.to_owned()));
        }
    }

    fn count(&self, formed: &Formed, started: Instant) {
        let counters = &self.counters;
        let texts = formed.batch.texts() as u64;
        let tokens = formed.batch.tokens() as u64;
        let cut = formed.slots.iter().filter(|slot| slot.tokens.truncated).count();
        counters.busy_nanos.fetch_add(nanos_since(started), Relaxed);
        counters.batches.fetch_add(1, Relaxed);
        counters.texts.fetch_add(texts, Relaxed);
        counters.tokens.fetch_add(tokens, Relaxed);
        counters.truncated.fetch_add(cut as u64, Relaxed);
        counters.batch_texts.add(texts);
        counters.batch_tokens.add(tokens);
    }
}

impl Packed {
    fn is_full_for(&self, tokens: &Tokens, limit: usize) -> bool {
        !self.slots.is_empty() && self.tokens + tokens.ids.len() > limit
    }

    fn push(&mut self, slot: Slot) {
        self.tokens += slot.tokens.ids.len();
        self.slots.push(slot);
    }
}

fn nanos_since(started: Instant) -> u64 {
    u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Checks the results of the backend, so that nonsense does not get into an index.
fn check(vectors: Vec<Vec<f32>>, formed: &Formed) -> Result<Vec<Vec<f32>>, String> {
    if vectors.len() != formed.slots.len() {
        return Err(format!("{} vectors for {} texts", vectors.len(), formed.slots.len()));
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

#[cfg(test)]
mod tests;
