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

/// Parses an agent's state. An absent state stands for an agent without calls and scopes. The caller's credential
/// decides on the principal and on the maximum scopes.
pub(super) fn parse(
    wire: Option<v1::AgentState>,
    limits: &LimitsConfig,
    caller: &Caller,
) -> Result<AgentState, Error> {
    let wire = wire.unwrap_or_default();
    within("limits.max_state_size", limits.max_state_bytes, wire.encoded_len())?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(AgentState {
        scopes: caller.allowed(wire.scopes.into_iter().collect()),
        calls: wire.calls.into_iter().map(call).collect(),
        milestones: wire.milestones.into_iter().collect(),
        discovered: wire.discovered_tools,
        attributes: wire.attributes.map(map).unwrap_or_default(),
        principal: caller.principal().to_owned(),
        now_ms: i64::try_from(now.as_millis()).unwrap_or(i64::MAX),
    })
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
