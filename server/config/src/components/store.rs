//! Storage of the catalog.

use std::path::PathBuf;
use std::time::Duration;

use crate::store_url::UrlSource;
use crate::{Settings, Value};

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
    pub listen: bool,
    /// Time that Gate keeps allowing calls on a catalog that can't be compared with the database.
    pub max_staleness: Duration,
    /// Disk space for copies of catalogs, in bytes; 0 for none.
    pub snapshot_bytes: u64,
}

impl From<&Settings> for StoreConfig {
    fn from(settings: &Settings) -> Self {
        let url = (&settings.get("store.url").value, &settings.get("store.url_file").value);
        let url = match url {
            (Value::StoreUrl(url), _) => Some(UrlSource::Given(url.clone())),
            (_, Value::Path(path)) => Some(UrlSource::File(path.clone())),
            _ => None,
        };
        let shared = |url| SharedStoreConfig {
            url,
            max_connections: u32::try_from(settings.count("store.max_connections"))
                .unwrap_or(u32::MAX),
            statement_timeout: settings.duration("store.statement_timeout"),
            connect_timeout: settings.duration("store.connect_timeout"),
            poll_interval: settings.duration("store.poll_interval"),
            listen: settings.flag("store.notify"),
            max_staleness: settings.duration("store.max_staleness"),
            snapshot_bytes: settings.count("store.snapshot_budget") as u64,
        };
        Self { path: settings.path("store.path"), shared: url.map(shared) }
    }
}
