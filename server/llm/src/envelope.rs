//! The call envelope: one constant tool through which a model calls tools that are described in the conversation.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use crate::SEARCH_TOOL_NAME;
use crate::strategy::Api;

/// Name under which the model sees the envelope.
pub const CALL_TOOL_NAME: &str = "toolgate_call_tool";

/// Call that stands in an envelope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedCall {
    /// Name of the tool, as the model wrote it.
    pub name: String,
    /// Arguments as JSON, as the model wrote them; empty if there are none.
    pub arguments_json: String,
}

/// Arguments of `toolgate_call_tool` that hold no call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoCall {
    /// The arguments are not JSON.
    #[error("the call is not JSON: {0}")]
    NotJson(String),
    /// The arguments are of another type.
    #[error("the call is no JSON object")]
    NoObject,
    /// The tool's name is missing, empty or no text.
    #[error("`name` is missing")]
    NoName,
}

/// Returns true if a name, as a model wrote it, means the envelope.
#[must_use]
pub fn is_envelope(name: &str) -> bool {
    bare(name) == CALL_TOOL_NAME
}

/// Returns a name without quotes and without a prefix that a model wrote with it.
fn bare(name: &str) -> &str {
    let name = name.trim_matches(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`'));
    // Providers put a prefix before names, such as `functions.`, and models repeat it.
    name.rsplit(['.', ':', '/']).next().unwrap_or_default()
}

/// Reads the call in an envelope's arguments: an object, or one that is written as a JSON string.
///
/// # Errors
/// [`NoCall`] if the arguments hold no call.
pub fn open(arguments: &Value) -> Result<NamedCall, NoCall> {
    let fields = fields(arguments)?;
    let name = fields.get("name").and_then(Value::as_str).filter(|name| !name.trim().is_empty());
    let name = name.ok_or(NoCall::NoName)?.to_owned();
    let arguments_json = match fields.get("arguments") {
        None => String::new(),
        Some(Value::String(written)) => written.clone(),
        Some(value) => value.to_string(),
    };
    Ok(NamedCall { name, arguments_json })
}

/// Reads an object. Models write it as a JSON string, and at times that one as a string again.
fn fields(arguments: &Value) -> Result<Map<String, Value>, NoCall> {
    let mut value = arguments.clone();
    for _ in 0..2 {
        let Value::String(text) = &value else { break };
        value = serde_json::from_str(text).map_err(|error| NoCall::NotJson(error.to_string()))?;
    }
    match value {
        Value::Object(fields) => Ok(fields),
        _ => Err(NoCall::NoObject),
    }
}

/// Writes calls of tools that are not in the request's `tools` as calls of [`CALL_TOOL_NAME`], which is how the model
/// made them or is to make them. The rest of a call stays as it is, and so does each other message.
///
/// `sent_names` names the tools in `tools`. Calls without arguments get an empty object, because the envelope requires
/// one. For Gemini the answers are renamed too, because they must have their calls' name.
pub fn wrap_history(api: Api, messages: &mut [Value], sent_names: &HashSet<&str>) {
    let history = Wrapper { sent_names };
    for message in messages {
        match api {
            Api::Anthropic => history.each(message, "content", Wrapper::tool_use),
            Api::OpenAiChat => history.each(message, "tool_calls", Wrapper::tool_call),
            Api::OpenAiResponses => history.function_call(message),
            Api::Gemini => history.each(message, "parts", Wrapper::part),
        }
    }
}

struct Wrapper<'a> {
    sent_names: &'a HashSet<&'a str>,
}

impl Wrapper<'_> {
    fn each(&self, message: &mut Value, key: &str, change: fn(&Self, &mut Value)) {
        let items = message.get_mut(key).and_then(Value::as_array_mut);
        items.into_iter().flatten().for_each(|item| change(self, item));
    }

    fn tool_use(&self, block: &mut Value) {
        if block["type"] == "tool_use" {
            self.wrap(block, "input", with_value);
        }
    }

    fn tool_call(&self, call: &mut Value) {
        if let Some(function) = call.get_mut("function") {
            self.wrap(function, "arguments", with_text);
        }
    }

    fn function_call(&self, item: &mut Value) {
        if item["type"] == "function_call" {
            self.wrap(item, "arguments", with_text);
        }
    }

    fn part(&self, part: &mut Value) {
        for key in ["functionCall", "function_call"] {
            if let Some(call) = part.get_mut(key) {
                self.wrap(call, "args", with_value);
            }
        }
        for key in ["functionResponse", "function_response"] {
            if let Some(answer) = part.get_mut(key)
                && self.foreign(answer).is_some()
            {
                answer["name"] = CALL_TOOL_NAME.into();
            }
        }
    }

    /// Puts a call into the envelope if its tool is not sent.
    fn wrap(&self, call: &mut Value, key: &str, write: fn(&str, &Value) -> Value) {
        if let Some(name) = self.foreign(call) {
            call[key] = write(&name, call.get(key).unwrap_or(&Value::Null));
            call["name"] = CALL_TOOL_NAME.into();
        }
    }

    /// Returns the name in a call if only the envelope can call its tool.
    fn foreign(&self, call: &Value) -> Option<String> {
        let name = call.get("name")?.as_str()?;
        let is_sent = |name| self.sent_names.contains(name) || name == SEARCH_TOOL_NAME;
        let is_direct = is_sent(name) || is_sent(bare(name)) || is_envelope(name);
        (!is_direct && !name.trim().is_empty()).then(|| name.to_owned())
    }
}

/// Returns the envelope's arguments as an object.
fn with_value(name: &str, arguments: &Value) -> Value {
    match arguments {
        Value::Null => json!({ "name": name, "arguments": {} }),
        given => json!({ "name": name, "arguments": given }),
    }
}

/// Returns the envelope's arguments as a text, with the call's own as the model wrote them. What is not an object stays
/// a text.
fn with_text(name: &str, arguments: &Value) -> Value {
    let Value::String(written) = arguments else {
        return with_value(name, arguments).to_string().into();
    };
    let is_object = serde_json::from_str::<Map<String, Value>>(written).is_ok();
    let inner = match written.trim() {
        "" => "{}".to_owned(),
        object if is_object => object.to_owned(),
        _ => arguments.to_string(),
    };
    format!(r#"{{"name":{},"arguments":{inner}}}"#, Value::from(name)).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SENT: [&str; 2] = ["read_file", CALL_TOOL_NAME];

    fn wrapped(api: Api, message: &Value) -> Value {
        let mut messages = [message.clone()];
        wrap_history(api, &mut messages, &SENT.into());
        let [message] = messages;
        message
    }

    #[test]
    fn the_rest_of_a_call_stays_as_it_is() {
        let block = |name: &str, input: Value| {
            json!({ "role": "assistant", "content": [
            { "input": input, "x": 1, "type": "tool_use", "name": name, "id": "1" }] })
        };
        let inside = json!({ "name": "git__log", "arguments": { "z": 1, "a": 2 } });
        assert_eq!(
            wrapped(Api::Anthropic, &block("git__log", json!({ "z": 1, "a": 2 }))).to_string(),
            block(CALL_TOOL_NAME, inside.clone()).to_string()
        );
        let part = |name: &str, args: Value| {
            json!({ "role": "model", "parts": [
            { "functionCall": { "args": args, "name": name }, "thoughtSignature": "s" }] })
        };
        assert_eq!(
            wrapped(Api::Gemini, &part("git__log", json!({ "z": 1, "a": 2 }))).to_string(),
            part(CALL_TOOL_NAME, inside).to_string()
        );
    }

    #[test]
    fn the_answers_of_gemini_have_the_name_of_their_calls() {
        let answer = |name: &str| {
            json!({ "role": "user", "parts": [
            { "functionResponse": { "id": "1", "name": name, "response": {} } }] })
        };
        assert_eq!(wrapped(Api::Gemini, &answer("git__log")), answer(CALL_TOOL_NAME));
        assert_eq!(wrapped(Api::Gemini, &answer("read_file")), answer("read_file"));
    }

    #[test]
    fn a_call_without_arguments_has_an_empty_object() {
        let inside = json!({ "name": "git__log", "arguments": {} });
        let bare = json!({ "parts": [{ "functionCall": { "name": "git__log" } }] });
        let call = &wrapped(Api::Gemini, &bare)["parts"][0]["functionCall"];
        assert_eq!(call["args"], inside);
        for written in [json!(""), json!(null), json!("{}")] {
            let item = json!({ "type": "function_call", "name": "git__log", "arguments": written });
            let call = wrapped(Api::OpenAiResponses, &item);
            assert_eq!(call["arguments"], inside.to_string(), "{written}");
        }
    }

    #[test]
    fn calls_that_need_no_envelope_stay() {
        let names = [
            "read_file",
            "functions.read_file",
            SEARCH_TOOL_NAME,
            CALL_TOOL_NAME,
            "functions.toolgate_call_tool",
            " ",
        ];
        for name in names {
            for (api, message) in [
                (Api::Anthropic, json!({ "content": [{ "type": "tool_use", "name": name }] })),
                (Api::OpenAiChat, json!({ "tool_calls": [{ "function": { "name": name } }] })),
                (Api::OpenAiResponses, json!({ "type": "function_call", "name": name })),
                (Api::Gemini, json!({ "parts": [{ "functionCall": { "name": name } }] })),
            ] {
                assert_eq!(wrapped(api, &message).to_string(), message.to_string());
            }
        }
        for (api, message) in [
            (Api::Anthropic, json!({ "content": [{ "type": "server_tool_use", "name": "x" }] })),
            (Api::OpenAiChat, json!({ "tool_calls": [{ "custom": { "name": "x" } }, 7] })),
            (Api::OpenAiResponses, json!({ "type": "custom_tool_call", "name": "x" })),
            (Api::Gemini, json!({ "parts": "x" })),
            (Api::Gemini, json!(null)),
        ] {
            assert_eq!(wrapped(api, &message).to_string(), message.to_string());
        }
    }
}
