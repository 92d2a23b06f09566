//! Lists of tools as servers write them. The protocol library parses answers into types of its own, which forget the
//! fields that they don't know and the order of keys; what passes by is kept here before.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::value::RawValue;

/// Largest number of answers that wait to be taken. Each belongs to a request that somebody waits for.
const WAITING_MAX: usize = 16;

/// Results of `tools/list` that were received, by the ID of the request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lists(Arc<Mutex<HashMap<String, Box<RawValue>>>>);

/// One page of a list of tools.
#[derive(Debug, Deserialize)]
pub(crate) struct Page {
    /// Definitions, as the server wrote them.
    pub(crate) tools: Vec<Box<RawValue>>,
    /// Cursor of the next page; `None` or empty on the last one.
    #[serde(rename = "nextCursor")]
    pub(crate) next_cursor: Option<String>,
}

/// Parts of a JSON-RPC message by which an answer to `tools/list` is known.
#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Listing<'a> {
    #[serde(borrow)]
    tools: Option<&'a RawValue>,
}

impl Lists {
    /// Keeps the message's result if it lists tools.
    pub(crate) fn observe(&self, message: &str) {
        let Ok(Message { id: Some(id), result: Some(result) }) = serde_json::from_str(message)
        else {
            return;
        };
        let lists_tools = serde_json::from_str::<Listing<'_>>(result.get())
            .is_ok_and(|result| result.tools.is_some());
        if !lists_tools {
            return;
        }
        let mut waiting = self.0.lock();
        if waiting.len() < WAITING_MAX {
            waiting.insert(id.get().to_owned(), result.to_owned());
        }
    }

    /// Takes the result for a request. `id` is the request's ID as JSON.
    pub(crate) fn take(&self, id: &str) -> Option<Box<RawValue>> {
        self.0.lock().remove(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_kept_with_its_bytes() {
        let lists = Lists::default();
        lists.observe(
            r#"{"jsonrpc":"2.0","id":7,"result":{"tools":[{"b":1.0, "a":1e400}],"x":"\u0041"}}"#,
        );
        let kept = lists.take("7").expect("a list");
        assert_eq!(kept.get(), r#"{"tools":[{"b":1.0, "a":1e400}],"x":"\u0041"}"#);
        let page: Page = serde_json::from_str(kept.get()).expect("a page");
        assert_eq!(page.tools[0].get(), r#"{"b":1.0, "a":1e400}"#);
        assert!(lists.take("7").is_none());
    }

    #[test]
    fn other_messages_are_not_kept() {
        let lists = Lists::default();
        for message in [
            "",
            "[]",
            "no JSON",
            r#"{"id":1,"result":{}}"#,
            r#"{"id":2,"result":[]}"#,
            r#"{"id":3,"error":{"tools":[]}}"#,
            r#"{"result":{"tools":[]}}"#,
            r#"{"id":4,"method":"x","params":{"tools":[]}}"#,
        ] {
            lists.observe(message);
        }
        assert!(lists.0.lock().is_empty());
    }

    #[test]
    fn answers_that_nobody_asked_for_are_bounded() {
        let lists = Lists::default();
        for id in 0..1_000 {
            lists.observe(&format!(r#"{{"id":{id},"result":{{"tools":[]}}}}"#));
        }
        assert_eq!(lists.0.lock().len(), WAITING_MAX);
    }
}
