//! Dialect of a JSON Schema document that names none, recognised by keywords whose form changed.

use jsonschema::Draft;
use serde_json::{Map, Value};

/// Keywords whose values are schemas, lists of schemas, or schemas by name.
pub(super) const SCHEMAS: [&str; 11] = [
    "not",
    "if",
    "then",
    "else",
    "items",
    "additionalItems",
    "additionalProperties",
    "contains",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
];
pub(super) const LISTS: [&str; 5] = ["allOf", "anyOf", "oneOf", "items", "prefixItems"];
pub(super) const MAPS: [&str; 6] =
    ["properties", "patternProperties", "definitions", "$defs", "dependencies", "dependentSchemas"];

/// Bounds of draft 4: a boolean beside a number. Later drafts have the number alone.
pub(super) const BOUNDS: [(&str, &str); 2] =
    [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")];

/// Finds the dialect of a document that names none, and gives draft 4's exclusive bounds the form of later drafts.
/// Returns `None` if nothing says that the document is older than the current dialect.
pub(super) fn settle(root: &mut Value) -> Option<Draft> {
    let said = root.get("$schema").and_then(Value::as_str).map(Draft::from_schema_uri);
    if said.is_some_and(|draft| draft != Draft::Unknown) {
        return None;
    }
    if said.is_some()
        && let Value::Object(map) = root
    {
        // An unknown dialect can't be fetched either.
        map.remove("$schema");
    }
    let mut signs = Signs::default();
    signs.read(root);
    (signs.is_old && !signs.is_current).then_some(Draft::Draft7)
}

#[derive(Default)]
struct Signs {
    /// True if `items` is a list somewhere, or a bound has the form of draft 4.
    is_old: bool,
    /// True if `prefixItems` occurs, which replaced such `items`.
    is_current: bool,
}

impl Signs {
    fn read(&mut self, schema: &mut Value) {
        let Value::Object(map) = schema else { return };
        self.is_old |= map.get("items").is_some_and(Value::is_array);
        self.is_current |= map.contains_key("prefixItems");
        for (exclusive, bound) in BOUNDS {
            self.is_old |= modernise(map, exclusive, bound);
        }
        for key in SCHEMAS {
            map.get_mut(key).into_iter().for_each(|schema| self.read(schema));
        }
        let lists = LISTS.iter().filter_map(|key| Some((*key, map.get(*key)?.as_array()?.len())));
        for (key, length) in lists.collect::<Vec<_>>() {
            (0..length).for_each(|at| self.read(&mut map[key][at]));
        }
        for key in MAPS {
            let named = map.get_mut(key).and_then(Value::as_object_mut);
            named.into_iter().flat_map(Map::values_mut).for_each(|schema| self.read(schema));
        }
    }
}

fn modernise(map: &mut Map<String, Value>, exclusive: &str, bound: &str) -> bool {
    let Some(Value::Bool(is_exclusive)) = map.get(exclusive) else { return false };
    let number = if *is_exclusive { map.remove(bound) } else { None };
    map.remove(exclusive);
    if let Some(number) = number {
        map.insert(exclusive.to_owned(), number);
    }
    true
}
