//! Traits of storage by concern, and their sum, [`Store`]. Every method for one tenant takes the tenant first.

use std::collections::HashMap;
use std::ops::Range;

// Documentation links to these.
#[cfg(doc)]
use crate::{AMOUNT_MAX, PAST_TOOL_KEPT, REQUEST_KEPT, StoreError};
use crate::{
    ChangedTenant, Changes, Committed, ContentHash, Hour, KeyStore, MemoryBounds, MemoryChanges,
    MemoryVersion, PastTool, PendingRequest, PolicyChange, RecordedRequest, Revise, Revision,
    Sequence, ServerChange, SessionStore, SimilarTools, StoreFuture, StoredCatalog,
    StoredEmbedding, StoredPolicy, StoredServer, StoredTool, TenantContent, ToolCursor,
    UsageAddition, UsageCount,
};
use toolgate_core::identity::{ServerName, TenantId, ToolId, ToolName};

/// Storage for catalogs, their policies, and the requests that changed them.
pub trait CatalogStore: Send + Sync + 'static {
    /// Returns the tenant's catalog revision; `None` if the tenant never had a catalog.
    fn revision<'a>(&'a self, tenant: &'a TenantId) -> StoreFuture<'a, Option<Revision>>;

    /// Returns the tenant's whole catalog at one revision; `None` if the tenant never had a catalog.
    fn load_catalog<'a>(&'a self, tenant: &'a TenantId) -> StoreFuture<'a, Option<StoredCatalog>>;

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

    /// Returns the tenant's policy; `None` if none was ever set.
    fn read_policy<'a>(&'a self, tenant: &'a TenantId) -> StoreFuture<'a, Option<StoredPolicy>>;

    /// Replaces the policy under the next catalog revision, and restarts deltas of the summary pool. Returns
    /// [`StoreError::Conflict`] if the policy's revision is no longer `base`.
    fn set_policy<'a>(
        &'a self,
        tenant: &'a TenantId,
        change: PolicyChange,
    ) -> StoreFuture<'a, Committed>;
}

/// Storage for the embeddings of tools' summaries, by the encoder that made them.
pub trait EmbeddingStore: Send + Sync + 'static {
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
}

/// Storage for usage counters, by hour.
pub trait UsageStore: Send + Sync + 'static {
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
}

/// Storage for exemplars: intents that tools were called for.
pub trait MemoryStore: Send + Sync + 'static {
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
}

/// Changes of catalogs, those of other processes included, and the clock that all processes share.
pub trait ChangeFeed: Send + Sync + 'static {
    /// Returns the changes in the tenant's catalog after revision `since`.
    fn changes<'a>(&'a self, tenant: &'a TenantId, since: Revision) -> StoreFuture<'a, Changes>;

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
}

/// Storage for the whole content of tenants, as exports, imports and checks need it.
pub trait TenantArchive: Send + Sync + 'static {
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

/// Storage of a process. Backends differ only in SQL, and all of them must pass the same test suite.
pub trait Store:
    CatalogStore
    + EmbeddingStore
    + UsageStore
    + MemoryStore
    + ChangeFeed
    + TenantArchive
    + KeyStore
    + SessionStore
{
    /// Completes if the store can be read.
    fn ping(&self) -> StoreFuture<'_, ()>;

    /// Closes the store after the calls in progress. Further calls fail.
    fn close(&self) -> StoreFuture<'_, ()>;

    /// Returns the number of calls that failed because the store could not be reached or read.
    fn failures(&self) -> u64;
}
