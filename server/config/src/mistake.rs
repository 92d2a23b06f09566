//! Mistakes in a configuration: the source, the problem and the fix.

use std::fmt;
use std::path::PathBuf;

/// Source of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Line of the configuration file.
    File {
        /// Path of the file.
        path: PathBuf,
        /// Line number, from 1; 0 if the whole file is meant.
        line: usize,
    },
    /// Environment variable of this name.
    Environment(String),
    /// Flag of the command line.
    Flag(String),
    /// Default, because no source gives a value.
    Default,
}

/// Mistake or oddity in a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// Source of the value.
    pub source: Source,
    /// Key concerned; `None` if the mistake is not about one key.
    pub key: Option<String>,
    /// Description of the problem and the fix. Never repeats a secret.
    pub problem: String,
}

/// All mistakes of a configuration; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigErrors(pub Vec<Mistake>);

impl Source {
    /// Returns the line of the file. Other sources come after all lines.
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
    /// Returns `Ok` if there are no mistakes.
    pub(super) fn unless_empty(mistakes: Vec<Mistake>) -> Result<(), Self> {
        if mistakes.is_empty() { Ok(()) } else { Err(Self(mistakes)) }
    }
}
