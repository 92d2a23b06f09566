//! Memory of successful calls, for tenants that opted in: the intents for which tools were called, stored as embeddings
//! and never as text. Gate observes calls, the store keeps them, and Route queries them. A background loop writes and
//! reads, so no call waits for the store.

mod keeper;
mod learn;
mod metrics;
mod observed;
mod recall;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use tokio::sync::Notify;

use toolgate_config::MemoryConfig;
use toolgate_core::error::Error;
use toolgate_core::identity::{ServerName, TenantId, ToolId, ToolName};
use toolgate_core::quantized_embedding::{EncoderKey, QuantizedEmbedding, encoder_key};
use toolgate_store::{MemoryBounds, Store};

pub use keeper::keep;
pub use learn::{EXEMPLARS_A_TOOL, MADE_A_DAY, NOBODY, Outcome, SHARE, learn};
pub use metrics::MemoryMetrics;
pub use observed::{Observation, WAITING_MAX};
pub use recall::{Recalled, Remembered};

/// Maximum exemplars of one tenant.
pub const EXEMPLARS_A_TENANT: u32 = 20_000;

/// Maximum total bytes of the memories held in this process. Beyond it, the least recently used are dropped and read
/// again when needed.
const HELD_BYTES: u64 = 256 << 20;

/// Expected number of tenants, for which the cache is sized. More are fine.
const TENANTS_EXPECTED: usize = 100;

/// Maximum tools whose exemplars one transaction changes. Other writers wait during a transaction.
const TOOLS_AT_ONCE: usize = 256;

/// Memory of all tenants that opted in.
pub struct Memory {
    store: Arc<dyn Store>,
    tenants: HashSet<TenantId>,
    half_life: Duration,
    encoder: EncoderKey,
    waiting: Mutex<Vec<(TenantId, Observation)>>,
    held: Cache<TenantId, Arc<Remembered>, ByMemory>,
    /// Tenants that were requested but are not held in this process.
    wanted: Mutex<HashSet<TenantId>>,
    wake: Notify,
    /// Lock that lets only one of writing, reading and clearing run at a time. Otherwise, an operation in progress
    /// could bring cleared content back.
    turn: tokio::sync::Mutex<()>,
    trimmed_hour: AtomicU64,
    metrics: MemoryMetrics,
}

/// Weigher of a tenant's memory by its bytes.
#[derive(Debug, Clone)]
struct ByMemory;

impl Weighter<TenantId, Arc<Remembered>> for ByMemory {
    fn weight(&self, _: &TenantId, remembered: &Arc<Remembered>) -> u64 {
        remembered.memory_bytes() as u64
    }
}

/// Statistics of the memory of one tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolStats {
    /// Identity of the tool.
    pub tool: ToolId,
    /// Number of its exemplars.
    pub exemplars: u32,
    /// Time of the last call that counted, in milliseconds since 1970 (UTC).
    pub seen_ms: i64,
}

impl Memory {
    /// Creates a memory kept in `store`. `fingerprint` identifies the encoder of the embeddings.
    #[must_use]
    pub fn new(
        store: Arc<dyn Store>,
        config: MemoryConfig,
        fingerprint: &str,
        metrics: MemoryMetrics,
    ) -> Self {
        Self {
            store,
            tenants: config.tenants.into_iter().collect(),
            half_life: config.half_life,
            encoder: encoder_key(fingerprint),
            waiting: Mutex::default(),
            held: Cache::with_weighter(TENANTS_EXPECTED, HELD_BYTES, ByMemory),
            wanted: Mutex::default(),
            wake: Notify::new(),
            turn: tokio::sync::Mutex::default(),
            trimmed_hour: AtomicU64::new(0),
            metrics,
        }
    }

    /// Returns true if calls of the tenant are remembered.
    #[must_use]
    pub fn is_on(&self, tenant: &TenantId) -> bool {
        self.tenants.contains(tenant)
    }

    /// Returns the quantized embedding of an intent, for the handle in the answer. `None` if nothing is remembered for the tenant.
    #[must_use]
    pub fn intent_embedding(
        &self,
        tenant: &TenantId,
        embedding: Option<&[f32]>,
    ) -> Option<QuantizedEmbedding> {
        let embedding = embedding.filter(|_| self.is_on(tenant))?;
        QuantizedEmbedding::of(self.encoder, embedding)
    }

    /// Returns the tenant's memory if this process has read it and it is not empty. If it was not read yet, it will be
    /// read soon.
    #[must_use]
    pub fn of(&self, tenant: &TenantId) -> Option<Arc<Remembered>> {
        if !self.is_on(tenant) {
            return None;
        }
        let held = self.held.get(tenant);
        if held.is_none() && self.wanted.lock().insert(tenant.clone()) {
            self.wake.notify_one();
        }
        held.filter(|remembered| !remembered.is_empty())
    }

    /// Records a call that may run. Never waits: if there is no room, the call is counted as dropped.
    pub fn observe(&self, tenant: &TenantId, observation: Observation) {
        if !self.is_on(tenant) || observation.intent_embedding.encoder() != self.encoder {
            return;
        }
        let mut waiting = self.waiting.lock();
        if waiting.len() < WAITING_MAX {
            waiting.push((tenant.clone(), observation));
            self.metrics.observed();
        } else {
            self.metrics.dropped(1);
        }
    }

    /// Writes the observed calls. Calls that a failing store did not take are dropped and counted, because they would
    /// be worth little by the time the store is back.
    ///
    /// # Errors
    /// The store can't be written.
    pub async fn flush(&self) -> Result<(), Error> {
        let _turn = self.turn.lock().await;
        let observed = std::mem::take(&mut *self.waiting.lock());
        let mut failure = Ok(());
        for (tenant, by_tool) in observed::grouped(observed) {
            let tools: Vec<ToolId> = by_tool.keys().cloned().collect();
            for tools in tools.chunks(TOOLS_AT_ONCE) {
                if let Err(error) = self.write(&tenant, tools, &by_tool).await {
                    let lost = tools.iter().filter_map(|tool| by_tool.get(tool)).map(Vec::len);
                    self.metrics.dropped(lost.sum::<usize>() as u64);
                    failure = Err(error);
                }
            }
        }
        failure
    }

    async fn write(
        &self,
        tenant: &TenantId,
        tools: &[ToolId],
        observed: &BTreeMap<ToolId, Vec<Observation>>,
    ) -> Result<(), Error> {
        let half_life = self.half_life;
        let metrics = &self.metrics;
        let revise = |tool: &ToolId, exemplars: &mut Vec<_>| {
            for observation in observed.get(tool).into_iter().flatten() {
                metrics.learned(learn(exemplars, observation, half_life).name());
            }
        };
        Ok(self.store.revise_memory(tenant, tools, &revise, self.bounds()).await?)
    }

    /// Reads everything that this and other replicas have written since the last read.
    ///
    /// # Errors
    /// The store can't be read.
    pub async fn refresh(&self) -> Result<(), Error> {
        let _turn = self.turn.lock().await;
        // A tenant that can't be read yet stays in the set, so that it does not wake the loop again.
        let wanted = self.wanted.lock().clone();
        let held: HashSet<TenantId> = self.held.iter().map(|(tenant, _)| tenant).collect();
        let mut failure = Ok(());
        for tenant in held.union(&wanted) {
            if let Err(error) = self.refresh_one(tenant).await {
                failure = Err(error);
            }
        }
        let exemplars = self.held.iter().map(|(_, remembered)| remembered.len()).sum();
        self.metrics.held(exemplars);
        failure
    }

    async fn refresh_one(&self, tenant: &TenantId) -> Result<(), Error> {
        let held = self.held.get(tenant);
        let is_new = held.is_none();
        let known = held.unwrap_or_default();
        let changes = self.store.read_memory(tenant, known.version()).await?;
        if is_new || changes.version != known.version() {
            let half_life = self.half_life;
            let with = move || Arc::new(known.with(changes, half_life));
            let remembered = tokio::task::spawn_blocking(with).await.map_err(Error::internal)?;
            self.held.insert(tenant.clone(), remembered);
        }
        self.wanted.lock().remove(tenant);
        Ok(())
    }

    /// Returns the bounds for exemplars. Fading follows the store's clock: a replica whose own clock is fast must not
    /// forget exemplars for the others.
    fn bounds(&self) -> MemoryBounds {
        MemoryBounds { now_ms: self.store.clock_ms(), most: EXEMPLARS_A_TENANT }
    }

    /// Drops faded exemplars of the tenants that opted in, once an hour.
    async fn trim(&self) -> Result<(), Error> {
        let hour = now_ms().unsigned_abs() / 3_600_000;
        if self.trimmed_hour.swap(hour, Ordering::Relaxed) == hour {
            return Ok(());
        }
        for tenant in &self.tenants {
            self.store.revise_memory(tenant, &[], &|_, _| {}, self.bounds()).await?;
        }
        Ok(())
    }

    /// Forgets the exemplars of the tenant, of one MCP server's tools or of one tool, and returns their number.
    ///
    /// # Errors
    /// The store can't be written.
    pub async fn clear(
        &self,
        tenant: &TenantId,
        server: Option<&ServerName>,
        tool: Option<&ToolName>,
    ) -> Result<u64, Error> {
        let is_meant = |one: &ToolId| {
            server.is_none_or(|server| one.server == *server)
                && tool.is_none_or(|tool| one.name == *tool)
        };
        let _turn = self.turn.lock().await;
        self.waiting.lock().retain(|(of, seen)| of != tenant || !is_meant(&seen.tool));
        let gone = self.store.clear_memory(tenant, server, tool).await?;
        // Route forgets before the caller gets the answer.
        self.held.remove(tenant);
        Ok(gone)
    }

    /// Returns statistics of the tenant's tools, or of one server's. Tools with the most exemplars come first.
    ///
    /// # Errors
    /// The store can't be read.
    pub async fn stats(
        &self,
        tenant: &TenantId,
        server: Option<&ServerName>,
    ) -> Result<Vec<ToolStats>, Error> {
        let changes = self.store.read_memory(tenant, 0).await?;
        let mut stats: Vec<ToolStats> = Vec::new();
        for (tool, exemplar) in changes.exemplars {
            match stats.last_mut().filter(|last| last.tool == tool) {
                Some(last) => {
                    last.exemplars += 1;
                    last.seen_ms = last.seen_ms.max(exemplar.seen_ms);
                }
                None => stats.push(ToolStats { tool, exemplars: 1, seen_ms: exemplar.seen_ms }),
            }
        }
        stats.retain(|one| server.is_none_or(|server| one.tool.server == *server));
        stats.sort_by(|a, b| b.exemplars.cmp(&a.exemplars).then_with(|| a.tool.cmp(&b.tool)));
        Ok(stats)
    }
}

/// Returns the current time in milliseconds since 1970 (UTC).
#[must_use]
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
