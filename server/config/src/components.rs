//! One typed struct per component, read out of the settings. Field comments say what a value means; ranges
//! and defaults are in `table`.

mod auth;
mod memory;
mod packs;
mod safety;
mod store;
mod telemetry;
mod usage;

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use toolgate_encoder::{AdapterChoice, Device, NumberFormat};
use toolgate_model_hub::KnownModel;

use super::origin::WebOrigin;
use super::secret::KeySource;
use super::settings::Settings;
use super::value::Value;
use super::worker_address::WorkerAddress;
pub use auth::{AuditConfig, AuthConfig, AuthMethod, JwksPlace, TlsConfig, TokenConfig};
pub use memory::MemoryConfig;
pub use packs::PacksConfig;
pub use safety::SafetyConfig;
pub use store::{SharedStoreConfig, StoreConfig};
pub use telemetry::TelemetryConfig;
use toolgate_core::deferral::Policy;
pub use usage::UsageConfig;

/// The file below the data directory that keeps a handle key nobody gave.
const KEPT_KEY: &str = "handle.key";

/// Listening, admission and draining.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Where gRPC is served.
    pub listen: SocketAddr,
    /// Where metrics and probes are served over HTTP.
    pub admin_listen: SocketAddr,
    /// Open gRPC connections.
    pub max_connections: usize,
    /// Those of one address.
    pub max_connections_per_address: usize,
    /// How long a connection may be without a request; `None` for any time.
    pub max_connection_idle: Option<Duration>,
    /// How many calls there may be.
    pub admission: AdmissionConfig,
    /// Bytes of memory; 0 for what the container may use.
    pub max_memory: u64,
    /// After which a connection is asked to end; `None` for never.
    pub max_connection_age: Option<Duration>,
    /// Streams of catalog changes that may be open.
    pub max_watches: usize,
    /// Bytes of answers that wait for their callers to read them.
    pub unsent_bytes: usize,
    /// Web pages that may call.
    pub cors_origins: Vec<WebOrigin>,
    /// The longest a call may take.
    pub max_deadline: Duration,
    /// How long calls in progress may take after a stop signal.
    pub drain_timeout: Duration,
}

/// What calls are held to.
#[derive(Debug, Clone, Copy)]
pub struct AdmissionConfig {
    /// Calls in progress.
    pub max_calls: usize,
    /// Calls in progress of one tenant; `None` for its share alone.
    pub max_calls_per_tenant: Option<usize>,
    /// Calls that one tenant may begin in a second; `None` for any number.
    pub calls_per_second_per_tenant: Option<u32>,
    /// How long prompt calls may wait for their turn on average before fewer are let in; `None` for any time.
    pub max_wait: Option<Duration>,
}

/// Sizes and counts beyond which a request is refused.
#[derive(Debug, Clone, Copy)]
pub struct LimitsConfig {
    /// Intents of one Route call.
    pub max_intents: usize,
    /// Bytes of one intent.
    pub max_intent_bytes: usize,
    /// Bytes of the agent state, encoded.
    pub max_state_bytes: usize,
    /// Tools of one RegisterServer call.
    pub max_tools_per_registration: usize,
    /// Bytes of one tool's definition.
    pub max_schema_bytes: usize,
    /// JSON levels of one tool's definition.
    pub max_schema_nesting: usize,
    /// Tools that a tenant may have.
    pub max_tools_per_tenant: usize,
    /// MCP servers that a tenant may have, announced ones among them.
    pub max_servers_per_tenant: usize,
    /// Bytes of one gRPC message.
    pub max_message_bytes: usize,
}

/// The in-process encoder, the workers, and what both are asked with.
#[derive(Debug, Clone)]
pub struct EncoderConfig {
    /// The model whose place in the cache is the model directory, where nobody names another.
    pub model: KnownModel,
    /// The model directory.
    pub model_dir: PathBuf,
    /// Requests that may wait.
    pub queue_capacity: usize,
    /// Tokens of one batch.
    pub max_batch_tokens: usize,
    /// Threads; `None` for one per core.
    pub threads: Option<NonZeroUsize>,
    /// What the in-process encoder runs on.
    pub device: Device,
    /// The in-process encoder's number format.
    pub format: NumberFormat,
    /// What is merged into the weights.
    pub adapter: AdapterChoice,
    /// Whether this process embeds when no worker can.
    pub in_process: bool,
    /// The workers.
    pub pool: PoolConfig,
    /// Bytes of remembered intents' embeddings; 0 to remember none.
    pub cache_memory: u64,
    /// What goes before an intent; `None` for what the model's files say.
    pub query_prefix: Option<String>,
    /// What goes before a summary; `None` for what the model's files say.
    pub passage_prefix: Option<String>,
}

/// The workers that embed, and how they are asked.
#[derive(Debug, Clone)]
pub struct PoolConfig {
    /// Workers that somebody else runs.
    pub workers: Vec<WorkerAddress>,
    /// A worker process is run here on each of these.
    pub local: Vec<Device>,
    /// The longest that a worker is waited for, with up to eight texts.
    pub attempt_timeout: Duration,
    /// Whether a late worker's request is also sent to another.
    pub hedge: bool,
    /// How often each worker must embed known texts.
    pub health_interval: Duration,
    /// One text in so many that workers embed is compared with this process; 0 for none.
    pub compare_one_in: usize,
}

impl PoolConfig {
    /// Whether there is nobody but the in-process encoder.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.workers.is_empty() && self.local.is_empty()
    }
}

/// The in-memory indexes.
#[derive(Debug, Clone, Copy)]
pub struct ShardConfig {
    /// Bytes that all tenants' indexes may take together.
    pub memory_budget: u64,
}

/// Defaults of Route.
#[derive(Debug, Clone, Copy)]
pub struct RouterConfig {
    /// The least overlap of the best tool, a cosine.
    pub threshold: f32,
    /// The least score of a chosen tool, as a share of the best one's; 0 when the threshold is for each tool.
    pub ratio: f32,
    /// Whether the clauses of an intent count.
    pub clauses: bool,
    /// The most tools chosen.
    pub top_k: usize,
    /// The most tokens that always-loaded tools cost together.
    pub always_load_tokens: usize,
    /// The most tools of one untrusted MCP server that are chosen.
    pub untrusted_max_per_server: usize,
    /// The most tools of all untrusted MCP servers together that are chosen while others want the places.
    pub untrusted_max_active: usize,
}

/// Deferral is decided by [`Policy`], which has the keys' own shape.
pub type DeferralConfig = Policy;

/// Signing of active-set handles.
#[derive(Debug, Clone)]
pub struct HandleConfig {
    /// Where the key comes from.
    pub key: KeySource,
    /// The key before it, which verifies still.
    pub previous_key: Option<KeySource>,
    /// How long a handle is good.
    pub ttl: Duration,
}

/// Logging.
#[derive(Debug, Clone, Copy)]
pub struct LogConfig {
    /// The least important records written.
    pub level: LogLevel,
    /// The form of a record.
    pub format: LogFormat,
    /// Whether intents are written.
    pub intents: bool,
}

/// How important a log record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogLevel {
    /// Something failed that somebody must look at.
    Error,
    /// Something is odd.
    Warn,
    /// Starts, stops, catalog changes.
    Info,
    /// Every call.
    Debug,
    /// Everything.
    Trace,
}

/// The form of a log record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// A line for people.
    Text,
    /// A JSON object a line.
    Json,
}

impl From<&Settings> for ServerConfig {
    fn from(settings: &Settings) -> Self {
        Self {
            listen: settings.address("server.listen"),
            admin_listen: settings.address("server.admin_listen"),
            max_connections: settings.count("server.max_connections"),
            max_connections_per_address: match settings.count("server.max_connections_per_address")
            {
                0 => settings.count("server.max_connections").div_ceil(2),
                most => most,
            },
            max_connection_idle: Some(settings.duration("server.max_connection_idle"))
                .filter(|idle| !idle.is_zero()),
            admission: settings.into(),
            max_memory: settings.count("server.max_memory") as u64,
            max_connection_age: Some(settings.duration("server.max_connection_age"))
                .filter(|age| !age.is_zero()),
            max_watches: settings.count("server.max_watches"),
            unsent_bytes: settings.count("server.unsent_memory"),
            cors_origins: settings.origins("server.cors_origins"),
            max_deadline: settings.duration("server.max_deadline"),
            drain_timeout: settings.duration("server.drain_timeout"),
        }
    }
}

impl From<&Settings> for AdmissionConfig {
    fn from(settings: &Settings) -> Self {
        let some = |name| Some(settings.count(name)).filter(|count| *count > 0);
        let rate = some("limits.calls_per_second_per_tenant");
        Self {
            max_calls: settings.count("server.max_concurrent_calls"),
            max_calls_per_tenant: some("server.max_concurrent_calls_per_tenant"),
            calls_per_second_per_tenant: rate.and_then(|rate| u32::try_from(rate).ok()),
            max_wait: Some(settings.duration("server.max_wait")).filter(|wait| !wait.is_zero()),
        }
    }
}

impl From<&Settings> for LimitsConfig {
    fn from(settings: &Settings) -> Self {
        Self {
            max_intents: settings.count("limits.max_intents"),
            max_intent_bytes: settings.count("limits.max_intent_size"),
            max_state_bytes: settings.count("limits.max_state_size"),
            max_tools_per_registration: settings.count("limits.max_tools_per_registration"),
            max_schema_bytes: settings.count("limits.max_schema_size"),
            max_schema_nesting: settings.count("limits.max_schema_nesting"),
            max_tools_per_tenant: settings.count("limits.max_tools_per_tenant"),
            max_servers_per_tenant: settings.count("limits.max_servers_per_tenant"),
            max_message_bytes: settings.count("limits.max_message_size"),
        }
    }
}

impl Default for LimitsConfig {
    fn default() -> Self {
        Self::from(&Settings::defaults())
    }
}

impl From<&Settings> for EncoderConfig {
    fn from(settings: &Settings) -> Self {
        Self {
            model: KnownModel::named(settings.choice("encoder.model")).unwrap_or_default(),
            model_dir: settings.path("encoder.model_dir"),
            queue_capacity: settings.count("encoder.queue_capacity"),
            max_batch_tokens: settings.count("encoder.max_batch_tokens"),
            threads: NonZeroUsize::new(settings.count("encoder.threads")),
            device: settings.device("encoder.device"),
            format: match settings.choice("encoder.format") {
                "f32" => NumberFormat::F32,
                "bf16" => NumberFormat::Bf16,
                "int8" => NumberFormat::Int8,
                _ => NumberFormat::Auto,
            },
            adapter: AdapterChoice::of(&settings.path("encoder.adapter")),
            in_process: settings.flag("encoder.in_process"),
            pool: settings.into(),
            cache_memory: settings.count("encoder.cache_memory") as u64,
            query_prefix: settings.text("encoder.query_prefix"),
            passage_prefix: settings.text("encoder.passage_prefix"),
        }
    }
}

impl From<&Settings> for PoolConfig {
    fn from(settings: &Settings) -> Self {
        let gpus = (0..settings.count("encoder.gpus")).map(Device::Cuda);
        Self {
            workers: settings.workers("encoder.workers"),
            local: gpus.chain(settings.devices("encoder.local_workers")).collect(),
            attempt_timeout: settings.duration("encoder.attempt_timeout"),
            hedge: settings.flag("encoder.hedge"),
            health_interval: settings.duration("encoder.health_interval"),
            compare_one_in: settings.count("encoder.compare_one_in"),
        }
    }
}

impl From<&Settings> for ShardConfig {
    fn from(settings: &Settings) -> Self {
        Self { memory_budget: settings.count("shard.memory_budget") as u64 }
    }
}

impl From<&Settings> for RouterConfig {
    fn from(settings: &Settings) -> Self {
        Self {
            threshold: settings.decimal("router.threshold") as f32,
            ratio: settings.decimal("router.ratio") as f32,
            clauses: settings.flag("router.clauses"),
            top_k: settings.count("router.top_k"),
            always_load_tokens: settings.count("router.always_load_tokens"),
            untrusted_max_per_server: settings.count("safety.untrusted_max_per_server"),
            untrusted_max_active: settings.count("safety.untrusted_max_active"),
        }
    }
}

impl Default for RouterConfig {
    fn default() -> Self {
        Self::from(&Settings::defaults())
    }
}

impl From<&Settings> for DeferralConfig {
    fn from(settings: &Settings) -> Self {
        let mode = match settings.get("deferral.mode").value {
            Value::Mode(mode) => Some(mode),
            _ => None,
        };
        let tenants = match &settings.get("deferral.tenants").value {
            Value::TenantModes(modes) => modes.iter().cloned().collect(),
            _ => unreachable!("deferral.tenants is a list of modes in the table"),
        };
        Self {
            mode,
            tenants,
            kill_switch: settings.flag("deferral.kill_switch"),
            denied_models: settings.patterns("deferral.denied_models"),
            known_hosts: settings.patterns("deferral.known_hosts"),
            overhead_tokens: settings.count("deferral.overhead_tokens") as u64,
        }
    }
}

impl From<&Settings> for HandleConfig {
    fn from(settings: &Settings) -> Self {
        let key = match (&settings.get("handle.key").value, &settings.get("handle.key_file").value)
        {
            (Value::Secret(key), _) => KeySource::Given(key.clone()),
            (_, Value::Path(path)) => KeySource::File(path.clone()),
            _ => KeySource::Kept(settings.path("store.path").join(KEPT_KEY)),
        };
        let previous_key = settings.maybe_path("handle.previous_key_file").map(KeySource::File);
        Self { key, previous_key, ttl: settings.duration("handle.ttl") }
    }
}

impl From<&Settings> for LogConfig {
    fn from(settings: &Settings) -> Self {
        Self {
            level: match settings.choice("log.level") {
                "error" => LogLevel::Error,
                "warn" => LogLevel::Warn,
                "debug" => LogLevel::Debug,
                "trace" => LogLevel::Trace,
                _ => LogLevel::Info,
            },
            format: match settings.choice("log.format") {
                "json" => LogFormat::Json,
                _ => LogFormat::Text,
            },
            intents: settings.flag("log.intents"),
        }
    }
}
