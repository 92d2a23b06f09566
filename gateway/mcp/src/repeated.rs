//! JSON that two readers may read in two ways: an object with two fields of one name, of which some take the first and some the
//! last.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Returns true if an object in a JSON text, or in what it holds, has two fields of one name.
pub(crate) fn has_repeated_field(json: &str) -> bool {
    serde_json::from_str::<Plain>(json).is_err()
}

/// JSON without such an object. Other JSON is an error.
struct Plain;

/// Name of a field, borrowed where it has no escapes.
#[derive(serde::Deserialize, PartialEq, Eq, Hash)]
struct Name<'t>(#[serde(borrow)] Cow<'t, str>);

impl<'de> Deserialize<'de> for Plain {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reading)
    }
}

struct Reading;

impl<'de> Visitor<'de> for Reading {
    type Value = Plain;

    fn expecting(&self, told: &mut fmt::Formatter<'_>) -> fmt::Result {
        told.write_str("JSON without repeated fields")
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Plain, E> {
        Ok(Plain)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Plain, E> {
        Ok(Plain)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Plain, E> {
        Ok(Plain)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Plain, E> {
        Ok(Plain)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Plain, E> {
        Ok(Plain)
    }

    fn visit_unit<E: Error>(self) -> Result<Plain, E> {
        Ok(Plain)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Plain, A::Error> {
        while items.next_element::<Plain>()?.is_some() {}
        Ok(Plain)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Plain, A::Error> {
        let mut names = HashSet::new();
        while let Some(name) = fields.next_key::<Name<'de>>()? {
            fields.next_value::<Plain>()?;
            if !names.insert(name) {
                return Err(A::Error::custom("a field stands twice"));
            }
        }
        Ok(Plain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_that_stands_twice_is_found_at_any_depth() {
        for twice in [
            r#"{"a":1,"a":1}"#,
            r#"{"a":1,"\u0061":2}"#,
            r#"{"b":[null,{"a":{},"a":true}]}"#,
            r#"[{"x":{"a":"x","b":1.5,"a":-1}}]"#,
        ] {
            assert!(has_repeated_field(twice), "{twice}");
        }
        for once in [r#"{"a":{"a":{"a":[1,-2,0.5,true,null,"a"]}},"b":[{"a":1},{"a":2}]}"#, "[]"] {
            assert!(!has_repeated_field(once), "{once}");
        }
    }
}
