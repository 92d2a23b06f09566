//! The routing plane as one value: catalog, shards and router over one store and one encoder. This is
//! what every face of the product calls.

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
use toolgate_routing::gate::key::HandleKey;
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

/// What a plane is made of beside its store and encoder.
#[derive(Debug, Clone)]
pub struct PlaneConfig {
    /// What outside input is held to; may change while the plane works.
    pub limits: Arc<Live<LimitsConfig>>,
    /// Bytes that all shards may take together.
    pub memory_budget: u64,
    /// The key that signs active-set handles.
    pub handle_key: HandleKey,
    /// How long a handle lives.
    pub handle_ttl: Duration,
    /// Whether tools are deferred; may change while the plane works.
    pub deferral: Arc<Live<Policy>>,
    /// What people say who want well-known tools; `None` for summaries alone.
    pub packs: Option<Arc<Packs>>,
    /// How many may watch catalogs at a time.
    pub max_watches: usize,
    /// How long calls are allowed on what can't be compared with a shared store.
    pub max_staleness: Duration,
    /// Copies of what is loaded, for when a shared store can't be reached.
    pub copies: Option<Arc<Copies>>,
    /// Whose calls are remembered, and how this is counted.
    pub memory: (MemoryConfig, MemoryMetrics),
    /// How registrations are vetted; `None` for not at all.
    pub vetting: Option<Vetting>,
}

/// The routing plane.
pub struct Plane {
    /// What is registered.
    pub catalog: Catalog,
    /// What is routed.
    pub router: Router,
    /// What it cost.
    pub usage: Arc<Ledger>,
    /// What worked.
    pub memory: Arc<Memory>,
    shards: Arc<Shards>,
    store: Arc<dyn Store>,
    watchers: Arc<Watchers>,
    following: Following,
}

impl Plane {
    /// A plane over `store` and `encoders`.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, encoders: Encoders, config: PlaneConfig) -> Self {
        let Encoders { passages, intents } = encoders;
        let budget = config.memory_budget;
        let catalog = Catalog::new(Arc::clone(&store), Arc::clone(&passages), config.limits);
        let hubs = config.packs.as_ref();
        let hubs = hubs.and_then(|packs| packs.hubs(intents.encoder().fingerprint()));
        let catalog = catalog.with_vetting(config.vetting).with_hubs(hubs);
        let shards = Shards::new(Arc::clone(&store), Arc::clone(&passages), budget);
        let shards = shards.with_copies(config.copies).with_max_staleness(config.max_staleness);
        let shards = shards.with_share(Arc::clone(catalog.share()));
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
        Self {
            store,
            watchers: Arc::new(Watchers::new(config.max_watches)),
            following: Following::default(),
            catalog,
            router: Router::new(Arc::clone(&shards), intents, Arc::clone(&usage), key, ttl)
                .with_deferral(config.deferral)
                .with_memory(Arc::clone(&memory)),
            usage,
            memory,
            shards,
        }
    }

    /// Registers an MCP server; when it returns, Route serves the change.
    ///
    /// # Errors
    /// As [`Catalog::register`], and [`Error::StockExceeded`] where the tenant's shard would be too large to be kept.
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

    /// Accepts tools that wait for approval; when it returns, Route serves them.
    ///
    /// # Errors
    /// As [`Catalog::approve`].
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

    /// Removes an MCP server; when it returns, Route no longer shows its tools.
    ///
    /// # Errors
    /// As [`Catalog::unregister`].
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

    /// Bytes that the shards hold, about.
    #[must_use]
    pub fn shard_memory_bytes(&self) -> u64 {
        self.shards.memory_bytes()
    }

    /// What shards are in memory.
    #[must_use]
    pub fn shards_reading(&self) -> ShardsReading {
        let (tenants, highest_revision) = self.shards.count_and_highest_revision();
        ShardsReading { bytes: self.shard_memory_bytes(), tenants, highest_revision }
    }

    /// The change is committed whatever happens here: a shard that can't be rebuilt now is rebuilt when
    /// it is next asked for. Who watches is told afterwards, so that what they ask next is answered from it.
    async fn follow(&self, tenant: &TenantId, revision: Revision) {
        let shards = Arc::clone(&self.shards);
        let watchers = Arc::clone(&self.watchers);
        let tenant = tenant.clone();
        // A task of its own: a caller who leaves must not keep others from hearing of what is committed.
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
