//! The snapshot: what a history said, as a JSON object that outlives its compaction. It is an entry of its
//! own kind, never text: a message that writes one down does not forge it.

use serde_json::{Value, json};

use super::reading::{field, items, name, text};
use super::{CallStatus, History, SeenCall};

const KIND: &str = "toolgate_snapshot";
const VERSION: u32 = 1;
/// Well below what the wire carries, so that turns can be counted on from here.
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

/// Whether an entry of a history is a snapshot, of whichever version.
pub(super) fn is_snapshot(entry: &Value) -> bool {
    text(field(entry, "type")) == KIND
}

/// Reads what can be read; a later version's snapshot is read as far as it is the same.
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
    // A number beyond u64 is no count that anybody made.
    let counted = value.as_u64().unwrap_or_default();
    u32::try_from(counted).unwrap_or(MAX_TURNS).min(MAX_TURNS)
}
