//! Rules for a single description: missing, machine-made, too short, or with too long a first sentence.

use super::finding::{Code, Finding, Severity};
use super::tool::{Tool, distinct_terms};
use toolgate_routing::catalog::summary::{SUMMARY_TOKENS_MAX, is_cut};

/// Minimum number of terms that a search needs to find a tool.
const TERMS_MIN: usize = 3;

/// Whole descriptions that are placeholders.
const PLACEHOLDERS: [&str; 17] = [
    "description",
    "fixme",
    "lorem ipsum",
    "missing description",
    "n/a",
    "na",
    "no description",
    "none",
    "null",
    "placeholder",
    "string",
    "tbd",
    "test",
    "testing",
    "todo",
    "undefined",
    "untitled",
];

/// Beginnings of longer placeholders.
const PLACEHOLDER_BEGINNINGS: [&str; 9] = [
    "add a description",
    "add description",
    "description goes here",
    "description here",
    "enter description",
    "insert description",
    "lorem ipsum ",
    "no description ",
    "todo:",
];

const METHODS: [&str; 7] = ["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"];

/// Phrases that tool generators copy from an API's documentation.
const OF_API_DOCUMENTS: [&str; 5] =
    ["error responses:", "**responses:**", "successful response", "(success):", "operationid"];

/// Words that add nothing to a name.
const EMPTY_WORDS: [&str; 12] = [
    "api",
    "endpoint",
    "existing",
    "function",
    "given",
    "method",
    "new",
    "operation",
    "specific",
    "specified",
    "tool",
    "used",
];

/// Returns the problems of a tool's description.
#[must_use]
pub fn check(tool: &Tool<'_>) -> Vec<Finding> {
    let description = tool.definition.description();
    if description.trim().is_empty() {
        let finding = Finding::warning(Code::EmptyDescription, tool, "it has no description");
        return vec![finding.remedy("say in a sentence what it does, beginning with the verb")];
    }
    let mut findings = Vec::new();
    let terms = distinct_terms(description).len();
    if let Some(problem) = machine_made(tool) {
        let finding = Finding::warning(Code::MachineMadeDescription, tool, problem);
        findings.push(finding.remedy("say what it does, with what, and when to use it"));
    } else if restates_name(tool) {
        let problem = format!("{} says no more than its name", quoted(description.trim()));
        let finding = Finding::warning(Code::MachineMadeDescription, tool, problem);
        // A name of several words may be enough of a description.
        let severity = if terms < TERMS_MIN { Severity::Warning } else { Severity::Note };
        findings.push(finding.at(severity).remedy("say as well what for, and when to use it"));
    } else if terms < TERMS_MIN {
        let problem = format!("{description:?} leaves little to search by");
        let remedy = "name what it works on and what for, in words that users say";
        findings.push(Finding::warning(Code::TooShort, tool, problem).remedy(remedy));
    }
    if is_cut(tool.name, description) {
        let problem = format!(
            "its first sentence does not fit a summary of {SUMMARY_TOKENS_MAX} tokens, which ends within it"
        );
        let finding = Finding::warning(Code::SummaryCut, tool, problem).at(Severity::Note);
        findings.push(finding.remedy("begin with a short sentence that says what it does"));
    }
    findings
}

/// Returns the sign that a description is machine-made, or `None` if a person may have written it.
fn machine_made(tool: &Tool<'_>) -> Option<String> {
    let description = tool.definition.description().trim();
    let lower = description.to_lowercase();
    let bare = lower.trim_matches(|c: char| !c.is_alphanumeric());
    if PLACEHOLDERS.contains(&bare)
        || PLACEHOLDER_BEGINNINGS.iter().any(|begins| lower.starts_with(begins))
    {
        return Some(format!("{} stands in for a description", quoted(description)));
    }
    let mut words = description.split_whitespace();
    if let (Some(method), Some(path)) = (words.next(), words.next())
        && METHODS.contains(&method)
        && (path.starts_with('/') || path.starts_with("http"))
    {
        return Some(format!("it begins with an HTTP request: \"{method} {path}\""));
    }
    let summary = tool.record.summary.to_lowercase();
    let sign = OF_API_DOCUMENTS.iter().find(|sign| summary.contains(**sign))?;
    Some(format!("its summary holds {sign:?}, out of an API's documentation"))
}

/// Returns true if the description has no other words than those of the name.
fn restates_name(tool: &Tool<'_>) -> bool {
    let empty = || EMPTY_WORDS.iter().flat_map(|word| distinct_terms(word));
    let said = distinct_terms(tool.definition.description());
    let named = distinct_terms(tool.name);
    !said.is_empty() && said.iter().all(|term| named.contains(term) || empty().any(|e| e == *term))
}

fn quoted(text: &str) -> String {
    let kept: String = text.chars().take(60).collect();
    if kept.len() < text.len() { format!("\"{kept}…\"") } else { format!("{kept:?}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::tool::samples::stock;

    fn codes(name: &str, description: &str) -> Vec<Code> {
        let stock = stock(&[(name, description)]);
        check(&Tool::all(&stock)[0]).into_iter().map(|finding| finding.code).collect()
    }

    #[test]
    fn good_descriptions_are_left_alone() {
        for (name, description) in [
            ("get_issue", "Get one issue of a repository with its comments."),
            ("git_branch", "List Git branches"),
            ("post_message", "Post a message to a channel. Wraps POST /chat.postMessage."),
            ("test_connection", "Test whether the database can be reached."),
            ("none_left", "None of the seats may be left: says whether that holds."),
            ("now", "获取当前时间"),
        ] {
            assert_eq!(codes(name, description), [], "{name}: {description}");
        }
    }

    #[test]
    fn machine_made_descriptions_are_seen() {
        for (name, description) in [
            ("get_users", "GET /v1/users"),
            ("get_users", "Get users."),
            ("get_users", "This tool gets the users"),
            ("getUsers", "get users"),
            ("t", "TODO"),
            ("t", "TODO: write this down"),
            ("t", "No description available for this endpoint of the service."),
            ("create_page", "Create one\n\n**Responses:**\n- **200** (Success): ok"),
            ("x", "Makes pages\nError Responses:\n400: Bad request"),
        ] {
            assert_eq!(codes(name, description), [Code::MachineMadeDescription], "{description}");
        }
    }

    #[test]
    fn too_little_and_too_much() {
        assert_eq!(codes("t", " \n"), [Code::EmptyDescription]);
        assert_eq!(codes("browser_close", "Close the page"), [Code::TooShort]);
        let endless = "Counts the words of a text and ".repeat(20);
        assert_eq!(codes("t", &endless), [Code::SummaryCut]);
    }
}
