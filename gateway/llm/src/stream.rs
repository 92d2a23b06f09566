//! Streams of a model's answers: envelopes are opened as they come, and searches are held. What needs no change passes with
//! its bytes.

mod anthropic;
mod chat;
mod gemini;
mod responses;

use std::sync::Arc;

use serde_json::Value;
use toolgate_llm::envelope::{CALL_TOOL_NAME, NamedCall};
use toolgate_llm::strategy::Api;

use crate::answer::{Search, open};
use crate::gate::Call;
use crate::sse;
use crate::toolset::Names;

use anthropic::AnthropicStream;
use chat::ChatStream;
use gemini::GeminiStream;
use responses::ResponsesStream;

/// Most bytes of an answer that are kept to go on behind a search; of a longer one, searches are only looked up.
const KEPT_MAX: usize = 1 << 20;

/// Stream of one turn, over all of its requests.
#[derive(Debug)]
pub(crate) enum Machine {
    Anthropic(AnthropicStream),
    Chat(ChatStream),
    Responses(Box<ResponsesStream>),
    Gemini(GeminiStream),
}

/// Outcome of an answer that has ended.
#[derive(Debug, PartialEq)]
pub(crate) enum End {
    /// The answer is the last of the turn. Searches in it are looked up for the next one.
    Done(Vec<Search>),
    /// The model waits for the answers to its searches. Holds what it said, as messages.
    Searching(Vec<Value>, Vec<Search>),
}

impl Machine {
    pub(crate) fn new(api: Api) -> Self {
        match api {
            Api::Anthropic => Self::Anthropic(AnthropicStream::default()),
            Api::OpenAiChat => Self::Chat(ChatStream::default()),
            Api::OpenAiResponses => Self::Responses(Box::default()),
            Api::Gemini => Self::Gemini(GeminiStream::default()),
        }
    }

    /// Sets the names of tools in namespaces.
    pub(crate) fn with_names(mut self, names: Names) -> Self {
        if let Self::Responses(stream) = &mut self {
            stream.name(names);
        }
        self
    }

    /// Sets the text of the tools that answers tell the host, where they tell back what the provider was sent.
    pub(crate) fn with_tools(mut self, tools: Arc<str>) -> Self {
        if let Self::Responses(stream) = &mut self {
            stream.show(tools);
        }
        self
    }

    /// Returns the IDs of the turn's answers that have ended, in their order, where the provider keeps answers by them.
    pub(crate) fn ids(&self) -> &[String] {
        match self {
            Self::Responses(stream) => stream.ids(),
            Self::Anthropic(_) | Self::Chat(_) | Self::Gemini(_) => &[],
        }
    }

    /// Takes one event, and writes what the host gets.
    pub(crate) fn event(&mut self, event: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::Anthropic(stream) => stream.event(event, out),
            Self::Chat(stream) => stream.event(event, out),
            Self::Responses(stream) => stream.event(event, out),
            Self::Gemini(stream) => stream.event(event, out),
        }
    }

    /// Returns true if the end of the answer is held for a search.
    pub(crate) fn is_holding(&self) -> bool {
        match self {
            Self::Anthropic(stream) => stream.is_holding(),
            Self::Chat(stream) => stream.is_holding(),
            Self::Responses(stream) => stream.is_holding(),
            Self::Gemini(stream) => stream.is_holding(),
        }
    }

    /// Returns true if the event came that ends this answer, whether or not its body ends. Gemini has none.
    pub(crate) fn has_ended(&self) -> bool {
        match self {
            Self::Anthropic(stream) => stream.has_ended(),
            Self::Chat(stream) => stream.has_ended(),
            Self::Responses(stream) => stream.has_ended(),
            Self::Gemini(_) => false,
        }
    }

    /// Returns true if the host got the beginning of a call in this answer.
    pub(crate) fn has_calls(&self) -> bool {
        match self {
            Self::Anthropic(stream) => stream.has_calls(),
            Self::Chat(stream) => stream.has_calls(),
            Self::Responses(stream) => stream.has_calls(),
            Self::Gemini(stream) => stream.has_calls(),
        }
    }

    /// Returns the calls of an answer that has ended; `None` if they could not be kept.
    pub(crate) fn calls(&self) -> Option<Vec<Call>> {
        match self {
            Self::Anthropic(stream) => stream.calls(),
            Self::Chat(stream) => stream.calls(),
            Self::Responses(stream) => stream.calls(),
            Self::Gemini(stream) => stream.calls(),
        }
    }

    /// Returns true if the model can be told what became of each call of an answer that has ended.
    pub(crate) fn is_answerable(&self) -> bool {
        match self {
            Self::Responses(stream) => stream.is_answerable(),
            Self::Anthropic(_) | Self::Chat(_) | Self::Gemini(_) => true,
        }
    }

    /// Takes an answer that has ended back, from its first call on. Returns what the model said, as messages, and its searches.
    pub(crate) fn take_back(&mut self) -> (Vec<Value>, Vec<Search>) {
        match self {
            Self::Anthropic(stream) => stream.take_back(),
            Self::Chat(stream) => stream.take_back(),
            Self::Responses(stream) => stream.take_back(),
            Self::Gemini(stream) => stream.take_back(),
        }
    }

    /// Writes what stood beside the first call of an answer that was taken back, in one event with it.
    pub(crate) fn write_said(&mut self, out: &mut Vec<u8>) {
        match self {
            Self::Gemini(stream) => stream.write_said(out),
            Self::Anthropic(_) | Self::Chat(_) | Self::Responses(_) => {}
        }
    }

    /// Returns the items of an answer that has ended, as the model wrote them, where thoughts are items.
    pub(crate) fn said(&self) -> &[Value] {
        match self {
            Self::Responses(stream) => stream.said(),
            Self::Anthropic(_) | Self::Chat(_) | Self::Gemini(_) => &[],
        }
    }

    /// Returns the searches of an answer that has ended, where the provider keeps answers. [`Machine::end`] takes them.
    pub(crate) fn searches(&self) -> &[Search] {
        match self {
            Self::Responses(stream) => stream.searches(),
            Self::Anthropic(_) | Self::Chat(_) | Self::Gemini(_) => &[],
        }
    }

    /// Says how the answer ended.
    pub(crate) fn end(&mut self) -> End {
        match self {
            Self::Anthropic(stream) => stream.end(),
            Self::Chat(stream) => stream.end(),
            Self::Responses(stream) => stream.end(),
            Self::Gemini(stream) => stream.end(),
        }
    }

    /// Writes the end of the turn that was held for a search, where nothing can be asked any more.
    pub(crate) fn give_up(&mut self, out: &mut Vec<u8>) {
        match self {
            Self::Anthropic(stream) => stream.give_up(out),
            Self::Chat(stream) => stream.give_up(out),
            Self::Responses(stream) => stream.give_up(out),
            Self::Gemini(stream) => stream.give_up(out),
        }
    }

    /// Begins the next answer of the same turn.
    pub(crate) fn go_on(&mut self) {
        match self {
            Self::Anthropic(stream) => stream.go_on(),
            Self::Chat(stream) => stream.go_on(),
            Self::Responses(stream) => stream.go_on(),
            Self::Gemini(stream) => stream.go_on(),
        }
    }

    /// Writes an error amid a stream, in the provider's form.
    pub(crate) fn fail(&self, error: &Value, out: &mut Vec<u8>) {
        match self {
            Self::Anthropic(_) => sse::write(Some("error"), error, out),
            Self::Responses(stream) => stream.fail(error, out),
            Self::Chat(_) | Self::Gemini(_) => sse::write(None, error, out),
        }
    }

    /// Returns the usage of the current answer so far; null if none came.
    pub(crate) fn usage_of_answer(&self) -> &Value {
        match self {
            Self::Anthropic(stream) => stream.usage_of_answer(),
            Self::Chat(stream) => stream.usage_of_answer(),
            Self::Responses(stream) => stream.usage_of_answer(),
            Self::Gemini(stream) => stream.usage_of_answer(),
        }
    }

    /// Returns the usage of the turn so far; null if none came.
    pub(crate) fn usage(&self) -> Value {
        match self {
            Self::Anthropic(stream) => stream.usage(),
            Self::Chat(stream) => stream.usage(),
            Self::Responses(stream) => stream.usage(),
            Self::Gemini(stream) => stream.usage(),
        }
    }
}

/// Returns the call in an envelope. What holds no call stays one of the envelope.
fn opened(envelope: &str) -> NamedCall {
    open(&Value::from(envelope)).unwrap_or_else(|| NamedCall {
        name: CALL_TOOL_NAME.to_owned(),
        arguments_json: envelope.to_owned(),
    })
}

#[cfg(test)]
mod tests;
