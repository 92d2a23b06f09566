//! Resources of a server that hosts follow. The server is told once of each, however many follow it, and again after it was
//! away.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::sync::{broadcast, watch};
use tokio::time::Instant;
use toolgate_telemetry::McpSpan;

use super::server::Server;
use crate::connection::{Connection, Outgoing};
use crate::listening::AbortOnDrop;

/// Most resources of a server that are followed.
const WATCHED_MAX: usize = 256;

/// Changes that wait for a slow listener. More are dropped, and told for all that it follows.
const CHANGES_WAITING: usize = 64;

/// Time of a server to take a subscription, or to end it.
const SUBSCRIBE: Duration = Duration::from_secs(30);

/// Resources of one server that are followed.
#[derive(Debug)]
pub(super) struct Watched {
    /// Numbers of those who follow each.
    followers: Mutex<BTreeMap<String, usize>>,
    /// Grows with each change of the set.
    moves: watch::Sender<u64>,
    changes: broadcast::Sender<Arc<str>>,
}

/// Resource that is followed until this is dropped.
#[derive(Debug)]
pub struct Watching {
    watched: Arc<Watched>,
    uri: String,
}

impl Default for Watched {
    fn default() -> Self {
        Self {
            followers: Mutex::default(),
            moves: watch::channel(0).0,
            changes: broadcast::channel(CHANGES_WAITING).0,
        }
    }
}

impl Watched {
    pub(super) fn watch(self: Arc<Self>, uri: &str) -> Option<Watching> {
        {
            let mut followers = self.followers.lock();
            if !followers.contains_key(uri) && followers.len() >= WATCHED_MAX {
                return None;
            }
            *followers.entry(uri.to_owned()).or_default() += 1;
        }
        self.moves.send_modify(|moves| *moves += 1);
        Some(Watching { watched: self, uri: uri.to_owned() })
    }

    pub(super) fn has(&self, uri: &str) -> bool {
        self.followers.lock().contains_key(uri)
    }

    pub(super) fn changes(&self) -> broadcast::Receiver<Arc<str>> {
        self.changes.subscribe()
    }

    pub(super) fn sender(&self) -> broadcast::Sender<Arc<str>> {
        self.changes.clone()
    }

    fn uris(&self) -> BTreeSet<String> {
        self.followers.lock().keys().cloned().collect()
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        {
            let mut followers = self.watched.followers.lock();
            if let Some(count) = followers.get_mut(&self.uri) {
                *count -= 1;
                if *count == 0 {
                    followers.remove(&self.uri);
                }
            }
        }
        self.watched.moves.send_modify(|moves| *moves += 1);
    }
}

impl Server {
    /// Keeps the server's subscriptions in step with what hosts follow. Does not return.
    pub(super) async fn follow_resources(&self, connection: &Connection) {
        let watched = self.surroundings.watched(&self.entry.name);
        let mut moves = watched.moves.subscribe();
        let mut followed = BTreeSet::new();
        let mut _listening: Option<AbortOnDrop> = None;
        loop {
            moves.borrow_and_update();
            let wanted = watched.uris();
            if wanted != followed {
                if connection.is_modern() {
                    // The new one begins before the old one ends: no change is lost between them.
                    _listening = self.listening(connection, &wanted).await;
                    followed = wanted;
                } else {
                    self.subscribe(connection, &wanted, &mut followed).await;
                }
            }
            if moves.changed().await.is_err() {
                // The sender is held here.
                return std::future::pending().await;
            }
        }
    }

    async fn listening(
        &self,
        connection: &Connection,
        wanted: &BTreeSet<String>,
    ) -> Option<AbortOnDrop> {
        if wanted.is_empty() {
            return None;
        }
        match connection.listen_to(wanted.iter().cloned().collect()).await {
            Ok(listening) => Some(listening),
            Err(problem) => {
                let server = &self.entry.name;
                tracing::warn!(server, problem, "resources are not followed");
                None
            }
        }
    }

    /// Subscribes to what is wanted and ends what is not. What fails is tried again at the next change.
    async fn subscribe(
        &self,
        connection: &Connection,
        wanted: &BTreeSet<String>,
        followed: &mut BTreeSet<String>,
    ) {
        let ended: Vec<_> = followed.difference(wanted).cloned().collect();
        for uri in ended {
            self.tell(connection, "resources/unsubscribe", &uri).await;
            followed.remove(&uri);
        }
        for uri in wanted {
            if !followed.contains(uri) && self.tell(connection, "resources/subscribe", uri).await {
                followed.insert(uri.clone());
            }
        }
    }

    async fn tell(&self, connection: &Connection, method: &str, uri: &str) -> bool {
        let mut params = Map::new();
        params.insert("uri".to_owned(), Value::from(uri));
        let outgoing = Outgoing {
            method: method.to_owned(),
            params,
            progress: None,
            principal: None,
            asking: None,
            idle: SUBSCRIBE,
            deadline: Instant::now() + SUBSCRIBE,
            span: McpSpan::untraced(),
        };
        let told = connection.call(outgoing).await;
        if let Err(error) = &told {
            tracing::warn!(server = self.entry.name, %error, method, "a resource is not followed");
        }
        told.is_ok()
    }
}
