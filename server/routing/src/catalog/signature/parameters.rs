//! Parameters of a schema: its own, and those that references and `allOf` add.

use std::collections::{BTreeMap, HashSet};

use serde_json::Value;

use super::types::Types;

/// Maximum depth to which references and `allOf` are followed.
const DEPTH_MAX: usize = 8;

/// Parameters of a tool.
#[derive(Debug, Default)]
pub(super) struct Parameters<'a> {
    /// Names of required parameters in the schema's order, each once.
    pub(super) required: Vec<String>,
    /// Names of required parameters for lookup.
    pub(super) is_required: HashSet<String>,
    /// Schemas of the parameters by name.
    pub(super) properties: BTreeMap<String, &'a Value>,
}

impl<'a> Parameters<'a> {
    /// Collects the parameters of the whole schema.
    pub(super) fn of(schema: &'a Value, types: &mut Types<'a>) -> Self {
        let mut parameters = Self::default();
        parameters.add(schema, types, DEPTH_MAX);
        parameters
    }

    fn add(&mut self, schema: &'a Value, types: &mut Types<'a>, depth: usize) {
        types.note_cut(schema);
        if depth == 0 || !types.may_go_on() {
            types.lossy = true;
            return;
        }
        for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if self.is_required.insert(name.to_owned()) {
                self.required.push(name.to_owned());
            }
        }
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            self.properties.insert(name.clone(), property);
        }
        let alternatives = ["anyOf", "oneOf"].iter().any(|key| schema.get(key).is_some());
        let more = schema.get("additionalProperties").is_some_and(Value::is_object);
        types.lossy |= alternatives || more;
        let parts = schema["allOf"].as_array().into_iter().flatten();
        for part in parts.chain(types.target(schema)) {
            self.add(part, types, depth - 1);
        }
    }
}
