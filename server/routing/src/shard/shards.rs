//! Shards of all tenants: loaded from the store on first use, rebuilt after a change, and evicted by a memory budget.
//! The store is authoritative, so dropping a shard loses nothing.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;
use tokio::sync::{Semaphore, oneshot};
use toolgate_encoder::give_way;
use tracing::{info, warn};

use self::content::Content;
pub use self::kept::Clock;
use self::kept::Kept;
use super::freshness::Freshness;
use super::snapshot::{Known, Snapshot, policy_of};
use super::vectors::IndexOptions;
use crate::catalog::share::{Behind, Share};
use crate::catalog::verify::is_served;
use crate::encoder::{Encoder, Intents};
use crate::packs::{Attached, Packs};
use toolgate_core::error::Error;
use toolgate_core::identity::{TenantId, ToolId};
use toolgate_core::policy::Policy;
use toolgate_store::copies::Copies;
use toolgate_store::{Revision, Store, StoredCatalog, ToolRecord, moment};

mod content;
mod following;
mod growth;
mod kept;

/// Time for which a shard without embeddings is served before they are requested again.
const RETRY_EMBEDDINGS: Duration = Duration::from_secs(5);

/// Maximum time that a build waits for the embeddings of packs' requests. Late ones are used in the next build.
const PACKS_WITHIN: Duration = Duration::from_secs(2);

/// Number of graphs built at a time, each on one core.
const GRAPHS_AT_ONCE: usize = 1;

/// Number of tools above which a shard is built within the core share of registrations, even for a waiting call,
/// because it takes a core for half a second or more.
const LARGE: usize = 5_000;

/// Maximum copies written in the background. A build with one more waits until it is written.
const COPIES_AT_ONCE: usize = 8;

/// Purpose of building a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum For {
    /// Call that waits for the shard. A large shard is built within the core share all the same.
    Caller,
    /// Change of the catalog. Meanwhile, calls are answered from the previous shard.
    Change,
}

/// Shard with the time of its next build, if it lacks embeddings of summaries or of packs' requests.
#[derive(Debug, Clone)]
struct Built {
    snapshot: Arc<Snapshot>,
    /// True if it was built from a copy because the store could not be read.
    is_borrowed: bool,
    retry_at: Arc<Mutex<Option<Instant>>>,
}

/// Shards of all tenants.
pub struct Shards {
    store: Arc<dyn Store>,
    encoder: Arc<dyn Encoder>,
    kept: Kept,
    builds: Builds,
    graphs: Semaphore,
    packs: Option<(Arc<Packs>, Arc<Intents>)>,
    copies: Option<Arc<Copies>>,
    copying: Arc<Semaphore>,
    share: Arc<Share>,
    options: IndexOptions,
    freshness: Freshness,
}

impl Shards {
    /// Creates shards over `store`, held within about `memory_budget` bytes.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, encoder: Arc<dyn Encoder>, memory_budget: u64) -> Self {
        let freshness = Freshness::new(Duration::MAX, store.is_shared());
        Self {
            store,
            encoder,
            kept: Kept::new(memory_budget),
            builds: Builds::default(),
            graphs: Semaphore::new(GRAPHS_AT_ONCE),
            packs: None,
            copies: None,
            copying: Arc::new(Semaphore::new(COPIES_AT_ONCE)),
            share: Arc::default(),
            options: IndexOptions::default(),
            freshness,
        }
    }

    /// Returns the shards with copies of loaded content, for use when the store can't be read.
    #[must_use]
    pub fn with_copies(self, copies: Option<Arc<Copies>>) -> Self {
        Self { copies, ..self }
    }

    /// Returns the same shards, which get a graph for approximate search above this number of tools.
    #[must_use]
    pub fn with_graph_above(self, graph_above: usize) -> Self {
        let options = IndexOptions { graph_above, ..self.options };
        Self { options, ..self }
    }

    /// Returns the shards with the core share in which changed shards and large ones are built.
    #[must_use]
    pub fn with_share(self, share: Arc<Share>) -> Self {
        Self { share, ..self }
    }

    /// Returns the shards with this clock, which decides how long a new shard stays at least.
    #[must_use]
    pub fn with_clock(mut self, clock: Clock) -> Self {
        self.kept.clock = clock;
        self
    }

    /// Returns the shards with the time `bound` for which they may be used for verdicts without the store.
    #[must_use]
    pub fn with_max_staleness(self, bound: Duration) -> Self {
        let freshness = Freshness::new(bound, self.store.is_shared());
        Self { freshness, ..self }
    }

    /// Returns the shards with packs. Their requests are embedded as intents.
    #[must_use]
    pub fn with_packs(self, packs: Arc<Packs>, intents: Arc<Intents>) -> Self {
        Self { packs: Some((packs, intents)), ..self }
    }

    /// Returns the tenant's shard at revision `min_revision` or later. With 0, a loaded shard of any revision is
    /// returned.
    ///
    /// # Errors
    /// [`Error::TenantNotFound`], [`Error::RevisionNotReached`], or a store that can't be read while there is no shard
    /// to fall back to.
    pub async fn get(
        self: &Arc<Self>,
        tenant: &TenantId,
        min_revision: Revision,
    ) -> Result<Arc<Snapshot>, Error> {
        self.get_for(tenant, min_revision, For::Caller).await
    }

    /// Returns the tenant's shard like [`Shards::get`]. A missing shard is built for the purpose `whom`.
    async fn get_for(
        self: &Arc<Self>,
        tenant: &TenantId,
        min_revision: Revision,
        whom: For,
    ) -> Result<Arc<Snapshot>, Error> {
        if let Some(built) = self.kept.get(tenant)
            && built.snapshot.revision >= min_revision
        {
            if built.is_to_be_retried() {
                let again =
                    Arc::clone(self).build_again(tenant.clone(), Arc::clone(&built.snapshot));
                tokio::spawn(again);
            }
            return Ok(built.snapshot);
        }
        let snapshot = self.rebuild(tenant, min_revision, whom).await?;
        if snapshot.revision < min_revision {
            let seen = snapshot.revision;
            return Err(Error::RevisionNotReached { wanted: min_revision, seen });
        }
        Ok(snapshot)
    }

    /// Builds a shard that lacks embeddings again, unless another one has replaced it. Meanwhile, calls are answered
    /// from the present one.
    async fn build_again(self: Arc<Self>, tenant: TenantId, lacking: Arc<Snapshot>) {
        let turn = self.builds.turn(&tenant);
        let is_current = |built: &Built| Arc::ptr_eq(&built.snapshot, &lacking);
        let loaded = {
            let _building = turn.lock().await;
            match self.kept.get(&tenant).as_ref().is_some_and(is_current) {
                true => self.load(&tenant, lacking.revision, For::Change).await.map(Some),
                false => Ok(None),
            }
        };
        drop(turn);
        self.builds.forget_idle(&tenant);
        match loaded {
            Ok(Some(snapshot)) if snapshot.lacks_graph() => self.add_graph(tenant, snapshot).await,
            Ok(_) => {}
            Err(error) => {
                warn!(%error, tenant = tenant.as_str(), "a shard could not be built again");
            }
        }
    }

    /// Brings the tenant's shard to `revision` or later. Concurrent calls share one build.
    ///
    /// # Errors
    /// Same errors as [`Shards::get`].
    pub async fn rebuild(
        self: &Arc<Self>,
        tenant: &TenantId,
        revision: Revision,
        whom: For,
    ) -> Result<Arc<Snapshot>, Error> {
        // A task of its own: a caller who leaves must not make the next one begin anew.
        let shards = Arc::clone(self);
        let tenant = tenant.clone();
        let build = async move {
            let snapshot = shards.build_in_turn(&tenant, revision, whom).await?;
            if snapshot.lacks_graph() {
                tokio::spawn(Arc::clone(&shards).add_graph(tenant, Arc::clone(&snapshot)));
            }
            Ok(snapshot)
        };
        tokio::spawn(build).await.map_err(Error::internal)?
    }

    /// Adds the graph to a large shard that is already served, unless a newer one has replaced it.
    async fn add_graph(self: Arc<Self>, tenant: TenantId, snapshot: Arc<Snapshot>) {
        let Ok(_permit) = self.graphs.acquire().await else { return };
        let is_current = |built: &Built| Arc::ptr_eq(&built.snapshot, &snapshot);
        if !self.kept.get(&tenant).as_ref().is_some_and(is_current) {
            return;
        }
        // A thread of its own, since it takes a core for half a second per thousand tools: it gives way to calls, and keeps
        // no registration waiting.
        let (done, built) = oneshot::channel();
        let build = move || {
            give_way(Behind::Embedding);
            let begun = Instant::now();
            snapshot.build_graph();
            // Without memory for it there is a warning, and no graph.
            if !snapshot.lacks_graph() {
                let seconds = begun.elapsed().as_secs_f32();
                let tenant = tenant.as_str();
                info!(tenant, tools = snapshot.tools.len(), seconds, "a shard has its graph");
            }
            _ = done.send(());
        };
        match thread::Builder::new().name("graph".into()).spawn(build) {
            Ok(_) => drop(built.await),
            Err(error) => warn!(%error, "no thread for the graph: every search is exact"),
        }
    }

    async fn build_in_turn(
        &self,
        tenant: &TenantId,
        revision: Revision,
        whom: For,
    ) -> Result<Arc<Snapshot>, Error> {
        let turn = self.builds.turn(tenant);
        let outcome = {
            let _building = turn.lock().await;
            match self.kept.get(tenant) {
                Some(built) if built.snapshot.revision >= revision => Ok(built.snapshot),
                _ => self.load(tenant, revision, whom).await,
            }
        };
        drop(turn);
        self.builds.forget_idle(tenant);
        outcome
    }

    /// Returns the time by the store's clock, because replicas check handles that other replicas issued.
    #[must_use]
    pub fn clock(&self) -> SystemTime {
        moment(self.store.clock_ms())
    }

    /// Returns the approximate bytes of all shards.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.kept.bytes()
    }

    /// Returns the number of shards in memory and the highest revision among them. Visits every shard.
    #[must_use]
    pub fn count_and_highest_revision(&self) -> (u64, u64) {
        let shards = self.kept.all();
        let revisions = shards.iter().map(|(_, built)| built.snapshot.revision);
        revisions.fold((0, 0), |(shards, highest), revision| (shards + 1, highest.max(revision)))
    }

    async fn load(
        &self,
        tenant: &TenantId,
        wanted: Revision,
        whom: For,
    ) -> Result<Arc<Snapshot>, Error> {
        let Content { catalog, embeddings, read_at, reading } =
            self.content(tenant, wanted).await?;
        let is_borrowed = read_at.is_none();
        let packs = match &self.packs {
            Some((packs, intents)) => packs.attach(&catalog, intents.encoder(), PACKS_WITHIN).await,
            None => Attached::default(),
        };
        let has_packs = packs.is_complete();
        let dimensions = self.encoder.dimensions();
        let known = self.kept.get(tenant).map(|built| built.snapshot);
        let pack = self.packing(tenant, is_borrowed);
        let damaged_of = tenant.clone();
        let is_large = catalog.tools.len() > LARGE;
        let options = self.options;
        let build = move || {
            let begun = Instant::now();
            let mut catalog = catalog;
            leave_out_damaged(&damaged_of, &mut catalog, known.as_deref());
            let packed = pack(&catalog, &embeddings);
            let policy = policy_after(known.as_deref(), &catalog)?;
            let known = Known { embeddings: &embeddings, packs: &packs };
            let built = Snapshot::build_under(policy, catalog, known, dimensions, &options)?;
            Ok::<_, Error>((built.read_at(read_at), packed, reading + begun.elapsed()))
        };
        let built = match whom {
            For::Caller if !is_large => {
                tokio::task::spawn_blocking(build).await.map_err(Error::internal)?
            }
            For::Caller => self.share.run(tenant, Behind::Answers, build).await?,
            For::Change => self.share.run(tenant, Behind::Embedding, build).await?,
        };
        let (snapshot, packed, took) = built?;
        let snapshot = Arc::new(snapshot);
        let built = Built::new(Arc::clone(&snapshot), has_packs, is_borrowed);
        self.kept.insert(tenant, built, took);
        self.freshness.caught_up(tenant, snapshot.revision);
        self.keep(packed).await;
        Ok(snapshot)
    }
}

/// Removes tools whose definition is not the registered one, because a verdict on them would approve a text that was
/// never registered. Tools with a definition identical to a loaded one were checked before.
fn leave_out_damaged(tenant: &TenantId, catalog: &mut StoredCatalog, known: Option<&Snapshot>) {
    let is_known = |tool: &ToolRecord| {
        let id = ToolId { server: tool.server.clone(), name: tool.name.clone() };
        let slot = known.and_then(|known| Some((known, known.names.key(&id.key())?)));
        slot.is_some_and(|(known, slot)| {
            let loaded = known.tool(slot);
            loaded.hash == tool.hash && loaded.definition.text() == tool.definition
        })
    };
    catalog.tools.retain(|stored| is_known(&stored.record) || is_served(tenant, &stored.record));
}

/// Returns the catalog's policy, parsed. The policy of the previous shard is reused if its revision is the same.
fn policy_after(known: Option<&Snapshot>, catalog: &StoredCatalog) -> Result<Arc<Policy>, Error> {
    let revision = catalog.policy.as_ref().map(|stored| stored.revision);
    match known {
        Some(known) if known.policy_revision == revision => Ok(Arc::clone(&known.policy)),
        _ => policy_of(catalog.policy.as_ref()),
    }
}

impl Built {
    fn new(snapshot: Arc<Snapshot>, has_packs: bool, is_borrowed: bool) -> Self {
        let lacks = snapshot.vectors().is_none() || !has_packs;
        Self { snapshot, is_borrowed, retry_at: Arc::new(Mutex::new(lacks.then(next_retry))) }
    }

    /// Returns true if the caller is to have the shard built again. This is so for one caller in each
    /// [`RETRY_EMBEDDINGS`].
    fn is_to_be_retried(&self) -> bool {
        let mut retry_at = self.retry_at.lock();
        let is_due = retry_at.is_some_and(|at| at <= Instant::now());
        if is_due {
            *retry_at = Some(next_retry());
        }
        is_due
    }
}

fn next_retry() -> Instant {
    Instant::now() + RETRY_EMBEDDINGS
}

/// Locks of the builds in progress, one for each tenant.
#[derive(Debug, Default)]
struct Builds(Mutex<HashMap<TenantId, Arc<tokio::sync::Mutex<()>>>>);

impl Builds {
    fn turn(&self, tenant: &TenantId) -> Arc<tokio::sync::Mutex<()>> {
        let mut builds = self.0.lock();
        Arc::clone(builds.entry(tenant.clone()).or_default())
    }

    fn forget_idle(&self, tenant: &TenantId) {
        let mut builds = self.0.lock();
        if builds.get(tenant).is_some_and(|turn| Arc::strong_count(turn) == 1) {
            builds.remove(tenant);
        }
    }
}
