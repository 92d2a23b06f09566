//! Files that name the servers of a gateway: its own, and a host's.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use toolgate_import::{FoundServer, McpJson, Place};
use toolgate_mcp::{Config, ConfigError, EntryFile, ServerConfig};

use super::DEFAULT_FILE;
use crate::cli::failure::Failure;
use crate::cli::output;

/// Files that name the servers of a gateway.
#[derive(Debug, Clone, Args)]
pub(super) struct GatewayFiles {
    /// The gateway's file. Default: gateway.toml.
    #[arg(long, env = "TOOLGATE_GATEWAY_CONFIG", value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// A host's file of servers, such as .mcp.json, read as it is beside the gateway's file, or in its place where there is none.
    /// It starts the programs that gateway.spawn.allow names, or any where the gateway's file has no such key.
    #[arg(long, value_name = "FILE")]
    pub(super) mcp_json: Option<PathBuf>,
}

/// Content of the files.
pub(super) struct ReadFiles {
    pub(super) config: Config,
    /// Lines for people: what the host's file starts and reaches, and what is not read of it.
    pub(super) remarks: Vec<String>,
}

impl GatewayFiles {
    /// Returns the files as they are at the start: a default file that is not there then is not read later.
    pub(super) fn settled(self) -> Self {
        let default = PathBuf::from(DEFAULT_FILE);
        let has_default = self.mcp_json.is_none() || default.exists();
        let config = self.config.or_else(|| has_default.then_some(default));
        Self { config, ..self }
    }

    /// Returns the paths of the files that are read.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        self.config.iter().chain(&self.mcp_json).cloned().collect()
    }

    /// Reads the files.
    ///
    /// # Errors
    /// [`Failure`] with the mistake, if one can't be read or makes no sense.
    pub(super) fn read(&self) -> Result<ReadFiles, Failure> {
        let config = match &self.config {
            Some(path) => read_own(path)?,
            None => Config::default(),
        };
        let mut files = ReadFiles { config, remarks: Vec::new() };
        if let Some(path) = &self.mcp_json {
            let told = |problem: String| Failure::usage(format!("{}: {problem}", path.display()));
            files.add_host_file(path).map_err(told)?;
        }
        Ok(files)
    }
}

impl ReadFiles {
    /// Adds the servers of a host's file.
    fn add_host_file(&mut self, path: &Path) -> Result<(), String> {
        let text =
            fs::read_to_string(path).map_err(|error| format!("it can't be read: {error}"))?;
        let McpJson { servers, remarks } =
            McpJson::read(&text, &own_urls(&self.config)).map_err(|error| error.to_string())?;
        let remark = |text: &str| format!("{}: {text}", path.display());
        for FoundServer { name, place, .. } in servers {
            if self.config.server.contains_key(&name) {
                return Err(format!("the gateway's file has a server.{name} as well: rename one"));
            }
            let verb = match &place {
                Place::Command { .. } => "starts",
                Place::Url { .. } => "reaches",
            };
            self.remarks.push(remark(&format!("{name} {verb} {}", place.shown())));
            self.config.server.insert(name, entry(place));
        }
        self.remarks.extend(remarks.iter().map(|text| remark(text)));
        self.config.entries().map(|_entries| ()).map_err(|error| error.to_string())
    }

    /// Tells people what is remarkable, and returns the configuration.
    pub(super) fn told(self) -> Config {
        for remark in &self.remarks {
            output::note(remark);
        }
        self.config
    }
}

/// Returns the base URLs of the gateway of a configuration, by which its entries in hosts' files are known.
pub(super) fn own_urls(config: &Config) -> Vec<String> {
    let gateway = &config.gateway;
    let listening = format!("{}://{}", gateway.scheme(), gateway.listen);
    let public = (!gateway.public_url.is_empty()).then(|| gateway.public_url.clone());
    std::iter::once(listening).chain(public).collect()
}

/// Returns the entry of a server that a host's file names.
fn entry(place: Place) -> ServerConfig {
    let of_host = ServerConfig { file: EntryFile::Host, ..ServerConfig::default() };
    match place {
        Place::Command { words, env, env_file, cwd } => {
            ServerConfig { command: words, env, env_file, cwd, ..of_host }
        }
        Place::Url { url, headers } => ServerConfig { url: Some(url), headers, ..of_host },
    }
}

/// Reads the gateway's own file.
pub(super) fn read_own(path: &Path) -> Result<Config, Failure> {
    Config::read(path).map_err(|error| match error {
        ConfigError::Read { .. } if path == Path::new(DEFAULT_FILE) => Failure::usage(format!(
            "{error}; `toolgate gateway import` makes one of the servers of your hosts, `toolgate gateway --help` shows an example, --config names another file"
        )),
        error => Failure::usage(error.to_string()),
    })
}
