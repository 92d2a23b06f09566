//! The store that the configuration names.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tracing::warn;

use super::{DATABASE, ServeError};
use toolgate_config::{SharedStoreConfig, StoreConfig, keys};
use toolgate_core::error::with_causes;
use toolgate_store::copies::Copies;
use toolgate_store::postgres::{PostgresConfig, PostgresStore, is_outage};
use toolgate_store::sqlite::SqliteStore;
use toolgate_store::{Store, StoreError};

/// Time that a shard stays in use after a change if it can't be rebuilt. It applies to an own store, which has no other
/// writer.
const OWN_MAX_STALENESS: Duration = Duration::from_secs(15 * 60);

/// Opens the store. A shared store that can't be reached now is returned too; its calls fail until it can be reached.
pub(super) async fn open(config: &StoreConfig) -> Result<Arc<dyn Store>, ServeError> {
    let Some(shared) = &config.shared else {
        let store = open_own(config).await?;
        let path = config.path.join(DATABASE);
        store.quick_check().await.map_err(|source| unsound(&path, source))?;
        return Ok(store);
    };
    let store = shared_store(shared)?;
    match store.prepare().await {
        Err(error) if is_outage(&error) => {
            let store = store.place();
            let error = with_causes(&error);
            warn!(store, error, "the store can't be reached: starting without it");
        }
        prepared => prepared.map_err(|source| failed(&store, source))?,
    }
    Ok(Arc::new(store))
}

/// Opens the store, and fails if it can't be reached now.
pub(crate) async fn open_now(config: &StoreConfig) -> Result<Arc<dyn Store>, ServeError> {
    let Some(shared) = &config.shared else { return Ok(open_own(config).await?) };
    let store = shared_store(shared)?;
    store.prepare().await.map_err(|source| failed(&store, source))?;
    Ok(Arc::new(store))
}

/// Returns a shared store that is reached with the first call. Whoever else opens it brings its schema up to date.
pub(crate) fn reached_later(config: &SharedStoreConfig) -> Result<Arc<dyn Store>, ServeError> {
    Ok(Arc::new(shared_store(config)?))
}

/// Converts the error of a failed check of the database. An error of the disk or of a lock is not damage.
fn unsound(path: &Path, source: StoreError) -> ServeError {
    let path = path.display().to_string();
    match source {
        StoreError::Damaged(_) => ServeError::Damaged { path, source },
        _ => ServeError::Store { path, source },
    }
}

/// Refuses a data directory whose database is gone or empty although there was one.
pub(crate) fn require_own(folder: &Path) -> Result<(), ServeError> {
    let path = folder.join(DATABASE);
    let marker = folder.join(MARKER);
    let is_empty = path.metadata().map_or(true, |found| found.len() == 0);
    if is_empty && marker.exists() {
        let place = |path: &Path| path.display().to_string();
        return Err(ServeError::Gone { path: place(&path), marker: place(&marker) });
    }
    Ok(())
}

async fn open_own(config: &StoreConfig) -> Result<Arc<SqliteStore>, ServeError> {
    require_own(&config.path)?;
    let path = config.path.join(DATABASE);
    let marker = config.path.join(MARKER);
    let opened = SqliteStore::open(&path).await;
    let failed = |source| ServeError::Store { path: path.display().to_string(), source };
    let store = opened.map_err(failed)?;
    if !marker.exists()
        && let Err(error) = std::fs::write(&marker, MARKER_TEXT)
    {
        warn!(%error, "it can't be written down that there is a database here");
    }
    Ok(Arc::new(store))
}

/// File that marks the data directory as having a database. Without it, a deleted database would silently be replaced
/// with an empty one.
const MARKER: &str = "toolgate.db.here";

const MARKER_TEXT: &str = "There is a catalog in toolgate.db. If that is gone, servers do not start until it is put back \
    from a backup, or this file is deleted: then they begin with an empty one.\n";

fn shared_store(config: &SharedStoreConfig) -> Result<PostgresStore, ServeError> {
    let failed = |source| ServeError::Store { path: keys::STORE_URL.to_string(), source };
    PostgresStore::new(&reached_by(config)?).map_err(failed)
}

fn failed(store: &PostgresStore, source: StoreError) -> ServeError {
    ServeError::Store { path: store.place().to_owned(), source }
}

/// Opens this replica's local copies if the store is shared. If the disk fails, the server starts without them.
pub(super) fn copies(config: &StoreConfig) -> Option<Arc<Copies>> {
    if !keeps_copies(config) {
        return None;
    }
    match Copies::open(&config.path, budget(config)) {
        Ok(copies) => Some(Arc::new(copies)),
        Err(error) => {
            warn!(%error, "no copies of catalogs can be kept for when the store is down");
            None
        }
    }
}

/// Returns the time that a catalog may be used without the shared store. An own store has a fixed limit.
pub(super) fn max_staleness(config: &StoreConfig) -> Duration {
    config.shared.as_ref().map_or(OWN_MAX_STALENESS, |shared| shared.max_staleness)
}

/// Returns true if this process keeps local copies of a shared store.
pub(super) fn keeps_copies(config: &StoreConfig) -> bool {
    budget(config) > 0
}

fn budget(config: &StoreConfig) -> u64 {
    config.shared.as_ref().map_or(0, |shared| shared.snapshot_bytes)
}

/// Returns the connection settings of the shared store.
pub(crate) fn reached_by(config: &SharedStoreConfig) -> Result<PostgresConfig, ServeError> {
    let url = config.url.load().map_err(ServeError::StoreUrl)?;
    Ok(PostgresConfig {
        url: url.expose().to_owned(),
        max_connections: config.max_connections,
        statement_timeout: config.statement_timeout,
        connect_timeout: config.connect_timeout,
        listen: config.notify,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_damage_is_called_damage() {
        let path = Path::new("/data/toolgate.db");
        let damaged = unsound(path, StoreError::Damaged("Tree 4".to_owned()));
        assert!(damaged.to_string().contains("toolgate.db is damaged"), "{damaged}");
        let failed = unsound(path, StoreError::Unavailable("no answer within 10 s".into()));
        assert!(matches!(failed, ServeError::Store { .. }), "{failed}");
        assert!(!with_causes(&failed).contains("damaged"), "{failed}");
    }

    #[test]
    fn an_absent_or_empty_database_is_missed_where_there_was_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(DATABASE);
        let marker = folder.path().join(MARKER);
        require_own(folder.path()).expect("there never was one");
        std::fs::write(&marker, MARKER_TEXT).expect("a file");
        for is_empty in [false, true] {
            if is_empty {
                std::fs::write(&path, "").expect("a file");
            }
            let gone = require_own(folder.path()).expect_err("a refusal");
            assert!(matches!(gone, ServeError::Gone { .. }), "{gone}");
        }
        std::fs::write(&path, "something").expect("a file");
        require_own(folder.path()).expect("what it is, is looked at when it is opened");
    }
}
