//! Likely request of a user who needs a tool. It is made of the tool's own words without its exact name, which would
//! find the tool by itself.

use std::collections::HashSet;

use super::imperative::{imperative, verb_first};
use super::tool::{Tool, distinct_terms};
use toolgate_routing::catalog::summary::humanise;

/// Maximum number of words. Users ask in few words.
const WORDS_MAX: usize = 12;

/// Minimum number of terms; with fewer, the name's words are added.
const TERMS_MIN: usize = 3;

/// Exact names of a catalog's tools.
#[derive(Debug, Default)]
pub struct KnownNames<'a>(HashSet<&'a str>);

impl<'a> KnownNames<'a> {
    /// Collects the MCP names and the model-facing names.
    #[must_use]
    pub fn of(tools: &'a [Tool<'_>]) -> Self {
        let names = tools.iter().flat_map(|tool| [tool.name, tool.record.model_name.as_str()]);
        Self(names.collect())
    }

    /// Splits every exact name in the text into words, because a tool that is named in an intent always ranks first.
    #[must_use]
    pub fn unnamed(&self, text: &str) -> String {
        let words = text.split_whitespace().map(|word| {
            let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
            if self.0.contains(bare) {
                word.replacen(bare, &humanise(bare), 1)
            } else {
                word.to_owned()
            }
        });
        words.collect::<Vec<_>>().join(" ")
    }
}

/// Returns the tool's first own sentence as a request of a few words. Adds the name's words if that is too short.
#[must_use]
pub fn intent(tool: &Tool<'_>, sentences: &[&str], names: &KnownNames<'_>) -> String {
    let name = humanise(tool.name);
    let Some(first) = sentences.first() else { return verb_first(&name) };
    let asked = names.unnamed(&imperative(&without_asides(first)));
    let mut words: Vec<&str> = asked.split_whitespace().take(WORDS_MAX).collect();
    let said = distinct_terms(&asked);
    if said.len() < TERMS_MIN {
        words.extend(name.split(' ').filter(|word| distinct_terms(word).is_disjoint(&said)));
    }
    words.join(" ")
}

/// Removes text in brackets, unless nothing else is left.
fn without_asides(sentence: &str) -> String {
    let mut depth = 0_u32;
    let mut kept = String::new();
    for letter in sentence.chars() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ if depth == 0 => kept.push(letter),
            _ => {}
        }
    }
    if kept.trim().is_empty() { sentence.to_owned() } else { kept }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::tool::samples::stock;

    fn check(name: &str, description: &str, wanted: &str) {
        let stock = stock(&[(name, description), ("list_all", "Lists all.")]);
        let tools = Tool::all(&stock);
        let tool = tools.iter().find(|tool| tool.name == name).expect("the tool");
        let sentences: Vec<&str> = tool.sentences.iter().map(String::as_str).collect();
        assert_eq!(intent(tool, &sentences, &KnownNames::of(&tools)), wanted);
    }

    #[test]
    fn intents_are_requests_without_names() {
        check(
            "get_log",
            "Shows the commit log of a project. And more.",
            "show the commit log of a project",
        );
        check("dialog_handle", "", "handle dialog");
        check("x", "Lists (by default all) files of a folder (or two).", "list files of a folder");
        check("y", "(Lists old files)", "(Lists old files)");
        check("browser_handle_dialog", "Handle a dialog", "handle a dialog browser");
        check(
            "a_b",
            "Opens what mcp__s__list_all and `list_all` found.",
            "open what mcp s list all and list all found",
        );
        let long = "Reads one two three four five six seven eight nine ten eleven twelve thirteen";
        check("r", long, "read one two three four five six seven eight nine ten eleven");
    }
}
