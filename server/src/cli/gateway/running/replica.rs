//! What the replicas of a gateway have in common: the key of what hosts carry, and the sessions that these ended.

use std::sync::Arc;
use std::time::SystemTime;

use futures_util::future::BoxFuture;
use toolgate_config::{KeySource, SharedStoreConfig, StoreConfig};
use toolgate_mcp::{Config, EndedSessions, Replica, SealingKeys};
use toolgate_store::Store;

use super::plane::store_at;
use crate::cli::arguments::ConfigArguments;
use crate::cli::failure::Failure;
use crate::cli::serve::with_causes;
use crate::serve::reached_later;

/// Settings of one replica.
pub(super) struct ReplicaSettings {
    keys: Option<SealingKeys>,
    url: Option<String>,
    /// Store that replicas share; `None` if they share none.
    store: Option<SharedStoreConfig>,
}

/// Ended sessions in a shared store, which is reached when it is first needed: a gateway starts without it.
struct Stored(Arc<dyn Store>);

impl ReplicaSettings {
    /// Reads what the gateway's file says.
    pub(super) fn read(config: &Config, arguments: &ConfigArguments) -> Result<Self, Failure> {
        let usage = |error: toolgate_mcp::ConfigError| Failure::usage(error.to_string());
        let store = config.store_url().map_err(usage)?;
        let store = store.map(|url| store_at(arguments, "gateway.store_url", &url)).transpose()?;
        let store = store.and_then(|store| store.shared);
        Ok(Self {
            keys: config.sealing_keys().map_err(usage)?,
            url: config.replica_url().map_err(usage)?,
            store,
        })
    }

    /// Adds what the plane within this process has, where the file says nothing: all that have its handle key and its
    /// database are replicas.
    pub(super) fn beside(
        mut self,
        handle_key: &KeySource,
        store: &StoreConfig,
    ) -> Result<Self, Failure> {
        if self.keys.is_none() {
            let secret = handle_key.load().map_err(|error| Failure::new(with_causes(&error)))?;
            let keys = SealingKeys::derived(secret.as_bytes());
            self.keys = Some(keys.map_err(|error| Failure::new(error.to_string()))?);
        }
        self.store = self.store.or_else(|| store.shared.clone());
        Ok(self)
    }

    /// Returns the replica.
    pub(super) fn replica(self) -> Result<Replica, Failure> {
        let keys = match self.keys {
            Some(keys) => keys,
            None => SealingKeys::random().map_err(|error| Failure::new(error.to_string()))?,
        };
        let ended = match &self.store {
            Some(store) => {
                let store = reached_later(store);
                let store = store.map_err(|error| Failure::new(with_causes(&error)))?;
                let stored: Arc<dyn EndedSessions> = Arc::new(Stored(store));
                Some(stored)
            }
            None => None,
        };
        Ok(Replica { keys, url: self.url, ended })
    }
}

impl EndedSessions for Stored {
    fn end<'a>(&'a self, session: &'a str, until: SystemTime) -> BoxFuture<'a, Result<(), String>> {
        let kept = until.duration_since(SystemTime::now()).unwrap_or_default();
        Box::pin(async move {
            let ended = self.0.end_session(session, kept).await;
            ended.map_err(|error| error.to_string())
        })
    }

    fn is_ended<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<bool, String>> {
        Box::pin(async move {
            let is_ended = self.0.is_session_ended(session).await;
            is_ended.map_err(|error| error.to_string())
        })
    }
}
