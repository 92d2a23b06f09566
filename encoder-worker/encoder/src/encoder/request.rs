//! Request of one caller on its way through the encoder.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use tokio::sync::oneshot;
use toolgate_telemetry as telemetry;
use tracing::Span;

use super::stats::QueueSlot;
use super::turns::{Flow, Turn, Turns};
use super::{EmbedError, Embedding};
use crate::tokenize::{TextTokenizer, Tokens};

pub(super) type Reply = oneshot::Sender<Result<Vec<Embedding>, EmbedError>>;

/// Time when the caller stopped waiting; set by the caller's half when it is dropped.
pub(super) type LeftAt = Arc<OnceLock<Instant>>;

/// Guard that a caller holds while it waits. It is dropped after the caller's end of the channel, so if the recorded
/// time lies before some moment, the channel was closed at that moment.
pub(super) struct Waiting(pub(super) LeftAt);

impl Drop for Waiting {
    fn drop(&mut self) {
        // Set only here, once.
        let _ = self.0.set(Instant::now());
    }
}

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

/// Request with its results so far. Texts enter batches in order, so results arrive in order.
pub(super) struct Request {
    wanted: Wanted,
    arrived: Instant,
    reply: Reply,
    left_at: LeftAt,
    /// Index of the next text to go into a batch; `turn` is its turn.
    next: usize,
    turn: Turn,
    /// Tokens of that text, if it was tokenized but did not fit into the batch.
    held: Option<Tokens>,
    done: Vec<Embedding>,
    failed: Option<EmbedError>,
    place: QueueSlot,
    /// Span of the call, if it is sampled.
    call: Span,
    /// Span of the wait for a batch; ends when the first text is in one.
    queue: Span,
}

/// Reason that a request is no longer worth any work.
pub(super) enum Gone {
    /// The caller left.
    Abandoned,
    /// The deadline has passed.
    Expired,
}

impl Request {
    /// Creates a request; must be called within the span of the caller's call.
    pub(super) fn new(wanted: Wanted, reply: Reply, left_at: LeftAt, place: QueueSlot) -> Self {
        Self {
            done: Vec::with_capacity(wanted.texts.len()),
            wanted,
            arrived: Instant::now(),
            reply,
            left_at,
            next: 0,
            turn: 0,
            held: None,
            failed: None,
            place,
            call: telemetry::sampled_span(),
            queue: telemetry::part("queue"),
        }
    }

    pub(super) fn goes_first(&self) -> bool {
        self.wanted.turn == WantedTurn::First
    }

    /// Returns the flow that its texts belong to; `None` when they go first.
    pub(super) fn flow(&self) -> Option<Flow> {
        match self.wanted.turn {
            WantedTurn::First => None,
            WantedTurn::Of(flow) => Some(flow),
        }
    }

    /// Returns its rank in a batch. `after_first` is true if texts that go first were in the batch before.
    pub(super) fn rank(&self, after_first: bool) -> Rank {
        match (self.goes_first(), after_first) {
            (false, _) => Rank::InTurn,
            (true, false) => Rank::First,
            (true, true) => Rank::Last,
        }
    }

    /// Assigns turns to its texts.
    pub(super) fn join(&mut self, turns: &mut Turns) {
        if let WantedTurn::Of(flow) = self.wanted.turn {
            self.turn = turns.join(flow, self.cost_left());
        }
    }

    /// Gives up the turns of the remaining texts.
    pub(super) fn leave(&self, turns: &mut Turns) {
        if let WantedTurn::Of(flow) = self.wanted.turn {
            turns.give_back(flow, self.cost_left());
        }
    }

    /// Returns the next text's turn; `None` when all texts are in batches already.
    pub(super) fn turn(&self) -> Option<Turn> {
        (self.failed.is_none() && self.next < self.wanted.texts.len()).then_some(self.turn)
    }

    fn cost_left(&self) -> u64 {
        (self.next..self.wanted.texts.len()).map(|index| self.cost(index)).sum()
    }

    fn cost(&self, index: usize) -> u64 {
        self.flow().unwrap_or(Flow::ALONE).cost(&self.wanted.texts[index])
    }

    /// Returns the time from its arrival to `formed_at`, in microseconds.
    pub(super) fn waited(&self, formed_at: Instant) -> u64 {
        let waited = formed_at.saturating_duration_since(self.arrived);
        u64::try_from(waited.as_micros()).unwrap_or(u64::MAX)
    }

    /// Ends the wait in the queue, because the first text is in a batch.
    pub(super) fn leave_queue(&mut self) {
        self.queue = Span::none();
    }

    /// Returns the span of the call; it is disabled unless the call is sampled.
    pub(super) fn call(&self) -> &Span {
        &self.call
    }

    /// Returns true if the caller had left at a moment in the past, by the caller's own clock and not by the result of
    /// [`Self::gone`] at that time.
    pub(super) fn had_gone(&self, at: Instant) -> bool {
        self.wanted.deadline.is_some_and(|deadline| deadline < at)
            || self.left_at.get().is_some_and(|left| *left < at)
    }

    pub(super) fn gone(&self, now: Instant) -> Option<Gone> {
        // A caller whose deadline passes leaves too; the deadline then counts as the reason.
        if self.wanted.deadline.is_some_and(|deadline| deadline <= now) {
            Some(Gone::Expired)
        } else if self.reply.is_closed() {
            Some(Gone::Abandoned)
        } else {
            None
        }
    }

    /// Returns true if none of its texts is in a batch yet.
    pub(super) fn is_untouched(&self) -> bool {
        self.next == 0
    }

    /// Returns the next text's tokens; `None` when all texts are in batches already, or one could not be tokenized.
    pub(super) fn next_tokens(&mut self, tokenizer: &TextTokenizer) -> Option<Tokens> {
        if self.failed.is_some() {
            return None;
        }
        let index = self.next;
        let tokens = match self.held.take() {
            Some(held) => Ok(held),
            None => tokenizer.encode(self.wanted.texts.get(index)?),
        };
        self.next += 1;
        self.turn += self.cost(index);
        tokens
            .map_err(|error| {
                self.failed = Some(EmbedError::Tokenize { index, cause: error.to_string() });
            })
            .ok()
    }

    /// Takes back the tokens from [`Self::next_tokens`], for the next batch.
    pub(super) fn hold(&mut self, tokens: Tokens) {
        self.next -= 1;
        self.turn -= self.cost(self.next);
        self.held = Some(tokens);
    }

    pub(super) fn add(&mut self, embedding: Embedding) {
        self.done.push(embedding);
    }

    /// Returns true if [`Self::finish`] can send the final result.
    pub(super) fn is_done(&self) -> bool {
        self.failed.is_some() || self.done.len() == self.wanted.texts.len()
    }

    pub(super) fn finish(self) {
        let result = self.failed.map_or(Ok(self.done), Err);
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::stats::Counters;
    use super::*;

    #[test]
    fn leaving_is_dated_by_the_caller() {
        let (reply, answer) = oneshot::channel();
        let waiting = Waiting(LeftAt::default());
        let place = Arc::new(Counters::default()).extra_place();
        let wanted = Wanted { texts: vec!["a".into()], deadline: None, turn: WantedTurn::First };
        let mut request = Request::new(wanted, reply, Arc::clone(&waiting.0), place);
        let before = Instant::now();
        drop(answer);
        drop(waiting);
        let after = Instant::now() + Duration::from_millis(1);
        assert!(!request.had_gone(before));
        assert!(request.had_gone(after));
        assert!(matches!(request.gone(after), Some(Gone::Abandoned)));
        request.left_at = LeftAt::default();
        request.wanted.deadline = Some(before);
        assert!(!request.had_gone(before) && request.had_gone(after));
        assert!(matches!(request.gone(after), Some(Gone::Expired)));
    }
}
