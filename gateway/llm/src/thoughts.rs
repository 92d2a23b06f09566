//! Thoughts of OpenAI's Responses that led to what the host does not see: a hidden search, or a call that was taken back.
//! A host that read them in a stream sends them again, without what followed them, and OpenAI refuses such items.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;

use crate::bounded::{Bounded, Bounds};
use crate::definitions::place;
use crate::raw;
use crate::responses::is_thought;

/// Thoughts that are remembered, by their IDs and by what they hold. Each takes as little as any other.
const BOUNDS: Bounds = Bounds { entries: 32_768, bytes: usize::MAX };

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
    /// Returns the keys of thoughts in an answer that led to nothing that the host sees: `is_hidden` is asked of the items behind them,
    /// up to the next thoughts. `owner` tells apart who must not share.
    pub(crate) fn keys(
        &self,
        owner: u64,
        said: &[Value],
        is_hidden: fn(&[Value]) -> bool,
    ) -> Vec<u64> {
        let mut keys = Vec::new();
        for (at, item) in said.iter().enumerate().filter(|(_, item)| is_thought(item)) {
            let thoughts = said[at..].iter().take_while(|item| is_thought(item)).count();
            let behind = &said[at + thoughts..];
            let led_to = &behind[..behind.iter().take_while(|item| !is_thought(item)).count()];
            if led_to.is_empty() || !is_hidden(led_to) {
                continue;
            }
            let names = [("id", &item["id"]), ("holds", &item["encrypted_content"])];
            let named = names.iter().filter_map(|(kind, text)| Some((*kind, text.as_str()?)));
            keys.extend(named.map(|(kind, text)| self.hashing.hash_one((owner, kind, text))));
        }
        keys
    }

    /// Notes thoughts by their keys.
    pub(crate) fn note(&self, tenant: &Arc<str>, keys: &[u64]) {
        let mut known = self.known.lock();
        for key in keys {
            known.insert(tenant, *key, (), 0);
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
    use crate::responses::{are_searches, are_taken_back};

    fn thought(id: &str) -> Value {
        json!({ "type": "reasoning", "id": id, "encrypted_content": format!("held by {id}") })
    }

    #[test]
    fn thoughts_that_led_to_a_hidden_call_are_left_out() {
        let thoughts = Thoughts::default();
        let call = json!({ "type": "function_call", "call_id": "c" });
        let message = json!({ "type": "message", "role": "assistant" });
        let said = [thought("r0"), message, thought("r1"), thought("r2"), call];
        let keys = thoughts.keys(1, &said, are_taken_back);
        thoughts.note(&Arc::from("a"), &keys);
        let text = r#"{"x":1.0,"input":[ {"type":"reasoning","id":"r0"}, {"type":"reasoning","id":"r1"} ,{"type":"reasoning","encrypted_content":"held by r2"},{"role":"user","content":"reasoning"}], "y":2}"#;
        let expected = r#"{"x":1.0,"input":[{"type":"reasoning","id":"r0"},{"role":"user","content":"reasoning"}], "y":2}"#;
        assert_eq!(thoughts.without(1, text).as_deref(), Some(expected));
        assert_eq!(thoughts.without(1, expected), None);
        assert_eq!(thoughts.without(2, text), None, "another owner's");
        assert_eq!(thoughts.without(1, r#"{"input":"reasoning"}"#), None);
    }

    #[test]
    fn thoughts_lead_to_all_that_follows_them_up_to_the_next() {
        let thoughts = Thoughts::default();
        let call = |name: &str| json!({ "type": "function_call", "name": name, "arguments": "" });
        let search = || call("toolgate_search_tools");
        let message = || json!({ "type": "message", "role": "assistant" });
        for (said, count) in [
            (vec![thought("r"), search(), search()], 2),
            (vec![thought("r"), json!({ "type": "tool_search_call" })], 2),
            (vec![thought("r"), search(), thought("s"), call("Bash")], 2),
            (vec![thought("r"), search(), call("Bash")], 0),
            (vec![thought("r"), search(), message()], 0),
            (vec![thought("r"), call("Bash"), search()], 0),
            (vec![search(), thought("r")], 0),
            (vec![thought("r"), thought("s"), search()], 4),
        ] {
            assert_eq!(thoughts.keys(1, &said, are_searches).len(), count, "{said:?}");
        }
        // The host has the message in both.
        for said in [
            [thought("r"), search(), message(), call("Bash")],
            [thought("r"), call("Bash"), message(), call("Bash")],
        ] {
            assert_eq!(thoughts.keys(1, &said, are_taken_back), Vec::<u64>::new(), "{said:?}");
        }
    }
}
