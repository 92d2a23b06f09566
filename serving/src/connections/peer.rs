//! Remote end of a connection, as requests see it.

use std::hash::{BuildHasher as _, Hash as _, Hasher as _, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Weak};
use std::time::Instant as Moment;

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::codegen::http::HeaderMap;
use tonic::codegen::http::header::AUTHORIZATION;

use super::registry::{ConnectionLimits, Network, Registry};
use super::stream::Shown;
use crate::certificate::PeerCertificate;

/// Remote end of a connection. Requests carry it in their extensions.
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
    accepted: Mutex<Option<Accepted>>,
}

/// Tenants that a credential may act for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CredentialScope {
    /// Only this tenant.
    Tenant(Arc<str>),
    /// The tenant that each request names.
    AnyTenant,
}

/// Credential that was accepted on a connection last.
#[derive(Debug)]
struct Accepted {
    /// Keyed hash of the credential. A collision lets a request be refused for another tenant's load, and nothing else.
    credential: u64,
    scope: CredentialScope,
}

/// Returns a hash of the credential in these headers, of use within this process only.
fn credential_of(headers: &HeaderMap) -> u64 {
    static KEYS: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    let mut hasher = KEYS.build_hasher();
    for value in headers.get_all(AUTHORIZATION) {
        value.hash(&mut hasher);
    }
    hasher.finish()
}

#[derive(Debug)]
struct Activity {
    /// Requests whose answers have not ended.
    under_way: usize,
    /// Time when the last of them ended, or when the connection began.
    since: Instant,
    /// Time at which the bytes that were read last became readable.
    readable: Moment,
}

/// Guard of a request in progress. While one exists, the connection is not idle.
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
            accepted: Mutex::new(None),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Returns the number of the connection, unique within its listener.
    #[must_use]
    pub fn connection(&self) -> u64 {
        self.inner.id
    }

    /// Returns the network of the peer; `None` for loopback.
    #[must_use]
    pub fn network(&self) -> Option<Network> {
        self.inner.network
    }

    /// Returns the verified certificate that the peer presented.
    #[must_use]
    pub fn certificate(&self) -> Option<&PeerCertificate> {
        self.inner.shown.get()
    }

    /// Records that an authenticated call came over the connection, of `tenant` if its credential belongs to one. From
    /// then on the connection is closed to make room only if it is idle and the tenant of its first call holds more
    /// than half of all connections.
    pub fn prove(&self, tenant: Option<&str>) {
        if !self.inner.proven.swap(true, Ordering::Relaxed)
            && let Some(registry) = self.inner.registry.upgrade()
        {
            registry.prove(self.inner.id, tenant);
        }
    }

    /// Records that the credential in these headers was accepted: one of `tenant`, or one for any tenant.
    pub fn accept(&self, headers: &HeaderMap, tenant: Option<&str>) {
        let credential = credential_of(headers);
        let mut accepted = self.inner.accepted.lock();
        if accepted.as_ref().is_none_or(|last| last.credential != credential) {
            let of_one = |tenant: &str| CredentialScope::Tenant(tenant.into());
            let scope = tenant.map_or(CredentialScope::AnyTenant, of_one);
            *accepted = Some(Accepted { credential, scope });
        }
    }

    /// Returns the scope of the credential in these headers, if it is the one that was accepted last.
    pub(crate) fn accepted(&self, headers: &HeaderMap) -> Option<CredentialScope> {
        let accepted = self.inner.accepted.lock();
        let last = accepted.as_ref().filter(|last| last.credential == credential_of(headers))?;
        Some(last.scope.clone())
    }

    /// Closes the connection at once, with all calls in progress on it.
    pub(crate) fn close(&self) {
        self.inner.closer.cancel();
    }

    /// Records a request, which is in progress until the returned guard is dropped.
    pub(crate) fn begin_request(&self) -> UnderWay {
        self.activity().under_way += 1;
        UnderWay(self.clone())
    }

    /// Returns the time at which the bytes of the request that was read last became readable.
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

    /// Returns the time until which the connection may stay without a request; `None` for no limit.
    pub(super) fn idle_until(&self, limits: &ConnectionLimits) -> Option<Instant> {
        let unproven = limits.unproven_idle.filter(|_| !self.inner.proven.load(Ordering::Relaxed));
        let most = unproven.into_iter().chain(limits.idle).min()?;
        let activity = self.activity();
        let since = if activity.under_way > 0 { Instant::now() } else { activity.since };
        Some(since + most)
    }

    /// Returns the time since which the connection is idle; `None` while a request is in progress.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        let activity = self.activity();
        (activity.under_way == 0).then_some(activity.since)
    }

    fn activity(&self) -> MutexGuard<'_, Activity> {
        // Nothing panics while it holds the lock.
        self.inner.activity.lock()
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
