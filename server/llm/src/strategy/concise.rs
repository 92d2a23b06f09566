//! Schemas for a text that a model reads: without the keywords that only programs heed. Gate checks calls by the whole
//! schema.

use serde_json::{Map, Value};

/// Keywords for programs that read schemas.
const FOR_PROGRAMS: [&str; 2] = ["$schema", "$comment"];

/// Returns the schema of a tool's input without what tells a model nothing.
pub(super) fn input(schema: Value) -> Value {
    match schema {
        // The tool has a name and a description of its own.
        Value::Object(mut root) => {
            root.remove("title");
            within(root, "").into()
        }
        other => other,
    }
}

/// Returns a schema without what tells a model nothing. `name` is that of the property or definition; empty if it has none.
fn concise(schema: Value, name: &str) -> Value {
    match schema {
        Value::Object(fields) => within(fields, name).into(),
        other => other,
    }
}

fn within(fields: Map<String, Value>, name: &str) -> Map<String, Value> {
    let tells = |(keyword, value): &(String, Value)| match (keyword.as_str(), value) {
        ("additionalProperties", Value::Bool(_)) | ("default", Value::Null) => false,
        ("additionalProperties", Value::Object(schema)) => !schema.is_empty(),
        ("title", Value::String(title)) => !is_alike(title, name),
        (keyword, _) => !FOR_PROGRAMS.contains(&keyword),
    };
    let told = fields.into_iter().filter(tells);
    told.map(|(keyword, value)| {
        let value = nested(&keyword, value);
        (keyword, value)
    })
    .collect()
}

/// Returns the value of a keyword with the schemas in it made concise.
fn nested(keyword: &str, value: Value) -> Value {
    match (keyword, value) {
        (
            "items" | "additionalProperties" | "contains" | "not" | "if" | "then" | "else",
            schema,
        ) => concise(schema, ""),
        ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(schemas)) => {
            schemas.into_iter().map(|schema| concise(schema, "")).collect()
        }
        (
            "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas",
            Value::Object(schemas),
        ) => {
            let named = schemas.into_iter().map(|(name, schema)| {
                let schema = concise(schema, &name);
                (name, schema)
            });
            named.collect()
        }
        (_, value) => value,
    }
}

/// Returns true if both texts have the same letters and digits, as a title `Max results` and a name `max_results` do.
fn is_alike(title: &str, name: &str) -> bool {
    let read = |text: &str| -> String {
        text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
    };
    read(title) == read(name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_only_programs_heed_is_left_out() {
        let schema = json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "title": "forecastArguments",
            "type": "object",
            "properties": {
                "max_days": { "title": "Max Days", "type": "integer", "default": null },
                "title": { "title": "Of the report", "type": "string", "default": "" },
                "places": { "type": "array", "items": { "$ref": "#/$defs/Place" } },
            },
            "$defs": { "Place": {
                "title": "Place", "type": "object", "additionalProperties": {}, "$comment": "a point" } },
            "required": ["title"],
            "additionalProperties": false,
        });
        let expected = json!({
            "type": "object",
            "properties": {
                "max_days": { "type": "integer" },
                "title": { "title": "Of the report", "type": "string", "default": "" },
                "places": { "type": "array", "items": { "$ref": "#/$defs/Place" } },
            },
            "$defs": { "Place": { "type": "object" } },
            "required": ["title"],
        });
        assert_eq!(input(schema).to_string(), expected.to_string());
    }

    #[test]
    fn what_limits_values_and_what_is_no_schema_stays() {
        for schema in [
            json!({ "additionalProperties": { "type": "string" } }),
            json!({ "anyOf": [{ "minimum": 1 }, { "enum": [{ "$comment": "a value" }] }] }),
            json!({ "properties": { "$comment": true, "default": { "default": [null] } } }),
            json!({ "default": { "additionalProperties": false, "$schema": "x" } }),
            json!(true),
        ] {
            assert_eq!(input(schema.clone()), schema);
        }
    }
}
