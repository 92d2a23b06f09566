//! All configuration keys. A key is declared once, as a constant: its name, its type and range, its default, its meaning,
//! and whether it takes effect on SIGHUP. The constant is named like the key, and the program reads the value through it.

#![allow(
    missing_docs,
    reason = "the documentation of a key is a part of its declaration, which the program prints"
)]

mod routing;
mod security;
mod server;

pub use routing::*;
pub use security::*;
pub use server::*;

use crate::key::KeySpec;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// All keys, section by section, in the order of the example file. A constant that is missing here can't be read.
pub static KEYS: &[&KeySpec] = &[
    &SERVER_LISTEN.spec,
    &SERVER_ADMIN_LISTEN.spec,
    &SERVER_MAX_CONNECTIONS.spec,
    &SERVER_MAX_CONNECTIONS_PER_ADDRESS.spec,
    &SERVER_MAX_CONNECTION_IDLE.spec,
    &SERVER_MAX_CONCURRENT_CALLS.spec,
    &SERVER_MAX_WAIT.spec,
    &SERVER_MAX_CONCURRENT_CALLS_PER_TENANT.spec,
    &SERVER_MAX_MEMORY.spec,
    &SERVER_MAX_CONNECTION_AGE.spec,
    &SERVER_MAX_WATCHES.spec,
    &SERVER_RESPONSE_BUFFER_LIMIT.spec,
    &SERVER_CORS_ORIGINS.spec,
    &SERVER_MAX_DEADLINE.spec,
    &SERVER_DRAIN_TIMEOUT.spec,
    &LIMITS_CALLS_PER_SECOND_PER_TENANT.spec,
    &LIMITS_MAX_INTENTS.spec,
    &LIMITS_MAX_INTENT_SIZE.spec,
    &LIMITS_MAX_STATE_SIZE.spec,
    &LIMITS_MAX_MESSAGES_SIZE.spec,
    &LIMITS_MAX_TOOLS_PER_REGISTRATION.spec,
    &LIMITS_MAX_SCHEMA_SIZE.spec,
    &LIMITS_MAX_SCHEMA_NESTING.spec,
    &LIMITS_MAX_TOOLS_PER_TENANT.spec,
    &LIMITS_MAX_SERVERS_PER_TENANT.spec,
    &LIMITS_MAX_MESSAGE_SIZE.spec,
    &STORE_PATH.spec,
    &STORE_URL.spec,
    &STORE_URL_FILE.spec,
    &STORE_MAX_CONNECTIONS.spec,
    &STORE_STATEMENT_TIMEOUT.spec,
    &STORE_CONNECT_TIMEOUT.spec,
    &STORE_POLL_INTERVAL.spec,
    &STORE_NOTIFY.spec,
    &STORE_MAX_STALENESS.spec,
    &STORE_SNAPSHOT_BUDGET.spec,
    &ENCODER_MODEL.spec,
    &ENCODER_MODEL_DIR.spec,
    &ENCODER_QUEUE_CAPACITY.spec,
    &ENCODER_MAX_BATCH_TOKENS.spec,
    &ENCODER_THREADS.spec,
    &ENCODER_DEVICE.spec,
    &ENCODER_DTYPE.spec,
    &ENCODER_ADAPTER.spec,
    &ENCODER_IN_PROCESS.spec,
    &ENCODER_WORKERS.spec,
    &ENCODER_GPUS.spec,
    &ENCODER_LOCAL_WORKERS.spec,
    &ENCODER_ATTEMPT_TIMEOUT.spec,
    &ENCODER_HEDGE.spec,
    &ENCODER_HEALTH_INTERVAL.spec,
    &ENCODER_COMPARE_ONE_IN.spec,
    &ENCODER_CACHE_MEMORY.spec,
    &ENCODER_QUERY_PREFIX.spec,
    &ENCODER_PASSAGE_PREFIX.spec,
    &SHARD_MEMORY_BUDGET.spec,
    &SHARD_GRAPH_ABOVE.spec,
    &ROUTER_THRESHOLD.spec,
    &ROUTER_RELATIVE_CUTOFF.spec,
    &ROUTER_CLAUSES.spec,
    &ROUTER_CONTEXT.spec,
    &ROUTER_COURTESIES.spec,
    &ROUTER_TOP_K.spec,
    &ROUTER_ALWAYS_LOAD_TOKENS.spec,
    &PACKS_ENABLED.spec,
    &PACKS_DIRECTORY.spec,
    &MEMORY_TENANTS.spec,
    &MEMORY_HALF_LIFE_DAYS.spec,
    &MEMORY_REFRESH_INTERVAL.spec,
    &DEFERRAL_MODE.spec,
    &DEFERRAL_TENANTS.spec,
    &DEFERRAL_KILL_SWITCH.spec,
    &DEFERRAL_DENIED_MODELS.spec,
    &DEFERRAL_NO_NATIVE_MODELS.spec,
    &DEFERRAL_TRUSTED_HOSTS.spec,
    &DEFERRAL_OVERHEAD_TOKENS.spec,
    &HANDLE_KEY.spec,
    &HANDLE_KEY_FILE.spec,
    &HANDLE_PREVIOUS_KEY_FILE.spec,
    &HANDLE_TTL.spec,
    &USAGE_FLUSH_INTERVAL.spec,
    &USAGE_RETENTION_DAYS.spec,
    &LOG_LEVEL.spec,
    &LOG_FORMAT.spec,
    &LOG_INTENTS.spec,
    &TELEMETRY_OTLP_ENDPOINT.spec,
    &TELEMETRY_SAMPLE_RATIO.spec,
    &TELEMETRY_SERVICE_NAME.spec,
    &TELEMETRY_TIMEOUT.spec,
    &AUTH_METHODS.spec,
    &AUTH_ADMIN_KEY_FILE.spec,
    &AUTH_JWKS_FILE.spec,
    &AUTH_JWKS_URL.spec,
    &AUTH_JWKS_CA_FILE.spec,
    &AUTH_JWKS_REFRESH.spec,
    &AUTH_JWKS_MAX_AGE.spec,
    &AUTH_ISSUER.spec,
    &AUTH_AUDIENCE.spec,
    &AUTH_CLOCK_SKEW.spec,
    &AUTH_TENANT_CLAIM.spec,
    &AUTH_PRINCIPAL_CLAIM.spec,
    &AUTH_ROLES_CLAIM.spec,
    &AUTH_SCOPES_CLAIM.spec,
    &AUTH_TRUST_DOMAIN.spec,
    &AUTH_CERTIFICATES.spec,
    &TLS_CERT_FILE.spec,
    &TLS_KEY_FILE.spec,
    &TLS_CLIENT_CA_FILE.spec,
    &AUDIT_FILE.spec,
    &SAFETY_SCAN.spec,
    &SAFETY_RULES_FILE.spec,
    &SAFETY_UNTRUSTED_BY_DEFAULT.spec,
    &SAFETY_UNTRUSTED_MAX_PER_SERVER.spec,
    &SAFETY_UNTRUSTED_MAX_ACTIVE.spec,
];

/// Returns the key of that name.
pub(crate) fn find(name: &str) -> Option<&'static KeySpec> {
    KEYS.iter().copied().find(|key| key.name == name)
}
