//! Streams of Gemini's `streamGenerateContent`. Each call comes whole.

use serde_json::{Value, json};

use super::{End, KEPT_MAX};
use crate::answer::Search;
use crate::gate::Call;
use crate::gemini::{Parts, STOPPED, add, add_said, call_of, message};
use crate::sse;

/// Stream of one turn.
#[derive(Debug, Default)]
pub(crate) struct GeminiStream {
    parts: Parts,
    /// Parts of this answer, as the model wrote them.
    said: Vec<Value>,
    said_bytes: usize,
    /// Calls that the host is to run, as it gets them.
    calls: Vec<Call>,
    /// Event with what stood before the first of them in theirs.
    beside: Option<Value>,
    /// True once the answer came to its end, and was not cut off.
    is_whole: bool,
    /// Event of the end of the answer, which is held while searches wait.
    held: Option<Value>,
    /// ID of the turn's first answer.
    first_id: Option<Value>,
    is_later: bool,
    earlier: Value,
    current: Value,
}

impl GeminiStream {
    pub(super) fn event(&mut self, event: &[u8], out: &mut Vec<u8>) {
        match sse::data(event).and_then(|data| serde_json::from_str::<Value>(&data).ok()) {
            Some(value) if value.is_object() => self.chunk(value, event, out),
            _ => out.extend_from_slice(event),
        }
    }

    fn chunk(&mut self, mut value: Value, event: &[u8], out: &mut Vec<u8>) {
        let before = value.clone();
        self.count(&mut value);
        let mut is_emptied = false;
        let parts = value.pointer_mut("/candidates/0/content/parts").and_then(Value::as_array_mut);
        if let Some(parts) = parts {
            let is_kept = self.said_bytes <= KEPT_MAX;
            if is_kept {
                self.said_bytes += event.len();
                parts.iter().for_each(|part| add_said(&mut self.said, part));
            }
            let count = parts.len();
            let had_calls = self.has_calls();
            parts.retain_mut(|part| self.parts.keep(part));
            is_emptied = parts.is_empty() && count > 0;
            self.calls.extend(parts.iter().filter_map(call_of).filter(|_| is_kept));
            let before = parts.iter().take_while(|part| call_of(part).is_none());
            let before: Vec<Value> = before.filter(|part| part["text"] != "").cloned().collect();
            if self.has_calls() && !had_calls && !before.is_empty() {
                self.beside = Some(amid(&value, before));
            }
        }
        let reason = value["candidates"][0]["finishReason"].as_str().unwrap_or_default();
        if !reason.is_empty() && reason != STOPPED {
            // What was cut off is no search.
            self.parts.asked.searches.clear();
        }
        self.is_whole |= reason == STOPPED;
        let is_end = !reason.is_empty();
        if self.held.is_some() || (is_end && self.is_searching()) {
            self.hold(value, out);
        } else if value == before {
            out.extend_from_slice(event);
        } else if is_end || !is_emptied {
            sse::write(None, &value, out);
        }
    }

    /// Takes the usage of a chunk, and writes that of the turn, and the ID of its first answer.
    fn count(&mut self, value: &mut Value) {
        if value["usageMetadata"].is_object() {
            self.current = value["usageMetadata"].clone();
            if self.is_later {
                value["usageMetadata"] = self.usage();
            }
        }
        let Some(id) = value.get_mut("responseId") else { return };
        match &self.first_id {
            Some(first) if self.is_later => *id = first.clone(),
            Some(_) => {}
            None => self.first_id = Some(id.clone()),
        }
    }

    fn is_searching(&self) -> bool {
        !self.parts.asked.has_calls && !self.parts.asked.searches.is_empty()
    }

    /// Holds an event of the end. Parts that stand in it are written.
    fn hold(&mut self, mut value: Value, out: &mut Vec<u8>) {
        let parts = value.pointer_mut("/candidates/0/content/parts").and_then(Value::as_array_mut);
        let parts = parts.map(std::mem::take).unwrap_or_default();
        if !parts.is_empty() {
            sse::write(None, &amid(&value, parts), out);
        }
        if self.held.is_none() {
            self.held = Some(value);
        }
    }

    /// Returns true if the end of the answer is held.
    pub(super) fn is_holding(&self) -> bool {
        self.held.is_some()
    }

    /// Returns true if the host has got a call in this answer.
    pub(super) fn has_calls(&self) -> bool {
        self.parts.asked.has_calls
    }

    /// Returns the calls of this answer; `None` if they could not be kept, or did not come to their end.
    pub(super) fn calls(&self) -> Option<Vec<Call>> {
        let is_known = self.is_whole && self.said_bytes <= KEPT_MAX;
        is_known.then(|| self.calls.clone())
    }

    /// Takes this answer back from its first call on. Returns what the model said, as messages, and its searches.
    pub(super) fn take_back(&mut self) -> (Vec<Value>, Vec<Search>) {
        let said = std::mem::take(&mut self.said);
        self.said_bytes = 0;
        (vec![message(&said)], std::mem::take(&mut self.parts).asked.searches)
    }

    /// Writes what stood before the first call of an answer that was taken back, in its event.
    pub(super) fn write_said(&mut self, out: &mut Vec<u8>) {
        if let Some(beside) = self.beside.take() {
            sse::write(None, &beside, out);
        }
    }

    pub(super) fn end(&mut self) -> End {
        let said = std::mem::take(&mut self.said);
        let searches: Vec<Search> = std::mem::take(&mut self.parts).asked.searches;
        let is_whole = self.said_bytes <= KEPT_MAX;
        self.said_bytes = 0;
        if self.held.is_none() || !is_whole {
            return End::Done(searches);
        }
        End::Searching(vec![message(&said)], searches)
    }

    pub(super) fn give_up(&mut self, out: &mut Vec<u8>) {
        let Some(mut held) = self.held.take() else { return };
        let usage = self.usage();
        if !usage.is_null() {
            held["usageMetadata"] = usage;
        }
        sse::write(None, &held, out);
    }

    /// Goes on with the next answer of the turn.
    pub(super) fn go_on(&mut self) {
        self.held = None;
        self.calls.clear();
        self.beside = None;
        self.is_whole = false;
        self.earlier = self.usage();
        self.current = json!(null);
        self.is_later = true;
    }

    pub(super) fn usage_of_answer(&self) -> &Value {
        &self.current
    }

    pub(super) fn usage(&self) -> Value {
        let mut usage = self.earlier.clone();
        add(&mut usage, &self.current);
        usage
    }
}

/// Returns an event amid an answer that has these parts, made of one that has more.
fn amid(event: &Value, parts: Vec<Value>) -> Value {
    let mut said = event.clone();
    said["candidates"][0]["content"]["parts"] = parts.into();
    for (at, field) in [("/candidates/0", "finishReason"), ("", "usageMetadata")] {
        if let Some(fields) = said.pointer_mut(at).and_then(Value::as_object_mut) {
            fields.shift_remove(field);
        }
    }
    said
}
