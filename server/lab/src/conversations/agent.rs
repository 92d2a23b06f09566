//! Messages of an agent in the format of each API.

use serde_json::{Map, Value, json};
use toolgate_llm::strategy::Api;

/// First words of the message that stands for the initial history. Its tokens are set, not counted.
pub(super) const HISTORY: &str = "[history]";

/// Messages of a conversation as the agent holds them.
#[derive(Debug, Clone)]
pub(super) struct Messages {
    api: Api,
    /// The messages, oldest first.
    pub all: Vec<Value>,
    calls: usize,
}

impl Messages {
    /// Creates a conversation; with a history it begins with a long message and an answer to it.
    pub(super) fn new(api: Api, has_history: bool) -> Self {
        let mut messages = Self { api, all: Vec::new(), calls: 0 };
        if has_history {
            messages.user(HISTORY);
            messages.answer("Noted.");
        }
        messages
    }

    /// Adds a message of the user.
    pub(super) fn user(&mut self, text: &str) {
        self.say("user", text);
    }

    /// Adds a text of the model.
    pub(super) fn answer(&mut self, text: &str) {
        self.say(if self.api == Api::Gemini { "model" } else { "assistant" }, text);
    }

    /// Adds a call of the model and what the tool returned.
    pub(super) fn call(&mut self, name: &str, arguments: &Map<String, Value>, result: &str) {
        self.calls += 1;
        let id = format!("call_{}", self.calls);
        let text = || Value::Object(arguments.clone()).to_string();
        self.all.extend(match self.api {
            Api::Anthropic => [
                json!({ "role": "assistant", "content": [
                    { "type": "tool_use", "id": id, "name": name, "input": arguments }] }),
                json!({ "role": "user", "content": [
                    { "type": "tool_result", "tool_use_id": id, "content": result }] }),
            ],
            Api::OpenAiChat => {
                let function = json!({ "name": name, "arguments": text() });
                [
                    json!({ "role": "assistant", "tool_calls": [
                        { "type": "function", "id": id, "function": function }] }),
                    json!({ "role": "tool", "tool_call_id": id, "content": result }),
                ]
            }
            Api::OpenAiResponses => [
                json!({ "type": "function_call", "call_id": id, "name": name, "arguments": text() }),
                json!({ "type": "function_call_output", "call_id": id, "output": result }),
            ],
            Api::Gemini => {
                let response = json!({ "name": name, "response": { "result": result } });
                [
                    json!({ "role": "model", "parts": [
                        { "functionCall": { "name": name, "args": arguments } }] }),
                    json!({ "role": "user", "parts": [{ "functionResponse": response }] }),
                ]
            }
        });
    }

    fn say(&mut self, role: &str, text: &str) {
        self.all.push(match self.api {
            Api::Gemini => json!({ "role": role, "parts": [{ "text": text }] }),
            Api::Anthropic | Api::OpenAiChat | Api::OpenAiResponses => {
                json!({ "role": role, "content": text })
            }
        });
    }
}
