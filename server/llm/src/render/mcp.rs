//! Definitions in the format of an MCP server's `tools/list`.

use serde_json::{Value, json};

use super::schema::{Losses, input_schema, parse, render_each};
use super::{RenderError, Rendered, Tool};

/// Renders the active set as `tools` of an answer to `tools/list`, with the names that the model sees. Schemas and
/// annotations are the registered ones. MCP's `title`, `icons` and `_meta` are not part of an active set.
///
/// # Errors
/// [`RenderError`] if a tool came without its full schema.
pub fn mcp(tools: &[Tool<'_>]) -> Result<Rendered, RenderError> {
    render_each(tools, None, |name| !name.is_empty(), define)
}

fn define(tool: &Tool<'_>, _: &mut Losses) -> Result<Value, RenderError> {
    let mut definition = json!({ "name": tool.name, "inputSchema": input_schema(tool)? });
    if !tool.description.is_empty() {
        definition["description"] = tool.description.into();
    }
    let parts = [("outputSchema", tool.output_schema_json), ("annotations", tool.annotations_json)];
    for (part, json) in parts {
        if !json.is_empty() {
            definition[part] = parse(tool, part, json)?;
        }
    }
    Ok(definition)
}
