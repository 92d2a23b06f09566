//! Pieces of prompts, with their tokens.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;
use toolgate_core::tokens;

use super::agent::HISTORY;

/// Definition or message of a prompt, which a cache serves whole or not at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    /// Digest of its text.
    pub digest: u64,
    /// Number of tokens; 0 for the initial history.
    pub tokens: u32,
    /// True for the initial history.
    pub is_history: bool,
}

/// Counter of tokens that counts each text once.
#[derive(Debug, Default)]
pub(super) struct Counter(RefCell<HashMap<u64, u32>>);

impl Counter {
    /// Returns the piece for a definition or a message.
    pub(super) fn piece(&self, value: &Value) -> Piece {
        let mut text = String::new();
        read(value, &mut text);
        self.piece_of_text(&text)
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

/// Appends a value as a model reads it: as JSON, whose texts have no escapes.
fn read(value: &Value, text: &mut String) {
    match value {
        Value::Object(fields) => {
            for (place, (name, field)) in fields.iter().enumerate() {
                text.push_str(if place == 0 { "{\"" } else { ",\"" });
                text.push_str(name);
                text.push_str("\":");
                read(field, text);
            }
            text.push_str(if fields.is_empty() { "{}" } else { "}" });
        }
        Value::Array(items) => {
            for (place, item) in items.iter().enumerate() {
                text.push(if place == 0 { '[' } else { ',' });
                read(item, text);
            }
            text.push_str(if items.is_empty() { "[]" } else { "]" });
        }
        Value::String(written) => text.extend(["\"", written, "\""]),
        Value::Null | Value::Bool(_) | Value::Number(_) => text.push_str(&value.to_string()),
    }
}

fn digest(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_are_counted_without_the_escapes_of_json() {
        let value = json!({ "a": [1, null, {}], "b": "{\"c\":\"d\"}\n", "e": [] });
        let mut text = String::new();
        read(&value, &mut text);
        assert_eq!(text, "{\"a\":[1,null,{}],\"b\":\"{\"c\":\"d\"}\n\",\"e\":[]}");
    }
}
