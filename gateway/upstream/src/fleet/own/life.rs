//! Life of a connection of a host's own: it is opened by the first call, and ends after silence, or with its server.

use std::sync::Arc;

use tokio::sync::OwnedMutexGuard;
use tokio::time::Instant;

use super::{Key, Own};
use crate::connection::{Connection, ConnectionOwner};
use crate::error::UpstreamError;
use crate::fleet::RequestError;
use crate::fleet::server::{RETRY_AFTER, Server};
use crate::fleet::spawning::start_in;
use crate::target::Upstream;

/// Place of a host's connection, held while one is opened or ended.
type Held = OwnedMutexGuard<Option<Arc<Connection>>>;

impl Server {
    /// Ends a process that said nothing for the whole time of a call, as nobody asks it whether it is there. No other starts in its
    /// place before it has ended. `since` is when the call was sent.
    pub(super) fn end_silent(&self, own: &Arc<Own>, silent: &Arc<Connection>, since: Instant) {
        let is_process = matches!(self.entry.upstream, Upstream::Process(_));
        let had_its_time = since.elapsed() >= self.entry.limits.call_timeout;
        if !is_process || !had_its_time || silent.heard() >= since {
            return;
        }
        // Whoever holds it opens another, or has just found this one and ends it when it is silent again.
        let Ok(held) = Arc::clone(&own.connection).try_lock_owned() else { return };
        if held.as_ref().is_some_and(|open| Arc::ptr_eq(open, silent)) {
            self.end_held(held);
        }
    }

    /// Ends a connection. No other is opened in its place before its process has ended.
    pub(super) fn end_held(&self, mut held: Held) {
        let Some(ending) = held.take() else { return };
        let is_process = matches!(self.entry.upstream, Upstream::Process(_));
        // What is not waited for ends when it is dropped. Outside of the runtime nothing can be.
        if !is_process || tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        let time = self.surroundings.tuning.leave * 4;
        self.surroundings.tasks.spawn(async move {
            ending.shut_down(time).await;
            drop(held);
        });
    }

    /// Returns the open connection of a host, or else its place, once the process of the one before has ended.
    async fn open_or_held(&self, own: &Own) -> Result<Arc<Connection>, Held> {
        loop {
            let held = Arc::clone(&own.connection).lock_owned().await;
            match &*held {
                None => return Err(held),
                Some(open) if !open.has_ended() => return Ok(Arc::clone(open)),
                // What has closed its output may still run.
                Some(_) => self.end_held(held),
            }
        }
    }

    /// Returns the open connection of a host, which it opens if need be.
    pub(super) async fn own_connection(
        &self,
        own: &Own,
        deadline: Instant,
    ) -> Result<Arc<Connection>, RequestError> {
        let opening = async {
            let mut held = match self.open_or_held(own).await {
                Ok(open) => return Ok(open),
                Err(held) => held,
            };
            let opened = Arc::new(self.open_own(own).await?);
            *own.opened.lock() = Arc::downgrade(&opened);
            *held = Some(Arc::clone(&opened));
            Ok(opened)
        };
        let failed = |problem: &str| Err(self.unavailable(problem, false));
        tokio::select! {
            biased;
            () = own.ended.cancelled() => failed("it was ended"),
            () = self.stopped() => failed("it was ended"),
            opened = Box::pin(opening) => opened,
            () = tokio::time::sleep_until(deadline) => failed("it did not start in time"),
        }
    }

    /// Opens a connection of a host.
    async fn open_own(&self, own: &Own) -> Result<Connection, RequestError> {
        if own.place.lock().is_none() {
            let longest = self.entry.limits.call_timeout;
            let place = tokio::time::timeout(longest, self.own.place()).await;
            let place = place.map_err(|_late| RequestError::Busy { retry_after: RETRY_AFTER })?;
            *own.place.lock() = place;
        }
        let turn = self.spawn_turn().await;
        let owner = Some(Arc::clone(&own.owner));
        let opened = self.connect(own.capabilities.clone(), own.authorizer.clone(), owner);
        let opened = start_in(turn, self.surroundings.tuning.spawn, opened).await;
        opened.map_err(|error| match &own.authorizer {
            Some(_) => self.refusal_to_connect(&error),
            None => {
                if matches!(error, UpstreamError::Home { .. }) {
                    let ConnectionOwner { principal, .. } = &*own.owner;
                    let server = &self.entry.name;
                    tracing::warn!(server, principal, %error, "a caller's process can't start");
                }
                self.unavailable(&error.told(), false)
            }
        })
    }

    /// Keeps a host's connection until it is silent for long, or the server ends.
    pub(super) async fn keep_own(&self, key: Key, own: Arc<Own>) {
        loop {
            let until = own.usage.lock().last + self.own.bounds.idle;
            tokio::select! {
                biased;
                () = self.stopped() => break,
                () = own.ended.cancelled() => break,
                () = self.left(&own.turns, || own.tasks_until()) => break,
                () = tokio::time::sleep_until(until) => {}
            }
            if self.forget_silent(&key, &own, until) {
                break;
            }
        }
        self.forget(&key, &own);
        let connection = own.connection.lock().await.take();
        if let Some(connection) = connection {
            connection.shut_down(self.surroundings.tuning.leave * 4).await;
        }
        own.place.lock().take();
    }

    /// Forgets a host's connection that neither a call nor a task has used since; returns whether it did.
    fn forget_silent(&self, key: &Key, own: &Arc<Own>, until: Instant) -> bool {
        let mut connections = self.own.open.lock();
        let is_idle = own.is_idle();
        let mut usage = own.usage.lock();
        let is_silent = is_idle && usage.last + self.own.bounds.idle <= until;
        if is_silent && connections.get(key).is_some_and(|kept| Arc::ptr_eq(kept, own)) {
            connections.remove(key);
        }
        if !is_idle {
            usage.last = usage.last.max(until);
        }
        is_silent
    }

    fn forget(&self, key: &Key, own: &Arc<Own>) {
        let mut connections = self.own.open.lock();
        if connections.get(key).is_some_and(|kept| Arc::ptr_eq(kept, own)) {
            connections.remove(key);
        }
        own.ended.cancel();
    }
}
