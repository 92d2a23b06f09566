//! Calls of a model, read from the formats of the providers' APIs.

use serde_json::Value;

/// Call of a tool by a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// The provider's ID of the call; empty if there was none.
    pub id: String,
    /// The tool's name, as the model wrote it.
    pub tool: String,
    /// The arguments as JSON, as the model wrote them; they may have mistakes.
    pub arguments_json: String,
}

/// A value that is not a call in the provider's format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no call of {provider}: `{field}` must be {expected}")]
pub struct NotACall {
    /// The API whose format was expected.
    pub provider: &'static str,
    /// Name of the field that is wrong.
    pub field: &'static str,
    /// Kind of value that the field must have.
    pub expected: &'static str,
}

impl ToolCall {
    /// Builds a call from its parts. `arguments` is a JSON object, or a text as the model wrote it. A text is passed on
    /// unchanged, even if it has mistakes.
    #[must_use]
    pub fn new(tool: impl Into<String>, arguments: &Value, id: impl Into<String>) -> Self {
        let arguments_json = match arguments {
            Value::String(written) => written.clone(),
            parsed => parsed.to_string(),
        };
        Self { id: id.into(), tool: tool.into(), arguments_json }
    }
}

/// Reads a `tool_use` content block of Anthropic's Messages API.
///
/// # Errors
/// [`NotACall`] if `name`, `input` or `id` is missing or of another kind.
pub fn from_anthropic(block: &Value) -> Result<ToolCall, NotACall> {
    let read = Reader { provider: "Anthropic", object: block };
    let arguments = read.value("input", "an object")?;
    Ok(ToolCall::new(read.text("name")?, arguments, read.text("id")?))
}

/// Reads one of the `tool_calls` of OpenAI's Chat Completions API.
///
/// # Errors
/// [`NotACall`] if `function`, its `name` or `arguments`, or `id` is missing or of another kind.
pub fn from_openai(tool_call: &Value) -> Result<ToolCall, NotACall> {
    let read = Reader { provider: "OpenAI", object: tool_call };
    let function = read.value("function", "an object")?;
    let inner = Reader { provider: "OpenAI", object: function };
    Ok(ToolCall::new(inner.text("name")?, inner.value("arguments", "a text")?, read.text("id")?))
}

/// Reads a `function_call` item of OpenAI's Responses API.
///
/// # Errors
/// [`NotACall`] if `name`, `arguments` or `call_id` is missing or of another kind.
pub fn from_openai_responses(item: &Value) -> Result<ToolCall, NotACall> {
    let read = Reader { provider: "OpenAI's Responses API", object: item };
    Ok(ToolCall::new(read.text("name")?, read.value("arguments", "a text")?, read.text("call_id")?))
}

/// Reads a `functionCall` of Gemini's API. Without an ID, as from older models, the call ID is empty.
///
/// # Errors
/// [`NotACall`] if `name` is missing or not a text.
pub fn from_gemini(function_call: &Value) -> Result<ToolCall, NotACall> {
    let read = Reader { provider: "Gemini", object: function_call };
    let call_id = function_call.get("id").and_then(Value::as_str).unwrap_or_default();
    let none = Value::Object(serde_json::Map::new());
    let given = function_call.get("args").filter(|arguments| !arguments.is_null());
    Ok(ToolCall::new(read.text("name")?, given.unwrap_or(&none), call_id))
}

struct Reader<'a> {
    provider: &'static str,
    object: &'a Value,
}

impl<'a> Reader<'a> {
    fn value(&self, field: &'static str, expected: &'static str) -> Result<&'a Value, NotACall> {
        let missing = NotACall { provider: self.provider, field, expected };
        self.object.get(field).filter(|value| !value.is_null()).ok_or(missing)
    }

    fn text(&self, field: &'static str) -> Result<&'a str, NotACall> {
        let missing = NotACall { provider: self.provider, field, expected: "a text" };
        self.object.get(field).and_then(Value::as_str).ok_or(missing)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_providers_shape_is_read() {
        let expected =
            ToolCall { id: "1".into(), tool: "t".into(), arguments_json: r#"{"a":1}"#.into() };
        let block = json!({ "type": "tool_use", "id": "1", "name": "t", "input": { "a": 1 } });
        assert_eq!(from_anthropic(&block), Ok(expected.clone()));
        let chat = json!({ "id": "1", "function": { "name": "t", "arguments": "{\"a\":1}" } });
        assert_eq!(from_openai(&chat), Ok(expected.clone()));
        let item = json!({ "call_id": "1", "name": "t", "arguments": "{\"a\":1}" });
        assert_eq!(from_openai_responses(&item), Ok(expected.clone()));
        let part = json!({ "id": "1", "name": "t", "args": { "a": 1 } });
        assert_eq!(from_gemini(&part), Ok(expected.clone()));
        let bare = ToolCall { id: String::new(), arguments_json: "{}".into(), ..expected };
        assert_eq!(from_gemini(&json!({ "name": "t" })), Ok(bare));
    }

    #[test]
    fn what_the_model_wrote_is_passed_on_unread() {
        let chat = json!({ "id": "1", "function": { "name": "t", "arguments": "{\"a\": 1.50, " } });
        assert_eq!(from_openai(&chat).expect("a call").arguments_json, "{\"a\": 1.50, ");
    }

    #[test]
    fn another_shape_is_an_error_that_says_where() {
        let error = from_openai(&json!({ "id": "1", "function": {} })).expect_err("no call");
        assert_eq!(error.to_string(), "no call of OpenAI: `name` must be a text");
        assert!(from_anthropic(&json!({ "name": "t", "id": "1" })).is_err());
        assert!(from_openai_responses(&json!("x")).is_err());
        assert!(from_gemini(&json!({ "args": {} })).is_err());
    }
}
