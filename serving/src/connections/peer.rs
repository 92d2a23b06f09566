//! The other end of a connection, as requests know it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant as Moment;

use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::registry::{ConnectionLimits, Network, Registry};
use super::stream::Shown;
use crate::certificate::PeerCertificate;

/// The other end of a connection. Requests carry it in their extensions.
#[derive(Debug, Clone)]
pub struct Peer {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    id: u64,
    closer: CancellationToken,
    network: Option<Network>,
    shown: Shown,
    proven: AtomicBool,
    registry: Weak<Registry>,
    activity: Mutex<Activity>,
}

#[derive(Debug)]
struct Activity {
    /// Requests that were made and whose answers have not ended.
    under_way: usize,
    /// When the last of them ended, or the connection began.
    since: Instant,
    /// When the bytes that were read last could be read.
    readable: Moment,
}

/// A request under way. While there is one, the connection is not idle.
#[derive(Debug)]
pub(crate) struct UnderWay(Peer);

impl Peer {
    pub(super) fn new(id: u64, network: Option<Network>, registry: Weak<Registry>) -> Self {
        let since = Instant::now();
        let activity = Activity { under_way: 0, since, readable: Moment::now() };
        let inner = Inner {
            id,
            closer: CancellationToken::new(),
            network,
            shown: Shown::default(),
            proven: AtomicBool::new(false),
            registry,
            activity: Mutex::new(activity),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Returns the connection's number, which no other one of its listener has.
    #[must_use]
    pub fn connection(&self) -> u64 {
        self.inner.id
    }

    /// Returns where the peer is; `None` for this host.
    #[must_use]
    pub fn network(&self) -> Option<Network> {
        self.inner.network
    }

    /// The certificate that the peer has shown, and which was verified.
    #[must_use]
    pub fn certificate(&self) -> Option<&PeerCertificate> {
        self.inner.shown.get()
    }

    /// Notes that an authenticated call came over the connection, of `tenant` where the credential is a tenant's. To make room
    /// for others, it is closed from then on only when it is idle and the tenant of its first call has most of all connections.
    pub fn prove(&self, tenant: Option<&str>) {
        if !self.inner.proven.swap(true, Ordering::Relaxed)
            && let Some(registry) = self.inner.registry.upgrade()
        {
            registry.prove(self.inner.id, tenant);
        }
    }

    /// Closes the connection at once, with all that is under way on it.
    pub(crate) fn close(&self) {
        self.inner.closer.cancel();
    }

    /// Notes a request, which is under way until what is returned is dropped.
    pub(crate) fn begin_request(&self) -> UnderWay {
        self.activity().under_way += 1;
        UnderWay(self.clone())
    }

    /// Returns when the bytes of the request that was read last could be read.
    pub(crate) fn readable(&self) -> Moment {
        self.activity().readable
    }

    pub(super) fn set_readable(&self, at: Moment) {
        self.activity().readable = at;
    }

    pub(super) fn closed(&self) -> WaitForCancellationFutureOwned {
        self.inner.closer.clone().cancelled_owned()
    }

    pub(super) fn shown(&self) -> Shown {
        Arc::clone(&self.inner.shown)
    }

    /// Returns until when the connection may go on without a request; `None` for ever.
    pub(super) fn idle_until(&self, limits: &ConnectionLimits) -> Option<Instant> {
        let unproven = limits.unproven_idle.filter(|_| !self.inner.proven.load(Ordering::Relaxed));
        let most = unproven.into_iter().chain(limits.idle).min()?;
        let activity = self.activity();
        let since = if activity.under_way > 0 { Instant::now() } else { activity.since };
        Some(since + most)
    }

    /// Returns since when nothing is asked; `None` while a request is under way.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        let activity = self.activity();
        (activity.under_way == 0).then_some(activity.since)
    }

    fn activity(&self) -> MutexGuard<'_, Activity> {
        // Nothing panics while it holds the lock.
        self.inner.activity.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut activity = self.0.activity();
        activity.under_way -= 1;
        activity.since = Instant::now();
    }
}

#[cfg(test)]
impl Peer {
    pub(super) fn is_closed(&self) -> bool {
        self.inner.closer.is_cancelled()
    }
}
