//! Additions of earlier turns of conversations, found again by the messages that a request begins with. It is a cache: without
//! it tools are chosen and described anew, and one cached prefix is lost.

use std::hash::{BuildHasher as _, Hash, Hasher, RandomState};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use toolgate_llm::strategy::{Ledger, as_compared};

use crate::bounded::{Bounded, Bounds};

/// Turns of conversations that are remembered.
const BOUNDS: Bounds = Bounds { entries: 4_096, bytes: 64 << 20 };

/// Marks of cached prefixes, which hosts move from message to message.
const MARK: &str = "cache_control";

/// State of a conversation behind one of its turns.
#[derive(Debug, Clone, Default)]
pub(crate) struct State {
    pub(crate) ledger: Ledger,
    /// Handle of the active set.
    pub(crate) handle: String,
    /// True if all tools were sent because that was cheapest. It stays so: to defer them later would cost the cached prefix.
    pub(crate) is_passed: bool,
    /// Form of its last request, if that was rewritten.
    pub(crate) form: Form,
}

/// Form of a rewritten request, by which it is told whether the next goes on from what the provider's cache holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Form {
    /// Number of the host's messages; 0 where there is no request.
    pub(crate) messages: usize,
    /// Hash of what the proxy chose for the beginning.
    pub(crate) beginning: u64,
    /// Tokens in the place of the deferred definitions.
    pub(crate) instead: u64,
}

/// Turns of conversations. Keys are hashes with a key of this process alone.
#[derive(Debug)]
pub(crate) struct Remembered {
    hashing: RandomState,
    turns: Mutex<Bounded<u64, State>>,
}

impl State {
    /// Returns the approximate bytes in use.
    fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.ledger.memory_bytes() + self.handle.len()
    }
}

impl Default for Remembered {
    fn default() -> Self {
        Self { hashing: RandomState::new(), turns: Mutex::new(Bounded::new(BOUNDS)) }
    }
}

impl Remembered {
    /// Returns the hash of something that conversations are told apart by.
    pub(crate) fn hash(&self, value: impl Hash) -> u64 {
        self.hashing.hash_one(value)
    }

    /// Returns the keys of each beginning of a conversation, the shortest first. `owner` tells apart who must not share.
    pub(crate) fn keys(&self, owner: u64, messages: &[Value]) -> Vec<u64> {
        let mut hasher = self.hashing.build_hasher();
        owner.hash(&mut hasher);
        let next = |message: &Value| {
            add(&mut hasher, &as_compared(message));
            hasher.finish()
        };
        messages.iter().map(next).collect()
    }

    /// Returns the state behind the longest known beginning.
    pub(crate) fn find(&self, keys: &[u64]) -> State {
        let mut turns = self.turns.lock();
        let longest = keys.iter().rev().find_map(|key| turns.get(key).cloned());
        longest.unwrap_or_default()
    }

    /// Forgets the handles of a conversation, because the plane does not take them any more.
    pub(crate) fn forget_handles(&self, keys: &[u64]) {
        let mut turns = self.turns.lock();
        for key in keys {
            if let Some(state) = turns.get(key) {
                state.handle.clear();
            }
        }
    }

    /// Keeps the state behind the last of a conversation's messages.
    pub(crate) fn keep(&self, tenant: &Arc<str>, keys: &[u64], state: State) {
        let Some(key) = keys.last() else { return };
        let bytes = state.memory_bytes();
        self.turns.lock().insert(tenant, *key, state, bytes);
    }
}

/// Adds what a model reads of a value.
fn add(hasher: &mut impl Hasher, value: &Value) {
    match value {
        Value::Object(fields) => {
            let mut names: Vec<&String> = fields.keys().filter(|name| *name != MARK).collect();
            names.sort_unstable();
            names.len().hash(hasher);
            for name in names {
                name.hash(hasher);
                add(hasher, &fields[name]);
            }
        }
        Value::Array(items) => {
            items.len().hash(hasher);
            items.iter().for_each(|item| add(hasher, item));
        }
        Value::String(text) => text.hash(hasher),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string().hash(hasher),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn state(handle: &str) -> State {
        State { handle: handle.to_owned(), ..State::default() }
    }

    fn tenant(name: &str) -> Arc<str> {
        Arc::from(name)
    }

    #[test]
    fn the_longest_known_beginning_counts() {
        let remembered = Remembered::default();
        let messages = [json!({ "a": 1 }), json!({ "b": 2 }), json!({ "c": 3 })];
        remembered.keep(&tenant("a"), &remembered.keys(1, &messages[..1]), state("one"));
        remembered.keep(&tenant("a"), &remembered.keys(1, &messages[..2]), state("two"));
        let found =
            |owner, messages: &[Value]| remembered.find(&remembered.keys(owner, messages)).handle;
        assert_eq!(found(1, &messages), "two");
        assert_eq!(found(1, &[messages[0].clone(), json!("x")]), "one");
        assert_eq!(found(2, &messages), "", "another owner's");
        remembered.forget_handles(&remembered.keys(1, &messages[..1]));
        assert_eq!(found(1, &messages[..1]), "");
        assert_eq!(found(1, &messages), "two");
        let marked = [json!({ "a": 1, "cache_control": {} }), json!({ "b": 2 })];
        assert_eq!(found(1, &marked), "two");
    }

    /// Claude Code writes its second message so from the second request on.
    #[test]
    fn a_text_and_its_only_block_are_one_message() {
        let remembered = Remembered::default();
        let message = |content| [json!({ "role": "system", "content": content })];
        let block =
            json!([{ "type": "text", "text": "hi", "cache_control": { "type": "ephemeral" } }]);
        let begun = remembered.keys(1, &message(block));
        assert_eq!(remembered.keys(1, &message(json!("hi"))), begun);
        assert_ne!(remembered.keys(1, &message(json!("ho"))), begun);
    }

    #[test]
    fn there_is_a_bound() {
        let remembered = Remembered::default();
        let other = remembered.keys(2, &[json!("other")]);
        remembered.keep(&tenant("b"), &other, state("y"));
        let turns_max = BOUNDS.entries;
        for number in 0..3 * turns_max {
            remembered.keep(&tenant("a"), &remembered.keys(1, &[json!(number)]), state("x"));
        }
        assert_eq!(remembered.find(&other).handle, "y", "another tenant's");
        assert!(remembered.turns.lock().len() <= turns_max);
        let newest = remembered.keys(1, &[json!(3 * turns_max - 1)]);
        assert_eq!(remembered.find(&newest).handle, "x");
        let huge = "x".repeat(BOUNDS.bytes / 8);
        for number in 0..9 {
            remembered.keep(&tenant("a"), &remembered.keys(1, &[json!([number])]), state(&huge));
        }
        assert!(remembered.turns.lock().len() <= 8, "they are bounded by bytes too");
        assert_eq!(remembered.find(&other).handle, "y", "another tenant's");
    }
}
