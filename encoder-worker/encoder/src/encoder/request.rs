//! Request of one caller on its way through the encoder.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use tokio::sync::oneshot;
use toolgate_telemetry as telemetry;
use tracing::Span;

use super::formed::{Caller, Gone, Left, RequestId, Ticket};
use super::stats::QueueSlot;
use super::tokenizers::{Job, Tokenized};
use super::turns::{Flow, Turn, Turns};
use super::{EmbedError, Embedding};
use crate::tokenize::Tokens;

pub(super) type Reply = oneshot::Sender<Result<Vec<Embedding>, EmbedError>>;

/// Texts of a caller, with deadline and turn.
pub(super) struct Wanted {
    pub(super) texts: Vec<String>,
    pub(super) deadline: Option<Instant>,
    pub(super) turn: WantedTurn,
}

/// Position of a request relative to the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WantedTurn {
    /// Ahead of all waiting requests. If one batch is not enough, it takes every other batch, so that a request behind
    /// it waits for one batch and not for all of them.
    First,
    /// In the turn of its flow.
    Of(Flow),
}

/// Order that takes precedence over turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// The request goes first.
    First,
    /// The turn decides.
    InTurn,
    /// The request went first in the last batch: it gets only the room that is left.
    Last,
}

/// Key of a text in the order in which texts enter batches.
pub(super) type Key = (Rank, Turn);

/// Request with its results so far. Texts enter batches in order, so results arrive in order.
pub(super) struct Request {
    /// Number of the request, which the batcher gives it.
    pub(super) id: RequestId,
    texts: Arc<[String]>,
    order: WantedTurn,
    caller: Caller,
    arrived: Instant,
    reply: Reply,
    /// Index of the next text to be taken by the device; `turn` is its turn.
    next: usize,
    turn: Turn,
    /// Tokens of the texts from `next` on, as far as they were sent to be tokenized. `None` until they come.
    tokens: VecDeque<Option<Tokens>>,
    /// Turn of the first text that was not sent to be tokenized.
    unsent_turn: Turn,
    /// Texts that the device has.
    running: usize,
    done: Vec<Embedding>,
    /// First text, of those that have come, that can't be tokenized.
    bad: Option<BadText>,
    /// True once the device failed on a text of it. The device's thread sets and reads this.
    batch_failed: Arc<AtomicBool>,
    place: QueueSlot,
    /// Span of the call, if it is sampled.
    call: Span,
    /// Span of the wait for a batch; ends when the first text is in one.
    queue: Span,
}

/// Text that can't be tokenized.
struct BadText {
    index: usize,
    cause: String,
}

impl Request {
    /// Creates a request; must be called within the span of the caller's call.
    pub(super) fn new(wanted: Wanted, reply: Reply, left: Arc<Left>, place: QueueSlot) -> Self {
        Self {
            id: 0,
            done: Vec::with_capacity(wanted.texts.len()),
            texts: wanted.texts.into(),
            order: wanted.turn,
            caller: Caller { left, deadline: wanted.deadline },
            arrived: Instant::now(),
            reply,
            next: 0,
            turn: 0,
            tokens: VecDeque::new(),
            unsent_turn: 0,
            running: 0,
            bad: None,
            batch_failed: Arc::default(),
            place,
            call: telemetry::sampled_span(),
            queue: telemetry::part("queue"),
        }
    }

    pub(super) fn goes_first(&self) -> bool {
        self.order == WantedTurn::First
    }

    /// Returns the flow that its texts belong to; `None` when they go first.
    pub(super) fn flow(&self) -> Option<Flow> {
        match self.order {
            WantedTurn::First => None,
            WantedTurn::Of(flow) => Some(flow),
        }
    }

    /// Returns its rank in a batch. `after_first` is true if texts that go first were in the batch before.
    fn rank(&self, after_first: bool) -> Rank {
        match (self.goes_first(), after_first) {
            (false, _) => Rank::InTurn,
            (true, false) => Rank::First,
            (true, true) => Rank::Last,
        }
    }

    /// Assigns turns to its texts.
    pub(super) fn join(&mut self, turns: &mut Turns) {
        if let WantedTurn::Of(flow) = self.order {
            self.turn = turns.join(flow, self.cost_left());
            self.unsent_turn = self.turn;
        }
    }

    /// Gives up the turns of the remaining texts.
    pub(super) fn leave(&self, turns: &mut Turns) {
        if let WantedTurn::Of(flow) = self.order {
            turns.give_back(flow, self.cost_left());
        }
    }

    /// Returns the key of the next text; `None` when the device has or had all of them.
    pub(super) fn key(&self, after_first: bool) -> Option<Key> {
        self.has_texts_left().then(|| (self.rank(after_first), self.turn))
    }

    pub(super) fn has_texts_left(&self) -> bool {
        self.bad.is_none() && self.next < self.texts.len()
    }

    fn cost_left(&self) -> u64 {
        (self.next..self.texts.len()).map(|index| self.cost(index)).sum()
    }

    fn cost(&self, index: usize) -> u64 {
        self.flow().unwrap_or(Flow::ALONE).cost(&self.texts[index])
    }

    /// Returns the cost of a text after those that the device has or had, by which the next one's turn is later.
    pub(super) fn cost_ahead(&self, texts: usize) -> u64 {
        self.cost(self.next + texts)
    }

    /// Returns the estimated tokens of texts.
    pub(super) fn tokens_estimated(&self, texts: &Range<usize>) -> u64 {
        self.texts[texts.clone()].iter().map(|text| Flow::ALONE.cost(text)).sum()
    }

    /// Returns the tokens of the texts that were sent to be tokenized and that no batch has taken. They are estimated for
    /// texts whose tokens have not come.
    pub(super) fn all_tokens_ahead(&self) -> u64 {
        let of_text = |(tokens, text): (&Option<Tokens>, &String)| match tokens {
            Some(tokens) => tokens.ids.len() as u64,
            None => Flow::ALONE.cost(text),
        };
        self.tokens.iter().zip(&self.texts[self.next..]).map(of_text).sum()
    }

    /// Returns the tokens of a text after those that the device has or had, if they have come.
    pub(super) fn tokens_ahead(&self, texts: usize) -> Option<&Tokens> {
        self.tokens.get(texts)?.as_ref()
    }

    /// Returns true if there is such a text.
    pub(super) fn has_ahead(&self, texts: usize) -> bool {
        self.next + texts < self.texts.len()
    }

    /// Returns the number of texts that were sent to be tokenized, or are, and that no batch has taken.
    pub(super) fn ahead(&self) -> usize {
        self.tokens.len()
    }

    /// Returns the number of texts that were not sent to be tokenized.
    pub(super) fn unsent(&self) -> usize {
        let sent = self.next + self.tokens.len();
        if self.bad.is_some() { 0 } else { self.texts.len() - sent }
    }

    /// Returns the key of the first text that was not sent to be tokenized; `None` when all were.
    pub(super) fn unsent_key(&self, after_first: bool) -> Option<Key> {
        (self.unsent() > 0).then(|| (self.rank(after_first), self.unsent_turn))
    }

    /// Returns the key of the last text that was sent to be tokenized and that no batch has taken.
    pub(super) fn last_ahead(&self, after_first: bool) -> Option<Key> {
        let last = self.ahead().checked_sub(1)?;
        Some((self.rank(after_first), self.unsent_turn - self.cost_ahead(last)))
    }

    /// Returns the job of the next texts that were not sent to be tokenized, `texts` at most.
    pub(super) fn next_job(&self, texts: usize) -> Job {
        let first = self.next + self.tokens.len();
        let end = self.texts.len().min(first + texts);
        Job { request: self.id, texts: Arc::clone(&self.texts), range: first..end }
    }

    /// Notes that the texts of [`Self::next_job`] were sent.
    pub(super) fn note_sent(&mut self, job: &Range<usize>) {
        self.unsent_turn += job.clone().map(|index| self.cost(index)).sum::<u64>();
        self.tokens.extend(job.clone().map(|_| None));
    }

    /// Takes the tokens of a job.
    pub(super) fn take_tokens(&mut self, tokenized: Tokenized) {
        for (index, tokens) in (tokenized.first..).zip(tokenized.tokens) {
            match tokens {
                // No text without its tokens was taken by the device.
                Ok(tokens) => self.tokens[index - self.next] = Some(tokens),
                Err(cause) => {
                    if self.bad.as_ref().is_none_or(|bad| index < bad.index) {
                        self.bad = Some(BadText { index, cause });
                    }
                }
            }
        }
    }

    /// Returns its ticket for a batch that holds none of its texts yet.
    pub(super) fn ticket(&self) -> Ticket {
        Ticket {
            request: self.id,
            caller: self.caller.clone(),
            arrived: self.arrived,
            texts: 0,
            is_first: self.next == 0,
            has_failed: Arc::clone(&self.batch_failed),
            call: self.call.clone(),
            queue: self.queue.clone(),
        }
    }

    /// Notes that the device has taken the next `texts` texts.
    pub(super) fn note_taken(&mut self, texts: usize) {
        for _ in 0..texts {
            self.turn += self.cost(self.next);
            self.next += 1;
            self.tokens.pop_front();
        }
        self.running += texts;
        self.queue = Span::none();
    }

    /// Notes that the device is done with `texts` texts.
    pub(super) fn note_ran(&mut self, texts: usize) {
        self.running = self.running.saturating_sub(texts);
    }

    /// Returns why it is no longer worth any work, unless the device is at work on it.
    pub(super) fn gone(&self, now: Instant) -> Option<Gone> {
        if self.running > 0 { None } else { self.caller.gone(now) }
    }

    /// Returns true if it is gone, and only what the device has keeps it.
    pub(super) fn is_left_out(&self, now: Instant) -> bool {
        self.running > 0 && self.caller.gone(now).is_some()
    }

    pub(super) fn add(&mut self, embedding: Embedding) {
        self.done.push(embedding);
    }

    /// Returns true if [`Self::finish`] can send the final result.
    pub(super) fn is_done(&self) -> bool {
        match &self.bad {
            // Texts before it may be bad too, and the first one is named whichever comes first.
            Some(bad) => self.tokens.iter().take(bad.index - self.next).all(Option::is_some),
            None => self.done.len() == self.texts.len(),
        }
    }

    pub(super) fn finish(self) {
        let result = match self.bad {
            Some(BadText { index, cause }) => Err(EmbedError::Tokenize { index, cause }),
            None => Ok(self.done),
        };
        answer(self.reply, self.place, result);
    }

    pub(super) fn fail(self, error: EmbedError) {
        answer(self.reply, self.place, Err(error));
    }
}

/// Sends the result. The place is freed before the caller knows, so that a caller may always ask again at once. A
/// caller that has left meanwhile is no error.
fn answer(reply: Reply, place: QueueSlot, result: Result<Vec<Embedding>, EmbedError>) {
    drop(place);
    let _ = reply.send(result);
}
