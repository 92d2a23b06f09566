//! Prices of conversations for other benchmarks, which say themselves where a turn's tools stand. Calls, results and
//! answers that are not recorded are assumed.

use super::Provider;
use super::agent::Messages;
use super::bill::{Bill, Turned};
use super::pieces::{Counter, Piece};
use super::requests::SYSTEM;
use super::turns::Turn;

/// Messages of one turn, counted.
#[derive(Debug, Clone)]
pub(crate) struct Said {
    message: Vec<Piece>,
    /// Each call with what the tool returned.
    calls: Vec<Vec<Piece>>,
    answer: Vec<Piece>,
}

/// Places of the tools in a turn's requests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Places {
    /// Pieces before all messages.
    pub(crate) first: Vec<Piece>,
    /// Pieces directly before the turn's message. They are gone at the next turn.
    pub(crate) last: Vec<Piece>,
    /// Texts that the model asks for, one after another, before it calls a tool. They stay in the conversation.
    pub(crate) read: Vec<Piece>,
}

/// Conversation that is being priced.
pub(crate) struct Priced {
    bill: Bill,
    system: Piece,
    before: Vec<Piece>,
    price: f64,
}

/// Counts the messages of a conversation.
pub(crate) fn said(counter: &Counter, turns: &[Turn<'_>]) -> Vec<Said> {
    let mut messages = Messages::new(Provider::PRICED.api, false);
    let mut counted = 0;
    let mut added = |messages: &Messages| {
        let new = &messages.all[counted..];
        counted = messages.all.len();
        new.iter().map(|message| counter.piece(message)).collect::<Vec<_>>()
    };
    let mut of_turns = Vec::new();
    for turn in turns {
        messages.user(&turn.query.text);
        let message = added(&messages);
        let mut calls = Vec::new();
        for call in &turn.calls {
            messages.call(&call.tool, &call.arguments, &call.result);
            calls.push(added(&messages));
        }
        messages.answer(&turn.answer);
        of_turns.push(Said { message, calls, answer: added(&messages) });
    }
    of_turns
}

impl Priced {
    /// Begins a conversation.
    pub(crate) fn new(counter: &Counter) -> Self {
        let bill = Bill::new(Provider::PRICED.rates(), 0);
        Self { bill, system: counter.piece_of_text(SYSTEM), before: Vec::new(), price: 0.0 }
    }

    /// Adds a turn. Returns the price of its requests in tokens of uncached input: one for the message, and one behind each
    /// text that the model reads and behind each call.
    pub(crate) fn turn(&mut self, said: &Said, places: &Places) -> f64 {
        let mut now = said.message.clone();
        self.request(places, &now);
        for step in places.read.chunks(1).chain(said.calls.iter().map(Vec::as_slice)) {
            now.extend_from_slice(step);
            self.request(places, &now);
        }
        self.before.extend(now);
        self.before.extend_from_slice(&said.answer);
        let price = self.bill.end(Turned::default()).price;
        price - std::mem::replace(&mut self.price, price)
    }

    fn request(&mut self, places: &Places, now: &[Piece]) {
        let parts = [&places.first, &[self.system][..], &self.before, &places.last, now];
        self.bill.request(&parts.concat(), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(name: &str, tokens: u32) -> Piece {
        Piece::new(name, tokens)
    }

    fn turn(message: &str) -> Said {
        Said {
            message: vec![piece(message, 100)],
            calls: vec![vec![piece("call", 50)]],
            answer: vec![piece("answer", 50)],
        }
    }

    fn priced() -> Priced {
        let bill = Bill::new(Provider::PRICED.rates(), 0);
        Priced { bill, system: piece("system", 0), before: Vec::new(), price: 0.0 }
    }

    #[test]
    fn what_stands_first_is_written_once_and_what_stands_last_at_each_turn() {
        let first = Places { first: vec![piece("tools", 2_000)], ..Places::default() };
        let mut conversation = priced();
        let begun = 2_100.0 * 1.25 + 2_100.0 * 0.1 + 50.0 * 1.25;
        assert!((conversation.turn(&turn("a"), &first) - begun).abs() < 1e-9);
        let behind = 2_150.0 * 0.1 + 150.0 * 1.25 + 2_300.0 * 0.1 + 50.0 * 1.25;
        assert!((conversation.turn(&turn("b"), &first) - behind).abs() < 1e-9);

        let last = |name: &str| Places {
            first: vec![piece("pool", 2_000)],
            last: vec![piece(name, 500)],
            ..Places::default()
        };
        let mut conversation = priced();
        conversation.turn(&turn("a"), &last("one"));
        let again = (2_000.0 * 0.1 + 800.0 * 1.25) + (2_800.0 * 0.1 + 50.0 * 1.25);
        assert!((conversation.turn(&turn("b"), &last("two")) - again).abs() < 1e-9);
    }

    #[test]
    fn what_is_read_takes_a_request_and_stays() {
        let help = Places {
            first: vec![piece("prompt", 2_000)],
            read: vec![piece("list", 100), piece("help", 200)],
            ..Places::default()
        };
        let mut conversation = priced();
        conversation.turn(&turn("a"), &help);
        let nothing = Places { read: Vec::new(), ..help };
        let behind = 2_450.0 * 0.1 + 150.0 * 1.25 + 2_600.0 * 0.1 + 50.0 * 1.25;
        assert!((conversation.turn(&turn("b"), &nothing) - behind).abs() < 1e-9);
    }
}
