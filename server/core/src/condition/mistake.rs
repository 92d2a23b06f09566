//! Mistakes in an expression, with their places.

use std::fmt;

use cel::ParseErrors;

use super::lower::Wrong;
use super::parser;

/// Mistake in a CEL expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// Line within the expression, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Description of the problem and the fix.
    pub problem: String,
}

impl Mistake {
    pub(super) fn of_syntax(errors: &ParseErrors) -> Self {
        let first = errors.errors.first();
        let (line, column) = first.map_or((1, 1), |error| error.pos);
        let place = |number: isize| usize::try_from(number).unwrap_or(1).max(1);
        let text = first.map_or("", |error| error.msg.as_str());
        let problem = in_words(text.trim_start_matches("Syntax error: "));
        Self { line: place(line), column: place(column), problem }
    }

    pub(super) fn at(source: &str, wrong: Wrong) -> Self {
        let (line, column) = place(source, wrong.id);
        Self { line, column, problem: wrong.problem }
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.problem)
    }
}

/// Returns the line and column of a node. The parser gives places only together with errors, so an error is added after
/// the end of the source.
fn place(source: &str, id: u64) -> (usize, usize) {
    let failed = parser().parse(&format!("{source}\n)")).err();
    let offsets = failed.and_then(|e| e.errors.into_iter().find_map(|e| e.source_info));
    let start = offsets.and_then(|offsets| offsets.offset_for(id)).map_or(0, |(start, _)| start);
    let before = &source[..source.floor_char_boundary(start as usize)];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |text| text.chars().count()) + 1;
    (line, column)
}

/// Returns the parser's text without its list of tokens that could have followed.
fn in_words(text: &str) -> String {
    if text.contains("Recursion limit") {
        return "is nested too deep".to_owned();
    }
    let text = text.split(" expecting ").next().unwrap_or_default();
    let hint = if text.contains("<EOF>") {
        ": the expression ends too early"
    } else if text.contains("at: '=") {
        ": to compare, write =="
    } else {
        ""
    };
    format!("syntax error: {}{hint}", shortened(text))
}

fn shortened(text: &str) -> String {
    if text.len() <= 160 {
        return text.to_owned();
    }
    format!("{}...", &text[..text.floor_char_boundary(160)])
}
