//! JSON as text: checks of its shape before parsing, and minifying that keeps every token as written. This module is
//! independent of tools.

use std::cell::Cell;
use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

/// Checks that `text` is one JSON value, nested at most `max_depth` deep, with no repeated key in any
/// object (readers disagree on which one counts: RFC 8259, section 4).
///
/// # Errors
/// The first mistake, with line and column.
pub fn check_shape(text: &str, max_depth: usize) -> Result<(), serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let depth = Cell::new(0);
    Shape { depth: &depth, max_depth }.deserialize(&mut reader)?;
    reader.end()
}

/// Returns the text without white space between tokens. `text` must be valid JSON.
#[must_use]
pub fn minify(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut in_string = false;
    let mut escaped = false;
    for c in text.chars() {
        if in_string {
            in_string = escaped || c != '"';
            escaped = !escaped && c == '\\';
            out.push(c);
        } else if !matches!(c, ' ' | '\t' | '\n' | '\r') {
            in_string = c == '"';
            out.push(c);
        }
    }
    out
}

#[derive(Clone, Copy)]
struct Shape<'a> {
    depth: &'a Cell<usize>,
    max_depth: usize,
}

impl Shape<'_> {
    fn enter<E: serde::de::Error>(self) -> Result<(), E> {
        self.depth.set(self.depth.get() + 1);
        if self.depth.get() > self.max_depth {
            return Err(E::custom(format_args!("nested more than {} deep", self.max_depth)));
        }
        Ok(())
    }

    fn leave(self) {
        self.depth.set(self.depth.get() - 1);
    }
}

impl<'de> DeserializeSeed<'de> for Shape<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Shape<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        self.enter()?;
        while items.next_element_seed(self)?.is_some() {}
        self.leave();
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        self.enter()?;
        let mut seen = HashSet::new();
        while let Some(key) = entries.next_key::<String>()? {
            if seen.contains(&key) {
                return Err(A::Error::custom(format_args!("the key {key:?} is there twice")));
            }
            seen.insert(key);
            entries.next_value_seed(self)?;
        }
        self.leave();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        check_shape(text, 4).expect_err("it must be refused").to_string()
    }

    #[test]
    fn shape() {
        check_shape(r#"{"a": [1, 2.5, -3, null, true, "x"], "b": {"a": {}}}"#, 4).expect("fine");
        assert!(problem("[[[[[1]]]]]").contains("nested more than 4 deep"));
        assert!(problem(r#"{"a": {"b": 1, "b": 2}}"#).contains("\"b\" is there twice"));
        assert!(problem("{\"a\": 1} x").contains("trailing"));
        assert!(problem("{\"a\": }").contains("line 1 column 7"));
        let bomb = "[".repeat(100_000);
        assert!(check_shape(&bomb, 1_000_000).is_err(), "the parser's own limit holds");
    }

    #[test]
    fn minify_leaves_strings_alone() {
        let text = "{ \"a b\" : [ 1 ,\n\t\"\\\" \\\\\" ] , \"é\": 1.0e5 }";
        assert_eq!(minify(text), "{\"a b\":[1,\"\\\" \\\\\"],\"é\":1.0e5}");
    }
}
