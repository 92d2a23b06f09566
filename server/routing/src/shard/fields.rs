//! Texts of a tool that the word index holds, and the weight of each.

use std::sync::Arc;

use serde_json::Value;

use super::tool::Tool;
use super::words::Field;
use super::words::language::{Language, Languages};
use crate::packs::Lines;

/// Weights of a term by its place, in halves of one occurrence in a description. The name says most in the fewest
/// words. Parameters are many, and much the same from tool to tool. `toolgate eval`, recall at 1 / 5, of name x 2 and
/// parameters x 1, then of these: azure .883/.990, .887/.992; StableToolBench .321/.677 both; MetaTool .550/.791,
/// .552/.790; Seal-Tools .443/.807, .441/.811; MetaTool's two-tool queries .298/.725, .301/.733.
const NAME: u32 = 6;
const TEXT: u32 = 2;
const PARAMETERS: u32 = 1;

/// Weight of a term in a pack's requests, in halves. They count like parameters, because there are many of them. Recall
/// at 1 / 5 of 62 English intents over the shipped catalogs, with the drafts of packs: .629/.887 without, .694/.903,
/// .710/.919 and .710/.919 with a quarter, half and once.
const LINES: u32 = 1;

/// Maximum bytes read of a description, and of the parameters' texts. Some tools document whole query languages there.
const DESCRIPTION_MAX: usize = 4 << 10;
const PARAMETERS_MAX: usize = 4 << 10;

/// Returns the fields of a tool: MCP server, name, description, search hint and parameters. The summary is added if the
/// registrant wrote one that differs from the description, and the requests of a pack if there are any. Names are
/// indexed as English too, because they are often English where the texts are not. Hints, written summaries and
/// requests are too, because users may write in any language.
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

/// Returns true if a summary, with or without the name before it, differs from the beginning of the description.
fn is_written(summary: &str, description: &str) -> bool {
    let said = summary.split_once(": ").map_or(summary, |(_, text)| text).split_whitespace();
    !said.zip(description.split_whitespace()).all(|(said, described)| said == described)
}

/// Returns the names and descriptions of the parameters, followed by those of nested ones. Those of alternative forms and of
/// definitions (`anyOf`, `$defs`) are left out. They are much the same from tool to tool: with them, recall at 5 of people's
/// intents over the shipped catalogs and 331 tools of other servers, without an encoder, was .733 and not .747.
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
    fn parameters_of_objects_and_of_lists_are_read() {
        let schema = r#"{"properties": {
            "plain": {"description": "first"},
            "deep": {"properties": {"inner": {"description": "within"}}},
            "list": {"items": {"properties": {"row": {"description": "of many"}}}}}}"#;
        let read = parameters(schema);
        for text in ["plain first", "inner within", "row of many"] {
            assert!(read.contains(text), "{text}: {read}");
        }
        assert_eq!(parameters(r#"{"properties": []}"#), "");
    }

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
