//! Who may begin a call. A call is admitted at once or refused at once: nothing waits here, so that a refusal costs
//! microseconds however busy the process is. What is scarce is shared out by tenant.

mod memory;
mod rate;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub use memory::watch_memory;
use rate::{Rate, Spent};

use crate::identity::TenantId;

/// How many times as much as is left free a tenant may hold: dynamic thresholds (Choudhury and Hahne, "Dynamic Queue
/// Length Thresholds for Shared-Memory Packet Switches", IEEE/ACM Transactions on Networking 6(2), 1998). One tenant
/// alone gets 4 parts of 5, ten busy ones 4 of 41 each, and there is always a place for who holds none.
const OF_WHAT_IS_FREE: usize = 4;

/// What is left of the places while memory is short: some, since memory that was freed is not always given back.
const WHILE_SHORT: usize = 16;

/// Tenants that are remembered without looking whether anything is known of them.
const REMEMBERED: usize = 1_024;

/// What calls are held to.
#[derive(Debug, Clone, Copy)]
pub struct AdmissionConfig {
    /// Calls in progress.
    pub max_calls: usize,
    /// Calls in progress of one tenant; `None` for its share alone.
    pub max_calls_per_tenant: Option<usize>,
    /// Calls that one tenant may begin in a second; `None` for any number.
    pub calls_per_second_per_tenant: Option<u32>,
}

/// Why a call may not begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// As many calls are in progress as may be, or the tenant has its share of them.
    Busy,
    /// Memory is short.
    MemoryShort,
    /// The tenant has as many calls in progress as it may have.
    TenantBusy,
    /// The tenant has begun as many calls in a second as it may, and may begin one again after this long.
    TenantTooOften(Duration),
}

/// Counts calls in progress, by tenant.
#[derive(Debug, Clone)]
pub struct Admission {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    state: Mutex<State>,
    short_of_memory: memory::Flag,
}

#[derive(Debug)]
struct State {
    config: AdmissionConfig,
    under_way: usize,
    tenants: HashMap<TenantId, Tenant>,
}

#[derive(Debug, Default)]
struct Tenant {
    under_way: usize,
    spent: Spent,
}

/// A call in progress. Dropping it ends the call.
#[derive(Debug)]
pub struct Permit {
    inner: Arc<Inner>,
    tenant: TenantId,
}

impl Admission {
    /// Nothing is in progress yet.
    #[must_use]
    pub fn new(config: AdmissionConfig) -> Self {
        let state = State { config, under_way: 0, tenants: HashMap::new() };
        let (state, short_of_memory) = (Mutex::new(state), memory::Flag::default());
        Self { inner: Arc::new(Inner { state, short_of_memory }) }
    }

    /// Holds calls to something else from now on; those in progress go on.
    pub fn reconfigure(&self, config: AdmissionConfig) {
        self.inner.state().config = config;
    }

    /// Says whether memory is short.
    #[must_use]
    pub fn memory_flag(&self) -> memory::Flag {
        self.inner.short_of_memory.clone()
    }

    /// Begins a call of the tenant.
    ///
    /// # Errors
    /// Why it may not begin.
    pub fn begin(&self, tenant: &TenantId) -> Result<Permit, Refusal> {
        self.begin_at(tenant, Instant::now())
    }

    fn begin_at(&self, tenant: &TenantId, now: Instant) -> Result<Permit, Refusal> {
        let is_short = self.inner.short_of_memory.is_set();
        self.inner.state().begin(tenant, is_short, now)?;
        Ok(Permit { inner: Arc::clone(&self.inner), tenant: tenant.clone() })
    }
}

impl Inner {
    /// Nothing panics while it holds the lock.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn begin(&mut self, tenant: &TenantId, is_short: bool, now: Instant) -> Result<(), Refusal> {
        let AdmissionConfig { max_calls, max_calls_per_tenant, .. } = self.config;
        if is_short && self.under_way >= (max_calls / WHILE_SHORT).max(1) {
            return Err(Refusal::MemoryShort);
        }
        let free = max_calls.saturating_sub(self.under_way);
        self.forget_idle(now);
        let known = self.tenants.get(tenant).map_or(0, |tenant| tenant.under_way);
        if max_calls_per_tenant.is_some_and(|most| known >= most) {
            return Err(Refusal::TenantBusy);
        }
        if known >= free.saturating_mul(OF_WHAT_IS_FREE) {
            return Err(Refusal::Busy);
        }
        let rate = self.config.calls_per_second_per_tenant.map(Rate::per_second);
        let entry = self.tenants.entry(tenant.clone()).or_default();
        if let Some(rate) = rate {
            entry.spent.spend(&rate, now).map_err(Refusal::TenantTooOften)?;
        }
        entry.under_way += 1;
        self.under_way += 1;
        Ok(())
    }

    fn end(&mut self, tenant: &TenantId) {
        self.under_way -= 1;
        if let Some(known) = self.tenants.get_mut(tenant) {
            known.under_way -= 1;
            if known.under_way == 0 && known.spent.is_nothing() {
                self.tenants.remove(tenant);
            }
        }
    }

    /// Without authentication anybody may name any number of tenants.
    fn forget_idle(&mut self, now: Instant) {
        if self.tenants.len() > REMEMBERED.max(4 * self.under_way) {
            self.tenants.retain(|_, tenant| tenant.under_way > 0 || tenant.spent.counts_at(now));
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.inner.state().end(&self.tenant);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admission(max_calls: usize) -> Admission {
        let (max_calls_per_tenant, calls_per_second_per_tenant) = (None, None);
        Admission::new(AdmissionConfig {
            max_calls,
            max_calls_per_tenant,
            calls_per_second_per_tenant,
        })
    }

    fn tenant(name: &str) -> TenantId {
        TenantId::parse(name).expect("a tenant")
    }

    fn begin_all(admission: &Admission, name: &str) -> Vec<Permit> {
        std::iter::from_fn(|| admission.begin(&tenant(name)).ok()).collect()
    }

    #[test]
    fn one_tenant_gets_most_and_leaves_room_for_others() {
        let admission = admission(100);
        let of_busy = begin_all(&admission, "busy");
        assert_eq!(of_busy.len(), 80);
        let of_others: Vec<_> =
            (0..15).map(|i| admission.begin(&tenant(&format!("t{i}"))).expect("room")).collect();
        assert_eq!(admission.begin(&tenant("busy")).err(), Some(Refusal::Busy));
        drop((of_busy, of_others));
        assert_eq!(begin_all(&admission, "other").len(), 80, "places come back");
    }

    #[test]
    fn busy_tenants_come_to_equal_shares() {
        let admission = admission(99);
        let mut held: Vec<Vec<Permit>> = vec![begin_all(&admission, "t0"), Vec::new(), Vec::new()];
        // One call after another ends, whose it may be, and everybody wants more.
        for step in 0..2_000_usize {
            let ends = step.wrapping_mul(7_919) % held.iter().map(Vec::len).sum::<usize>();
            let of = held.iter().scan(0, |seen, permits| {
                *seen += permits.len();
                Some(*seen)
            });
            let whose = of.take_while(|seen| *seen <= ends).count();
            drop(held[whose].pop());
            for (i, permits) in held.iter_mut().enumerate() {
                permits.extend(admission.begin(&tenant(&format!("t{i}"))).ok());
            }
        }
        let counts: Vec<_> = held.iter().map(Vec::len).collect();
        let (least, most) = (counts.iter().min(), counts.iter().max());
        assert!(most.zip(least).is_some_and(|(most, least)| most - least <= 5), "{counts:?}");
        assert!(counts.iter().sum::<usize>() > 80, "{counts:?}");
    }

    #[test]
    fn a_tenants_own_limits_hold_whatever_is_free() {
        let admission = admission(100);
        let config = |calls, rate| AdmissionConfig {
            max_calls: 100,
            max_calls_per_tenant: calls,
            calls_per_second_per_tenant: rate,
        };
        admission.reconfigure(config(Some(2), None));
        let held = begin_all(&admission, "a");
        assert_eq!(held.len(), 2);
        assert_eq!(admission.begin(&tenant("a")).err(), Some(Refusal::TenantBusy));
        assert!(admission.begin(&tenant("b")).is_ok());
        admission.reconfigure(config(None, Some(10)));
        let start = Instant::now();
        let begun = (0..50).filter(|_| admission.begin_at(&tenant("c"), start).is_ok()).count();
        assert_eq!(begun, 10);
        let refused = admission.begin_at(&tenant("c"), start).err();
        assert_eq!(refused, Some(Refusal::TenantTooOften(Duration::from_millis(100))));
        assert!(admission.begin_at(&tenant("c"), start + Duration::from_millis(100)).is_ok());
        assert!(admission.begin_at(&tenant("d"), start).is_ok());
    }

    #[test]
    fn while_memory_is_short_a_few_calls_go_on() {
        let admission = admission(64);
        admission.memory_flag().set(true);
        let held = begin_all(&admission, "a");
        assert_eq!(held.len(), 4);
        assert_eq!(admission.begin(&tenant("b")).err(), Some(Refusal::MemoryShort));
        admission.memory_flag().set(false);
        assert!(admission.begin(&tenant("b")).is_ok());
    }

    #[test]
    fn tenants_who_are_gone_are_forgotten() {
        let admission = admission(8);
        for i in 0..20_000 {
            drop(admission.begin(&tenant(&format!("t{i}"))));
        }
        assert_eq!(admission.inner.state().tenants.len(), 0);
        let start = Instant::now();
        admission.reconfigure(AdmissionConfig {
            max_calls: 8,
            max_calls_per_tenant: None,
            calls_per_second_per_tenant: Some(1_000),
        });
        for i in 0..20_000 {
            let now = start + Duration::from_millis(i);
            drop(admission.begin_at(&tenant(&format!("t{i}")), now));
        }
        assert!(admission.inner.state().tenants.len() <= REMEMBERED + 1);
    }
}
