//! The shards that are in memory: within the budget, the ones used last; and one that alone is larger than all of it,
//! since to build that one anew at every call would cost everybody's cores.

use std::sync::{Mutex, PoisonError};

use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};
use tracing::warn;

use super::Built;
use crate::identity::TenantId;

/// Tenants that the cache is laid out for; more are fine.
const TENANTS_EXPECTED: usize = 1_000;

/// The part of the budget that one shard may take in the cache. The rest is the cache's own, for newcomers.
const OF_ONE: f64 = 0.97;

/// Shards in memory.
pub(super) struct Kept {
    cache: Cache<TenantId, Built, ByMemory>,
    /// The one that is larger than the budget.
    oversized: Mutex<Option<(TenantId, Built)>>,
}

/// Weighs a shard by its memory.
#[derive(Debug, Clone)]
struct ByMemory;

impl Weighter<TenantId, Built> for ByMemory {
    fn weight(&self, _: &TenantId, built: &Built) -> u64 {
        built.snapshot.memory_bytes() as u64
    }
}

impl Kept {
    /// Room for shards of `budget` bytes together.
    pub(super) fn new(budget: u64) -> Self {
        // In one piece: in parts, a shard that is larger than a part would never be kept.
        let options = OptionsBuilder::new()
            .shards(1)
            .estimated_items_capacity(TENANTS_EXPECTED)
            .weight_capacity(budget)
            .hot_allocation(OF_ONE)
            .build()
            .expect("both capacities are given");
        let (hashes, lifecycle) = (DefaultHashBuilder::default(), DefaultLifecycle::default());
        let cache = Cache::with_options(options, ByMemory, hashes, lifecycle);
        Self { cache, oversized: Mutex::new(None) }
    }

    pub(super) fn get(&self, tenant: &TenantId) -> Option<Built> {
        self.cache.get(tenant).or_else(|| self.oversized(tenant))
    }

    /// As `get`, without that the shard counts as used.
    pub(super) fn peek(&self, tenant: &TenantId) -> Option<Built> {
        self.cache.peek(tenant).or_else(|| self.oversized(tenant))
    }

    /// Keeps a shard in place of the tenant's last one; others go where they must.
    pub(super) fn insert(&self, tenant: TenantId, built: Built) {
        let bytes = built.snapshot.memory_bytes() as u64;
        let budget = self.cache.capacity();
        let mut oversized = self.lock();
        if bytes <= self.most() {
            if oversized.as_ref().is_some_and(|(kept, _)| *kept == tenant) {
                *oversized = None;
            }
            self.cache.insert(tenant, built);
            return;
        }
        warn!(
            tenant = tenant.as_str(),
            bytes,
            budget,
            "the shard is larger than shard.memory_budget: it is kept all the same, one at a time"
        );
        *oversized = Some((tenant, built));
        self.cache.clear();
    }

    pub(super) fn remove(&self, tenant: &TenantId) {
        self.cache.remove(tenant);
        let mut oversized = self.lock();
        if oversized.as_ref().is_some_and(|(kept, _)| kept == tenant) {
            *oversized = None;
        }
    }

    pub(super) fn clear(&self) {
        self.cache.clear();
        *self.lock() = None;
    }

    /// Every shard, as they are now.
    pub(super) fn all(&self) -> Vec<(TenantId, Built)> {
        let oversized = self.lock().clone();
        self.cache.iter().chain(oversized).collect()
    }

    /// Bytes that the shards hold, about.
    pub(super) fn bytes(&self) -> u64 {
        let oversized = self.lock();
        let of_one =
            oversized.as_ref().map_or(0, |(_, built)| built.snapshot.memory_bytes() as u64);
        self.cache.weight() + of_one
    }

    /// The most bytes that a shard may have to be kept beside others.
    pub(super) fn most(&self) -> u64 {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "as the cache computes it; a budget is no larger than 2^50"
        )]
        let most = (self.cache.capacity() as f64 * OF_ONE) as u64;
        most
    }

    fn oversized(&self, tenant: &TenantId) -> Option<Built> {
        let oversized = self.lock();
        oversized.as_ref().filter(|(kept, _)| kept == tenant).map(|(_, built)| built.clone())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<(TenantId, Built)>> {
        self.oversized.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
