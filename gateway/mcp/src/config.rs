//! The gateway's file, `gateway.toml`.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Deserializer, de};
use toolgate_upstream::{
    Entry, Limits, OAuthClient, Pauses, Secret, Start, Upstream, UpstreamError,
};

use crate::units;

mod authorization;
mod places;
mod replicas;

pub use authorization::{Auth, OAuthConfig};

/// Port of the gateway.
const PORT: u16 = 7080;

/// Shortest pause before a start: a server that fails at once must not keep the machine busy.
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);

/// Largest number of characters of a server's name, as the catalog has it.
const NAME_MAX: usize = 64;

/// Bytes of the key of stored credentials.
const KEY_LEN: usize = 32;

/// Content of a gateway's file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The gateway itself.
    #[serde(default)]
    pub gateway: GatewayConfig,
    /// Servers behind it, by name.
    #[serde(default)]
    pub server: BTreeMap<String, ServerConfig>,
}

/// Settings of the gateway itself.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GatewayConfig {
    /// Address and port to listen on.
    pub listen: SocketAddr,
    /// URL by which hosts reach the gateway; empty for an address of this machine.
    pub public_url: String,
    /// Origins of pages that may call it.
    pub allowed_origins: Vec<String>,
    /// Face at `/mcp`.
    pub expose: Exposed,
    /// Tools that every host sees, as `server__tool`.
    pub always_on: Vec<String>,
    /// Most tokens of definitions that a host starts with, in cl100k tokens.
    pub start_tokens: usize,
    /// Most tools of all servers together that are all shown, as `server__tool`; 0 for never.
    pub load_all_up_to: usize,
    /// Rule for calls of tools that no search has shown.
    pub shown_names: ShownNames,
    /// Most bytes of text of a result that a host is sent; the rest is read by `read_result`.
    #[serde(deserialize_with = "size")]
    pub result_limit: usize,
    /// Time of a call without an answer or progress.
    #[serde(deserialize_with = "duration")]
    pub call_timeout: Duration,
    /// Programs that may be started.
    pub spawn: SpawnConfig,
    /// Credentials of hosts.
    pub auth: AuthConfig,
    /// File to which a line is appended for each call.
    pub audit_file: Option<PathBuf>,
    /// Key of stored credentials, 64 hexadecimal digits: `env:NAME` or `file:PATH`. Absent: a file beside them.
    pub credential_key: Option<String>,
    /// Keys of what hosts carry for the gateway, each 64 hexadecimal digits: `env:NAME` or `file:PATH`. The first seals, all open.
    /// Absent: one of the routing plane within this process, else one that is made at the start.
    pub sealing_key: Option<String>,
    /// URL by which other replicas reach this one; `${NAME}` within it is a variable.
    pub replica_url: Option<String>,
    /// URL of the PostgreSQL database that replicas share: itself, `env:NAME` or `file:PATH`. Absent: that of the routing plane
    /// within this process.
    pub store_url: Option<String>,
}

/// Credentials of hosts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AuthConfig {
    /// Kinds of credentials that are taken; none: anybody is let in.
    pub methods: Vec<AuthMethod>,
    /// True if anybody may be let in on an address that other machines reach.
    pub allow_anybody: bool,
    /// Issuer of tokens.
    pub issuer: Option<String>,
    /// https URL of the issuer's keys.
    pub jwks_url: Option<String>,
    /// File of the issuer's keys.
    pub jwks_file: Option<PathBuf>,
    /// Certificate authorities of `jwks_url`. Absent: the public ones.
    pub jwks_ca_file: Option<PathBuf>,
    /// Audiences of tokens beside the URLs of the gateway.
    pub audiences: Vec<String>,
    /// Scopes that a token must have.
    pub scopes: Vec<String>,
    /// Client at the issuer by which a person's browser says who it is. Absent: one that is registered.
    pub client_id: Option<String>,
    /// Secret of that client: `env:NAME` or `file:PATH`.
    pub client_secret: Option<String>,
    /// Claim that names the tenant. Absent: every token is of the gateway's own tenant.
    pub tenant_claim: Option<String>,
    /// Claim that names the principal. Absent: `sub`.
    pub principal_claim: Option<String>,
    /// Claim that names the roles. Absent: every token is an agent's, and no operator's.
    pub roles_claim: Option<String>,
    /// Claim that names the scopes. Absent: `scope`.
    pub scopes_claim: Option<String>,
    /// Store of the API keys: a data directory, or the URL of a PostgreSQL database. Absent: that of the routing plane within
    /// this process.
    pub key_store: Option<String>,
}

/// Kind of credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AuthMethod {
    /// API keys, made by `toolgate key create`.
    ApiKey,
    /// Tokens of an authorization server.
    Jwt,
}

/// Face at `/mcp`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Exposed {
    /// Tools that search and call.
    Search,
    /// Every tool, for hosts that search by themselves.
    All,
}

/// Most connections of hosts' own to one server.
const OWN_CONNECTIONS: usize = 8;

/// Most connections of principals' own to one server that has a credential for each.
const PRINCIPALS_CONNECTIONS: usize = 256;

/// Programs that may be started.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SpawnConfig {
    /// Names or paths of programs; a path may end with `/*`. Absent: those that the file's servers name.
    pub allow: Option<Vec<String>>,
}

/// Rule for calls of tools that no search has shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ShownNames {
    /// They run if the arguments are valid; else the schema is the answer.
    Assist,
    /// They are refused.
    Strict,
}

/// Server behind the gateway. Exactly one of `command` and `url` is set.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerConfig {
    /// Program and its arguments.
    #[serde(default)]
    pub command: Vec<String>,
    /// Folder that the program starts in; absent: the gateway's own.
    #[serde(default)]
    pub cwd: Option<String>,
    /// URL of Streamable HTTP, or of the older HTTP+SSE.
    #[serde(default)]
    pub url: Option<String>,
    /// Variables of the program's environment: a value, `env:NAME` or `file:PATH`.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Headers of each request: a value, `env:NAME` or `file:PATH`.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Credential that it is shown. Absent: its headers, or else tokens of a login.
    #[serde(default)]
    pub auth: Option<Auth>,
    /// Client at an authorization server, for each `auth` that takes tokens.
    #[serde(default)]
    pub oauth: Option<OAuthConfig>,
    /// Trust in the server's texts.
    #[serde(default)]
    pub trust: Trust,
    /// Calls at a time.
    #[serde(default)]
    pub concurrency: Option<usize>,
    /// Time of the first start.
    #[serde(default)]
    pub start: StartConfig,
    /// Pauses before a start after a failure.
    #[serde(default)]
    pub restart: RestartConfig,
    /// True if the server may ask hosts while it runs their calls, when it is of a revision before 2026-07-28. Each host has a
    /// connection of its own then, and a process. Absent: true for a `url`, false for a `command`.
    #[serde(default)]
    pub questions: Option<bool>,
    /// Tools that the gateway knows.
    #[serde(default)]
    pub tools: ToolFilter,
    /// Tenants that see the server. Absent: the gateway's own.
    #[serde(default)]
    pub tenants: Option<Vec<String>>,
    /// True if the server is left out.
    #[serde(default)]
    pub disabled: bool,
}

/// Time of a server's first start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StartConfig {
    /// With the gateway.
    #[default]
    Eager,
    /// With the first call; with the gateway only to list its tools.
    Lazy,
}

/// Pauses before a server that failed is started again. They double from one to the next.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RestartConfig {
    /// First pause.
    #[serde(deserialize_with = "duration")]
    pub min: Duration,
    /// Longest pause.
    #[serde(deserialize_with = "duration")]
    pub max: Duration,
    /// Time of health after which pauses begin anew.
    #[serde(deserialize_with = "duration")]
    pub healthy_after: Duration,
}

impl ServerConfig {
    /// Returns the tenants that see the server, where `own` is the gateway's.
    pub(crate) fn tenants(&self, own: &str) -> Vec<String> {
        self.tenants.clone().unwrap_or_else(|| vec![own.to_owned()])
    }

    /// Returns the most connections of hosts' or principals' own.
    fn own_connections(&self) -> usize {
        if self.is_per_principal() {
            PRINCIPALS_CONNECTIONS
        } else if self.may_ask() {
            OWN_CONNECTIONS
        } else {
            0
        }
    }

    /// Returns true if each principal logs in to the server by itself.
    pub(crate) fn takes_principals_logins(&self) -> bool {
        self.auth == Some(Auth::OauthPerUser)
    }

    /// Returns true if each principal has a credential of its own for the server.
    pub(crate) fn is_per_principal(&self) -> bool {
        matches!(self.auth, Some(Auth::OauthPerUser | Auth::TokenExchange))
    }

    /// Returns true if the server may ask hosts when it is of a revision before 2026-07-28.
    pub(crate) fn may_ask(&self) -> bool {
        self.questions.unwrap_or(self.url.is_some())
    }
}

/// Trust in a server's texts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Trust {
    /// A changed definition waits for approval, and its annotations are not believed.
    Untrusted,
    /// The usual checks.
    #[default]
    Standard,
    /// One's own server.
    Trusted,
}

/// Tools that the gateway knows of a server. A pattern may end with `*`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ToolFilter {
    /// Tools that are let in. Absent: all.
    pub allow: Option<Vec<String>>,
    /// Tools that are left out of them.
    pub deny: Vec<String>,
}

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
    fn server(server: &str, problem: &str) -> Self {
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

impl Default for GatewayConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), PORT),
            public_url: String::new(),
            allowed_origins: Vec::new(),
            expose: Exposed::Search,
            always_on: Vec::new(),
            start_tokens: 2_000,
            load_all_up_to: 0,
            shown_names: ShownNames::Assist,
            result_limit: 32 << 10,
            call_timeout: Duration::from_secs(60),
            spawn: SpawnConfig::default(),
            auth: AuthConfig::default(),
            audit_file: None,
            credential_key: None,
            sealing_key: None,
            replica_url: None,
            store_url: None,
        }
    }
}

impl Default for RestartConfig {
    fn default() -> Self {
        let Pauses { first, last, healthy_after } = Pauses::default();
        Self { min: first, max: last, healthy_after }
    }
}

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    /// [`ConfigError`] if it can't be read, or is no valid configuration.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
        let config = Self::parse(&text, path)?;
        config.entries().map_err(|error| error.located(&text))?;
        config.credential_key()?;
        config.sign_in_client()?;
        config.sealing_keys()?;
        config.replica_url()?;
        config.store_url()?;
        Ok(config)
    }

    /// Parses the text of the file at `path`, without the values of its secrets.
    ///
    /// # Errors
    /// [`ConfigError::Invalid`] if it is no valid configuration.
    pub fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        let invalid = |problem: String| ConfigError::Invalid { path: path.to_owned(), problem };
        let config: Self = toml::from_str(text).map_err(|error| invalid(error.to_string()))?;
        match config.gateway.problem() {
            Some(problem) => Err(invalid(problem)),
            None => Ok(config),
        }
    }

    /// Returns the servers that are not left out, by name.
    pub(crate) fn running(&self) -> BTreeMap<String, ServerConfig> {
        let running = self.server.iter().filter(|(_, server)| !server.disabled);
        running.map(|(name, server)| (name.clone(), server.clone())).collect()
    }

    /// Checks that the gateway is not open to other machines without authentication, unless the file says so.
    ///
    /// # Errors
    /// The problem, and a remedy.
    pub fn check_exposure(&self) -> Result<(), String> {
        let Self { gateway: GatewayConfig { listen, auth, .. }, .. } = self;
        if listen.ip().is_loopback() || !auth.methods.is_empty() || auth.allow_anybody {
            return Ok(());
        }
        Err(format!(
            "other machines reach {listen}, and nothing says who may call: set gateway.auth.methods, or \
             gateway.auth.allow_anybody = true"
        ))
    }

    /// Returns the URL by which hosts reach the gateway, without a slash at the end.
    #[must_use]
    pub fn base_url(&self, address: SocketAddr) -> String {
        match self.gateway.public_url.trim_end_matches('/') {
            "" => format!("http://{address}"),
            url => url.to_owned(),
        }
    }

    /// Returns the audiences of tokens for this gateway: the URLs of its faces, and those that the file names.
    #[must_use]
    pub fn audiences(&self, address: SocketAddr) -> Vec<String> {
        let base = self.base_url(address);
        let servers = self.server.keys().map(|server| format!("{base}/mcp/s/{server}"));
        let faces =
            ["", "/", "/mcp", "/mcp/all", "/mcp/search"].map(|face| format!("{base}{face}"));
        let named = self.gateway.auth.audiences.iter().cloned();
        faces.into_iter().chain(servers).chain(named).collect()
    }

    /// Returns the key of stored credentials; `None` for a file of their own.
    ///
    /// # Errors
    /// [`ConfigError::Server`] if it is not there, or no key.
    pub fn credential_key(&self) -> Result<Option<Secret>, ConfigError> {
        let Some(place) = &self.gateway.credential_key else { return Ok(None) };
        let wrong = |problem: &str| ConfigError::Invalid {
            path: PathBuf::from("gateway.credential_key"),
            problem: problem.to_owned(),
        };
        if !place.starts_with("env:") && !place.starts_with("file:") {
            return Err(wrong("must be \"env:NAME\" or \"file:PATH\""));
        }
        let key = resolved("", place).map_err(|error| match error {
            ConfigError::Server { problem, .. } => wrong(&problem),
            error => error,
        })?;
        if hex::decode(key.trim()).is_ok_and(|key| key.len() == KEY_LEN) {
            return Ok(Some(Secret::new(key)));
        }
        Err(wrong("must have 64 hexadecimal digits, as `openssl rand -hex 32` writes them"))
    }

    /// Returns the client by which a person's browser says who it is, at the issuer of callers' tokens; `None` if they come with
    /// none.
    ///
    /// # Errors
    /// [`ConfigError::Invalid`] if its secret is not there.
    pub(crate) fn sign_in_client(&self) -> Result<Option<OAuthClient>, ConfigError> {
        let auth = &self.gateway.auth;
        if auth.issuers().is_empty() {
            return Ok(None);
        }
        let wrong = |problem: &str| ConfigError::Invalid {
            path: PathBuf::from("gateway.auth.client_secret"),
            problem: problem.to_owned(),
        };
        let secret = auth.client_secret.as_ref().map(|place| {
            if !place.starts_with("env:") && !place.starts_with("file:") {
                return Err(wrong("must be \"env:NAME\" or \"file:PATH\""));
            }
            resolved("", place).map(Secret::new).map_err(|error| match error {
                ConfigError::Server { problem, .. } => wrong(&problem),
                error => error,
            })
        });
        Ok(Some(OAuthClient {
            id: auth.client_id.clone(),
            secret: secret.transpose()?,
            scopes: auth.scopes.clone(),
            issuer: auth.issuer.clone(),
            ..OAuthClient::default()
        }))
    }

    /// Returns the servers to run, with the values of their secrets.
    ///
    /// # Errors
    /// [`ConfigError::Server`] for an entry that makes no sense, or whose secret is not there.
    pub fn entries(&self) -> Result<Vec<Entry>, ConfigError> {
        let running = self.server.iter().filter(|(_, server)| !server.disabled);
        running.map(|(name, server)| self.entry(name, server)).collect()
    }

    /// Returns a server to run.
    ///
    /// # Errors
    /// Same errors as [`Self::entries`].
    pub(crate) fn entry(&self, name: &str, server: &ServerConfig) -> Result<Entry, ConfigError> {
        let wrong = |problem: &str| ConfigError::server(name, problem);
        if !is_server_name(name) {
            return Err(wrong("the name must have 1 to 64 of A-Z a-z 0-9 _ -, and no \"__\""));
        }
        let upstream = match (&server.command[..], &server.url) {
            ([_, ..], None) => self.process(name, server)?,
            ([], Some(url)) => endpoint(name, server, url, &self.gateway.auth.methods)?,
            _ => return Err(wrong("needs either `command` or `url`")),
        };
        let default = Limits::default();
        let limits = Limits {
            concurrency: server.concurrency.unwrap_or(default.concurrency),
            call_timeout: self.gateway.call_timeout,
            pauses: server.restart.pauses().map_err(wrong)?,
            start: match server.start {
                StartConfig::Eager => Start::Eager,
                StartConfig::Lazy => Start::Lazy,
            },
            own_connections: server.own_connections(),
            ..default
        };
        if limits.concurrency == 0 {
            return Err(wrong("`concurrency` must be at least 1"));
        }
        Ok(Entry { name: name.to_owned(), upstream, limits })
    }

    fn process(&self, name: &str, server: &ServerConfig) -> Result<Upstream, ConfigError> {
        let wrong = |problem: String| ConfigError::server(name, &problem);
        if !server.headers.is_empty() {
            return Err(wrong("`headers` are for a `url`; a `command` has `env`".to_owned()));
        }
        if server.auth.is_some() || server.oauth.is_some() {
            let key = if server.auth.is_some() { "auth" } else { "oauth" };
            return Err(wrong(format!("`{key}` is for a `url`; a `command` has `env`")));
        }
        let program = server.command.first().map_or("", String::as_str);
        if !self.gateway.spawn.allows(program) {
            let problem = format!("{program:?} is not among gateway.spawn.allow: add it there");
            return Err(wrong(problem));
        }
        let words = shlex_joined(&server.command).ok_or_else(|| {
            wrong("a word of `command` has a character that no argument can carry".to_owned())
        })?;
        let mut upstream = Upstream::parse(&words).map_err(|error| wrong(error.to_string()))?;
        if let Upstream::Process(launch) = &mut upstream {
            for (variable, value) in &server.env {
                launch.environment.insert(variable.clone(), resolved(name, value)?);
            }
            launch.folder = server.cwd.as_ref().map(|cwd| folder(name, cwd)).transpose()?;
        }
        Ok(upstream)
    }
}

impl GatewayConfig {
    /// Returns what is wrong with these settings together, and a remedy.
    pub(crate) fn problem(&self) -> Option<String> {
        if !self.listen.ip().is_loopback() && self.public_url.is_empty() {
            let problem = "gateway.listen is no address of this machine alone: set gateway.public_url to the URL that hosts use";
            return Some(problem.to_owned());
        }
        self.auth.problem().map(|problem| format!("gateway.auth: {problem}"))
    }
}

impl RestartConfig {
    fn pauses(&self) -> Result<Pauses, &'static str> {
        let Self { min, max, healthy_after } = *self;
        if min < SHORTEST_PAUSE || max < min {
            return Err("`restart` needs a `min` of at least 100ms and a `max` of at least `min`");
        }
        Ok(Pauses { first: min, last: max, healthy_after })
    }
}

impl AuthConfig {
    /// Returns the issuers of tokens; none if no tokens are taken.
    pub(crate) fn issuers(&self) -> Vec<String> {
        let issuer = self.issuer.iter().filter(|_| self.methods.contains(&AuthMethod::Jwt));
        issuer.cloned().collect()
    }

    /// Returns the problem of the settings, if they have one.
    fn problem(&self) -> Option<&'static str> {
        let has_jwt = self.methods.contains(&AuthMethod::Jwt);
        let is_of_tokens = self.issuer.is_some()
            || self.jwks_url.is_some()
            || self.jwks_file.is_some()
            || !self.scopes.is_empty()
            || !self.audiences.is_empty();
        let is_https = |url: &String| url.starts_with("https://");
        if has_jwt && self.issuer.as_deref().is_none_or(str::is_empty) {
            Some("`jwt` needs `issuer`: tokens of others would do")
        } else if has_jwt && self.jwks_url.is_some() == self.jwks_file.is_some() {
            Some("`jwt` needs either `jwks_url` or `jwks_file`")
        } else if !self.jwks_url.iter().all(is_https) {
            Some("`jwks_url` must begin with https://")
        } else if is_of_tokens && !has_jwt {
            Some("`methods` must have \"jwt\" for `issuer`, `jwks_*`, `scopes` and `audiences`")
        } else if (self.client_id.is_some() && !has_jwt)
            || (self.client_secret.is_some() && self.client_id.is_none())
        {
            Some("`client_secret` needs `client_id`, and that needs \"jwt\" among `methods`")
        } else if self.key_store.is_some() && !self.methods.contains(&AuthMethod::ApiKey) {
            Some("`methods` must have \"api-key\" for `key_store`")
        } else if self.allow_anybody && !self.methods.is_empty() {
            Some("`allow_anybody` has no effect beside `methods`: leave one out")
        } else {
            None
        }
    }
}

impl SpawnConfig {
    fn allows(&self, program: &str) -> bool {
        let Some(allow) = &self.allow else { return true };
        allow.iter().any(|allowed| match allowed.strip_suffix("/*") {
            Some(folder) => Path::new(program).parent() == Some(Path::new(folder)),
            None => allowed == program,
        })
    }
}

impl ToolFilter {
    /// Returns true if the tool is let in.
    pub(crate) fn admits(&self, tool: &str) -> bool {
        let matches = |pattern: &String| match pattern.strip_suffix('*') {
            Some(start) => tool.starts_with(start),
            None => tool == pattern,
        };
        let is_allowed = self.allow.as_ref().is_none_or(|allow| allow.iter().any(matches));
        is_allowed && !self.deny.iter().any(matches)
    }
}

/// Returns the folder that a program starts in.
fn folder(server: &str, cwd: &str) -> Result<PathBuf, ConfigError> {
    let folder = PathBuf::from(resolved(server, cwd)?);
    if folder.is_dir() {
        return Ok(folder);
    }
    let problem = format!("`cwd` names no folder: {}", folder.display());
    Err(ConfigError::server(server, &problem))
}

fn endpoint(
    name: &str,
    server: &ServerConfig,
    url: &str,
    methods: &[AuthMethod],
) -> Result<Upstream, ConfigError> {
    let wrong = |problem: String| ConfigError::server(name, &problem);
    if !server.env.is_empty() || server.cwd.is_some() {
        let problem = "`env` and `cwd` are for a `command`; a `url` has `headers`";
        return Err(wrong(problem.to_owned()));
    }
    let told = |error: UpstreamError| wrong(error.to_string());
    let mut upstream = Upstream::parse(url).map_err(told)?;
    match &mut upstream {
        Upstream::Process(_) => {
            return Err(wrong("`url` must begin with https://, or http:// on this machine".into()));
        }
        Upstream::Http(endpoint) => {
            for (header, value) in &server.headers {
                endpoint.add_header(header, &resolved(name, value)?).map_err(told)?;
            }
            endpoint.authorization = authorization::authorization(name, server, methods)?;
        }
    }
    Ok(upstream)
}

/// Returns a value, which stands in a variable for `env:NAME` and in a file for `file:PATH`. `${NAME}` and `${NAME:-default}`
/// within it are variables, as hosts write them.
fn resolved(server: &str, value: &str) -> Result<String, ConfigError> {
    let missing = |problem: String| ConfigError::server(server, &problem);
    let variable = |name: &str| {
        std::env::var(name).map_err(|_| missing(format!("the variable {name} is not set")))
    };
    if let Some(name) = value.strip_prefix("env:") {
        return variable(name);
    }
    if let Some(path) = value.strip_prefix("file:") {
        let text = std::fs::read_to_string(path);
        let text = text.map_err(|error| missing(format!("{path} can't be read: {error}")))?;
        return Ok(text.trim_end_matches(['\r', '\n']).to_owned());
    }
    let mut text = String::new();
    let mut rest = value;
    while let Some((before, behind)) = rest.split_once("${") {
        let (name, behind) = behind
            .split_once('}')
            .ok_or_else(|| missing(format!("{value:?} has a \"${{\" that is not closed")))?;
        text.push_str(before);
        match name.split_once(":-") {
            Some((name, default)) => {
                text.push_str(&std::env::var(name).unwrap_or_else(|_| default.to_owned()));
            }
            None => text.push_str(&variable(name)?),
        }
        rest = behind;
    }
    text.push_str(rest);
    Ok(text)
}

/// Returns a command line that splits into these words.
fn shlex_joined(words: &[String]) -> Option<String> {
    shlex::try_join(words.iter().map(String::as_str)).ok()
}

fn is_server_name(name: &str) -> bool {
    let is_right = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    (1..=NAME_MAX).contains(&name.len()) && name.chars().all(is_right) && !name.contains("__")
}

fn size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    let text = String::deserialize(deserializer)?;
    units::size(&text)
        .ok_or_else(|| de::Error::custom(format!("{text:?} is no size, such as \"32KiB\"")))
}

fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    units::duration(&text)
        .ok_or_else(|| de::Error::custom(format!("{text:?} is no duration, such as \"60s\"")))
}

#[cfg(test)]
mod tests {
    use toolgate_upstream::Authorization;

    use super::*;

    fn parsed(text: &str) -> Result<Config, String> {
        let config = Config::parse(text, Path::new("gateway.toml"));
        config
            .and_then(|config| config.entries().map(|_entries| config))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn an_empty_file_is_a_gateway_on_this_machine() {
        let config = parsed("").expect("a configuration");
        assert_eq!(config.gateway.listen.to_string(), "127.0.0.1:7080");
        assert!(config.entries().expect("entries").is_empty());
    }

    #[test]
    fn commands_keep_their_words() {
        let text = "[server.git]\ncommand = [\"uvx\", \"a b\", \"it's\"]\nenv = { A = \"1\" }";
        let entries = parsed(text).expect("a configuration").entries().expect("entries");
        let Upstream::Process(launch) = &entries[0].upstream else { panic!("a process") };
        assert_eq!(launch.program, "uvx");
        assert_eq!(launch.arguments, ["a b", "it's"]);
        assert_eq!(launch.environment.get("A").map(String::as_str), Some("1"));
    }

    #[test]
    fn a_server_has_a_folder_and_pauses() {
        let folder = std::env::temp_dir();
        let text = format!(
            "[server.a]\ncommand = [\"x\"]\ncwd = {folder:?}\nstart = \"lazy\"\nrestart = {{ min = \"2s\", max = \"1m\" }}"
        );
        let entries = parsed(&text).expect("a configuration").entries().expect("entries");
        let Upstream::Process(launch) = &entries[0].upstream else { panic!("a process") };
        assert_eq!(launch.folder.as_ref(), Some(&folder));
        let seconds = Duration::from_secs;
        let pauses = Pauses { first: seconds(2), last: seconds(60), healthy_after: seconds(60) };
        assert_eq!(entries[0].limits.pauses, pauses);
        assert_eq!(entries[0].limits.start, Start::Lazy);
    }

    #[test]
    fn mistakes_are_told_with_a_remedy() {
        for (text, told) in [
            ("[gateway]\nlisten = \"0.0.0.0:1\"", "public_url"),
            ("[gateway.auth]\nmethods = [\"jwt\"]", "issuer"),
            ("[gateway.auth]\nmethods = [\"jwt\"]\nissuer = \"i\"", "jwks_url"),
            (
                "[gateway.auth]\nmethods = [\"jwt\"]\nissuer = \"i\"\njwks_url = \"http://i\"",
                "https",
            ),
            ("[gateway.auth]\nscopes = [\"mcp\"]", "must have \"jwt\""),
            ("[gateway.auth]\nkey_store = \"x\"", "must have \"api-key\""),
            ("[gateway.auth]\nmethods = [\"api-key\"]\nallow_anybody = true", "leave one out"),
            ("[gateway.auth]\nmethods = [\"mtls\"]", "unknown variant"),
            ("[gateway]\ncolour = 1", "unknown field"),
            ("[gateway]\nresult_limit = \"1KB\"", "no size"),
            ("[gateway]\ncall_timeout = \"1h\"", "no duration"),
            ("[server.a]", "either `command` or `url`"),
            ("[server.a]\ncommand = [\"x\"]\nurl = \"https://x\"", "either"),
            ("[server.a__b]\ncommand = [\"x\"]", "\"__\""),
            ("[server.a]\nurl = \"http://tools.example\"", "https"),
            ("[server.a]\nurl = \"ls\"", "https"),
            ("[server.a]\nurl = \"https://x\"\nenv = { A = \"1\" }", "headers"),
            ("[server.a]\ncommand = [\"x\"]\nheaders = { A = \"1\" }", "env"),
            ("[server.a]\ncommand = [\"x\"]\nenv = { A = \"env:TOOLGATE_NOT_SET\" }", "not set"),
            ("[server.a]\ncommand = [\"x\"]\nconcurrency = 0", "at least 1"),
            ("[server.a]\ncommand = [\"x\"]\ncwd = \"/no/such/folder\"", "no folder"),
            ("[server.a]\nurl = \"https://x\"\ncwd = \".\"", "`cwd`"),
            ("[server.a]\ncommand = [\"x\"]\nrestart = { min = \"1ms\" }", "100ms"),
            ("[server.a]\ncommand = [\"x\"]\nrestart = { max = \"200ms\" }", "at least `min`"),
            ("[gateway.spawn]\nallow = [\"npx\"]\n[server.a]\ncommand = [\"x\"]", "spawn.allow"),
        ] {
            let problem = parsed(text).expect_err(text);
            assert!(problem.contains(told), "{text}: {problem}");
        }
    }

    #[test]
    fn mistakes_of_credentials_are_told_with_a_remedy() {
        for (text, told) in [
            ("[server.a]\ncommand = [\"x\"]\nauth = \"oauth\"", "`auth` is for a `url`"),
            ("[server.a]\ncommand = [\"x\"]\noauth = {}", "`oauth` is for a `url`"),
            ("[server.a]\nurl = \"https://x\"\nauth = \"magic\"", "client-credentials"),
            ("[server.a]\nurl = \"https://x\"\nauth = \"headers\"", "needs `headers`"),
            ("[server.a]\nurl = \"https://x\"\nauth = \"token-exchange\"", "\"jwt\" among"),
            ("[server.a]\nurl = \"https://x\"\nauth = \"none\"\noauth = {}", "`oauth` is for"),
            (
                "[server.a]\nurl = \"https://x\"\nauth = \"oauth\"\nheaders = { authorization = \"x\" }",
                "names another",
            ),
            ("[server.a]\nurl = \"https://x\"\nauth = \"client-credentials\"", "client_secret"),
            (
                "[server.a]\nurl = \"https://x\"\noauth = { client_secret = \"hunter2\" }",
                "no place for it",
            ),
            (
                "[server.a]\nurl = \"https://x\"\noauth = { client_secret = \"env:PATH\" }",
                "needs `oauth.client_id`",
            ),
            ("[server.a]\nurl = \"https://x\"\noauth = { client_id = \" \" }", "empty"),
            ("[server.a]\nurl = \"https://x\"\noauth = { scopes = [\"a b\"] }", "one word each"),
            ("[server.a]\nurl = \"https://x\"\noauth = { issuer = \"http://y\" }", "https://"),
            ("[server.a]\nurl = \"https://x\"\noauth = { issuer = \"y\" }", "no URL"),
            ("[server.a]\nurl = \"https://x\"\noauth = { colour = 1 }", "unknown field"),
            (
                "[server.a]\nurl = \"https://x\"\noauth = { client_metadata_url = \"https://y\" }",
                "with a path",
            ),
            (
                "[server.a]\nurl = \"https://x\"\noauth = { client_id = \"i\", client_metadata_url = \"https://y/z\" }",
                "exclude",
            ),
            (
                "[server.a]\nurl = \"https://x\"\nauth = \"client-credentials\"\noauth = { client_id = \"i\", client_secret = \"env:PATH\", redirect_port = 1 }",
                "for logins",
            ),
        ] {
            let problem = parsed(text).expect_err(text);
            assert!(problem.contains(told), "{text}: {problem}");
        }
    }

    #[test]
    fn an_address_that_others_reach_needs_authentication() {
        let start = "[gateway]\nlisten = \"0.0.0.0:1\"\npublic_url = \"https://gw.example/\"\n";
        let exposed = |more: &str| {
            parsed(&format!("{start}[gateway.auth]\n{more}"))
                .expect("a configuration")
                .check_exposure()
        };
        assert!(exposed("").expect_err("open").contains("gateway.auth.methods"));
        assert_eq!(exposed("allow_anybody = true"), Ok(()));
        assert_eq!(exposed("methods = [\"api-key\"]"), Ok(()));
        assert_eq!(parsed("").expect("a configuration").check_exposure(), Ok(()));
    }

    #[test]
    fn audiences_are_the_gateways_urls() {
        let text = "[gateway]\npublic_url = \"https://gw.example/\"\n[server.a]\ncommand = [\"x\"]";
        let address = "127.0.0.1:7080".parse().expect("an address");
        let audiences = parsed(text).expect("a configuration").audiences(address);
        assert_eq!(audiences[0], "https://gw.example");
        assert!(audiences.contains(&"https://gw.example/mcp/s/a".to_owned()), "{audiences:?}");
        let here = parsed("").expect("a configuration").audiences(address);
        assert_eq!(here[2], "http://127.0.0.1:7080/mcp");
    }

    #[test]
    fn mistakes_of_servers_are_told_with_their_line() {
        let folder = std::env::temp_dir();
        let path = folder.join(format!("toolgate-mistake-{}.toml", std::process::id()));
        let text =
            "[server.a]\nurl = \"https://x\"\n[server.a.oauth]\nscopes = []\nissuer = \"y\"\n";
        std::fs::write(&path, text).expect("written");
        let error = Config::read(&path).expect_err("a mistake").to_string();
        std::fs::remove_file(&path).expect("removed");
        assert!(error.starts_with("line 5: server.a: `oauth.issuer`"), "{error}");
    }

    #[test]
    fn a_url_without_headers_takes_logins() {
        let authorization = |text: &str| {
            let text = format!("[server.a]\nurl = \"https://x\"\n{text}");
            let entries = parsed(&text).expect("a configuration").entries().expect("entries");
            let Upstream::Http(endpoint) = entries[0].upstream.clone() else { panic!("a URL") };
            endpoint.authorization
        };
        assert!(matches!(authorization(""), Authorization::Login(_)));
        assert_eq!(authorization("auth = \"none\""), Authorization::Headers);
        assert_eq!(authorization("headers = { X-Key = \"1\" }"), Authorization::Headers);
        let both = "auth = \"oauth\"\nheaders = { X-Team = \"1\" }";
        assert!(matches!(authorization(both), Authorization::Login(_)));
        let client = "auth = \"client-credentials\"\noauth = { client_id = \"i\", client_secret = \"env:PATH\", scopes = [\"s\"] }";
        let Authorization::ClientCredentials(client) = authorization(client) else {
            panic!("client credentials")
        };
        assert_eq!(client.id.as_deref(), Some("i"));
        assert_eq!(client.scopes, ["s"]);
    }

    #[test]
    fn credentials_of_principals_need_callers_with_names() {
        let problem = |methods: &str, server: &str| {
            let text = format!(
                "[gateway.auth]\nmethods = [{methods}]\n[server.a]\nurl = \"https://x\"\n{server}"
            );
            let entries = |config: Config| config.entries().map_err(|error| error.to_string());
            parsed(&text).and_then(entries).err()
        };
        let per_user = "auth = \"oauth-per-user\"";
        assert!(problem("", per_user).is_some_and(|told| told.contains("gateway.auth.methods")));
        assert_eq!(problem("\"api-key\"", per_user), None);
        let exchange = |more: &str| {
            format!(
                "auth = \"token-exchange\"\noauth = {{ client_id = \"i\", client_secret = \"env:PATH\"{more} }}"
            )
        };
        let keys = problem("\"api-key\"", &exchange(", issuer = \"https://y\""));
        assert!(keys.is_some_and(|told| told.contains("jwt")));
        let jwt = "\"jwt\"]\nissuer = \"https://y\"\njwks_file = \"x\"\naudiences = [\"z\"";
        assert!(problem(jwt, &exchange("")).is_some_and(|told| told.contains("oauth.issuer")));
        assert_eq!(problem(jwt, &exchange(", issuer = \"https://y\", audience = \"a\"")), None);
        let audience = problem("", "oauth = { audience = \"a\" }");
        assert!(audience.is_some_and(|told| told.contains("token-exchange")));
    }

    #[test]
    fn keys_of_credentials_are_checked() {
        for (text, told) in
            [("plain", "env:NAME"), ("env:PATH", "64 hex"), ("env:TOOLGATE_NO", "not set")]
        {
            let text = format!("[gateway]\ncredential_key = \"{text}\"");
            let config = Config::parse(&text, Path::new("gateway.toml")).expect("a configuration");
            let problem = config.credential_key().expect_err("a mistake").to_string();
            assert!(problem.contains(told), "{problem}");
        }
    }

    #[test]
    fn variables_within_values_are_read() {
        let value = |text: &str| resolved("s", text).map_err(|error| error.to_string());
        let path = std::env::var("PATH").expect("a path");
        assert_eq!(value("a ${PATH} b"), Ok(format!("a {path} b")));
        assert_eq!(value("${TOOLGATE_NOT_SET:-x}${TOOLGATE_NOT_SET:-}"), Ok("x".to_owned()));
        assert_eq!(value("$HOME {}"), Ok("$HOME {}".to_owned()));
        assert!(value("${TOOLGATE_NOT_SET}").expect_err("nothing").contains("not set"));
        assert!(value("${A").expect_err("open").contains("not closed"));
    }

    #[test]
    fn programs_are_allowed_by_name_or_folder() {
        let spawn = SpawnConfig { allow: Some(vec!["npx".into(), "/opt/mcp/*".into()]) };
        assert!(spawn.allows("npx") && spawn.allows("/opt/mcp/server"));
        for program in ["node", "/opt/mcp/a/b", "/opt/mcp", "/opt/mcp/../sh", "./npx"] {
            assert!(!spawn.allows(program), "{program}");
        }
    }

    #[test]
    fn filters_of_tools_allow_and_deny() {
        let filter = ToolFilter {
            allow: Some(vec!["get_*".into(), "x".into()]),
            deny: vec!["get_b*".into()],
        };
        assert!(filter.admits("get_a") && filter.admits("x"));
        assert!(!filter.admits("get_b1") && !filter.admits("y"));
        assert!(ToolFilter::default().admits("anything"));
    }
}
