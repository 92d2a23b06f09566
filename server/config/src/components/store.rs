//! Where the catalog is kept.

use std::path::PathBuf;
use std::time::Duration;

use crate::store_url::UrlSource;
use crate::{Settings, Value};

/// Where the catalog is kept.
#[derive(Debug, Clone)]
pub struct StoreConfig {
    /// The data directory.
    pub path: PathBuf,
    /// The database that replicas share; `None` where the catalog is in the data directory.
    pub shared: Option<SharedStoreConfig>,
}

/// A database that replicas share.
#[derive(Debug, Clone)]
pub struct SharedStoreConfig {
    /// Its URL, or where that is.
    pub url: UrlSource,
    /// The most connections.
    pub max_connections: u32,
    /// The longest that a statement may take.
    pub statement_timeout: Duration,
    /// The longest that a connection is waited for.
    pub connect_timeout: Duration,
    /// How often it is asked what changed.
    pub poll_interval: Duration,
    /// Whether it is listened to for hints of changes.
    pub listen: bool,
    /// How long Gate allows calls on a catalog that can't be compared with the database.
    pub max_staleness: Duration,
    /// Bytes on disk for copies of catalogs; 0 for none.
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
            listen: settings.flag("store.listen"),
            max_staleness: settings.duration("store.max_staleness"),
            snapshot_bytes: settings.count("store.snapshot_budget") as u64,
        };
        Self { path: settings.path("store.path"), shared: url.map(shared) }
    }
}
