//! Summary from a tool's own words that may find it better. It starts with the tool's own sentences, the first one as a
//! request, and adds the parameters' names if there is room.

use serde_json::Value;

use super::imperative::{imperative, verb_first};
use super::tool::{Tool, distinct_terms};
use toolgate_core::tokens;
use toolgate_routing::catalog::summary::{SUMMARY_TOKENS_MAX, cut, humanise};

/// Maximum number of parameters that are named; required ones come first.
const PARAMETERS_MAX: usize = 6;

/// Parameters that nearly every tool has. Sorted for the binary search.
const COMMON: [&str; 20] = [
    "args",
    "body",
    "cursor",
    "data",
    "fields",
    "format",
    "input",
    "inputs",
    "limit",
    "offset",
    "options",
    "page",
    "page number",
    "page size",
    "params",
    "per page",
    "request",
    "start cursor",
    "timeout",
    "verbose",
];

/// Returns a suggestion of at most [`SUMMARY_TOKENS_MAX`] tokens. `sentences` are the tool's own ones, without shared
/// text.
#[must_use]
pub fn suggestion(tool: &Tool<'_>, sentences: &[&str]) -> String {
    let name = humanise(tool.name);
    let request = sentences.first().map_or_else(|| verb_first(&name), |first| imperative(first));
    let mut text = cut(&format!("{name}: {}.", upper_first(&request)), SUMMARY_TOKENS_MAX);
    for sentence in sentences.iter().skip(1) {
        let longer = format!("{text} {sentence}");
        if tokens::count(&longer) > SUMMARY_TOKENS_MAX {
            break;
        }
        text = longer;
    }
    with_parameters(text, &parameters(tool))
}

/// Appends as many of the parameters as there is room for.
fn with_parameters(text: String, parameters: &[String]) -> String {
    let said = distinct_terms(&text);
    let new = |words: &&String| !distinct_terms(words).is_subset(&said);
    let new: Vec<&str> = parameters.iter().filter(new).map(String::as_str).collect();
    let longer = (1..=new.len().min(PARAMETERS_MAX)).rev();
    let mut longer = longer.map(|count| format!("{text} With {}.", new[..count].join(", ")));
    longer.find(|longer| tokens::count(longer) <= SUMMARY_TOKENS_MAX).unwrap_or(text)
}

/// Returns the names of the parameters in words, required ones first.
fn parameters(tool: &Tool<'_>) -> Vec<String> {
    let schema: Value = serde_json::from_str(tool.definition.input_schema()).unwrap_or_default();
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let all = schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.as_str());
    let mut words: Vec<String> = Vec::new();
    for name in required.chain(all).map(humanise) {
        if COMMON.binary_search(&name.as_str()).is_err() && !words.contains(&name) {
            words.push(name);
        }
    }
    words
}

fn upper_first(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::eval::stock::Stock;
    use crate::lint::tool::samples::server;
    use toolgate_config::LimitsConfig;

    fn suggested(name: &str, description: &str, schema: Value) -> String {
        let stock =
            Stock::check(&[server("s", &[(name, description, schema)])], &LimitsConfig::default());
        let tools = Tool::all(&stock);
        let sentences: Vec<&str> = tools[0].sentences.iter().map(String::as_str).collect();
        suggestion(&tools[0], &sentences)
    }

    #[test]
    fn the_verb_comes_first_and_parameters_last() {
        let schema = json!({"type": "object", "required": ["repoPath"], "properties": {
            "max_count": {"type": "integer"}, "repoPath": {"type": "string"}, "log": {}}});
        let text = suggested("git_log", "Shows the commit logs", schema);
        assert_eq!(text, "git log: Show the commit logs. With repo path, max count.");
        let empty = suggested("issue_get", "", json!({"type": "object"}));
        assert_eq!(empty, "issue get: Get issue.");
    }

    #[test]
    fn common_parameters_are_sorted() {
        assert!(COMMON.is_sorted());
    }

    #[test]
    fn suggestions_fit_a_summary() {
        let properties: serde_json::Map<_, _> =
            (0..90).map(|n| (format!("someParameter{n}"), json!({}))).collect();
        let schema = json!({"type": "object", "properties": properties});
        for description in ["Lists words of some text and ".repeat(40), "Lists words. ".repeat(40)]
        {
            let text = suggested("t", &description, schema.clone());
            assert!((40..=SUMMARY_TOKENS_MAX).contains(&tokens::count(&text)), "{text}");
        }
    }
}
