//! Connections of hosts that may be asked: calls that wait for answers of people, and roots.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Key, Own};
use crate::connection::ConnectionOwner;
use crate::credentials::Authorizer;
use crate::fleet::server::Server;

/// Call of a process that has no answer yet. If it never has one, the process is not used again: a question that comes late
/// would pass for one of the next call.
pub(super) struct Unanswered<'a> {
    pub(super) server: &'a Server,
    /// `None` once it has an answer, or where a process runs several calls.
    pub(super) own: Option<&'a Arc<Own>>,
}

/// Returns the connection of a principal that was used last, of those that take a call at once, whichever host may be asked on it.
pub(super) fn last_used<'c>(
    connections: &'c HashMap<Key, Arc<Own>>,
    principal: &str,
    authorizer: Option<&Arc<Authorizer>>,
) -> Option<&'c Arc<Own>> {
    let is_its = |own: &&Arc<Own>| {
        own.owner.principal == principal
            && own.authorizer.as_ref().map(Arc::as_ptr) == authorizer.map(Arc::as_ptr)
            && own.turns.running() < own.concurrency
    };
    connections.values().filter(is_its).max_by_key(|own| own.usage.lock().last)
}

impl Own {
    /// Returns whether all calls that it may run wait for answers.
    pub(super) fn is_waiting(&self) -> bool {
        *self.waiting.borrow() >= self.concurrency
    }

    fn tells_of_roots(&self) -> bool {
        self.capabilities.roots.as_ref().is_some_and(|roots| roots.list_changed == Some(true))
    }

    /// Tells the server once of all changes of roots until now.
    async fn tell_of_roots(&self) {
        let _turn = self.telling.lock().await;
        self.has_new_roots.store(false, Ordering::Release);
        // One that is being opened has not asked yet.
        let connection = self.opened.lock().upgrade();
        if let Some(connection) = connection {
            connection.roots_changed().await;
        }
    }

    /// Waits until all calls that it may run wait for answers.
    pub(super) async fn until_waiting(&self) {
        let mut waiting = self.waiting.subscribe();
        // The sender lives as long as this does.
        let _waiting = waiting.wait_for(|waiting| *waiting >= self.concurrency).await;
    }
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        let Some(own) = self.own else { return };
        // Nobody else has it: a process runs one call at a time. Whoever holds the place ends it already.
        if let Ok(held) = Arc::clone(&own.connection).try_lock_owned() {
            self.server.end_held(held);
        }
    }
}

impl Server {
    /// Tells the server on the connections of a host that its roots have changed, if it was told on them that the host tells so.
    pub(in crate::fleet) fn roots_changed(&self, principal: &str, host: &str) {
        let is_concerned = |own: &&Arc<Own>| {
            let ConnectionOwner { principal: its, host: asked } = &*own.owner;
            its == principal && asked.as_deref() == Some(host) && own.tells_of_roots()
        };
        let concerned: Vec<Arc<Own>> =
            self.own.open.lock().values().filter(is_concerned).cloned().collect();
        for own in concerned {
            if own.has_new_roots.swap(true, Ordering::AcqRel) {
                continue;
            }
            self.surroundings.tasks.spawn(async move { own.tell_of_roots().await });
        }
    }
}
