//! Shards in memory: the most recently used ones within the budget. A new shard is not evicted before it has stayed ten
//! times as long as its build took. For this, the shards may take up to twice the budget. So even if tenants evict each
//! other, at most a tenth of the time is spent on builds. One shard that alone exceeds the budget is kept in addition.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::RwLock;
use tracing::warn;

use super::Built;
use toolgate_core::identity::TenantId;

/// Minimum stay of a shard, as a multiple of the time that its build took.
const TIMES_ITS_BUILDING: u32 = 10;

/// Maximum time that a build counts for, so that a slow store does not fill the memory.
const BUILDING_MAX: Duration = Duration::from_secs(60);

/// Source of the current time.
pub type Clock = Arc<dyn Fn() -> Instant + Send + Sync>;

/// Cache of shards.
pub(super) struct Kept {
    budget: u64,
    pub(super) clock: Clock,
    state: RwLock<State>,
}

#[derive(Default)]
struct State {
    /// Shards that are no larger than the budget.
    shards: HashMap<TenantId, Entry>,
    /// Total bytes of `shards`.
    bytes: u64,
    /// Order in which shards are considered for eviction, by tenant and number. Some entries are outdated.
    order: VecDeque<(TenantId, u64)>,
    /// Number of the next entry.
    next: u64,
    /// Shard that is larger than the budget.
    oversized: Option<(TenantId, Entry)>,
}

struct Entry {
    number: u64,
    built: Built,
    bytes: u64,
    /// Instant before which it is not evicted.
    stays_until: Instant,
    /// True if it was used since it was last considered for eviction.
    is_used: AtomicBool,
}

impl Kept {
    /// Creates a cache for shards of `budget` bytes in total, plus as much again while they are new.
    pub(super) fn new(budget: u64) -> Self {
        Self { budget, clock: Arc::new(Instant::now), state: RwLock::default() }
    }

    pub(super) fn get(&self, tenant: &TenantId) -> Option<Built> {
        let state = self.state.read();
        let entry = state.entry(tenant)?;
        if !entry.is_used.load(Ordering::Relaxed) {
            entry.is_used.store(true, Ordering::Relaxed);
        }
        Some(entry.built.clone())
    }

    /// Returns the tenant's shard without marking it as used.
    pub(super) fn peek(&self, tenant: &TenantId) -> Option<Built> {
        self.state.read().entry(tenant).map(|entry| entry.built.clone())
    }

    /// Stores a shard in place of the tenant's previous one. `took` is the time of its build. Other shards are evicted
    /// as needed and allowed. If there is still no room, the shard is not kept.
    pub(super) fn insert(&self, tenant: &TenantId, built: Built, took: Duration) {
        let bytes = built.snapshot.memory_bytes() as u64;
        let now = (self.clock)();
        let stays_until = now + took.min(BUILDING_MAX) * TIMES_ITS_BUILDING;
        let mut state = self.state.write();
        state.remove(tenant);
        let number = state.next;
        state.next += 1;
        let entry = Entry { number, built, bytes, stays_until, is_used: AtomicBool::new(false) };
        let is_kept = match bytes > self.budget {
            true => state.add_oversized(tenant, entry, now),
            false => {
                state.add(tenant, entry);
                state.make_room(tenant, self.budget, now);
                let has_room = state.bytes <= self.budget.saturating_mul(2);
                if !has_room {
                    state.remove(tenant);
                }
                has_room
            }
        };
        drop(state);
        let tenant = tenant.as_str();
        let budget = self.budget;
        if !is_kept {
            warn!(
                tenant,
                bytes, budget, "shard.memory_budget has no room for the shard: it is built again"
            );
        } else if bytes > budget {
            warn!(
                tenant,
                bytes,
                budget,
                "the shard is larger than shard.memory_budget: it is kept all the same, one at a time"
            );
        }
    }

    pub(super) fn remove(&self, tenant: &TenantId) {
        self.state.write().remove(tenant);
    }

    pub(super) fn clear(&self) {
        let mut state = self.state.write();
        *state = State { next: state.next, ..State::default() };
    }

    /// Returns all shards at this moment.
    pub(super) fn all(&self) -> Vec<(TenantId, Built)> {
        let state = self.state.read();
        let oversized = state.oversized.iter().map(|(tenant, entry)| (tenant, entry));
        let all = state.shards.iter().chain(oversized);
        all.map(|(tenant, entry)| (tenant.clone(), entry.built.clone())).collect()
    }

    /// Returns the approximate bytes of all shards.
    pub(super) fn bytes(&self) -> u64 {
        let state = self.state.read();
        state.bytes + state.oversized.as_ref().map_or(0, |(_, entry)| entry.bytes)
    }

    /// Returns the maximum bytes to which a registration may grow a shard. It leaves some room for new tenants.
    pub(super) fn most(&self) -> u64 {
        self.budget - self.budget.div_ceil(32)
    }
}

impl State {
    fn entry(&self, tenant: &TenantId) -> Option<&Entry> {
        let oversized = || self.oversized.as_ref().filter(|(kept, _)| kept == tenant);
        self.shards.get(tenant).or_else(|| oversized().map(|(_, entry)| entry))
    }

    fn add(&mut self, tenant: &TenantId, entry: Entry) {
        if self.order.len() > 2 * self.shards.len() + 64 {
            let shards = &self.shards;
            self.order.retain(|(tenant, number)| {
                shards.get(tenant).is_some_and(|entry| entry.number == *number)
            });
        }
        self.bytes += entry.bytes;
        self.order.push_back((tenant.clone(), entry.number));
        self.shards.insert(tenant.clone(), entry);
    }

    /// Replaces the shard that exceeds the budget, unless its minimum stay is not over. Returns true if it was
    /// replaced.
    fn add_oversized(&mut self, tenant: &TenantId, entry: Entry, now: Instant) -> bool {
        let has_place = self.oversized.as_ref().is_none_or(|(_, kept)| kept.stays_until <= now);
        if has_place {
            self.oversized = Some((tenant.clone(), entry));
        }
        has_place
    }

    /// Evicts shards until the rest fits in the budget or must stay. Shards not used since they were last considered go
    /// first (second chance).
    fn make_room(&mut self, spared: &TenantId, budget: u64, now: Instant) {
        let mut looks = 2 * self.order.len();
        while self.bytes > budget && looks > 0 {
            looks -= 1;
            let Some((tenant, number)) = self.order.pop_front() else { return };
            let Some(entry) = self.shards.get(&tenant) else { continue };
            if entry.number != number {
                continue;
            }
            let has_to_stay = tenant == *spared || entry.stays_until > now;
            if has_to_stay || entry.is_used.swap(false, Ordering::Relaxed) {
                self.order.push_back((tenant, number));
            } else {
                self.remove(&tenant);
            }
        }
    }

    fn remove(&mut self, tenant: &TenantId) {
        if let Some(entry) = self.shards.remove(tenant) {
            self.bytes -= entry.bytes;
        }
        if self.oversized.as_ref().is_some_and(|(kept, _)| kept == tenant) {
            self.oversized = None;
        }
    }
}
