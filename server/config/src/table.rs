//! Table of all configuration keys. Parsing, the example file, the detection of unknown keys and `--help` read it.
//! Nothing else lives here.

use std::time::Duration;

use toolgate_model_hub::KnownModel;

use super::key::{Fallback, Key, Kind};

mod security;
mod server;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// All keys, section by section, in the order of the example file.
pub static KEYS: &[Key] =
    &joined::<{ server::KEYS.len() + ROUTING.len() + security::KEYS.len() }>(&[
        server::KEYS,
        ROUTING,
        security::KEYS,
    ]);

const ROUTING: &[Key] = &[
    Key {
        name: "store.path",
        kind: Kind::Path,
        default: Fallback::DataDirectory,
        doc: "The data directory: the catalog, the handle key; with a store.url, what this replica keeps for when \
              the store is down. Made when missing; one server at a time.",
    },
    Key {
        name: "store.url",
        kind: Kind::StoreUrl,
        default: Fallback::Absent,
        doc: "A PostgreSQL database that replicas share (docs/store.md). Better given by the environment or by \
              url_file than written here. Absent: the catalog is in store.path.",
    },
    Key {
        name: "store.url_file",
        kind: Kind::Path,
        default: Fallback::Absent,
        doc: "A file that holds the URL, such as a mounted secret. Not together with url.",
    },
    key("store.max_connections", count(1, 1_000), "10", "The most connections to the database."),
    key(
        "store.statement_timeout",
        span(100, 600_000),
        "10s",
        "The longest that the database may take for a statement.",
    ),
    key(
        "store.connect_timeout",
        span(100, 60_000),
        "5s",
        "The longest that a connection to the database is waited for.",
    ),
    key(
        "store.poll_interval",
        span(50, 60_000),
        "1s",
        "How often the database is asked what other replicas changed.",
    ),
    key(
        "store.notify",
        Kind::Flag,
        "true",
        "Ask at once when the database says that something changed. It can't be heard through a pooler.",
    ),
    key(
        "store.max_staleness",
        span(100, 604_800_000),
        "15m",
        "How long Gate goes on allowing calls while the database can't be reached: afterwards it refuses them, since what \
         was removed, quarantined or denied meanwhile is not known.",
    ),
    key(
        "store.snapshot_budget",
        size(0, 1 << 50),
        "2GiB",
        "Disk for what this replica keeps of the catalogs that it serves, for when the database is down. 0B: none.",
    ),
    key(
        "encoder.model",
        Kind::Choice(&KnownModel::NAMES),
        KnownModel::NAMES[0],
        "The encoder's model, from the place where `toolgate model fetch --model NAME` puts it.",
    ),
    Key {
        name: "encoder.model_dir",
        kind: Kind::Path,
        default: Fallback::ModelDirectory,
        doc: "Any other model directory, for an encoder that has no name here (docs/languages.md). Not together \
              with model.",
    },
    key(
        "encoder.queue_capacity",
        count(1, 1_000_000),
        "1024",
        "Requests that may wait for the encoder; one more is refused.",
    ),
    key(
        "encoder.max_batch_tokens",
        count(256, 1_048_576),
        "512",
        "Tokens that the encoder takes at a time, at most: fewer where that takes longer than 10 ms. A short intent waits \
         for no longer batch than this.",
    ),
    key("encoder.threads", count(0, 1_024), "0", "Threads of the encoder. 0: one per core."),
    key(
        "encoder.device",
        Kind::Device,
        "auto",
        "What the in-process encoder runs on. auto: the CPU beside workers; without any, the first GPU \
         that works, or else the CPU.",
    ),
    key(
        "encoder.dtype",
        Kind::Choice(&["auto", "f32", "bf16", "int8"]),
        "auto",
        "The in-process encoder's numbers. auto: the fastest that finds tools as well as f32 does.",
    ),
    key(
        "encoder.adapter",
        Kind::Path,
        "auto",
        "What is merged into the model's weights. auto: the adapter for tools that comes with the program, if there \
         is one for these weights. none: the model as it is. Else an adapter's file. Workers must have the same.",
    ),
    key(
        "encoder.in_process",
        Kind::Flag,
        "true",
        "Embed in this process when no worker can. false: words decide then, and answers say `degraded`. \
         The model is loaded all the same, to know what workers must answer.",
    ),
    key(
        "encoder.workers",
        Kind::Workers,
        "",
        "Encoder workers: \"host:port\" for one, \"dns://name:port\" for each address that the name has. \
         Those on GPUs are asked first, then those on CPUs, then this process.",
    ),
    key(
        "encoder.gpus",
        count(0, 64),
        "0",
        "Worker processes that this server starts itself, one on each of the first GPUs.",
    ),
    key(
        "encoder.local_workers",
        Kind::Devices,
        "",
        "Devices, such as \"cuda:3\" or \"cpu\": this server starts a worker process on each, beside \
         those of gpus.",
    ),
    key(
        "encoder.attempt_timeout",
        span(10, 60_000),
        "1s",
        "The longest that a worker is waited for before another is asked; more for more than eight texts.",
    ),
    key(
        "encoder.hedge",
        Kind::Flag,
        "true",
        "Ask a second worker when the first takes longer than nearly all requests do; at most one request \
         in ten.",
    ),
    key(
        "encoder.health_interval",
        span(50, 60_000),
        "400ms",
        "How often each worker must embed known texts, rightly and in time, to be used.",
    ),
    key(
        "encoder.compare_one_in",
        count(0, 1_000_000),
        "256",
        "One text in so many that workers embedded, and at most one of a request, is embedded in this process as \
         well, after the call, and compared. A worker whose answer differs is out of use. 0: none.",
    ),
    key(
        "encoder.cache_memory",
        size(0, 1 << 40),
        "64MiB",
        "Memory for embeddings of intents that come again, for each tenant its own. 0B: none.",
    ),
    Key {
        name: "encoder.query_prefix",
        kind: Kind::Text,
        default: Fallback::Absent,
        doc: "What goes before each intent, such as \"query: \". Absent: what the model's files say.",
    },
    Key {
        name: "encoder.passage_prefix",
        kind: Kind::Text,
        default: Fallback::Absent,
        doc: "What goes before each summary, such as \"passage: \". Absent: what the model's files say. A \
              change has every summary embedded anew.",
    },
    key(
        "shard.memory_budget",
        size(MIB, 1 << 50),
        "512MiB",
        "Memory for the indexes of all tenants; those used longest ago are dropped and rebuilt when needed. An index stays for \
         ten times as long as its building took, so up to twice as much is used while tenants push each other out.",
    ),
    key(
        "shard.graph_above",
        count(1, 1 << 32),
        "50000",
        "Tenants with more tools than this are searched through a graph (HNSW), which is faster and may miss one tool in a \
         hundred. It is built beside the calls, for half a second per thousand tools; until then, and below, searches are \
         exact.",
    ),
    key(
        "router.threshold",
        Kind::Decimal { min: -1.0, max: 1.0 },
        "0.28",
        "The least overlap (cosine) of the best tool, for requests that do not say. A threshold in a request or \
         policy is for each tool.",
    ),
    key(
        "router.relative_cutoff",
        Kind::Decimal { min: 0.0, max: 1.0 },
        "0.5",
        "The least score of a chosen tool, as a share of the best one's, where no threshold is named. 0: \
         router.threshold is for each tool.",
    ),
    key(
        "router.clauses",
        Kind::Flag,
        "true",
        "Whether the clauses of an intent that asks for several things are looked for one by one too, which costs \
         an embedding each.",
    ),
    key(
        "router.top_k",
        count(1, 100),
        "10",
        "The most tools chosen, for requests that do not say.",
    ),
    key(
        "router.always_load_tokens",
        count(0, 1_000_000),
        "20000",
        "The most cl100k_base tokens that the definitions of always-loaded, critical and built-in tools cost together. \
         The agent's own go first, those of untrusted MCP servers last; what does not fit is left out, and the answer \
         says so.",
    ),
    key(
        "packs.enabled",
        Kind::Flag,
        "true",
        "Whether tools of well-known MCP servers are also found by what people say who want them (docs/packs.md).",
    ),
    Key {
        name: "packs.directory",
        kind: Kind::Path,
        default: Fallback::Absent,
        doc: "A directory of packs (*.yaml) of your own, which come before the shipped ones, and of what \
              `toolgate pack embed` makes of them.",
    },
    key(
        "memory.tenants",
        Kind::Tenants,
        "",
        "Tenants whose calls are remembered: which tool was called for which intent, as embeddings, so that tools \
         are found by what they were called for (docs/memory.md).",
    ),
    key(
        "memory.half_life_days",
        count(1, 3_660),
        "30",
        "After how many days a remembered call counts half.",
    ),
    key(
        "memory.refresh_interval",
        span(100, 3_600_000),
        "10s",
        "How often what was observed is written to the store, and what other replicas wrote is read.",
    ),
    Key {
        name: "deferral.mode",
        kind: Kind::Mode,
        default: Fallback::Absent,
        doc: "Whether tools are found when needed instead of all sent, for requests that do not say: \
              always; auto:N when their definitions take N percent of the context window; off. Absent: \
              always, but off where model_base_url names an unknown host.",
    },
    key(
        "deferral.tenants",
        Kind::TenantModes,
        "",
        "Modes of single tenants, such as \"acme=off\"; they win over deferral.mode.",
    ),
    key(
        "deferral.kill_switch",
        Kind::Flag,
        "false",
        "Nothing is deferred, whatever tenants and requests say.",
    ),
    key(
        "deferral.denied_models",
        Kind::Patterns,
        "",
        "Models that cannot search for tools, and get all of them: a part of the name, or a whole name \
         with * for any letters. Other models, unknown ones too, are taken to be able.",
    ),
    key(
        "deferral.trusted_hosts",
        Kind::Patterns,
        "api.anthropic.com,api.openai.com,*.openai.azure.com,*.googleapis.com",
        "Hosts of models behind which tools are deferred without anybody having chosen a mode.",
    ),
    key(
        "deferral.overhead_tokens",
        count(0, 1_000_000),
        "0",
        "Tokens to subtract from what deferrable tools cost before auto compares it.",
    ),
    Key {
        name: "handle.key",
        kind: Kind::Secret,
        default: Fallback::Absent,
        doc: "The key that signs active-set handles; the same for all replicas. Better given by the \
              environment or by key_file than written here. Absent: one is made and kept in the data directory.",
    },
    Key {
        name: "handle.key_file",
        kind: Kind::Path,
        default: Fallback::Absent,
        doc: "A file that holds the key in base64, such as a mounted secret. Not together with key.",
    },
    Key {
        name: "handle.previous_key_file",
        kind: Kind::Path,
        default: Fallback::Absent,
        doc: "A file with the key that was used before, in base64: handles signed with it are good until they \
              expire, and none is signed with it.",
    },
    key(
        "handle.ttl",
        span(1_000, 7 * 24 * 3_600_000),
        "1h",
        "How long an active-set handle is good.",
    ),
    key(
        "usage.flush_interval",
        span(100, 3_600_000),
        "5s",
        "How often the usage ledger is written to the store: what a crash takes of it at most.",
    ),
    key(
        "usage.retention_days",
        count(1, 3_660),
        "400",
        "For how many days the usage ledger is kept.",
    ),
    key(
        "log.level",
        Kind::Choice(&["error", "warn", "info", "debug", "trace"]),
        "info",
        "The least important records that are written.",
    ),
    key(
        "log.format",
        Kind::Choice(&["text", "json"]),
        "text",
        "One line of text, or one JSON object, per record.",
    ),
    key(
        "log.intents",
        Kind::Flag,
        "false",
        "Write intents into the log. They are users' words: leave this off in production.",
    ),
    Key {
        name: "telemetry.otlp_endpoint",
        kind: Kind::Text,
        default: Fallback::Absent,
        doc: "The collector that spans of calls are sent to, by OTLP over gRPC, such as \"http://127.0.0.1:4317\". \
              Absent: calls are not traced.",
    },
    key(
        "telemetry.sample_ratio",
        Kind::Decimal { min: 0.0, max: 1.0 },
        "1.0",
        "The share of calls that are traced, where the caller (`traceparent`) has not decided.",
    ),
    key("telemetry.service_name", Kind::Text, "toolgate", "What this service is called in traces."),
    key(
        "telemetry.timeout",
        span(100, 60_000),
        "5s",
        "How long the collector may take to accept spans. No call waits for it.",
    ),
];

/// Returns the key of that name.
pub(super) fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

/// Joins the lists into one.
const fn joined<const N: usize>(lists: &[&[Key]]) -> [Key; N] {
    let mut all = [lists[0][0]; N];
    let mut list = 0;
    let mut at = 0;
    while list < lists.len() {
        let mut of_list = 0;
        while of_list < lists[list].len() {
            all[at] = lists[list][of_list];
            (at, of_list) = (at + 1, of_list + 1);
        }
        list += 1;
    }
    all
}

const fn key(name: &'static str, kind: Kind, default: &'static str, doc: &'static str) -> Key {
    Key { name, kind, default: Fallback::Text(default), doc }
}

const fn count(min: u64, max: u64) -> Kind {
    Kind::Count { min, max }
}

const fn size(min: u64, max: u64) -> Kind {
    Kind::Size { min, max }
}

const fn span(min_millis: u64, max_millis: u64) -> Kind {
    Kind::Duration {
        min: Duration::from_millis(min_millis),
        max: Duration::from_millis(max_millis),
    }
}
