//! What a description says, sentence by sentence: without the marks of Markdown, headings, code and lists of
//! HTTP statuses.

use toolgate_routing::catalog::summary::{collapse, sentence_ends};

/// Longest description prefix that is read, in bytes.
const LOOK_AT: usize = 8 << 10;

/// Words of a line that ends in a colon and is a heading.
const HEADING_WORDS: usize = 5;

/// The sentences in their order, each in one line.
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

/// Paragraphs and list items in one line each; headings and code are left out.
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

/// A line without the mark of a list item or heading before it, and whether there was one.
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

/// Without the marks of emphasis and code, and without a tag such as `Notion |` before it.
fn plain(sentence: &str) -> String {
    let text: String = sentence.chars().filter(|c| !matches!(c, '*' | '`')).collect();
    let text = text.trim();
    let untagged = text.split_once(" | ").filter(|(tag, _)| !tag.contains(' '));
    untagged.map_or(text, |(_, rest)| rest.trim()).to_owned()
}

/// A line such as `404: Not found` of an API's documentation does not.
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
