//! A server behind the gateway: `[server.NAME]`.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;

use super::values::some_duration;
use super::{ApprovedItem, Auth, OAuthConfig, RestartConfig, SandboxConfig, ToolFilter};

/// Most connections of hosts' own to one server.
const OWN_CONNECTIONS: usize = 8;

/// Most connections of principals' own to one server that has a credential for each.
const PRINCIPALS_CONNECTIONS: usize = 256;

/// Server behind the gateway. Exactly one of `command` and `url` is set.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerConfig {
    /// File that the entry stands in.
    #[serde(skip)]
    pub file: EntryFile,
    /// Program and its arguments.
    #[serde(default)]
    pub command: Vec<String>,
    /// Folder that the program starts in; absent: the gateway's own.
    #[serde(default)]
    pub cwd: Option<String>,
    /// URL of Streamable HTTP, or of the older HTTP+SSE.
    #[serde(default)]
    pub url: Option<String>,
    /// Variables of the program's environment, as [`EntryFile`] says.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// File of more such variables, one `NAME=VALUE` a line. Those of `env` go before them.
    #[serde(default)]
    pub env_file: Option<String>,
    /// Headers of each request, as [`EntryFile`] says.
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
    /// Processes at a time, where each principal has its own.
    #[serde(default)]
    pub processes: Option<usize>,
    /// Silence after which a principal's own process ends.
    #[serde(default, deserialize_with = "some_duration")]
    pub idle: Option<Duration>,
    /// Folder with a home folder for each principal that has its own process, as [`EntryFile`] says. Absent: all have the home
    /// that `env` says.
    #[serde(default)]
    pub homes: Option<String>,
    /// Sandbox of the program. Absent: none.
    #[serde(default)]
    pub sandbox: Option<SandboxConfig>,
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
    /// Prompts and resources that are shown though their texts would quarantine a tool, as long as they stay as they were read.
    #[serde(default)]
    pub approved: Vec<ApprovedItem>,
    /// Tenants that see the server. Absent: the gateway's own.
    #[serde(default)]
    pub tenants: Option<Vec<String>>,
    /// True if the server is left out.
    #[serde(default)]
    pub disabled: bool,
}

/// File of a server's entry, by whose rules its values are read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EntryFile {
    /// The gateway's own. `${NAME}`, `${env:NAME}`, `${NAME:-default}` and `${file:PATH}` are read in every value, word of a
    /// command and URL, and `$${` is `${`. A value of `env`, `headers` or `cwd` may be `env:NAME`, `file:PATH` or `text:VALUE` as
    /// a whole.
    #[default]
    Gateway,
    /// A host's, which others than the operator may write. `${...}` is a variable in every value, word of a command and URL, or a
    /// folder that editors name, and nothing else is read. Where `gateway.spawn.allow` names a program without its folder, it is
    /// the one that the gateway's own `PATH` finds.
    Host,
}

/// Time of a server's first start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StartConfig {
    /// With the gateway.
    #[default]
    Eager,
    /// With the first call; with the gateway only to list its tools.
    Lazy,
    /// With the first request of each principal, for it alone; with the gateway only to list its tools.
    PerUser,
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

impl ServerConfig {
    /// Returns the tenants that see the server, where `own` is the gateway's.
    pub(crate) fn tenants(&self, own: &str) -> Vec<String> {
        self.tenants.clone().unwrap_or_else(|| vec![own.to_owned()])
    }

    /// Returns the most connections of hosts' or principals' own.
    pub(super) fn own_connections(&self) -> usize {
        if self.has_principals_credentials() {
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

    /// Returns true if each principal has a credential of its own for the server, or a process.
    pub(crate) fn is_per_principal(&self) -> bool {
        self.has_principals_credentials() || self.start == StartConfig::PerUser
    }

    fn has_principals_credentials(&self) -> bool {
        matches!(self.auth, Some(Auth::OauthPerUser | Auth::TokenExchange))
    }

    /// Returns true if the server may ask hosts when it is of a revision before 2026-07-28.
    pub(crate) fn may_ask(&self) -> bool {
        self.questions.unwrap_or(self.url.is_some())
    }
}
