//! The call envelope: one constant tool through which a model calls tools that are described in the conversation.

use serde_json::{Map, Value};

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
    let name = name.trim_matches(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`'));
    // Providers put a prefix before names, such as `functions.`, and models repeat it.
    name.rsplit(['.', ':', '/']).next() == Some(CALL_TOOL_NAME)
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
