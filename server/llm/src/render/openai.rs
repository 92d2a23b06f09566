//! Function tools for OpenAI's Chat Completions and Responses APIs.

use serde_json::{Value, json};

use super::root::plain_root;
use super::schema::{Losses, MAX_NESTING, Schema, input_schema, is_name, render_each};
use super::{RenderError, Rendered, Tool};

/// Maximum number of tools in a request.
const MOST: usize = 128;

const REFUSED_AT_ROOT: [&str; 2] = ["enum", "not"];

/// Renders the active set as `tools` of the Chat Completions API. The tools are not strict, so schemas stay as they
/// are. A request holds 128 tools; later ones are left out and listed in the losses.
///
/// # Errors
/// [`RenderError`] if a tool came without its full schema.
pub fn openai_chat(tools: &[Tool<'_>]) -> Result<Rendered, RenderError> {
    render_each(tools, Some(MOST), can_name, |tool, losses| {
        Ok(json!({ "type": "function", "function": function(tool, losses)? }))
    })
}

/// Renders the active set as `tools` of the Responses API. The tools are not strict, so schemas stay as they are. A
/// request holds 128 tools; later ones are left out and listed in the losses.
///
/// # Errors
/// [`RenderError`] if a tool came without its full schema.
pub fn openai_responses(tools: &[Tool<'_>]) -> Result<Rendered, RenderError> {
    render_each(tools, Some(MOST), can_name, |tool, losses| {
        let mut function = function(tool, losses)?;
        function["type"] = "function".into();
        function["strict"] = false.into();
        Ok(function)
    })
}

fn can_name(name: &str) -> bool {
    is_name(name, 64, "_-")
}

fn function(tool: &Tool<'_>, losses: &mut Losses) -> Result<Value, RenderError> {
    let schema = plain_root(input_schema(tool)?, &REFUSED_AT_ROOT, losses);
    let mut function = json!({ "name": tool.name, "parameters": complete(schema, 0) });
    if !tool.description.is_empty() {
        function["description"] = tool.description.into();
    }
    Ok(function)
}

/// Adds `items` to every array and `properties` to every object. OpenAI refuses schemas without them; an added `{}`
/// does not change the meaning.
fn complete(schema: Schema, nesting: usize) -> Schema {
    if nesting > MAX_NESTING {
        return schema;
    }
    let within = |(key, value): (String, Value)| {
        let value = complete_within(&key, value, nesting + 1);
        (key, value)
    };
    let mut changed: Schema = schema.into_iter().map(within).collect();
    for (kind, key) in [("array", "items"), ("object", "properties")] {
        let is_kind = changed.get("type").is_some_and(|named| match named {
            Value::Array(kinds) => kinds.iter().any(|named| named == kind),
            named => named == kind,
        });
        if is_kind {
            changed.entry(key).or_insert_with(|| json!({}));
        }
    }
    changed
}

fn complete_within(key: &str, value: Value, nesting: usize) -> Value {
    let one = |value: Value| match value {
        Value::Object(schema) => Value::Object(complete(schema, nesting)),
        other => other,
    };
    match (key, value) {
        ("items" | "additionalProperties" | "contains" | "not" | "if" | "then" | "else", value) => {
            one(value)
        }
        ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(schemas)) => {
            schemas.into_iter().map(one).collect()
        }
        (
            "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas",
            Value::Object(schemas),
        ) => schemas.into_iter().map(|(name, schema)| (name, one(schema))).collect(),
        (_, value) => value,
    }
}
