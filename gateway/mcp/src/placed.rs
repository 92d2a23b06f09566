//! Results that are set into responses as they were written. The protocol library serialises results of its own types, or any
//! JSON as values, which hold not every number: it gets a mark, and the text stands in its place when the response is written.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, OnceLock, Weak};

use axum::body::{Body, Bytes};
use axum::response::Response;
use futures_util::{StreamExt as _, stream};
use parking_lot::Mutex;
use rmcp::model::{ErrorCode, ErrorData};
use serde_json::Value;

use crate::raw::RawObject;

/// Beginning of a mark. No result is a text.
const MARK: &str = "toolgate-result-";

/// Name of an experimental capability in the place of the tasks of 2025-11-25, which the library has no type for.
pub(crate) const TASKS_MARK: &str = "toolgate/tasks-of-2025-11-25";

/// Capability of these tasks.
const TASKS: &[u8] = br#""tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}"#;

/// Hexadecimal digits of a mark.
const MARK_DIGITS: usize = 32;

/// Most bytes of the results that are kept for streams that hosts take up again, and most results.
const RESUMABLE_BYTES: usize = 32 << 20;
const RESUMABLE: usize = 256;

/// Place in a response where a result goes.
pub(crate) struct ResultPlace {
    mark: String,
    text: OnceLock<Vec<Bytes>>,
    resumable: Option<Arc<Resumable>>,
}

/// Place of a result in the response to a request, as the request carries it: gone once the host has left.
#[derive(Clone)]
pub(crate) struct AwaitedResult(Weak<ResultPlace>);

/// Last results of sessions, whose hosts may take up a stream that broke off.
#[derive(Default)]
pub(crate) struct Resumable(Mutex<Sent>);

#[derive(Default)]
struct Sent {
    /// Results by mark, oldest first.
    results: VecDeque<(String, Vec<Bytes>)>,
    bytes: usize,
}

/// Results on their way to a host on standard streams, by mark.
#[derive(Default)]
pub(crate) struct LineResults(Mutex<HashMap<String, Vec<Bytes>>>);

/// Returns a mark that nobody can guess; `None` on a system without random numbers.
fn mark() -> Option<String> {
    let mut random = [0; MARK_DIGITS / 2];
    getrandom::fill(&mut random).ok()?;
    Some(format!("{MARK}{}", hex::encode(random)))
}

/// Returns a result as a value of the protocol library.
///
/// # Errors
/// A number that no value holds.
pub(crate) fn as_value(result: &RawObject) -> Result<Value, ErrorData> {
    result.to_value().ok_or_else(|| {
        let problem = "the result has a number that can't be written here";
        ErrorData::new(ErrorCode::INTERNAL_ERROR, problem, None)
    })
}

impl ResultPlace {
    /// Returns a place; `None` on a system without random numbers. Where the host may take up its stream again, the result is
    /// kept among those of `resumable` as well.
    pub(crate) fn new(resumable: Option<Arc<Resumable>>) -> Option<Arc<Self>> {
        Some(Arc::new(Self { mark: mark()?, text: OnceLock::new(), resumable }))
    }

    pub(crate) fn awaited(self: &Arc<Self>) -> AwaitedResult {
        AwaitedResult(Arc::downgrade(self))
    }

    /// Returns a response with the result in the place of its mark.
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

    /// Returns the parts of a chunk of a response with the result in the place of the mark. The library writes a message as one
    /// chunk.
    fn filled(&self, chunk: Bytes) -> Vec<Bytes> {
        let Some(text) = self.text.get() else { return vec![chunk] };
        let mark = format!("\"{}\"", self.mark);
        match chunk.windows(mark.len()).position(|window| window == mark.as_bytes()) {
            Some(at) => {
                let mut parts = vec![chunk.slice(..at)];
                parts.extend(text.iter().map(one_line));
                parts.push(chunk.slice(at + mark.len()..));
                parts
            }
            None => vec![chunk],
        }
    }
}

/// Returns a message of the library with the capability of tasks in the place of its mark.
pub(crate) fn with_tasks(message: Bytes) -> Bytes {
    let mark = format!("\"experimental\":{{\"{TASKS_MARK}\":{{}}}}");
    let Some(at) = message.windows(mark.len()).position(|window| window == mark.as_bytes()) else {
        return message;
    };
    [&message[..at], TASKS, &message[at + mark.len()..]].concat().into()
}

/// Returns the answer to a handshake with the capability of tasks in the place of its mark.
pub(crate) fn greeting(response: Response) -> Response {
    response.map(|body| {
        let chunks = body.into_data_stream().map(|chunk| chunk.map(with_tasks));
        Body::from_stream(chunks)
    })
}

/// Returns a part of a JSON text without ends of lines, which would end an event of a stream: between values they mean
/// nothing, and within texts they are escapes.
fn one_line(part: &Bytes) -> Bytes {
    if !part.contains(&b'\n') && !part.contains(&b'\r') {
        return part.clone();
    }
    let space = |byte: &u8| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte };
    part.iter().map(space).collect()
}

impl AwaitedResult {
    /// Takes the result, and returns the mark to serialise in its place.
    ///
    /// # Errors
    /// The result, if the response is gone: whoever takes it up again needs the result itself.
    pub(crate) fn take(&self, result: RawObject) -> Result<Value, RawObject> {
        let Some(place) = self.0.upgrade().filter(|place| place.text.get().is_none()) else {
            return Err(result);
        };
        let text = result.into_chunks();
        if let Some(resumable) = &place.resumable {
            resumable.keep(&place.mark, text.clone());
        }
        // Nobody else takes it: a request has one result.
        let _taken = place.text.set(text);
        Ok(Value::from(place.mark.as_str()))
    }
}

impl Resumable {
    fn keep(&self, mark: &str, text: Vec<Bytes>) {
        let size = |text: &[Bytes]| text.iter().map(Bytes::len).sum::<usize>();
        let mut sent = self.0.lock();
        sent.bytes += size(&text);
        sent.results.push_back((mark.to_owned(), text));
        while sent.bytes > RESUMABLE_BYTES || sent.results.len() > RESUMABLE {
            let Some((_, oldest)) = sent.results.pop_front() else { return };
            sent.bytes -= size(&oldest);
        }
    }

    /// Returns the result that stood in the place of a mark; `None` if it is not kept any more.
    pub(crate) fn result(&self, mark: &str) -> Option<Value> {
        let sent = self.0.lock();
        let (_, text) = sent.results.iter().find(|(kept, _)| kept == mark)?;
        let text = text.concat();
        drop(sent);
        serde_json::from_slice(&text).ok()
    }
}

impl LineResults {
    /// Takes a result, and returns the mark to serialise in its place.
    ///
    /// # Errors
    /// The result, on a system without random numbers.
    pub(crate) fn take(&self, result: RawObject) -> Result<Value, RawObject> {
        let Some(mark) = mark() else { return Err(result) };
        self.0.lock().insert(mark.clone(), result.into_chunks());
        Ok(Value::from(mark))
    }

    /// Returns the parts of a line with the result in the place of its mark.
    pub(crate) fn filled(&self, line: String) -> Vec<Bytes> {
        let start = line.find(&format!("\"{MARK}"));
        let place = start.map(|start| start..start + MARK.len() + MARK_DIGITS + 2);
        let found = place.and_then(|place| {
            let mark = line.get(place.start + 1..place.end - 1)?;
            Some((place, self.0.lock().remove(mark)?))
        });
        let line = Bytes::from(line);
        match found {
            Some((place, text)) => {
                let mut parts = vec![line.slice(..place.start)];
                parts.extend(text.iter().map(one_line));
                parts.push(line.slice(place.end..));
                parts
            }
            None => vec![with_tasks(line)],
        }
    }
}

/// Returns the mark that stands in the place of a result, if one does.
pub(crate) fn marked(result: &Value) -> Option<&str> {
    result.as_str().filter(|text| text.starts_with(MARK))
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;
    use serde_json::json;

    use super::*;

    fn result(text: &str) -> RawObject {
        RawObject::parse(text.to_owned()).expect("an object")
    }

    #[tokio::test]
    async fn the_text_stands_in_the_place_of_its_mark() {
        let place = ResultPlace::new(None).expect("random numbers");
        let awaited = place.awaited();
        let mark = awaited.take(result("{\"a\":\n1e400}")).expect("a mark");
        assert!(marked(&mark).is_some() && marked(&json!("text")).is_none());
        assert!(awaited.take(result("{}")).is_err(), "it is taken once");
        let event = format!("data: {}\n\n", json!({"id": 1, "result": mark}));
        let response = place.fill(Response::new(Body::from(event)));
        let body = to_bytes(response.into_body(), usize::MAX).await.expect("a body");
        assert_eq!(body, "data: {\"id\":1,\"result\":{\"a\": 1e400}}\n\n");
        assert!(awaited.take(result("{}")).is_err(), "the response is gone");
    }

    #[test]
    fn tasks_stand_in_the_place_of_their_mark() {
        let marked = json!({"experimental": {TASKS_MARK: {}}, "tools": {}});
        let capabilities: rmcp::model::ServerCapabilities =
            serde_json::from_value(marked).expect("capabilities");
        let told = json!({"capabilities": capabilities, "instructions": TASKS_MARK}).to_string();
        let told: Value = serde_json::from_slice(&with_tasks(told.into())).expect("JSON");
        let tasks = json!({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}});
        assert_eq!(told["capabilities"], json!({"tools": {}, "tasks": tasks}));
        assert_eq!(told["instructions"], TASKS_MARK);
        let quoted = json!(format!("\"experimental\":{{\"{TASKS_MARK}\":{{}}}}")).to_string();
        assert_eq!(with_tasks(quoted.clone().into()), quoted, "a text of a server");
    }

    #[test]
    fn results_of_sessions_are_there_for_streams_that_are_taken_up_again() {
        let resumable = Arc::new(Resumable::default());
        let send = |text: &str| {
            let place = ResultPlace::new(Some(Arc::clone(&resumable))).expect("random numbers");
            let mark = place.awaited().take(result(text)).expect("a mark");
            mark.as_str().expect("a text").to_owned()
        };
        let first = send("{\"a\":1}");
        assert_eq!(resumable.result(&first), Some(json!({"a": 1})));
        for _ in 0..RESUMABLE {
            send("{}");
        }
        assert_eq!(resumable.result(&first), None, "the oldest leave");
        let large = send(&json!({"a": "x".repeat(RESUMABLE_BYTES)}).to_string());
        assert_eq!(resumable.result(&large), None);
        assert_eq!(resumable.0.lock().bytes, 0);
    }

    #[test]
    fn lines_have_results_in_the_places_of_their_marks() {
        let lines = LineResults::default();
        let mark = lines.take(result("{\"a\": 1e400}")).expect("a mark");
        let line = json!({"id": 1, "result": mark}).to_string();
        let written = |line: String| String::from_utf8(lines.filled(line).concat()).expect("text");
        assert_eq!(written(line.clone()), "{\"id\":1,\"result\":{\"a\": 1e400}}");
        assert_eq!(written(line.clone()), line, "it is gone");
        let greeting = format!("{{\"experimental\":{{\"{TASKS_MARK}\":{{}}}}}}");
        assert!(written(greeting).starts_with("{\"tasks\":{"));
        for other in ["{}", "\"toolgate-result-", "\"toolgate-result-ä"] {
            assert_eq!(written(other.to_owned()), other);
        }
    }
}
