//! The section `[gateway]`: settings of the gateway itself.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use super::values::{duration, size};
use super::{AlwaysOn, AuthConfig, AuthMethod, SpawnConfig, TlsConfig};

/// Port of the gateway.
const PORT: u16 = 7080;

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
    /// Tools that every host sees.
    pub always_on: AlwaysOn,
    /// Most tokens of definitions that a host starts with, in cl100k tokens.
    pub start_tokens: usize,
    /// Most tools of all servers together that are all shown, as `server__tool`; 0 for never.
    pub load_all_up_to: usize,
    /// Rule for calls of tools that no search has shown.
    pub shown_names: ShownNames,
    /// Most bytes of text of a result that a host is sent; the rest is read by `read_result`.
    #[serde(deserialize_with = "size")]
    pub result_limit: usize,
    /// Most bytes of text of a result, where its server asks for more than `result_limit`. An untrusted one is not asked.
    #[serde(deserialize_with = "size")]
    pub result_limit_max: usize,
    /// True if results of untrusted servers begin with a line that says whose they are.
    pub mark_results: bool,
    /// Time of a call without an answer or progress.
    #[serde(deserialize_with = "duration")]
    pub call_timeout: Duration,
    /// Time of a host for the answer to a question of a server, which a person may have to give.
    #[serde(deserialize_with = "duration")]
    pub question_timeout: Duration,
    /// Most open connections of hosts.
    pub max_connections: usize,
    /// Of these, most of one address; 0 for half of them. Addresses of this machine have no such bound.
    pub max_connections_per_address: usize,
    /// Programs that may be started.
    pub spawn: SpawnConfig,
    /// Credentials of hosts.
    pub auth: AuthConfig,
    /// Certificates of the listener, and of hosts.
    pub tls: TlsConfig,
    /// File to which a line is appended for each call.
    pub audit_file: Option<PathBuf>,
    /// Keys of stored credentials, each 64 hexadecimal digits: `env:NAME` or `file:PATH`. The first seals, all open. Absent: a
    /// file beside them.
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

/// Face at `/mcp`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Exposed {
    /// Tools that search and call.
    Search,
    /// Every tool, for hosts that search by themselves.
    All,
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

impl Default for GatewayConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), PORT),
            public_url: String::new(),
            allowed_origins: Vec::new(),
            expose: Exposed::Search,
            always_on: AlwaysOn::default(),
            start_tokens: 2_000,
            load_all_up_to: 0,
            shown_names: ShownNames::Assist,
            result_limit: 32 << 10,
            result_limit_max: 512 << 10,
            mark_results: false,
            call_timeout: Duration::from_secs(60),
            question_timeout: Duration::from_secs(5 * 60),
            max_connections: 1_024,
            max_connections_per_address: 0,
            spawn: SpawnConfig::default(),
            auth: AuthConfig::default(),
            tls: TlsConfig::default(),
            audit_file: None,
            credential_key: None,
            sealing_key: None,
            replica_url: None,
            store_url: None,
        }
    }
}

impl GatewayConfig {
    /// Returns the most connections of one address.
    #[must_use]
    pub fn connections_of_one_address(&self) -> usize {
        match self.max_connections_per_address {
            0 => self.max_connections.div_ceil(2),
            most => most,
        }
    }

    /// Returns the scheme of the gateway's own URLs.
    #[must_use]
    pub fn scheme(&self) -> &'static str {
        if self.tls.is_on() { "https" } else { "http" }
    }

    /// Returns what is wrong with these settings together, and a remedy.
    pub(crate) fn problem(&self) -> Option<String> {
        if !self.listen.ip().is_loopback() && self.public_url.is_empty() {
            let problem = "gateway.listen is no address of this machine alone: set gateway.public_url to the URL that hosts use";
            return Some(problem.to_owned());
        }
        if self.max_connections == 0 {
            let problem =
                "gateway.max_connections is 0, so that no host could connect: the default is 1024";
            return Some(problem.to_owned());
        }
        if self.always_on == AlwaysOn::Auto && self.replica_url.is_some() {
            let problem = "gateway.always_on is \"auto\", which goes by the calls of one gateway, and gateway.replica_url says that there are several: name the tools";
            return Some(problem.to_owned());
        }
        if let Some(problem) = self.tls.problem() {
            return Some(format!("gateway.tls: {problem}"));
        }
        if self.auth.methods.contains(&AuthMethod::Mtls) && self.tls.client_ca_file.is_none() {
            let problem = "gateway.auth: `mtls` needs gateway.tls.client_ca_file";
            return Some(problem.to_owned());
        }
        self.auth.problem().map(|problem| format!("gateway.auth: {problem}"))
    }
}
