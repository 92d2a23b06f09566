//! Persistent data behind every shard: the stored types, and the traits of storage that the SQL backends implement
//! ([`Store`] is their sum). Every method for one tenant takes the tenant first. Indexes, snapshots and caches are
//! derived from this data and live elsewhere.

use std::pin::Pin;

use serde::{Deserialize, Serialize};

use toolgate_core::identity::{ServerName, ToolName};
use toolgate_core::mcp_server::{TransportHint, TrustTier};
use toolgate_core::precondition::Precondition;

mod changes;
mod clock;
#[cfg(test)]
mod conformance;
pub mod content;
pub mod copies;
mod error;
mod keys;
mod memory;
mod metrics;
mod migrations;
mod past;
mod policy;
pub mod postgres;
mod requests;
pub mod reserve;
mod schema_state;
mod sessions;
mod similar;
mod sql;
pub mod sqlite;
mod status;
mod stores;
pub mod stream;
mod text;
mod usage;

pub use changes::{ChangedTenant, Changes, REMOVED_SERVERS_KEPT, Sequence};
pub use clock::moment;
pub use content::TenantContent;
pub use error::StoreError;
pub use keys::{KeyReading, KeyStore, StoredKey};
pub use memory::{Day, Exemplar, MemoryBounds, MemoryChanges, MemoryVersion, PrincipalKey, Revise};
pub use metrics::StoreMetrics;
pub use past::{PAST_TOOL_KEPT, PAST_TOOLS_KEPT, PastTool};
pub use policy::{PolicyChange, StoredPolicy};
pub use requests::{PendingRequest, REQUEST_KEPT, RecordedRequest};
pub use schema_state::SchemaState;
pub use sessions::SessionStore;
pub use similar::{Comparison, SimilarTools};
pub use status::ToolStatus;
pub use stores::{
    CatalogStore, ChangeFeed, EmbeddingStore, MemoryStore, Store, TenantArchive, UsageStore,
};
pub use usage::{AMOUNT_MAX, Hour, UsageAddition, UsageCount};

/// Number of changes to one tenant's catalog, counted from 1.
pub type Revision = u64;

/// SHA-256 of a canonical definition or of an embedded text.
pub type ContentHash = [u8; 32];

/// Maximum number of removed tools that a catalog keeps. Beyond it, `pool_floor` rises past whole revisions.
/// This crate's tests have a smaller one: they remove one more than it, from each store.
pub const REMOVED_KEPT: u32 = if cfg!(test) { 3_000 } else { 10_000 };

/// Boxed future that a store method returns.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Registration data of an MCP server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerRecord {
    /// Name of the MCP server, unique within the tenant.
    pub name: ServerName,
    /// Purpose of the MCP server, in words.
    pub description: String,
    /// Way to reach the MCP server.
    pub transport_hint: TransportHint,
    /// Trust in the server's texts.
    pub trust_tier: TrustTier,
    /// Precondition that applies to every tool of the server.
    pub precondition: Option<Precondition>,
    /// Scopes that every tool of the server requires.
    pub required_scopes: Vec<String>,
    /// True if the server is announced and its tools are not registered yet.
    pub pending: bool,
}

impl ServerRecord {
    /// Creates a server with a name and no other data.
    #[must_use]
    pub fn new(name: ServerName) -> Self {
        Self {
            name,
            description: String::new(),
            transport_hint: TransportHint::Unspecified,
            trust_tier: TrustTier::Unspecified,
            precondition: None,
            required_scopes: Vec::new(),
            pending: false,
        }
    }

    /// Returns true if the tools are built into the agent, so that no MCP server offers them.
    #[must_use]
    pub fn is_built_in(&self) -> bool {
        self.transport_hint == TransportHint::BuiltIn
    }
}

/// Tool with its registration data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolRecord {
    /// MCP server that owns the tool.
    pub server: ServerName,
    /// MCP name of the tool.
    pub name: ToolName,
    /// Name that the model sees, unique within the tenant.
    pub model_name: String,
    /// Text that is embedded and listed in the summary pool.
    pub summary: String,
    /// Words that users say when they need the tool.
    pub search_hint: String,
    /// MCP definition, byte for byte as registered.
    pub definition: String,
    /// SHA-256 of the canonical definition (RFC 8785).
    #[serde(with = "text::hex")]
    pub hash: ContentHash,
    /// Precondition of the tool itself, in addition to the server's.
    pub precondition: Option<Precondition>,
    /// Scopes that the tool itself requires, in addition to the server's.
    pub required_scopes: Vec<String>,
    /// True if the tool is always part of the active set.
    pub always_load: bool,
    /// True if the tool is never deferred.
    pub critical: bool,
    /// Number of cl100k_base tokens in the minified definition.
    pub schema_tokens: u32,
    /// Number of cl100k_base tokens in the summary-pool line.
    pub summary_tokens: u32,
    /// Status that decides if the tool is shown and callable. Exports from before the quarantine existed lack it.
    #[serde(default)]
    pub status: ToolStatus,
}

/// Stored MCP server with the data that the store adds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredServer {
    /// Registration data.
    pub record: ServerRecord,
    /// Catalog revision of the server's last change.
    pub revision: Revision,
    /// Commit time of that change, in milliseconds since 1970 (UTC).
    pub updated_ms: i64,
    /// Number of the server's tools.
    pub tool_count: u32,
}

impl StoredServer {
    /// Names this version of the server; every change gets another one.
    #[must_use]
    pub fn etag(&self) -> String {
        format!("r{:x}", self.revision)
    }
}

/// Stored tool with the data that the store adds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredTool {
    /// Registration data.
    pub record: ToolRecord,
    /// Catalog revision at which the tool's summary-pool line last changed or came back. It orders the pool.
    pub summary_revision: Revision,
}

/// Removed tool, for deltas of the summary pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemovedTool {
    /// Name that the model saw.
    pub model_name: String,
    /// Catalog revision that removed the tool.
    pub revision: Revision,
}

/// Catalog of one tenant at one revision.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StoredCatalog {
    /// Catalog revision.
    pub revision: Revision,
    /// MCP servers, by name.
    pub servers: Vec<StoredServer>,
    /// Shown tools in the order of the summary pool: by summary revision, then server, then name.
    pub tools: Vec<StoredTool>,
    /// Quarantined tools, by server and name.
    pub quarantined: Vec<StoredTool>,
    /// Tools removed or quarantined since `pool_floor`, by revision, then name. A name is not listed if a shown tool
    /// without scopes uses it again, because that tool's `summary_revision` already tells readers.
    pub removed: Vec<RemovedTool>,
    /// Oldest revision that a delta of the summary pool can start from. It rises to the current revision when callers
    /// start to see different tools: after a change of scopes or of the policy, or after the removal of a tool that
    /// not every caller sees.
    pub pool_floor: Revision,
    /// Policy at that revision; `None` if none was ever set.
    pub policy: Option<StoredPolicy>,
}

/// Embedding of a text.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredEmbedding {
    /// SHA-256 of the text.
    pub text_hash: ContentHash,
    /// Embedding vector of unit length.
    pub vector: Vec<f32>,
}

/// Change to one MCP server. It is committed as a whole or not at all.
#[derive(Debug, Clone)]
pub struct ServerChange {
    /// Server revision that the change was prepared from; `None` if the server was not stored.
    pub base: Option<Revision>,
    /// Server data after the change.
    pub server: ServerRecord,
    /// Tools to insert or replace. All of them belong to this server.
    pub upserts: Vec<ToolRecord>,
    /// Tools to remove. Names that are not stored, or that are also in `upserts`, are ignored.
    pub removals: Vec<ToolName>,
    /// Embeddings to keep, made by the encoder with this fingerprint. The store drops an embedding together with the
    /// tenant's last tool that has the text as its summary.
    pub embeddings: Vec<StoredEmbedding>,
    /// Fingerprint of the encoder that made the embeddings.
    pub fingerprint: String,
    /// Comparison with other MCP servers' tools that the change was decided by; `None` if there was none.
    pub comparison: Option<Comparison>,
    /// Maximum number of tools that the tenant may have after the change.
    pub max_tools: u64,
    /// Maximum number of MCP servers, including announced ones, that the tenant may have after the change.
    pub max_servers: u64,
    /// Request to record with the change, once the revision is known.
    pub request: Option<PendingRequest>,
}

/// Result of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// Catalog revision that contains the change.
    pub revision: Revision,
    /// Commit time, in milliseconds since 1970 (UTC).
    pub updated_ms: i64,
}

/// Position in a list of tools; the next page begins after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCursor {
    /// Server of the last tool on the page before.
    pub server: String,
    /// Name of the last tool on the page before.
    pub name: String,
}
