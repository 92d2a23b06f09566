//! ToolRet. Queries have `id`, `query` and `labels`; tools have `id` and `documentation`. Both are an array or lines.
//! The id of a tool is not meaningful, so it becomes the name of an MCP server, and the tool takes its name from the
//! documentation.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::gathered::Gathered;
use super::{LabelledSet, elements, query};
use crate::eval::input_error::{InputError, read_text};
use crate::eval::query_file::LabelledQuery;

#[derive(Deserialize)]
struct Query {
    id: String,
    query: String,
    labels: Value,
}

/// Tool that serves a query, with its relevance.
#[derive(Deserialize)]
struct Label {
    id: String,
    #[serde(default = "relevant")]
    relevance: f64,
}

fn relevant() -> f64 {
    1.0
}

#[derive(Deserialize)]
struct Tool {
    id: String,
    documentation: Value,
}

pub(super) fn read(catalog: &Path, path: &Path, text: &str) -> Result<LabelledSet, InputError> {
    let mut gathered = Gathered::default();
    let mut names: HashMap<String, String> = HashMap::new();
    let tools = read_text(catalog)?;
    for element in elements::read(catalog, &tools)? {
        let tool: Tool = elements::parse(catalog, element.0, element.1)?;
        let documentation = Documentation::of(&tool);
        let added = gathered.add(&tool.id, &documentation.name, || documentation.tool());
        names.insert(tool.id, added);
    }
    let mut queries = Vec::new();
    for element in elements::read(path, text)? {
        let found: Query = elements::parse(path, element.0, element.1)?;
        let labels = labels(&found.labels, &names).map_err(|problem| {
            InputError::of_line(path, element.0, format!("labels: {problem}"))
        })?;
        // The kind is the id up to `_query`: `apigen` for `apigen_query_5`.
        let kind = found.id.split_once("_query").map(|(kind, _)| kind.to_owned());
        let query = query(path, element.0, found.query, labels)?;
        queries.push(LabelledQuery { kind, ..query });
    }
    Ok(LabelledSet { servers: gathered.unless_empty(catalog)?, queries })
}

/// Returns the tools with a relevance above 0. Some copies of the set have the labels as text.
fn labels(labels: &Value, names: &HashMap<String, String>) -> Result<BTreeSet<String>, String> {
    let labels: Result<Vec<Label>, _> = match labels {
        Value::String(text) => serde_json::from_str(text),
        other => Vec::deserialize(other),
    };
    let labels = labels.map_err(|error| error.to_string())?;
    let serving = labels.into_iter().filter(|label| label.relevance > 0.0);
    // A tool that the catalog lacks counts as missed.
    let name = |label: Label| names.get(&label.id).cloned().unwrap_or(label.id);
    Ok(serving.map(name).collect())
}

/// Documented name, description and parameters of a tool.
struct Documentation {
    name: String,
    description: String,
    parameters: Map<String, Value>,
}

impl Documentation {
    /// Reads the documentation: an object, an object as JSON text, or plain text.
    fn of(tool: &Tool) -> Self {
        let text = tool.documentation.as_str();
        let parsed = text.and_then(|text| serde_json::from_str(text).ok());
        let fields = tool.documentation.as_object().cloned().or(parsed).unwrap_or_default();
        let said = |key: &str| fields.get(key).and_then(Value::as_str).map(str::trim);
        let name = said("name").filter(|name| !name.is_empty()).unwrap_or(&tool.id);
        let description = said("description").or(text.filter(|_| fields.is_empty()));
        let parameters = fields.get("parameters").and_then(Value::as_object);
        let properties =
            parameters.and_then(|known| known.get("properties")).and_then(Value::as_object);
        Self {
            name: name.to_owned(),
            description: description.unwrap_or_default().to_owned(),
            parameters: properties.or(parameters).cloned().unwrap_or_default(),
        }
    }

    /// Builds the tool's definition without types, which come from many languages here. Ranking reads names and
    /// descriptions only.
    fn tool(&self) -> Value {
        let property = |(name, value): (&String, &Value)| {
            let description = value["description"].as_str().or(value.as_str());
            (name.clone(), json!({"description": description.unwrap_or_default()}))
        };
        let properties: Map<String, Value> = self.parameters.iter().map(property).collect();
        json!({
            "name": self.name,
            "description": self.description,
            "inputSchema": {"type": "object", "properties": properties},
        })
    }
}
