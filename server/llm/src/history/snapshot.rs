//! The snapshot of a history: a JSON object that survives a compaction. It is an entry of its own type and never text,
//! so a message that quotes a snapshot can't forge one.

use serde_json::{Value, json};

use super::reading::{field, items, name, text};
use super::{CallStatus, History, SeenCall};

const KIND: &str = "toolgate_snapshot";
const VERSION: u32 = 1;
/// Largest number of turns. It is well below the limit of the wire format, so that counting can go on from here.
const MAX_TURNS: u32 = i32::MAX as u32;

pub(super) fn write(history: &History) -> Value {
    let call = |call: &SeenCall| {
        let status = match call.status {
            CallStatus::Unspecified => "unspecified",
            CallStatus::Succeeded => "succeeded",
            CallStatus::Failed => "failed",
        };
        json!({ "tool": call.tool, "status": status, "turn": call.turn, "id": call.id })
    };
    json!({
        "type": KIND,
        "version": VERSION,
        "turns": history.turns,
        "discovered": history.discovered,
        "calls": history.calls.iter().map(call).collect::<Vec<_>>(),
    })
}

/// Returns true if an entry of a history is a snapshot of any version.
#[must_use]
pub fn is_snapshot(entry: &Value) -> bool {
    text(field(entry, "type")) == KIND
}

/// Reads a snapshot. Of a later version, only the known parts are read.
pub(super) fn read(snapshot: &Value) -> History {
    let named = |value: &Value| Some(name(value).to_owned()).filter(|name| !name.is_empty());
    let call = |value: &Value| {
        Some(SeenCall {
            tool: named(field(value, "tool"))?,
            status: match text(field(value, "status")) {
                "succeeded" => CallStatus::Succeeded,
                "failed" => CallStatus::Failed,
                _ => CallStatus::Unspecified,
            },
            turn: count(field(value, "turn")),
            id: text(field(value, "id")).to_owned(),
        })
    };
    History {
        discovered: items(field(snapshot, "discovered")).iter().filter_map(named).collect(),
        calls: items(field(snapshot, "calls")).iter().filter_map(call).collect(),
        turns: count(field(snapshot, "turns")),
    }
}

fn count(value: &Value) -> u32 {
    // A number beyond u64 can't be a real count.
    let counted = value.as_u64().unwrap_or_default();
    u32::try_from(counted).unwrap_or(MAX_TURNS).min(MAX_TURNS)
}
