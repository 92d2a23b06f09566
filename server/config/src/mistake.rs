//! What is wrong with a configuration: where it was said, what was wrong and what would be right.

use std::fmt;
use std::path::PathBuf;

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A line of the file, from 1.
    File {
        /// The file.
        path: PathBuf,
        /// The line, from 1; 0 when it is about the whole file.
        line: usize,
    },
    /// This environment variable.
    Environment(String),
    /// This flag of the command line.
    Flag(String),
    /// Nobody said; the default holds.
    Default,
}

/// One mistake in a configuration, or one oddity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// Where it was said.
    pub source: Source,
    /// The key concerned, when it is about one.
    pub key: Option<String>,
    /// What was wrong and what would be right. Never repeats a secret.
    pub problem: String,
}

/// Every mistake of a configuration; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigErrors(pub Vec<Mistake>);

impl Source {
    /// The line of the file; what is not from the file comes after all of it.
    pub(super) fn line(&self) -> usize {
        match self {
            Self::File { line, .. } => *line,
            _ => usize::MAX,
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line: 0 } => write!(formatter, "{}", path.display()),
            Self::File { path, line } => write!(formatter, "{}:{line}", path.display()),
            Self::Environment(name) => write!(formatter, "environment variable {name}"),
            Self::Flag(flag) => write!(formatter, "flag {flag}"),
            Self::Default => formatter.write_str("default"),
        }
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: ", self.source)?;
        if let Some(key) = &self.key {
            write!(formatter, "{key}: ")?;
        }
        formatter.write_str(&self.problem)
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.0.len() == 1 { "" } else { "s" };
        write!(formatter, "the configuration has {} mistake{plural}:", self.0.len())?;
        for mistake in &self.0 {
            write!(formatter, "\n  {mistake}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}

impl ConfigErrors {
    /// `Ok` when there are none.
    pub(super) fn unless_empty(mistakes: Vec<Mistake>) -> Result<(), Self> {
        if mistakes.is_empty() { Ok(()) } else { Err(Self(mistakes)) }
    }
}
