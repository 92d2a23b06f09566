//! The smallest picture and sound, and typed values out of JSON.

use rmcp::ErrorData;
use rmcp::model::{CallToolResponse, CallToolResult, ContentBlock};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A PNG of one red pixel, in base64.
pub(crate) const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

/// A WAV of no samples, in base64.
pub(crate) const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=";

/// Reads a value of the protocol out of JSON that is written in this program.
///
/// # Errors
/// When the JSON is not of that type, which the conformance suite would show.
pub(crate) fn typed<T: DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value)
        .map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

/// A whole result, marked as one, which the newer era asks for; the library takes the mark off for older clients.
///
/// # Errors
/// As [`typed`].
pub(crate) fn complete<T: DeserializeOwned>(mut result: Value) -> Result<T, ErrorData> {
    result["resultType"] = "complete".into();
    typed(result)
}

/// A tool's answer that is one text.
pub(crate) fn text(text: impl Into<String>) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(text)]).into()
}
