//! Thoughts of OpenAI's Responses that led to what the host does not see: a hidden search, or a call that was taken back.
//! A host that read them in a stream sends them again, without what followed them, and OpenAI refuses such items.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;

use crate::bounded::{Bounded, Bounds};
use crate::definitions::place;
use crate::raw;
use crate::responses::{is_answerable, is_thought};

/// Thoughts that are remembered, by their IDs and by what they hold.
const BOUNDS: Bounds = Bounds { entries: 32_768, bytes: 32_768 };

/// Thoughts that were seen lately. Keys are hashes with a key of this process alone.
#[derive(Debug)]
pub(crate) struct Thoughts {
    hashing: RandomState,
    known: Mutex<Bounded<u64, ()>>,
}

impl Default for Thoughts {
    fn default() -> Self {
        Self { hashing: RandomState::new(), known: Mutex::new(Bounded::new(BOUNDS)) }
    }
}

impl Thoughts {
    /// Notes the thoughts of an answer whose calls the host does not see. `owner` tells apart who must not share.
    pub(crate) fn note(&self, tenant: &Arc<str>, owner: u64, said: &[Value]) {
        for (at, item) in said.iter().enumerate().filter(|(_, item)| is_thought(item)) {
            let next = said[at..].iter().find(|item| !is_thought(item));
            if !next.is_some_and(is_answerable) {
                continue;
            }
            let names = [("id", &item["id"]), ("holds", &item["encrypted_content"])];
            let mut known = self.known.lock();
            for (kind, text) in names {
                if let Some(text) = text.as_str() {
                    known.insert(tenant, self.hashing.hash_one((owner, kind, text)), (), 1);
                }
            }
        }
    }

    /// Returns a request without the thoughts that lead to nothing. `None` if it has none of them.
    pub(crate) fn without(&self, owner: u64, text: &str) -> Option<String> {
        if self.known.lock().is_empty() || !text.contains("reasoning") {
            return None;
        }
        let input = raw::field(text, "input")?;
        let items = raw::items(input)?;
        let left: Vec<&str> = items.iter().copied().filter(|item| !self.has(owner, item)).collect();
        let is_same = left.len() == items.len();
        (!is_same)
            .then(|| raw::edited(text, &[(place(text, input), format!("[{}]", left.join(",")))]))
    }

    /// Returns true if an item is a thought that leads to nothing. One that has an ID is known by that.
    fn has(&self, owner: u64, item: &str) -> bool {
        if !item.contains("reasoning") {
            return false;
        }
        let Ok(item) = serde_json::from_str::<Value>(item) else { return false };
        let by_id = item["id"].as_str().map(|id| ("id", id));
        let name = by_id.or_else(|| item["encrypted_content"].as_str().map(|held| ("holds", held)));
        let Some((kind, text)) = name.filter(|_| is_thought(&item)) else { return false };
        let key = self.hashing.hash_one((owner, kind, text));
        self.known.lock().get(&key).is_some()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn thought(id: &str) -> Value {
        json!({ "type": "reasoning", "id": id, "encrypted_content": format!("held by {id}") })
    }

    #[test]
    fn thoughts_that_led_to_a_hidden_call_are_left_out() {
        let thoughts = Thoughts::default();
        let call = json!({ "type": "function_call", "call_id": "c" });
        let message = json!({ "type": "message", "role": "assistant" });
        let said = [thought("r0"), message, thought("r1"), thought("r2"), call];
        thoughts.note(&Arc::from("a"), 1, &said);
        let text = r#"{"x":1.0,"input":[ {"type":"reasoning","id":"r0"}, {"type":"reasoning","id":"r1"} ,{"type":"reasoning","encrypted_content":"held by r2"},{"role":"user","content":"reasoning"}], "y":2}"#;
        let expected = r#"{"x":1.0,"input":[{"type":"reasoning","id":"r0"},{"role":"user","content":"reasoning"}], "y":2}"#;
        assert_eq!(thoughts.without(1, text).as_deref(), Some(expected));
        assert_eq!(thoughts.without(1, expected), None);
        assert_eq!(thoughts.without(2, text), None, "another owner's");
        assert_eq!(thoughts.without(1, r#"{"input":"reasoning"}"#), None);
    }
}
