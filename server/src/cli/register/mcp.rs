//! MCP servers as sources of registrations: started or reached, listed, and followed.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use futures_util::future::join_all;
use serde_json::value::RawValue;
use toolgate_client::Client;
use toolgate_upstream::{Connection, Launch, ServerIdentity, Upstream};

use super::{Listing, Register, Registered, report};
use crate::cli::documents::{RegistrationSettings, ToolsListFile};
use crate::cli::failure::{Exit, Failure};
use crate::cli::output;
use crate::cli::text::counted;

/// Time after which a followed server is listed anew, though it told of no change. A tenth more or less is drawn by chance.
const POLL: Duration = Duration::from_secs(300);

/// Pauses before a server that left is connected to again: they double from the first to the last.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LAST_PAUSE: Duration = Duration::from_secs(30);

/// Longest name of an MCP server in the catalog, in characters.
const NAME_MAX: usize = 64;

/// MCP servers to list.
#[derive(Debug, Args)]
pub(super) struct McpArguments {
    /// An MCP server to list: a command to start, which speaks MCP on its standard streams, or a URL. May be given more
    /// than once.
    #[arg(long, value_name = "COMMAND|URL", conflicts_with_all = ["paths", "pending"])]
    pub(super) mcp: Vec<String>,
    /// A variable of the started server's environment: NAME takes its value from this one, NAME=VALUE sets it. It has
    /// HOME, LOGNAME, PATH, SHELL, TERM and USER anyway, and nothing else. May be given more than once.
    #[arg(long, value_name = "NAME[=VALUE]", requires = "mcp")]
    env: Vec<String>,
    /// A header of each request to the URL, such as "Authorization: env:TOKEN", where `env:NAME` takes the whole value from
    /// a variable. May be given more than once.
    #[arg(long, value_name = "NAME: VALUE", requires = "mcp")]
    header: Vec<String>,
    /// Stay, and register again when a server's tools change, until interrupted.
    #[arg(long, requires = "mcp", conflicts_with = "json")]
    pub(super) watch: bool,
}

/// MCP server that is connected and listed.
struct Source {
    /// Text of `--mcp`.
    text: String,
    upstream: Upstream,
    connection: Connection,
    /// Name in the catalog.
    server: String,
    tools: Vec<Box<RawValue>>,
}

impl McpArguments {
    /// Parses the places of the servers.
    fn upstreams(&self) -> Result<Vec<Upstream>, Failure> {
        if self.mcp.len() > 1 && !(self.env.is_empty() && self.header.is_empty()) {
            let problem = "--env and --header are for one server: register them one by one";
            return Err(Failure::usage(problem));
        }
        self.mcp.iter().map(|text| self.upstream(text)).collect()
    }

    fn upstream(&self, text: &str) -> Result<Upstream, Failure> {
        let usage = |problem: String| Failure::usage(format!("--mcp: {problem}"));
        let mut upstream = Upstream::parse(text).map_err(|error| usage(error.to_string()))?;
        match &mut upstream {
            Upstream::Process(_) if !self.header.is_empty() => {
                return Err(Failure::usage("--header is for a URL; a command has --env"));
            }
            Upstream::Process(launch) => self.set_environment(launch)?,
            Upstream::Http(_) if !self.env.is_empty() => {
                return Err(Failure::usage("--env is for a command; a URL has --header"));
            }
            Upstream::Http(endpoint) => {
                for header in &self.header {
                    let (name, value) = header.split_once(':').unwrap_or((header, ""));
                    let value = resolved(value.trim())?;
                    endpoint
                        .add_header(name.trim(), &value)
                        .map_err(|error| Failure::usage(format!("--header: {error}")))?;
                }
            }
        }
        Ok(upstream)
    }

    fn set_environment(&self, launch: &mut Launch) -> Result<(), Failure> {
        for variable in &self.env {
            match variable.split_once('=') {
                Some((name, value)) => {
                    launch.environment.insert(name.to_owned(), value.to_owned());
                }
                None => {
                    let value = resolved(&format!("env:{variable}"))?;
                    launch.environment.insert(variable.clone(), value);
                }
            }
        }
        Ok(())
    }
}

/// Returns a value, which is a variable's where it begins with `env:`.
fn resolved(value: &str) -> Result<String, Failure> {
    let Some(name) = value.strip_prefix("env:") else { return Ok(value.to_owned()) };
    std::env::var(name).map_err(|_| Failure::usage(format!("the variable {name} is not set")))
}

/// Lists MCP servers and registers their tools; with `--watch` follows them.
pub(super) async fn run(register: &Register) -> Result<Exit, Failure> {
    let upstreams = register.source.upstreams()?;
    register.check_single(upstreams.len())?;
    let settings = register.read_settings()?;
    let client = register.client.connect_to_change(super::DEADLINE).await?;
    let texts = register.source.mcp.iter().cloned();
    let opening = texts.zip(upstreams).map(|(text, upstream)| async move {
        Source::open(&text, upstream, register.server.as_deref())
            .await
            .map_err(|failure| (text, failure))
    });
    let mut sources = Vec::new();
    let mut listings = Vec::new();
    let mut unopened = Vec::new();
    for opened in join_all(opening).await {
        match opened {
            Ok(source) => {
                listings.push(source.listing());
                sources.push(source);
            }
            Err((text, failure)) => {
                unopened.push(Listing { path: text.into(), file: Err(failure) });
            }
        }
    }
    listings.extend(unopened);
    let done = register.register_all(&client, &listings, settings.clone()).await?;
    register.print(&done, &listings, &settings)?;
    if !register.source.watch {
        join_all(sources.into_iter().map(|source| source.connection.close())).await;
        return Ok(super::exit(&done));
    }
    if sources.is_empty() {
        return Ok(super::exit(&done));
    }
    output::note(format_args!(
        "following {}; Ctrl-C ends it",
        counted(sources.len(), "MCP server")
    ));
    let watch = Watch { register, client: &client, settings: &settings };
    join_all(sources.into_iter().map(|source| watch.follow(source))).await;
    Ok(Exit::Done)
}

impl Source {
    async fn open(text: &str, upstream: Upstream, name: Option<&str>) -> Result<Self, Failure> {
        let failed =
            |error: toolgate_upstream::UpstreamError| Failure::new(format!("{text}: {error}"));
        let connection = Connection::open(&upstream).await.map_err(failed)?;
        let tools = connection.tools().await.map_err(failed)?;
        let identity = connection.identity();
        let server = match name {
            Some(name) => name.to_owned(),
            None => catalog_name(&identity, &upstream),
        };
        output::note(format_args!("{server}: {}", told(&identity, tools.len())));
        Ok(Self { text: text.to_owned(), upstream, connection, server, tools })
    }

    fn listing(&self) -> Listing {
        let file = ToolsListFile {
            text: tools_list(&self.tools),
            server: self.server.clone(),
            description: String::new(),
            is_cut: false,
        };
        Listing { path: PathBuf::from(&self.text), file: Ok(file) }
    }
}

/// Returns what a server tells of itself, in one line.
fn told(identity: &ServerIdentity, tools: usize) -> String {
    let ServerIdentity { name, version, protocol } = identity;
    let name = if name.is_empty() { "unnamed" } else { name };
    let shown = crate::cli::text::one_line(&format!("{name} {version}"), 80);
    format!("{}, {shown}, MCP {protocol}", counted(tools, "tool"))
}

/// Returns the answer of a server's `tools/list` with the definitions' own bytes.
fn tools_list(tools: &[Box<RawValue>]) -> String {
    let mut text = String::from("{\"tools\":[");
    for (place, tool) in tools.iter().enumerate() {
        if place > 0 {
            text.push(',');
        }
        text.push_str(tool.get());
    }
    text.push_str("]}");
    text
}

/// Returns a name for the catalog from what the server calls itself, or else from its program or host.
fn catalog_name(identity: &ServerIdentity, upstream: &Upstream) -> String {
    let given = if identity.name.is_empty() { upstream.label() } else { &identity.name };
    let mut name = String::new();
    for character in given.chars() {
        let is_right = character.is_ascii_alphanumeric() || matches!(character, '-' | '_');
        let next = if is_right { character } else { '-' };
        // Two underscores separate the parts of a name that the model sees, and a row of dashes says nothing.
        let is_repeated = !next.is_ascii_alphanumeric() && name.ends_with(next);
        if !is_repeated && name.len() < NAME_MAX {
            name.push(next);
        }
    }
    name.trim_matches('-').to_owned()
}

/// Registrations of servers that are followed.
struct Watch<'a> {
    register: &'a Register,
    client: &'a Client,
    settings: &'a RegistrationSettings,
}

impl Watch<'_> {
    /// Follows a server for as long as the command runs.
    async fn follow(&self, mut source: Source) {
        let mut is_empty_once = false;
        loop {
            let poll = POLL.mul_f64(0.9 + 0.2 * fastrand::f64());
            let closed = match tokio::time::timeout(poll, source.connection.changed()).await {
                Ok(Err(error)) => Some(error),
                Ok(Ok(())) | Err(_) => None,
            };
            let listed = match closed {
                Some(error) => Err(error),
                None => source.connection.tools().await,
            };
            match listed {
                Ok(tools) if tools.is_empty() && !source.tools.is_empty() && !is_empty_once => {
                    is_empty_once = true;
                    let count = counted(source.tools.len(), "tool");
                    output::warn(format_args!(
                        "{}: it lists no tools any more; its {count} stay until it says so twice",
                        source.server
                    ));
                }
                Ok(tools) => {
                    is_empty_once = false;
                    source.tools = tools;
                    self.register(&source).await;
                }
                Err(error) => {
                    output::warn(format_args!("{}: {error}", source.server));
                    source.connection = self.reconnect(&source).await;
                    // The next round lists it.
                    source.connection.mark_changed();
                }
            }
        }
    }

    async fn reconnect(&self, source: &Source) -> Connection {
        let mut pause = FIRST_PAUSE;
        loop {
            tokio::time::sleep(pause).await;
            match Connection::open(&source.upstream).await {
                Ok(connection) => {
                    output::note(format_args!("{}: connected again", source.server));
                    return connection;
                }
                Err(error) => output::warn(format_args!("{}: {error}", source.server)),
            }
            pause = (pause * 2).min(LAST_PAUSE);
        }
    }

    /// Registers what a server lists now. A registration that fails is tried again in the next round.
    async fn register(&self, source: &Source) {
        let listing = source.listing();
        let Ok(file) = &listing.file else { return };
        let request = match self.register.request(&listing.path, file, self.settings.clone()) {
            Ok(request) => request,
            Err(failure) => {
                return output::warn(format_args!("{}: {}", source.server, failure.message()));
            }
        };
        let outcome = self.client.register_server(request).await.map_err(Failure::from);
        let done = [Registered { path: listing.path, server: source.server.clone(), outcome }];
        match &done[0].outcome {
            Err(failure) => output::warn(format_args!("{}: {}", source.server, failure.message())),
            Ok(answer) => {
                if let Some(line) = report::change(answer)
                    && let Err(error) = output::print(&line)
                {
                    output::warn(error);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> String {
        let identity =
            ServerIdentity { name: name.into(), version: String::new(), protocol: String::new() };
        let upstream = Upstream::parse("npx -y some-server").expect("a command");
        catalog_name(&identity, &upstream)
    }

    #[test]
    fn a_server_is_named_as_it_calls_itself() {
        assert_eq!(named("mcp-git"), "mcp-git");
        assert_eq!(named("example-servers/everything v2"), "example-servers-everything-v2");
        assert_eq!(named("a__b  c"), "a_b-c");
        assert_eq!(named(""), "npx");
        assert_eq!(named(&"x".repeat(100)).len(), NAME_MAX);
    }

    #[test]
    fn definitions_keep_their_bytes() {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).expect("JSON");
        let tools = [raw("{ \"b\": 1.0 }"), raw("{\"a\":2e0}")];
        assert_eq!(tools_list(&tools), "{\"tools\":[{ \"b\": 1.0 },{\"a\":2e0}]}");
        assert_eq!(tools_list(&[]), "{\"tools\":[]}");
    }
}
