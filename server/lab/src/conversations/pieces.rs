//! Pieces of prompts, with their tokens.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;
use toolgate_core::tokens;
use toolgate_llm::price::as_read;

use super::agent::HISTORY;

/// Definition or message of a prompt, which a cache serves whole or not at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Digest of its text.
    pub digest: u64,
    /// Number of tokens; 0 for the initial history.
    pub tokens: u32,
    /// True for the initial history.
    pub is_history: bool,
}

/// Counter of tokens that counts each text once.
#[derive(Debug, Default)]
pub(crate) struct Counter(RefCell<HashMap<u64, u32>>);

impl Piece {
    /// Creates a piece that is told apart by its name, of tokens that were counted before.
    pub(crate) fn new(name: &str, tokens: u32) -> Self {
        Self { digest: digest(name), tokens, is_history: false }
    }
}

impl Counter {
    /// Returns the piece for a definition or a message.
    pub(super) fn piece(&self, value: &Value) -> Piece {
        self.piece_of_text(&as_read(value))
    }

    /// Returns the piece for a text.
    pub(super) fn piece_of_text(&self, text: &str) -> Piece {
        let digest = digest(text);
        let is_history = text.contains(HISTORY);
        let tokens = if is_history { 0 } else { self.counted(digest, text) };
        Piece { digest, tokens, is_history }
    }

    /// Returns the tokens of a text.
    pub(super) fn count(&self, text: &str) -> u32 {
        self.counted(digest(text), text)
    }

    fn counted(&self, digest: u64, text: &str) -> u32 {
        *self.0.borrow_mut().entry(digest).or_insert_with(|| tokens::count(text))
    }
}

fn digest(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}
