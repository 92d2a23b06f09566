//! Cost of compiling a schema, counted over its document before it is compiled: the parts, the texts of their places,
//! and the patterns.

use serde_json::{Map, Value};

use super::Mistake;
use super::pattern::Patterns;

/// Maximum size in bytes of the places of all parts. The validator keeps a whole place for each part.
const LOCATIONS_MAX: usize = 8 << 20;

/// Maximum size of a compiled schema in bytes.
pub(super) const COMPILED_MAX: usize = 32 << 20;

/// Maximum number of parts of a schema: objects, lists and values.
const PARTS_MAX: usize = 16_000;

/// Bytes that each part takes, and bytes that any schema takes.
const BYTES_A_PART: usize = 768;
const BYTES_A_SCHEMA: usize = 4 << 10;
/// Units of some 100 ns that each part takes.
const UNITS_A_PART: usize = 15;
/// Bytes of a place for each byte of a key in it. Some bytes are escaped, and validators keep two copies.
const BYTES_A_KEY_BYTE: usize = 2;

/// Counted parts of a document.
#[derive(Debug, Default)]
pub(super) struct Size {
    parts: usize,
    locations: usize,
    pub(super) patterns: Patterns,
}

impl Size {
    /// Counts a document's parts.
    ///
    /// # Errors
    /// Returns the mistake and its place if the schema has more than it may have.
    pub(super) fn of(root: &Value) -> Result<Self, Mistake> {
        let mut size = Self::default();
        let id = root.get("$id").and_then(Value::as_str).map_or(0, str::len);
        size.count(root, BYTES_A_KEY_BYTE * id)?;
        Ok(size)
    }

    /// Returns the approximate size of the compiled schema in bytes, without what matching keeps and what is compiled
    /// again.
    pub(super) fn bytes(&self) -> usize {
        BYTES_A_SCHEMA + self.parts * BYTES_A_PART + self.locations + self.patterns.sum.bytes
    }

    /// Returns the cost of compiling each part once, in units of some 100 ns.
    pub(super) fn units(&self) -> usize {
        self.parts * UNITS_A_PART + self.patterns.sum.units
    }

    fn count(&mut self, value: &Value, place: usize) -> Result<(), Mistake> {
        self.parts += 1;
        if self.parts > PARTS_MAX {
            let problem = format!("the schema has more than {PARTS_MAX} parts by here");
            return Err(Mistake::at_root(problem));
        }
        self.locations += place;
        if self.locations > LOCATIONS_MAX {
            let problem = format!(
                "the places of the schema's parts take more than {LOCATIONS_MAX} bytes: use shorter \
                 names, or fewer parts below long ones"
            );
            return Err(Mistake::at_root(problem));
        }
        match value {
            Value::Object(map) => {
                self.add_patterns(map)?;
                for (key, inner) in map {
                    let place = place + BYTES_A_KEY_BYTE * (key.len() + 1);
                    self.count(inner, place).map_err(|mistake| mistake.below(key))?;
                }
            }
            Value::Array(items) => {
                for (at, inner) in items.iter().enumerate() {
                    let mistake = |mistake: Mistake| mistake.below(&at.to_string());
                    self.count(inner, place + 8).map_err(mistake)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn add_patterns(&mut self, map: &Map<String, Value>) -> Result<(), Mistake> {
        if let Some(text) = map.get("pattern").and_then(Value::as_str) {
            self.patterns
                .add(text)
                .map_err(|problem| Mistake::at_root(problem).below("pattern"))?;
        }
        let named = map.get("patternProperties").and_then(Value::as_object);
        for text in named.into_iter().flat_map(Map::keys) {
            let mistake =
                |problem| Mistake::at_root(problem).below(text).below("patternProperties");
            self.patterns.add(text).map_err(mistake)?;
        }
        Ok(())
    }
}
