//! Converts a JSON Schema of one type, without references and combinators, for Gemini.

use serde_json::{Number, Value};

use super::gemini::{Converter, SchemaPlace};
use super::schema::{Schema, is_name, list_at, object_at, pointer};

const TYPES: [&str; 6] = ["string", "number", "integer", "boolean", "array", "object"];
/// Keywords that reveal the type of a schema that does not name it.
const SIGNS: [(&str, &[&str]); 4] = [
    ("OBJECT", &["properties", "required", "additionalProperties", "patternProperties"]),
    ("ARRAY", &["items", "prefixItems", "minItems", "maxItems"]),
    ("STRING", &["minLength", "maxLength", "pattern", "format"]),
    ("NUMBER", &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]),
];

/// Converts a schema of one type to Gemini's subset.
pub(super) fn convert_typed(
    converter: &mut Converter<'_>,
    schema: &Schema,
    place: &SchemaPlace,
) -> Schema {
    let kind = kind_of(converter, schema, &place.at);
    let mut converted = Schema::from_iter([("type".into(), kind.as_str().into())]);
    for key in ["title", "description", "pattern"] {
        let fits = key != "pattern" || kind == "STRING";
        if let Some(text) = schema.get(key).filter(|value| value.is_string() && fits) {
            converted.insert(key.into(), text.clone());
        }
    }
    if let Some(default) = schema.get("default").filter(|value| !value.is_null()) {
        converted.insert("default".into(), default.clone());
    }
    if allows_null(schema) {
        converted.insert("nullable".into(), true.into());
    }
    for key in counts(&kind) {
        if let Some(count) = schema.get(*key).and_then(Value::as_number) {
            converted.insert((*key).into(), whole(count));
        }
    }
    format(converter, schema, &place.at, &mut converted);
    values(converter, schema, &place.at, &mut converted);
    match kind.as_str() {
        "NUMBER" | "INTEGER" => bounds(converter, schema, &place.at, &mut converted),
        "ARRAY" => {
            converted.insert("items".into(), items(converter, schema, place).into());
        }
        "OBJECT" => properties(converter, schema, place, &mut converted),
        _ => {}
    }
    for key in schema.keys().filter(|key| !is_seen_to(key)) {
        let at = pointer(&place.at, key);
        converter.losses.add(&at, key, "dropped: Gemini has no such keyword");
    }
    converted
}

/// Returns true if a keyword is converted or kept, or has no meaning of its own.
#[rustfmt::skip]
fn is_seen_to(keyword: &str) -> bool {
    matches!(
        keyword,
        "type" | "format" | "enum" | "const" | "nullable" | "default" | "title" | "description"
            | "properties" | "required" | "additionalProperties" | "minProperties" | "maxProperties"
            | "items" | "prefixItems" | "minItems" | "maxItems" | "anyOf" | "oneOf"
            | "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum"
            | "minLength" | "maxLength" | "pattern"
            | "$schema" | "$id" | "$comment" | "$anchor" | "$defs" | "definitions"
    )
}

/// Returns true if a schema accepts only null.
pub(super) fn is_null(schema: &Schema) -> bool {
    schema.get("type").is_some_and(|kind| kind == "null")
        || schema.get("const").is_some_and(Value::is_null)
}

/// Returns true if a schema accepts null, alone or with other values.
pub(super) fn allows_null(schema: &Schema) -> bool {
    let branches = list_at(schema, "anyOf").iter().chain(list_at(schema, "oneOf"));
    schema.get("nullable") == Some(&Value::Bool(true))
        || is_null(schema)
        || list_at(schema, "type").iter().any(|kind| kind == "null")
        || list_at(schema, "enum").contains(&Value::Null)
        || branches.filter_map(Value::as_object).any(is_null)
}

fn kind_of(converter: &mut Converter<'_>, schema: &Schema, at: &str) -> String {
    let alone = schema.get("type").into_iter().filter(|kind| kind.is_string());
    let named = list_at(schema, "type").iter().chain(alone).filter_map(Value::as_str);
    if let Some(kind) = named.into_iter().find(|kind| TYPES.contains(kind)) {
        return kind.to_uppercase();
    }
    for (kind, keys) in SIGNS {
        if keys.iter().any(|key| schema.contains_key(*key)) {
            return kind.into();
        }
    }
    let values = listed_values(schema);
    let kind = match values.first() {
        Some(_) if values.iter().all(|value| value.is_i64() || value.is_u64()) => "INTEGER",
        Some(_) if values.iter().all(|value| value.is_number()) => "NUMBER",
        Some(_) if values.iter().all(|value| value.is_boolean()) => "BOOLEAN",
        _ => "STRING",
    };
    if kind == "STRING" && (values.is_empty() || !values.iter().all(|value| value.is_string())) {
        converter.losses.add(at, "type", "any value: only texts are asked for");
    }
    kind.into()
}

fn counts(kind: &str) -> &'static [&'static str] {
    match kind {
        "STRING" => &["minLength", "maxLength"],
        "ARRAY" => &["minItems", "maxItems"],
        "OBJECT" => &["minProperties", "maxProperties"],
        _ => &[],
    }
}

/// Returns a count as a whole number, even if it was written as `1.0`.
fn whole(count: &Number) -> Value {
    match count.as_f64() {
        Some(counted) if count.is_f64() => (counted as i64).into(),
        _ => count.clone().into(),
    }
}

fn listed_values(schema: &Schema) -> Vec<&Value> {
    let listed = match schema.get("const") {
        Some(only) => std::slice::from_ref(only),
        None => list_at(schema, "enum"),
    };
    listed.iter().filter(|value| !value.is_null()).collect()
}

fn format(converter: &mut Converter<'_>, schema: &Schema, at: &str, converted: &mut Schema) {
    let Some(named) = schema.get("format").filter(|named| !named.is_null()) else { return };
    let kind = converted.get("type").and_then(Value::as_str).unwrap_or_default();
    let is_taken = match kind {
        "STRING" => named == "date-time",
        "NUMBER" => named == "float" || named == "double",
        "INTEGER" => named == "int32" || named == "int64",
        _ => false,
    };
    if is_taken {
        converted.insert("format".into(), named.clone());
    } else {
        converter.losses.add(&pointer(at, "format"), "format", format!("dropped: {named}"));
    }
}

/// Converts listed values. Gemini can list texts only, so other values are named in the description.
fn values(converter: &mut Converter<'_>, schema: &Schema, at: &str, converted: &mut Schema) {
    let values = listed_values(schema);
    if values.is_empty() {
        return;
    }
    let is_text = |value: &&Value| value.as_str().is_some_and(|text| !text.is_empty());
    if converted.get("type").is_some_and(|kind| kind == "STRING") && values.iter().all(is_text) {
        converted.insert("enum".into(), values.into_iter().cloned().collect());
        return;
    }
    let listed: Vec<String> = values.iter().map(ToString::to_string).collect();
    let told = format!("One of: {}.", listed.join(", "));
    let described = converted.get("description").and_then(Value::as_str);
    let described = described.filter(|text| !text.is_empty());
    let told = described.map_or_else(|| told.clone(), |before| format!("{before} {told}"));
    converted.insert("description".into(), told.into());
    let keyword = if schema.contains_key("const") { "const" } else { "enum" };
    converter.losses.add(&pointer(at, keyword), keyword, "named in the description only");
}

fn bounds(converter: &mut Converter<'_>, schema: &Schema, at: &str, converted: &mut Schema) {
    let is_integer = converted.get("type").is_some_and(|kind| kind == "INTEGER");
    let sides = [("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")];
    for (inclusive, exclusive) in sides {
        let bound = schema.get(inclusive).and_then(Value::as_number);
        let limit = match schema.get(exclusive) {
            // Draft 4 of JSON Schema has it as a boolean.
            Some(Value::Bool(true)) => bound,
            limit => limit.and_then(Value::as_number),
        };
        let nearest = limit.map(|limit| {
            if is_integer {
                return beyond(limit, inclusive == "minimum");
            }
            converter.losses.add(&pointer(at, exclusive), exclusive, "the bound itself is let in");
            limit.clone()
        });
        let tighter = |held: &Number, other: &Number| {
            let held = held.as_f64();
            let other = other.as_f64();
            if inclusive == "minimum" { other > held } else { other < held }
        };
        let held = match (bound.cloned(), nearest) {
            (Some(bound), Some(nearest)) if tighter(&bound, &nearest) => Some(nearest),
            (bound, nearest) => bound.or(nearest),
        };
        if let Some(held) = held {
            converted.insert(inclusive.into(), held.into());
        }
    }
}

/// Returns the nearest whole number within an exclusive bound.
fn beyond(limit: &Number, is_minimum: bool) -> Number {
    if let Some(limit) = limit.as_i64() {
        return if is_minimum { limit.saturating_add(1) } else { limit.saturating_sub(1) }.into();
    }
    let limit = limit.as_f64().unwrap_or_default();
    let nearest = if is_minimum { limit.floor() + 1.0 } else { limit.ceil() - 1.0 };
    (nearest as i64).into()
}

fn items(converter: &mut Converter<'_>, schema: &Schema, place: &SchemaPlace) -> Schema {
    let prefix = list_at(schema, "prefixItems");
    let places = if prefix.is_empty() { list_at(schema, "items") } else { prefix };
    let mut unique: Vec<Value> = Vec::new();
    for value in places {
        if !unique.contains(value) {
            unique.push(value.clone());
        }
    }
    if !places.is_empty() {
        let keyword = if schema.contains_key("prefixItems") { "prefixItems" } else { "items" };
        let at = pointer(&place.at, keyword);
        converter.losses.add(&at, keyword, "which place takes which is lost");
    }
    let items = match unique.len() {
        0 => schema.get("items").cloned().unwrap_or_default(),
        1 => unique.swap_remove(0),
        _ => serde_json::json!({ "anyOf": unique }),
    };
    converter.convert_value(&items, place.down("items"))
}

fn properties(
    converter: &mut Converter<'_>,
    schema: &Schema,
    place: &SchemaPlace,
    converted: &mut Schema,
) {
    let mut properties = Schema::new();
    for (name, value) in object_at(schema, "properties").into_iter().flatten() {
        let stands = place.down_to("properties", name);
        let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if starts && is_name(name, 64, "_") {
            properties.insert(name.clone(), converter.convert_value(value, stands).into());
        } else {
            converter.losses.add(&stands.at, "properties", "dropped: not taken as a name");
        }
    }
    let is_there = |name: &&Value| name.as_str().is_some_and(|name| properties.contains_key(name));
    let required: Vec<Value> =
        list_at(schema, "required").iter().filter(is_there).cloned().collect();
    if !properties.is_empty() {
        converted.insert("properties".into(), properties.into());
    }
    if !required.is_empty() {
        converted.insert("required".into(), required.into());
    }
    let says_nothing = |more: &Value| match more {
        Value::Null | Value::Bool(true) => true,
        Value::Object(more) => more.is_empty(),
        _ => false,
    };
    if !schema.get("additionalProperties").is_none_or(says_nothing) {
        let at = pointer(&place.at, "additionalProperties");
        converter.losses.add(&at, "additionalProperties", "dropped: not taken");
    }
}
