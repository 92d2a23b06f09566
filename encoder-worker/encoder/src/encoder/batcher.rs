//! Thread that forms batches and answers callers. It packs the next batch up to the token budget while the device runs
//! one, and never waits for more: a lone text runs at once. Texts of all flows take turns, so neither a large request nor
//! a busy tenant holds up the others for longer than a batch.
//!
//! A batch that waits for the device is only a plan: what comes before the device takes it may take its place, and who
//! leaves is left out. Requests count a text as taken once the device has it. Texts are tokenized by threads of their own
//! as far ahead as the next batches need them, so that callers who leave cost little, and async threads are never blocked.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::Receiver;
use std::time::Instant;

use super::batch_budget::{BatchBudget, OF_FLOWS, OF_ONE_FLOW, SeveralFlows};
use super::device_thread::{Ran, RunError};
use super::formed::{Formed, Gone, RequestId, Slot};
use super::handover::{Handover, Taken};
use super::request::{Key, Rank, Request};
use super::stats::Counters;
use super::tokenizers::{Tokenized, Tokenizers};
use super::turns::{Turn, Turns};
use super::{EmbedError, Embedding};

/// Most texts that are tokenized on the batcher's own thread while the device has nothing to do. For so few, handing them
/// to another thread takes longer.
const TEXTS_HERE: usize = 8;

/// Most texts of a job for a tokenizing thread.
const TEXTS_OF_A_JOB: usize = 16;

/// Batches ahead that texts are tokenized for.
const BATCHES_AHEAD: u64 = 2;

/// Message to the batcher. There are at most as many requests as places, jobs as their queue holds, and two batches.
pub(super) enum Event {
    /// A request has arrived.
    Arrived(Box<Request>),
    /// Texts were tokenized.
    Tokenized(Tokenized),
    /// The device's thread has taken the batch that waited.
    Taken,
    /// The device is done with a batch.
    Ran(Ran),
    /// The device's thread has ended.
    DeviceEnded,
    /// No more requests can come.
    Closed,
}

pub(super) struct Batcher {
    events: Receiver<Event>,
    tokenizers: Tokenizers,
    handover: Arc<Handover>,
    /// Budget of a batch while one flow waits. The next field is the budget while several do or did of late. Each
    /// learns from its own batches: a device may take as long to start a small one as a large one.
    budget_of_one: BatchBudget,
    budget_of_several: BatchBudget,
    several_flows: SeveralFlows,
    /// Requests with work left, oldest first. The list is bounded, because each holds a place of the queue.
    active: Vec<Request>,
    /// Requests that have arrived so far.
    arrived: RequestId,
    turns: Turns,
    /// True if a request that goes first was in the last batch: the next batch is for the others.
    first_went: bool,
    /// Batch that waits for the device.
    offer: Option<Offer>,
    /// True if the next batch may be another than the one that waits.
    is_stale: bool,
    /// Texts that are being tokenized.
    tokenizing: usize,
    /// Batches that the device has taken and whose results have not come.
    running: usize,
    /// True if no more requests can come.
    is_closed: bool,
    counters: Arc<Counters>,
}

/// Record of a batch that waits for the device.
struct Offer {
    /// Each request in it, and the number of its texts.
    texts: Vec<(RequestId, usize)>,
    /// Greatest turn of its texts.
    turn: Turn,
    /// Key of its last text.
    last: Key,
    /// True if it has no room for a text that waits.
    is_full: bool,
    /// True if a request that goes first is in it.
    goes_first: bool,
}

/// Sign that the batcher ends: all requests are answered and no more can come, or the device runs nothing any more.
#[derive(Debug)]
struct End;

/// Guard that marks the encoder as stopped, and ends the device's thread, when the batcher ends, however it ends.
struct StopOnExit {
    counters: Arc<Counters>,
    handover: Arc<Handover>,
}

impl Drop for StopOnExit {
    fn drop(&mut self) {
        self.counters.stop();
        self.handover.close();
    }
}

impl Batcher {
    pub(super) fn new(
        events: Receiver<Event>,
        tokenizers: Tokenizers,
        handover: Arc<Handover>,
        max_batch_tokens: usize,
        counters: Arc<Counters>,
    ) -> Self {
        Self {
            events,
            tokenizers,
            handover,
            budget_of_one: BatchBudget::new(OF_ONE_FLOW, max_batch_tokens),
            budget_of_several: BatchBudget::new(OF_FLOWS, max_batch_tokens),
            several_flows: SeveralFlows::default(),
            active: Vec::new(),
            arrived: 0,
            turns: Turns::default(),
            first_went: false,
            offer: None,
            is_stale: false,
            tokenizing: 0,
            running: 0,
            is_closed: false,
            counters,
        }
    }

    /// Runs until the last handle is dropped and all requests are answered, or until the model panics. Remaining
    /// requests are then dropped, which tells their callers.
    pub(super) fn run(mut self) {
        let counters = Arc::clone(&self.counters);
        let _stop = StopOnExit { counters, handover: Arc::clone(&self.handover) };
        while self.take_events().is_ok() {
            self.act_on_events();
        }
    }

    /// Does all that the events so far allow. Afterwards another event comes, unless no request is left.
    fn act_on_events(&mut self) {
        self.note_taken();
        self.drop_gone();
        // A request that failed must not keep the texts of others from being sent.
        self.finish_done();
        self.send_to_tokenizers();
        // Texts that were tokenized here may have failed theirs.
        self.finish_done();
        self.plan_again(Instant::now());
        if self.tokenizing == 0 {
            self.counters.planned(self.arrived);
        }
    }

    /// Waits for an event, and takes it and all others that wait.
    fn take_events(&mut self) -> Result<(), End> {
        if self.is_closed && self.active.is_empty() {
            return Err(End);
        }
        let mut next = self.events.recv().map_err(|_| End)?;
        loop {
            self.take_event(next)?;
            match self.events.try_recv() {
                Ok(event) => next = event,
                Err(_) => return Ok(()),
            }
        }
    }

    fn take_event(&mut self, event: Event) -> Result<(), End> {
        match event {
            Event::Arrived(request) => self.accept(*request),
            Event::Tokenized(tokenized) => {
                self.tokenizing -= tokenized.tokens.len();
                self.take_tokens(tokenized);
            }
            Event::Taken => self.note_taken(),
            Event::Ran(ran) => return self.take_results(ran),
            Event::DeviceEnded => {
                tracing::error!("the encoder's device ended; the encoder stops");
                return Err(End);
            }
            Event::Closed => self.is_closed = true,
        }
        Ok(())
    }

    fn accept(&mut self, mut request: Request) {
        if self.is_idle() {
            // The device wakes while texts are tokenized.
            self.handover.rouse();
        }
        self.arrived += 1;
        request.id = self.arrived;
        request.join(&mut self.turns);
        self.active.push(request);
    }

    /// Returns true if the device has nothing to do, and nothing waits for it.
    fn is_idle(&self) -> bool {
        self.offer.is_none() && self.running == 0 && self.tokenizing == 0
    }

    fn take_tokens(&mut self, tokenized: Tokenized) {
        // A request may have gone meanwhile.
        let Some(index) = self.find(tokenized.request) else { return };
        self.active[index].take_tokens(tokenized);
        // A request with a bad text has no key: the batch that waits does without it.
        let key = self.active[index].key(self.first_went);
        if key.is_none() || self.may_change_offer(key) {
            self.is_stale = true;
        }
    }

    /// Returns true if texts from this key on may have a place in the batch that waits.
    fn may_change_offer(&self, key: Option<Key>) -> bool {
        let passes = |offer: &Offer| !offer.is_full || key.is_some_and(|key| key < offer.last);
        self.offer.as_ref().is_none_or(passes)
    }

    fn find(&self, request: RequestId) -> Option<usize> {
        self.active.binary_search_by_key(&request, |one| one.id).ok()
    }

    /// Counts the texts of the batch that waited as taken, if the device's thread has taken it.
    fn note_taken(&mut self) {
        if self.offer.is_some() && self.handover.is_empty() {
            self.count_offer_as_taken();
        }
    }

    fn count_offer_as_taken(&mut self) {
        let Some(offer) = self.offer.take() else { return };
        for (request, texts) in offer.texts {
            if let Some(index) = self.find(request) {
                self.active[index].note_taken(texts);
            }
        }
        self.turns.taken(offer.turn);
        self.turns.forget_idle(self.active.len());
        self.first_went = offer.goes_first;
        self.running += 1;
        self.is_stale = true;
    }

    fn drop_gone(&mut self) {
        let now = Instant::now();
        let gone = self.active.extract_if(.., |request| request.gone(now).is_some());
        for request in gone {
            request.leave(&mut self.turns);
            self.is_stale = true;
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

    /// Sends texts to be tokenized in the order of their turns, as far ahead as the next batches need them. Texts that go
    /// before others of their turns that were sent are sent in any case. Requests that go first have no turn: one that
    /// waits for its next batch lets no others be tokenized further ahead.
    fn send_to_tokenizers(&mut self) {
        let after_first = self.first_went;
        let due = |(index, request): (usize, &Request)| {
            Some(Reverse((request.unsent_key(after_first)?, index)))
        };
        let mut unsent: BinaryHeap<_> = self.active.iter().enumerate().filter_map(due).collect();
        if unsent.is_empty() {
            return;
        }
        if self.is_idle() && self.active.iter().map(Request::unsent).sum::<usize>() <= TEXTS_HERE {
            self.tokenize_here();
            return;
        }
        let mut ahead: u64 = self.active.iter().map(Request::all_tokens_ahead).sum();
        let in_turn = self.active.iter().filter(|request| !request.goes_first());
        let last = in_turn.filter_map(|request| request.last_ahead(after_first)).max();
        let largest = self.budget_of_one.tokens().max(self.budget_of_several.tokens());
        let most = BATCHES_AHEAD * largest as u64;
        while let Some(Reverse((key, index))) = unsent.pop() {
            if ahead >= most && Some(key) >= last {
                return;
            }
            let request = &mut self.active[index];
            let job = request.next_job(TEXTS_OF_A_JOB);
            let range = job.range.clone();
            // What the queue has no room for is sent when a job has come back.
            if !self.tokenizers.try_send(job) {
                return;
            }
            ahead += request.tokens_estimated(&range);
            request.note_sent(&range);
            self.tokenizing += range.len();
            unsent.extend(request.unsent_key(after_first).map(|key| Reverse((key, index))));
        }
    }

    fn tokenize_here(&mut self) {
        for request in self.active.iter_mut().filter(|request| request.unsent() > 0) {
            let job = request.next_job(TEXTS_HERE);
            request.note_sent(&job.range);
            request.take_tokens(self.tokenizers.do_here(&job));
        }
        self.is_stale = true;
    }

    /// Puts the next batch in place of the one that waits, if it may be another.
    fn plan_again(&mut self, now: Instant) {
        while std::mem::take(&mut self.is_stale) {
            let (formed, offer) = self.plan(now);
            let formed = (!formed.batch.is_empty()).then_some(formed);
            match self.handover.put(formed, self.offer.is_some()) {
                Ok(()) => self.offer = offer,
                // The device was faster: the batch that waited runs, and the next one is for what it left.
                Err(Taken) => self.count_offer_as_taken(),
            }
        }
    }

    fn several_flows_wait(&self) -> bool {
        let waiting = self.active.iter().filter(|request| request.has_texts_left());
        let mut flows = waiting.map(Request::flow);
        let first = flows.next();
        flows.any(|flow| Some(flow) != first)
    }

    /// Packs the texts that are due at `now` in the order of their turns, until the budget is reached or no text with
    /// tokens is left. Takes nothing from the requests.
    fn plan(&mut self, now: Instant) -> (Formed, Option<Offer>) {
        let they_wait = self.several_flows_wait();
        let of_several = self.several_flows.of_late(they_wait, now);
        let budget = if of_several { &self.budget_of_several } else { &self.budget_of_one };
        let budget = budget.tokens();
        let after_first = self.first_went;
        let mut formed = Formed { of_several, ..Formed::default() };
        let mut offer = Offer {
            texts: Vec::new(),
            turn: 0,
            last: (Rank::First, 0),
            is_full: false,
            goes_first: false,
        };
        let mut ticket_of = vec![None; self.active.len()];
        // Among equal turns, the request that came first wins.
        let due = |(index, request): (usize, &Request)| {
            let key = request.key(after_first).filter(|_| !request.is_left_out(now));
            Some(Reverse((key?, index)))
        };
        let mut queue: BinaryHeap<_> = self.active.iter().enumerate().filter_map(due).collect();
        while let Some(Reverse((key, index))) = queue.pop() {
            let request = &self.active[index];
            let taken = ticket_of[index].map_or(0, |ticket: usize| formed.tickets[ticket].texts);
            // Later texts of a request wait for those that are being tokenized.
            let Some(tokens) = request.tokens_ahead(taken) else { continue };
            if !formed.batch.is_empty() && formed.batch.tokens() + tokens.ids.len() > budget {
                offer.is_full = true;
                break;
            }
            let ticket = *ticket_of[index].get_or_insert_with(|| {
                formed.tickets.push(request.ticket());
                formed.tickets.len() - 1
            });
            formed.tickets[ticket].texts += 1;
            formed.batch.push(&tokens.ids);
            let truncated = tokens.truncated;
            formed.slots.push(Slot { ticket, tokens: tokens.ids.len() as u32, truncated });
            offer.last = key;
            offer.turn = offer.turn.max(key.1);
            offer.goes_first |= request.goes_first();
            if request.has_ahead(taken + 1) {
                let next = key.1 + request.cost_ahead(taken);
                queue.push(Reverse(((key.0, next), index)));
            }
        }
        offer.texts = formed.tickets.iter().map(|ticket| (ticket.request, ticket.texts)).collect();
        let is_empty = formed.batch.is_empty();
        (formed, (!is_empty).then_some(offer))
    }

    /// Hands out the results of a batch, or its failure.
    fn take_results(&mut self, ran: Ran) -> Result<(), End> {
        self.running = self.running.saturating_sub(1);
        for ticket in &ran.formed.tickets {
            if let Some(index) = self.find(ticket.request) {
                self.active[index].note_ran(ticket.texts);
            }
        }
        if ran.formed.batch.is_empty() {
            return Ok(());
        }
        self.count(&ran);
        let Ran { formed, at, result, .. } = ran;
        match result {
            Ok(vectors) => self.hand_out(vectors, &formed, at),
            Err(RunError { cause, panicked }) => {
                self.counters.failed_batches.fetch_add(1, Relaxed);
                if panicked {
                    tracing::error!(
                        panic = cause,
                        "the encoder's model panicked; the encoder stops"
                    );
                }
                self.fail_all(&formed, &cause);
                if panicked {
                    return Err(End);
                }
            }
        }
        self.finish_done();
        Ok(())
    }

    fn hand_out(&mut self, vectors: Vec<Vec<f32>>, formed: &Formed, at: Instant) {
        let requests: Vec<_> =
            formed.tickets.iter().map(|ticket| self.find(ticket.request)).collect();
        for (vector, slot) in vectors.into_iter().zip(&formed.slots) {
            if formed.tickets[slot.ticket].caller.had_gone(at) {
                self.counters.embedded_for_gone.fetch_add(1, Relaxed);
            }
            if let Some(index) = requests[slot.ticket] {
                self.active[index].add(Embedding {
                    vector,
                    tokens: slot.tokens,
                    truncated: slot.truncated,
                });
            }
        }
    }

    fn finish_done(&mut self) {
        for request in self.active.extract_if(.., |request| request.is_done()) {
            request.leave(&mut self.turns);
            self.is_stale = true;
            request.finish();
        }
    }

    /// Fails the requests that have texts in a batch.
    fn fail_all(&mut self, formed: &Formed, cause: &str) {
        for (ticket, is_held) in formed.tickets.iter().zip(formed.held()) {
            if is_held && let Some(index) = self.find(ticket.request) {
                let request = self.active.remove(index);
                request.leave(&mut self.turns);
                request.fail(EmbedError::Backend(cause.to_owned()));
            }
        }
        self.is_stale = true;
    }

    /// Counts a batch that the device ran, and learns from its time.
    fn count(&mut self, ran: &Ran) {
        let Ran { formed, took, .. } = ran;
        let budget =
            if formed.of_several { &mut self.budget_of_several } else { &mut self.budget_of_one };
        budget.took(formed.batch.tokens(), *took);
        let counters = &self.counters;
        let texts = formed.batch.texts() as u64;
        let tokens = formed.batch.tokens() as u64;
        let cut = formed.slots.iter().filter(|slot| slot.truncated).count();
        let busy = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        counters.busy_nanos.fetch_add(busy, Relaxed);
        counters.batches.fetch_add(1, Relaxed);
        counters.texts.fetch_add(texts, Relaxed);
        counters.tokens.fetch_add(tokens, Relaxed);
        counters.truncated.fetch_add(cut as u64, Relaxed);
        counters.batch_texts.add(texts);
        counters.batch_tokens.add(tokens);
    }
}

#[cfg(test)]
mod tests;
