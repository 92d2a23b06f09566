//! The truth behind every shard: what is stored, and the trait that SQL backends implement. Every method
//! takes the tenant first. Indexes, snapshots and caches are derived and live elsewhere.

use std::collections::HashMap;
use std::ops::Range;
use std::pin::Pin;

use serde::{Deserialize, Serialize};

use toolgate_core::identity::{ServerName, TenantId, ToolId, ToolName};
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
pub use status::{ToolStatus, UNTRUSTED};
pub use usage::{AMOUNT_MAX, Hour, UsageAddition, UsageCount};

/// Counts the changes of one tenant's catalog, from 1.
pub type Revision = u64;

/// SHA-256 of a canonical definition, or of a text that was embedded.
pub type ContentHash = [u8; 32];

/// The most removed tools that a catalog keeps; beyond it `pool_floor` rises past whole revisions.
pub const REMOVED_KEPT: u32 = 10_000;

/// What a store method returns.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// What the registrant says of an MCP server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerRecord {
    /// Its name.
    pub name: ServerName,
    /// What it is for.
    pub description: String,
    /// The wire's number of `TransportHint`; 0 when not said.
    pub transport_hint: i32,
    /// The wire's number of `TrustTier`.
    pub trust_tier: i32,
    /// Holds for every tool of it.
    pub precondition: Option<Precondition>,
    /// Every tool of it requires these.
    pub required_scopes: Vec<String>,
    /// Announced, and its tools not registered yet.
    pub pending: bool,
}

/// The wire's number of `TRANSPORT_HINT_BUILT_IN`.
const BUILT_IN: i32 = 3;

impl ServerRecord {
    /// A server of which nothing is said but its name.
    #[must_use]
    pub fn new(name: ServerName) -> Self {
        Self {
            name,
            description: String::new(),
            transport_hint: 0,
            trust_tier: 0,
            precondition: None,
            required_scopes: Vec::new(),
            pending: false,
        }
    }

    /// Whether its tools are the agent's own, and no MCP server's.
    #[must_use]
    pub fn is_built_in(&self) -> bool {
        self.transport_hint == BUILT_IN
    }
}

/// One tool as stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolRecord {
    /// The MCP server that owns it.
    pub server: ServerName,
    /// Its MCP name.
    pub name: ToolName,
    /// The name the model sees; unique within the tenant.
    pub model_name: String,
    /// The text that is embedded and listed in the summary pool.
    pub summary: String,
    /// Words that users say when they mean it.
    pub search_hint: String,
    /// The MCP definition, byte for byte as registered.
    pub definition: String,
    /// SHA-256 of the canonical definition (RFC 8785).
    #[serde(with = "text::hex")]
    pub hash: ContentHash,
    /// Its own precondition, beside the server's.
    pub precondition: Option<Precondition>,
    /// Its own scopes, beside the server's.
    pub required_scopes: Vec<String>,
    /// Always part of the active set.
    pub always_load: bool,
    /// Never deferred.
    pub critical: bool,
    /// cl100k_base tokens of the minified definition.
    pub schema_tokens: u32,
    /// cl100k_base tokens of the summary-pool line.
    pub summary_tokens: u32,
    /// Whether it is shown and callable. Exports from before there was a quarantine say nothing of it.
    #[serde(default)]
    pub status: ToolStatus,
}

/// A stored MCP server with what the store itself knows of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredServer {
    /// What was registered.
    pub record: ServerRecord,
    /// The revision of its last change.
    pub revision: Revision,
    /// When that was committed, in milliseconds since 1970 (UTC).
    pub updated_ms: i64,
    /// The number of its tools.
    pub tool_count: u32,
}

impl StoredServer {
    /// Names this version of the server; every change gets another one.
    #[must_use]
    pub fn etag(&self) -> String {
        format!("r{:x}", self.revision)
    }
}

/// A stored tool with what the store itself knows of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredTool {
    /// What was registered.
    pub record: ToolRecord,
    /// The revision at which its line of the summary pool last changed, or came back: the pool's order.
    pub summary_revision: Revision,
}

/// A tool that is gone, for deltas of the summary pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemovedTool {
    /// The name the model saw.
    pub model_name: String,
    /// The revision that removed it.
    pub revision: Revision,
}

/// One tenant's catalog at one revision.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StoredCatalog {
    /// The revision.
    pub revision: Revision,
    /// The MCP servers, by name.
    pub servers: Vec<StoredServer>,
    /// The shown tools in the summary pool's order: by summary revision, then server, then name.
    pub tools: Vec<StoredTool>,
    /// The quarantined tools, by server and name.
    pub quarantined: Vec<StoredTool>,
    /// The tools removed or quarantined since `pool_floor`, by revision, then name. A name that a shown tool without
    /// scopes has again is not among them: that tool's `summary_revision` says the same and more.
    pub removed: Vec<RemovedTool>,
    /// The oldest revision that a delta of the summary pool can start from. It rises to the present one
    /// when a change of scopes or of the policy, or the removal of a tool that not everybody sees, makes
    /// callers see different tools.
    pub pool_floor: Revision,
    /// The policy at that revision; `None` when none was ever set.
    pub policy: Option<StoredPolicy>,
}

/// An embedding and the text it is of.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredEmbedding {
    /// SHA-256 of the text.
    pub text_hash: ContentHash,
    /// The embedding, unit length.
    pub vector: Vec<f32>,
}

/// One MCP server's change, committed whole or not at all.
#[derive(Debug, Clone)]
pub struct ServerChange {
    /// The server's revision that the change was prepared from; `None` when it was not stored.
    pub base: Option<Revision>,
    /// The server as it is to be.
    pub server: ServerRecord,
    /// Tools to insert or replace; all of them are this server's.
    pub upserts: Vec<ToolRecord>,
    /// Tools to remove. Those that are not stored, or are upserted as well, are passed over.
    pub removals: Vec<ToolName>,
    /// Embeddings to keep, of the encoder with this fingerprint. They go with the last tool of the tenant
    /// whose summary they are of.
    pub embeddings: Vec<StoredEmbedding>,
    /// The fingerprint of the encoder that made them.
    pub fingerprint: String,
    /// The most tools that the tenant may have afterwards.
    pub max_tools: u64,
    /// The most MCP servers, announced ones among them, that the tenant may have afterwards.
    pub max_servers: u64,
    /// What to remember of the request, once the revision is known.
    pub request: Option<PendingRequest>,
}

/// What a commit did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// The catalog revision that holds the change.
    pub revision: Revision,
    /// When it was committed, in milliseconds since 1970 (UTC).
    pub updated_ms: i64,
}

/// A place after which a page of tools begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCursor {
    /// The last tool's server.
    pub server: String,
    /// The last tool's name.
    pub name: String,
}

/// Stored catalogs. Backends differ in SQL only: one suite of tests holds for all of them.
pub trait Store: KeyStore + Send + Sync + 'static {
    /// The tenant's catalog revision; `None` when it never had a catalog.
    fn revision<'a>(&'a self, tenant: &'a TenantId) -> StoreFuture<'a, Option<Revision>>;

    /// What changed in the tenant's catalog after revision `since`.
    fn changes<'a>(&'a self, tenant: &'a TenantId, since: Revision) -> StoreFuture<'a, Changes>;

    /// The tenant's whole catalog at one revision; `None` when it never had one.
    fn load_catalog<'a>(&'a self, tenant: &'a TenantId) -> StoreFuture<'a, Option<StoredCatalog>>;

    /// The tenant's embeddings made by one encoder, by hash of the text.
    fn load_embeddings<'a>(
        &'a self,
        tenant: &'a TenantId,
        fingerprint: &'a str,
    ) -> StoreFuture<'a, HashMap<ContentHash, Vec<f32>>>;

    /// Keeps embeddings that were missing, and drops those of texts that no tool has as its summary any longer.
    fn save_embeddings<'a>(
        &'a self,
        tenant: &'a TenantId,
        fingerprint: &'a str,
        embeddings: &'a [StoredEmbedding],
    ) -> StoreFuture<'a, ()>;

    /// Drops embeddings of these texts. Whoever loads the catalog next makes them anew.
    fn drop_embeddings<'a>(
        &'a self,
        tenant: &'a TenantId,
        fingerprint: &'a str,
        texts: &'a [ContentHash],
    ) -> StoreFuture<'a, ()>;

    /// One MCP server and its tools by name; `None` when it is not stored.
    fn read_server<'a>(
        &'a self,
        tenant: &'a TenantId,
        server: &'a ServerName,
    ) -> StoreFuture<'a, Option<(StoredServer, Vec<StoredTool>)>>;

    /// What the tools of one MCP server were that were removed within [`PAST_TOOL_KEPT`] and are not there again, by name.
    fn past_tools<'a>(
        &'a self,
        tenant: &'a TenantId,
        server: &'a ServerName,
    ) -> StoreFuture<'a, Vec<PastTool>>;

    /// A page of MCP servers by name, after `after`.
    fn list_servers<'a>(
        &'a self,
        tenant: &'a TenantId,
        after: Option<&'a str>,
        page_size: u32,
    ) -> StoreFuture<'a, Vec<StoredServer>>;

    /// A page of tools by server and name, after `after`, of one server or of all.
    fn list_tools<'a>(
        &'a self,
        tenant: &'a TenantId,
        server: Option<&'a ServerName>,
        after: Option<&'a ToolCursor>,
        page_size: u32,
    ) -> StoreFuture<'a, Vec<StoredTool>>;

    /// The request recorded under this id within [`REQUEST_KEPT`].
    fn find_request<'a>(
        &'a self,
        tenant: &'a TenantId,
        id: &'a str,
    ) -> StoreFuture<'a, Option<RecordedRequest>>;

    /// Records a request that changed nothing, answered at the tenant's present revision; 0 when it never
    /// had a catalog. What was recorded of it before stands.
    fn record_request<'a>(
        &'a self,
        tenant: &'a TenantId,
        request: PendingRequest,
    ) -> StoreFuture<'a, Committed>;

    /// Commits a change under the next revision. When it returns, the change survives a power cut; when
    /// it fails, nothing of it is seen, unless the cause was a lost answer ([`StoreError::Unavailable`]).
    ///
    /// The first of these that holds is the error: [`StoreError::RequestIdReused`],
    /// [`StoreError::Conflict`] (also when the same request was recorded meanwhile),
    /// [`StoreError::TooManyTools`], [`StoreError::TooManyServers`], [`StoreError::NameTaken`].
    fn commit<'a>(
        &'a self,
        tenant: &'a TenantId,
        change: ServerChange,
    ) -> StoreFuture<'a, Committed>;

    /// Removes an MCP server whose revision is still `base`, under the next revision; otherwise, or when
    /// it is not stored, [`StoreError::Conflict`].
    fn remove_server<'a>(
        &'a self,
        tenant: &'a TenantId,
        server: &'a ServerName,
        base: Revision,
    ) -> StoreFuture<'a, Committed>;

    /// Adds to counters of usage, all of them or none. A counter stays at [`AMOUNT_MAX`].
    fn add_usage<'a>(&'a self, additions: &'a [UsageAddition]) -> StoreFuture<'a, ()>;

    /// The tenant's counters of usage within `hours`, by hour and item; those of each `width` hours, at
    /// least 1, counted from 1970, are added up under the first of them.
    fn read_usage<'a>(
        &'a self,
        tenant: &'a TenantId,
        hours: Range<Hour>,
        width: Hour,
    ) -> StoreFuture<'a, Vec<UsageCount>>;

    /// Forgets all tenants' counters of usage of hours before `hour`.
    fn forget_usage(&self, hour: Hour) -> StoreFuture<'_, ()>;

    /// What came to be remembered after version `since`, or all of it where some is gone since; 0 for all.
    fn read_memory<'a>(
        &'a self,
        tenant: &'a TenantId,
        since: MemoryVersion,
    ) -> StoreFuture<'a, MemoryChanges>;

    /// Has `revise` change what is remembered of these tools, as one transaction; those that are not registered are
    /// passed over. What it leaves out stays; a place that it fills again is another exemplar. Then the tenant's
    /// memory is brought within `bounds`.
    fn revise_memory<'a>(
        &'a self,
        tenant: &'a TenantId,
        tools: &'a [ToolId],
        revise: Revise<'a>,
        bounds: MemoryBounds,
    ) -> StoreFuture<'a, ()>;

    /// Forgets what is remembered of the tenant, of one MCP server's tools, or of those of one name; how many exemplars.
    fn clear_memory<'a>(
        &'a self,
        tenant: &'a TenantId,
        server: Option<&'a ServerName>,
        tool: Option<&'a ToolName>,
    ) -> StoreFuture<'a, u64>;

    /// The tenant's policy; `None` when none was ever set.
    fn read_policy<'a>(&'a self, tenant: &'a TenantId) -> StoreFuture<'a, Option<StoredPolicy>>;

    /// Replaces the policy under the next catalog revision, and begins deltas of the summary pool anew.
    /// [`StoreError::Conflict`] when the policy's revision is no longer `base`.
    fn set_policy<'a>(
        &'a self,
        tenant: &'a TenantId,
        change: PolicyChange,
    ) -> StoreFuture<'a, Committed>;

    /// Answers when the store can be read.
    fn ping(&self) -> StoreFuture<'_, ()>;

    /// Closes the store after the calls under way. Further calls fail.
    fn close(&self) -> StoreFuture<'_, ()>;

    /// How many calls failed since the store could not be reached or read.
    fn failures(&self) -> u64;

    /// Whether other processes may change what is stored.
    fn is_shared(&self) -> bool;

    /// Returns the time by the store's clock as far as this process knows it, in milliseconds since 1970. What another
    /// process judges is stamped by it.
    fn clock_ms(&self) -> i64;

    /// Answers when another process may have changed something: a hint, which may be late, wrong, or never come.
    fn hint(&self) -> StoreFuture<'_, ()>;

    /// The number of the last change of any tenant's catalog; 0 before the first.
    fn last_change(&self) -> StoreFuture<'_, Sequence>;

    /// The tenants whose catalogs changed after the change of number `after`, at most so many, each once, in the
    /// order of their last changes. Whoever has seen one change has seen all with lower numbers.
    fn changed_tenants(&self, after: Sequence, most: u32) -> StoreFuture<'_, Vec<ChangedTenant>>;

    /// All that is stored of a tenant but for the ids of requests; `None` when it never had a catalog. Of what can't
    /// be read it says so in words instead.
    fn read_content<'a>(&'a self, tenant: &'a TenantId) -> StoreFuture<'a, Option<TenantContent>>;

    /// Stores what was read elsewhere, as it is, of a tenant that has no catalog; [`StoreError::Conflict`] of one that
    /// has.
    fn restore_content<'a>(
        &'a self,
        tenant: &'a TenantId,
        content: &'a TenantContent,
    ) -> StoreFuture<'a, ()>;

    /// A page of the tenants that have a catalog, by name, after `after`.
    fn list_tenants<'a>(
        &'a self,
        after: Option<&'a TenantId>,
        page_size: u32,
    ) -> StoreFuture<'a, Vec<TenantId>>;
}
