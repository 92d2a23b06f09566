//! Parsing of the agent's state.

use std::time::{SystemTime, UNIX_EPOCH};

use prost::Message;
use prost_types::value::Kind;
use serde_json::{Map, Number, Value};
use toolgate_proto::v1;

use super::fields::within;
use toolgate_access::auth::Caller;
use toolgate_config::LimitsConfig;
use toolgate_core::error::Error;
use toolgate_core::state::{AgentState, CallStatus, PriorCall};
use toolgate_llm::history::{self, History, Said, SeenCall, scan};

/// Agent's state, and its conversation.
pub(super) struct Told {
    /// State, on which decisions depend.
    pub(super) state: AgentState,
    /// Last texts of `messages_json`; none without it.
    pub(super) said: Said,
    /// Snapshot of `messages_json` as JSON; empty without it.
    pub(super) snapshot: String,
    /// Messages of `messages_json`; none without it.
    pub(super) messages: Vec<Value>,
}

/// Parses an agent's state. An absent state stands for an agent without calls and scopes. The caller's credential
/// decides on the principal and on the maximum scopes.
pub(super) fn parse(
    wire: Option<v1::AgentState>,
    limits: &LimitsConfig,
    caller: &Caller,
) -> Result<AgentState, Error> {
    parse_told(wire, limits, caller).map(|told| told.state)
}

/// Same as [`parse`], with the conversation.
pub(super) fn parse_told(
    wire: Option<v1::AgentState>,
    limits: &LimitsConfig,
    caller: &Caller,
) -> Result<Told, Error> {
    let mut said = Said::default();
    let mut snapshot = String::new();
    let mut wire = wire.unwrap_or_default();
    let messages_json = std::mem::take(&mut wire.messages_json);
    let mut messages = Vec::new();
    within("limits.max_state_size", limits.max_state_bytes, wire.encoded_len())?;
    within("limits.max_messages_size", limits.max_messages_bytes, messages_json.len())?;
    let mut calls: Vec<PriorCall> = wire.calls.into_iter().map(call).collect();
    let mut discovered = wire.discovered_tools;
    if !messages_json.is_empty() {
        if !calls.is_empty() || !discovered.is_empty() {
            let problem =
                "must be empty, or calls and discovered_tools must: they are read from it";
            return Err(Error::field("state.messages_json", problem));
        }
        messages = list(&messages_json)?;
        let history = scan(&messages, None);
        said = history::said(&messages);
        snapshot = snapshot_of(&history);
        calls = history.calls.into_iter().map(seen).collect();
        discovered = history.discovered;
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let state = AgentState {
        scopes: caller.allowed(wire.scopes.into_iter().collect()),
        calls,
        milestones: wire.milestones.into_iter().collect(),
        discovered,
        attributes: wire.attributes.map(map).unwrap_or_default(),
        principal: caller.principal().to_owned(),
        now_ms: i64::try_from(now.as_millis()).unwrap_or(i64::MAX),
    };
    Ok(Told { state, said, snapshot, messages })
}

/// Returns a snapshot that may be followed by messages that it covers. Its turns end with the last call: the turns after it
/// are in these messages too, and would be counted twice.
fn snapshot_of(history: &History) -> String {
    let turns = history.calls.last().map_or(0, |call| call.turn.saturating_add(1));
    History { turns, ..history.clone() }.snapshot().to_string()
}

/// Parses the messages of a conversation.
fn list(messages_json: &str) -> Result<Vec<Value>, Error> {
    serde_json::from_str(messages_json).map_err(|error| {
        let problem = format!("must be a JSON list of messages: {error}");
        Error::field("state.messages_json", problem)
    })
}

fn seen(call: SeenCall) -> PriorCall {
    let status = match call.status {
        history::CallStatus::Succeeded => CallStatus::Succeeded,
        history::CallStatus::Failed => CallStatus::Failed,
        history::CallStatus::Unspecified => CallStatus::Unknown,
    };
    PriorCall { tool: call.tool, status, turn: call.turn }
}

fn call(call: v1::PriorCall) -> PriorCall {
    let status = match call.status() {
        v1::CallStatus::Succeeded => CallStatus::Succeeded,
        v1::CallStatus::Failed => CallStatus::Failed,
        v1::CallStatus::Unspecified => CallStatus::Unknown,
    };
    PriorCall { tool: call.tool, status, turn: call.turn }
}

/// Converts a struct. The recursion is as deep as the message, which the decoder bounds.
fn map(wire: prost_types::Struct) -> Map<String, Value> {
    wire.fields.into_iter().map(|(name, of)| (name, value(of))).collect()
}

fn value(wire: prost_types::Value) -> Value {
    match wire.kind {
        None | Some(Kind::NullValue(_)) => Value::Null,
        Some(Kind::BoolValue(flag)) => Value::Bool(flag),
        // JSON has no infinities, and `Struct` does not allow them either.
        Some(Kind::NumberValue(number)) => {
            Number::from_f64(number).map_or(Value::Null, Value::Number)
        }
        Some(Kind::StringValue(text)) => Value::String(text),
        Some(Kind::ListValue(list)) => Value::Array(list.values.into_iter().map(value).collect()),
        Some(Kind::StructValue(inner)) => Value::Object(map(inner)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_conversation_is_read_as_clients_read_it() {
        let messages = json!([
            { "type": "function_call", "call_id": "1", "name": "fetch", "arguments": "{}" },
            { "type": "function_call_output", "call_id": "1", "output": "a page" },
            { "type": "function_call", "call_id": "2", "name": "send", "arguments": "{}" },
            { "type": "function_call_output", "call_id": "2", "output": "{\"error\": \"no\"}" },
            { "type": "function_call", "call_id": "3", "name": "wait", "arguments": "{}" },
        ]);
        let read = scan(&list(&messages.to_string()).expect("a list"), None);
        assert_eq!(read.discovered, ["fetch"]);
        let calls: Vec<PriorCall> = read.calls.into_iter().map(seen).collect();
        let seen: Vec<_> = calls.iter().map(|call| (call.tool.as_str(), call.status)).collect();
        let want = [
            ("fetch", CallStatus::Succeeded),
            ("send", CallStatus::Failed),
            ("wait", CallStatus::Unknown),
        ];
        assert_eq!(seen, want);
    }
}
