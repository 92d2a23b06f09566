//! Admission of calls. A call is admitted or refused at once. Nothing waits here, so a refusal costs microseconds
//! however busy the process is. Two scarce resources are shared among tenants: places for calls of all kinds, and the
//! smaller number of places for interactive calls that keeps their answers fast (`limit`).

mod demand;
mod limit;
mod memory;
mod metrics;
mod queueing;
mod rate;

use std::collections::HashMap;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use demand::Demand;
pub use limit::Measured;
use limit::{Bounds, Limit};
pub use memory::watch_memory;
pub use metrics::AdmissionMetrics;
use parking_lot::Mutex;
use queueing::Queueing;
use rate::{Rate, Spent};

use toolgate_config::AdmissionConfig;
use toolgate_core::identity::TenantId;

/// Multiple of the free places that one tenant may hold. These are dynamic thresholds (Choudhury and Hahne, "Dynamic
/// Queue Length Thresholds for Shared-Memory Packet Switches", IEEE/ACM Transactions on Networking 6(2), 1998). One
/// tenant alone gets 4 parts of 5, ten busy tenants get 4 of 41 each, and a tenant that holds no place always finds
/// one.
const OF_WHAT_IS_FREE: usize = 4;

/// Divisor of the number of places while memory is short. Some calls continue, because freed memory is not always
/// returned to the system.
const WHILE_SHORT: usize = 16;

/// Number of interactive calls that keep a core busy: one that runs and some that are about to. A lower limit would gain
/// nothing.
const OF_A_CORE: usize = 4;
const LEAST: usize = 8;

/// Multiple of the limit on interactive calls up to which tenants find places if they have less than an equal share, or
/// ask for little.
const FOR_MODEST: usize = 2;

/// Number of tenants up to which idle ones are remembered.
const REMEMBERED: usize = 1_024;

/// Kind of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Interactive call whose duration shows how busy the process is. Its caller waits for the answer.
    Measured(Measured),
    /// Interactive call that is not measured. Its caller waits for the answer.
    Interactive,
    /// Call of any duration, such as a registration.
    Background,
}

/// Request to begin a call.
#[derive(Debug, Clone, Copy)]
pub struct AdmissionRequest {
    /// Kind of the call.
    pub kind: Kind,
    /// Time until the caller's deadline.
    pub left: Duration,
    /// Time that the call waited before the server began to handle it.
    pub waited: Duration,
}

/// Reason that a call may not begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The maximum number of calls is in progress, or the tenant has its share of them.
    Busy,
    /// The maximum number of interactive calls that are answered without a long wait is in progress, or the tenant has its
    /// share of them.
    Slow,
    /// The call would miss its deadline even if it ran alone, and other calls need the time.
    NoTime,
    /// Memory is short.
    MemoryShort,
    /// The tenant has its maximum number of calls in progress.
    TenantBusy,
    /// The tenant has begun its maximum number of calls per second. It may begin the next one after this time.
    TenantTooOften(Duration),
}

/// Counter of the calls in progress, by tenant.
#[derive(Debug, Clone)]
pub struct Admission {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    state: Mutex<State>,
    short_of_memory: memory::Flag,
    queueing: Mutex<Queueing>,
}

#[derive(Debug)]
struct State {
    config: AdmissionConfig,
    under_way: usize,
    /// Number of interactive calls in progress, and the number of tenants that have one.
    interactive: usize,
    interactive_tenants: usize,
    limit: Limit,
    demand: Demand<TenantId>,
    tenants: HashMap<TenantId, Tenant>,
}

#[derive(Debug, Default)]
struct Tenant {
    under_way: usize,
    interactive: usize,
    spent: Spent,
}

/// Call in progress. Dropping the permit ends the call.
#[derive(Debug)]
pub struct Permit {
    inner: Arc<Inner>,
    tenant: TenantId,
    begun: Begun,
    answered: bool,
}

/// Data about the beginning of a call.
#[derive(Debug, Clone, Copy)]
struct Begun {
    kind: Kind,
    at: Instant,
    /// True if few other calls were in progress.
    calm: bool,
}

/// State of admission, for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// Number of calls in progress.
    pub under_way: usize,
    /// Number of interactive calls in progress.
    pub interactive: usize,
    /// Maximum number of interactive calls in progress.
    pub limit: usize,
}

impl Admission {
    /// Creates the admission of a process without calls in progress.
    #[must_use]
    pub fn new(config: AdmissionConfig) -> Self {
        let now = Instant::now();
        let state = State {
            config,
            under_way: 0,
            interactive: 0,
            interactive_tenants: 0,
            limit: Limit::new(bounds(&config), now),
            demand: Demand::new(now),
            tenants: HashMap::new(),
        };
        let queueing = Mutex::new(Queueing::new(config.max_wait));
        let state = Mutex::new(state);
        let short_of_memory = memory::Flag::default();
        Self { inner: Arc::new(Inner { state, short_of_memory, queueing }) }
    }

    /// Replaces the configuration. Calls in progress continue.
    pub fn reconfigure(&self, config: AdmissionConfig) {
        let mut state = self.inner.state.lock();
        state.config = config;
        state.limit.rebound(bounds(&config));
        drop(state);
        self.inner.queueing.lock().reconfigure(config.max_wait);
    }

    /// Returns true if an interactive call of the connection may still begin after it waited this long before it was
    /// handled. The limit on interactive calls does not see such waiting calls, because they are not in progress yet.
    #[must_use]
    pub fn is_in_time(&self, connection: Option<u64>, waited: Duration) -> bool {
        self.inner.queueing.lock().is_in_time(connection, waited, Instant::now())
    }

    /// Returns true if an interactive call of the connection may wait behind other calls of the connection, the first of
    /// which has waited for `queue`.
    #[must_use]
    pub fn may_queue(&self, connection: Option<u64>, queue: Duration) -> bool {
        self.inner.queueing.lock().may_queue(connection, queue, Instant::now())
    }

    /// Returns true if an interactive call of the tenant would be refused now for want of a place. The call then counts
    /// as asked for and refused. A call that is let in is counted when it begins.
    #[must_use]
    pub fn turns_away(&self, tenant: &TenantId) -> bool {
        self.inner.state.lock().turns_away(tenant, Instant::now())
    }

    /// Returns the flag that is set while memory is short.
    #[must_use]
    pub fn memory_flag(&self) -> memory::Flag {
        self.inner.short_of_memory.clone()
    }

    /// Returns the current counts and the limit.
    #[must_use]
    pub fn reading(&self) -> Reading {
        let state = self.inner.state.lock();
        Reading {
            under_way: state.under_way,
            interactive: state.interactive,
            limit: state.limit.now(),
        }
    }

    /// Begins a call of the tenant.
    ///
    /// # Errors
    /// The reason that the call may not begin.
    pub fn begin(&self, tenant: &TenantId, wish: AdmissionRequest) -> Result<Permit, Refusal> {
        self.begin_at(tenant, wish, Instant::now())
    }

    fn begin_at(
        &self,
        tenant: &TenantId,
        wish: AdmissionRequest,
        now: Instant,
    ) -> Result<Permit, Refusal> {
        let is_short = self.inner.short_of_memory.is_set();
        let begun = self.inner.state.lock().begin(tenant, wish, is_short, now)?;
        let inner = Arc::clone(&self.inner);
        let tenant = tenant.clone();
        Ok(Permit { inner, tenant, begun, answered: false })
    }
}

/// Returns the bounds of the limit on interactive calls.
fn bounds(config: &AdmissionConfig) -> Bounds {
    let cores = available_parallelism().map_or(1, usize::from);
    let calm = cores.min(config.max_calls);
    let least = LEAST.max(cores.saturating_mul(OF_A_CORE)).min(config.max_calls);
    let most = config.max_calls;
    let wait = config.max_wait.unwrap_or_default();
    // Without a bound on waiting, nothing moves the limit.
    let least = if config.max_wait.is_some() { least } else { most };
    Bounds { least, calm, most, wait }
}

impl Permit {
    /// Ends a call that was answered successfully.
    pub fn answered(mut self) {
        self.answered = true;
    }
}

impl Inner {}

impl State {
    fn begin(
        &mut self,
        tenant: &TenantId,
        wish: AdmissionRequest,
        is_short: bool,
        now: Instant,
    ) -> Result<Begun, Refusal> {
        let is_interactive = wish.kind != Kind::Background;
        if is_interactive {
            self.limit.observe_demand(self.interactive, now);
            self.demand.count(tenant, now);
        }
        self.forget_idle(now);
        self.find_place(tenant, is_short)?;
        if is_interactive {
            self.find_turn(tenant, wish, now)?;
        }
        let rate = self.config.calls_per_second_per_tenant.map(Rate::per_second);
        let entry = self.tenants.entry(tenant.clone()).or_default();
        if let Some(rate) = rate {
            entry.spent.spend(&rate, now).map_err(Refusal::TenantTooOften)?;
        }
        let at = now.checked_sub(wish.waited).unwrap_or(now);
        let begun = Begun { kind: wish.kind, at, calm: self.limit.is_calm(self.interactive) };
        entry.under_way += 1;
        self.interactive_tenants += usize::from(is_interactive && entry.interactive == 0);
        entry.interactive += usize::from(is_interactive);
        self.under_way += 1;
        self.interactive += usize::from(is_interactive);
        Ok(begun)
    }

    fn turns_away(&mut self, tenant: &TenantId, now: Instant) -> bool {
        let is_refused = !self.has_room(tenant, now);
        if is_refused {
            self.limit.observe_demand(self.interactive, now);
            self.demand.count(tenant, now);
            self.limit.refused();
        }
        is_refused
    }

    /// Checks that there is a place for one more call of any kind.
    fn find_place(&self, tenant: &TenantId, is_short: bool) -> Result<(), Refusal> {
        let AdmissionConfig { max_calls, max_calls_per_tenant, .. } = self.config;
        if is_short && self.under_way >= (max_calls / WHILE_SHORT).max(1) {
            return Err(Refusal::MemoryShort);
        }
        let known = self.tenants.get(tenant).map_or(0, |tenant| tenant.under_way);
        if max_calls_per_tenant.is_some_and(|most| known >= most) {
            return Err(Refusal::TenantBusy);
        }
        let free = max_calls.saturating_sub(self.under_way);
        if known >= free.saturating_mul(OF_WHAT_IS_FREE) { Err(Refusal::Busy) } else { Ok(()) }
    }

    /// Checks that one more interactive call would be answered without delay.
    fn find_turn(
        &mut self,
        tenant: &TenantId,
        wish: AdmissionRequest,
        now: Instant,
    ) -> Result<(), Refusal> {
        if !self.has_room(tenant, now) {
            self.limit.refused();
            return Err(Refusal::Slow);
        }
        // While few calls are in progress, a call that is tried in vain takes no place from others. Only such calls
        // can correct a best duration that was measured on a cold process.
        if let Kind::Measured(kind) = wish.kind
            && !self.limit.is_calm(self.interactive)
            && self.limit.best(kind).is_some_and(|best| best > wish.left)
        {
            return Err(Refusal::NoTime);
        }
        Ok(())
    }

    /// Returns true if the limit on interactive calls has room for one more of the tenant.
    fn has_room(&mut self, tenant: &TenantId, now: Instant) -> bool {
        let limit = self.limit.now();
        let known = self.tenants.get(tenant).map_or(0, |tenant| tenant.interactive);
        let free = limit.saturating_sub(self.interactive);
        if known < free.saturating_mul(OF_WHAT_IS_FREE) {
            return true;
        }
        // The limit may be so low that the calls of others leave nothing free. Tenants that ask for little do not
        // make it low, so they are not held down while the best durations are measured again.
        let asks_for_little = self.demand.is_little(tenant, now);
        let has_less = known == 0 || known.saturating_mul(self.interactive_tenants) < limit;
        let most = if asks_for_little { self.limit.settled() } else { limit };
        (has_less || asks_for_little) && self.interactive < most.saturating_mul(FOR_MODEST)
    }

    fn end(&mut self, tenant: &TenantId, begun: Begun, answered: bool, now: Instant) {
        let is_interactive = begun.kind != Kind::Background;
        self.under_way -= 1;
        self.interactive -= usize::from(is_interactive);
        if let Kind::Measured(kind) = begun.kind {
            let took = now.saturating_duration_since(begun.at);
            match answered {
                true => self.limit.answered(kind, took, begun.calm, now),
                false => self.limit.given_up(kind, took),
            }
        }
        if let Some(known) = self.tenants.get_mut(tenant) {
            known.under_way -= 1;
            known.interactive -= usize::from(is_interactive);
            self.interactive_tenants -= usize::from(is_interactive && known.interactive == 0);
            if known.under_way == 0 && known.spent.is_nothing() {
                self.tenants.remove(tenant);
            }
        }
    }

    /// Drops idle tenants, because without authentication a caller may name any number of tenants.
    fn forget_idle(&mut self, now: Instant) {
        if self.tenants.len() > REMEMBERED.max(4 * self.under_way) {
            self.tenants.retain(|_, tenant| tenant.under_way > 0 || tenant.spent.counts_at(now));
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.inner.state.lock().end(&self.tenant, self.begun, self.answered, Instant::now());
    }
}

#[cfg(test)]
mod tests;
