//! One caller's texts on their way through the encoder.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use tokio::sync::oneshot;
use toolgate_telemetry as telemetry;
use tracing::Span;

use super::stats::Place;
use super::turns::{Flow, Turn, Turns};
use super::{EmbedError, Embedding};
use crate::tokenize::{TextTokenizer, Tokens};

pub(super) type Reply = oneshot::Sender<Result<Vec<Embedding>, EmbedError>>;

/// When the caller stopped waiting; set by its half, on drop.
pub(super) type LeftAt = Arc<OnceLock<Instant>>;

/// Held by a caller for as long as it waits, and dropped after its end of the channel: a time of leaving
/// that lies before some moment means that the channel was closed at that moment.
pub(super) struct Waiting(pub(super) LeftAt);

impl Drop for Waiting {
    fn drop(&mut self) {
        // Set once, here.
        let _ = self.0.set(Instant::now());
    }
}

/// What a caller wants.
pub(super) struct Wanted {
    pub(super) texts: Vec<String>,
    pub(super) deadline: Option<Instant>,
    pub(super) turn: WantedTurn,
}

/// When a caller wants it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WantedTurn {
    /// Before all that waits; where one batch is not enough, in every other one, so that who waits behind it
    /// waits for one batch and not for all of them.
    First,
    /// When it is the flow's turn.
    Of(Flow),
}

/// What decides before turns do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// It goes first.
    First,
    /// Its turn decides.
    InTurn,
    /// It went first in the last batch: it has what room is left.
    Last,
}

/// A request with what is done of it. Texts enter batches in order, so results arrive in order.
pub(super) struct Request {
    wanted: Wanted,
    arrived: Instant,
    reply: Reply,
    left_at: LeftAt,
    /// The next text to go into a batch, and its turn.
    next: usize,
    turn: Turn,
    /// That text's tokens, when it was tokenized but found no room in the batch.
    held: Option<Tokens>,
    done: Vec<Embedding>,
    failed: Option<EmbedError>,
    place: Place,
    /// Of the call that asks, when it is sampled.
    call: Span,
    /// Until its first text is in a batch.
    queue: Span,
}

/// Why a request is no longer worth any work.
pub(super) enum Gone {
    /// Nobody waits for the answer.
    Abandoned,
    /// The deadline has passed.
    Expired,
}

impl Request {
    /// To be called within the span of the call that asks.
    pub(super) fn new(wanted: Wanted, reply: Reply, left_at: LeftAt, place: Place) -> Self {
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

    /// Whose turn its texts wait for; `None` when they go first.
    pub(super) fn flow(&self) -> Option<Flow> {
        match self.wanted.turn {
            WantedTurn::First => None,
            WantedTurn::Of(flow) => Some(flow),
        }
    }

    /// Its rank in a batch. `after_first`: texts that go first were in the batch before.
    pub(super) fn rank(&self, after_first: bool) -> Rank {
        match (self.goes_first(), after_first) {
            (false, _) => Rank::InTurn,
            (true, false) => Rank::First,
            (true, true) => Rank::Last,
        }
    }

    /// Gives its texts their turns.
    pub(super) fn join(&mut self, turns: &mut Turns) {
        if let WantedTurn::Of(flow) = self.wanted.turn {
            self.turn = turns.join(flow, self.cost_left());
        }
    }

    /// Gives up the turns of the texts that are left.
    pub(super) fn leave(&self, turns: &mut Turns) {
        if let WantedTurn::Of(flow) = self.wanted.turn {
            turns.give_back(flow, self.cost_left());
        }
    }

    /// The next text's turn; `None` when all texts are in batches already.
    pub(super) fn turn(&self) -> Option<Turn> {
        (self.failed.is_none() && self.next < self.wanted.texts.len()).then_some(self.turn)
    }

    fn cost_left(&self) -> u64 {
        (self.next..self.wanted.texts.len()).map(|index| self.cost(index)).sum()
    }

    fn cost(&self, index: usize) -> u64 {
        self.flow().unwrap_or(Flow::ALONE).cost(&self.wanted.texts[index])
    }

    /// Microseconds from its arrival to `formed_at`.
    pub(super) fn waited(&self, formed_at: Instant) -> u64 {
        let waited = formed_at.saturating_duration_since(self.arrived);
        u64::try_from(waited.as_micros()).unwrap_or(u64::MAX)
    }

    /// Its first text is in a batch.
    pub(super) fn leave_queue(&mut self) {
        self.queue = Span::none();
    }

    /// The span of the call that asks; none unless it is sampled.
    pub(super) fn call(&self) -> &Span {
        &self.call
    }

    /// Whether the caller had gone at a moment in the past: by the caller's own clock, not by what
    /// [`Self::gone`] saw then.
    pub(super) fn had_gone(&self, at: Instant) -> bool {
        self.wanted.deadline.is_some_and(|deadline| deadline < at)
            || self.left_at.get().is_some_and(|left| *left < at)
    }

    pub(super) fn gone(&self, now: Instant) -> Option<Gone> {
        // A caller whose deadline passes leaves too; the deadline is then the reason to count.
        if self.wanted.deadline.is_some_and(|deadline| deadline <= now) {
            Some(Gone::Expired)
        } else if self.reply.is_closed() {
            Some(Gone::Abandoned)
        } else {
            None
        }
    }

    /// Whether none of its texts is in a batch yet.
    pub(super) fn is_untouched(&self) -> bool {
        self.next == 0
    }

    /// The next text's tokens; `None` when all texts are in batches already, or one was unusable.
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

    /// Takes back what [`Self::next_tokens`] gave, for the next batch.
    pub(super) fn hold(&mut self, tokens: Tokens) {
        self.next -= 1;
        self.turn -= self.cost(self.next);
        self.held = Some(tokens);
    }

    pub(super) fn add(&mut self, embedding: Embedding) {
        self.done.push(embedding);
    }

    /// Whether [`Self::finish`] has something final to say.
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

/// The place is free before the caller knows, so that a caller may always ask again at once. A caller
/// that has gone meanwhile is no fault.
fn answer(reply: Reply, place: Place, result: Result<Vec<Embedding>, EmbedError>) {
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
