//! The deterministic extractive summary: what is embedded, and what a model reads of a deferred tool.

use crate::tokens;

/// The most cl100k_base tokens of a summary (Tool Attention, phase 1).
pub const SUMMARY_TOKENS_MAX: u32 = 60;

/// Longest description prefix that is looked at, in bytes; far beyond 60 tokens of any script.
const LOOK_AT: usize = 4096;

/// `name in words: description`, cut on a word to [`SUMMARY_TOKENS_MAX`] tokens.
#[must_use]
pub fn summarise(name: &str, description: &str) -> String {
    let words = humanise(name);
    let description = collapse(prefix(description, LOOK_AT));
    if description.is_empty() {
        return cut(&words, SUMMARY_TOKENS_MAX);
    }
    cut(&format!("{words}: {description}"), SUMMARY_TOKENS_MAX)
}

/// A tool's name as words: split on `_`, `-`, `.`, `/` and camel case, in lower case except for
/// abbreviations.
#[must_use]
pub fn humanise(name: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    for part in name.split(|c: char| matches!(c, '_' | '-' | '.' | '/') || c.is_whitespace()) {
        split_camel_case(part, &mut words);
    }
    words.join(" ")
}

fn split_camel_case(part: &str, words: &mut Vec<String>) {
    let chars: Vec<char> = part.chars().collect();
    let mut start = 0;
    for i in 1..=chars.len() {
        let at_end = i == chars.len();
        if !at_end && !begins_word(&chars, i) {
            continue;
        }
        let word: String = chars[start..i].iter().collect();
        let abbreviation = word.chars().count() > 1 && word.chars().all(char::is_uppercase);
        words.push(if abbreviation { word } else { word.to_lowercase() });
        start = i;
    }
}

/// `aB` and `ABc` begin a word at `B`.
fn begins_word(chars: &[char], i: usize) -> bool {
    let (before, here) = (chars[i - 1], chars[i]);
    let next_is_lower = chars.get(i + 1).is_some_and(|c| c.is_lowercase());
    here.is_uppercase() && (before.is_lowercase() || (before.is_uppercase() && next_is_lower))
}

fn collapse(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn prefix(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// The longest prefix of whole words within `max` tokens; of a first word that is longer, as many
/// characters as fit.
fn cut(text: &str, max: u32) -> String {
    if tokens::count(text) <= max {
        return text.to_owned();
    }
    let ends: Vec<usize> = text.match_indices(' ').map(|(at, _)| at).collect();
    // Token counts grow with the prefix but for a token or two at a seam, so the search is followed by a
    // check.
    let mut fits = ends.partition_point(|&end| tokens::count(&text[..end]) <= max);
    while fits > 0 && tokens::count(&text[..ends[fits - 1]]) > max {
        fits -= 1;
    }
    if fits > 0 { text[..ends[fits - 1]].to_owned() } else { cut_characters(text, max) }
}

fn cut_characters(text: &str, max: u32) -> String {
    let mut end = text.floor_char_boundary(text.len().min(max as usize * 8));
    while tokens::count(&text[..end]) > max {
        end = text.floor_char_boundary(end - 1);
    }
    text[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_words() {
        for (name, words) in [
            ("git_diff_unstaged", "git diff unstaged"),
            ("createPullRequest", "create pull request"),
            ("getHTTPResponse", "get HTTP response"),
            ("API-get-users", "API get users"),
            ("azure.storage/list", "azure storage list"),
            ("über_Straße", "über straße"),
        ] {
            assert_eq!(humanise(name), words);
        }
    }

    #[test]
    fn summaries_stay_within_60_tokens_and_whole_words() {
        let long = "Searches the archive for entries. ".repeat(40);
        let summary = summarise("search_archive", &long);
        assert!(tokens::count(&summary) <= SUMMARY_TOKENS_MAX);
        assert!(summary.starts_with("search archive: Searches the archive"));
        let last = summary.rsplit(' ').next().expect("a word");
        assert!(["Searches", "the", "archive", "for", "entries."].contains(&last), "{last}");
    }

    #[test]
    fn any_text_has_a_summary() {
        assert_eq!(summarise("ping", "  \n "), "ping");
        for text in ["字".repeat(5_000), "a".repeat(9_000), "🦀".repeat(2_000)] {
            let summary = summarise("t", &text);
            assert!(tokens::count(&summary) <= SUMMARY_TOKENS_MAX, "{summary}");
        }
    }
}
