//! Who may begin a call. A call is admitted at once or refused at once: nothing waits here, so that a refusal costs
//! microseconds however busy the process is. What is scarce is shared out by tenant: places for calls of all kinds, and
//! for those that are answered promptly the fewer places that keep them so (`limit`).

mod demand;
mod limit;
mod memory;
mod metrics;
mod queueing;
mod rate;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use demand::Demand;
pub use limit::Measured;
use limit::{Bounds, Limit};
pub use memory::watch_memory;
pub use metrics::AdmissionMetrics;
use queueing::Queueing;
use rate::{Rate, Spent};

use toolgate_config::AdmissionConfig;
use toolgate_core::identity::TenantId;

/// How many times as much as is left free a tenant may hold: dynamic thresholds (Choudhury and Hahne, "Dynamic Queue
/// Length Thresholds for Shared-Memory Packet Switches", IEEE/ACM Transactions on Networking 6(2), 1998). One tenant
/// alone gets 4 parts of 5, ten busy ones 4 of 41 each, and there is always a place for who holds none.
const OF_WHAT_IS_FREE: usize = 4;

/// What is left of the places while memory is short: some, since memory that was freed is not always given back.
const WHILE_SHORT: usize = 16;

/// Prompt calls that keep a core busy: one that runs and some that are about to. Below, nothing would be gained.
const OF_A_CORE: usize = 4;
const LEAST: usize = 8;

/// Multiple of the limit on prompt calls up to which tenants find places that have less than an equal share, or ask for little.
const FOR_MODEST: usize = 2;

/// Tenants that are remembered without looking whether anything is known of them.
const REMEMBERED: usize = 1_024;

/// What a call is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Its caller waits for it, and how long it takes tells how busy the process is.
    Measured(Measured),
    /// Its caller waits for it.
    Prompt,
    /// It takes as long as it takes, such as a registration.
    Lasting,
}

/// A call that wants to begin.
#[derive(Debug, Clone, Copy)]
pub struct Wish {
    /// What it is like.
    pub kind: Kind,
    /// The time that its caller leaves it.
    pub left: Duration,
    /// Time that it has waited until anything was done for it.
    pub waited: Duration,
}

/// Why a call may not begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// As many calls are in progress as may be, or the tenant has its share of them.
    Busy,
    /// As many prompt calls are in progress as are answered without a long wait, or the tenant has its share of them.
    Slow,
    /// Its caller would have gone before it is answered, even if it were the only one, and others want the time.
    NoTime,
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
    queueing: Mutex<Queueing>,
}

#[derive(Debug)]
struct State {
    config: AdmissionConfig,
    under_way: usize,
    /// Those of them that are prompt, and the tenants whose they are.
    prompt: usize,
    prompt_tenants: usize,
    limit: Limit,
    demand: Demand<TenantId>,
    tenants: HashMap<TenantId, Tenant>,
}

#[derive(Debug, Default)]
struct Tenant {
    under_way: usize,
    prompt: usize,
    spent: Spent,
}

/// A call in progress. Dropping it ends the call.
#[derive(Debug)]
pub struct Permit {
    inner: Arc<Inner>,
    tenant: TenantId,
    begun: Begun,
    answered: bool,
}

/// What is remembered of a call's beginning.
#[derive(Debug, Clone, Copy)]
struct Begun {
    kind: Kind,
    at: Instant,
    /// Whether little was going on.
    calm: bool,
}

/// What there is to see of admission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// Calls in progress.
    pub under_way: usize,
    /// Those of them that are prompt.
    pub prompt: usize,
    /// How many of these there may be.
    pub limit: usize,
}

impl Admission {
    /// Nothing is in progress yet.
    #[must_use]
    pub fn new(config: AdmissionConfig) -> Self {
        let now = Instant::now();
        let state = State {
            config,
            under_way: 0,
            prompt: 0,
            prompt_tenants: 0,
            limit: Limit::new(bounds(&config), now),
            demand: Demand::new(now),
            tenants: HashMap::new(),
        };
        let queueing = Mutex::new(Queueing::new(config.max_wait));
        let state = Mutex::new(state);
        let short_of_memory = memory::Flag::default();
        Self { inner: Arc::new(Inner { state, short_of_memory, queueing }) }
    }

    /// Holds calls to something else from now on; those in progress go on.
    pub fn reconfigure(&self, config: AdmissionConfig) {
        let mut state = self.inner.state();
        state.config = config;
        state.limit.rebound(bounds(&config));
        drop(state);
        self.inner.queueing().reconfigure(config.max_wait);
    }

    /// Returns whether a prompt call of the connection that has waited this long until anything was done for it may still
    /// begin. No call of those that wait before is in progress, so that the limit on these does not see them.
    #[must_use]
    pub fn is_in_time(&self, connection: Option<u64>, waited: Duration) -> bool {
        self.inner.queueing().is_in_time(connection, waited, Instant::now())
    }

    /// Returns whether a prompt call of the connection may wait for its turn behind others of the connection, of which the
    /// first has waited this long.
    #[must_use]
    pub fn may_queue(&self, connection: Option<u64>, queue: Duration) -> bool {
        self.inner.queueing().may_queue(connection, queue, Instant::now())
    }

    /// Says whether memory is short.
    #[must_use]
    pub fn memory_flag(&self) -> memory::Flag {
        self.inner.short_of_memory.clone()
    }

    /// How things stand.
    #[must_use]
    pub fn reading(&self) -> Reading {
        let state = self.inner.state();
        Reading { under_way: state.under_way, prompt: state.prompt, limit: state.limit.now() }
    }

    /// Begins a call of the tenant.
    ///
    /// # Errors
    /// Why it may not begin.
    pub fn begin(&self, tenant: &TenantId, wish: Wish) -> Result<Permit, Refusal> {
        self.begin_at(tenant, wish, Instant::now())
    }

    fn begin_at(&self, tenant: &TenantId, wish: Wish, now: Instant) -> Result<Permit, Refusal> {
        let is_short = self.inner.short_of_memory.is_set();
        let begun = self.inner.state().begin(tenant, wish, is_short, now)?;
        let inner = Arc::clone(&self.inner);
        let tenant = tenant.clone();
        Ok(Permit { inner, tenant, begun, answered: false })
    }
}

/// Returns between which limits prompt calls are held.
fn bounds(config: &AdmissionConfig) -> Bounds {
    let cores = available_parallelism().map_or(1, usize::from);
    let calm = cores.min(config.max_calls);
    let least = LEAST.max(cores.saturating_mul(OF_A_CORE)).min(config.max_calls);
    let most = config.max_calls;
    let wait = config.max_wait.unwrap_or_default();
    // Without a bound on waiting there is nothing to move it.
    let least = if config.max_wait.is_some() { least } else { most };
    Bounds { least, calm, most, wait }
}

impl Permit {
    /// Ends the call, which was answered as its caller wanted.
    pub fn answered(mut self) {
        self.answered = true;
    }
}

impl Inner {
    /// Nothing panics while it holds the lock.
    fn queueing(&self) -> MutexGuard<'_, Queueing> {
        self.queueing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nothing panics while it holds the lock.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn begin(
        &mut self,
        tenant: &TenantId,
        wish: Wish,
        is_short: bool,
        now: Instant,
    ) -> Result<Begun, Refusal> {
        let is_prompt = wish.kind != Kind::Lasting;
        if is_prompt {
            self.limit.asked(self.prompt, now);
            self.demand.count(tenant, now);
        }
        self.forget_idle(now);
        self.find_place(tenant, is_short)?;
        if is_prompt {
            self.find_turn(tenant, wish, now)?;
        }
        let rate = self.config.calls_per_second_per_tenant.map(Rate::per_second);
        let entry = self.tenants.entry(tenant.clone()).or_default();
        if let Some(rate) = rate {
            entry.spent.spend(&rate, now).map_err(Refusal::TenantTooOften)?;
        }
        let at = now.checked_sub(wish.waited).unwrap_or(now);
        let begun = Begun { kind: wish.kind, at, calm: self.limit.is_calm(self.prompt) };
        entry.under_way += 1;
        self.prompt_tenants += usize::from(is_prompt && entry.prompt == 0);
        entry.prompt += usize::from(is_prompt);
        self.under_way += 1;
        self.prompt += usize::from(is_prompt);
        Ok(begun)
    }

    /// Whether there is a place for one more call of any kind.
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

    /// Whether one more prompt call would be answered promptly.
    fn find_turn(&mut self, tenant: &TenantId, wish: Wish, now: Instant) -> Result<(), Refusal> {
        let limit = self.limit.now();
        let known = self.tenants.get(tenant).map_or(0, |tenant| tenant.prompt);
        let free = limit.saturating_sub(self.prompt);
        // The limit may be so low that what others have leaves nothing free. Those who ask for little are not who makes it low,
        // and not the ones to hold down while the best durations are looked for.
        let asks_for_little = self.demand.is_little(tenant, now);
        let has_less = known == 0 || known.saturating_mul(self.prompt_tenants) < limit;
        let most = if asks_for_little { self.limit.settled() } else { limit };
        let has_room =
            (has_less || asks_for_little) && self.prompt < most.saturating_mul(FOR_MODEST);
        if known >= free.saturating_mul(OF_WHAT_IS_FREE) && !has_room {
            self.limit.refused();
            return Err(Refusal::Slow);
        }
        // Where little is going on, a call that is tried in vain takes nobody's turn, and only so a best that was seen while
        // all was cold is ever corrected.
        if let Kind::Measured(kind) = wish.kind
            && !self.limit.is_calm(self.prompt)
            && self.limit.best(kind).is_some_and(|best| best > wish.left)
        {
            return Err(Refusal::NoTime);
        }
        Ok(())
    }

    fn end(&mut self, tenant: &TenantId, begun: Begun, answered: bool, now: Instant) {
        let is_prompt = begun.kind != Kind::Lasting;
        self.under_way -= 1;
        self.prompt -= usize::from(is_prompt);
        if let Kind::Measured(kind) = begun.kind {
            let took = now.saturating_duration_since(begun.at);
            match answered {
                true => self.limit.answered(kind, took, begun.calm, now),
                false => self.limit.given_up(kind, took),
            }
        }
        if let Some(known) = self.tenants.get_mut(tenant) {
            known.under_way -= 1;
            known.prompt -= usize::from(is_prompt);
            self.prompt_tenants -= usize::from(is_prompt && known.prompt == 0);
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
        self.inner.state().end(&self.tenant, self.begun, self.answered, Instant::now());
    }
}

#[cfg(test)]
mod tests;
