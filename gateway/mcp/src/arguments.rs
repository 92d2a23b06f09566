//! Arguments of the gateway's own tools, in the forms in which models write them.

use serde_json::{Map, Value};

/// Prefixes that hosts put before the names of a server's tools, and that models repeat.
const HOST_PREFIXES: [&str; 4] = ["mcp__tg__", "mcp_tg_", "tg__", "tg_"];

/// Names under which models write the tool and its arguments.
const NAMES: [&str; 3] = ["name", "tool_name", "tool"];
const ARGUMENTS: [&str; 4] = ["arguments", "args", "parameters", "input"];

/// Call of a tool behind the gateway.
#[derive(Debug, PartialEq)]
pub(crate) struct RequestedCall {
    /// Name of the tool, without its tag.
    pub(crate) tool: String,
    /// Tag of the definition that was shown; empty if there is none.
    pub(crate) tag: String,
    /// Arguments, as JSON text.
    pub(crate) arguments: String,
    /// Advice for the model where the form had to be mended.
    pub(crate) advice: Option<&'static str>,
}

impl RequestedCall {
    /// Reads a call. The right form is `{"name": "server__tool#tag", "arguments": {...}}`; an object as JSON text, flat
    /// arguments beside the name, other names of both fields and a host's prefix are mended.
    ///
    /// # Errors
    /// The problem, for the model, if no tool is named.
    pub(crate) fn read(arguments: &Map<String, Value>) -> Result<Self, String> {
        let mut rest = arguments.clone();
        let mut advice = None;
        let (name_key, name) = NAMES
            .iter()
            .find_map(|key| rest.remove(*key).map(|name| (*key, name)))
            .ok_or("`name` is missing: name the tool as discover_tools shows it")?;
        let Value::String(name) = name else {
            return Err("`name` must be a string: the tool as discover_tools shows it".to_owned());
        };
        if name_key != "name" {
            advice = Some("write `name`");
        }
        let given = ARGUMENTS.iter().find_map(|key| rest.remove(*key).map(|value| (*key, value)));
        let arguments = match given {
            Some((key, value)) => {
                if key != "arguments" {
                    advice = Some("write `arguments`");
                }
                if value.is_string() {
                    advice = Some("write `arguments` as an object, not as text");
                }
                as_text(value)
            }
            None => {
                if !rest.is_empty() {
                    advice = Some("put the tool's arguments into `arguments`");
                }
                Value::Object(rest).to_string()
            }
        };
        let bare = name.trim();
        let unprefixed = HOST_PREFIXES.iter().find_map(|prefix| bare.strip_prefix(prefix));
        let bare = unprefixed.unwrap_or(bare);
        let (tool, tag) = bare.split_once('#').unwrap_or((bare, ""));
        Ok(Self { tool: tool.to_owned(), tag: tag.trim().to_owned(), arguments, advice })
    }
}

/// Returns the JSON text of a value; a string that holds JSON is that text.
fn as_text(value: Value) -> String {
    match value {
        Value::String(text) if serde_json::from_str::<Value>(&text).is_ok() => text,
        Value::Null => "{}".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(arguments: Value) -> Result<RequestedCall, String> {
        let Value::Object(arguments) = arguments else { panic!("an object") };
        RequestedCall::read(&arguments)
    }

    #[test]
    fn the_right_form_is_taken_as_it_is() {
        let call = read(json!({"name": "git__log#k3f9a1", "arguments": {"b": 1, "a": 2}}));
        let call = call.expect("a call");
        assert_eq!(call.tool, "git__log");
        assert_eq!(call.tag, "k3f9a1");
        assert_eq!(call.arguments, r#"{"b":1,"a":2}"#);
        assert_eq!(call.advice, None);
        assert_eq!(read(json!({"name": "a__b"})).expect("a call").arguments, "{}");
    }

    #[test]
    fn other_forms_are_mended_and_told() {
        for arguments in [
            json!({"name": "git__log", "arguments": "{\"n\":1}"}),
            json!({"name": "git__log", "n": 1}),
            json!({"tool_name": "git__log", "arguments": {"n": 1}}),
            json!({"tool": "git__log", "args": {"n": 1}}),
            json!({"name": "git__log", "parameters": {"n": 1}}),
        ] {
            let call = read(arguments.clone()).expect("a call");
            assert_eq!((call.tool.as_str(), call.arguments.as_str()), ("git__log", r#"{"n":1}"#));
            assert!(call.advice.is_some(), "{arguments}");
        }
        assert_eq!(read(json!({"name": "mcp__tg__git__log"})).expect("a call").tool, "git__log");
    }

    #[test]
    fn a_call_without_a_name_is_refused() {
        assert!(read(json!({"arguments": {}})).expect_err("no name").contains("discover_tools"));
        assert!(read(json!({"name": 1})).expect_err("a number").contains("string"));
    }
}
