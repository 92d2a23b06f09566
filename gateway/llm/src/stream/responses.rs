//! Streams of OpenAI's Responses.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_llm::envelope::is_envelope;

use super::{End, KEPT_MAX};
use crate::answer::{Search, add_usage, is_search};
use crate::gate::Call;
use crate::opener::{Opener, Part};
use crate::responses::{
    call_in, call_of, failure, is_answerable, is_hosts, open_output, put, put_tools, remove_lone,
    search_in, split_name,
};
use crate::sse;
use crate::toolset::Names;

/// Stream of one turn.
#[derive(Debug, Default)]
pub(crate) struct ResponsesStream {
    names: Names,
    /// Text of the tools that the answers tell the host.
    tools: Option<Arc<str>>,
    /// Items of this answer that are open, by their index in it; `None` is one without a valid index.
    items: HashMap<Option<u64>, Item>,
    /// Index of the host's next item.
    next: u64,
    numbers: Numbers,
    /// Output of this answer, as the model wrote it.
    said: Vec<Value>,
    said_bytes: usize,
    searches: Vec<Search>,
    has_calls: bool,
    /// Calls that the host is to run and that a text answers, as the host gets them.
    calls: Vec<Call>,
    /// True if the host is to run a call that no text answers.
    has_others: bool,
    /// Items of this answer that the host got whole before the first call.
    passed: Vec<Value>,
    /// Place of the first call.
    first_call: Place,
    /// True once the answer came to its end, and was not cut off.
    is_whole: bool,
    /// End of the answer, which is held while searches wait.
    held: Option<Value>,
    has_ended: bool,
    /// Response as the turn's first event has it, with the tools that the provider was sent: the host's may be large.
    begun: Value,
    /// IDs of the turn's answers that have ended.
    ids: Vec<String>,
    /// Output of earlier answers of the turn, as the host sees it.
    shown: Vec<Value>,
    is_later: bool,
    earlier: Value,
    current: Value,
}

/// Place in what the host gets.
#[derive(Debug, Default, Clone, Copy)]
struct Place {
    /// Index of the next item.
    next: u64,
    /// Number of the last event.
    number: Option<u64>,
}

/// Numbers of events, which have no gaps.
#[derive(Debug, Default)]
struct Numbers {
    last: Option<u64>,
    /// True once the host's events are not the provider's any more.
    are_own: bool,
}

#[derive(Debug)]
enum Item {
    /// Goes to the host under this index.
    Through(u64),
    /// Its call goes to the host once its name is known.
    Envelope(Box<Envelope>),
    /// Is answered here.
    Search,
}

#[derive(Debug)]
struct Envelope {
    /// The item as it was begun.
    start: Value,
    opener: Opener,
    /// True if pieces of the arguments came.
    is_read: bool,
    is_ended: bool,
    /// Index that the call has for the host.
    to: Option<u64>,
}

impl ResponsesStream {
    /// Sets the names of tools in namespaces.
    pub(super) fn name(&mut self, names: Names) {
        self.names = names;
    }

    /// Sets the text of the tools that the answers tell the host.
    pub(super) fn show(&mut self, tools: Arc<str>) {
        self.tools = Some(tools);
    }

    /// Puts the host's tools into a response. Returns false if nothing changes.
    fn put_tools(&self, response: &mut Value) -> bool {
        self.tools.as_deref().is_some_and(|tools| put_tools(response, tools))
    }

    pub(super) fn event(&mut self, event: &[u8], out: &mut Vec<u8>) {
        let value = sse::data(event).and_then(|data| serde_json::from_str::<Value>(&data).ok());
        let Some(value) = value.filter(Value::is_object) else {
            if self.held.is_none() {
                out.extend_from_slice(event);
            }
            return;
        };
        match value["type"].as_str().unwrap_or_default() {
            "response.created" | "response.queued" | "response.in_progress" => {
                self.begin(value, event, out);
            }
            "response.output_item.added" => self.added(value, event, out),
            "response.output_item.done" => self.done(value, event, out),
            "response.function_call_arguments.delta" => self.delta(value, event, out),
            "response.function_call_arguments.done" => self.arguments(value, event, out),
            "response.completed" | "response.incomplete" | "response.failed" => {
                self.ended(value, event, out);
            }
            _ => self.through(value, event, out),
        }
    }

    fn begin(&mut self, mut value: Value, event: &[u8], out: &mut Vec<u8>) {
        if self.is_later {
            return;
        }
        if self.begun.is_null() {
            self.begun = value["response"].clone();
        }
        let response = value.get_mut("response");
        let is_changed = response.is_some_and(|response| self.put_tools(response));
        self.numbers.write(value, Some(event).filter(|_| !is_changed), out);
    }

    /// Returns how an item goes on. What is no function goes through.
    fn open(&mut self, item: &Value) -> Item {
        let name = item["name"].as_str().unwrap_or_default();
        let is_call = item["type"] == "function_call";
        if (is_call && is_search(name)) || search_in(item).is_some() {
            self.numbers.are_own = true;
            return Item::Search;
        }
        if is_call && is_envelope(name) {
            self.numbers.are_own = true;
            let envelope = Envelope {
                start: item.clone(),
                opener: Opener::default(),
                is_read: false,
                is_ended: false,
                to: None,
            };
            return Item::Envelope(Box::new(envelope));
        }
        if is_hosts(item) {
            self.has_others |= !is_answerable(item);
            self.begin_call();
        }
        Item::Through(self.take_index())
    }

    fn begin_call(&mut self) {
        if !self.has_calls {
            self.first_call = Place { next: self.next, number: self.numbers.last };
        }
        self.has_calls = true;
    }

    fn take_index(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    fn added(&mut self, mut value: Value, event: &[u8], out: &mut Vec<u8>) {
        let index = value["output_index"].as_u64();
        let item = self.open(&value["item"]);
        if let Item::Through(to) = item {
            let is_same = !split_name(&mut value["item"], &self.names);
            self.renumbered(value, to, is_same.then_some(event), out);
        }
        self.items.insert(index, item);
    }

    /// Hands on an event of an item that goes through, or of none.
    fn through(&mut self, value: Value, event: &[u8], out: &mut Vec<u8>) {
        let index = value["output_index"].as_u64();
        // Events of no item have no index.
        match index.and_then(|index| self.items.get(&Some(index))) {
            None => self.numbers.write(value, Some(event), out),
            Some(Item::Through(to)) => {
                let to = *to;
                self.renumbered(value, to, Some(event), out);
            }
            Some(Item::Envelope(_) | Item::Search) => {}
        }
    }

    /// Writes an event under another index of its item; with its bytes if they are given and the index is the same.
    fn renumbered(&mut self, mut value: Value, to: u64, event: Option<&[u8]>, out: &mut Vec<u8>) {
        let is_same = value["output_index"] == to;
        if !is_same {
            value["output_index"] = to.into();
        }
        self.numbers.write(value, event.filter(|_| is_same), out);
    }

    fn delta(&mut self, value: Value, event: &[u8], out: &mut Vec<u8>) {
        let index = value["output_index"].as_u64();
        let Some(Item::Envelope(mut envelope)) = self.take_envelope(index) else {
            self.through(value, event, out);
            return;
        };
        if !envelope.is_ended {
            envelope.is_read = true;
            let part = envelope.opener.push(value["delta"].as_str().unwrap_or_default());
            self.write_part(&part, &mut envelope, out);
        }
        self.items.insert(index, Item::Envelope(envelope));
    }

    fn take_envelope(&mut self, index: Option<u64>) -> Option<Item> {
        let is_envelope = matches!(self.items.get(&index), Some(Item::Envelope(_)));
        if is_envelope { self.items.remove(&index) } else { None }
    }

    /// Writes a part of a call that stood in an envelope.
    fn write_part(&mut self, part: &Part, envelope: &mut Envelope, out: &mut Vec<u8>) {
        if let Some(name) = &part.name {
            self.begin_call();
            let to = self.take_index();
            envelope.to = Some(to);
            let mut item = envelope.start.clone();
            put(&mut item, name, "", &self.names);
            let begun =
                json!({ "type": "response.output_item.added", "output_index": to, "item": item });
            self.numbers.add(begun, out);
        }
        if let Some(to) = envelope.to
            && !part.arguments.is_empty()
        {
            let delta = json!({ "type": "response.function_call_arguments.delta",
                "item_id": envelope.start["id"], "output_index": to, "delta": part.arguments });
            self.numbers.add(delta, out);
        }
    }

    /// Ends the call in an envelope, whose whole arguments are known. Returns it unless it is a search.
    fn finish(
        &mut self,
        envelope: &mut Envelope,
        whole: &str,
        out: &mut Vec<u8>,
    ) -> Result<Part, Search> {
        let call = call_in(whole);
        if call.name.as_deref().is_some_and(is_search) {
            let id = envelope.start["call_id"].as_str().unwrap_or_default().to_owned();
            return Err(Search { id, arguments: call.arguments.into() });
        }
        if !envelope.is_ended {
            envelope.is_ended = true;
            let rest = if envelope.is_read {
                envelope.opener.end()
            } else {
                Part { name: call.name.clone(), arguments: call.arguments.clone() }
            };
            self.write_part(&rest, envelope, out);
        }
        Ok(call)
    }

    fn arguments(&mut self, mut value: Value, event: &[u8], out: &mut Vec<u8>) {
        let index = value["output_index"].as_u64();
        let Some(Item::Envelope(mut envelope)) = self.take_envelope(index) else {
            self.plain_arguments(value, event, out);
            return;
        };
        let whole = value["arguments"].as_str().unwrap_or_default().to_owned();
        let finished = self.finish(&mut envelope, &whole, out);
        // A search is noted when its item is done.
        if let Ok(call) = finished
            && let Some(to) = envelope.to
        {
            let mut named = json!({});
            put(&mut named, call.name.as_deref().unwrap_or_default(), "", &self.names);
            if value.get("name").is_some() {
                value["name"] = named["name"].take();
            }
            value["arguments"] = call.arguments.into();
            value["output_index"] = to.into();
            self.numbers.write(value, None, out);
        }
        self.items.insert(index, Item::Envelope(envelope));
    }

    /// Hands on the arguments of a plain call, beside which newer answers have its name.
    fn plain_arguments(&mut self, mut value: Value, event: &[u8], out: &mut Vec<u8>) {
        let index = value["output_index"].as_u64();
        let own = value["name"].as_str().and_then(|name| self.names.get(name));
        let to = match self.items.get(&index) {
            Some(Item::Through(to)) => Some(*to),
            _ => None,
        };
        let Some(own) = own else { return self.through(value, event, out) };
        let Some(to) = to else { return self.through(value, event, out) };
        value["name"] = own.name.as_str().into();
        self.renumbered(value, to, None, out);
    }

    fn done(&mut self, mut value: Value, event: &[u8], out: &mut Vec<u8>) {
        let index = value["output_index"].as_u64();
        let item = value["item"].clone();
        let is_kept = self.said_bytes <= KEPT_MAX;
        if is_kept {
            self.said_bytes += event.len();
            self.said.push(item.clone());
        }
        let arguments = item["arguments"].as_str().unwrap_or_default();
        // Some servers send no beginning.
        let opened = self.items.remove(&index).unwrap_or_else(|| self.open(&item));
        match opened {
            Item::Through(to) => {
                self.calls.extend(call_of(&item).filter(|_| is_kept));
                if is_kept && !self.has_calls {
                    self.passed.push(item);
                }
                let is_same = !split_name(&mut value["item"], &self.names);
                self.renumbered(value, to, is_same.then_some(event), out);
            }
            Item::Search => {
                let id = item["call_id"].as_str().unwrap_or_default().to_owned();
                let search = Search { id, arguments: arguments.into() };
                self.note(&item, search_in(&item).unwrap_or(search));
            }
            Item::Envelope(mut envelope) => match self.finish(&mut envelope, arguments, out) {
                Err(search) => self.note(&item, search),
                Ok(_) if !item.is_object() => {}
                Ok(call) => {
                    let name = call.name.unwrap_or_default();
                    let id = item["call_id"].as_str().unwrap_or_default().to_owned();
                    let arguments = call.arguments.clone();
                    let shown = Call { id, name: name.clone(), arguments };
                    self.calls.extend(Some(shown).filter(|_| is_kept));
                    put(&mut value["item"], &name, &call.arguments, &self.names);
                    value["output_index"] = envelope.to.into();
                    self.numbers.write(value, None, out);
                }
            },
        }
    }

    /// Notes a search that came whole.
    fn note(&mut self, item: &Value, search: Search) {
        if item["status"] != "incomplete" {
            self.searches.push(search);
        }
    }

    fn ended(&mut self, value: Value, event: &[u8], out: &mut Vec<u8>) {
        self.has_ended = true;
        let response = &value["response"];
        if response["usage"].is_object() {
            self.current = response["usage"].clone();
        }
        self.ids.extend(response["id"].as_str().map(str::to_owned));
        self.is_whole = value["type"] == "response.completed";
        if self.is_whole && !self.searches.is_empty() && !self.has_calls {
            self.held = Some(value);
            return;
        }
        let mut settled = value.clone();
        self.settle(&mut settled["response"]);
        let is_same = settled == value;
        self.numbers.write(settled, is_same.then_some(event), out);
    }

    /// Writes a response as the host sees it: of the whole turn, with plain calls, and its own tools.
    fn settle(&self, response: &mut Value) {
        self.put_tools(response);
        if let Some(output) = response.get_mut("output").and_then(Value::as_array_mut) {
            open_output(output, &self.names);
            output.splice(0..0, self.shown.iter().cloned());
        }
        if self.is_later && response.is_object() {
            response["id"] = self.begun["id"].clone();
            response["usage"] = self.usage();
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

    /// Returns the calls of this answer that a text answers; `None` if they could not be kept, or did not come to their end.
    pub(super) fn calls(&self) -> Option<Vec<Call>> {
        let is_known = self.is_whole && self.said_bytes <= KEPT_MAX;
        is_known.then(|| self.calls.clone())
    }

    /// Returns true if a text answers each call of this answer.
    pub(super) fn is_answerable(&self) -> bool {
        !self.has_others
    }

    /// Returns the output of this answer, as the model wrote it.
    pub(super) fn said(&self) -> &[Value] {
        &self.said
    }

    /// Returns the searches of this answer.
    pub(super) fn searches(&self) -> &[Search] {
        &self.searches
    }

    /// Takes this answer back from its first call on. Returns what the model said, as items, and its searches.
    pub(super) fn take_back(&mut self) -> (Vec<Value>, Vec<Search>) {
        let mut passed = std::mem::take(&mut self.passed);
        // They led to the calls alone.
        remove_lone(&mut passed);
        self.shown.extend(passed);
        self.next = self.first_call.next;
        self.numbers.last = self.first_call.number;
        self.items.clear();
        self.said_bytes = 0;
        (std::mem::take(&mut self.said), std::mem::take(&mut self.searches))
    }

    pub(super) fn end(&mut self) -> End {
        let said = std::mem::take(&mut self.said);
        let searches = std::mem::take(&mut self.searches);
        let is_whole = self.said_bytes <= KEPT_MAX;
        self.items.clear();
        self.said_bytes = 0;
        if self.held.is_none() || !is_whole {
            return End::Done(searches);
        }
        End::Searching(said, searches)
    }

    pub(super) fn give_up(&mut self, out: &mut Vec<u8>) {
        let Some(mut held) = self.held.take() else { return };
        self.settle(&mut held["response"]);
        self.numbers.write(held, None, out);
    }

    /// Goes on with the next answer of the turn.
    pub(super) fn go_on(&mut self) {
        if let Some(mut held) = self.held.take() {
            self.settle(&mut held["response"]);
            if let Some(Value::Array(output)) = held["response"].get_mut("output").map(Value::take)
            {
                self.shown = output;
            }
        }
        self.earlier = self.usage();
        self.current = Value::Null;
        self.has_calls = false;
        self.calls.clear();
        self.has_others = false;
        self.passed.clear();
        self.is_whole = false;
        self.has_ended = false;
        self.is_later = true;
        self.numbers.are_own = true;
    }

    pub(super) fn usage_of_answer(&self) -> &Value {
        &self.current
    }

    pub(super) fn usage(&self) -> Value {
        let mut usage = self.earlier.clone();
        add_usage(&mut usage, &self.current);
        usage
    }

    /// Returns the IDs of the turn's answers that have ended, in their order.
    pub(super) fn ids(&self) -> &[String] {
        &self.ids
    }

    /// Writes an error that ends the turn.
    pub(super) fn fail(&self, error: &Value, out: &mut Vec<u8>) {
        let mut event = failure(&self.begun, error);
        self.put_tools(&mut event["response"]);
        if let Some(last) = self.numbers.last {
            event["sequence_number"] = (last + 1).into();
        }
        sse::write(Some("response.failed"), &event, out);
    }
}

impl Numbers {
    /// Writes an event that the provider has not sent.
    fn add(&mut self, mut value: Value, out: &mut Vec<u8>) {
        self.are_own = true;
        if self.last.is_some() {
            value["sequence_number"] = 0.into();
        }
        self.write(value, None, out);
    }

    /// Writes an event under the next number; with its bytes if they are given and the number is the same.
    fn write(&mut self, mut value: Value, event: Option<&[u8]>, out: &mut Vec<u8>) {
        let given = value["sequence_number"].as_u64();
        let number = match self.last.filter(|_| self.are_own) {
            Some(last) => given.map(|_| last + 1),
            None => given,
        };
        self.last = number.or(self.last);
        match event.filter(|_| number == given) {
            Some(event) => out.extend_from_slice(event),
            None => {
                if let Some(number) = number {
                    value["sequence_number"] = number.into();
                }
                let name = value["type"].as_str().map(str::to_owned);
                sse::write(name.as_deref(), &value, out);
            }
        }
    }
}
