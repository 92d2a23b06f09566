//! Routing plane: catalog, shards and router over one store and one encoder. Every API of the product calls it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tracing::warn;

use crate::telemetry::ShardsReading;
use following::Following;
use toolgate_config::{LimitsConfig, MemoryConfig};
use toolgate_core::deferral::Policy;
use toolgate_core::error::Error;
use toolgate_core::identity::{ServerName, TenantId};
use toolgate_core::live::Live;
use toolgate_routing::catalog::Catalog;
use toolgate_routing::catalog::approval::{Approval, Approved};
use toolgate_routing::catalog::registration::{Registered, Registration};
use toolgate_routing::catalog::vetting::Vetting;
use toolgate_routing::encoder::Encoders;
use toolgate_routing::gate::Gate;
use toolgate_routing::gate::key::HandleKey;
use toolgate_routing::gate::warmer::Warmer;
use toolgate_routing::memory::Memory;
use toolgate_routing::memory::MemoryMetrics;
use toolgate_routing::packs::Packs;
use toolgate_routing::router::Router;
use toolgate_routing::shard::shards::{For, Shards};
use toolgate_routing::usage::Ledger;
use toolgate_store::copies::Copies;
use toolgate_store::{Committed, Revision, Store};
use watching::Watchers;

mod following;
pub mod listing;
pub mod memory;
pub mod policies;
pub mod watching;

/// Configuration of a plane, except its store and encoders.
#[derive(Debug, Clone)]
pub struct PlaneConfig {
    /// Limits on external input; may change at runtime.
    pub limits: Arc<Live<LimitsConfig>>,
    /// Maximum memory of all shards together, in bytes.
    pub memory_budget: u64,
    /// Number of tools above which a shard gets a graph for approximate search.
    pub graph_above: usize,
    /// Key that signs active-set handles.
    pub handle_key: HandleKey,
    /// Lifetime of a handle.
    pub handle_ttl: Duration,
    /// Policy on deferring tools; may change at runtime.
    pub deferral: Arc<Live<Policy>>,
    /// Users' requests for well-known tools; `None` to search by summaries alone.
    pub packs: Option<Arc<Packs>>,
    /// Maximum number of open catalog watches.
    pub max_watches: usize,
    /// Time for which calls are still allowed on a catalog that can't be compared with a shared store.
    pub max_staleness: Duration,
    /// Local copies of loaded catalogs, for use when a shared store can't be reached.
    pub copies: Option<Arc<Copies>>,
    /// Tenants whose calls are remembered, and the metrics of that memory.
    pub memory: (MemoryConfig, MemoryMetrics),
    /// Vetting of registrations; `None` for no vetting.
    pub vetting: Option<Vetting>,
}

/// Routing plane over one store and one encoder.
pub struct Plane {
    /// Registered MCP servers and tools.
    pub catalog: Catalog,
    /// Selection of tools for requests.
    pub router: Router,
    /// Verdicts on calls.
    pub gate: Gate,
    /// Token usage of calls.
    pub usage: Arc<Ledger>,
    /// Memory of calls that succeeded.
    pub memory: Arc<Memory>,
    shards: Arc<Shards>,
    store: Arc<dyn Store>,
    watchers: Arc<Watchers>,
    following: Following,
}

impl Plane {
    /// Creates a plane over `store` and `encoders`.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, encoders: Encoders, config: PlaneConfig) -> Self {
        let Encoders { passages, intents } = encoders;
        let budget = config.memory_budget;
        let catalog = Catalog::new(Arc::clone(&store) as _, Arc::clone(&passages), config.limits);
        let packs = config.packs.as_ref();
        let hubs = packs.and_then(|packs| packs.hubs(intents.encoder().fingerprint()));
        let background = packs.and_then(|packs| packs.background(intents.encoder().fingerprint()));
        let catalog = catalog.with_vetting(config.vetting).with_hubs(hubs);
        let shards = Shards::new(Arc::clone(&store), Arc::clone(&passages), budget);
        let shards = shards.with_copies(config.copies).with_max_staleness(config.max_staleness);
        let shards = shards.with_share(Arc::clone(catalog.share()));
        let shards = shards.with_graph_above(config.graph_above);
        let shards = Arc::new(match config.packs {
            Some(packs) => shards.with_packs(packs, Arc::clone(&intents)),
            None => shards,
        });
        let key = config.handle_key;
        let ttl = config.handle_ttl;
        let usage = Arc::new(Ledger::new(Arc::clone(&store)));
        let (remember, metrics) = config.memory;
        let fingerprint = intents.encoder().fingerprint().to_owned();
        let memory = Memory::new(Arc::clone(&store), remember, &fingerprint, metrics);
        let memory = Arc::new(memory);
        let warmer = Arc::new(Warmer::default());
        let gate =
            Gate::new(Arc::clone(&shards), Arc::clone(&usage), key.clone(), Arc::clone(&warmer));
        let router =
            Router::new(Arc::clone(&shards), intents, Arc::clone(&usage), key, ttl, warmer)
                .with_background(background);
        Self {
            store,
            watchers: Arc::new(Watchers::new(config.max_watches)),
            following: Following::default(),
            catalog,
            router: router.with_deferral(config.deferral).with_memory(Arc::clone(&memory)),
            gate: gate.with_memory(Arc::clone(&memory)),
            usage,
            memory,
            shards,
        }
    }

    /// Registers an MCP server. Once it returns, Route serves the change.
    ///
    /// # Errors
    /// Returns the errors of [`Catalog::register`], and [`Error::StockExceeded`] if the tenant's shard would exceed its
    /// memory limit.
    pub async fn register(
        &self,
        tenant: &TenantId,
        registration: Registration,
        deadline: Option<Instant>,
    ) -> Result<Registered, Error> {
        self.shards.must_hold(tenant, &registration).await?;
        let registered = self.catalog.register(tenant, registration, deadline).await?;
        self.follow(tenant, registered.revision).await;
        Ok(registered)
    }

    /// Accepts tools that wait for approval. Once it returns, Route serves them.
    ///
    /// # Errors
    /// Returns the errors of [`Catalog::approve`].
    pub async fn approve(
        &self,
        tenant: &TenantId,
        server: &ServerName,
        approvals: &[Approval],
    ) -> Result<Approved, Error> {
        let approved = self.catalog.approve(tenant, server, approvals).await?;
        self.follow(tenant, approved.revision).await;
        Ok(approved)
    }

    /// Removes an MCP server. Once it returns, Route no longer shows its tools.
    ///
    /// # Errors
    /// Returns the errors of [`Catalog::unregister`].
    pub async fn unregister(
        &self,
        tenant: &TenantId,
        server: &ServerName,
        etag: &str,
    ) -> Result<(Committed, u32), Error> {
        let (committed, removed) = self.catalog.unregister(tenant, server, etag).await?;
        self.follow(tenant, committed.revision).await;
        Ok((committed, removed))
    }

    /// Returns the approximate memory of all shards in bytes.
    #[must_use]
    pub fn shard_memory_bytes(&self) -> u64 {
        self.shards.memory_bytes()
    }

    /// Returns the figures of the shards in memory.
    #[must_use]
    pub fn shards_reading(&self) -> ShardsReading {
        let (tenants, highest_revision) = self.shards.count_and_highest_revision();
        ShardsReading { bytes: self.shard_memory_bytes(), tenants, highest_revision }
    }

    /// Rebuilds the tenant's shard after a committed change. The change stays committed even if this fails: a shard
    /// that can't be rebuilt now is rebuilt when it is next used. Watchers are notified afterwards, so that their next
    /// calls see the change.
    async fn follow(&self, tenant: &TenantId, revision: Revision) {
        let shards = Arc::clone(&self.shards);
        let watchers = Arc::clone(&self.watchers);
        let tenant = tenant.clone();
        // A separate task: if the caller disconnects, others must still learn of the committed change.
        let following = async move {
            if let Err(error) = shards.rebuild(&tenant, revision, For::Change).await {
                warn!(tenant = tenant.as_str(), %error, "the shard could not be rebuilt yet");
                shards.fell_behind(&tenant, revision);
            }
            watchers.tell(&tenant, revision);
        };
        if let Err(error) = tokio::spawn(following).await {
            warn!(%error, "a shard's rebuilding failed");
        }
    }
}
