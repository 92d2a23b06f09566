//! Streams of Anthropic's Messages.

use std::collections::HashMap;

use serde_json::{Value, json};
use toolgate_llm::envelope::{NamedCall, is_envelope};

use super::{End, KEPT_MAX, opened};
use crate::answer::{Search, add_usage, is_search};
use crate::gate::Call;
use crate::opener::{Opener, Part};
use crate::sse;

/// Stream of one turn.
#[derive(Debug, Default)]
pub(crate) struct AnthropicStream {
    /// Blocks of this answer that are open, by their index in it; `None` is one without a valid index.
    blocks: HashMap<Option<u64>, Block>,
    /// Index of the host's next block.
    next: u64,
    /// Content of this answer, as the model wrote it.
    said: Vec<Value>,
    said_bytes: usize,
    searches: Vec<Search>,
    /// Calls that the host is to run, as it gets them.
    calls: Vec<Call>,
    has_calls: bool,
    /// Index of the host's block that is the first of these calls.
    first_call: u64,
    /// True if the answer was cut off for its length, so that its last call may be.
    is_cut: bool,
    /// End of the answer, which is held while searches wait.
    held: Option<Value>,
    has_ended: bool,
    is_begun: bool,
    /// Usage of earlier answers of the turn.
    earlier: Value,
    /// Usage of this answer.
    current: Value,
}

#[derive(Debug)]
struct Block {
    kind: Kind,
    /// The block as it was begun.
    start: Value,
    /// Text of its deltas.
    text: String,
    /// Signature of its thoughts.
    signature: String,
}

#[derive(Debug)]
enum Kind {
    /// Goes to the host under this index.
    Through(u64),
    /// Its call goes to the host under this index, once its name is known.
    Envelope(Opener, Option<u64>),
    /// Is answered here.
    Search,
}

impl AnthropicStream {
    pub(super) fn event(&mut self, event: &[u8], out: &mut Vec<u8>) {
        let value = sse::data(event).and_then(|data| serde_json::from_str::<Value>(&data).ok());
        let Some(mut value) = value else {
            out.extend_from_slice(event);
            return;
        };
        match value["type"].as_str().unwrap_or_default() {
            "message_start" => {
                self.current = value["message"]["usage"].clone();
                if !self.is_begun {
                    out.extend_from_slice(event);
                }
                self.is_begun = true;
            }
            "content_block_start" => self.start(&mut value, event, out),
            "content_block_delta" => self.delta(&mut value, event, out),
            "content_block_stop" => self.stop(&mut value, event, out),
            "message_delta" => self.message_delta(value, event, out),
            "message_stop" => {
                self.has_ended = true;
                if self.held.is_none() {
                    out.extend_from_slice(event);
                }
            }
            _ => out.extend_from_slice(event),
        }
    }

    fn start(&mut self, value: &mut Value, event: &[u8], out: &mut Vec<u8>) {
        let index = value["index"].as_u64();
        let start = value["content_block"].clone();
        let name = start["name"].as_str().unwrap_or_default();
        let is_call = start["type"] == "tool_use";
        let kind = if is_call && is_search(name) {
            Kind::Search
        } else if is_call && is_envelope(name) {
            Kind::Envelope(Opener::default(), None)
        } else {
            if is_call {
                self.begin_call();
            }
            Kind::Through(self.take_index())
        };
        if let Kind::Through(to) = kind {
            renumbered(value, to, event, out);
        }
        let mut block = Block { kind, start, text: String::new(), signature: String::new() };
        if !matches!(block.kind, Kind::Through(_)) {
            block.text = take_input(&mut block.start);
        }
        if let Kind::Envelope(opener, to) = &mut block.kind {
            let part = opener.push(&block.text);
            *to = self.write_part(part, &block.start, None, out);
        }
        self.blocks.insert(index, block);
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

    fn delta(&mut self, value: &mut Value, event: &[u8], out: &mut Vec<u8>) {
        let index = value["index"].as_u64();
        let Some(mut block) = self.blocks.remove(&index) else {
            out.extend_from_slice(event);
            return;
        };
        let delta = &value["delta"];
        let texts = ["text", "thinking", "partial_json"];
        let piece = texts.iter().find_map(|name| delta[*name].as_str()).unwrap_or_default();
        if self.said_bytes <= KEPT_MAX {
            self.said_bytes += piece.len();
            block.text.push_str(piece);
            block.signature.push_str(delta["signature"].as_str().unwrap_or_default());
        }
        match &mut block.kind {
            Kind::Through(to) => renumbered(value, *to, event, out),
            Kind::Envelope(opener, to) => {
                let part = opener.push(piece);
                *to = self.write_part(part, &block.start, *to, out);
            }
            Kind::Search => {}
        }
        self.blocks.insert(index, block);
    }

    /// Writes a part of a call that stood in an envelope. Returns the index of its block.
    fn write_part(
        &mut self,
        part: Part,
        start: &Value,
        to: Option<u64>,
        out: &mut Vec<u8>,
    ) -> Option<u64> {
        let mut index = to;
        if let Some(name) = part.name {
            self.begin_call();
            let to = self.take_index();
            index = Some(to);
            let mut block = start.clone();
            block["name"] = name.into();
            let begun =
                json!({ "type": "content_block_start", "index": to, "content_block": block });
            sse::write(Some("content_block_start"), &begun, out);
        }
        if let (Some(to), false) = (index, part.arguments.is_empty()) {
            let delta = json!({ "type": "content_block_delta", "index": to,
                "delta": { "type": "input_json_delta", "partial_json": part.arguments } });
            sse::write(Some("content_block_delta"), &delta, out);
        }
        index
    }

    fn stop(&mut self, value: &mut Value, event: &[u8], out: &mut Vec<u8>) {
        let index = value["index"].as_u64();
        let Some(mut block) = self.blocks.remove(&index) else {
            out.extend_from_slice(event);
            return;
        };
        let id = block.start["id"].as_str().unwrap_or_default().to_owned();
        self.calls.extend(block.call(&id));
        match &mut block.kind {
            Kind::Through(to) => renumbered(value, *to, event, out),
            Kind::Search => self.searches.push(Search { id, arguments: block.text.clone().into() }),
            Kind::Envelope(opener, to) => {
                let part = opener.end();
                if part.name.as_deref().is_some_and(is_search) {
                    self.searches.push(Search { id, arguments: part.arguments.into() });
                } else {
                    let to = self.write_part(part, &block.start, *to, out);
                    let stop = json!({ "type": "content_block_stop", "index": to });
                    sse::write(Some("content_block_stop"), &stop, out);
                }
            }
        }
        self.said.push(block.said());
    }

    fn message_delta(&mut self, mut value: Value, event: &[u8], out: &mut Vec<u8>) {
        match (&mut self.current, &value["usage"]) {
            // These are sums already.
            (Value::Object(total), Value::Object(more)) => total.extend(more.clone()),
            (current, Value::Object(more)) => *current = more.clone().into(),
            _ => {}
        }
        self.is_cut = value["delta"]["stop_reason"] == "max_tokens";
        if !self.searches.is_empty() && !self.has_calls {
            self.held = Some(value);
        } else if self.earlier.is_null() {
            out.extend_from_slice(event);
        } else {
            value["usage"] = self.usage();
            sse::write(Some("message_delta"), &value, out);
        }
    }

    /// Returns true if the end of the answer is held.
    pub(super) fn is_holding(&self) -> bool {
        self.held.is_some()
    }

    /// Returns true if the last event of this answer came.
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Returns true if the host has got the beginning of a call in this answer.
    pub(super) fn has_calls(&self) -> bool {
        self.has_calls
    }

    /// Returns the calls of this answer; `None` if they could not be kept, or were cut off.
    pub(super) fn calls(&self) -> Option<Vec<Call>> {
        let is_whole = !self.is_cut && self.said_bytes <= KEPT_MAX;
        is_whole.then(|| self.calls.clone())
    }

    /// Takes this answer back from its first call on. Returns what the model said, as messages, and its searches.
    pub(super) fn take_back(&mut self) -> (Vec<Value>, Vec<Search>) {
        let said = std::mem::take(&mut self.said);
        self.next = self.first_call;
        self.calls.clear();
        self.blocks.clear();
        self.said_bytes = 0;
        let said = json!({ "role": "assistant", "content": said });
        (vec![said], std::mem::take(&mut self.searches))
    }

    pub(super) fn end(&mut self) -> End {
        let said = std::mem::take(&mut self.said);
        let searches = std::mem::take(&mut self.searches);
        let is_whole = self.said_bytes <= KEPT_MAX;
        self.calls.clear();
        self.blocks.clear();
        self.said_bytes = 0;
        if self.held.is_none() || !is_whole {
            return End::Done(searches);
        }
        End::Searching(vec![json!({ "role": "assistant", "content": said })], searches)
    }

    pub(super) fn give_up(&mut self, out: &mut Vec<u8>) {
        let Some(mut held) = self.held.take() else { return };
        if held["delta"]["stop_reason"] == "tool_use" {
            held["delta"]["stop_reason"] = "end_turn".into();
        }
        held["usage"] = self.usage();
        sse::write(Some("message_delta"), &held, out);
        sse::write(Some("message_stop"), &json!({ "type": "message_stop" }), out);
    }

    /// Goes on with the next answer of the turn.
    pub(super) fn go_on(&mut self) {
        self.held = None;
        self.has_ended = false;
        self.earlier = self.usage();
        self.current = Value::Null;
        self.has_calls = false;
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

impl Block {
    /// Returns the call that the host gets of a block that has ended.
    fn call(&self, id: &str) -> Option<Call> {
        let written = || {
            let is_begun = self.text.is_empty();
            if is_begun { self.start["input"].to_string() } else { self.text.clone() }
        };
        let called = match &self.kind {
            Kind::Through(_) if self.start["type"] == "tool_use" => {
                let name = self.start["name"].as_str().unwrap_or_default().to_owned();
                NamedCall { name, arguments_json: written() }
            }
            Kind::Envelope(..) => opened(&self.text),
            Kind::Through(_) | Kind::Search => return None,
        };
        let is_search = is_search(&called.name);
        let call = Call { id: id.to_owned(), name: called.name, arguments: called.arguments_json };
        (!is_search).then_some(call)
    }

    /// Returns the block as the model wrote it, to be sent back.
    fn said(self) -> Value {
        let mut block = self.start;
        match block["type"].as_str().unwrap_or_default() {
            "text" => block["text"] = begun(&block["text"], &self.text),
            "thinking" => {
                block["thinking"] = begun(&block["thinking"], &self.text);
                block["signature"] = begun(&block["signature"], &self.signature);
            }
            "tool_use" | "server_tool_use" | "mcp_tool_use" if !self.text.is_empty() => {
                block["input"] = serde_json::from_str(&self.text).unwrap_or_else(|_| json!({}));
            }
            _ => {}
        }
        block
    }
}

/// Takes the arguments that a call was begun with. Some servers send them whole, without deltas.
fn take_input(start: &mut Value) -> String {
    let input = start.get_mut("input").and_then(Value::as_object_mut);
    let input = input.map(std::mem::take).filter(|input| !input.is_empty());
    input.map(|input| Value::Object(input).to_string()).unwrap_or_default()
}

/// Returns a text that a block was begun with, and what came of it.
fn begun(start: &Value, rest: &str) -> Value {
    format!("{}{rest}", start.as_str().unwrap_or_default()).into()
}

/// Writes an event under another index; with its bytes if that is the same.
fn renumbered(value: &mut Value, to: u64, event: &[u8], out: &mut Vec<u8>) {
    if value["index"] == to {
        out.extend_from_slice(event);
        return;
    }
    value["index"] = to.into();
    let name = value["type"].as_str().map(str::to_owned);
    sse::write(name.as_deref(), value, out);
}
