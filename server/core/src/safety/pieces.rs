//! Texts of a tool's definition, each with its place: names, descriptions, and everything else that may be sent to a
//! model.

use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::{Map, Value};

/// Kind of a text, as rules name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Name or title of the tool.
    Name,
    /// Description of the tool.
    Description,
    /// Name of a parameter, or of a field of the output.
    Parameter,
    /// Description, title or comment of a part of a schema.
    Schema,
    /// Any other text of a schema: defaults, examples, enumerations, patterns.
    Value,
    /// Annotations, `_meta`, and fields that MCP does not know.
    Meta,
    /// Summary of the tool.
    Summary,
    /// Search hint: words that users say.
    Hint,
    /// Description of the MCP server.
    Server,
}

/// Place of a text. Written out only when something is found there.
#[derive(Debug, Default)]
pub struct Path<'a>(Vec<Step<'a>>);

#[derive(Debug, Clone, Copy)]
enum Step<'a> {
    Key(&'a str),
    Place(usize),
}

impl Path<'_> {
    /// Returns the place as a finding writes it, after the prefix `of`.
    #[must_use]
    pub fn after(&self, of: &str) -> String {
        let mut text = of.to_owned();
        for step in &self.0 {
            // Writing into a string can't fail.
            let _ = match step {
                Step::Place(place) => write!(text, "[{place}]"),
                Step::Key(key) if is_plain(key) && text.is_empty() => write!(text, "{key}"),
                Step::Key(key) if is_plain(key) => write!(text, ".{key}"),
                Step::Key(key) => {
                    let kept: String = key.chars().take(40).collect();
                    write!(text, "[\"{}\"]", super::finding::escaped(&kept))
                }
            };
        }
        text
    }
}

fn is_plain(key: &str) -> bool {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '$');
    !key.is_empty() && key.len() <= 64 && key.chars().all(good)
}

/// Keys of JSON Schema whose members have names that the author chooses.
const NAMED: [&str; 5] =
    ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];

/// Keywords of JSON Schema. The keys themselves are not treated as texts.
const KEYWORDS: [&str; 52] = [
    "type",
    "properties",
    "required",
    "description",
    "title",
    "default",
    "enum",
    "const",
    "examples",
    "items",
    "prefixItems",
    "additionalProperties",
    "patternProperties",
    "propertyNames",
    "$ref",
    "$defs",
    "definitions",
    "$schema",
    "$id",
    "$comment",
    "$anchor",
    "anyOf",
    "oneOf",
    "allOf",
    "not",
    "if",
    "then",
    "else",
    "format",
    "pattern",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minItems",
    "maxItems",
    "uniqueItems",
    "contains",
    "minProperties",
    "maxProperties",
    "dependentRequired",
    "dependentSchemas",
    "nullable",
    "readOnly",
    "writeOnly",
    "deprecated",
    "example",
    "unevaluatedProperties",
    "contentEncoding",
];

/// Keys of a schema whose values are prose.
const PROSE: [&str; 3] = ["description", "title", "$comment"];

/// Calls `visit` with each text of a definition, its place and its kind.
pub fn walk<'a>(definition: &'a Value, visit: &mut dyn FnMut(&Path<'a>, Part, &'a str)) {
    let Value::Object(fields) = definition else { return };
    let mut walk = Walk { path: Path::default(), visit };
    for (key, value) in fields {
        walk.within(Step::Key(key), |walk| match (key.as_str(), value) {
            ("name" | "title", Value::String(text)) => walk.text(Part::Name, text),
            ("description", Value::String(text)) => walk.text(Part::Description, text),
            ("inputSchema" | "outputSchema", value) => walk.schema(value),
            ("annotations" | "_meta" | "execution" | "icons", value) => {
                walk.any(Part::Meta, value);
            }
            (_, value) => {
                walk.text(Part::Meta, key);
                walk.any(Part::Meta, value);
            }
        });
    }
}

struct Walk<'a, 'v> {
    path: Path<'a>,
    visit: &'v mut dyn FnMut(&Path<'a>, Part, &'a str),
}

impl<'a> Walk<'a, '_> {
    fn text(&mut self, part: Part, text: &'a str) {
        (self.visit)(&self.path, part, text);
    }

    fn within(&mut self, step: Step<'a>, then: impl FnOnce(&mut Self)) {
        self.path.0.push(step);
        then(self);
        self.path.0.pop();
    }

    fn schema(&mut self, value: &'a Value) {
        match value {
            Value::String(text) => self.text(Part::Value, text),
            Value::Array(items) => {
                for (place, item) in items.iter().enumerate() {
                    self.within(Step::Place(place), |walk| walk.schema(item));
                }
            }
            Value::Object(fields) => {
                for (key, value) in fields {
                    self.within(Step::Key(key), |walk| walk.schema_field(key, value));
                }
            }
            _ => {}
        }
    }

    fn schema_field(&mut self, key: &'a str, value: &'a Value) {
        match value {
            Value::String(text) if PROSE.contains(&key) => self.text(Part::Schema, text),
            Value::Object(members) if NAMED.contains(&key) => self.named(members),
            value if matches!(key, "enum" | "const" | "default" | "examples" | "example") => {
                self.any(Part::Value, value);
            }
            value => {
                if !KEYWORDS.contains(&key) {
                    self.text(Part::Value, key);
                }
                self.schema(value);
            }
        }
    }

    fn named(&mut self, members: &'a Map<String, Value>) {
        for (name, schema) in members {
            self.within(Step::Key(name), |walk| {
                walk.text(Part::Parameter, name);
                walk.schema(schema);
            });
        }
    }

    fn any(&mut self, part: Part, value: &'a Value) {
        match value {
            Value::String(text) => self.text(part, text),
            Value::Array(items) => {
                for (place, item) in items.iter().enumerate() {
                    self.within(Step::Place(place), |walk| walk.any(part, item));
                }
            }
            Value::Object(fields) => {
                for (key, value) in fields {
                    self.within(Step::Key(key), |walk| {
                        walk.text(part, key);
                        walk.any(part, value);
                    });
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_text_is_visited_with_its_place() {
        let tool = json!({
            "name": "t", "title": "T", "description": "D",
            "inputSchema": {"type": "object", "x-note": "N", "properties": {
                "a b": {"description": "P", "enum": ["E"], "default": {"k": "V"}, "pattern": "R"},
                "description": {"anyOf": [{"const": "C"}, {"title": "X", "examples": ["Z"]}]},
            }},
            "outputSchema": {"$defs": {"o": {"$comment": "O"}}},
            "annotations": {"title": "A"}, "_meta": {"m": ["M"]}, "extra": "F",
        });
        let mut found = Vec::new();
        walk(&tool, &mut |path, part, text| {
            found.push(format!("{} {part:?} {text}", path.after("tools[3]")));
        });
        found.sort();
        let text = found.join("\n");
        for line in [
            "tools[3].name Name t",
            "tools[3].title Name T",
            "tools[3].description Description D",
            "tools[3].inputSchema.x-note Value x-note",
            "tools[3].inputSchema.x-note Value N",
            "tools[3].inputSchema.properties[\"a b\"] Parameter a b",
            "tools[3].inputSchema.properties[\"a b\"].description Schema P",
            "tools[3].inputSchema.properties[\"a b\"].enum[0] Value E",
            "tools[3].inputSchema.properties[\"a b\"].default.k Value k",
            "tools[3].inputSchema.properties[\"a b\"].default.k Value V",
            "tools[3].inputSchema.properties[\"a b\"].pattern Value R",
            "tools[3].inputSchema.properties.description Parameter description",
            "tools[3].inputSchema.properties.description.anyOf[0].const Value C",
            "tools[3].inputSchema.properties.description.anyOf[1].title Schema X",
            "tools[3].inputSchema.properties.description.anyOf[1].examples[0] Value Z",
            "tools[3].outputSchema.$defs.o Parameter o",
            "tools[3].outputSchema.$defs.o.$comment Schema O",
            "tools[3].annotations.title Meta title",
            "tools[3].annotations.title Meta A",
            "tools[3]._meta.m[0] Meta M",
            "tools[3].extra Meta F",
        ] {
            assert!(found.iter().any(|one| one == line), "{line}\nis not in\n{text}");
        }
    }

    #[test]
    fn what_is_no_object_has_no_texts() {
        for value in [json!(3), json!(["a"]), json!("a"), json!(null)] {
            walk(&value, &mut |_, _, text| panic!("{text}"));
        }
    }
}
