//! The agent's state in a file, for `--state`.

use serde::Deserialize;
use serde_json::{Map, Value};
use toolgate_client::v1;
use toolgate_client::well_known::{self, ListValue, Struct, value::Kind};

/// Scopes, past calls and other state of the agent.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(in crate::cli) struct AgentStateFile {
    scopes: Vec<String>,
    calls: Vec<PriorCall>,
    milestones: Vec<String>,
    attributes: Option<Map<String, Value>>,
    discovered_tools: Vec<String>,
    /// Messages of a conversation, instead of calls and discovered tools.
    messages: Vec<Value>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct PriorCall {
    tool: String,
    #[serde(default)]
    status: Status,
    #[serde(default)]
    turn: u32,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    #[default]
    Unknown,
    Succeeded,
    Failed,
}

impl From<AgentStateFile> for v1::AgentState {
    fn from(file: AgentStateFile) -> Self {
        let messages_json = match file.messages.as_slice() {
            [] => String::new(),
            messages => serde_json::json!(messages).to_string(),
        };
        Self {
            scopes: file.scopes,
            calls: file.calls.into_iter().map(Into::into).collect(),
            milestones: file.milestones,
            attributes: file.attributes.map(to_struct),
            discovered_tools: file.discovered_tools,
            messages_json,
        }
    }
}

impl From<PriorCall> for v1::PriorCall {
    fn from(call: PriorCall) -> Self {
        let status = match call.status {
            Status::Unknown => v1::CallStatus::Unspecified,
            Status::Succeeded => v1::CallStatus::Succeeded,
            Status::Failed => v1::CallStatus::Failed,
        };
        Self { tool: call.tool, status: status.into(), turn: call.turn }
    }
}

fn to_struct(map: Map<String, Value>) -> Struct {
    let fields = map.into_iter().map(|(name, value)| (name, to_value(value)));
    Struct { fields: fields.collect() }
}

/// Converts a JSON value. The recursion is as deep as the value, which the JSON parser limits.
fn to_value(value: Value) -> well_known::Value {
    let kind = match value {
        Value::Null => Kind::NullValue(0),
        Value::Bool(flag) => Kind::BoolValue(flag),
        // Every number of a `Struct` is a double, so larger whole numbers lose their last digits.
        Value::Number(number) => Kind::NumberValue(number.as_f64().unwrap_or(f64::NAN)),
        Value::String(text) => Kind::StringValue(text),
        Value::Array(values) => {
            Kind::ListValue(ListValue { values: values.into_iter().map(to_value).collect() })
        }
        Value::Object(map) => Kind::StructValue(to_struct(map)),
    };
    well_known::Value { kind: Some(kind) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_read_whole() {
        let text = r#"{"scopes": ["a"], "calls": [{"tool": "t", "status": "succeeded", "turn": 2},
            {"tool": "u"}], "milestones": ["m"], "discovered_tools": ["d"],
            "attributes": {"n": null, "b": true, "i": 3, "l": [1.5, "x"], "o": {"k": "v"}}}"#;
        let file: AgentStateFile = serde_json::from_str(text).expect("a state");
        let state = v1::AgentState::from(file);
        assert_eq!((state.scopes, state.milestones), (vec!["a".into()], vec!["m".into()]));
        assert_eq!(state.calls[0].status(), v1::CallStatus::Succeeded);
        assert_eq!(
            (state.calls[0].turn, state.calls[1].status()),
            (2, v1::CallStatus::Unspecified)
        );
        let attributes = state.attributes.expect("attributes").fields;
        assert_eq!(attributes.len(), 5);
        assert_eq!(attributes["i"].kind, Some(Kind::NumberValue(3.0)));
        assert!(
            matches!(&attributes["l"].kind, Some(Kind::ListValue(list)) if list.values.len() == 2)
        );
    }
}
