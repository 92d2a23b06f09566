//! Requests whose parameters and results the gateway hands through as they are. The protocol library parses them into
//! types that forget the fields they don't know; under a name of the gateway's own, it takes them as any JSON.

use std::borrow::Cow;

use axum::http::{HeaderMap, HeaderValue};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

/// Prefix of the gateway's own names of methods.
const PREFIX: &str = "toolgate/";

/// Methods that are relayed.
const METHODS: [&str; 13] = [
    "completion/complete",
    "prompts/get",
    "prompts/list",
    "resources/list",
    "resources/read",
    "resources/templates/list",
    "tasks/cancel",
    "tasks/get",
    "tasks/list",
    "tasks/result",
    "tasks/update",
    "tools/call",
    "tools/list",
];

const METHOD_HEADER: &str = "mcp-method";
const NAME_HEADER: &str = "mcp-name";

/// Marks of a header's value in base64.
const BASE64_START: &str = "=?base64?";
const BASE64_END: &str = "?=";

/// Returns the message under the gateway's own name of its method, if it is a request that is relayed. The header that
/// repeats the method is renamed too. A request whose headers contradict its body stays as it is, and the protocol
/// library refuses it.
pub(crate) fn renamed(message: &[u8], headers: &mut HeaderMap) -> Option<Vec<u8>> {
    let mut message: Map<String, Value> = serde_json::from_slice(message).ok()?;
    let method = message.get("method")?.as_str()?.to_owned();
    if !METHODS.contains(&method.as_str()) || !message.contains_key("id") {
        return None;
    }
    let own = format!("{PREFIX}{method}");
    if let Some(header) = headers.get(METHOD_HEADER) {
        if header != method.as_str() || !names_agree(&method, message.get("params"), headers) {
            return None;
        }
        headers.insert(METHOD_HEADER, HeaderValue::from_str(&own).ok()?);
    }
    message.insert("method".to_owned(), Value::from(own));
    serde_json::to_vec(&message).ok()
}

/// Returns true if the message opens a session: the handshake of the older revisions.
pub(crate) fn opens_session(message: &[u8]) -> bool {
    #[derive(serde::Deserialize)]
    struct Message<'m> {
        #[serde(borrow)]
        method: Cow<'m, str>,
    }
    serde_json::from_slice::<Message>(message).is_ok_and(|message| message.method == "initialize")
}

/// Returns the method of a request under the gateway's own name.
pub(crate) fn method(own: &str) -> Option<&str> {
    own.strip_prefix(PREFIX).filter(|method| METHODS.contains(method))
}

/// Returns true if the header that repeats a name says what the body says.
fn names_agree(method: &str, params: Option<&Value>, headers: &HeaderMap) -> bool {
    let field = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        "tasks/cancel" | "tasks/get" | "tasks/result" | "tasks/update" => "taskId",
        _ => return true,
    };
    let name = params.and_then(|params| params.get(field)).and_then(Value::as_str);
    let header = headers.get(NAME_HEADER).and_then(|value| value.to_str().ok()).and_then(decoded);
    name.is_some() && name == header.as_deref()
}

fn decoded(header: &str) -> Option<String> {
    match header.strip_prefix(BASE64_START).and_then(|rest| rest.strip_suffix(BASE64_END)) {
        Some(encoded) => String::from_utf8(STANDARD.decode(encoded).ok()?).ok(),
        None => Some(header.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (name.parse().expect("a name"), HeaderValue::from_static(value)))
            .collect()
    }

    #[test]
    fn relayed_requests_get_a_name_of_the_gateways_own() {
        let message = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"b":1.0,"a":2}}}"#;
        let mut headers = headers(&[("mcp-method", "tools/call"), ("mcp-name", "=?base64?eA==?=")]);
        let own = renamed(message, &mut headers).expect("a message");
        let own = String::from_utf8(own).expect("text");
        assert_eq!(
            own,
            r#"{"jsonrpc":"2.0","id":1,"method":"toolgate/tools/call","params":{"name":"x","arguments":{"b":1.0,"a":2}}}"#
        );
        assert_eq!(headers["mcp-method"], "toolgate/tools/call");
        assert_eq!(method("toolgate/tools/call"), Some("tools/call"));
        assert_eq!(method("tools/call"), None);
    }

    #[test]
    fn others_stay_as_they_are() {
        let call = br#"{"id":1,"method":"tools/call","params":{"name":"x"}}"#;
        for (message, headers) in [
            (&b"no JSON"[..], headers(&[])),
            (br#"{"id":1,"method":"initialize"}"#, headers(&[])),
            (br#"{"method":"tools/list"}"#, headers(&[])),
            (call, headers(&[("mcp-method", "tools/list"), ("mcp-name", "x")])),
            (call, headers(&[("mcp-method", "tools/call"), ("mcp-name", "y")])),
            (call, headers(&[("mcp-method", "tools/call")])),
        ] {
            let mut after = headers.clone();
            assert!(renamed(message, &mut after).is_none());
            assert_eq!(after, headers);
        }
    }
}
