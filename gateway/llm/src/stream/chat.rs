//! Streams of Chat Completions.

use serde_json::{Map, Value, json};
use toolgate_llm::envelope::{NamedCall, is_envelope};

use super::{End, KEPT_MAX, opened};
use crate::answer::{Search, add_usage, is_search};
use crate::gate::Call;
use crate::opener::{Opener, Part};
use crate::sse;

/// Stream of one turn.
#[derive(Debug, Default)]
pub(crate) struct ChatStream {
    /// Calls of this answer, in the order in which they were begun.
    calls: Vec<CallPieces>,
    /// Index of the host's next call.
    next: u64,
    /// Text of this answer.
    text: String,
    /// Thoughts of this answer, which some models want back with its calls.
    reasoning: String,
    /// Bytes of the calls' arguments.
    arguments_bytes: usize,
    has_calls: bool,
    /// Index of the host's call that is the first of this answer.
    first_call: u64,
    /// Events of the end of the answer, which are held while searches wait.
    held: Vec<Value>,
    held_bytes: usize,
    is_finished: bool,
    has_ended: bool,
    /// True if the answer was cut off for its length, so that its last call may be.
    is_cut: bool,
    /// ID of the turn's first answer, once a further one was asked for.
    id: Option<Value>,
    first_id: Value,
    earlier: Value,
    current: Value,
}

/// Call of an answer, as far as it came.
#[derive(Debug)]
struct CallPieces {
    kind: Kind,
    /// Index in the answer.
    index: u64,
    id: String,
    /// True for a call of a custom tool, whose input is a text.
    is_custom: bool,
    /// Fields that the call was begun with, without its index and what is called.
    start: Map<String, Value>,
    name: String,
    /// Arguments as the model wrote them.
    arguments: String,
}

#[derive(Debug)]
enum Kind {
    Through(u64),
    Envelope(Opener, Option<u64>),
    Search,
}

impl ChatStream {
    pub(super) fn event(&mut self, event: &[u8], out: &mut Vec<u8>) {
        let data = sse::data(event);
        if data.as_deref().map(str::trim) == Some("[DONE]") {
            self.has_ended = true;
            if self.held.is_empty() {
                out.extend_from_slice(event);
            }
            return;
        }
        match data.and_then(|data| serde_json::from_str::<Value>(&data).ok()) {
            Some(value) if value.is_object() => self.chunk(value, event, out),
            _ => out.extend_from_slice(event),
        }
    }

    fn chunk(&mut self, mut value: Value, event: &[u8], out: &mut Vec<u8>) {
        let before = value.clone();
        if self.first_id.is_null() {
            self.first_id = value["id"].clone();
        }
        if let Some(id) = &self.id {
            value["id"] = id.clone();
            // It stands in the turn's first event, and clients join texts.
            if let Some(delta) = delta_of(&mut value) {
                delta.shift_remove("role");
            }
        }
        if value["usage"].is_object() {
            self.current = value["usage"].clone();
            value["usage"] = self.usage();
        }
        let choice = &value["choices"][0];
        let delta = &choice["delta"];
        if self.text.len() + self.reasoning.len() <= KEPT_MAX {
            self.text.push_str(delta["content"].as_str().unwrap_or_default());
            self.reasoning.push_str(delta["reasoning_content"].as_str().unwrap_or_default());
        }
        // Some servers write an empty reason until there is one.
        let is_end = choice["finish_reason"].as_str().is_some_and(|reason| !reason.is_empty());
        let mut is_empty = false;
        if let Some(calls) = choice["delta"]["tool_calls"].as_array().cloned() {
            let shown: Vec<Value> = calls.iter().flat_map(|call| self.call(call)).collect();
            is_empty = shown.is_empty();
            set_calls(&mut value, shown);
        }
        if is_end {
            self.is_cut = value["choices"][0]["finish_reason"] == "length";
            self.finish(&value, out);
        }
        let is_held = self.is_holding() || (is_end && self.is_searching());
        if is_held {
            self.hold(value, event.len(), out);
        } else if value == before {
            out.extend_from_slice(event);
        } else if is_end || !is_empty || has_more(&value) {
            sse::write(None, &value, out);
        }
    }

    /// Holds an event of the end, of so many bytes. A text that stands in it is written.
    fn hold(&mut self, mut value: Value, bytes: usize, out: &mut Vec<u8>) {
        let mut said = value.clone();
        if let Some(choice) = said.pointer_mut("/choices/0").and_then(Value::as_object_mut) {
            choice.insert("finish_reason".to_owned(), Value::Null);
        }
        remove_usage(&mut said);
        if let Some(delta) = delta_of(&mut value).filter(|_| has_more(&said)) {
            delta.clear();
            sse::write(None, &said, out);
        }
        // The first one ends the answer.
        if self.held_bytes <= KEPT_MAX {
            self.held_bytes += bytes;
            self.held.push(value);
        }
    }

    /// Takes a piece of a call. Returns what the host gets of it.
    fn call(&mut self, piece: &Value) -> Option<Value> {
        if !piece.is_object() {
            return Some(piece.clone());
        }
        let index = piece["index"].as_u64().unwrap_or_default();
        let is_custom = piece["custom"].is_object();
        let called = if is_custom { &piece["custom"] } else { &piece["function"] };
        let written = if is_custom { &called["input"] } else { &called["arguments"] };
        let written = written.as_str().unwrap_or_default();
        let is_named = called["name"].as_str().is_some_and(|name| !name.is_empty());
        let id = piece["id"].as_str().filter(|id| is_named && !id.is_empty());
        // Some servers give each of several calls the same index.
        let is_same = |call: &CallPieces| call.index == index && id.is_none_or(|id| id == call.id);
        let known = self.calls.iter().rposition(is_same);
        let at = known.unwrap_or(self.calls.len());
        let mut call = match known {
            Some(at) => self.calls.remove(at),
            None => self.begin(index, piece),
        };
        if self.arguments_bytes <= KEPT_MAX {
            self.arguments_bytes += written.len();
            call.arguments.push_str(written);
        }
        let shown = match &mut call.kind {
            Kind::Search => None,
            Kind::Through(to) => {
                let mut piece = piece.clone();
                piece["index"] = (*to).into();
                Some(piece)
            }
            Kind::Envelope(opener, to) => {
                let part = opener.push(written);
                self.shown(part, &call.start, to)
            }
        };
        self.calls.insert(at, call);
        shown
    }

    fn begin(&mut self, index: u64, piece: &Value) -> CallPieces {
        let is_custom = piece["custom"].is_object();
        let called = if is_custom { &piece["custom"] } else { &piece["function"] };
        let name = called["name"].as_str().unwrap_or_default();
        let kind = if !is_custom && is_search(name) {
            Kind::Search
        } else if !is_custom && is_envelope(name) {
            Kind::Envelope(Opener::default(), None)
        } else {
            self.begin_call();
            Kind::Through(self.take_index())
        };
        let id = piece["id"].as_str().unwrap_or_default().to_owned();
        let mut start = piece.as_object().cloned().unwrap_or_default();
        start.shift_remove("function");
        start.shift_remove("custom");
        let name = name.to_owned();
        CallPieces { kind, index, id, is_custom, start, name, arguments: String::new() }
    }

    fn begin_call(&mut self) {
        if !self.has_calls {
            self.first_call = self.next;
        }
        self.has_calls = true;
    }

    fn take_index(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// Returns a part of a call that stood in an envelope, as the host gets it. What else the call was begun with, such as a
    /// signature of the model's thoughts, goes with its name.
    fn shown(
        &mut self,
        part: Part,
        start: &Map<String, Value>,
        to: &mut Option<u64>,
    ) -> Option<Value> {
        let Some(name) = part.name else {
            let index = (*to)?;
            let is_nothing = part.arguments.is_empty();
            let piece = json!({ "index": index, "function": { "arguments": part.arguments } });
            return (!is_nothing).then_some(piece);
        };
        self.begin_call();
        let index = self.take_index();
        *to = Some(index);
        let mut call = Value::Object(start.clone());
        call["index"] = index.into();
        call["function"] = json!({ "name": name, "arguments": part.arguments });
        Some(call)
    }

    /// Opens what is still closed when the answer ends.
    fn finish(&mut self, last: &Value, out: &mut Vec<u8>) {
        self.is_finished = true;
        let mut calls = std::mem::take(&mut self.calls);
        for call in &mut calls {
            let Kind::Envelope(opener, to) = &mut call.kind else { continue };
            let part = opener.end();
            if part.name.as_deref().is_some_and(is_search) {
                call.kind = Kind::Search;
                call.arguments = part.arguments;
            } else if let Some(piece) = self.shown(part, &call.start, to) {
                let mut value = last.clone();
                value["choices"][0]["delta"] = json!({ "tool_calls": [piece] });
                value["choices"][0]["finish_reason"] = Value::Null;
                remove_usage(&mut value);
                sse::write(None, &value, out);
            }
        }
        self.calls = calls;
    }

    fn is_searching(&self) -> bool {
        let is_search = |call: &CallPieces| matches!(call.kind, Kind::Search);
        !self.has_calls && self.calls.iter().any(is_search)
    }

    /// Returns true if the end of the answer is held.
    pub(super) fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    /// Returns true if the last event of this answer came.
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Returns true if the host has got the beginning of a call in this answer.
    pub(super) fn has_calls(&self) -> bool {
        self.has_calls
    }

    /// Returns the calls of this answer; `None` if they could not be kept, or did not come to their end.
    pub(super) fn calls(&self) -> Option<Vec<Call>> {
        let is_whole = (self.is_finished && !self.is_cut) || self.calls.is_empty();
        let is_kept = self.is_kept() && self.arguments_bytes <= KEPT_MAX;
        (is_whole && is_kept).then(|| self.calls.iter().filter_map(CallPieces::shown).collect())
    }

    /// Takes this answer back from its first call on. Returns what the model said, as messages, and its searches.
    pub(super) fn take_back(&mut self) -> (Vec<Value>, Vec<Search>) {
        self.next = self.first_call;
        self.arguments_bytes = 0;
        let calls = std::mem::take(&mut self.calls);
        let written: Vec<Value> = calls.iter().map(CallPieces::said).collect();
        let searches = calls.into_iter().filter(|call| matches!(call.kind, Kind::Search));
        let search = |call: CallPieces| Search { id: call.id, arguments: call.arguments.into() };
        let searches = searches.map(search).collect();
        (vec![self.message(&written)], searches)
    }

    fn is_kept(&self) -> bool {
        self.text.len() + self.reasoning.len() <= KEPT_MAX
    }

    /// Returns what the model said with these calls, as a message.
    fn message(&mut self, calls: &[Value]) -> Value {
        let text = std::mem::take(&mut self.text);
        let reasoning = std::mem::take(&mut self.reasoning);
        let content = if text.is_empty() { Value::Null } else { text.into() };
        let mut said = json!({ "role": "assistant", "content": content, "tool_calls": calls });
        if !reasoning.is_empty() {
            said["reasoning_content"] = reasoning.into();
        }
        said
    }

    pub(super) fn end(&mut self) -> End {
        let is_waiting = self.is_holding() && self.is_kept();
        self.arguments_bytes = 0;
        let mut searches = Vec::new();
        let mut written = Vec::new();
        let calls = std::mem::take(&mut self.calls).into_iter();
        // What did not come to its end is no search.
        for call in calls.filter(|call| self.is_finished && matches!(call.kind, Kind::Search)) {
            written.push(call.said());
            searches.push(Search { id: call.id, arguments: call.arguments.into() });
        }
        let said = self.message(&written);
        if !is_waiting {
            return End::Done(searches);
        }
        End::Searching(vec![said], searches)
    }

    pub(super) fn give_up(&mut self, out: &mut Vec<u8>) {
        let held = std::mem::take(&mut self.held);
        if held.is_empty() {
            return;
        }
        for mut value in held {
            if value["choices"][0]["finish_reason"] == "tool_calls" {
                value["choices"][0]["finish_reason"] = "stop".into();
            }
            sse::write(None, &value, out);
        }
        out.extend_from_slice(b"data: [DONE]\n\n");
    }

    /// Goes on with the next answer of the turn.
    pub(super) fn go_on(&mut self) {
        self.held.clear();
        self.held_bytes = 0;
        self.has_ended = false;
        self.id = Some(self.first_id.clone());
        self.earlier = self.usage();
        self.current = Value::Null;
        self.has_calls = false;
        self.is_finished = false;
    }

    pub(super) fn usage_of_answer(&self) -> &Value {
        &self.current
    }

    pub(super) fn usage(&self) -> Value {
        let mut usage = self.earlier.clone();
        add_usage(&mut usage, &self.current);
        usage
    }
}

impl CallPieces {
    /// Returns the call that the host gets; `None` for a search.
    fn shown(&self) -> Option<Call> {
        let NamedCall { name, arguments_json } = match &self.kind {
            Kind::Through(_) => {
                NamedCall { name: self.name.clone(), arguments_json: self.arguments.clone() }
            }
            Kind::Envelope(..) => opened(&self.arguments),
            Kind::Search => return None,
        };
        Some(Call { id: self.id.clone(), name, arguments: arguments_json })
    }

    /// Returns the call as the model wrote it, to be sent back.
    fn said(&self) -> Value {
        let mut call = self.start.clone();
        call.shift_remove("index");
        let Self { name, arguments, .. } = self;
        if self.is_custom {
            call.insert("custom".to_owned(), json!({ "name": name, "input": arguments }));
        } else {
            call.insert("function".to_owned(), json!({ "name": name, "arguments": arguments }));
        }
        Value::Object(call)
    }
}

fn delta_of(value: &mut Value) -> Option<&mut Map<String, Value>> {
    value.pointer_mut("/choices/0/delta")?.as_object_mut()
}

fn set_calls(value: &mut Value, calls: Vec<Value>) {
    let Some(delta) = delta_of(value) else { return };
    if calls.is_empty() {
        delta.shift_remove("tool_calls");
    } else {
        delta.insert("tool_calls".to_owned(), calls.into());
    }
}

fn remove_usage(value: &mut Value) {
    if let Some(fields) = value.as_object_mut() {
        fields.shift_remove("usage");
    }
}

/// Returns true if a chunk whose calls were taken out says anything else.
fn has_more(value: &Value) -> bool {
    let delta = value["choices"][0]["delta"].as_object();
    let says = |delta: &Map<String, Value>| delta.values().any(|value| !value.is_null());
    delta.is_none_or(says) || value["usage"].is_object()
}
