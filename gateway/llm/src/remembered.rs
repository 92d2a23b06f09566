//! Additions of earlier turns of conversations, found again by the messages that a request begins with. It is a cache: without
//! it tools are chosen and described anew, and one cached prefix is lost.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, Hash, Hasher, RandomState};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use toolgate_llm::strategy::Ledger;

use crate::tenant::gives_way;

/// Most conversations' turns that are remembered, of all tenants together.
const TURNS_MAX: usize = 4_096;

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
}

/// Turns of conversations. Keys are hashes with a key of this process alone.
#[derive(Debug, Default)]
pub(crate) struct Remembered {
    hashing: RandomState,
    turns: Mutex<Turns>,
}

#[derive(Debug, Default)]
struct Turns {
    states: HashMap<u64, Turn>,
    clock: u64,
}

#[derive(Debug)]
struct Turn {
    tenant: Arc<str>,
    state: State,
    used: u64,
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
            add(&mut hasher, message);
            hasher.finish()
        };
        messages.iter().map(next).collect()
    }

    /// Returns the state behind the longest known beginning.
    pub(crate) fn find(&self, keys: &[u64]) -> State {
        let mut turns = self.turns.lock();
        turns.clock += 1;
        let clock = turns.clock;
        for key in keys.iter().rev() {
            if let Some(turn) = turns.states.get_mut(key) {
                turn.used = clock;
                return turn.state.clone();
            }
        }
        State::default()
    }

    /// Forgets the handles of a conversation, because the plane does not take them any more.
    pub(crate) fn forget_handles(&self, keys: &[u64]) {
        let mut turns = self.turns.lock();
        for key in keys {
            if let Some(turn) = turns.states.get_mut(key) {
                turn.state.handle.clear();
            }
        }
    }

    /// Keeps the state behind the last of a conversation's messages. Where there is no place, the tenant that has most turns
    /// loses the older half of them.
    pub(crate) fn keep(&self, tenant: &Arc<str>, keys: &[u64], state: State) {
        let Some(key) = keys.last() else { return };
        let mut turns = self.turns.lock();
        turns.clock += 1;
        let clock = turns.clock;
        if turns.states.len() >= TURNS_MAX && !turns.states.contains_key(key) {
            let victim = gives_way(turns.states.values().map(|turn| &turn.tenant), tenant);
            let of_victim = turns.states.values().filter(|turn| turn.tenant == victim);
            // Half at once, so that this is rare.
            let mut used: Vec<u64> = of_victim.map(|turn| turn.used).collect();
            used.sort_unstable();
            // A tenant without any finds no place among those that have no more.
            let Some(last) = used.get(used.len() / 2).copied() else { return };
            turns.states.retain(|_, turn| turn.tenant != victim || turn.used > last);
        }
        turns.states.insert(*key, Turn { tenant: Arc::clone(tenant), state, used: clock });
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

    #[test]
    fn there_is_a_bound() {
        let remembered = Remembered::default();
        let other = remembered.keys(2, &[json!("other")]);
        remembered.keep(&tenant("b"), &other, state("y"));
        for number in 0..3 * TURNS_MAX {
            remembered.keep(&tenant("a"), &remembered.keys(1, &[json!(number)]), state("x"));
        }
        assert_eq!(remembered.find(&other).handle, "y", "another tenant's");
        assert!(remembered.turns.lock().states.len() <= TURNS_MAX);
        let newest = remembered.keys(1, &[json!(3 * TURNS_MAX - 1)]);
        assert_eq!(remembered.find(&newest).handle, "x");
    }
}
