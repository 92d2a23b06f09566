//! Tests of two planes over one store: one plane changes it, and the other follows.

use serde_json::json;
use tempfile::TempDir;
use tokio::sync::watch;

use super::*;
use crate::plane::PlaneConfig;
use toolgate_config::{LimitsConfig, MemoryConfig};
use toolgate_core::deferral::Policy;
use toolgate_core::identity::ServerName;
use toolgate_core::live::Live;
use toolgate_core::state::AgentState;
use toolgate_routing::catalog::plan::Mode;
use toolgate_routing::catalog::registration::Registration;
use toolgate_routing::encoder::words::WordEncoder;
use toolgate_routing::encoder::{EmbedFuture, Encoder, Encoders, Flow};
use toolgate_routing::gate::calls::Call;
use toolgate_routing::gate::handle::Holder;
use toolgate_routing::gate::key::HandleKey;
use toolgate_routing::gate::{Evidence, GateQuery};
use toolgate_routing::memory::MemoryMetrics;
use toolgate_routing::router::intent::Intent;
use toolgate_routing::router::query::RouteQuery;
use toolgate_routing::router::route::Degraded;
use toolgate_routing::shard::vectors::GRAPH_ABOVE;
use toolgate_store::ServerRecord;
use toolgate_store::sqlite::SqliteStore;

/// Marker of texts that are not embedded until the test releases the encoder.
const SLOW: &str = "glacial";

/// Word encoder that delays texts with the marker.
struct Held {
    fingerprint: &'static str,
    goes_on: watch::Receiver<bool>,
}

impl Encoder for Held {
    fn fingerprint(&self) -> &str {
        self.fingerprint
    }

    fn dimensions(&self) -> usize {
        WordEncoder.dimensions()
    }

    fn embed(&self, texts: Vec<String>, flow: Flow, by: Option<Instant>) -> EmbedFuture<'_> {
        let mut goes_on = self.goes_on.clone();
        Box::pin(async move {
            if texts.iter().any(|text| text.contains(SLOW)) {
                drop(goes_on.wait_for(|goes_on| *goes_on).await);
            }
            WordEncoder.embed(texts, flow, by).await
        })
    }
}

fn tenant() -> TenantId {
    TenantId::parse("acme").expect("a tenant")
}

/// Creates a plane that gives no verdicts on a catalog that it knows to be out of date.
async fn plane(folder: &TempDir, encoder: Held) -> Arc<Plane> {
    let store = SqliteStore::open(&folder.path().join("catalog.db")).await.expect("a store");
    let config = PlaneConfig {
        limits: Arc::new(Live::new(LimitsConfig::default())),
        memory_budget: 64 << 20,
        graph_above: GRAPH_ABOVE,
        handle_key: HandleKey::from_bytes(&[7; 32]).expect("a key"),
        handle_ttl: Duration::from_secs(600),
        deferral: Arc::new(Live::new(Policy::default())),
        packs: None,
        max_watches: 8,
        max_staleness: Duration::ZERO,
        copies: None,
        memory: (MemoryConfig::default(), MemoryMetrics::default()),
        vetting: None,
    };
    let encoder: Arc<dyn Encoder> = Arc::new(encoder);
    Arc::new(Plane::new(Arc::new(store), Encoders::bare(&encoder), config))
}

async fn register(plane: &Plane, descriptions: &[&str]) -> Revision {
    let tool = |(i, description): (usize, &&str)| {
        json!({"name": format!("t{i}"), "description": description,
               "inputSchema": {"type": "object"}})
    };
    let tools: Vec<_> = descriptions.iter().enumerate().map(tool).collect();
    let registration = Registration {
        server: ServerRecord::new(ServerName::parse("s").expect("a name")),
        body: json!({ "tools": tools }).to_string().into_bytes().into(),
        settings: HashMap::new(),
        mode: Mode::Replace,
        etag: String::new(),
        request: None,
        all_or_nothing: true,
    };
    let registered = plane.register(&tenant(), registration, None).await;
    registered.expect("a registration").revision
}

/// Returns the handle of a Route answer, and true if the answer is marked as possibly stale.
async fn route(plane: &Plane) -> (String, bool) {
    let tenant = tenant();
    let holder = Holder { tenant: &tenant, principal: "" };
    let query = RouteQuery::of(vec![Intent::new("refund invoice".to_owned(), 1.0)]);
    let answer = plane.router.route(holder, query, None).await.expect("an answer");
    let is_stale = answer.degraded.contains(&Degraded::StaleCatalog);
    (answer.handle, is_stale)
}

async fn gate(plane: &Plane, handle: &str) -> Result<bool, Error> {
    let tenant = tenant();
    let holder = Holder { tenant: &tenant, principal: "" };
    let call = Call { tool: "mcp__s__t0".to_owned(), ..Call::default() };
    let query = GateQuery {
        evidence: Evidence::Handle(handle.to_owned()),
        intent_handle: String::new(),
        calls: vec![call],
        state: AgentState::default(),
        min_revision: 0,
    };
    let verdicts = plane.gate.judge(holder, query, None).await?.verdicts;
    Ok(verdicts.iter().all(Result::is_ok))
}

#[tokio::test]
async fn who_has_not_followed_a_change_yet_does_not_vouch() {
    let folder = tempfile::tempdir().expect("a folder");
    let (_always, goes_on) = watch::channel(true);
    let leader = plane(&folder, Held { fingerprint: "leader", goes_on }).await;
    let (let_go, goes_on) = watch::channel(false);
    let follower = plane(&folder, Held { fingerprint: "follower", goes_on }).await;
    register(&leader, &["refund invoice"]).await;
    let mut seen = None;
    follower.catch_up(&mut seen).await.expect("a store");
    let (handle, is_stale) = route(&follower).await;
    assert!(!is_stale && gate(&follower, &handle).await.expect("it is current"));
    let changed = register(&leader, &["refund invoice", SLOW]).await;
    follower.catch_up(&mut seen).await.expect("a store");
    assert!(route(&follower).await.1, "Route says so");
    let refused = gate(&follower, &handle).await;
    assert!(matches!(refused, Err(Error::CatalogUnvouched { .. })), "{refused:?}");
    assert_ne!(follower.shards.served(&tenant()), Some(changed), "it is not built yet");
    let_go.send(true).expect("the encoder waits");
    let is_built = async {
        while follower.shards.served(&tenant()) != Some(changed) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), is_built).await.expect("built");
    let (handle, is_stale) = route(&follower).await;
    assert!(!is_stale && gate(&follower, &handle).await.expect("it is current"));
}
