//! Room for connections: how many each principal and each tenant has, and whose give way.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;

use super::{Key, Own, OwnConnections};
use crate::fleet::{Limits, PerUser, Start};
use crate::process::tenant_of;

/// Silence after which a host's own connection is closed.
const KEPT: Duration = Duration::from_secs(5 * 60);

/// Most connections of one principal, and of all, as multiples of [`Limits::own_connections`].
const OF_PRINCIPAL: usize = 2;
const OF_ALL: usize = 8;

/// Most connections at a time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// Without those whose calls all wait for answers.
    running: usize,
    of_principal: usize,
    pub(super) in_all: usize,
    /// Silence after which one is closed.
    pub(super) idle: Duration,
}

/// Numbers of connections of tenants, and of their principals.
#[derive(Default)]
struct Shares<'c> {
    tenants: HashMap<&'c str, usize>,
    principals: HashMap<&'c str, usize>,
}

impl Bounds {
    pub(super) fn of(limits: &Limits) -> Self {
        match limits.start {
            Start::PerUser(PerUser { processes, of_principal, idle, .. }) => {
                Self { running: processes, of_principal, in_all: processes, idle }
            }
            Start::Eager | Start::Lazy => Self {
                running: limits.own_connections,
                of_principal: limits.own_connections * OF_PRINCIPAL,
                in_all: limits.own_connections * OF_ALL,
                idle: KEPT,
            },
        }
    }
}

impl OwnConnections {
    /// Waits for the place of a process, if such are counted.
    pub(super) async fn place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(self.places.as_ref()?).acquire_owned().await.ok()
    }

    /// Makes room for one more of a principal. Returns false if all are in use.
    pub(super) fn make_room(
        &self,
        connections: &mut HashMap<Key, Arc<Own>>,
        principal: &str,
    ) -> bool {
        let bounds = self.bounds;
        let shares = Shares::of(connections);
        let running = connections.values().filter(|own| !own.is_waiting()).count();
        let has_many = shares.of_principal(principal) >= bounds.of_principal;
        if !has_many && running < bounds.running && connections.len() < bounds.in_all {
            return true;
        }
        let idle = connections
            .iter()
            .filter(|(_, own)| own.is_idle() && (!has_many || own.owner.principal == principal));
        let leaving = shares.first(idle).or_else(|| {
            // Without a place of its own, one more would run until the other has ended.
            if has_many || self.places.is_none() {
                return None;
            }
            // What is taken from a tenant leaves it no fewer than the other has then.
            let enough = shares.of_tenant(principal) + 1;
            let larger = || {
                connections
                    .iter()
                    .filter(|(_, own)| shares.of_tenant(&own.owner.principal) > enough)
            };
            // A task gives way last: it is lost, but nobody can hold all places with tasks.
            let without_tasks = shares.first(larger().filter(|(_, own)| !own.runs_tasks()));
            without_tasks.or_else(|| shares.first(larger()))
        });
        let leaving = leaving.and_then(|key| connections.remove(&key));
        if let Some(own) = &leaving {
            own.end_after_calls();
        }
        leaving.is_some()
    }
}

impl<'c> Shares<'c> {
    fn of(connections: &'c HashMap<Key, Arc<Own>>) -> Self {
        let mut shares = Self::default();
        for own in connections.values() {
            let principal = &*own.owner.principal;
            *shares.principals.entry(principal).or_default() += 1;
            *shares.tenants.entry(tenant_of(principal)).or_default() += 1;
        }
        shares
    }

    fn of_principal(&self, principal: &str) -> usize {
        self.principals.get(principal).copied().unwrap_or_default()
    }

    /// Returns the share of a principal's tenant.
    fn of_tenant(&self, principal: &str) -> usize {
        self.tenants.get(tenant_of(principal)).copied().unwrap_or_default()
    }

    /// Returns which of some connections gives way first: of the tenant that has most, and there of the principal who has most, the
    /// one that was used least lately.
    fn first<'a>(&self, some: impl Iterator<Item = (&'a Key, &'a Arc<Own>)>) -> Option<Key> {
        let first = some.min_by_key(|(_, own)| {
            let principal = &*own.owner.principal;
            let shares = (self.of_tenant(principal), self.of_principal(principal));
            (Reverse(shares), own.usage.lock().last)
        });
        first.map(|(key, _)| key.clone())
    }
}
