//! The gateway's file, `gateway.toml`.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use toolgate_upstream::Entry;

mod addresses;
mod always_on;
mod approved;
mod authentication;
mod authorization;
mod credential_key;
mod entry;
mod env_file;
mod error;
mod gateway;
mod per_user;
mod places;
mod replicas;
mod restart;
mod sandbox;
mod server;
mod spawn;
#[cfg(test)]
mod tests;
mod tls;
mod tools;
mod values;
mod waiting;

pub(crate) use always_on::AlwaysOn;
pub(crate) use approved::ApprovedItem;
pub use authentication::{AuthConfig, AuthMethod};
pub use authorization::{Auth, OAuthConfig};
pub use error::ConfigError;
pub use gateway::ShownNames;
pub(crate) use gateway::{Exposed, GatewayConfig};
use restart::RestartConfig;
use sandbox::SandboxConfig;
pub use server::{EntryFile, ServerConfig};
pub(crate) use server::{StartConfig, Trust};
use spawn::SpawnConfig;
pub use tls::TlsConfig;
pub(crate) use tools::ToolFilter;
pub use waiting::{MissingValue, line_of};

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

    /// Returns the servers to run, with the values of their secrets. One that lacks a variable or a file waits.
    ///
    /// # Errors
    /// [`ConfigError::Server`] for an entry that makes no sense.
    pub fn entries(&self) -> Result<Vec<Entry>, ConfigError> {
        let running = self.server.iter().filter(|(_, server)| !server.disabled);
        running.map(|(name, server)| self.entry(name, server)).collect()
    }
}
