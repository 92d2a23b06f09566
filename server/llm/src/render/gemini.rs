//! Function declarations for Gemini, whose schemas are a subset of OpenAPI 3.0's. References and `allOf` are merged in,
//! `oneOf` and lists of types become `anyOf`, and every remaining schema gets exactly one type.

use std::fmt::Display;

use serde_json::{Value, json};

use super::gemini_types::{allows_null, convert_typed, is_null};
use super::root::plain_root;
use super::schema::{
    Losses, MAX_NESTING, Schema, input_schema, is_name, list_at, pointer, render_each, resolve,
};
use super::{RenderError, Rendered, Tool};

/// Maximum number of declarations in a request.
const MOST: usize = 512;
const MAX_SCHEMAS: usize = 4096;
const MAX_MERGES: usize = 16;
const ANNOTATIONS: [&str; 4] = ["title", "description", "default", "examples"];
const TWICE: &str = "dropped: another schema says it already";

/// Renders the active set as `functionDeclarations`, to be sent as `[{"functionDeclarations": [...]}]`.
///
/// Schemas are rewritten in Gemini's subset. Every keyword that it can't express is listed in the losses. Models that
/// accept full JSON Schema (`parametersJsonSchema`) don't need this. A request holds 512 declarations; later ones are
/// left out and listed in the losses.
///
/// # Errors
/// [`RenderError`] if a tool came without its full schema.
pub fn gemini(tools: &[Tool<'_>]) -> Result<Rendered, RenderError> {
    render_each(tools, Some(MOST), can_name, declare)
}

/// Returns true if all models accept the name. The API accepts longer names and more characters, but older models do
/// not.
fn can_name(name: &str) -> bool {
    is_name(name, 64, "_.-") && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

fn declare(tool: &Tool<'_>, losses: &mut Losses) -> Result<Value, RenderError> {
    let mut declaration = json!({ "name": tool.name });
    if !tool.description.is_empty() {
        declaration["description"] = tool.description.into();
    }
    let schema = plain_root(input_schema(tool)?, &[], losses);
    let mut converter = Converter { root: &schema, losses, left: MAX_SCHEMAS };
    let parameters = converter.convert(&schema, SchemaPlace::default());
    if parameters.contains_key("properties") {
        declaration["parameters"] = parameters.into();
    }
    Ok(declaration)
}

/// Position of a schema within the registered schema.
#[derive(Debug, Clone, Default)]
pub(super) struct SchemaPlace {
    /// The position as a JSON Pointer.
    pub(super) at: String,
    nesting: usize,
    /// References that were followed on the way here.
    followed: Vec<String>,
}

impl SchemaPlace {
    /// Returns the position of a schema directly below this one.
    pub(super) fn down(&self, part: &str) -> Self {
        let at = pointer(&self.at, part);
        Self { at, nesting: self.nesting + 1, followed: self.followed.clone() }
    }

    /// Returns the position of one of several schemas: a property by its name, or a branch by its number.
    pub(super) fn down_to(&self, key: &str, which: impl Display) -> Self {
        let mut place = self.down(key);
        place.at = pointer(&place.at, which);
        place
    }
}

/// Converter for the schemas of one tool.
pub(super) struct Converter<'a> {
    root: &'a Schema,
    pub(super) losses: &'a mut Losses,
    left: usize,
}

impl Converter<'_> {
    /// Converts a schema to Gemini's subset. A value that is not an object counts as an empty schema.
    pub(super) fn convert_value(&mut self, schema: &Value, place: SchemaPlace) -> Schema {
        let empty = Schema::new();
        self.convert(schema.as_object().unwrap_or(&empty), place)
    }

    fn convert(&mut self, schema: &Schema, mut place: SchemaPlace) -> Schema {
        let left = self.left.checked_sub(1).filter(|_| place.nesting <= MAX_NESTING);
        let Some(left) = left else {
            self.losses.add(&place.at, "", "too large a schema: any text");
            return Schema::from_iter([("type".into(), "STRING".into())]);
        };
        self.left = left;
        let mut merged = schema.clone();
        for _ in 0..MAX_MERGES {
            if merged.contains_key("$ref") {
                merged = self.follow(merged, &mut place);
            } else if merged.contains_key("allOf") {
                merged = self.all_of(merged, &mut place);
            } else {
                break;
            }
        }
        let (key, choices) = self.choices(&merged, &place.at);
        if choices.is_empty() {
            return convert_typed(self, &merged, &place);
        }
        let converted = choices.iter().map(|(index, choice)| {
            let stands =
                if key.is_empty() { place.down("type") } else { place.down_to(key, *index) };
            self.convert(choice, stands)
        });
        let converted = converted.collect();
        self.any_of(&merged, converted, &place.at)
    }

    /// Merges the referenced schema into this one, and moves `place` to it.
    fn follow(&mut self, mut schema: Schema, place: &mut SchemaPlace) -> Schema {
        let reference = schema.remove("$ref").unwrap_or_default();
        let target = resolve(self.root, &reference);
        let (Some(target), Some(named)) = (target, reference.as_str()) else {
            self.losses.add(&place.at, "$ref", "dropped: it names nothing in this schema");
            return schema;
        };
        if place.followed.iter().any(|followed| followed == named) {
            self.losses.add(&place.at, "$ref", "a schema within itself: any object");
            return Schema::from_iter([("type".into(), "object".into())]);
        }
        place.at = named[1..].to_owned();
        place.followed.push(named.to_owned());
        let mut merged = target.clone();
        merged.extend(schema);
        merged
    }

    /// Merges the branches of `allOf` into the schema.
    fn all_of(&mut self, mut schema: Schema, place: &mut SchemaPlace) -> Schema {
        let branches = schema.remove("allOf").unwrap_or_default();
        for (index, branch) in branches.as_array().into_iter().flatten().enumerate() {
            let mut stands = place.down_to("allOf", index);
            let mut read = branch.as_object().cloned().unwrap_or_default();
            if read.contains_key("$ref") {
                read = self.follow(read, &mut stands);
                place.followed.clone_from(&stands.followed);
            }
            for (key, value) in read {
                self.merge(&mut schema, key, value, &stands.at);
            }
        }
        schema
    }

    fn merge(&mut self, merged: &mut Schema, key: String, value: Value, at: &str) {
        match key.as_str() {
            "properties" => {
                let held = merged.entry(key).or_insert_with(|| json!({}));
                let Value::Object(more) = value else { return };
                self.merge_properties(held, more, at);
            }
            "required" | "allOf" => {
                let mut held = list_at(merged, &key).to_vec();
                let more = if let Value::Array(more) = value { more } else { Vec::new() };
                for item in more {
                    if !held.contains(&item) {
                        held.push(item);
                    }
                }
                merged.insert(key, held.into());
            }
            _ => match merged.get(&key) {
                None => {
                    merged.insert(key, value);
                }
                Some(held) if *held != value && !ANNOTATIONS.contains(&key.as_str()) => {
                    self.losses.add(&pointer(at, &key), &key, TWICE);
                }
                Some(_) => {}
            },
        }
    }

    fn merge_properties(&mut self, held: &mut Value, more: Schema, at: &str) {
        if !held.is_object() {
            *held = json!({});
        }
        for (name, schema) in more {
            match held.get(&name) {
                None => held[&name] = schema,
                Some(known) if *known != schema => {
                    let place = pointer(&pointer(at, "properties"), &name);
                    self.losses.add(&place, "properties", TWICE);
                }
                Some(_) => {}
            }
        }
    }

    /// Returns the keyword of the alternatives, and the alternatives that are not null with their positions.
    fn choices(&mut self, schema: &Schema, at: &str) -> (&'static str, Vec<(usize, Schema)>) {
        for key in ["anyOf", "oneOf"] {
            let branches = list_at(schema, key);
            if branches.is_empty() {
                continue;
            }
            if branches.iter().all(only_requires) {
                self.losses.add(&pointer(at, key), key, "dropped");
                continue;
            }
            let choices = branches_of(schema, key, branches);
            if key == "oneOf" && choices.len() > 1 {
                self.losses.add(&pointer(at, key), key, "as anyOf: several may hold");
            }
            return (key, choices);
        }
        let kinds: Vec<&Value> = list_at(schema, "type").iter().filter(|k| **k != "null").collect();
        if kinds.len() < 2 {
            return ("", Vec::new());
        }
        let of_kind = |(index, kind): (usize, &Value)| {
            let mut choice = without(schema, &ANNOTATIONS);
            choice.insert("type".into(), kind.clone());
            (index, choice)
        };
        ("", kinds.into_iter().enumerate().map(of_kind).collect())
    }

    /// Builds an `anyOf`. Gemini accepts no other keyword beside it, so those move into the branches.
    fn any_of(&mut self, schema: &Schema, converted: Vec<Schema>, at: &str) -> Schema {
        let mut converted: Vec<Schema> = converted.into_iter().flat_map(alternatives).collect();
        let description = schema.get("description").filter(|text| text.is_string());
        for branch in &mut converted {
            if let Some(description) = description {
                branch.entry("description").or_insert_with(|| description.clone());
            }
        }
        if let Some(first) = converted.first_mut().filter(|_| allows_null(schema)) {
            first.insert("nullable".into(), true.into());
        }
        let default = schema.get("default").filter(|value| !value.is_null());
        if converted.len() > 1 {
            if default.is_some() {
                self.losses.add(&pointer(at, "default"), "default", "dropped beside anyOf");
            }
            return Schema::from_iter([("anyOf".into(), converted.into())]);
        }
        let mut only = converted.pop().unwrap_or_default();
        for (key, value) in [("description", description), ("default", default)] {
            if let Some(value) = value {
                only.insert(key.into(), value.clone());
            }
        }
        only
    }
}

/// Returns the alternatives of a converted schema, or the schema itself if it has none.
fn alternatives(mut converted: Schema) -> Vec<Schema> {
    let Some(Value::Array(branches)) = converted.remove("anyOf") else { return vec![converted] };
    let schema = |branch| if let Value::Object(schema) = branch { Some(schema) } else { None };
    branches.into_iter().filter_map(schema).collect()
}

fn only_requires(branch: &Value) -> bool {
    branch.as_object().is_none_or(|branch| branch.keys().all(|key| key == "required"))
}

/// Returns the branches that are not null, each merged with the keywords beside them.
fn branches_of(schema: &Schema, key: &str, branches: &[Value]) -> Vec<(usize, Schema)> {
    let mut beside = without(schema, &ANNOTATIONS);
    beside.retain(|held, _| held != key && held != "nullable");
    if beside.get("type").is_some_and(Value::is_array) {
        beside.remove("type");
    }
    let empty = Schema::new();
    let read = branches.iter().map(|branch| branch.as_object().unwrap_or(&empty)).enumerate();
    let with_beside = |(index, branch): (usize, &Schema)| {
        let both = || Schema::from_iter([("allOf".into(), json!([branch, beside]))]);
        (index, if beside.is_empty() { branch.clone() } else { both() })
    };
    read.filter(|(_, branch)| !is_null(branch)).map(with_beside).collect()
}

fn without(schema: &Schema, keys: &[&str]) -> Schema {
    let kept = schema.iter().filter(|(key, _)| !keys.contains(&key.as_str()));
    kept.map(|(key, value)| (key.clone(), value.clone())).collect()
}
