//! Renamed tools: pairs of a tool that a registration adds and a tool that it removes, with nearly the same definition.

use serde_json::Value;

use super::likeness::Sketch;
use super::pieces::{Part, walk};

/// Minimum likeness of two definitions, 0 to 1.
const ALIKE: f64 = 0.6;
/// Maximum number of pairs that are compared.
const PAIRS_MAX: usize = 1 << 16;

/// Tool that a registration adds or removes.
#[derive(Debug)]
pub struct Moving<'a> {
    name: &'a str,
    sketch: Sketch,
    /// Whole text of the definition, for definitions with too few words to be compared by runs of words.
    text: String,
    schema: String,
}

impl<'a> Moving<'a> {
    /// Prepares a tool and its definition for the comparison.
    #[must_use]
    pub fn new(name: &'a str, definition: &Value) -> Self {
        let mut text = String::new();
        walk(definition, &mut |_, part, piece| {
            if matches!(part, Part::Description | Part::Schema | Part::Parameter) {
                text.push_str(piece);
                text.push(' ');
            }
        });
        let schema = definition.get("inputSchema").map(Value::to_string).unwrap_or_default();
        Self { name, sketch: Sketch::of(&text), text, schema }
    }

    /// Returns the MCP name of the tool.
    #[must_use]
    pub fn name(&self) -> &'a str {
        self.name
    }

    fn is(&self, other: &Self) -> bool {
        if self.sketch.is_enough() && other.sketch.is_enough() {
            return self.sketch.likeness(&other.sketch) >= ALIKE;
        }
        self.text == other.text && self.schema == other.schema
    }
}

/// Returns pairs of an added tool, by its index, and the former name of the same tool.
#[must_use]
pub fn renamed<'a>(came: &[Moving<'_>], went: &[Moving<'a>]) -> Vec<(usize, &'a str)> {
    let was = |(place, new): (usize, &Moving<'_>)| {
        let old = went.iter().take(PAIRS_MAX / came.len()).find(|old| new.is(old))?;
        Some((place, old.name))
    };
    came.iter().enumerate().filter_map(was).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tool(description: &str) -> Value {
        json!({"description": description, "inputSchema": {"type": "object", "properties": {
            "query": {"description": "Words that must be in the message."}}}})
    }

    #[test]
    fn a_changed_name_is_recognised() {
        let said = "Searches the messages of a workspace by words, sender and date, newest first.";
        let old = tool(said);
        let new = tool(&format!("{said} Also in archives."));
        let other = tool("Creates a channel and invites the people who are named to it.");
        let went = [Moving::new("search", &old)];
        let came = [Moving::new("create", &other), Moving::new("search_v2", &new)];
        assert_eq!(renamed(&came, &went), [(1, "search")]);
    }

    #[test]
    fn tools_that_say_little_must_be_the_same() {
        let short = |text: &str| json!({"description": text, "inputSchema": {"type": "object"}});
        let a = short("Pings.");
        let b = short("Pongs.");
        let went = [Moving::new("a", &a)];
        assert_eq!(renamed(&[Moving::new("x", &b)], &went), []);
        assert_eq!(renamed(&[Moving::new("x", &a)], &went), [(0, "a")]);
    }
}
