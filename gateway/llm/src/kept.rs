//! Answers of OpenAI's Responses that a further request names (`previous_response_id`, or its path): the provider keeps their
//! conversation, so that the proxy remembers what it put into it. Without that, such requests are sent as they came.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::bounded::{Bounded, Bounds};
use crate::definitions::place;
use crate::raw;
use crate::toolset::Names;

/// Field of a request that names the answer it goes on from.
pub(crate) const PREVIOUS: &str = "previous_response_id";

/// Answers that are remembered.
const BOUNDS: Bounds = Bounds { entries: 4_096, bytes: 32 << 20 };

/// Lists of hosts' tools that are remembered. Answers of the same tools share one.
const LISTS: Bounds = Bounds { entries: 256, bytes: 16 << 20 };

/// Conversation behind an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Behind {
    /// IDs of the turn's answers, in their order. The host knows the first, and the last one has the whole turn.
    pub(crate) ids: Vec<String>,
    /// Names of the tools that were described in it.
    pub(crate) described: Vec<String>,
    /// Names of tools that were found since.
    pub(crate) found: Vec<String>,
    /// Calls that the host does not know of, and that were not answered in the turn.
    pub(crate) open_calls: Vec<OpenCall>,
    /// Names of tools in namespaces.
    pub(crate) names: Names,
}

/// Call without an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OpenCall {
    /// Hidden search. Holds its ID.
    Search(String),
    /// Call that was withheld from the host, until it left. Holds its ID.
    Function(String),
    /// The same of a tool that takes a text. Holds its ID.
    Custom(String),
}

/// Answer of a call that the host never got.
const NOT_RUN: &str = r#"{"error":"not_run","message":"The call was not run."}"#;

/// Answer of a hidden search whose tools are described beside it.
pub(crate) const LATE: &str = r#"{"message":"What was found is described in the conversation."}"#;

impl Behind {
    /// Returns the approximate bytes in use.
    fn memory_bytes(&self) -> usize {
        let text = |name: &String| size_of::<String>() + name.len();
        let texts = [&self.ids, &self.described, &self.found].into_iter().flatten();
        let calls = self.open_calls.iter().map(OpenCall::memory_bytes);
        let texts = texts.map(text).sum::<usize>() + calls.sum::<usize>();
        let names = self.names.iter();
        let names = names.map(|(name, own)| text(name) + text(&own.namespace) + text(&own.name));
        size_of::<Self>() + texts + names.sum::<usize>()
    }

    /// Returns the ID of the turn's last answer.
    fn last_id(&self) -> &str {
        self.ids.last().map_or("", String::as_str)
    }

    /// Returns the text of a request that goes on from the answer, with what the provider wants for it: the turn's last
    /// ID in the place of its first, and an answer to each call that the host does not know of. `None` if it has all that.
    pub(crate) fn request(&self, text: &str) -> Option<String> {
        let id = raw::field(text, PREVIOUS)?;
        let last = Value::from(self.last_id()).to_string();
        let is_same = serde_json::from_str::<Value>(id).is_ok_and(|id| id == self.last_id());
        if is_same && self.open_calls.is_empty() {
            return None;
        }
        let input = raw::field(text, "input")?;
        let mut edits = vec![(place(text, id), last)];
        if !self.open_calls.is_empty() {
            edits.push((place(text, input), self.answered(input)?));
        }
        edits.sort_by_key(|(at, _)| at.start);
        Some(raw::edited(text, &edits))
    }

    /// Returns the text of an input with the answers to calls that the host does not know of before it.
    fn answered(&self, input: &str) -> Option<String> {
        let answers = self.open_calls.iter().map(|call| call.answer().to_string());
        let mut items: Vec<String> = answers.collect();
        if input.trim_start().starts_with('"') {
            items.push(format!(r#"{{"role":"user","content":{input}}}"#));
        } else {
            items.extend(raw::items(input)?.into_iter().map(str::to_owned));
        }
        Some(format!("[{}]", items.join(",")))
    }
}

impl OpenCall {
    fn id(&self) -> &String {
        match self {
            Self::Search(id) | Self::Function(id) | Self::Custom(id) => id,
        }
    }

    /// Returns the bytes in use.
    fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.id().len()
    }

    /// Returns the item that answers it.
    fn answer(&self) -> Value {
        let kind = match self {
            Self::Search(_) | Self::Function(_) => "function_call_output",
            Self::Custom(_) => "custom_tool_call_output",
        };
        let output = if matches!(self, Self::Search(_)) { LATE } else { NOT_RUN };
        json!({ "type": kind, "call_id": self.id(), "output": output })
    }
}

/// Answers that were seen lately. Keys are hashes with a key of this process alone.
#[derive(Debug)]
pub(crate) struct Kept {
    hashing: RandomState,
    answers: Mutex<Bounded<u64, KeptAnswer>>,
    /// Texts of hosts' lists of tools, by their hash. Tools that may hold secrets are not in them.
    lists: Mutex<Bounded<u64, Arc<str>>>,
}

#[derive(Debug)]
struct KeptAnswer {
    behind: Behind,
    /// Hash of the text of the host's tools.
    list: u64,
}

impl Default for Kept {
    fn default() -> Self {
        Self {
            hashing: RandomState::new(),
            answers: Mutex::new(Bounded::new(BOUNDS)),
            lists: Mutex::new(Bounded::new(LISTS)),
        }
    }
}

impl Kept {
    /// Returns what is behind an answer. `owner` tells apart who must not share.
    pub(crate) fn find(&self, owner: u64, id: &str) -> Option<Behind> {
        let key = self.hashing.hash_one((owner, id));
        self.answers.lock().get(&key).map(|kept| kept.behind.clone())
    }

    /// Returns the text of the tools that an answer tells the host, if it is remembered.
    pub(crate) fn tools(&self, owner: u64, id: &str) -> Option<Arc<str>> {
        let key = self.hashing.hash_one((owner, id));
        let list = self.answers.lock().get(&key)?.list;
        self.lists.lock().get(&list).cloned()
    }

    /// Remembers what is behind a turn's answers, under the ID that the host knows, and under that of the last. `tools` is the text
    /// of the tools that they tell the host.
    pub(crate) fn keep(&self, tenant: &Arc<str>, owner: u64, behind: &Behind, tools: &Arc<str>) {
        let list = self.hashing.hash_one((owner, tools));
        let mut lists = self.lists.lock();
        if lists.get(&list).is_none() {
            lists.insert(tenant, list, Arc::clone(tools), tools.len());
        }
        drop(lists);
        let mut answers = self.answers.lock();
        for id in [behind.ids.first(), behind.ids.last()].into_iter().flatten() {
            let key = self.hashing.hash_one((owner, id.as_str()));
            let kept = KeptAnswer { behind: behind.clone(), list };
            answers.insert(tenant, key, kept, behind.memory_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn behind(last_id: &str) -> Behind {
        of_turn(&[last_id])
    }

    fn of_turn(ids: &[&str]) -> Behind {
        let ids = ids.iter().map(|id| (*id).to_owned()).collect();
        Behind { ids, ..Behind::default() }
    }

    #[test]
    fn an_answer_is_known_by_each_of_its_ids_to_its_owner() {
        let kept = Kept::default();
        let turn = of_turn(&["r1", "r2", "r3"]);
        kept.keep(&Arc::from("a"), 1, &turn, &Arc::from("[1]"));
        for id in ["r1", "r3"] {
            assert_eq!(kept.find(1, id), Some(turn.clone()));
            assert_eq!(kept.tools(1, id).as_deref(), Some("[1]"));
            assert_eq!(kept.find(2, id), None);
            assert_eq!(kept.tools(2, id), None);
        }
        assert_eq!(kept.find(1, "r2"), None, "the host does not know it");
    }

    #[test]
    fn the_provider_gets_the_last_id_and_an_answer_to_each_hidden_search() {
        let text = r#"{"x":1.0,"input":[ {"a":1.0} ],"previous_response_id": "r1" }"#;
        let last = r#"{"x":1.0,"input":[ {"a":1.0} ],"previous_response_id": "r2" }"#;
        assert_eq!(behind("r2").request(text).as_deref(), Some(last));
        assert_eq!(behind("r2").request(last), None);
        assert_eq!(behind("r2").request("{}"), None);
        let search = OpenCall::Search("c1".to_owned());
        let open = Behind { open_calls: vec![search], ..behind("r2") };
        let answer = json!({ "type": "function_call_output", "call_id": "c1", "output": LATE });
        let expected =
            format!(r#"{{"x":1.0,"input":[{answer},{{"a":1.0}}],"previous_response_id": "r2" }}"#);
        assert_eq!(open.request(text), Some(expected));
        let said = r#"{"previous_response_id":"r1","input":"h\u00e9"}"#;
        let expected = format!(
            r#"{{"previous_response_id":"r2","input":[{answer},{{"role":"user","content":"h\u00e9"}}]}}"#
        );
        assert_eq!(open.request(said), Some(expected));
    }

    #[test]
    fn a_call_that_the_host_never_got_is_answered_by_its_kind() {
        let calls = ["a", "b"].map(str::to_owned);
        let [function, custom] = calls;
        let open_calls = vec![OpenCall::Function(function), OpenCall::Custom(custom)];
        let open = Behind { open_calls, ..behind("r1") };
        let asked = open.request(r#"{"input":[],"previous_response_id":"r1"}"#).expect("a request");
        let asked: Value = serde_json::from_str(&asked).expect("JSON");
        let expected = json!([
            { "type": "function_call_output", "call_id": "a", "output": NOT_RUN },
            { "type": "custom_tool_call_output", "call_id": "b", "output": NOT_RUN }
        ]);
        assert_eq!(asked["input"], expected);
    }

    #[test]
    fn there_is_a_bound_and_no_tenant_takes_anothers_place() {
        let kept = Kept::default();
        let none = Arc::from("[]");
        kept.keep(&Arc::from("b"), 2, &behind("r1"), &none);
        let answers_max = BOUNDS.entries;
        for number in 0..2 * answers_max {
            let turn = of_turn(&[&number.to_string(), &format!("last{number}")]);
            kept.keep(&Arc::from("a"), 1, &turn, &none);
        }
        assert!(kept.answers.lock().len() <= answers_max);
        assert!(kept.find(2, "r1").is_some());
        let newest = (2 * answers_max - 1).to_string();
        assert!(kept.find(1, &newest).is_some());
        let long = Behind { found: vec!["x".repeat(BOUNDS.bytes / 8)], ..behind("r") };
        for number in 0..9 {
            let ids = vec![format!("long{number}")];
            kept.keep(&Arc::from("a"), 1, &Behind { ids, ..long.clone() }, &none);
        }
        assert!(kept.answers.lock().len() <= 8, "they are bounded by bytes too");
        assert!(kept.find(2, "r1").is_some());
    }
}
