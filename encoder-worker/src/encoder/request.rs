//! One caller's texts on their way through the encoder.

use std::time::Instant;

use tokio::sync::oneshot;

use super::stats::Place;
use super::{EmbedError, Embedding};
use crate::tokenize::{TextTokenizer, Tokens};

pub(super) type Reply = oneshot::Sender<Result<Vec<Embedding>, EmbedError>>;

/// A request with what is done of it. Texts enter batches in order, so results arrive in order.
pub(super) struct Request {
    texts: Vec<String>,
    deadline: Option<Instant>,
    reply: Reply,
    /// The next text to go into a batch.
    next: usize,
    /// That text's tokens, when it was tokenized but found no room in the batch.
    held: Option<Tokens>,
    done: Vec<Embedding>,
    failed: Option<EmbedError>,
    place: Place,
}

/// Why a request is no longer worth any work.
pub(super) enum Gone {
    /// Nobody waits for the answer.
    Abandoned,
    /// The deadline has passed.
    Expired,
}

impl Request {
    pub(super) fn new(
        texts: Vec<String>,
        deadline: Option<Instant>,
        reply: Reply,
        place: Place,
    ) -> Self {
        Self {
            done: Vec::with_capacity(texts.len()),
            texts,
            deadline,
            reply,
            next: 0,
            held: None,
            failed: None,
            place,
        }
    }

    pub(super) fn gone(&self, now: Instant) -> Option<Gone> {
        // A caller whose deadline passes leaves too; the deadline is then the reason to count.
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            Some(Gone::Expired)
        } else if self.reply.is_closed() {
            Some(Gone::Abandoned)
        } else {
            None
        }
    }

    /// The next text's tokens; `None` when all texts are in batches already, or one was unusable.
    pub(super) fn next_tokens(&mut self, tokenizer: &TextTokenizer) -> Option<Tokens> {
        if self.failed.is_some() {
            return None;
        }
        let index = self.next;
        let tokens = match self.held.take() {
            Some(held) => Ok(held),
            None => tokenizer.encode(self.texts.get(index)?),
        };
        self.next += 1;
        tokens
            .map_err(|error| {
                self.failed = Some(EmbedError::Tokenize { index, cause: error.to_string() });
            })
            .ok()
    }

    /// Takes back what [`Self::next_tokens`] gave, for the next batch.
    pub(super) fn hold(&mut self, tokens: Tokens) {
        self.next -= 1;
        self.held = Some(tokens);
    }

    pub(super) fn add(&mut self, embedding: Embedding) {
        self.done.push(embedding);
    }

    /// Whether [`Self::finish`] has something final to say.
    pub(super) fn is_done(&self) -> bool {
        self.failed.is_some() || self.done.len() == self.texts.len()
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
