//! Storage of the catalog.

use std::path::PathBuf;
use std::time::Duration;

use crate::store_url::UrlSource;
use crate::{Settings, keys};

/// Storage of the catalog.
#[derive(Debug, Clone)]
pub struct StoreConfig {
    /// Data directory of this server.
    pub path: PathBuf,
    /// Database that replicas share; `None` when the catalog is in the data directory.
    pub shared: Option<SharedStoreConfig>,
}

/// Database that replicas share.
#[derive(Debug, Clone)]
pub struct SharedStoreConfig {
    /// URL of the database, or the file that holds it.
    pub url: UrlSource,
    /// Maximum number of connections.
    pub max_connections: u32,
    /// Time limit of one statement.
    pub statement_timeout: Duration,
    /// Longest wait for a connection.
    pub connect_timeout: Duration,
    /// Interval at which the database is asked for changes.
    pub poll_interval: Duration,
    /// True if the server listens for the database's hints of changes.
    pub notify: bool,
    /// Time that Gate keeps allowing calls on a catalog that can't be compared with the database.
    pub max_staleness: Duration,
    /// Disk space for copies of catalogs, in bytes; 0 for none.
    pub snapshot_bytes: u64,
}

impl From<&Settings> for StoreConfig {
    fn from(settings: &Settings) -> Self {
        let given = settings.read_optional(&keys::STORE_URL).map(UrlSource::Given);
        let file = || settings.read_optional(&keys::STORE_URL_FILE).map(UrlSource::File);
        let shared = |url| SharedStoreConfig {
            url,
            max_connections: settings.read(&keys::STORE_MAX_CONNECTIONS),
            statement_timeout: settings.read(&keys::STORE_STATEMENT_TIMEOUT),
            connect_timeout: settings.read(&keys::STORE_CONNECT_TIMEOUT),
            poll_interval: settings.read(&keys::STORE_POLL_INTERVAL),
            notify: settings.read(&keys::STORE_NOTIFY),
            max_staleness: settings.read(&keys::STORE_MAX_STALENESS),
            snapshot_bytes: settings.read(&keys::STORE_SNAPSHOT_BUDGET),
        };
        Self { path: settings.read(&keys::STORE_PATH), shared: given.or_else(file).map(shared) }
    }
}
