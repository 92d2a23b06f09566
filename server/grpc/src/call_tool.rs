//! Calls of `toolgate_call_tool`, which are judged as calls of the tools that they name.

use serde_json::Value;
use toolgate_llm::envelope::{self, CALL_TOOL_NAME};
use toolgate_proto::v1::{GateVerdict, RequestedCall};
use toolgate_routing::gate::calls::Call;

/// Call of a Gate request, out of its envelope.
pub(super) struct ReadCall {
    /// Call to judge.
    pub(super) call: Call,
    /// Arguments that stood in an envelope; `None` for a call without one.
    enveloped: Option<String>,
}

impl ReadCall {
    /// Reads a call.
    pub(super) fn of(wire: &RequestedCall) -> Self {
        if !envelope::is_envelope(&wire.tool) {
            let call = Call {
                tool: wire.tool.clone(),
                arguments: wire.arguments_json.clone(),
                shown_tag: wire.shown_tag.clone(),
                mistake: None,
            };
            return Self { call, enveloped: None };
        }
        match envelope::open(&Value::from(wire.arguments_json.as_str())) {
            Ok(named) => {
                let enveloped = Some(named.arguments_json.clone());
                let call = Call {
                    tool: named.name,
                    arguments: named.arguments_json,
                    shown_tag: wire.shown_tag.clone(),
                    mistake: None,
                };
                Self { call, enveloped }
            }
            Err(problem) => {
                let mistake = format!(
                    "{CALL_TOOL_NAME} takes {{\"name\": the tool's name, \"arguments\": an object that matches the \
                     tool's input_schema}}: {problem}. Call again."
                );
                let call = Call { mistake: Some(mistake), ..Call::default() };
                Self { call, enveloped: None }
            }
        }
    }

    /// Returns the verdict with the arguments to call with, which the call had in its envelope.
    pub(super) fn complete(&self, mut verdict: GateVerdict) -> GateVerdict {
        if verdict.allowed
            && verdict.arguments_json.is_empty()
            && let Some(arguments) = &self.enveloped
        {
            verdict.arguments_json.clone_from(arguments);
        }
        verdict
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(tool: &str, arguments: &str) -> ReadCall {
        let tool = tool.to_owned();
        let arguments_json = arguments.to_owned();
        ReadCall::of(&RequestedCall { tool, arguments_json, ..Default::default() })
    }

    #[test]
    fn the_call_in_an_envelope_is_judged() {
        let sent = r#"{"name": "mcp__a__b", "arguments": {"z": 1, "a": 2}}"#;
        for tool in [CALL_TOOL_NAME, "functions.toolgate_call_tool", " `toolgate_call_tool` "] {
            for arguments in [sent.to_owned(), Value::from(sent).to_string()] {
                let read = read(tool, &arguments);
                assert_eq!(read.call.tool, "mcp__a__b", "{tool} {arguments}");
                assert_eq!(read.call.arguments, r#"{"z":1,"a":2}"#);
                assert!(read.call.mistake.is_none());
            }
        }
        let text = r#"{"name": "mcp__a__b", "arguments": "{\"z\": 1.50}"}"#;
        assert_eq!(read(CALL_TOOL_NAME, text).call.arguments, r#"{"z": 1.50}"#);
        assert_eq!(read(CALL_TOOL_NAME, r#"{"name": "mcp__a__b"}"#).call.arguments, "");
    }

    #[test]
    fn other_calls_are_as_they_came() {
        for tool in ["mcp__a__b", "mcp__a__toolgate_call_tool", "toolgate_call"] {
            let read = read(tool, "{");
            assert_eq!((read.call.tool.as_str(), read.call.arguments.as_str()), (tool, "{"));
            let verdict = GateVerdict { allowed: true, ..Default::default() };
            assert_eq!(read.complete(verdict.clone()), verdict);
        }
    }

    #[test]
    fn an_envelope_with_a_mistake_is_told_what_is_right() {
        for (arguments, problem) in [
            ("{", "not JSON"),
            ("[]", "no JSON object"),
            ("{}", "`name` is missing"),
            (r#"{"name": 7}"#, "`name` is missing"),
            (r#"{"name": " "}"#, "`name` is missing"),
        ] {
            let mistake = read(CALL_TOOL_NAME, arguments).call.mistake.expect(arguments);
            assert!(mistake.contains(problem), "{mistake}");
            assert!(mistake.contains(r#"{"name": the tool's name, "arguments":"#), "{mistake}");
        }
    }

    #[test]
    fn an_allowed_call_has_the_arguments_to_run() {
        let read = read(CALL_TOOL_NAME, r#"{"name": "t", "arguments": {"a": 1}}"#);
        let allowed = GateVerdict { allowed: true, ..Default::default() };
        assert_eq!(read.complete(allowed.clone()).arguments_json, r#"{"a":1}"#);
        let unwrapped = GateVerdict { arguments_json: "{}".to_owned(), ..allowed };
        assert_eq!(read.complete(unwrapped).arguments_json, "{}");
        assert_eq!(read.complete(GateVerdict::default()), GateVerdict::default());
    }
}
