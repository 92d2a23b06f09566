//! Plane on a SQLite store in a folder of its own.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};
use tempfile::TempDir;
use toolgate_app::plane::policies::PolicyCheck;
use toolgate_app::plane::{Plane, PlaneConfig};
use toolgate_config::{LimitsConfig, MemoryConfig};
use toolgate_core::deferral::Policy;
use toolgate_core::error::Error;
use toolgate_core::identity::{ServerName, TenantId};
use toolgate_core::live::Live;
use toolgate_core::state::AgentState;
use toolgate_routing::catalog::registration::{Registered, Registration};
use toolgate_routing::catalog::vetting::Vetting;
use toolgate_routing::encoder::Encoders;
use toolgate_routing::gate::calls::Call;
use toolgate_routing::gate::handle::Holder;
use toolgate_routing::gate::key::HandleKey;
use toolgate_routing::gate::verdict::{Allowed, Refused, Verdict};
use toolgate_routing::gate::{Evidence, GateQuery};
use toolgate_routing::memory::MemoryMetrics;
use toolgate_routing::packs::Packs;
use toolgate_routing::router::answers::pool::PoolDelta;
use toolgate_routing::router::query::{Detail, MESSAGE_MAX, RouteQuery};
use toolgate_routing::router::route::Answer;
use toolgate_routing::router::schemas::{SchemaLookup, SchemasQuery};
use toolgate_routing::router::search::{SearchAnswer, SearchQuery};
use toolgate_routing::router::summary_pool::PoolQuery;
use toolgate_routing::shard::shards::{Clock, Shards};
use toolgate_routing::shard::snapshot::Snapshot;
use toolgate_routing::shard::vectors::GRAPH_ABOVE;
use toolgate_store::sqlite::SqliteStore;
use toolgate_store::{Revision, StoredPolicy};

use super::encoder::FakeEncoder;

const DATABASE: &str = "catalog.db";

/// Configuration of a world.
#[derive(Debug, Clone)]
pub struct Setup {
    pub limits: LimitsConfig,
    pub memory_budget: u64,
    pub handle_ttl: Duration,
    pub fingerprint: &'static str,
    pub deferral: Policy,
    pub memory: MemoryConfig,
    pub packs: Option<Arc<Packs>>,
    /// Vetting of registrations; most tests leave it off.
    pub vetting: Option<Vetting>,
    /// Time by which the store's clock is ahead of this process.
    pub store_ahead: Duration,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            limits: LimitsConfig::default(),
            memory_budget: 64 << 20,
            handle_ttl: Duration::from_secs(600),
            fingerprint: "fake-1",
            deferral: Policy::default(),
            memory: MemoryConfig::default(),
            packs: None,
            vetting: None,
            store_ahead: Duration::ZERO,
        }
    }
}

pub struct World {
    pub plane: Arc<Plane>,
    pub encoder: Arc<FakeEncoder>,
    pub deferral: Arc<Live<Policy>>,
    folder: Arc<TempDir>,
}

impl World {
    pub async fn new() -> Self {
        Self::with(Setup::default()).await
    }

    pub async fn with(setup: Setup) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Self::over(Arc::new(folder), setup).await
    }

    /// Creates another plane over the same database, as after a restart. They share only the store.
    pub async fn restarted(&self, setup: Setup) -> Self {
        Self::over(Arc::clone(&self.folder), setup).await
    }

    /// Returns shards over the same database, none of them loaded, which use `clock`.
    pub async fn shards(&self, memory_budget: u64, clock: Clock) -> Arc<Shards> {
        let path = self.folder.path().join("catalog.db");
        let store = SqliteStore::open(&path).await.expect("a store");
        let encoder = Arc::clone(&self.encoder);
        Arc::new(Shards::new(Arc::new(store), encoder, memory_budget).with_clock(clock))
    }

    async fn over(folder: Arc<TempDir>, setup: Setup) -> Self {
        let ahead_ms = i64::try_from(setup.store_ahead.as_millis()).expect("a moment");
        let store = SqliteStore::open_with_clock(&folder.path().join(DATABASE), ahead_ms).await;
        let store = store.expect("a store");
        let encoder = Arc::new(FakeEncoder::new(setup.fingerprint));
        let deferral = Arc::new(Live::new(setup.deferral));
        let config = PlaneConfig {
            graph_above: GRAPH_ABOVE,
            copies: None,
            max_staleness: Duration::from_secs(900),
            max_watches: 8,
            packs: setup.packs,
            memory: (setup.memory, MemoryMetrics::default()),
            limits: Arc::new(Live::new(setup.limits)),
            memory_budget: setup.memory_budget,
            handle_key: HandleKey::from_bytes(&[7; 32]).expect("a key"),
            handle_ttl: setup.handle_ttl,
            deferral: Arc::clone(&deferral),
            vetting: setup.vetting,
        };
        let plane =
            Plane::new(Arc::new(store), Encoders::bare(&(Arc::clone(&encoder) as _)), config);
        Self { plane: Arc::new(plane), encoder, deferral, folder }
    }

    /// Changes the database without the store's knowledge, as a bad disk does. Fails if a statement changes nothing.
    pub async fn damage(&self, sql: &'static str) {
        let options = SqliteConnectOptions::new().filename(self.folder.path().join(DATABASE));
        let mut raw = options.connect().await.expect("a connection");
        let done = sqlx::query(sql).execute(&mut raw).await.expect(sql);
        assert!(done.rows_affected() > 0, "{sql}");
        raw.close().await.expect("a close");
    }

    pub async fn try_register(
        &self,
        tenant_name: &str,
        registration: Registration,
    ) -> Result<Registered, Error> {
        self.plane.register(&tenant(tenant_name), registration, None).await
    }

    /// Registers a server, and expects that every tool was accepted.
    pub async fn register(&self, tenant_name: &str, registration: Registration) -> Revision {
        let registered =
            self.try_register(tenant_name, registration).await.expect("a registration");
        let problems: Vec<_> =
            registered.outcomes.iter().filter(|outcome| !outcome.problem.is_empty()).collect();
        assert!(problems.is_empty(), "{problems:?}");
        registered.revision
    }

    pub async fn unregister(&self, tenant_name: &str, server: &str) -> Result<Revision, Error> {
        let server = ServerName::parse(server).expect("a server name");
        let (committed, _) = self.plane.unregister(&tenant(tenant_name), &server, "").await?;
        Ok(committed.revision)
    }

    pub async fn set_policy(
        &self,
        tenant_name: &str,
        document: &str,
        etag: &str,
    ) -> Result<StoredPolicy, Error> {
        let set = self.plane.set_policy(&tenant(tenant_name), document.to_owned(), etag).await;
        set.map(|(stored, _)| stored)
    }

    /// Checks a document, or the stored policy, against each tool.
    pub async fn check_policy(
        &self,
        tenant_name: &str,
        document: Option<&str>,
        state: AgentState,
    ) -> Result<PolicyCheck, Error> {
        let document = document.map(str::to_owned);
        self.plane.check_policy(&tenant(tenant_name), document, state).await
    }

    pub async fn try_route(&self, tenant_name: &str, query: RouteQuery) -> Result<Answer, Error> {
        self.route_within(tenant_name, query, None).await
    }

    pub async fn route(&self, tenant_name: &str, query: RouteQuery) -> Answer {
        self.try_route(tenant_name, query).await.expect("an answer")
    }

    pub async fn route_within(
        &self,
        tenant_name: &str,
        query: RouteQuery,
        deadline: Option<Instant>,
    ) -> Result<Answer, Error> {
        let tenant = tenant(tenant_name);
        let answer = self.plane.router.route(holder(&tenant), query, deadline).await?;
        self.plane.router.count(&tenant, &answer);
        Ok(answer)
    }

    pub async fn gate(
        &self,
        tenant_name: &str,
        handle: &str,
        calls: Vec<Call>,
        state: AgentState,
    ) -> (Arc<Snapshot>, Vec<Verdict>) {
        let tenant = tenant(tenant_name);
        let evidence = Evidence::Handle(handle.to_owned());
        let query =
            GateQuery { evidence, intent_handle: String::new(), calls, state, min_revision: 0 };
        let gated = self.plane.gate.judge(holder(&tenant), query, None).await;
        let verdicts = gated.expect("verdicts");
        (verdicts.snapshot, verdicts.verdicts)
    }

    /// Returns the verdict on one call: the tool's model-facing name, or the refusal.
    pub async fn gate_one(
        &self,
        tenant_name: &str,
        handle: &str,
        call: Call,
        state: AgentState,
    ) -> Result<String, Refused> {
        let (snapshot, verdicts) = self.gate(tenant_name, handle, vec![call], state).await;
        let verdict = verdicts.into_iter().next().expect("a verdict");
        let name = |allowed: Allowed| snapshot.tool(allowed.slot).model_name.to_string();
        verdict.map(name).map_err(|refused| *refused)
    }

    pub async fn pool(
        &self,
        tenant_name: &str,
        state: &AgentState,
        since: Option<Revision>,
    ) -> (Arc<Snapshot>, PoolDelta) {
        let query = PoolQuery { state: state.clone(), since, ..PoolQuery::default() };
        self.pool_as(tenant_name, query).await
    }

    pub async fn pool_as(&self, tenant_name: &str, query: PoolQuery) -> (Arc<Snapshot>, PoolDelta) {
        let tenant = tenant(tenant_name);
        self.plane.router.summary_pool(holder(&tenant), query).await.expect("a pool")
    }

    pub async fn schemas(
        &self,
        tenant_name: &str,
        names: &[&str],
        state: &AgentState,
        previous: &str,
    ) -> Result<SchemaLookup, Error> {
        let tenant = tenant(tenant_name);
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let state = state.clone();
        let previous = previous.to_owned();
        let query = SchemasQuery {
            names,
            detail: Detail::Schemas,
            state,
            previous,
            message_max: MESSAGE_MAX,
        };
        self.plane.router.schemas(holder(&tenant), &query).await
    }

    pub async fn try_search(
        &self,
        tenant_name: &str,
        query: SearchQuery,
    ) -> Result<SearchAnswer, Error> {
        let tenant = tenant(tenant_name);
        self.plane.router.search(holder(&tenant), query, None).await
    }

    pub async fn search(&self, tenant_name: &str, query: SearchQuery) -> SearchAnswer {
        self.try_search(tenant_name, query).await.expect("an answer")
    }
}

pub fn tenant(name: &str) -> TenantId {
    TenantId::parse(name).expect("a tenant")
}

fn holder(tenant: &TenantId) -> Holder<'_> {
    Holder { tenant, principal: "" }
}
