//! Helpers that build parts of requests.

use bytes::Bytes;
use serde_json::Value;
use toolgate_proto::v1;

/// The answer of an MCP server's `tools/list`, as bytes, text or a JSON value. Bytes and texts are passed on unchanged;
/// the service checks them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolsList(Bytes);

impl From<Bytes> for ToolsList {
    fn from(json: Bytes) -> Self {
        Self(json)
    }
}

impl From<Vec<u8>> for ToolsList {
    fn from(json: Vec<u8>) -> Self {
        Self(json.into())
    }
}

impl From<&[u8]> for ToolsList {
    fn from(json: &[u8]) -> Self {
        Self(Bytes::copy_from_slice(json))
    }
}

impl From<String> for ToolsList {
    fn from(json: String) -> Self {
        Self(json.into())
    }
}

impl From<&str> for ToolsList {
    fn from(json: &str) -> Self {
        json.as_bytes().into()
    }
}

impl From<&Value> for ToolsList {
    fn from(parsed: &Value) -> Self {
        parsed.to_string().into()
    }
}

/// Builds the request that registers an MCP server's tools, for [`register_server`](crate::Client::register_server).
/// `tools_list` is the answer of its `tools/list`: the JSON-RPC result, the whole response, or the bare array.
///
/// ```
/// use toolgate_client::{precondition::is_authenticated, registration, v1};
///
/// let request = v1::RegisterServerRequest {
///     precondition: Some(is_authenticated("chat:write")),
///     ..registration("slack", r#"{"tools": []}"#)
/// };
/// ```
#[must_use]
pub fn registration(
    server: impl Into<String>,
    tools_list: impl Into<ToolsList>,
) -> v1::RegisterServerRequest {
    let ToolsList(tools_list_json) = tools_list.into();
    v1::RegisterServerRequest { server: server.into(), tools_list_json, ..Default::default() }
}

/// Builds an intent without a weight, which weighs as much as the others.
#[must_use]
pub fn intent(text: impl Into<String>) -> v1::Intent {
    v1::Intent { text: text.into(), weight: None }
}
