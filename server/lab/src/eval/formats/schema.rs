//! JSON schemas from the parameters of published sets, whose type names come from several programming languages.

use serde_json::{Map, Value, json};

/// Returns the JSON type for a type name; `None` for a type that JSON does not have, such as `any` or a class.
fn json_type(name: &str) -> Option<&'static str> {
    match name.to_ascii_lowercase().as_str() {
        "object" | "dict" | "hashmap" | "map" => Some("object"),
        "array" | "list" | "tuple" | "arraylist" | "set" => Some("array"),
        "string" | "str" | "char" | "date" | "time" | "enum" => Some("string"),
        "integer" | "int" | "long" | "short" | "byte" => Some("integer"),
        "number" | "float" | "double" | "bigint" => Some("number"),
        "boolean" | "bool" => Some("boolean"),
        "null" => Some("null"),
        _ => None,
    }
}

/// Replaces the type names of a schema with those of JSON, at every depth. Other types are removed.
pub(super) fn normal(schema: Value) -> Value {
    match schema {
        Value::Object(fields) => {
            let mut normalised = Map::new();
            for (key, value) in fields {
                match (key.as_str(), value) {
                    ("type", Value::String(name)) => {
                        if let Some(known) = json_type(&name) {
                            normalised.insert(key, json!(known));
                        }
                    }
                    (_, value) => {
                        normalised.insert(key, normal(value));
                    }
                }
            }
            normalised.into()
        }
        Value::Array(items) => items.into_iter().map(normal).collect(),
        other => other,
    }
}

/// Builds a schema from lists of parameters with a name, a type and a description.
pub(super) fn of_list<'a>(
    required: impl Iterator<Item = &'a Value>,
    optional: impl Iterator<Item = &'a Value>,
) -> Value {
    let mut properties = Map::new();
    let mut names = Vec::new();
    for (parameter, is_required) in required.map(|p| (p, true)).chain(optional.map(|p| (p, false)))
    {
        let Some(name) = parameter["name"].as_str() else { continue };
        let mut property = Map::new();
        if let Some(known) = parameter["type"].as_str().and_then(json_type) {
            property.insert("type".to_owned(), json!(known));
        }
        if let Some(description) = parameter["description"].as_str().filter(|text| !text.is_empty())
        {
            property.insert("description".to_owned(), json!(description));
        }
        properties.insert(name.to_owned(), property.into());
        if is_required && !names.contains(&name) {
            names.push(name);
        }
    }
    json!({"type": "object", "properties": properties, "required": names})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_become_those_of_json() {
        let schema = json!({"type": "dict", "properties": {
            "type": {"type": "float"},
            "list": {"type": "ArrayList", "items": {"type": "any", "enum": ["float"]}},
        }});
        let wanted = json!({"type": "object", "properties": {
            "type": {"type": "number"},
            "list": {"type": "array", "items": {"enum": ["float"]}},
        }});
        assert_eq!(normal(schema), wanted);
    }

    #[test]
    fn lists_become_properties() {
        let required = [json!({"name": "q", "type": "STRING", "description": "words"})];
        let optional = [json!({"name": "n", "type": "NUMBER", "description": ""}), json!("odd")];
        let wanted = json!({
            "type": "object",
            "properties": {
                "q": {"type": "string", "description": "words"},
                "n": {"type": "number"},
            },
            "required": ["q"],
        });
        assert_eq!(of_list(required.iter(), optional.iter()), wanted);
    }
}
