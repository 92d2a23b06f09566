//! Current form of schemas in older dialects of JSON Schema. Models are sent the current form, because providers take
//! only the current dialect (2020-12) and refuse all of a request's tools for one schema that is not in it.

use std::fmt;

use jsonschema::Draft;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::dialect::{self, BOUNDS, LISTS, MAPS, SCHEMAS};

/// Returns the schema in the current dialect of JSON Schema if it is written in an older or unknown one; `None` if it
/// can be sent as it stands. Members keep their order, and values their spelling.
#[must_use]
pub fn current_form(text: &str) -> Option<String> {
    if !may_be_old(text) {
        return None;
    }
    let root: Value = serde_json::from_str(text).ok()?;
    let said = root.get("$schema").and_then(Value::as_str).map(Draft::from_schema_uri);
    let is_older = match said {
        Some(Draft::Draft4 | Draft::Draft6 | Draft::Draft7 | Draft::Draft201909) => true,
        Some(Draft::Unknown) | None => dialect::settle(&mut root.clone()).is_some(),
        _ => return None,
    };
    let mut rewriting = Rewriting { root: &root, is_older, changed: said == Some(Draft::Unknown) };
    let current = rewriting.schema(text).ok()?;
    rewriting.changed.then_some(current)
}

/// Returns false for most schemas that need no change, without reading them.
fn may_be_old(text: &str) -> bool {
    // A list of items, whatever the white space.
    let is_list = |rest: &str| {
        let value = rest.trim_start().strip_prefix(':').map(str::trim_start);
        value.is_some_and(|value| value.starts_with('['))
    };
    text.contains("$schema")
        || text.contains("exclusiveM")
        || text.contains("\\u")
        || text.split("\"items\"").skip(1).any(is_list)
}

/// Members of an object in their order, each value in its original text.
struct Members<'a>(Vec<(String, &'a str)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reading;
        impl<'de> Visitor<'de> for Reading {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, &RawValue>()? {
                    members.push((key, value.get()));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Reading)
    }
}

/// Role of a value in the schema that it stands in.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Schema,
    /// List of schemas.
    List,
    /// Schemas by name.
    Map,
    /// Names, numbers, or values of the tool's arguments.
    Data,
}

struct Rewriting<'a> {
    root: &'a Value,
    /// True if keywords have the meaning of an older dialect. Bounds of draft 4 are recognised on their own.
    is_older: bool,
    changed: bool,
}

type Rewritten = Result<String, serde_json::Error>;

impl Rewriting<'_> {
    fn schema(&mut self, text: &str) -> Rewritten {
        if !text.starts_with('{') {
            return Ok(text.to_owned());
        }
        let mut members: Vec<(String, String)> = Vec::new();
        let Members(read) = serde_json::from_str(text)?;
        let is_tuple = self.is_older && read.iter().any(|(key, value)| is_tuple(key, value));
        let has = |name: &str| read.iter().any(|(key, _)| key == name);
        let has_reference = has("$ref");
        let has_dependents = has("dependentSchemas") || has("dependentRequired");
        for (key, value) in read {
            match key.as_str() {
                // Only the current dialect may be named, and nothing needs its name.
                "$schema" => {}
                // `prefixItems` had no meaning beside a list of `items`.
                "prefixItems" if is_tuple => {}
                "items" if is_tuple => {
                    self.changed = true;
                    members.push(("prefixItems".to_owned(), self.list(value)?));
                }
                "additionalItems" if is_tuple => {
                    self.changed = true;
                    members.push(("items".to_owned(), self.schema(value)?));
                }
                "dependencies" if self.is_older && !has_dependents => {
                    self.dependencies(value, &mut members)?;
                }
                // An anchor of draft 7, to which nothing refers.
                "$id" if self.is_older && value.starts_with("\"#") => self.changed = true,
                "$recursiveAnchor" if self.is_older => self.changed = true,
                "$recursiveRef" if self.is_older && !has_reference => {
                    self.changed = true;
                    members.push(("$ref".to_owned(), value.to_owned()));
                }
                "$ref" if self.is_older => members.push((key, self.reference(value)?)),
                _ => {
                    let rewritten = match kind_of(&key, value) {
                        Kind::Schema => self.schema(value)?,
                        Kind::List => self.list(value)?,
                        Kind::Map => self.map(value)?,
                        Kind::Data => value.to_owned(),
                    };
                    members.push((key, rewritten));
                }
            }
        }
        for (exclusive, bound) in BOUNDS {
            self.changed |= modernise(&mut members, exclusive, bound);
        }
        Ok(written(&members))
    }

    fn list(&mut self, text: &str) -> Rewritten {
        let read: Vec<&RawValue> = serde_json::from_str(text)?;
        let schemas: Result<Vec<_>, _> = read.iter().map(|raw| self.schema(raw.get())).collect();
        Ok(format!("[{}]", schemas?.join(",")))
    }

    fn map(&mut self, text: &str) -> Rewritten {
        let Members(read) = serde_json::from_str(text)?;
        let schemas: Result<Vec<_>, _> =
            read.into_iter().map(|(name, value)| Ok((name, self.schema(value)?))).collect();
        schemas.map(|schemas| written(&schemas))
    }

    /// Rewrites `dependencies`, which became two keywords: lists of required names, and schemas that hold where a name
    /// is there.
    fn dependencies(
        &mut self,
        text: &str,
        members: &mut Vec<(String, String)>,
    ) -> Result<(), serde_json::Error> {
        if !text.starts_with('{') {
            members.push(("dependencies".to_owned(), text.to_owned()));
            return Ok(());
        }
        self.changed = true;
        let Members(read) = serde_json::from_str(text)?;
        let (names, schemas): (Vec<_>, Vec<_>) =
            read.into_iter().partition(|(_, value)| value.starts_with('['));
        if !names.is_empty() {
            let names: Vec<_> =
                names.into_iter().map(|(key, value)| (key, value.to_owned())).collect();
            members.push(("dependentRequired".to_owned(), written(&names)));
        }
        if !schemas.is_empty() {
            let of = |(key, value)| Ok((key, self.schema(value)?));
            let schemas: Result<Vec<_>, serde_json::Error> = schemas.into_iter().map(of).collect();
            members.push(("dependentSchemas".to_owned(), written(&schemas?)));
        }
        Ok(())
    }

    /// Rewrites a reference if it leads through a keyword that has another name now.
    fn reference(&mut self, text: &str) -> Rewritten {
        let reference: String = serde_json::from_str(text)?;
        let Some((document, pointer)) = reference.split_once("#/") else {
            return Ok(text.to_owned());
        };
        let mut here = Some((self.root, Kind::Schema));
        let mut steps = Vec::new();
        for step in pointer.split('/') {
            let (name, next) = match here {
                Some((value, kind)) => follow(value, kind, step),
                None => (step, None),
            };
            steps.push(name);
            here = next;
        }
        let renamed = format!("{document}#/{}", steps.join("/"));
        Ok(if renamed == reference { text.to_owned() } else { Value::from(renamed).to_string() })
    }
}

/// Follows one step of a JSON Pointer. Returns its name in the current dialect, and where it leads.
fn follow<'v, 's>(
    value: &'v Value,
    kind: Kind,
    step: &'s str,
) -> (&'s str, Option<(&'v Value, Kind)>) {
    let key = super::places::percent_decoded(step).replace("~1", "/").replace("~0", "~");
    let next = match value {
        Value::Object(map) => map.get(&key),
        Value::Array(list) => key.parse().ok().and_then(|at: usize| list.get(at)),
        _ => None,
    };
    let Some(next) = next else { return (step, None) };
    if kind != Kind::Schema {
        let inner = if kind == Kind::Data { Kind::Data } else { Kind::Schema };
        return (step, Some((next, inner)));
    }
    let is_tuple = value.get("items").is_some_and(Value::is_array);
    let name = match key.as_str() {
        "items" if is_tuple => "prefixItems",
        "additionalItems" if is_tuple => "items",
        "dependencies" if next.is_object() => "dependentSchemas",
        _ => step,
    };
    let start = match next {
        Value::Array(_) => "[",
        Value::Object(_) => "{",
        _ => "",
    };
    (name, Some((next, kind_of(&key, start))))
}

/// Returns the role of a keyword's value. The beginning of the value's text is enough.
fn kind_of(key: &str, value: &str) -> Kind {
    if value.starts_with('[') {
        return if LISTS.contains(&key) { Kind::List } else { Kind::Data };
    }
    if !value.starts_with('{') {
        return Kind::Data;
    }
    match key {
        _ if SCHEMAS.contains(&key) => Kind::Schema,
        _ if MAPS.contains(&key) => Kind::Map,
        _ => Kind::Data,
    }
}

fn is_tuple(key: &str, value: &str) -> bool {
    key == "items" && value.starts_with('[')
}

/// Gives a bound of draft 4, a boolean beside a number, the form of later drafts. Returns false if there is none.
fn modernise(members: &mut Vec<(String, String)>, exclusive: &str, bound: &str) -> bool {
    let place_of =
        |members: &[(String, String)], key: &str| members.iter().position(|(name, _)| name == key);
    let Some(place) = place_of(members, exclusive) else { return false };
    match members[place].1.as_str() {
        "true" => match place_of(members, bound) {
            Some(number) => {
                exclusive.clone_into(&mut members[number].0);
                members.remove(place);
            }
            // Without a number it bounds nothing.
            None => drop(members.remove(place)),
        },
        "false" => drop(members.remove(place)),
        _ => return false,
    }
    true
}

fn written(members: &[(String, String)]) -> String {
    let member = |(key, value): &(String, String)| format!("{}:{value}", Value::from(key.as_str()));
    format!("{{{}}}", members.iter().map(member).collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema::ArgumentSchema;

    /// Returns the schema's current form, after checking that it compiles as explicitly current.
    fn current(text: &str) -> Option<String> {
        let current = current_form(text)?;
        explicit(&current);
        assert_eq!(current_form(&current), None, "{current}");
        Some(current)
    }

    fn explicit(text: &str) -> ArgumentSchema {
        let mut schema: Value = serde_json::from_str(text).expect("JSON");
        assert_eq!(schema.get("$schema"), None, "{text}");
        schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
        ArgumentSchema::compile(&schema.to_string()).expect(text)
    }

    #[test]
    fn what_is_current_is_sent_as_it_stands() {
        for text in [
            r#"{"type":"object"}"#,
            r#"{"properties":{"items":{"type":"array","items":{"type":"string"}},"n":{"exclusiveMinimum":3}}}"#,
            r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","properties":{"a":{"prefixItems":[{}]}}}"#,
            // Declared as older, but the same in the current dialect.
            r##"{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"a":{}},
                "properties":{"a":{"$ref":"#/definitions/a"},"n":{"exclusiveMinimum":3}}}"##,
            // Values, not schemas.
            r#"{"properties":{"a":{"default":{"items":[1]},"enum":[{"exclusiveMinimum":true}],
                "const":{"items":[]},"examples":[{"items":[2]}]}}}"#,
            r#"{"properties":{"a":{"prefixItems":[{}]}, "b": {"exclusiveMaximum": 2}}}"#,
        ] {
            assert_eq!(current(text), None, "{text}");
        }
    }

    #[test]
    fn older_forms_become_the_current_ones_in_their_order() {
        for (registered, sent) in [
            (
                r#"{"type":"object","properties":{"z":{"type":"array","items":[{"type":"string"},{ "const": 1.50 }],"additionalItems":false},"a":{}}}"#,
                r#"{"type":"object","properties":{"z":{"type":"array","prefixItems":[{"type":"string"},{"const":1.50}],"items":false},"a":{}}}"#,
            ),
            (
                r#"{"properties":{"n":{"minimum":0,"type":"number","exclusiveMinimum":true},"m":{"maximum":5,"exclusiveMaximum":false},"o":{"exclusiveMinimum":true}}}"#,
                r#"{"properties":{"n":{"exclusiveMinimum":0,"type":"number"},"m":{"maximum":5},"o":{}}}"#,
            ),
            (
                r#"{"$schema":"http://json-schema.org/draft-04/schema#","properties":{"n":{"minimum":0,"exclusiveMinimum":true}}}"#,
                r#"{"properties":{"n":{"exclusiveMinimum":0}}}"#,
            ),
            (
                r#"{"$schema":"https://example.com/mine","properties":{"a":{"type":"null"}}}"#,
                r#"{"properties":{"a":{"type":"null"}}}"#,
            ),
            (
                r##"{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"a":["b"],"c":{"minProperties":2}},"properties":{"d":{"$ref":"#/dependencies/c"},"dependencies":{}}}"##,
                r##"{"dependentRequired":{"a":["b"]},"dependentSchemas":{"c":{"minProperties":2}},"properties":{"d":{"$ref":"#/dependentSchemas/c"},"dependencies":{}}}"##,
            ),
            (
                r##"{"properties":{"items":{"items":[{"type":"string"}],"additionalItems":{"type":"null"}},"b":{"$ref":"#/properties/items/items/0"},"c":{"$ref":"#/properties/items/additionalItems"}}}"##,
                r##"{"properties":{"items":{"prefixItems":[{"type":"string"}],"items":{"type":"null"}},"b":{"$ref":"#/properties/items/prefixItems/0"},"c":{"$ref":"#/properties/items/items"}}}"##,
            ),
            (
                r##"{"$schema":"https://json-schema.org/draft/2019-09/schema","$recursiveAnchor":true,"properties":{"a":{"$recursiveRef":"#"}}}"##,
                r##"{"properties":{"a":{"$ref":"#"}}}"##,
            ),
            (
                r##"{"anyOf":[{"not":{"items":[{}]}}],"$defs":{"x":{"minimum":1,"exclusiveMinimum":true}}}"##,
                r##"{"anyOf":[{"not":{"prefixItems":[{}]}}],"$defs":{"x":{"exclusiveMinimum":1}}}"##,
            ),
            (
                r##"{"$schema":"http://json-schema.org/draft-07/schema#","prefixItems":[{"const":1}],"items":[{"const":2}],"$id":"#a"}"##,
                r##"{"prefixItems":[{"const":2}]}"##,
            ),
            (
                r#"{"properties":{"a":{"\u0069tems":[{}]}}}"#,
                r#"{"properties":{"a":{"prefixItems":[{}]}}}"#,
            ),
        ] {
            ArgumentSchema::compile(registered).expect(registered);
            assert_eq!(current(registered).as_deref(), Some(sent));
        }
    }

    #[test]
    fn the_current_form_takes_and_refuses_the_same() {
        let tuple = r#"{"type":"object","properties":{"p":{"type":"array","items":[{"type":"string"},{"type":"number"}],
            "additionalItems":false}}}"#;
        let bounds = r#"{"properties":{"n":{"type":"number","minimum":0,"exclusiveMinimum":true,
            "maximum":5,"exclusiveMaximum":false},"m":{"exclusiveMaximum":3,"const":1}}}"#;
        let needs = r#"{"$schema":"http://json-schema.org/draft-04/schema#","dependencies":{"a":["b"],
            "c":{"required":["d"]}}}"#;
        for (text, arguments, is_good) in [
            (tuple, json!({"p": ["a", 1]}), true),
            (tuple, json!({"p": [1, "a"]}), false),
            (tuple, json!({"p": ["a", 1, 2]}), false),
            (bounds, json!({"n": 5, "m": 1}), true),
            (bounds, json!({"n": 0}), false),
            (bounds, json!({"n": 6, "m": 2}), false),
            (needs, json!({"a": 1, "b": 1, "c": 1, "d": 1}), true),
            (needs, json!({"a": 1}), false),
            (needs, json!({"c": 1}), false),
        ] {
            let registered = ArgumentSchema::compile(text).expect(text);
            let sent = explicit(&current(text).expect(text));
            for schema in [registered, sent] {
                assert_eq!(schema.check(&arguments).is_ok(), is_good, "{text} {arguments}");
            }
        }
    }
}
