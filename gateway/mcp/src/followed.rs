//! Resources that one host follows: of one server, or of several.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, mpsc};
use tokio::task::JoinHandle;
use toolgate_upstream::Watching;

use crate::gateway::Gateway;

/// Most resources that one host follows in one session or subscription.
pub(crate) const FOLLOWED_MAX: usize = 64;

/// Longest URI that is followed, in bytes.
const URI_MAX: usize = 4 << 10;

/// Changes that wait to be told.
const UPDATES_WAITING: usize = 64;

/// Resource of a server, and the URI by which a host knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Resource {
    pub(crate) server: String,
    pub(crate) uri: String,
    pub(crate) shown: String,
}

/// Resources that a host follows until this is dropped.
pub(crate) struct Followed {
    gateway: Gateway,
    resources: Arc<Mutex<Vec<FollowedResource>>>,
    /// Tasks that watch a server each.
    watching: Mutex<HashMap<String, JoinHandle<()>>>,
    updates: mpsc::Sender<String>,
}

struct FollowedResource {
    resource: Resource,
    _watching: Watching,
}

impl Followed {
    /// Follows nothing yet. The URIs of what changes, as the host knows them, come out of the receiver.
    pub(crate) fn new(gateway: &Gateway) -> (Self, mpsc::Receiver<String>) {
        let (updates, receiver) = mpsc::channel(UPDATES_WAITING);
        let followed = Self {
            gateway: gateway.clone(),
            resources: Arc::default(),
            watching: Mutex::default(),
            updates,
        };
        (followed, receiver)
    }

    /// Follows one more resource.
    ///
    /// # Errors
    /// The problem, if as many are followed as may be.
    pub(crate) fn follow(&self, resource: Resource) -> Result<(), String> {
        if resource.uri.len() > URI_MAX {
            return Err(format!("a URI that is followed has at most {URI_MAX} bytes"));
        }
        let mut resources = self.resources.lock();
        if resources.iter().any(|followed| followed.resource == resource) {
            return Ok(());
        }
        if resources.len() >= FOLLOWED_MAX {
            return Err(format!("{FOLLOWED_MAX} resources are followed already: end one"));
        }
        // Listens before the server can tell of the resource.
        self.watch(&resource.server);
        let watching = self.gateway.fleet().watch(&resource.server, &resource.uri);
        let watching = watching.ok_or_else(|| {
            format!("as many resources of {} are followed as may be", resource.server)
        })?;
        resources.push(FollowedResource { resource, _watching: watching });
        Ok(())
    }

    /// Follows a resource no more.
    pub(crate) fn leave(&self, resource: &Resource) {
        self.resources.lock().retain(|followed| followed.resource != *resource);
    }

    fn watch(&self, server: &str) {
        let mut watching = self.watching.lock();
        if watching.contains_key(server) {
            return;
        }
        let changes = self.gateway.fleet().resource_changes(server);
        let resources = Arc::clone(&self.resources);
        let telling = tell(server.to_owned(), changes, resources, self.updates.clone());
        watching.insert(server.to_owned(), tokio::spawn(telling));
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        for (_, task) in self.watching.get_mut().drain() {
            task.abort();
        }
    }
}

/// Passes on which of the followed resources of a server change. What was missed may have been any of them.
async fn tell(
    server: String,
    mut changes: broadcast::Receiver<Arc<str>>,
    resources: Arc<Mutex<Vec<FollowedResource>>>,
    updates: mpsc::Sender<String>,
) {
    loop {
        let changed = match changes.recv().await {
            Ok(changed) => Some(changed),
            Err(RecvError::Lagged(_)) => None,
            Err(RecvError::Closed) => return,
        };
        let is_meant = |one: &Resource| {
            one.server == server && changed.as_ref().is_none_or(|uri| **uri == *one.uri)
        };
        let shown: Vec<_> = {
            let resources = resources.lock();
            let meant = resources.iter().filter(|one| is_meant(&one.resource));
            meant.map(|one| one.resource.shown.clone()).collect()
        };
        for uri in shown {
            if updates.send(uri).await.is_err() {
                return;
            }
        }
    }
}
