//! Schemas whose root is a plain object, for providers that accept no combinators there.

use serde_json::{Value, json};

use super::schema::{Losses, Schema, list_at, object_at, pointer, resolve};

const MAX_BRANCHES: usize = 256;
const COMBINATORS: [&str; 4] = ["$ref", "allOf", "anyOf", "oneOf"];

/// Returns a schema with `type: object` at its root and no combinator there. The properties of all branches become
/// properties of the root, and a property that every branch requires is required. Nested schemas stay as they are, and
/// so does a schema that is already plain. The keywords of `also_refused` are dropped.
pub(super) fn plain_root(schema: Schema, also_refused: &[&str], losses: &mut Losses) -> Schema {
    let refused: Vec<&str> = COMBINATORS
        .iter()
        .chain(also_refused)
        .copied()
        .filter(|key| schema.contains_key(*key))
        .collect();
    if refused.is_empty() && schema.get("type").is_some_and(|kind| kind == "object") {
        return schema;
    }
    let merged = Branches { root: &schema, left: MAX_BRANCHES }.read(&schema);
    let mut plain = schema.clone();
    plain.retain(|key, _| !refused.contains(&key.as_str()));
    plain.insert("type".into(), "object".into());
    if !merged.properties.is_empty() {
        plain.insert("properties".into(), merged.properties.into());
    }
    if !merged.required.is_empty() {
        plain.insert("required".into(), merged.required.into());
    }
    for key in refused {
        let dropped = also_refused.contains(&key);
        let note = if dropped { "dropped" } else { "its properties were merged into the root's" };
        losses.add(&pointer("", key), key, format!("not taken at the root: {note}"));
    }
    plain
}

/// Properties of an object, and the required ones among them, in the order of the schema.
#[derive(Debug, Default)]
struct Object {
    properties: Schema,
    required: Vec<Value>,
}

impl Object {
    fn of(schema: &Schema) -> Self {
        let required = list_at(schema, "required").iter().filter(|name| name.is_string());
        Self {
            properties: object_at(schema, "properties").cloned().unwrap_or_default(),
            required: required.cloned().collect(),
        }
    }

    fn both(&mut self, other: Self) {
        for (name, schema) in other.properties {
            self.properties.entry(name).or_insert(schema);
        }
        for name in other.required {
            if !self.required.contains(&name) {
                self.required.push(name);
            }
        }
    }

    /// Merges several alternative objects. A property that they define differently accepts any of the definitions.
    fn either(branches: Vec<Self>) -> Self {
        let required_by_all = |name: &Value| branches.iter().all(|b| b.required.contains(name));
        let first = branches.first().map_or(&[][..], |first| &first.required);
        let required = first.iter().filter(|name| required_by_all(name)).cloned().collect();
        let mut definitions: Vec<(String, Vec<Value>)> = Vec::new();
        for (name, schema) in branches.into_iter().flat_map(|branch| branch.properties) {
            match definitions.iter_mut().find(|(known, _)| *known == name) {
                None => definitions.push((name, vec![schema])),
                Some((_, known)) if known.contains(&schema) => {}
                Some((_, known)) => known.push(schema),
            }
        }
        let one = |mut known: Vec<Value>| match known.len() {
            1 => known.swap_remove(0),
            _ => json!({ "anyOf": known }),
        };
        let properties = definitions.into_iter().map(|(name, known)| (name, one(known))).collect();
        Self { properties, required }
    }
}

/// Reader of a schema's branches, with a limit on their number.
struct Branches<'a> {
    root: &'a Schema,
    left: usize,
}

impl Branches<'_> {
    fn read(&mut self, schema: &Schema) -> Object {
        let mut found = Object::of(schema);
        let Some(left) = self.left.checked_sub(1) else { return found };
        self.left = left;
        if let Some(target) = schema.get("$ref").and_then(|to| resolve(self.root, to)) {
            found.both(self.read(target));
        }
        for branch in list_at(schema, "allOf").iter().filter_map(Value::as_object) {
            found.both(self.read(branch));
        }
        for key in ["anyOf", "oneOf"] {
            let empty = Schema::new();
            let branches = list_at(schema, key);
            let read =
                branches.iter().map(|branch| self.read(branch.as_object().unwrap_or(&empty)));
            let read: Vec<Object> = read.collect();
            if !read.is_empty() {
                found.both(Object::either(read));
            }
        }
        found
    }
}
