//! Places of MCP servers: a command to start, or a URL.

use std::collections::BTreeMap;
use std::path::PathBuf;

use http::{HeaderName, HeaderValue};
use url::Url;

use crate::credentials::{Authorization, is_loopback};
use crate::error::UpstreamError;
use crate::sandbox::Sandbox;

/// Variables that a process gets from this one's environment: what programs need to find themselves and others. Nothing
/// else is inherited, so that no secret reaches a server by accident.
const INHERITED: [&str; 6] = ["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"];

/// Place of an MCP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Upstream {
    /// A process that speaks MCP on its standard streams.
    Process(Launch),
    /// A server behind a URL, over Streamable HTTP or HTTP+SSE.
    Http(Endpoint),
}

/// Process to start. No shell is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// Name or path of the program.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Its whole environment.
    pub environment: BTreeMap<String, String>,
    /// Folder that it starts in; `None` for this process's own.
    pub folder: Option<PathBuf>,
    /// Sandbox that it runs in, if it does.
    pub sandbox: Option<Sandbox>,
}

/// URL of a server.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The URL: https, or http on this machine.
    pub url: Url,
    /// Headers of each request. Their values are secrets.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Credential beside the headers.
    pub authorization: Authorization,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Endpoint")
            .field("url", &self.url.as_str())
            .field("headers", &names)
            .field("authorization", &self.authorization)
            .finish()
    }
}

impl Upstream {
    /// Reads a command line or a URL. A command line is split as a POSIX shell splits words, without expansions.
    ///
    /// # Errors
    /// [`UpstreamError::Target`] if the text is neither, or if the URL would carry requests over the network in the clear.
    pub fn parse(text: &str) -> Result<Self, UpstreamError> {
        let is_url = ["http://", "https://"].iter().any(|scheme| {
            text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
        });
        if is_url {
            Endpoint::parse(text).map(Self::Http)
        } else {
            Launch::parse(text).map(Self::Process)
        }
    }

    /// Returns a name for the server where it has none: its program or host.
    #[must_use]
    pub fn label(&self) -> &str {
        match self {
            Self::Process(launch) => &launch.program,
            Self::Http(endpoint) => endpoint.url.host_str().unwrap_or_default(),
        }
    }
}

impl Launch {
    fn parse(text: &str) -> Result<Self, UpstreamError> {
        let problem = |problem: &str| UpstreamError::Target(format!("`{text}` {problem}"));
        let words = shlex::split(text).ok_or_else(|| problem("has a quote that is not closed"))?;
        let mut words = words.into_iter();
        let program = words.next().filter(|program| !program.is_empty());
        let program = program.ok_or_else(|| problem("names no command and no URL"))?;
        let inherited = INHERITED
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?)));
        Ok(Self {
            program,
            arguments: words.collect(),
            environment: inherited.collect(),
            folder: None,
            sandbox: None,
        })
    }
}

impl Endpoint {
    fn parse(text: &str) -> Result<Self, UpstreamError> {
        let refused = |problem: &str| UpstreamError::Target(format!("`{text}` {problem}"));
        let url = Url::parse(text).map_err(|error| refused(&format!("is no URL: {error}")))?;
        if !url.username().is_empty() || url.password().is_some() {
            let problem = "a URL with a password in it is written into logs: send a header instead";
            return Err(UpstreamError::Target(problem.to_owned()));
        }
        if url.scheme() == "http" && !is_loopback(&url) {
            return Err(refused("must begin with https://: http is for this machine only"));
        }
        Ok(Self { url, headers: Vec::new(), authorization: Authorization::default() })
    }
}

impl Endpoint {
    /// Returns whether a person may log in to the server.
    #[must_use]
    pub fn takes_login(&self) -> bool {
        matches!(self.authorization, Authorization::Login(_) | Authorization::PerPrincipal(_))
    }

    /// Returns whether each principal has a credential of its own for the server.
    #[must_use]
    pub fn is_per_principal(&self) -> bool {
        self.authorization.is_per_principal()
    }

    /// Adds a header to each request.
    ///
    /// # Errors
    /// [`UpstreamError::Target`] for a name or value that HTTP does not take. The value is not repeated.
    pub fn add_header(&mut self, name: &str, value: &str) -> Result<(), UpstreamError> {
        let refused = |problem: &str| UpstreamError::Target(format!("`{name}` {problem}"));
        let header = HeaderName::try_from(name)
            .map_err(|_| refused("is no name of a header: expected NAME: VALUE"))?;
        if value.is_empty() {
            return Err(refused("has no value: expected NAME: VALUE"));
        }
        let mut value = HeaderValue::try_from(value)
            .map_err(|_| refused("has a value that no header can carry"))?;
        value.set_sensitive(true);
        self.headers.push((header, value));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        Upstream::parse(text).expect_err(text).to_string()
    }

    #[test]
    fn a_command_is_split_without_a_shell() {
        let Ok(Upstream::Process(launch)) = Upstream::parse("uvx 'my server' -r \"a b\" $HOME;ls")
        else {
            panic!("a process");
        };
        assert_eq!(launch.program, "uvx");
        assert_eq!(launch.arguments, ["my server", "-r", "a b", "$HOME;ls"]);
    }

    #[test]
    fn only_what_programs_need_is_inherited() {
        let Ok(Upstream::Process(launch)) = Upstream::parse("server") else { panic!("a process") };
        assert!(launch.environment.contains_key("PATH"));
        let is_known = |name: &String| INHERITED.contains(&name.as_str());
        assert!(launch.environment.keys().all(is_known), "{:?}", launch.environment.keys());
        // Cargo sets it for this test.
        assert!(std::env::var("CARGO_MANIFEST_DIR").is_ok());
    }

    #[test]
    fn what_names_no_server_is_refused() {
        assert!(refusal("").contains("no command"));
        assert!(refusal("'a").contains("quote"));
        assert!(refusal("http://tools.example/mcp").contains("https"));
        assert!(refusal("https://").contains("no URL"));
        let secret = refusal("https://me:secret@tools.example/mcp");
        assert!(secret.contains("header") && !secret.contains("secret@"), "{secret}");
    }

    #[test]
    fn http_is_for_this_machine() {
        for url in [
            "http://127.0.0.1:8000/mcp",
            "HTTP://localhost/mcp",
            "http://[::1]/mcp",
            "https://tools.example",
        ] {
            assert!(matches!(Upstream::parse(url), Ok(Upstream::Http(_))), "{url}");
        }
    }

    #[test]
    fn values_of_headers_are_not_shown() {
        let Ok(Upstream::Http(mut endpoint)) = Upstream::parse("https://tools.example") else {
            panic!("a URL");
        };
        let value = HeaderValue::from_static("secret");
        endpoint.headers.push((http::header::AUTHORIZATION, value));
        let shown = format!("{endpoint:?}");
        assert!(shown.contains("authorization") && !shown.contains("secret"), "{shown}");
    }
}
