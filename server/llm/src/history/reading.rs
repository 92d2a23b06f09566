//! Helpers that read foreign JSON. A value of an unexpected type counts as absent.

use serde_json::Value;

const MAX_NAME: usize = 128;
const MAX_RESULT: usize = 64 * 1024;
/// Longest answer to a search, in characters. It may hold the schemas of 100 tools.
const MAX_ANSWER: usize = 1024 * 1024;

/// Returns a field of an object, or null.
pub(super) fn field<'a>(value: &'a Value, key: &str) -> &'a Value {
    value.get(key).unwrap_or(&Value::Null)
}

/// Returns the first of two fields that is not null. Vendors write some in snake case and in camel case.
pub(super) fn first<'a>(value: &'a Value, keys: [&str; 2]) -> Option<&'a Value> {
    keys.iter().map(|key| field(value, key)).find(|found| !found.is_null())
}

/// Returns a text, or an empty one for another type.
pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Returns the items of a list, or none for another type.
pub(super) fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Returns the blocks of a message's content, which is a list or a single block. A text has none.
pub(super) fn blocks(content: &Value) -> &[Value] {
    match content {
        Value::Array(blocks) => blocks,
        Value::Object(_) => std::slice::from_ref(content),
        _ => &[],
    }
}

/// Returns a tool's name, or an empty text if the value can't be a name.
pub(super) fn name(value: &Value) -> &str {
    let found = text(value);
    if found.chars().nth(MAX_NAME).is_some() { "" } else { found }
}

/// Tool that a block of a system message adds or removes.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChangedTool<'a> {
    /// Name of the tool; not always a text.
    pub name: &'a Value,
    /// True if the block has only the name, not the tool's definition.
    pub is_reference: bool,
}

/// Returns the tool of a block `tool_addition` or `tool_removal`, or `None` for another block.
pub(super) fn changed_tool(block: &Value) -> Option<ChangedTool<'_>> {
    let is_change = matches!(text(field(block, "type")), "tool_addition" | "tool_removal");
    let tool = Some(field(block, "tool")).filter(|_| is_change)?;
    let definition = field(tool, "definition");
    let is_reference = definition.is_null();
    let name = if is_reference {
        first(tool, ["name", "tool_name"]).unwrap_or(&Value::Null)
    } else {
        field(definition, "name")
    };
    Some(ChangedTool { name, is_reference })
}

/// Returns true if a result reports an error, for APIs that have no flag for it. It does if it is a JSON object with a
/// non-empty `error` or a true `isError`. In doubt the call counts as failed, which unlocks no tool.
pub(super) fn says_error(content: &Value) -> bool {
    json_object(content, MAX_RESULT).is_some_and(|result| {
        is_truthy(field(&result, "error"))
            || first(&result, ["isError", "is_error"]) == Some(&Value::Bool(true))
    })
}

/// Returns the tools in the answer to a search: those in the list `tools` of a JSON object. Other answers name none.
pub(super) fn found_tools(content: &Value) -> Vec<String> {
    let answer = json_object(content, MAX_ANSWER).unwrap_or_default();
    let named = items(field(&answer, "tools")).iter().map(|tool| name(field(tool, "name")));
    named.filter(|name| !name.is_empty()).map(ToOwned::to_owned).collect()
}

/// Parses a result as a JSON object of at most `limit` characters.
fn json_object(content: &Value, limit: usize) -> Option<Value> {
    let joined;
    let written = if let Value::String(written) = content {
        written.as_str()
    } else {
        joined = items(content).iter().map(|block| text(field(block, "text"))).collect::<String>();
        joined.as_str()
    };
    if written.chars().nth(limit).is_some() || !written.trim_start().starts_with('{') {
        return None;
    }
    serde_json::from_str(written).ok().filter(Value::is_object)
}

fn is_truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
    }
}
