//! Lists of tools, serialised once: the text of a list that many ask for is kept, and set into responses as it is. The protocol
//! library serialises a mark in its place.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock, Weak};

use axum::body::{Body, Bytes};
use axum::response::Response;
use futures_util::StreamExt as _;
use futures_util::stream;
use parking_lot::Mutex;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// Most bytes of the texts of lists that are kept.
const KEPT_MAX: usize = 32 << 20;

/// Most lists that are kept.
const LISTS_MAX: usize = 256;

/// Beginning of a mark. No list is a text.
const MARK: &str = "toolgate-list-";

/// SHA-256 of what a list is made of.
pub(crate) type ListKey = [u8; 32];

/// Texts of lists that somebody asked for, JSON arrays, the latest first.
#[derive(Default)]
pub(crate) struct Lists(Mutex<VecDeque<List>>);

struct List {
    key: ListKey,
    text: Bytes,
}

/// Place in a response where the text of a list goes.
pub(crate) struct ListPlace {
    mark: String,
    text: OnceLock<Bytes>,
}

/// Place of a list in the response to a request, as the request carries it: gone once the host has left.
#[derive(Clone)]
pub(crate) struct AwaitedList(Weak<ListPlace>);

impl Lists {
    pub(crate) fn get(&self, key: &ListKey) -> Option<Bytes> {
        let mut lists = self.0.lock();
        let place = lists.iter().position(|list| list.key == *key)?;
        let list = lists.remove(place)?;
        let text = list.text.clone();
        lists.push_front(list);
        Some(text)
    }

    pub(crate) fn keep(&self, key: ListKey, text: Bytes) {
        let mut lists = self.0.lock();
        lists.retain(|list| list.key != key);
        lists.push_front(List { key, text });
        let mut bytes = 0;
        let fits = |list: &List| {
            bytes += list.text.len();
            bytes <= KEPT_MAX
        };
        let kept = lists.iter().take(LISTS_MAX).map(fits).take_while(|fits| *fits).count();
        lists.truncate(kept);
    }
}

/// Returns the key of a list that is made of these texts, in their order.
pub(crate) fn key<'t>(texts: impl IntoIterator<Item = &'t str>) -> ListKey {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update(text.len().to_le_bytes());
        hash.update(text);
    }
    hash.finalize().into()
}

/// Returns the text of a list.
///
/// # Errors
/// A list that can't be serialised.
pub(crate) fn text(list: &[Value]) -> Result<Bytes, String> {
    let text = serde_json::to_vec(list);
    text.map(Bytes::from).map_err(|error| format!("the list can't be written: {error}"))
}

impl ListPlace {
    /// Returns a place with a mark that nobody can guess; `None` on a system without random numbers.
    pub(crate) fn new() -> Option<Arc<Self>> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).ok()?;
        let mark = format!("{MARK}{}", hex::encode(random));
        Some(Arc::new(Self { mark, text: OnceLock::new() }))
    }

    pub(crate) fn awaited(self: &Arc<Self>) -> AwaitedList {
        AwaitedList(Arc::downgrade(self))
    }

    /// Returns a response with the text in the place of its mark.
    pub(crate) fn fill(self: Arc<Self>, response: Response) -> Response {
        response.map(|body| {
            let chunks = body.into_data_stream().flat_map(move |chunk| {
                let chunks = match chunk {
                    Ok(chunk) => self.filled(chunk).into_iter().map(Ok).collect(),
                    Err(error) => vec![Err(error)],
                };
                stream::iter(chunks)
            });
            Body::from_stream(chunks)
        })
    }

    /// Returns the parts of a chunk of a response with the text in the place of the mark. The library writes a message as one
    /// chunk.
    fn filled(&self, chunk: Bytes) -> Vec<Bytes> {
        let Some(text) = self.text.get() else { return vec![chunk] };
        let mark = format!("\"{}\"", self.mark);
        match chunk.windows(mark.len()).position(|window| window == mark.as_bytes()) {
            Some(at) => {
                let end = at + mark.len();
                vec![chunk.slice(..at), text.clone(), chunk.slice(end..)]
            }
            None => vec![chunk],
        }
    }
}

impl AwaitedList {
    /// Takes the text of the list, and returns the mark to serialise in its place; `None` if the response is gone, and whoever
    /// takes it up again needs the list itself.
    pub(crate) fn take(&self, text: Bytes) -> Option<Value> {
        let place = self.0.upgrade()?;
        place.text.set(text).ok()?;
        Some(Value::from(place.mark.as_str()))
    }
}

/// Returns true if a result has a mark in the place of its list.
pub(crate) fn is_marked(result: &Value) -> bool {
    result.get("tools").and_then(Value::as_str).is_some_and(|text| text.starts_with(MARK))
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_lists_that_were_asked_for_last_are_kept() {
        let lists = Lists::default();
        let large = Bytes::from(vec![b'x'; KEPT_MAX / 2]);
        let keys = ["a", "b", "c"].map(|name| key([name]));
        lists.keep(keys[0], large.clone());
        lists.keep(keys[1], large.clone());
        assert!(lists.get(&keys[0]).is_some(), "both fit");
        lists.keep(keys[2], large);
        let kept = keys.map(|key| lists.get(&key).is_some());
        assert_eq!(kept, [true, false, true]);
        for number in 0..=LISTS_MAX {
            lists.keep(key([number.to_string().as_str()]), Bytes::from_static(b"[]"));
        }
        assert_eq!(lists.0.lock().len(), LISTS_MAX);
        assert!(lists.get(&key(["0"])).is_none());
    }

    #[test]
    fn keys_know_where_a_text_ends() {
        assert_ne!(key(["ab", "c"]), key(["a", "bc"]));
        assert_eq!(key(["ab", "c"]), key(["ab", "c"]));
    }

    #[tokio::test]
    async fn the_text_stands_in_the_place_of_its_mark() {
        let place = ListPlace::new().expect("random numbers");
        let awaited = place.awaited();
        let mark = awaited.take(Bytes::from_static(b"[1.0]")).expect("a mark");
        assert!(is_marked(&json!({"tools": mark})) && !is_marked(&json!({"tools": []})));
        assert_eq!(awaited.take(Bytes::new()), None, "it is taken once");
        let event = format!("data: {}\n\n", json!({"id": 1, "tools": mark}));
        let response = place.fill(Response::new(Body::from(event)));
        let body = to_bytes(response.into_body(), usize::MAX).await.expect("a body");
        assert_eq!(body, "data: {\"id\":1,\"tools\":[1.0]}\n\n");
        assert_eq!(awaited.take(Bytes::new()), None, "the response is gone");
    }
}
