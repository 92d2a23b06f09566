//! Code that all renderers share: the losses of a tool, its schema, and positions within it.

use std::fmt::Display;

use serde_json::{Map, Value};

use super::{Loss, RenderError, Rendered, Tool};

/// Maximum depth of a schema that is read. The service refuses deeper ones.
pub(super) const MAX_NESTING: usize = 64;

/// JSON object that holds a schema.
pub(super) type Schema = Map<String, Value>;

/// Collector of the losses of one tool.
#[derive(Debug)]
pub(super) struct Losses {
    tool: String,
    found: Vec<Loss>,
}

impl Losses {
    /// Adds a loss. A repeated one, as from a schema that is used twice, is added once.
    pub(super) fn add(&mut self, pointer: &str, keyword: &str, note: impl Into<String>) {
        let loss = Loss {
            tool: self.tool.clone(),
            pointer: pointer.to_owned(),
            keyword: keyword.to_owned(),
            note: note.into(),
        };
        if !self.found.contains(&loss) {
            self.found.push(loss);
        }
    }
}

/// Renders tools one by one. A tool whose name the provider refuses is left out, because it would fail the whole
/// request. Tools beyond `most`, the last ones of the active set, are left out too. A tool that came as a signature
/// gets the signature as its description and accepts any object; Gate checks its calls against the registered schema.
pub(super) fn render_each<'a>(
    tools: impl IntoIterator<Item = &'a Tool<'a>>,
    most: Option<usize>,
    can_name: fn(&str) -> bool,
    define: fn(&Tool<'_>, &mut Losses) -> Result<Value, RenderError>,
) -> Result<Rendered, RenderError> {
    let mut rendered = Rendered { tools: Vec::new(), losses: Vec::new() };
    for tool in tools {
        let mut losses = Losses { tool: tool.name.to_owned(), found: Vec::new() };
        let most = most.filter(|most| rendered.tools.len() >= *most);
        if !can_name(tool.name) {
            losses.add("", "name", "the provider takes no such name: the tool is left out");
        } else if let Some(most) = most {
            let note =
                format!("the provider takes {most} tools in a request: the tool is left out");
            losses.add("", "tools", note);
        } else {
            rendered.tools.push(define(&told_by_signature(tool), &mut losses)?);
        }
        rendered.losses.append(&mut losses.found);
    }
    Ok(rendered)
}

fn told_by_signature<'a>(tool: &Tool<'a>) -> Tool<'a> {
    if !tool.input_schema_json.is_empty() || tool.signature.is_empty() {
        return *tool;
    }
    Tool { description: tool.signature, input_schema_json: r#"{"type":"object"}"#, ..*tool }
}

/// Parses the registered `inputSchema`.
pub(super) fn input_schema(tool: &Tool<'_>) -> Result<Schema, RenderError> {
    if tool.input_schema_json.is_empty() {
        return Err(RenderError::NoSchema { tool: tool.name.to_owned() });
    }
    let parsed = parse(tool, "inputSchema", tool.input_schema_json)?;
    Ok(parsed.as_object().cloned().unwrap_or_default())
}

/// Parses a part of the definition that came as text.
pub(super) fn parse(tool: &Tool<'_>, part: &'static str, json: &str) -> Result<Value, RenderError> {
    serde_json::from_str(json).map_err(|source| RenderError::NotJson {
        tool: tool.name.to_owned(),
        part,
        source,
    })
}

/// Returns true if a name has 1 to `longest` characters that are all ASCII letters, digits or in `more`.
pub(super) fn is_name(name: &str, longest: usize, more: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || more.contains(c);
    (1..=longest).contains(&name.len()) && name.chars().all(fits)
}

/// Appends a part to a JSON Pointer (RFC 6901).
pub(super) fn pointer(base: &str, part: impl Display) -> String {
    let escaped = part.to_string().replace('~', "~0").replace('/', "~1");
    format!("{base}/{escaped}")
}

/// Returns the object that a keyword holds.
pub(super) fn object_at<'a>(schema: &'a Schema, key: &str) -> Option<&'a Schema> {
    schema.get(key).and_then(Value::as_object)
}

/// Returns the list that a keyword holds, or an empty one.
pub(super) fn list_at<'a>(schema: &'a Schema, key: &str) -> &'a [Value] {
    schema.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Returns the schema that a reference within the document names. Other references give `None`.
pub(super) fn resolve<'a>(root: &'a Schema, reference: &Value) -> Option<&'a Schema> {
    let reference = reference.as_str()?;
    if reference == "#" {
        return Some(root);
    }
    let mut parts = reference.strip_prefix("#/")?.split('/');
    let step = |part: &str| part.replace("~1", "/").replace("~0", "~");
    let first = root.get(&step(parts.next()?))?;
    parts.try_fold(first, |found, part| found.get(step(part)))?.as_object()
}
