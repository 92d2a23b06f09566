//! Typed settings, one struct per component, read from [`Settings`]. Field comments explain the values; ranges and
//! defaults are in `keys`.

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

use super::gpus::Gpus;
use super::keys;
use super::origin::WebOrigin;
use super::secret::KeySource;
use super::settings::Settings;
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
    pub dtype: NumberFormat,
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
    /// GPUs on which this server starts workers.
    pub gpus: Gpus,
    /// Devices on which this server starts workers, one worker process on each. Those of a number of GPUs are among them;
    /// those that have to be found are not.
    pub local: Vec<Device>,
    /// Connections to each worker; `None` for as many as suit the cores.
    pub connections: Option<NonZeroUsize>,
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
    /// True if a short message is also read with the user's message before it.
    pub context: bool,
    /// True if a message that only thanks, greets or takes leave gets no tool.
    pub courtesies: bool,
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
            listen: settings.read(&keys::SERVER_LISTEN),
            admin_listen: settings.read(&keys::SERVER_ADMIN_LISTEN),
            max_connections: settings.read(&keys::SERVER_MAX_CONNECTIONS),
            max_connections_per_address: match settings
                .read(&keys::SERVER_MAX_CONNECTIONS_PER_ADDRESS)
            {
                0 => settings.read(&keys::SERVER_MAX_CONNECTIONS).div_ceil(2),
                most => most,
            },
            max_connection_idle: Some(settings.read(&keys::SERVER_MAX_CONNECTION_IDLE))
                .filter(|idle| !idle.is_zero()),
            admission: settings.into(),
            max_memory: settings.read(&keys::SERVER_MAX_MEMORY),
            max_connection_age: Some(settings.read(&keys::SERVER_MAX_CONNECTION_AGE))
                .filter(|age| !age.is_zero()),
            max_watches: settings.read(&keys::SERVER_MAX_WATCHES),
            response_buffer_bytes: settings.read(&keys::SERVER_RESPONSE_BUFFER_LIMIT),
            cors_origins: settings.read(&keys::SERVER_CORS_ORIGINS),
            max_deadline: settings.read(&keys::SERVER_MAX_DEADLINE),
            drain_timeout: settings.read(&keys::SERVER_DRAIN_TIMEOUT),
        }
    }
}

impl From<&Settings> for AdmissionConfig {
    fn from(settings: &Settings) -> Self {
        let per_tenant = settings.read(&keys::SERVER_MAX_CONCURRENT_CALLS_PER_TENANT);
        let rate = settings.read(&keys::LIMITS_CALLS_PER_SECOND_PER_TENANT);
        Self {
            max_calls: settings.read(&keys::SERVER_MAX_CONCURRENT_CALLS),
            max_calls_per_tenant: Some(per_tenant).filter(|calls| *calls > 0),
            calls_per_second_per_tenant: Some(rate).filter(|rate| *rate > 0),
            max_wait: Some(settings.read(&keys::SERVER_MAX_WAIT)).filter(|wait| !wait.is_zero()),
        }
    }
}

impl From<&Settings> for LimitsConfig {
    fn from(settings: &Settings) -> Self {
        Self {
            max_intents: settings.read(&keys::LIMITS_MAX_INTENTS),
            max_intent_bytes: settings.read(&keys::LIMITS_MAX_INTENT_SIZE),
            max_state_bytes: settings.read(&keys::LIMITS_MAX_STATE_SIZE),
            max_messages_bytes: settings.read(&keys::LIMITS_MAX_MESSAGES_SIZE),
            max_tools_per_registration: settings.read(&keys::LIMITS_MAX_TOOLS_PER_REGISTRATION),
            max_schema_bytes: settings.read(&keys::LIMITS_MAX_SCHEMA_SIZE),
            max_schema_nesting: settings.read(&keys::LIMITS_MAX_SCHEMA_NESTING),
            max_tools_per_tenant: settings.read(&keys::LIMITS_MAX_TOOLS_PER_TENANT),
            max_servers_per_tenant: settings.read(&keys::LIMITS_MAX_SERVERS_PER_TENANT),
            max_message_bytes: settings.read(&keys::LIMITS_MAX_MESSAGE_SIZE),
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
            model: settings.read(&keys::ENCODER_MODEL),
            model_dir: settings.read(&keys::ENCODER_MODEL_DIR),
            queue_capacity: settings.read(&keys::ENCODER_QUEUE_CAPACITY),
            max_batch_tokens: settings.read(&keys::ENCODER_MAX_BATCH_TOKENS),
            threads: NonZeroUsize::new(settings.read(&keys::ENCODER_THREADS)),
            device: settings.read(&keys::ENCODER_DEVICE),
            dtype: settings.read(&keys::ENCODER_DTYPE),
            adapter: AdapterChoice::of(&settings.read(&keys::ENCODER_ADAPTER)),
            in_process: settings.read(&keys::ENCODER_IN_PROCESS),
            pool: settings.into(),
            cache_memory: settings.read(&keys::ENCODER_CACHE_MEMORY),
            query_prefix: settings.read_optional(&keys::ENCODER_QUERY_PREFIX),
            passage_prefix: settings.read_optional(&keys::ENCODER_PASSAGE_PREFIX),
        }
    }
}

impl From<&Settings> for PoolConfig {
    fn from(settings: &Settings) -> Self {
        let gpus = settings.read(&keys::ENCODER_GPUS);
        let counted = match gpus {
            Gpus::First(count) => count,
            Gpus::Auto | Gpus::Require => 0,
        };
        let first = (0..counted).map(Device::Cuda);
        Self {
            workers: settings.read(&keys::ENCODER_WORKERS),
            gpus,
            local: first.chain(settings.read(&keys::ENCODER_LOCAL_WORKERS)).collect(),
            connections: NonZeroUsize::new(settings.read(&keys::ENCODER_CONNECTIONS)),
            attempt_timeout: settings.read(&keys::ENCODER_ATTEMPT_TIMEOUT),
            hedge: settings.read(&keys::ENCODER_HEDGE),
            health_interval: settings.read(&keys::ENCODER_HEALTH_INTERVAL),
            compare_one_in: settings.read(&keys::ENCODER_COMPARE_ONE_IN),
        }
    }
}

impl From<&Settings> for ShardConfig {
    fn from(settings: &Settings) -> Self {
        Self {
            memory_budget: settings.read(&keys::SHARD_MEMORY_BUDGET),
            graph_above: settings.read(&keys::SHARD_GRAPH_ABOVE),
        }
    }
}

impl From<&Settings> for RouterConfig {
    fn from(settings: &Settings) -> Self {
        Self {
            threshold: settings.read(&keys::ROUTER_THRESHOLD) as f32,
            relative_cutoff: settings.read(&keys::ROUTER_RELATIVE_CUTOFF) as f32,
            clauses: settings.read(&keys::ROUTER_CLAUSES),
            context: settings.read(&keys::ROUTER_CONTEXT),
            courtesies: settings.read(&keys::ROUTER_COURTESIES),
            top_k: settings.read(&keys::ROUTER_TOP_K),
            always_load_tokens: settings.read(&keys::ROUTER_ALWAYS_LOAD_TOKENS),
            untrusted_max_per_server: settings.read(&keys::SAFETY_UNTRUSTED_MAX_PER_SERVER),
            untrusted_max_active: settings.read(&keys::SAFETY_UNTRUSTED_MAX_ACTIVE),
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
        Self {
            mode: settings.read_optional(&keys::DEFERRAL_MODE),
            tenants: settings.read(&keys::DEFERRAL_TENANTS).into_iter().collect(),
            kill_switch: settings.read(&keys::DEFERRAL_KILL_SWITCH),
            denied_models: settings.read(&keys::DEFERRAL_DENIED_MODELS),
            no_native_models: settings.read(&keys::DEFERRAL_NO_NATIVE_MODELS),
            trusted_hosts: settings.read(&keys::DEFERRAL_TRUSTED_HOSTS),
            overhead_tokens: settings.read(&keys::DEFERRAL_OVERHEAD_TOKENS),
        }
    }
}

impl From<&Settings> for HandleConfig {
    fn from(settings: &Settings) -> Self {
        let given = settings.read_optional(&keys::HANDLE_KEY).map(KeySource::Given);
        let file = || settings.read_optional(&keys::HANDLE_KEY_FILE).map(KeySource::File);
        let kept = || KeySource::Kept(settings.read(&keys::STORE_PATH).join(KEPT_KEY));
        Self {
            key: given.or_else(file).unwrap_or_else(kept),
            previous_key: settings
                .read_optional(&keys::HANDLE_PREVIOUS_KEY_FILE)
                .map(KeySource::File),
            ttl: settings.read(&keys::HANDLE_TTL),
        }
    }
}

impl From<&Settings> for LogConfig {
    fn from(settings: &Settings) -> Self {
        Self {
            level: settings.read(&keys::LOG_LEVEL),
            format: settings.read(&keys::LOG_FORMAT),
            intents: settings.read(&keys::LOG_INTENTS),
        }
    }
}
