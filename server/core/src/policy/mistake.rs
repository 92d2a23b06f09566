//! Mistakes in a policy document, with their places.

use std::fmt;

/// Mistake in a policy document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyMistake {
    /// Part of the document at fault, such as `rules[2].precondition`; empty for the whole document.
    pub part: String,
    /// Line of the document, from 1; 0 when the mistake has no place.
    pub line: u64,
    /// Column of the document, from 1; 0 when the mistake has no place.
    pub column: u64,
    /// Description of the problem and the fix.
    pub problem: String,
}

impl PolicyMistake {
    pub(super) fn of_part(part: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { part: part.into(), line: 0, column: 0, problem: problem.into() }
    }
}

impl fmt::Display for PolicyMistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.part.is_empty() {
            write!(f, "{}: ", self.part)?;
        }
        if self.line > 0 {
            write!(f, "line {}, column {}: ", self.line, self.column)?;
        }
        f.write_str(&self.problem)
    }
}
