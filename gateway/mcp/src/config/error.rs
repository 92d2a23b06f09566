//! Errors of the gateway's file.

use std::path::PathBuf;

use super::places;

/// Error of a gateway's file, or of the system that it is to run on.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The system has no random numbers.
    #[error("the system gives no random numbers")]
    NoRandomNumbers,
    /// The file can't be read.
    #[error("{path} can't be read: {source}")]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The file is no valid configuration. Holds the problem, with its line.
    #[error("{path}: {problem}")]
    Invalid {
        /// Path of the file.
        path: PathBuf,
        /// The problem.
        problem: String,
    },
    /// The file of the audit can't be opened.
    #[error("gateway.audit_file can't be opened: {0}")]
    Audit(#[source] std::io::Error),
    /// A server's entry makes no sense.
    #[error("{}server.{server}: {problem}", at(.line))]
    Server {
        /// Name of the server.
        server: String,
        /// The problem, and a remedy. The key at fault comes first, between backticks.
        problem: String,
        /// Line of the file, from 1, where it is known.
        line: Option<usize>,
    },
}

/// Returns the beginning of a message about a line.
fn at(line: &Option<usize>) -> String {
    line.map_or_else(String::new, |line| format!("line {line}: "))
}

impl ConfigError {
    pub(super) fn server(server: &str, problem: &str) -> Self {
        Self::Server { server: server.to_owned(), problem: problem.to_owned(), line: None }
    }

    /// Adds the line of the key that the problem names.
    pub(crate) fn located(mut self, text: &str) -> Self {
        if let Self::Server { server, problem, line } = &mut self {
            *line = places::line(text, server, places::key(problem));
        }
        self
    }
}
