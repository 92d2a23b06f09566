//! What is wrong with a file that was given to evaluate, and where.

use std::fmt;
use std::path::{Path, PathBuf};

/// A file that can't be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputError {
    /// The file.
    pub path: PathBuf,
    /// The line at fault, from 1; `None` when it is the file as a whole.
    pub line: Option<usize>,
    /// What is wrong and what would be right.
    pub problem: String,
}

impl InputError {
    /// A file that is wrong as a whole.
    pub fn of_file(path: &Path, problem: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line: None, problem: problem.into() }
    }

    /// A line that is wrong.
    pub fn of_line(path: &Path, line: usize, problem: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line: Some(line), problem: problem.into() }
    }

    /// JSON that can't be parsed; `first_line` is where its text begins in the file.
    #[must_use]
    pub fn of_json(path: &Path, first_line: usize, error: &serde_json::Error) -> Self {
        // The parser's text ends in its own place, which is not the file's.
        let text = error.to_string();
        let problem = text.split(" at line ").next().unwrap_or(&text);
        let line = first_line + error.line().saturating_sub(1);
        Self::of_line(path, line, format!("column {}: {problem}", error.column()))
    }
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match self.line {
            Some(line) => write!(f, "{path}:{line}: {}", self.problem),
            None => write!(f, "{path}: {}", self.problem),
        }
    }
}

impl std::error::Error for InputError {}

/// Reads a whole file as text, a byte order mark left out.
///
/// # Errors
/// The file can't be read, or a line is not UTF-8.
pub fn read_text(path: &Path) -> Result<String, InputError> {
    let bytes = std::fs::read(path)
        .map_err(|error| InputError::of_file(path, format!("cannot be read: {error}")))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        InputError::of_line(path, line, "not UTF-8: save the file as UTF-8")
    })?;
    Ok(text.strip_prefix('\u{feff}').map_or_else(|| text.clone(), str::to_owned))
}
