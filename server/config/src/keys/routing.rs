//! Keys of the store, the encoder, routing, handles, usage, the log and traces.

use std::path::PathBuf;
use std::time::Duration;

use toolgate_core::deferral::{Mode, Pattern};
use toolgate_core::identity::TenantId;
use toolgate_encoder::{Device, NumberFormat};
use toolgate_model_hub::KnownModel;

use super::MIB;
use crate::components::{LogFormat, LogLevel};
use crate::gpus::Gpus;
use crate::key::{Fallback, Key, OptionalKey};
use crate::secret::SecretKey;
use crate::store_url::StoreUrl;
use crate::typed_kind::{
    DATABASE_URL, DEVICE, DEVICES, FLAG, GPUS, MODE, PATH, PATTERNS, SECRET, TENANT_MODES, TENANTS,
    TEXT, WORKERS, choice, count, decimal, size, span,
};
use crate::worker_address::WorkerAddress;

pub const STORE_PATH: Key<PathBuf> = Key::directory(
    "store.path",
    Fallback::DataDirectory,
    "The data directory: the catalog, the handle key; with a store.url, what this replica keeps \
     for when the store is down. Made when missing; one server at a time.",
);
pub const STORE_URL: OptionalKey<StoreUrl> = OptionalKey::new(
    "store.url",
    DATABASE_URL,
    "A PostgreSQL database that replicas share (docs/store.md). Better given by the environment \
     or by url_file than written here. Absent: the catalog is in store.path.",
);
pub const STORE_URL_FILE: OptionalKey<PathBuf> = OptionalKey::new(
    "store.url_file",
    PATH,
    "A file that holds the URL, such as a mounted secret. Not together with url.",
);
pub const STORE_MAX_CONNECTIONS: Key<u32> = Key::new(
    "store.max_connections",
    count(1, 1_000),
    "10",
    "The most connections to the database.",
);
pub const STORE_STATEMENT_TIMEOUT: Key<Duration> = Key::new(
    "store.statement_timeout",
    span(100, 600_000),
    "10s",
    "The longest that the database may take for a statement.",
);
pub const STORE_CONNECT_TIMEOUT: Key<Duration> = Key::new(
    "store.connect_timeout",
    span(100, 60_000),
    "5s",
    "The longest that a connection to the database is waited for.",
);
pub const STORE_POLL_INTERVAL: Key<Duration> = Key::new(
    "store.poll_interval",
    span(50, 60_000),
    "1s",
    "How often the database is asked what other replicas changed.",
);
pub const STORE_NOTIFY: Key<bool> = Key::new(
    "store.notify",
    FLAG,
    "true",
    "Ask at once when the database says that something changed. It can't be heard through a \
     pooler.",
);
pub const STORE_MAX_STALENESS: Key<Duration> = Key::new(
    "store.max_staleness",
    span(100, 604_800_000),
    "15m",
    "How long Gate goes on allowing calls while the database can't be reached: afterwards it \
     refuses them, since what was removed, quarantined or denied meanwhile is not known.",
);
pub const STORE_SNAPSHOT_BUDGET: Key<u64> = Key::new(
    "store.snapshot_budget",
    size(0, 1 << 50),
    "2GiB",
    "Disk for what this replica keeps of the catalogs that it serves, for when the database is \
     down. 0B: none.",
);
pub const ENCODER_MODEL: Key<KnownModel> = Key::new(
    "encoder.model",
    choice(),
    KnownModel::NAMES[0],
    "The encoder's model, from the place where `toolgate model fetch --model NAME` puts it.",
);
pub const ENCODER_MODEL_DIR: Key<PathBuf> = Key::directory(
    "encoder.model_dir",
    Fallback::ModelDirectory,
    "Any other model directory, for an encoder that has no name here (docs/languages.md). Not \
     together with model.",
)
.with_variable("TOOLGATE_MODEL_DIR");
pub const ENCODER_QUEUE_CAPACITY: Key<usize> = Key::new(
    "encoder.queue_capacity",
    count(1, 1_000_000),
    "1024",
    "Requests that may wait for the encoder; one more is refused.",
);
pub const ENCODER_MAX_BATCH_TOKENS: Key<usize> = Key::new(
    "encoder.max_batch_tokens",
    count(256, 1_048_576),
    "512",
    "Tokens that the encoder takes at a time, at most: fewer where that takes longer than 10 ms. \
     A short intent waits for no longer batch than this.",
);
pub const ENCODER_THREADS: Key<usize> =
    Key::new("encoder.threads", count(0, 1_024), "0", "Threads of the encoder. 0: one per core.");
pub const ENCODER_DEVICE: Key<Device> = Key::new(
    "encoder.device",
    DEVICE,
    "auto",
    "What the in-process encoder runs on. auto: the CPU; GPUs are for workers (encoder.gpus), which \
     may fail without the server.",
);
pub const ENCODER_DTYPE: Key<NumberFormat> = Key::new(
    "encoder.dtype",
    choice(),
    "auto",
    "The in-process encoder's numbers. auto: the fastest that finds tools as well as f32 does.",
);
pub const ENCODER_ADAPTER: Key<PathBuf> = Key::new(
    "encoder.adapter",
    PATH,
    "auto",
    "What is merged into the model's weights. auto: the adapter for tools that comes with the \
     program, if there is one for these weights. none: the model as it is. Else an adapter's \
     file. Workers must have the same.",
);
pub const ENCODER_IN_PROCESS: Key<bool> = Key::new(
    "encoder.in_process",
    FLAG,
    "true",
    "Embed in this process when no worker can. false: words decide then, and answers say \
     `degraded`. The model is loaded all the same, to know what workers must answer.",
);
pub const ENCODER_WORKERS: Key<Vec<WorkerAddress>> = Key::new(
    "encoder.workers",
    WORKERS,
    "",
    "Encoder workers: \"host:port\" for one, \"dns://name:port\" for each address that the name \
     has. Those on GPUs are asked first, then those on CPUs, then this process.",
);
pub const ENCODER_GPUS: Key<Gpus> = Key::new(
    "encoder.gpus",
    GPUS,
    "off",
    "GPUs on each of which this server starts a worker process. auto: those that work, if there \
     are any. require: those that work, and no start without one. A number, 64 at most: so many of \
     the first ones. off: none.",
);
pub const ENCODER_LOCAL_WORKERS: Key<Vec<Device>> = Key::new(
    "encoder.local_workers",
    DEVICES,
    "",
    "Devices, such as \"cuda:3\" or \"cpu\": this server starts a worker process on each, beside \
     those of gpus.",
);
pub const ENCODER_CONNECTIONS: Key<usize> = Key::new(
    "encoder.connections",
    count(0, 64),
    "0",
    "Connections to each worker, which requests are spread over. 0: one for every four cores of this \
     machine, four at most.",
);
pub const ENCODER_ATTEMPT_TIMEOUT: Key<Duration> = Key::new(
    "encoder.attempt_timeout",
    span(10, 60_000),
    "1s",
    "The longest that a worker is waited for before another is asked; more for more than eight \
     texts.",
);
pub const ENCODER_HEDGE: Key<bool> = Key::new(
    "encoder.hedge",
    FLAG,
    "true",
    "Ask a second worker when the first takes longer than nearly all requests do; at most one \
     request in ten.",
);
pub const ENCODER_HEALTH_INTERVAL: Key<Duration> = Key::new(
    "encoder.health_interval",
    span(50, 60_000),
    "400ms",
    "How often each worker must embed known texts, rightly and in time, to be used. Servers that \
     share a worker share these checks; each checks it every 10 s at least.",
);
pub const ENCODER_COMPARE_ONE_IN: Key<usize> = Key::new(
    "encoder.compare_one_in",
    count(0, 1_000_000),
    "256",
    "One text in so many that workers embedded, and at most one of a request, is embedded in \
     this process as well, after the call, and compared. A worker whose answer differs is out of \
     use. 0: none.",
);
pub const ENCODER_CACHE_MEMORY: Key<u64> = Key::new(
    "encoder.cache_memory",
    size(0, 1 << 40),
    "64MiB",
    "Memory for embeddings of intents that come again, for each tenant its own. 0B: none.",
);
pub const ENCODER_QUERY_PREFIX: OptionalKey<String> = OptionalKey::new(
    "encoder.query_prefix",
    TEXT,
    "What goes before each intent, such as \"query: \". Absent: what the model's files say.",
);
pub const ENCODER_PASSAGE_PREFIX: OptionalKey<String> = OptionalKey::new(
    "encoder.passage_prefix",
    TEXT,
    "What goes before each summary, such as \"passage: \". Absent: what the model's files say. A \
     change has every summary embedded anew.",
);
pub const SHARD_MEMORY_BUDGET: Key<u64> = Key::new(
    "shard.memory_budget",
    size(MIB, 1 << 50),
    "512MiB",
    "Memory for the indexes of all tenants; those used longest ago are dropped and rebuilt when \
     needed. An index stays for ten times as long as its building took, so up to twice as much \
     is used while tenants push each other out.",
);
pub const SHARD_GRAPH_ABOVE: Key<usize> = Key::new(
    "shard.graph_above",
    count(1, 1 << 32),
    "50000",
    "Tenants with more tools than this are searched through a graph (HNSW), which is faster and \
     may miss one tool in a hundred. It is built beside the calls, for half a second per \
     thousand tools; until then, and below, searches are exact.",
);
pub const ROUTER_THRESHOLD: Key<f64> = Key::new(
    "router.threshold",
    decimal(-1.0, 1.0),
    "0.28",
    "The least overlap (cosine) of the best tool, for requests that do not say. A threshold in a \
     request or policy is for each tool.",
);
pub const ROUTER_RELATIVE_CUTOFF: Key<f64> = Key::new(
    "router.relative_cutoff",
    decimal(0.0, 1.0),
    "0.5",
    "The least score of a chosen tool, as a share of the best one's, where no threshold is \
     named. 0: router.threshold is for each tool.",
);
pub const ROUTER_CLAUSES: Key<bool> = Key::new(
    "router.clauses",
    FLAG,
    "true",
    "Whether the clauses of an intent that asks for several things are looked for one by one \
     too, which costs an embedding each.",
);
pub const ROUTER_CONTEXT: Key<bool> = Key::new(
    "router.context",
    FLAG,
    "true",
    "Whether a short message is also read with the user's message before it, where the state has \
     the messages (docs/conversations.md), which costs an embedding.",
);
pub const ROUTER_COURTESIES: Key<bool> = Key::new(
    "router.courtesies",
    FLAG,
    "true",
    "Whether a message that only thanks, greets or takes leave gets no tool by rank, where the \
     state has the messages and the answer before it neither asks nor offers anything \
     (docs/conversations.md).",
);
pub const ROUTER_TOP_K: Key<usize> = Key::new(
    "router.top_k",
    count(1, 100),
    "10",
    "The most tools chosen, for requests that do not say.",
);
pub const ROUTER_ALWAYS_LOAD_TOKENS: Key<usize> = Key::new(
    "router.always_load_tokens",
    count(0, 1_000_000),
    "20000",
    "The most cl100k_base tokens that the definitions of always-loaded, critical and built-in \
     tools cost together. The agent's own go first, those of untrusted MCP servers last; what \
     does not fit is left out, and the answer says so.",
);
pub const PACKS_ENABLED: Key<bool> = Key::new(
    "packs.enabled",
    FLAG,
    "true",
    "Whether tools of well-known MCP servers are also found by what people say who want them \
     (docs/packs.md).",
);
pub const PACKS_DIRECTORY: OptionalKey<PathBuf> = OptionalKey::new(
    "packs.directory",
    PATH,
    "A directory of packs (*.yaml) of your own, which come before the shipped ones, and of what \
     `toolgate pack embed` makes of them.",
);
pub const MEMORY_TENANTS: Key<Vec<TenantId>> = Key::new(
    "memory.tenants",
    TENANTS,
    "",
    "Tenants whose calls are remembered: which tool was called for which intent, as embeddings, \
     so that tools are found by what they were called for (docs/memory.md).",
);
pub const MEMORY_HALF_LIFE_DAYS: Key<u64> = Key::new(
    "memory.half_life_days",
    count(1, 3_660),
    "30",
    "After how many days a remembered call counts half.",
);
pub const MEMORY_REFRESH_INTERVAL: Key<Duration> = Key::new(
    "memory.refresh_interval",
    span(100, 3_600_000),
    "10s",
    "How often what was observed is written to the store, and what other replicas wrote is \
     read.",
);
pub const DEFERRAL_MODE: OptionalKey<Mode> = OptionalKey::new(
    "deferral.mode",
    MODE,
    "Whether tools are found when needed instead of all sent, for requests that do not say: \
     always; auto:N when their definitions take N percent of the context window; off. Absent: \
     always, but off where model_base_url names an unknown host.",
)
.live();
pub const DEFERRAL_TENANTS: Key<Vec<(TenantId, Mode)>> = Key::new(
    "deferral.tenants",
    TENANT_MODES,
    "",
    "Modes of single tenants, such as \"acme=off\"; they win over deferral.mode.",
)
.live();
pub const DEFERRAL_KILL_SWITCH: Key<bool> = Key::new(
    "deferral.kill_switch",
    FLAG,
    "false",
    "Nothing is deferred, whatever tenants and requests say.",
)
.live();
pub const DEFERRAL_DENIED_MODELS: Key<Vec<Pattern>> = Key::new(
    "deferral.denied_models",
    PATTERNS,
    "",
    "Models that cannot search for tools, and get all of them: a part of the name, or a whole \
     name with * for any letters. Other models, unknown ones too, are taken to be able.",
)
.live();
pub const DEFERRAL_NO_NATIVE_MODELS: Key<Vec<Pattern>> = Key::new(
    "deferral.no_native_models",
    PATTERNS,
    "",
    "Models that take no tools amid a conversation, beside those that are known not to: for them \
     render.strategy takes another one than native. A part of the name, or a whole name with * \
     for any letters.",
)
.live();
pub const DEFERRAL_TRUSTED_HOSTS: Key<Vec<Pattern>> = Key::new(
    "deferral.trusted_hosts",
    PATTERNS,
    "api.anthropic.com,api.openai.com,*.openai.azure.com,*.googleapis.com",
    "Hosts of models behind which tools are deferred without anybody having chosen a mode.",
)
.live();
pub const DEFERRAL_OVERHEAD_TOKENS: Key<u64> = Key::new(
    "deferral.overhead_tokens",
    count(0, 1_000_000),
    "0",
    "Tokens to subtract from what deferrable tools cost before auto compares it.",
)
.live();
pub const HANDLE_KEY: OptionalKey<SecretKey> = OptionalKey::new(
    "handle.key",
    SECRET,
    "The key that signs active-set handles; the same for all replicas. Better given by the \
     environment or by key_file than written here. Absent: one is made and kept in the data \
     directory.",
);
pub const HANDLE_KEY_FILE: OptionalKey<PathBuf> = OptionalKey::new(
    "handle.key_file",
    PATH,
    "A file that holds the key in base64, such as a mounted secret. Not together with key.",
);
pub const HANDLE_PREVIOUS_KEY_FILE: OptionalKey<PathBuf> = OptionalKey::new(
    "handle.previous_key_file",
    PATH,
    "A file with the key that was used before, in base64: handles signed with it are good until \
     they expire, and none is signed with it.",
);
pub const HANDLE_TTL: Key<Duration> = Key::new(
    "handle.ttl",
    span(1_000, 7 * 24 * 3_600_000),
    "1h",
    "How long an active-set handle is good.",
);
pub const USAGE_FLUSH_INTERVAL: Key<Duration> = Key::new(
    "usage.flush_interval",
    span(100, 3_600_000),
    "5s",
    "How often the usage ledger is written to the store: what a crash takes of it at most.",
);
pub const USAGE_RETENTION_DAYS: Key<u32> = Key::new(
    "usage.retention_days",
    count(1, 3_660),
    "400",
    "For how many days the usage ledger is kept.",
);
pub const LOG_LEVEL: Key<LogLevel> =
    Key::new("log.level", choice(), "info", "The least important records that are written.").live();
pub const LOG_FORMAT: Key<LogFormat> =
    Key::new("log.format", choice(), "text", "One line of text, or one JSON object, per record.");
pub const LOG_INTENTS: Key<bool> = Key::new(
    "log.intents",
    FLAG,
    "false",
    "Write intents into the log. They are users' words: leave this off in production.",
)
.live();
pub const TELEMETRY_OTLP_ENDPOINT: OptionalKey<String> = OptionalKey::new(
    "telemetry.otlp_endpoint",
    TEXT,
    "The collector that spans of calls are sent to, by OTLP over gRPC, such as \
     \"http://127.0.0.1:4317\". Absent: calls are not traced.",
);
pub const TELEMETRY_SAMPLE_RATIO: Key<f64> = Key::new(
    "telemetry.sample_ratio",
    decimal(0.0, 1.0),
    "1.0",
    "The share of calls that are traced, where the caller (`traceparent`) has not decided.",
);
pub const TELEMETRY_SERVICE_NAME: Key<String> =
    Key::new("telemetry.service_name", TEXT, "toolgate", "What this service is called in traces.");
pub const TELEMETRY_TIMEOUT: Key<Duration> = Key::new(
    "telemetry.timeout",
    span(100, 60_000),
    "5s",
    "How long the collector may take to accept spans. No call waits for it.",
);
