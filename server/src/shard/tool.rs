//! One tool as a shard holds it: the parsed record, ready to be ranked, shown and called.

use super::ruled::Ruled;
use crate::catalog::definition::Definition;
use crate::identity::{ToolId, ToolKey};
use crate::store::{ContentHash, Revision, StoredTool};

/// A tool of a snapshot; its slot is its place in the summary pool's order.
#[derive(Debug, Clone)]
pub struct Tool {
    /// Who it is.
    pub id: ToolId,
    /// The same in 128 bits.
    pub key: ToolKey,
    /// The name the model sees.
    pub model_name: Box<str>,
    /// The text that was embedded.
    pub summary: Box<str>,
    /// Words that users say when they mean it.
    pub search_hint: Box<str>,
    /// The MCP definition.
    pub definition: Definition,
    /// SHA-256 of the canonical definition.
    pub hash: ContentHash,
    /// The snapshot's requirement group that it belongs to.
    pub group: u32,
    /// Always part of the active set.
    pub always_load: bool,
    /// Never deferred.
    pub critical: bool,
    /// The policy's least overlap for it, instead of the request's.
    pub threshold: Option<f32>,
    /// The rules of the policy that limit how many of their tools are chosen.
    pub caps: Box<[u32]>,
    /// cl100k_base tokens of what a provider is sent for it.
    pub schema_tokens: u32,
    /// cl100k_base tokens of its line of the summary pool.
    pub summary_tokens: u32,
    /// The revision at which that line last changed.
    pub summary_revision: Revision,
}

impl Tool {
    /// Makes a tool of a stored one and its parsed definition.
    #[must_use]
    pub fn new(stored: StoredTool, definition: Definition, ruled: Ruled) -> Self {
        let record = stored.record;
        let id = ToolId { server: record.server, name: record.name };
        Self {
            key: id.key(),
            id,
            model_name: record.model_name.into(),
            summary: record.summary.into(),
            search_hint: record.search_hint.into(),
            definition,
            hash: record.hash,
            group: ruled.group,
            always_load: record.always_load || ruled.always_load,
            critical: record.critical || ruled.critical,
            threshold: ruled.threshold,
            caps: ruled.caps,
            schema_tokens: record.schema_tokens,
            summary_tokens: record.summary_tokens,
            summary_revision: stored.summary_revision,
        }
    }

    /// One line: the model-facing name and the parameters with their types, `?` after optional ones.
    #[must_use]
    pub fn signature(&self) -> String {
        let schema: serde_json::Value =
            serde_json::from_str(self.definition.input_schema()).unwrap_or_default();
        let required: Vec<&str> = schema["required"]
            .as_array()
            .map_or_else(Vec::new, |names| names.iter().filter_map(|n| n.as_str()).collect());
        let properties = schema["properties"].as_object();
        let parameters = properties.into_iter().flatten().map(|(name, property)| {
            let optional = if required.contains(&name.as_str()) { "" } else { "?" };
            format!("{name}{optional}: {}", type_of(property))
        });
        format!("{}({})", self.model_name, parameters.collect::<Vec<_>>().join(", "))
    }

    /// Bytes that this holds.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let names = self.id.server.as_str().len() + self.id.name.as_str().len();
        let texts = self.model_name.len() + self.summary.len() + self.search_hint.len();
        size_of::<Self>() + self.caps.len() * 4 + names + texts + self.definition.memory_bytes()
    }
}

fn type_of(property: &serde_json::Value) -> String {
    match &property["type"] {
        serde_json::Value::String(name) => name.clone(),
        serde_json::Value::Array(names) => {
            names.iter().filter_map(|n| n.as_str()).collect::<Vec<_>>().join("|")
        }
        _ if property.get("enum").is_some() => "enum".to_owned(),
        _ => "any".to_owned(),
    }
}
