//! Persistent data behind every shard: the stored types, and the [`Store`] trait that the SQL backends implement.
//! Every method for one tenant takes the tenant first. Indexes, snapshots and caches are derived from this data and
//! live elsewhere.

use std::collections::HashMap;
use std::ops::Range;
use std::pin::Pin;

use serde::{Deserialize, Serialize};

use toolgate_core::identity::{ServerName, TenantId, ToolId, ToolName};
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
mod similar;
mod sql;
pub mod sqlite;
mod status;
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
pub use similar::{Comparison, SimilarTools};
pub use status::ToolStatus;
pub use usage::{AMOUNT_MAX, Hour, UsageAddition, UsageCount};

/// Number of changes to one tenant's catalog, counted from 1.
pub type Revision = u64;

/// SHA-256 of a canonical definition or of an embedded text.
pub type ContentHash = [u8; 32];

/// Maximum number of removed tools that a catalog keeps. Beyond it, `pool_floor` rises past whole revisions.
pub const REMOVED_KEPT: u32 = 10_000;

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

/// Storage for catalogs. Backends differ only in SQL, and all of them must pass the same test suite.
pub trait Store: KeyStore + Send + Sync + 'static {
    /// Returns the tenant's catalog revision; `None` if the tenant never had a catalog.
    fn revision<'a>(&'a self, tenant: &'a TenantId) -> StoreFuture<'a, Option<Revision>>;

    /// Returns the changes in the tenant's catalog after revision `since`.
    fn changes<'a>(&'a self, tenant: &'a TenantId, since: Revision) -> StoreFuture<'a, Changes>;

    /// Returns the tenant's whole catalog at one revision; `None` if the tenant never had a catalog.
    fn load_catalog<'a>(&'a self, tenant: &'a TenantId) -> StoreFuture<'a, Option<StoredCatalog>>;

    /// Returns the tenant's embeddings made by one encoder, by hash of the text.
    fn load_embeddings<'a>(
        &'a self,
        tenant: &'a TenantId,
        fingerprint: &'a str,
    ) -> StoreFuture<'a, HashMap<ContentHash, Vec<f32>>>;

    /// Saves missing embeddings, and drops those of texts that are no longer the summary of any tool.
    fn save_embeddings<'a>(
        &'a self,
        tenant: &'a TenantId,
        fingerprint: &'a str,
        embeddings: &'a [StoredEmbedding],
    ) -> StoreFuture<'a, ()>;

    /// Drops the embeddings of these texts. The next process that loads the catalog makes them again.
    fn drop_embeddings<'a>(
        &'a self,
        tenant: &'a TenantId,
        fingerprint: &'a str,
        texts: &'a [ContentHash],
    ) -> StoreFuture<'a, ()>;

    /// Returns one MCP server and its tools by name; `None` if it is not stored.
    fn read_server<'a>(
        &'a self,
        tenant: &'a TenantId,
        server: &'a ServerName,
    ) -> StoreFuture<'a, Option<(StoredServer, Vec<StoredTool>)>>;

    /// Returns the tools of one MCP server, by name, that were removed within [`PAST_TOOL_KEPT`] and are not
    /// registered again.
    fn past_tools<'a>(
        &'a self,
        tenant: &'a TenantId,
        server: &'a ServerName,
    ) -> StoreFuture<'a, Vec<PastTool>>;

    /// Returns the shown tools of other MCP servers that share enough of these marks
    /// ([`toolgate_core::safety::marks`]), without reading others. The first call after an upgrade makes the marks of
    /// all of the tenant's tools if they are of an older version.
    fn similar_tools<'a>(
        &'a self,
        tenant: &'a TenantId,
        server: &'a ServerName,
        marks: &'a [i64],
    ) -> StoreFuture<'a, SimilarTools>;

    /// Returns a page of MCP servers by name, after `after`.
    fn list_servers<'a>(
        &'a self,
        tenant: &'a TenantId,
        after: Option<&'a str>,
        page_size: u32,
    ) -> StoreFuture<'a, Vec<StoredServer>>;

    /// Returns a page of tools of one server or of all, by server and name, after `after`.
    fn list_tools<'a>(
        &'a self,
        tenant: &'a TenantId,
        server: Option<&'a ServerName>,
        after: Option<&'a ToolCursor>,
        page_size: u32,
    ) -> StoreFuture<'a, Vec<StoredTool>>;

    /// Returns the request recorded under this id within [`REQUEST_KEPT`].
    fn find_request<'a>(
        &'a self,
        tenant: &'a TenantId,
        id: &'a str,
    ) -> StoreFuture<'a, Option<RecordedRequest>>;

    /// Records a request that changed nothing, at the tenant's current revision (0 if the tenant never had a
    /// catalog). If the same request was recorded before, that record is kept and returned.
    fn record_request<'a>(
        &'a self,
        tenant: &'a TenantId,
        request: PendingRequest,
    ) -> StoreFuture<'a, Committed>;

    /// Commits a change under the next revision. After a successful return, the change survives a power cut. After an
    /// error, no part of the change is visible, except when the answer was lost ([`StoreError::Unavailable`]).
    ///
    /// If several errors apply, the first in this list is returned: [`StoreError::RequestIdReused`],
    /// [`StoreError::Conflict`] (also if the same request was recorded meanwhile, or if another MCP server got a tool
    /// that the comparison lacks), [`StoreError::TooManyTools`], [`StoreError::TooManyServers`],
    /// [`StoreError::NameTaken`].
    fn commit<'a>(
        &'a self,
        tenant: &'a TenantId,
        change: ServerChange,
    ) -> StoreFuture<'a, Committed>;

    /// Removes an MCP server whose revision is still `base`, under the next revision. Returns
    /// [`StoreError::Conflict`] if the revision differs or the server is not stored.
    fn remove_server<'a>(
        &'a self,
        tenant: &'a TenantId,
        server: &'a ServerName,
        base: Revision,
    ) -> StoreFuture<'a, Committed>;

    /// Adds to usage counters, to all of them or to none. A counter does not exceed [`AMOUNT_MAX`].
    fn add_usage<'a>(&'a self, additions: &'a [UsageAddition]) -> StoreFuture<'a, ()>;

    /// Returns the tenant's usage counters within `hours`, by hour and item. Each window of `width` hours (at least
    /// 1), counted from 1970, is summed under its first hour.
    fn read_usage<'a>(
        &'a self,
        tenant: &'a TenantId,
        hours: Range<Hour>,
        width: Hour,
    ) -> StoreFuture<'a, Vec<UsageCount>>;

    /// Deletes the usage counters of all tenants for hours before `hour`.
    fn forget_usage(&self, hour: Hour) -> StoreFuture<'_, ()>;

    /// Returns the exemplars that were added or changed after version `since`; returns all of them if `since` is 0 or
    /// if any was removed since.
    fn read_memory<'a>(
        &'a self,
        tenant: &'a TenantId,
        since: MemoryVersion,
    ) -> StoreFuture<'a, MemoryChanges>;

    /// Lets `revise` change the exemplars of these tools in one transaction, then trims the tenant's memory to
    /// `bounds`. Tools that are not registered are skipped. An exemplar that `revise` leaves out stays stored; a new
    /// exemplar in a used place replaces the old one.
    fn revise_memory<'a>(
        &'a self,
        tenant: &'a TenantId,
        tools: &'a [ToolId],
        revise: Revise<'a>,
        bounds: MemoryBounds,
    ) -> StoreFuture<'a, ()>;

    /// Deletes the exemplars of the tenant, of one MCP server's tools or of the tools with one name. Returns the
    /// number of deleted exemplars.
    fn clear_memory<'a>(
        &'a self,
        tenant: &'a TenantId,
        server: Option<&'a ServerName>,
        tool: Option<&'a ToolName>,
    ) -> StoreFuture<'a, u64>;

    /// Returns the tenant's policy; `None` if none was ever set.
    fn read_policy<'a>(&'a self, tenant: &'a TenantId) -> StoreFuture<'a, Option<StoredPolicy>>;

    /// Replaces the policy under the next catalog revision, and restarts deltas of the summary pool. Returns
    /// [`StoreError::Conflict`] if the policy's revision is no longer `base`.
    fn set_policy<'a>(
        &'a self,
        tenant: &'a TenantId,
        change: PolicyChange,
    ) -> StoreFuture<'a, Committed>;

    /// Completes if the store can be read.
    fn ping(&self) -> StoreFuture<'_, ()>;

    /// Closes the store after the calls in progress. Further calls fail.
    fn close(&self) -> StoreFuture<'_, ()>;

    /// Returns the number of calls that failed because the store could not be reached or read.
    fn failures(&self) -> u64;

    /// Returns true if other processes may change the stored data.
    fn is_shared(&self) -> bool;

    /// Returns the store's clock as far as this process knows it, in milliseconds since 1970 (UTC). Use it for
    /// timestamps that another process compares.
    fn clock_ms(&self) -> i64;

    /// Completes when another process may have changed something. The hint may be late, wrong, or never come.
    fn hint(&self) -> StoreFuture<'_, ()>;

    /// Returns the number of the last change to any tenant's catalog; 0 before the first change.
    fn last_change(&self) -> StoreFuture<'_, Sequence>;

    /// Returns up to `most` tenants whose catalogs changed after the change with number `after`. Each tenant is
    /// listed once, in the order of last changes. A reader that has seen one change has seen all changes with lower
    /// numbers.
    fn changed_tenants(&self, after: Sequence, most: u32) -> StoreFuture<'_, Vec<ChangedTenant>>;

    /// Returns everything stored for a tenant except request ids; `None` if the tenant never had a catalog. Content
    /// that can't be read is described in `damage` instead.
    fn read_content<'a>(&'a self, tenant: &'a TenantId) -> StoreFuture<'a, Option<TenantContent>>;

    /// Stores content that was read from another store, unchanged, for a tenant without a catalog. Returns
    /// [`StoreError::Conflict`] if the tenant has a catalog.
    fn restore_content<'a>(
        &'a self,
        tenant: &'a TenantId,
        content: &'a TenantContent,
    ) -> StoreFuture<'a, ()>;

    /// Returns a page of the tenants that have a catalog, by name, after `after`.
    fn list_tenants<'a>(
        &'a self,
        after: Option<&'a TenantId>,
        page_size: u32,
    ) -> StoreFuture<'a, Vec<TenantId>>;
}
