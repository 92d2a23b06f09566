//! What of a tool is searched by words, and how much each part of it counts.

use std::sync::Arc;

use serde_json::Value;

use super::tool::Tool;
use super::words::Field;
use super::words::language::{Language, Languages};
use crate::packs::Lines;

/// How much a term counts by where it stands, in halves of one in a description. The name says most in the
/// fewest words; parameters are many, and much the same from tool to tool. `toolgate eval`, recall at 1 / 5, of
/// name x 2 and parameters x 1, then of these: azure .883/.990, .887/.992; StableToolBench .321/.677 both;
/// MetaTool .550/.791, .552/.790; Seal-Tools .443/.807, .441/.811; MetaTool's two-tool queries .298/.725, .301/.733.
const NAME: u32 = 6;
const TEXT: u32 = 2;
const PARAMETERS: u32 = 1;

/// What people say who want the tool counts as its parameters do: there is much of it. Recall at 1 / 5 of 62 English
/// intents over the shipped catalogs, with the drafts of packs: .629/.887 without, .694/.903, .710/.919 and .710/.919
/// with a quarter, half and once.
const LINES: u32 = 1;

/// Bytes of a description, and of parameters' texts, that are read; some tools document whole query languages
/// there.
const DESCRIPTION_MAX: usize = 4 << 10;
const PARAMETERS_MAX: usize = 4 << 10;

/// The fields of a tool: MCP server, name, description, hint and parameters, and the summary where the
/// registrant wrote another one than the description gives. Names are often English where texts are not, and users
/// say what they like.
pub(super) fn of<'a>(tool: &'a Tool, lines: Option<&'a Arc<Lines>>) -> Vec<Field<'a>> {
    let description = tool.definition.description();
    let description_read = &description[..description.floor_char_boundary(DESCRIPTION_MAX)];
    let parameters = parameters(tool.definition.input_schema());
    let language = Languages::from(Language::of(&format!("{description_read}\n{parameters}")));
    let any = language | Languages::ENGLISH;
    let mut fields = vec![
        Field::new(TEXT, any, tool.id.server.as_str()),
        Field::new(NAME, any, tool.id.name.as_str()),
        Field::new(TEXT, language, description_read),
        Field::new(TEXT, any, &*tool.search_hint),
        Field::new(PARAMETERS, language, parameters),
    ];
    if is_written(&tool.summary, description) {
        fields.push(Field::new(TEXT, any, &*tool.summary));
    }
    if let Some(lines) = lines {
        fields.push(Field::new(LINES, any, lines.text()));
    }
    fields
}

/// Whether a summary says other than the description's beginning, with the name before it or without.
fn is_written(summary: &str, description: &str) -> bool {
    let said = summary.split_once(": ").map_or(summary, |(_, text)| text).split_whitespace();
    !said.zip(description.split_whitespace()).all(|(said, described)| said == described)
}

/// Names and descriptions of the parameters, those of their parts after them.
fn parameters(schema: &str) -> String {
    let mut text = String::new();
    if let Ok(schema) = serde_json::from_str(schema) {
        collect(&schema, &mut text);
    }
    text
}

fn collect(schema: &Value, text: &mut String) {
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        let description = property.get("description").and_then(Value::as_str).unwrap_or_default();
        let room = PARAMETERS_MAX.saturating_sub(text.len() + name.len() + 2);
        if room == 0 {
            return;
        }
        text.push_str(name);
        text.push(' ');
        text.push_str(&description[..description.floor_char_boundary(room)]);
        text.push('\n');
    }
    for (_, property) in properties.into_iter().flatten() {
        collect(property, text);
        property.get("items").into_iter().for_each(|items| collect(items, text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_that_only_repeats_the_description_is_not_searched_twice() {
        let described = "Sends a letter to people. Needs an address.";
        for (summary, written) in [
            ("send: Sends a letter to people.", false),
            ("Sends a letter to people.", false),
            ("send: Mails someone.", true),
            ("Mails someone.", true),
        ] {
            assert_eq!(is_written(summary, described), written, "{summary}");
        }
        assert!(!is_written("send", ""), "what a tool without a description has");
    }
}
