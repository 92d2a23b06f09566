//! Additions in OpenAI's Responses API: an item `additional_tools`.

use serde_json::{Value, json};

use super::plan::Defined;

/// Returns the item that adds tools.
pub(super) fn addition(tools: &[Defined]) -> Value {
    let definitions: Vec<&Value> = tools.iter().map(|tool| &tool.definition).collect();
    json!({ "type": "additional_tools", "role": "developer", "tools": definitions })
}
