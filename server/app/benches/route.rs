//! Benchmark of one Route call without its encoder: gate, search, choose, promote and seal, over catalogs of 100 to
//! 100,000 tools. The store and the encoder are fakes that answer from memory.

use std::collections::HashMap;
use std::hint::black_box;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use fastrand::Rng;
use tokio::runtime::{Builder, Runtime};

use toolgate_config::LimitsConfig;
use toolgate_core::identity::{ServerName, TenantId, ToolId, ToolName};
use toolgate_core::precondition::Precondition;
use toolgate_core::state::AgentState;
use toolgate_routing::catalog::check::{ToolCheck, ToolSettings, Work};
use toolgate_routing::catalog::plan::text_hash;
use toolgate_routing::encoder::{EmbedFuture, Embedded, Encoder, Encoders, Flow};
use toolgate_routing::gate::handle::Holder;
use toolgate_routing::gate::key::HandleKey;
use toolgate_routing::gate::visibility::Visibilities;
use toolgate_routing::router::Router;
use toolgate_routing::router::intent::Intent;
use toolgate_routing::router::query::{Options, RouteQuery};
use toolgate_routing::router::route::Answer;
use toolgate_routing::shard::shards::Shards;
use toolgate_routing::usage::Ledger;
use toolgate_store::{
    CatalogStore, ChangeFeed, ChangedTenant, Changes, Committed, ContentHash, EmbeddingStore, Hour,
    KeyReading, KeyStore, MemoryBounds, MemoryChanges, MemoryStore, MemoryVersion, PastTool,
    PendingRequest, PolicyChange, RecordedRequest, Revise, Revision, Sequence, ServerChange,
    ServerRecord, SessionStore, SimilarTools, Store, StoreError, StoreFuture, StoredCatalog,
    StoredEmbedding, StoredKey, StoredPolicy, StoredServer, StoredTool, TenantArchive,
    TenantContent, ToolCursor, ToolRecord, UsageAddition, UsageCount, UsageStore,
};

const SIZES: [usize; 4] = [100, 1_000, 10_000, 100_000];
const DIMENSIONS: usize = 384;
const TOOLS_OF_A_SERVER: usize = 50;

/// Number of tools per topic. Their embeddings are near each other, as those of real tools are.
const TOOLS_OF_A_TOPIC: u64 = 20;

/// Numbers of distinct conditions, and the number of tools that share them.
const CONDITIONS: [usize; 4] = [0, 10, 100, 1_000];
const CONDITIONS_TOOLS: usize = 1_000;

/// Milestone that the locked nine tenths of the tools require.
const MILESTONE: &str = "plan_approved";

fn route(c: &mut Criterion) {
    let runtime = Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let mut group = c.benchmark_group("route");
    for tools in SIZES {
        let plane = Plane::new(&runtime, FakeStore::new(tools));
        for (name, state, known) in [
            ("all_open", unlocked(), None),
            ("nine_tenths_locked", AgentState::default(), None),
            ("with_pool_revision", unlocked(), Some(1)),
        ] {
            let query = query(state, known);
            let answer = runtime.block_on(plane.route(query.clone()));
            assert!(!answer.active.is_empty(), "nothing was chosen");
            print_stages(name, tools, &answer);
            group.bench_with_input(BenchmarkId::new(name, tools), &query, |b, query| {
                b.iter(|| black_box(runtime.block_on(plane.route(query.clone()))));
            });
        }
    }
    group.finish();
}

/// Measures the cost of distinct conditions. The tools share them evenly, and all of them hold.
fn conditions(c: &mut Criterion) {
    let runtime = Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let mut group = c.benchmark_group("conditions");
    for conditions in CONDITIONS {
        let plane = Plane::new(&runtime, FakeStore::new(CONDITIONS_TOOLS).under(conditions));
        let query = query(unlocked(), None);
        let answer = runtime.block_on(plane.route(query.clone()));
        let visibilities = Visibilities::of(&answer.snapshot, &unlocked());
        assert!(visibilities.open(&answer.snapshot).is_none(), "a condition does not hold");
        print_stages("conditions", conditions, &answer);
        group.bench_with_input(BenchmarkId::from_parameter(conditions), &query, |b, query| {
            b.iter(|| black_box(runtime.block_on(plane.route(query.clone()))));
        });
    }
    group.finish();
}

/// Prints the times of the stages of one call.
#[expect(clippy::print_stderr, reason = "a bench talks to whoever runs it")]
fn print_stages(name: &str, tools: usize, answer: &Answer) {
    let stages: Vec<_> =
        answer.timings.iter().map(|(stage, micros)| format!("{stage} {micros} us")).collect();
    eprintln!("{name}/{tools}, one call: {}", stages.join(", "));
}

fn unlocked() -> AgentState {
    AgentState { milestones: [MILESTONE.to_owned()].into(), ..AgentState::default() }
}

fn query(state: AgentState, known_pool_revision: Option<Revision>) -> RouteQuery {
    let text = "find what changed since friday".to_owned();
    RouteQuery {
        state,
        known_pool_revision,
        options: Options { context_window: Some(200_000), ..Options::default() },
        ..RouteQuery::of(vec![Intent::new(text, 1.0)])
    }
}

/// Router with one tenant whose shard is complete.
struct Plane {
    router: Router,
    tenant: TenantId,
}

impl Plane {
    fn new(runtime: &Runtime, store: FakeStore) -> Self {
        let tools = store.catalog.tools.len();
        let store = Arc::new(store);
        let encoder: Arc<dyn Encoder> = Arc::new(FakeEncoder(embedding(tools / 2)));
        let usage = Arc::new(Ledger::new(Arc::clone(&store) as _));
        let shards = Arc::new(Shards::new(store, Arc::clone(&encoder), 4 << 30));
        let key = HandleKey::from_bytes(&[7; 32]).expect("32 bytes");
        let intents = Encoders::bare(&encoder).intents;
        let ttl = Duration::from_secs(3_600);
        let router = Router::new(shards, intents, usage, key, ttl, Arc::default());
        let plane = Self { router, tenant: TenantId::parse("bench").expect("a tenant") };
        runtime.block_on(async {
            while plane.route(query(unlocked(), None)).await.snapshot.lacks_graph() {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        });
        plane
    }

    async fn route(&self, query: RouteQuery) -> Answer {
        let holder = Holder { tenant: &self.tenant, principal: "" };
        self.router.route(holder, query, None).await.expect("an answer")
    }
}

/// Encoder that gives every text the same embedding.
struct FakeEncoder(Vec<f32>);

impl Encoder for FakeEncoder {
    fn fingerprint(&self) -> &str {
        "fake"
    }

    fn dimensions(&self) -> usize {
        DIMENSIONS
    }

    fn embed(&self, texts: Vec<String>, _: Flow, _: Option<Instant>) -> EmbedFuture<'_> {
        let embedded = Embedded { vector: self.0.clone(), truncated: false };
        Box::pin(std::future::ready(Ok(vec![embedded; texts.len()])))
    }
}

/// Read-only catalog in memory.
struct FakeStore {
    catalog: StoredCatalog,
    embeddings: HashMap<ContentHash, Vec<f32>>,
}

impl FakeStore {
    fn new(tools: usize) -> Self {
        let template = template();
        let tools: Vec<_> = (0..tools).map(|index| tool(&template, index)).collect();
        let hash = |tool: &StoredTool| text_hash(&tool.record.summary);
        let embeddings =
            tools.iter().enumerate().map(|(index, tool)| (hash(tool), embedding(index))).collect();
        let servers = (0..tools.len().div_ceil(TOOLS_OF_A_SERVER)).map(server).collect();
        let revision = 1;
        let pool_floor = 1;
        let catalog =
            StoredCatalog { revision, servers, tools, pool_floor, ..StoredCatalog::default() };
        Self { catalog, embeddings }
    }

    /// Replaces the conditions of all tools by this number of distinct ones.
    fn under(mut self, conditions: usize) -> Self {
        for (index, tool) in self.catalog.tools.iter_mut().enumerate() {
            let source =
                |n| format!("!('blocked-{n}' in state.milestones) && state.calls.size() < 9");
            let cel = (conditions > 0).then(|| Precondition::Cel(source(index % conditions)));
            tool.record.precondition = cel;
        }
        self
    }
}

/// Returns one tool in the form of a registration. The others differ only in their names.
fn template() -> ToolRecord {
    let text = r#"{"name": "search_log_0", "description": "Searches the log for entries of a time span.",
        "inputSchema": {"type": "object", "required": ["since"], "properties": {
            "since": {"type": "string", "description": "Where the span begins, in ISO 8601."},
            "until": {"type": "string", "description": "Where it ends; now, when absent."},
            "limit": {"type": "integer", "minimum": 1, "maximum": 500}}}}"#;
    let server = server_name(0);
    let limits = LimitsConfig::default();
    let settings = HashMap::<String, ToolSettings>::new();
    let check = ToolCheck {
        server: &server,
        settings: &settings,
        limits: &limits,
        is_trusted: false,
        work: Work::default(),
    };
    check.check(0, text).expect("a good tool")
}

fn tool(template: &ToolRecord, index: usize) -> StoredTool {
    let server = server_name(index / TOOLS_OF_A_SERVER);
    let name = format!("search_log_{index}");
    let locked = !index.is_multiple_of(10);
    let record = ToolRecord {
        model_name: format!("mcp__{}__{name}", server.as_str()),
        summary: format!("search log {index}: Searches the log for entries of a time span."),
        definition: template.definition.replace("search_log_0", &name),
        hash: text_hash(&name),
        precondition: locked.then(|| Precondition::MilestoneReached(MILESTONE.to_owned())),
        name: ToolName::parse(&name).expect("a good name"),
        server,
        ..template.clone()
    };
    StoredTool { record, summary_revision: 1 }
}

fn server(index: usize) -> StoredServer {
    let record = ServerRecord::new(server_name(index));
    StoredServer { record, revision: 1, updated_ms: 0, tool_count: TOOLS_OF_A_SERVER as u32 }
}

fn server_name(index: usize) -> ServerName {
    ServerName::parse(&format!("logs-{index}")).expect("a good name")
}

/// Returns the embedding of a tool, the same on every run. It is half its topic's direction and half its own.
fn embedding(index: usize) -> Vec<f32> {
    let index = index as u64;
    let mut topic = Rng::with_seed(index / TOOLS_OF_A_TOPIC);
    let mut own = Rng::with_seed(index + (1 << 32));
    let mut vector: Vec<f32> =
        (0..DIMENSIONS).map(|_| 2.0 * (topic.f32() + own.f32() - 1.0)).collect();
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    vector.iter_mut().for_each(|x| *x /= length);
    vector
}

/// Fails, for methods that Route never calls.
fn unused<'a, T: Send + 'a>() -> StoreFuture<'a, T> {
    let error = StoreError::Damaged("the bench's store is for reading".to_owned());
    Box::pin(std::future::ready(Err(error)))
}

impl KeyStore for FakeStore {
    fn create_key<'a>(&'a self, _: &'a StoredKey) -> StoreFuture<'a, ()> {
        unused()
    }

    fn find_key<'a>(&'a self, _: &'a str) -> StoreFuture<'a, Option<KeyReading>> {
        unused()
    }

    fn read_clock_ms(&self) -> StoreFuture<'_, i64> {
        unused()
    }

    fn list_keys<'a>(&'a self, _: &'a str, _: u32) -> StoreFuture<'a, Vec<StoredKey>> {
        unused()
    }

    fn revoke_key<'a>(&'a self, _: &'a str, _: i64) -> StoreFuture<'a, bool> {
        unused()
    }

    fn mark_keys_used<'a>(&'a self, _: &'a [String], _: i64) -> StoreFuture<'a, ()> {
        unused()
    }
}

impl SessionStore for FakeStore {
    fn end_session<'a>(&'a self, _: &'a str, _: Duration) -> StoreFuture<'a, ()> {
        unused()
    }

    fn is_session_ended<'a>(&'a self, _: &'a str) -> StoreFuture<'a, bool> {
        unused()
    }
}

impl CatalogStore for FakeStore {
    fn revision<'a>(&'a self, _: &'a TenantId) -> StoreFuture<'a, Option<Revision>> {
        Box::pin(std::future::ready(Ok(Some(self.catalog.revision))))
    }

    fn load_catalog<'a>(&'a self, _: &'a TenantId) -> StoreFuture<'a, Option<StoredCatalog>> {
        Box::pin(std::future::ready(Ok(Some(self.catalog.clone()))))
    }

    fn read_server<'a>(
        &'a self,
        _: &'a TenantId,
        _: &'a ServerName,
    ) -> StoreFuture<'a, Option<(StoredServer, Vec<StoredTool>)>> {
        unused()
    }

    fn past_tools<'a>(
        &'a self,
        _: &'a TenantId,
        _: &'a ServerName,
    ) -> StoreFuture<'a, Vec<PastTool>> {
        unused()
    }

    fn similar_tools<'a>(
        &'a self,
        _: &'a TenantId,
        _: &'a ServerName,
        _: &'a [i64],
    ) -> StoreFuture<'a, SimilarTools> {
        unused()
    }

    fn list_servers<'a>(
        &'a self,
        _: &'a TenantId,
        _: Option<&'a str>,
        _: u32,
    ) -> StoreFuture<'a, Vec<StoredServer>> {
        unused()
    }

    fn list_tools<'a>(
        &'a self,
        _: &'a TenantId,
        _: Option<&'a ServerName>,
        _: Option<&'a ToolCursor>,
        _: u32,
    ) -> StoreFuture<'a, Vec<StoredTool>> {
        unused()
    }

    fn find_request<'a>(
        &'a self,
        _: &'a TenantId,
        _: &'a str,
    ) -> StoreFuture<'a, Option<RecordedRequest>> {
        unused()
    }

    fn record_request<'a>(
        &'a self,
        _: &'a TenantId,
        _: PendingRequest,
    ) -> StoreFuture<'a, Committed> {
        unused()
    }

    fn commit<'a>(&'a self, _: &'a TenantId, _: ServerChange) -> StoreFuture<'a, Committed> {
        unused()
    }

    fn remove_server<'a>(
        &'a self,
        _: &'a TenantId,
        _: &'a ServerName,
        _: Revision,
    ) -> StoreFuture<'a, Committed> {
        unused()
    }

    fn read_policy<'a>(&'a self, _: &'a TenantId) -> StoreFuture<'a, Option<StoredPolicy>> {
        unused()
    }

    fn set_policy<'a>(&'a self, _: &'a TenantId, _: PolicyChange) -> StoreFuture<'a, Committed> {
        unused()
    }
}

impl EmbeddingStore for FakeStore {
    fn load_embeddings<'a>(
        &'a self,
        _: &'a TenantId,
        _: &'a str,
    ) -> StoreFuture<'a, HashMap<ContentHash, Vec<f32>>> {
        Box::pin(std::future::ready(Ok(self.embeddings.clone())))
    }

    fn save_embeddings<'a>(
        &'a self,
        _: &'a TenantId,
        _: &'a str,
        _: &'a [StoredEmbedding],
    ) -> StoreFuture<'a, ()> {
        unused()
    }

    fn drop_embeddings<'a>(
        &'a self,
        _: &'a TenantId,
        _: &'a str,
        _: &'a [ContentHash],
    ) -> StoreFuture<'a, ()> {
        unused()
    }
}

impl UsageStore for FakeStore {
    fn add_usage<'a>(&'a self, _: &'a [UsageAddition]) -> StoreFuture<'a, ()> {
        unused()
    }

    fn read_usage<'a>(
        &'a self,
        _: &'a TenantId,
        _: Range<Hour>,
        _: Hour,
    ) -> StoreFuture<'a, Vec<UsageCount>> {
        unused()
    }

    fn forget_usage(&self, _: Hour) -> StoreFuture<'_, ()> {
        unused()
    }
}

impl MemoryStore for FakeStore {
    fn read_memory<'a>(
        &'a self,
        _: &'a TenantId,
        _: MemoryVersion,
    ) -> StoreFuture<'a, MemoryChanges> {
        unused()
    }

    fn revise_memory<'a>(
        &'a self,
        _: &'a TenantId,
        _: &'a [ToolId],
        _: Revise<'a>,
        _: MemoryBounds,
    ) -> StoreFuture<'a, ()> {
        unused()
    }

    fn clear_memory<'a>(
        &'a self,
        _: &'a TenantId,
        _: Option<&'a ServerName>,
        _: Option<&'a ToolName>,
    ) -> StoreFuture<'a, u64> {
        unused()
    }
}

impl ChangeFeed for FakeStore {
    fn changes<'a>(&'a self, _: &'a TenantId, _: Revision) -> StoreFuture<'a, Changes> {
        unused()
    }

    fn is_shared(&self) -> bool {
        false
    }

    fn clock_ms(&self) -> i64 {
        0
    }

    fn hint(&self) -> StoreFuture<'_, ()> {
        Box::pin(std::future::pending())
    }

    fn last_change(&self) -> StoreFuture<'_, Sequence> {
        unused()
    }

    fn changed_tenants(&self, _: Sequence, _: u32) -> StoreFuture<'_, Vec<ChangedTenant>> {
        unused()
    }
}

impl TenantArchive for FakeStore {
    fn read_content<'a>(&'a self, _: &'a TenantId) -> StoreFuture<'a, Option<TenantContent>> {
        unused()
    }

    fn restore_content<'a>(&'a self, _: &'a TenantId, _: &'a TenantContent) -> StoreFuture<'a, ()> {
        unused()
    }

    fn list_tenants<'a>(
        &'a self,
        _: Option<&'a TenantId>,
        _: u32,
    ) -> StoreFuture<'a, Vec<TenantId>> {
        unused()
    }
}

impl Store for FakeStore {
    fn ping(&self) -> StoreFuture<'_, ()> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn close(&self) -> StoreFuture<'_, ()> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn failures(&self) -> u64 {
        0
    }
}

criterion_group!(benches, route, conditions);
criterion_main!(benches);
