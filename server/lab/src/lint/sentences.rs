//! Sentences of a description, without Markdown marks, headings, code and lists of HTTP statuses.

use toolgate_routing::catalog::summary::{collapse, sentence_ends};

/// Longest description prefix that is read, in bytes.
const LOOK_AT: usize = 8 << 10;

/// Maximum number of words in a heading; a heading ends with a colon.
const HEADING_WORDS: usize = 5;

/// Returns the sentences in their order, each as one line.
#[must_use]
pub fn sentences(description: &str) -> Vec<String> {
    let text = &description[..description.floor_char_boundary(LOOK_AT)];
    let mut found = Vec::new();
    for block in blocks(text) {
        let mut start = 0;
        for end in sentence_ends(&block).chain([block.len()]) {
            let sentence = plain(&block[start..end]);
            if says_something(&sentence) {
                found.push(sentence);
            }
            start = end;
        }
    }
    found
}

/// Returns paragraphs and list items as one line each, without headings and code.
fn blocks(text: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut block = String::new();
    let mut in_code = false;
    for line in text.lines().map(str::trim) {
        let is_fence = line.starts_with("```");
        let (body, is_marked) = unmarked(line);
        let ends_block = line.is_empty() || is_fence || in_code || is_marked || is_heading(body);
        if ends_block && !block.is_empty() {
            blocks.push(collapse(&std::mem::take(&mut block)));
        }
        if !(is_fence || in_code || is_heading(body)) {
            block.push_str(body);
            block.push(' ');
        }
        in_code ^= is_fence;
    }
    blocks.push(collapse(&block));
    blocks
}

/// Removes the list or heading mark before a line. Also returns true if there was one.
fn unmarked(line: &str) -> (&str, bool) {
    let is_mark =
        |c: char| !(c.is_alphanumeric() || matches!(c, '"' | '\'' | '(' | '[' | '<' | '`'));
    let body = line.trim_start_matches(is_mark);
    let digits = body.trim_start_matches(|c: char| c.is_ascii_digit());
    let body = match digits.strip_prefix(['.', ')']) {
        Some(rest) if digits.len() < body.len() && rest.starts_with(' ') => rest.trim_start(),
        _ => body,
    };
    (body, body.len() < line.len())
}

fn is_heading(line: &str) -> bool {
    let bare = line.trim_end_matches(['*', '_', ' ']);
    bare.ends_with(':') && bare.split_whitespace().count() <= HEADING_WORDS
}

/// Removes the marks of emphasis and code, and a leading tag such as `Notion |`.
fn plain(sentence: &str) -> String {
    let text: String = sentence.chars().filter(|c| !matches!(c, '*' | '`')).collect();
    let text = text.trim();
    let untagged = text.split_once(" | ").filter(|(tag, _)| !tag.contains(' '));
    untagged.map_or(text, |(_, rest)| rest.trim()).to_owned()
}

/// Returns false for text without letters and for a status line of an API's documentation, such as `404: Not found`.
fn says_something(sentence: &str) -> bool {
    let bytes = sentence.as_bytes();
    let is_status = matches!(bytes, [b'1'..=b'5', a, b, b':' | b' ', ..]
        if a.is_ascii_digit() && b.is_ascii_digit());
    sentence.chars().any(char::is_alphabetic) && !is_status
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(description: &str, wanted: &[&str]) {
        assert_eq!(sentences(description), wanted, "{description:?}");
    }

    #[test]
    fn sentences_are_found_through_wrapped_lines() {
        check(
            "Gets a page, e.g. of a\nbook. And more",
            &["Gets a page, e.g. of a book.", "And more"],
        );
        check("  \n ", &[]);
    }

    #[test]
    fn marks_headings_code_and_statuses_are_left_out() {
        check(
            "\n  🎯 Purpose:\n  1. Lists **all** `pages`.\n- Then stops.\n\n**Usage Example:**\n```json\n{\"a\": 1}\n```\n",
            &["Lists all pages.", "Then stops."],
        );
        check("Notion | Create a page\nError Responses:\n400: Bad request", &["Create a page"]);
        check("# Title of it\nDoes it.", &["Title of it Does it."]);
        check("---\n...", &[]);
        check("3 ways to do it.", &["3 ways to do it."]);
    }
}
