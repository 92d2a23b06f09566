//! What of a tool is searched by words, and how much each part of it counts.

use serde_json::Value;

use super::tool::Tool;
use super::words::Field;

/// The name says most in the fewest words.
const NAME_TIMES: u32 = 2;

/// Bytes of a description, and of parameters' texts, that are read; some tools document whole query languages
/// there.
const DESCRIPTION_MAX: usize = 4 << 10;
const PARAMETERS_MAX: usize = 4 << 10;

/// The fields of a tool: MCP server, name, description, hint and parameters, and the summary where the
/// registrant wrote another one than the description gives.
pub(super) fn of(tool: &Tool) -> Vec<Field<'_>> {
    let description = tool.definition.description();
    let mut fields = vec![
        Field::new(1, tool.id.server.as_str()),
        Field::new(NAME_TIMES, tool.id.name.as_str()),
        Field::new(1, &description[..description.floor_char_boundary(DESCRIPTION_MAX)]),
        Field::new(1, &*tool.search_hint),
        Field::new(1, parameters(tool.definition.input_schema())),
    ];
    if is_written(&tool.summary, description) {
        fields.push(Field::new(1, &*tool.summary));
    }
    fields
}

/// Whether a summary says other than the description's beginning after the name.
fn is_written(summary: &str, description: &str) -> bool {
    let said = summary.split_once(": ").map_or("", |(_, text)| text).split_whitespace();
    !said.zip(description.split_whitespace()).all(|(said, described)| said == described)
}

/// Names and descriptions of the parameters, those of their parts after them.
fn parameters(schema: &str) -> String {
    let mut text = String::new();
    if let Ok(schema) = serde_json::from_str(schema) {
        collect(&schema, &mut text);
    }
    text
}

fn collect(schema: &Value, text: &mut String) {
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        let description = property.get("description").and_then(Value::as_str).unwrap_or_default();
        let room = PARAMETERS_MAX.saturating_sub(text.len() + name.len() + 2);
        if room == 0 {
            return;
        }
        text.push_str(name);
        text.push(' ');
        text.push_str(&description[..description.floor_char_boundary(room)]);
        text.push('\n');
    }
    for (_, property) in properties.into_iter().flatten() {
        collect(property, text);
        property.get("items").into_iter().for_each(|items| collect(items, text));
    }
}
