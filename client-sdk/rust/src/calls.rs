//! Calls of a model, read from the formats of the providers' APIs, for [`gate`](crate::Client::gate).

use serde_json::Value;
pub use toolgate_llm::calls::NotACall;
use toolgate_llm::calls::{self, ToolCall};
use toolgate_proto::v1::RequestedCall;

/// Builds a call from its parts. `arguments` is a JSON object, or a text as the model wrote it. A text is passed on
/// unchanged, even if it has mistakes. At most 1 MiB is accepted.
#[must_use]
pub fn call(
    tool: impl Into<String>,
    arguments: &Value,
    call_id: impl Into<String>,
) -> RequestedCall {
    requested(ToolCall::new(tool, arguments, call_id))
}

/// Reads a `tool_use` content block of Anthropic's Messages API.
///
/// # Errors
/// [`NotACall`] if `name`, `input` or `id` is missing or of another kind.
pub fn from_anthropic(block: &Value) -> Result<RequestedCall, NotACall> {
    calls::from_anthropic(block).map(requested)
}

/// Reads one of the `tool_calls` of OpenAI's Chat Completions API.
///
/// # Errors
/// [`NotACall`] if `function`, its `name` or `arguments`, or `id` is missing or of another kind.
pub fn from_openai(tool_call: &Value) -> Result<RequestedCall, NotACall> {
    calls::from_openai(tool_call).map(requested)
}

/// Reads a `function_call` item of OpenAI's Responses API.
///
/// # Errors
/// [`NotACall`] if `name`, `arguments` or `call_id` is missing or of another kind.
pub fn from_openai_responses(item: &Value) -> Result<RequestedCall, NotACall> {
    calls::from_openai_responses(item).map(requested)
}

/// Reads a `functionCall` of Gemini's API. Without an ID, as from older models, the call ID is empty.
///
/// # Errors
/// [`NotACall`] if `name` is missing or not a text.
pub fn from_gemini(function_call: &Value) -> Result<RequestedCall, NotACall> {
    calls::from_gemini(function_call).map(requested)
}

fn requested(call: ToolCall) -> RequestedCall {
    let ToolCall { id, tool, arguments_json } = call;
    RequestedCall { call_id: id, tool, arguments_json, shown_tag: String::new() }
}
