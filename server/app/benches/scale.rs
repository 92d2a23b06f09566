//! Resources that a replica with many tenants needs: memory, processor time, and the time to load a shard from the
//! store. It uses real definitions (tests/data/servers), a real store and embeddings of noise. The environment variable
//! `TENANTS` sets the number of tenants; the default is 1,000. Prints a table.
#![expect(clippy::print_stdout, reason = "a bench talks to whoever runs it")]

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::runtime::Runtime;

use toolgate_app::plane::{Plane, PlaneConfig};
use toolgate_config::{LimitsConfig, MemoryConfig};
use toolgate_core::deferral::Policy;
use toolgate_core::identity::{ServerName, TenantId};
use toolgate_core::live::Live;
use toolgate_routing::catalog::plan::Mode;
use toolgate_routing::catalog::registration::Registration;
use toolgate_routing::encoder::{EmbedFuture, Embedded, Encoder, Encoders, Flow};
use toolgate_routing::gate::handle::Holder;
use toolgate_routing::gate::key::HandleKey;
use toolgate_routing::memory::MemoryMetrics;
use toolgate_routing::router::intent::Intent;
use toolgate_routing::router::query::RouteQuery;
use toolgate_routing::shard::vectors::GRAPH_ABOVE;
use toolgate_store::ServerRecord;
use toolgate_store::sqlite::SqliteStore;

const TOOLS_OF_A_TENANT: usize = 100;
const DIMENSIONS: usize = 384;
const CALLS: usize = 20_000;

/// Environment variable with the folder in which all tenants are registered.
const REGISTERED: &str = "TOOLGATE_SCALE_REGISTERED";

fn main() {
    // `cargo test` runs benches too, to check that they work.
    let is_test = std::env::args().any(|argument| argument == "--test");
    let asked = std::env::var("TENANTS").ok().and_then(|tenants| tenants.parse().ok());
    let tenants = asked.unwrap_or(if is_test { 3 } else { 1_000 });
    let calls = if is_test { 10 } else { CALLS };
    let runtime = Runtime::new().expect("a runtime");
    if let Some(folder) = std::env::var_os(REGISTERED) {
        runtime.block_on(measure(Path::new(&folder), tenants, calls));
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let registering = runtime.block_on(register_all(folder.path(), tenants));
    println!("{tenants} tenants of {TOOLS_OF_A_TENANT} tools");
    println!("registering a tenant (its embeddings apart): {registering:.1?}");
    // A process that registered nothing measures memory: otherwise memory freed by registration would be reused and not
    // be seen.
    let mut rest = Command::new(std::env::current_exe().expect("this program"));
    rest.args(std::env::args_os().skip(1)).env(REGISTERED, folder.path());
    assert!(rest.status().expect("a process").success(), "the rest failed");
}

async fn measure(folder: &Path, tenants: usize, calls: usize) {
    // A new plane on the same store, as after a restart.
    let plane = plane(folder).await;
    let loaded = load_all(&plane, tenants).await;
    let processor = processor_seconds();
    let began = Instant::now();
    for call in 0..calls {
        route(&plane, call.wrapping_mul(7_919) % tenants, call).await;
    }
    let routing = processor_seconds() - processor;
    let took = began.elapsed();

    let per_thousand = |bytes: u64| bytes as f64 * 1e3 / tenants as f64 / f64::from(1 << 20);
    let stored = size_of_files(folder);
    let known = plane.shard_memory_bytes();
    println!("store: {:.0} MiB for 1,000 tenants", per_thousand(stored));
    println!("memory: {:.0} MiB for 1,000 tenants", per_thousand(loaded.memory));
    println!("of which the budget knows: {:.0} MiB", per_thousand(known));
    println!("a shard from the store: p50 {:.2?}, p99 {:.2?}", loaded.p50, loaded.p99);
    println!("processor time of it: {:.2} ms", loaded.processor * 1e3 / tenants as f64);
    println!(
        "Route without its embedding: {:.0} us of processor time",
        routing * 1e6 / calls as f64
    );
    println!("one after another: {:.0} us", took.as_secs_f64() * 1e6 / calls as f64);
}

/// Registers all tenants and returns the mean time per tenant.
async fn register_all(folder: &Path, tenants: usize) -> Duration {
    let catalogs = catalogs();
    let plane = plane(folder).await;
    let began = Instant::now();
    for index in 0..tenants {
        for (name, body) in tools_of(&catalogs, index) {
            register(&plane, index, &name, body).await;
        }
    }
    began.elapsed() / count(tenants)
}

/// Resources that loading every tenant's shard took.
struct Loaded {
    memory: u64,
    /// Processor time in seconds.
    processor: f64,
    p50: Duration,
    p99: Duration,
}

async fn load_all(plane: &Plane, tenants: usize) -> Loaded {
    let resident = self::resident();
    let processor = processor_seconds();
    let mut cold: Vec<Duration> = Vec::with_capacity(tenants);
    for index in 0..tenants {
        let began = Instant::now();
        route(plane, index, 0).await;
        cold.push(began.elapsed());
    }
    cold.sort_unstable();
    Loaded {
        memory: self::resident().saturating_sub(resident),
        processor: processor_seconds() - processor,
        p50: cold[tenants / 2],
        p99: cold[tenants * 99 / 100],
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).expect("as many as can be counted")
}

/// Returns the name and the tools of each real MCP server.
fn catalogs() -> Vec<(String, Vec<Value>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/servers");
    let mut files: Vec<_> = fs::read_dir(folder)
        .expect("the catalogs")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    files.sort();
    let read = |path: &std::path::PathBuf| {
        let text = fs::read_to_string(path).expect("a catalog");
        let whole: Value = serde_json::from_str(&text).expect("JSON");
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        (name, whole["tools"].as_array().cloned().unwrap_or_default())
    };
    files.iter().map(read).collect()
}

/// Returns the tools of a tenant. Each tenant starts at another MCP server.
fn tools_of(catalogs: &[(String, Vec<Value>)], tenant: usize) -> Vec<(String, Vec<Value>)> {
    let mut taken = Vec::new();
    let mut left = TOOLS_OF_A_TENANT;
    for (name, tools) in catalogs.iter().cycle().skip(tenant % catalogs.len()) {
        let tools: Vec<_> = tools.iter().take(left).cloned().collect();
        left -= tools.len();
        taken.push((name.clone(), tools));
        if left == 0 {
            return taken;
        }
    }
    taken
}

fn tenant(index: usize) -> TenantId {
    TenantId::parse(&format!("tenant-{index}")).expect("a tenant")
}

async fn plane(folder: &Path) -> Plane {
    let store = SqliteStore::open(&folder.join("catalog.db")).await.expect("a store");
    let encoder: Arc<dyn Encoder> = Arc::new(Noise);
    let config = PlaneConfig {
        max_watches: 1,
        packs: None,
        copies: None,
        max_staleness: Duration::from_secs(900),
        vetting: None,
        memory: (MemoryConfig::default(), MemoryMetrics::default()),
        limits: Arc::new(Live::new(LimitsConfig::default())),
        memory_budget: 64 << 30,
        graph_above: GRAPH_ABOVE,
        handle_key: HandleKey::from_bytes(&[7; 32]).expect("a key"),
        handle_ttl: Duration::from_secs(600),
        deferral: Arc::new(Live::new(Policy::default())),
    };
    Plane::new(Arc::new(store), Encoders::bare(&encoder), config)
}

async fn register(plane: &Plane, index: usize, name: &str, tools: Vec<Value>) {
    let registration = Registration {
        server: ServerRecord::new(ServerName::parse(name).expect("a name")),
        body: json!({ "tools": tools }).to_string().into_bytes().into(),
        settings: HashMap::new(),
        mode: Mode::Replace,
        etag: String::new(),
        request: None,
        all_or_nothing: false,
    };
    plane.register(&tenant(index), registration, None).await.expect("a registration");
}

async fn route(plane: &Plane, index: usize, call: usize) {
    let tenant = tenant(index);
    let holder = Holder { tenant: &tenant, principal: "" };
    let text = format!("show me the open change {call} of the repository");
    let query = RouteQuery::of(vec![Intent::new(text, 1.0)]);
    plane.router.route(holder, query, None).await.expect("an answer");
}

/// Encoder that gives each text noise of unit length, the same for the same text.
struct Noise;

impl Encoder for Noise {
    fn fingerprint(&self) -> &str {
        "noise"
    }

    fn dimensions(&self) -> usize {
        DIMENSIONS
    }

    fn embed(&self, texts: Vec<String>, _: Flow, _: Option<Instant>) -> EmbedFuture<'_> {
        let embedded = texts.iter().map(|text| Embedded { vector: noise(text), truncated: false });
        Box::pin(std::future::ready(Ok(embedded.collect())))
    }
}

fn noise(text: &str) -> Vec<f32> {
    // FNV-1a makes the seed.
    let seed = text.bytes().fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    });
    let mut random = fastrand::Rng::with_seed(seed);
    let mut vector: Vec<f32> = (0..DIMENSIONS).map(|_| 2.0 * random.f32() - 1.0).collect();
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    vector.iter_mut().for_each(|x| *x /= length);
    vector
}

fn size_of_files(folder: &Path) -> u64 {
    let files = fs::read_dir(folder).expect("the folder");
    files.filter_map(|entry| Some(entry.ok()?.metadata().ok()?.len())).sum()
}

/// Returns the resident memory of the process in bytes.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0 kB");
    line.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap_or_default() << 10
}

/// Returns the processor time of the process on all cores, in seconds.
fn processor_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<_> = stat.rsplit(')').next().unwrap_or_default().split(' ').collect();
    let ticks = |index: usize| fields.get(index).and_then(|field| field.parse::<f64>().ok());
    (ticks(12).unwrap_or_default() + ticks(13).unwrap_or_default()) / 100.0
}
