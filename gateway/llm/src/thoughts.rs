//! Thoughts of OpenAI's Responses that led to what the host does not see: a hidden search, or a call that was taken back.
//! A host that read them in a stream sends them again, without what followed them, and OpenAI refuses such items. Where nothing
//! else followed they are left out, and where something did the searches are put back.

use std::hash::{BuildHasher as _, RandomState};
use std::slice;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::bounded::{Bounded, Bounds};
use crate::definitions::place;
use crate::kept::LATE;
use crate::raw;
use crate::responses::{are_searches, is_thought, sent_back};

/// Thoughts that are remembered, by their IDs and by what they hold, and bytes of the searches behind them.
const BOUNDS: Bounds = Bounds { entries: 32_768, bytes: 32 << 20 };

/// Thoughts that were seen lately. Keys are hashes with a key of this process alone.
#[derive(Debug)]
pub(crate) struct Thoughts {
    hashing: RandomState,
    known: Mutex<Bounded<u64, Sequel>>,
}

/// Items behind a thought that the host does not see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Sequel {
    /// All of them.
    All,
    /// Searches, before items that the host sees. Holds the text of their items and answers, with commas between.
    Searches(Arc<str>),
}

/// Thought that the host sees without all that followed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Noted {
    key: u64,
    sequel: Sequel,
}

/// Answer of a model in which thoughts are looked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Said<'a> {
    pub(crate) items: &'a [Value],
    /// True if the provider keeps it.
    pub(crate) is_kept: bool,
    /// Index of the item from which on the host sees nothing.
    pub(crate) seen: usize,
    /// Returns true for items behind thoughts all of which are hidden from the host, of those that it may see.
    pub(crate) is_hidden: fn(&[Value]) -> bool,
}

impl Default for Thoughts {
    fn default() -> Self {
        Self { hashing: RandomState::new(), known: Mutex::new(Bounded::new(BOUNDS)) }
    }
}

impl Thoughts {
    /// Returns the thoughts of an answer that the host sees without all that they led to, up to the next thoughts. `owner` tells apart
    /// who must not share.
    pub(crate) fn noted(&self, owner: u64, said: Said<'_>) -> Vec<Noted> {
        let items = said.items;
        let mut noted = Vec::new();
        for (at, item) in items.iter().enumerate().filter(|(_, item)| is_thought(item)) {
            let thoughts = items[at..].iter().take_while(|item| is_thought(item)).count();
            let behind = &items[at + thoughts..];
            let led_to = &behind[..behind.iter().take_while(|item| !is_thought(item)).count()];
            let seen = led_to.len().min(said.seen.saturating_sub(at + thoughts));
            let sequel = if !led_to.is_empty() && (said.is_hidden)(&led_to[..seen]) {
                Some(Sequel::All)
            } else if thoughts == 1 {
                // The last of several thoughts is the one that the searches follow.
                searches_before(led_to, said.is_kept)
            } else {
                None
            };
            let Some(sequel) = sequel else { continue };
            let names = [("id", &item["id"]), ("holds", &item["encrypted_content"])];
            let named = names.iter().filter_map(|(kind, text)| Some((*kind, text.as_str()?)));
            noted.extend(named.map(|(kind, text)| Noted {
                key: self.hashing.hash_one((owner, kind, text)),
                sequel: sequel.clone(),
            }));
        }
        noted
    }

    /// Remembers thoughts.
    pub(crate) fn note(&self, tenant: &Arc<str>, noted: &[Noted]) {
        let mut known = self.known.lock();
        for Noted { key, sequel } in noted {
            known.insert(tenant, *key, sequel.clone(), sequel.memory_bytes());
        }
    }

    /// Returns a request as the provider takes it: without the thoughts that lead to nothing, and with the searches that others led
    /// to. `None` if it has none of them.
    pub(crate) fn restored(&self, owner: u64, text: &str) -> Option<String> {
        if self.known.lock().is_empty() || !text.contains("reasoning") {
            return None;
        }
        let input = raw::field(text, "input")?;
        let items = raw::items(input)?;
        let mut restored: Vec<&str> = Vec::with_capacity(items.len());
        let sequels: Vec<Option<Sequel>> =
            items.iter().map(|item| self.sequel(owner, item)).collect();
        for (item, sequel) in items.iter().zip(&sequels) {
            match sequel {
                Some(Sequel::All) => {}
                Some(Sequel::Searches(searches)) => restored.extend([*item, &**searches]),
                None => restored.push(*item),
            }
        }
        let is_changed = sequels.iter().any(Option::is_some);
        let restored = format!("[{}]", restored.join(","));
        is_changed.then(|| raw::edited(text, &[(place(text, input), restored)]))
    }

    /// Returns what the host does not see behind an item, if that is a thought. One that has an ID is known by that.
    fn sequel(&self, owner: u64, item: &str) -> Option<Sequel> {
        if !item.contains("reasoning") {
            return None;
        }
        let item: Value = serde_json::from_str(item).ok()?;
        let by_id = item["id"].as_str().map(|id| ("id", id));
        let name = by_id.or_else(|| item["encrypted_content"].as_str().map(|held| ("holds", held)));
        let name = name.filter(|_| is_thought(&item))?;
        let key = self.hashing.hash_one((owner, name.0, name.1));
        self.known.lock().get(&key).cloned()
    }
}

impl Sequel {
    /// Returns the bytes in use beside those of each entry.
    fn memory_bytes(&self) -> usize {
        match self {
            Self::All => 0,
            Self::Searches(searches) => searches.len(),
        }
    }
}

/// Returns the hidden searches with which items begin, and an answer to each. The API's own searches are none of them: requests
/// without that tool can't have them.
fn searches_before(led_to: &[Value], is_kept: bool) -> Option<Sequel> {
    let is_search =
        |item: &&Value| item["type"] == "function_call" && are_searches(slice::from_ref(*item));
    let count = led_to.iter().take_while(is_search).count();
    if count == 0 {
        return None;
    }
    let searches = sent_back(&led_to[..count], is_kept);
    let answer = |search: &Value| json!({ "type": "function_call_output", "call_id": search["call_id"], "output": LATE });
    let answers: Vec<Value> = searches.iter().map(answer).collect();
    let texts: Vec<String> = searches.iter().chain(&answers).map(Value::to_string).collect();
    Some(Sequel::Searches(texts.join(",").into()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::responses::are_taken_back;

    fn searched(items: &[Value]) -> Said<'_> {
        Said { items, is_kept: true, seen: items.len(), is_hidden: are_searches }
    }

    fn taken_back(items: &[Value]) -> Said<'_> {
        Said { is_hidden: are_taken_back, ..searched(items) }
    }

    fn call(name: &str) -> Value {
        json!({ "type": "function_call", "call_id": name, "name": name, "arguments": "" })
    }

    fn message() -> Value {
        json!({ "type": "message", "role": "assistant" })
    }

    fn thought(id: &str) -> Value {
        json!({ "type": "reasoning", "id": id, "encrypted_content": format!("held by {id}") })
    }

    #[test]
    fn thoughts_that_led_to_a_hidden_call_are_left_out() {
        let thoughts = Thoughts::default();
        let call = json!({ "type": "function_call", "call_id": "c" });
        let message = json!({ "type": "message", "role": "assistant" });
        let said = [thought("r0"), message, thought("r1"), thought("r2"), call];
        let noted = thoughts.noted(1, taken_back(&said));
        thoughts.note(&Arc::from("a"), &noted);
        let text = r#"{"x":1.0,"input":[ {"type":"reasoning","id":"r0"}, {"type":"reasoning","id":"r1"} ,{"type":"reasoning","encrypted_content":"held by r2"},{"role":"user","content":"reasoning"}], "y":2}"#;
        let expected = r#"{"x":1.0,"input":[{"type":"reasoning","id":"r0"},{"role":"user","content":"reasoning"}], "y":2}"#;
        assert_eq!(thoughts.restored(1, text).as_deref(), Some(expected));
        assert_eq!(thoughts.restored(1, expected), None);
        assert_eq!(thoughts.restored(2, text), None, "another owner's");
        assert_eq!(thoughts.restored(1, r#"{"input":"reasoning"}"#), None);
    }

    #[test]
    fn thoughts_lead_to_all_that_follows_them_up_to_the_next() {
        let thoughts = Thoughts::default();
        let search = || call("toolgate_search_tools");
        let to_nothing = |said: Said<'_>| {
            let noted = thoughts.noted(1, said);
            noted.iter().filter(|noted| noted.sequel == Sequel::All).count()
        };
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
            assert_eq!(to_nothing(searched(&said)), count, "{said:?}");
        }
        // The host has the message in both.
        for said in [
            [thought("r"), search(), message(), call("Bash")],
            [thought("r"), call("Bash"), message(), call("Bash")],
        ] {
            assert_eq!(to_nothing(taken_back(&said)), 0, "{said:?}");
        }
    }

    #[test]
    fn thoughts_whose_sequel_was_withheld_from_its_first_call_on_are_left_out() {
        let search = call("toolgate_search_tools");
        for (said, seen, left_out) in [
            ([thought("r"), call("Bash"), message()], 1, true),
            ([thought("r"), search.clone(), message()], 2, true),
            ([thought("r"), message(), call("Bash")], 2, false),
            ([thought("r"), call("Bash"), message()], 3, false),
        ] {
            let thoughts = Thoughts::default();
            let noted = thoughts.noted(1, Said { seen, ..taken_back(&said) });
            thoughts.note(&Arc::from("a"), &noted);
            let sent = json!({ "input": [thought("r")] }).to_string();
            let empty = json!({ "input": [] }).to_string();
            assert_eq!(thoughts.restored(1, &sent), left_out.then_some(empty), "{said:?}");
        }
    }

    #[test]
    fn searches_between_thoughts_and_what_the_host_sees_are_put_back() {
        let search = call("toolgate_search_tools");
        let answer = json!({ "type": "function_call_output", "call_id": "toolgate_search_tools",
            "output": LATE });
        let own = json!({ "type": "tool_search_call", "call_id": "s" });
        let restored = |said: &[Value], shown: &[Value]| {
            let thoughts = Thoughts::default();
            thoughts.note(&Arc::from("a"), &thoughts.noted(1, searched(said)));
            let sent = json!({ "input": shown }).to_string();
            let restored = thoughts.restored(1, &sent)?;
            Some(serde_json::from_str::<Value>(&restored).expect("JSON")["input"].clone())
        };
        for last in [message(), call("Bash")] {
            let said = [thought("q"), thought("r"), search.clone(), last.clone()];
            let shown = [thought("q"), thought("r"), last.clone()];
            let expected = json!([thought("q"), thought("r"), search, answer, last]);
            assert_eq!(restored(&said, &shown), Some(expected));
        }
        for said in [
            [thought("r"), message(), search.clone()],
            [thought("r"), own, message()],
            [thought("r"), call("Bash"), message()],
        ] {
            assert_eq!(restored(&said, &said), None, "what follows them is there");
        }
    }
}
