//! Types of a JSON Schema in short notation, with a flag for whatever the notation can't express. The work is bounded
//! for any schema.

use std::collections::HashSet;

use serde_json::Value;

/// Maximum number of schemas visited for one signature.
const LOOKED_AT_MAX: usize = 2_000;

/// Maximum depth to which nested objects are shown.
const DEPTH_MAX: usize = 2;

/// Maximum depth to which references are followed.
const REFERENCES_MAX: usize = 8;

/// Maximum bytes of one type, and maximum values of one `enum`.
const TYPE_MAX: usize = 160;
const VALUES_MAX: usize = 12;

/// Keywords that the short notation expresses, or that don't decide which values are valid.
const SAID: [&str; 24] = [
    "$comment",
    "$defs",
    "$id",
    "$ref",
    "$schema",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "default",
    "definitions",
    "deprecated",
    "description",
    "enum",
    "example",
    "examples",
    "items",
    "oneOf",
    "properties",
    "readOnly",
    "required",
    "title",
    "type",
    "writeOnly",
];

/// Writer of the types of one schema.
pub(super) struct Types<'a> {
    root: &'a Value,
    left: usize,
    /// True once something was left out that decides which values are valid.
    pub(super) lossy: bool,
}

impl<'a> Types<'a> {
    /// Creates a writer for the types of the schema `root`.
    pub(super) fn new(root: &'a Value) -> Self {
        Self { root, left: LOOKED_AT_MAX, lossy: false }
    }

    /// Returns the type of a property in short notation.
    pub(super) fn of(&mut self, schema: &'a Value) -> String {
        self.short(schema, Depth { objects: DEPTH_MAX, references: REFERENCES_MAX })
    }

    /// Counts one more schema and returns true if the budget is not used up.
    pub(super) fn may_go_on(&mut self) -> bool {
        self.left = self.left.saturating_sub(1);
        self.left > 0
    }

    /// Sets `lossy` if the schema has keywords that the short notation can't express.
    pub(super) fn note_cut(&mut self, schema: &Value) {
        let unsaid = |key: &String| SAID.binary_search(&key.as_str()).is_err();
        self.lossy |= schema.as_object().is_some_and(|keys| keys.keys().any(unsaid));
    }

    /// Returns the schema that the `$ref` of `schema` points to within the document.
    pub(super) fn target(&self, schema: &Value) -> Option<&'a Value> {
        self.root.pointer(schema.get("$ref")?.as_str()?.strip_prefix('#')?)
    }

    fn short(&mut self, schema: &'a Value, depth: Depth) -> String {
        if !self.may_go_on() {
            self.lossy = true;
            return "any".to_owned();
        }
        self.note_cut(schema);
        let text = self.full(schema, depth);
        if text.len() <= TYPE_MAX {
            return text;
        }
        self.lossy = true;
        schema["type"].as_str().unwrap_or("any").to_owned()
    }

    fn full(&mut self, schema: &'a Value, depth: Depth) -> String {
        if schema.get("$ref").is_some() {
            return self.referred(schema, depth);
        }
        if let Some(value) = schema.get("const") {
            return minified(value);
        }
        if let Some(values) = schema["enum"].as_array() {
            return self.values(schema, values);
        }
        let alternatives = ["anyOf", "oneOf", "allOf"].iter().find_map(|key| {
            let list = schema.get(key)?.as_array()?;
            // No short notation expresses several schemas that must all hold.
            (*key != "allOf" || list.len() == 1).then_some(list)
        });
        if let Some(list) = alternatives {
            return self.union(list.iter().map(Part::Schema), schema, depth);
        }
        self.lossy |= schema.get("allOf").is_some();
        match &schema["type"] {
            Value::String(name) => self.named(name, schema, depth),
            Value::Array(names) => {
                let names = names.iter().filter_map(Value::as_str).map(Part::Name);
                self.union(names, schema, depth)
            }
            _ if schema.get("properties").is_some() => self.object(schema, depth),
            _ => "any".to_owned(),
        }
    }

    fn referred(&mut self, schema: &'a Value, depth: Depth) -> String {
        match (self.target(schema), depth.references.checked_sub(1)) {
            (Some(target), Some(references)) => self.short(target, Depth { references, ..depth }),
            _ => {
                self.lossy = true;
                "any".to_owned()
            }
        }
    }

    fn values(&mut self, schema: &Value, values: &[Value]) -> String {
        let all = values.iter().map(minified).collect::<Vec<_>>().join("|");
        if values.len() <= VALUES_MAX && all.len() <= TYPE_MAX {
            return all;
        }
        self.lossy = true;
        let same_type = || values.iter().all(Value::is_string).then_some("string");
        schema["type"].as_str().or_else(same_type).unwrap_or("any").to_owned()
    }

    fn union(
        &mut self,
        parts: impl Iterator<Item = Part<'a>>,
        schema: &'a Value,
        depth: Depth,
    ) -> String {
        let mut texts: Vec<String> = Vec::new();
        for part in parts.take(VALUES_MAX) {
            let text = match part {
                Part::Schema(one) => self.short(one, depth),
                Part::Name(name) => self.named(name, schema, depth),
            };
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        if texts.is_empty() { "any".to_owned() } else { texts.join("|") }
    }

    fn named(&mut self, name: &str, schema: &'a Value, depth: Depth) -> String {
        match (name, schema.get("items")) {
            ("array", Some(items)) => {
                let items = self.short(items, depth);
                if items.contains('|') { format!("({items})[]") } else { format!("{items}[]") }
            }
            ("object", _) => self.object(schema, depth),
            _ => name.to_owned(),
        }
    }

    fn object(&mut self, schema: &'a Value, depth: Depth) -> String {
        let properties = schema["properties"].as_object().filter(|map| !map.is_empty());
        let more = schema.get("additionalProperties").filter(|more| more.is_object());
        let Some(objects) = depth.objects.checked_sub(1) else {
            self.lossy |= properties.is_some() || more.is_some();
            return "object".to_owned();
        };
        let inner = Depth { objects, ..depth };
        let required: HashSet<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        match (properties, more) {
            (None, None) => {
                self.lossy |= !required.is_empty();
                "object".to_owned()
            }
            (None, Some(more)) => format!("{{[key]: {}}}", self.short(more, inner)),
            (Some(properties), more) => {
                self.lossy |= more.is_some();
                let shown = properties.iter().map(|(name, property)| {
                    let mark = if required.contains(name.as_str()) { "" } else { "?" };
                    format!("{}{mark}: {}", super::quoted(name), self.short(property, inner))
                });
                format!("{{{}}}", shown.collect::<Vec<_>>().join(", "))
            }
        }
    }
}

/// Alternative of a union.
enum Part<'a> {
    Schema(&'a Value),
    Name(&'a str),
}

/// Remaining depth for nested objects and for references.
#[derive(Clone, Copy)]
struct Depth {
    objects: usize,
    references: usize,
}

/// Returns a value as JSON in one line.
pub(super) fn minified(value: &Value) -> String {
    value.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_are_sorted() {
        assert!(SAID.is_sorted());
    }
}
