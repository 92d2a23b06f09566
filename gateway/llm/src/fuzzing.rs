//! Parsers of what hosts and providers send, for the fuzz targets of `tests/fuzz`. Nothing else uses them from outside.

use std::collections::HashSet;

use serde_json::Value;
use toolgate_llm::envelope::NamedCall;
pub use toolgate_llm::strategy::Api;

use crate::chat::{self, Chat, Unsendable, messages_field};
use crate::config::{LlmConfig, StrategyConfig};
use crate::enclosed::Enclosing;
use crate::opener::Opener;
use crate::provider::Provider;
use crate::raw;
use crate::sse::Splitter;
use crate::stream::{End, Machine};
use crate::turn::Thinned;

/// Path of a request to Gemini, which names the model.
const PATH: &str = "/v1beta/models/gemini-3-pro:streamGenerateContent";

/// Places of requests that hold chats and are none themselves.
const ENCLOSING: [(Provider, &str); 6] = [
    (Provider::Anthropic, "/v1/messages/count_tokens"),
    (Provider::Anthropic, "/v1/messages/batches"),
    (Provider::OpenAi, "/v1/responses/compact"),
    (Provider::Gemini, "/v1beta/cachedContents"),
    (Provider::Gemini, "/v1beta/models/gemini-3-pro:countTokens"),
    (Provider::Gemini, "/v1beta/models/gemini-3-pro:batchGenerateContent"),
];

/// Outcome of a stream.
#[derive(Debug, PartialEq)]
pub struct Streamed {
    /// Bytes that the host gets.
    pub shown: Vec<u8>,
    /// Usage of the turn.
    pub usage: Value,
    /// Calls for the host, as text.
    pub calls: String,
    /// True if the model searched for something.
    pub has_searched: bool,
}

/// Request whose tools may be deferred.
#[derive(Debug)]
pub struct ReadRequest {
    /// Text of the request with all of its tools, written anew.
    pub restored: String,
    /// Text of the request with the tools that stay.
    pub thinned: String,
    /// Messages that were read.
    pub messages: Vec<Value>,
    /// Name of the field that they stand in.
    pub messages_field: &'static str,
    /// Definitions of the tools that stay.
    pub own: Vec<Value>,
}

/// Returns the events of a stream that comes in pieces of so many bytes, and last what is no whole event.
#[must_use]
pub fn events(stream: &[u8], size: usize) -> Vec<Vec<u8>> {
    let mut splitter = Splitter::default();
    let mut events = Vec::new();
    for piece in stream.chunks(size.max(1)) {
        splitter.push(piece);
        while let Some(event) = splitter.next() {
            events.push(event);
        }
    }
    events.push(splitter.rest());
    events
}

/// Runs a stream that comes in pieces of so many bytes through the machine of its API.
#[must_use]
pub fn streamed(api: Api, stream: &[u8], size: usize) -> Streamed {
    let mut machine = Machine::new(api);
    let mut shown = Vec::new();
    for event in events(stream, size) {
        machine.event(&event, &mut shown);
    }
    let calls = format!("{:?}", machine.calls());
    let usage = machine.usage();
    let has_searched = machine.is_holding() || machine.end() != End::Done(Vec::new());
    Streamed { shown, usage, calls, has_searched }
}

/// Runs a stream through a turn as each of its answers, with all that may become of one: it is gone on from, taken back, given
/// up, and ended by an error. Returns what the host gets.
#[must_use]
pub fn turned(api: Api, stream: &[u8]) -> Vec<u8> {
    let mut machine = Machine::new(api);
    let mut shown = Vec::new();
    for is_taken_back in [false, true, false] {
        for event in events(stream, stream.len()) {
            machine.event(&event, &mut shown);
        }
        if is_taken_back {
            machine.take_back();
            machine.write_said(&mut shown);
        } else {
            machine.end();
        }
        machine.go_on();
    }
    for event in events(stream, stream.len()) {
        machine.event(&event, &mut shown);
    }
    machine.end();
    machine.give_up(&mut shown);
    machine.fail(&Value::from("error"), &mut shown);
    shown
}

/// Opens an envelope whose text comes in pieces of at least so many bytes.
///
/// # Panics
/// If a part of the call comes before its name, or a second name comes.
#[must_use]
pub fn opened(envelope: &str, size: usize) -> NamedCall {
    let mut opener = Opener::default();
    let mut parts = Vec::new();
    let mut rest = envelope;
    while !rest.is_empty() {
        let end = (size.max(1)..rest.len()).find(|at| rest.is_char_boundary(*at));
        let piece = rest.split_at(end.unwrap_or(rest.len()));
        parts.push(opener.push(piece.0));
        rest = piece.1;
    }
    parts.push(opener.end());
    let mut name = None;
    let mut arguments_json = String::new();
    for part in parts {
        assert!(name.is_none() || part.name.is_none(), "a second name");
        name = name.or(part.name);
        assert!(name.is_some() || part.arguments.is_empty(), "arguments before a name");
        arguments_json.push_str(&part.arguments);
    }
    NamedCall { name: name.expect("an envelope that ended has a name"), arguments_json }
}

/// Reads a chat request and writes it anew. `None` if it is sent as it came.
#[must_use]
pub fn read_request(api: Api, text: &str) -> Option<ReadRequest> {
    let settings = LlmConfig { strategy: StrategyConfig::Envelope, ..LlmConfig::default() };
    let chat = Chat::read(api, PATH, text.to_owned(), &settings).ok()?;
    Some(ReadRequest {
        restored: chat.without(&HashSet::new()).ok()?,
        thinned: chat.with(&chat.own, &chat.messages, &[]),
        messages: chat.messages,
        messages_field: messages_field(api),
        own: chat.own,
    })
}

/// Request that holds chats.
#[derive(Debug, PartialEq)]
pub struct ReadEnclosed {
    /// Texts of the chats, in their order.
    pub chats: Vec<String>,
    /// Text of the request with each of them written anew.
    pub same: Option<String>,
    /// Text of the request with nothing in the place of each.
    pub hollow: Option<String>,
    /// Text of the request without a tool. `None` if no chat has it, or no provider takes one without it.
    pub thinned: Option<String>,
}

/// Reads a request that holds chats, of a kind with this number, and takes a tool out of them.
#[must_use]
pub fn read_enclosed(kind: u8, text: &str, tool: &str) -> ReadEnclosed {
    let place = ENCLOSING[usize::from(kind) % ENCLOSING.len()];
    let enclosing = Enclosing::find(place.0, place.1).expect("it holds chats");
    let settings = LlmConfig::default();
    let withheld = HashSet::from([tool.to_owned()]);
    let mut chats = Vec::new();
    let same = edited(enclosing, text, |chat| {
        chats.push(chat.to_owned());
        Ok(Some(chat.to_owned()))
    });
    let hollow = edited(enclosing, text, |_| Ok(Some(String::new())));
    let thinned = edited(enclosing, text, |chat| {
        let deferred = chat::deferred(enclosing.api, chat, &settings).unwrap_or_default();
        let has_tool = deferred.iter().any(|deferred| deferred.name == tool);
        has_tool.then(|| chat::without(enclosing.api, chat, &withheld)).transpose()
    });
    ReadEnclosed { chats, same, hollow, thinned }
}

/// Returns the text of a request with what `edit` makes of its chats. `None` if it makes nothing of them.
fn edited(
    enclosing: Enclosing,
    text: &str,
    mut edit: impl FnMut(&str) -> Result<Option<String>, Unsendable>,
) -> Option<String> {
    let thin = |chat: &str| Ok(edit(chat)?.map(|text| Thinned { text, withheld: 1 }));
    enclosing.thinned(text, thin).ok().flatten().map(|thinned| thinned.text)
}

/// Returns the names of an object's fields and their texts, in their order. `None` if the text is no object, or names a
/// field twice.
#[must_use]
pub fn fields(text: &str) -> Option<Vec<(String, &str)>> {
    let fields = raw::fields(text)?;
    Some(fields.into_iter().map(|field| (field.name, field.text)).collect())
}

/// Returns the texts of a list's items. `None` if the text is no list.
#[must_use]
pub fn items(text: &str) -> Option<Vec<&str>> {
    raw::items(text)
}

/// Returns the text of a value that was made from `before`: what did not change keeps its bytes.
#[must_use]
pub fn graft(value: &Value, before: &str) -> String {
    raw::graft(value, before)
}
