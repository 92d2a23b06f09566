//! Typed settings, one struct per component, read from [`Settings`]. Field comments explain the values; ranges and
//! defaults are in `table`.

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

/// Name of the file in the data directory that keeps a generated handle key.
const KEPT_KEY: &str = "handle.key";

/// Listeners, admission control and draining.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Address of the gRPC listener.
    pub listen: SocketAddr,
    /// Address of the HTTP listener for metrics and probes.
    pub admin_listen: SocketAddr,
    /// Maximum number of open gRPC connections.
    pub max_connections: usize,
    /// Maximum number of open gRPC connections from one address.
    pub max_connections_per_address: usize,
    /// Time after which a connection without requests is closed; `None` for no limit.
    pub max_connection_idle: Option<Duration>,
    /// Limits on calls in progress.
    pub admission: AdmissionConfig,
    /// Memory limit of the process in bytes; 0 for the container's limit.
    pub max_memory: u64,
    /// Age at which a connection is asked to end; `None` for no limit.
    pub max_connection_age: Option<Duration>,
    /// Maximum number of open streams of catalog changes.
    pub max_watches: usize,
    /// Memory for answers that callers have not read yet, in bytes.
    pub response_buffer_bytes: usize,
    /// Origins of web pages that may call.
    pub cors_origins: Vec<WebOrigin>,
    /// Longest time that a call may take.
    pub max_deadline: Duration,
    /// Time that calls in progress may take after a stop signal.
    pub drain_timeout: Duration,
}

/// Limits on calls in progress.
#[derive(Debug, Clone, Copy)]
pub struct AdmissionConfig {
    /// Maximum number of calls in progress.
    pub max_calls: usize,
    /// Maximum number of calls in progress of one tenant; `None` for the tenant's share alone.
    pub max_calls_per_tenant: Option<usize>,
    /// Maximum number of calls that one tenant may begin per second; `None` for no limit.
    pub calls_per_second_per_tenant: Option<u32>,
    /// Average wait of interactive calls above which fewer calls are admitted; `None` for no limit.
    pub max_wait: Option<Duration>,
}

/// Sizes and counts above which a request is refused.
#[derive(Debug, Clone, Copy)]
pub struct LimitsConfig {
    /// Maximum number of intents in one Route call.
    pub max_intents: usize,
    /// Maximum size of one intent in bytes.
    pub max_intent_bytes: usize,
    /// Maximum size of the encoded agent state in bytes.
    pub max_state_bytes: usize,
    /// Maximum size of the conversation in an agent state, in bytes.
    pub max_messages_bytes: usize,
    /// Maximum number of tools in one RegisterServer call.
    pub max_tools_per_registration: usize,
    /// Maximum size of one tool's definition in bytes.
    pub max_schema_bytes: usize,
    /// Maximum nesting of one tool's definition in JSON levels.
    pub max_schema_nesting: usize,
    /// Maximum number of tools of one tenant.
    pub max_tools_per_tenant: usize,
    /// Maximum number of MCP servers of one tenant, including announced ones.
    pub max_servers_per_tenant: usize,
    /// Maximum size of one gRPC message in bytes.
    pub max_message_bytes: usize,
}

/// In-process encoder, encoder workers and the settings that both share.
#[derive(Debug, Clone)]
pub struct EncoderConfig {
    /// Named model. Its place in the cache is the model directory unless the configuration names another directory.
    pub model: KnownModel,
    /// Directory of the model's files.
    pub model_dir: PathBuf,
    /// Maximum number of requests that wait for the encoder.
    pub queue_capacity: usize,
    /// Maximum number of tokens in one batch.
    pub max_batch_tokens: usize,
    /// Number of threads; `None` for one per core.
    pub threads: Option<NonZeroUsize>,
    /// Device of the in-process encoder.
    pub device: Device,
    /// Number format of the in-process encoder.
    pub format: NumberFormat,
    /// Adapter that is merged into the weights.
    pub adapter: AdapterChoice,
    /// True if this process embeds when no worker can.
    pub in_process: bool,
    /// Encoder workers.
    pub pool: PoolConfig,
    /// Memory for cached embeddings of intents, in bytes; 0 to cache none.
    pub cache_memory: u64,
    /// Text to put before an intent; `None` for the prefix in the model's files.
    pub query_prefix: Option<String>,
    /// Text to put before a summary; `None` for the prefix in the model's files.
    pub passage_prefix: Option<String>,
}

/// Encoder workers and the settings for asking them.
#[derive(Debug, Clone)]
pub struct PoolConfig {
    /// Addresses of workers that this server does not start.
    pub workers: Vec<WorkerAddress>,
    /// Devices on which this server starts workers, one worker process on each.
    pub local: Vec<Device>,
    /// Longest wait for a worker's answer to up to eight texts; more texts get more time.
    pub attempt_timeout: Duration,
    /// True if a slow worker's request is also sent to a second worker.
    pub hedge: bool,
    /// Interval at which each worker must embed known texts.
    pub health_interval: Duration,
    /// Sampling of the comparison with this process: one in this many texts that workers embed; 0 for none.
    pub compare_one_in: usize,
}

impl PoolConfig {
    /// Returns true if there are no workers, so that only the in-process encoder can embed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.workers.is_empty() && self.local.is_empty()
    }
}

/// In-memory indexes.
#[derive(Debug, Clone, Copy)]
pub struct ShardConfig {
    /// Memory for the indexes of all tenants together, in bytes.
    pub memory_budget: u64,
    /// Number of tools above which a shard gets a graph for approximate search.
    pub graph_above: usize,
}

/// Default settings of Route.
#[derive(Debug, Clone, Copy)]
pub struct RouterConfig {
    /// Minimum overlap of the best tool, a cosine from -1 to 1.
    pub threshold: f32,
    /// Minimum score of a chosen tool as a share of the best score, 0 to 1; 0 applies the threshold to each tool.
    pub relative_cutoff: f32,
    /// True if the clauses of an intent are searched one by one too.
    pub clauses: bool,
    /// Maximum number of chosen tools.
    pub top_k: usize,
    /// Maximum number of tokens that always-loaded tools cost together.
    pub always_load_tokens: usize,
    /// Maximum number of chosen tools of one untrusted MCP server.
    pub untrusted_max_per_server: usize,
    /// Maximum number of chosen tools of all untrusted MCP servers together while other tools want the places.
    pub untrusted_max_active: usize,
}

/// Settings of deferral. [`Policy`] has the same shape as the configuration keys.
pub type DeferralConfig = Policy;

/// Signing of active-set handles.
#[derive(Debug, Clone)]
pub struct HandleConfig {
    /// Source of the key that signs handles.
    pub key: KeySource,
    /// Source of the previous key, which still verifies handles but signs none.
    pub previous_key: Option<KeySource>,
    /// Lifetime of a handle.
    pub ttl: Duration,
}

/// Settings of the log.
#[derive(Debug, Clone, Copy)]
pub struct LogConfig {
    /// Level of the least important records that are written.
    pub level: LogLevel,
    /// Format of a record.
    pub format: LogFormat,
    /// True if intents are written to the log.
    pub intents: bool,
}

/// Importance of a log record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogLevel {
    /// Failures that an operator must look at.
    Error,
    /// Unusual events.
    Warn,
    /// Starts, stops and catalog changes.
    Info,
    /// Every call.
    Debug,
    /// All records.
    Trace,
}

/// Format of a log record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// One line of text per record, for people.
    Text,
    /// One JSON object per line.
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
            response_buffer_bytes: settings.count("server.response_buffer_limit"),
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
            max_messages_bytes: settings.count("limits.max_messages_size"),
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
            format: match settings.choice("encoder.dtype") {
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
        Self {
            memory_budget: settings.count("shard.memory_budget") as u64,
            graph_above: settings.count("shard.graph_above"),
        }
    }
}

impl From<&Settings> for RouterConfig {
    fn from(settings: &Settings) -> Self {
        Self {
            threshold: settings.decimal("router.threshold") as f32,
            relative_cutoff: settings.decimal("router.relative_cutoff") as f32,
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
            trusted_hosts: settings.patterns("deferral.trusted_hosts"),
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
