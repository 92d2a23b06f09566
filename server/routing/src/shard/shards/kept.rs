//! The shards that are in memory: within the budget, the ones used last. No shard goes for another one before it was worth
//! its building: it stays for ten times as long as that took, in up to as much memory again. So tenants who push each other
//! out have a tenth of somebody's time built at most. One shard that alone is larger than the budget is kept beside these.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use tracing::warn;

use super::Built;
use toolgate_core::identity::TenantId;

/// How many times as long as its building took a shard stays at least.
const TIMES_ITS_BUILDING: u32 = 10;

/// The longest that a building counts for: a store that answers late must not fill the memory.
const BUILDING_MAX: Duration = Duration::from_secs(60);

/// Tells the time.
pub type Clock = Arc<dyn Fn() -> Instant + Send + Sync>;

/// Shards in memory.
pub(super) struct Kept {
    budget: u64,
    pub(super) clock: Clock,
    state: RwLock<State>,
}

#[derive(Default)]
struct State {
    /// Those that are no larger than the budget.
    shards: HashMap<TenantId, Entry>,
    /// Bytes of these.
    bytes: u64,
    /// In which order they are looked at when memory is needed, by their numbers. Some are gone.
    order: VecDeque<(TenantId, u64)>,
    /// The number of the next one.
    next: u64,
    /// The one that is larger than the budget.
    oversized: Option<(TenantId, Entry)>,
}

struct Entry {
    number: u64,
    built: Built,
    bytes: u64,
    /// Before, it does not go for another one.
    stays_until: Instant,
    /// Whether it was asked for since it was last looked at.
    is_used: AtomicBool,
}

impl Kept {
    /// Room for shards of `budget` bytes together, and for as much again while they are new.
    pub(super) fn new(budget: u64) -> Self {
        Self { budget, clock: Arc::new(Instant::now), state: RwLock::default() }
    }

    pub(super) fn get(&self, tenant: &TenantId) -> Option<Built> {
        let state = self.read();
        let entry = state.entry(tenant)?;
        if !entry.is_used.load(Ordering::Relaxed) {
            entry.is_used.store(true, Ordering::Relaxed);
        }
        Some(entry.built.clone())
    }

    /// As `get`, without that the shard counts as used.
    pub(super) fn peek(&self, tenant: &TenantId) -> Option<Built> {
        self.read().entry(tenant).map(|entry| entry.built.clone())
    }

    /// Keeps a shard that took so long to build, in place of the tenant's last one. Others go where they must and may;
    /// where there is no room then, it is not kept.
    pub(super) fn insert(&self, tenant: &TenantId, built: Built, took: Duration) {
        let bytes = built.snapshot.memory_bytes() as u64;
        let now = (self.clock)();
        let stays_until = now + took.min(BUILDING_MAX) * TIMES_ITS_BUILDING;
        let mut state = self.write();
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
        self.write().remove(tenant);
    }

    pub(super) fn clear(&self) {
        let mut state = self.write();
        *state = State { next: state.next, ..State::default() };
    }

    /// Every shard, as they are now.
    pub(super) fn all(&self) -> Vec<(TenantId, Built)> {
        let state = self.read();
        let oversized = state.oversized.iter().map(|(tenant, entry)| (tenant, entry));
        let all = state.shards.iter().chain(oversized);
        all.map(|(tenant, entry)| (tenant.clone(), entry.built.clone())).collect()
    }

    /// Bytes that the shards hold, about.
    pub(super) fn bytes(&self) -> u64 {
        let state = self.read();
        state.bytes + state.oversized.as_ref().map_or(0, |(_, entry)| entry.bytes)
    }

    /// The most bytes that a registration may let a shard have: some room is left for newcomers.
    pub(super) fn most(&self) -> u64 {
        self.budget - self.budget.div_ceil(32)
    }

    /// Nothing panics while it holds the lock.
    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
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

    /// Takes the place of the other one that is larger than the budget, unless that has to stay yet.
    fn add_oversized(&mut self, tenant: &TenantId, entry: Entry, now: Instant) -> bool {
        let has_place = self.oversized.as_ref().is_none_or(|(_, kept)| kept.stays_until <= now);
        if has_place {
            self.oversized = Some((tenant.clone(), entry));
        }
        has_place
    }

    /// Lets shards go until those that are left fit, or have to stay: the ones first that were not asked for since they
    /// were last looked at (second chance).
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
