//! Errors of connections to MCP servers.

/// Error of a connection to an MCP server. Its text is for the operator and names no header's value.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    /// The text names neither a command nor a URL.
    #[error("{0}")]
    Target(String),
    /// The process could not be started.
    #[error("{program} cannot be started: {source}")]
    Spawn {
        /// Name or path of the program.
        program: String,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The home folder of a process could not be made, or is not its user's alone.
    #[error("its home folder {} can't be used: {source}", folder.display())]
    Home {
        /// The folder.
        folder: std::path::PathBuf,
        /// Problem. It does not name the folder.
        source: std::io::Error,
    },
    /// The client for HTTP could not be made.
    #[error("no HTTP client: {0}")]
    Client(String),
    /// The handshake failed.
    #[error("the handshake failed: {problem}{said}")]
    Handshake {
        /// True if the server asks for a login (HTTP 401).
        asks_for_login: bool,
        /// Problem, as the protocol library tells it.
        problem: String,
        /// Last lines of the process's standard error, behind a semicolon; empty if there are none.
        said: String,
    },
    /// The server takes the request only with a login (HTTP 401).
    #[error("{request}: it asks for a login")]
    Login {
        /// Name of the request.
        request: &'static str,
    },
    /// The server did not answer in time.
    #[error("no answer to {request} within {seconds} s{said}")]
    Timeout {
        /// Name of the request.
        request: &'static str,
        /// Time that it had, in seconds.
        seconds: u64,
        /// Last lines of the process's standard error, behind a semicolon; empty if there are none.
        said: String,
    },
    /// The server answered with an error, or not with what was asked for.
    #[error("{request} failed: {problem}{said}")]
    Request {
        /// Name of the request.
        request: &'static str,
        /// Problem, as the server or the protocol library tells it.
        problem: String,
        /// Last lines of the process's standard error, behind a semicolon; empty if there are none.
        said: String,
    },
    /// The server lists more than is read of it.
    #[error("tools/list goes on after {pages} pages and {bytes} bytes: the limit is {limit}")]
    TooLarge {
        /// Number of pages that were read.
        pages: usize,
        /// Number of bytes that were read.
        bytes: usize,
        /// Limit that was passed, with its unit.
        limit: &'static str,
    },
}

impl UpstreamError {
    /// Returns the error for a caller of the gateway, who is told no path of a home folder.
    pub(crate) fn told(&self) -> String {
        match self {
            Self::Home { source, .. } => format!("its home folder can't be used: {source}"),
            error => error.to_string(),
        }
    }
}
