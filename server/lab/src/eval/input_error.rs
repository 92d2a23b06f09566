//! Errors in files that were given to evaluate, with their position.

use std::fmt;
use std::path::{Path, PathBuf};

/// Error in an input file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputError {
    /// Path of the file.
    pub path: PathBuf,
    /// Line at fault, from 1; `None` if the file is wrong as a whole.
    pub line: Option<usize>,
    /// Description of the problem, and of what would be right.
    pub problem: String,
}

impl InputError {
    /// Makes an error about a file as a whole.
    pub fn of_file(path: &Path, problem: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line: None, problem: problem.into() }
    }

    /// Makes an error about one line.
    pub fn of_line(path: &Path, line: usize, problem: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line: Some(line), problem: problem.into() }
    }

    /// Makes an error about JSON that cannot be parsed. `first_line` is the line of the file on which the JSON text
    /// begins.
    #[must_use]
    pub fn of_json(path: &Path, first_line: usize, error: &serde_json::Error) -> Self {
        // The parser's message ends with a position in the JSON text, which is not the position in the file.
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

/// Reads a whole file as text, without a byte order mark.
///
/// # Errors
/// The file cannot be read, or a line is not UTF-8.
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
