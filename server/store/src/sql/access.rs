//! Implementation of the traits of storage for every SQL backend: each call is one transaction with a time limit.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{
    Backend, Scope, changes, commit, content, embeddings, marks, memory, past, policies, read,
    requests, usage,
};
use crate::{
    CatalogStore, ChangeFeed, ChangedTenant, Changes, Committed, ContentHash, EmbeddingStore, Hour,
    MemoryBounds, MemoryChanges, MemoryStore, MemoryVersion, PastTool, PendingRequest,
    PolicyChange, RecordedRequest, Revise, Revision, Sequence, ServerChange, SimilarTools, Store,
    StoreError, StoreFuture, StoredCatalog, StoredEmbedding, StoredPolicy, StoredServer,
    StoredTool, TenantArchive, TenantContent, ToolCursor, UsageAddition, UsageCount, UsageStore,
};
use toolgate_core::identity::{ServerName, TenantId, ToolId, ToolName};

/// Time limit for a read of a few rows.
pub(super) const READ_LIMIT: Duration = Duration::from_secs(10);
/// Time limit for a read of a tenant's whole catalog.
const LOAD_LIMIT: Duration = Duration::from_secs(60);
/// Time limit for a change.
pub(super) const WRITE_LIMIT: Duration = Duration::from_secs(30);
/// Time limit for a read or a write of all content of a tenant.
const MOVE_LIMIT: Duration = Duration::from_secs(15 * 60);

/// Maximum number of attempts at a change that the database rolls back because of a conflict.
pub(super) const ATTEMPTS: u32 = 4;

/// Awaits `work`, and returns [`StoreError::Unavailable`] if it takes longer than `limit`. Counts failures.
pub(super) async fn limited<T>(
    store: &impl Backend,
    limit: Duration,
    work: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let answer = match tokio::time::timeout(limit, work).await {
        Ok(answer) => answer,
        Err(_) => Err(StoreError::Unavailable(format!("no answer within {limit:?}").into())),
    };
    if let Err(StoreError::Unavailable(_) | StoreError::Damaged(_)) = &answer {
        store.failures().fetch_add(1, Ordering::Relaxed);
    }
    answer
}

/// Runs `$work` within one read transaction.
macro_rules! reading {
    ($store:ident, $limit:ident, $scope:expr, |$snapshot:ident| $work:expr) => {
        Box::pin(limited($store, $limit, async move {
            let mut transaction = $store.begin_read($scope).await?;
            let $snapshot = &mut transaction;
            $work.await
        }))
    };
}

/// Runs `$work` within one write transaction and commits it. Retries if the database rolled it back.
macro_rules! writing {
    ($store:ident, $limit:ident, $scope:expr, |$transaction:ident| $work:expr) => {
        limited($store, $limit, async move {
            let mut attempt = 1;
            loop {
                let mut transaction = $store.begin_write($scope).await?;
                let $transaction = &mut transaction;
                let outcome = match $work.await {
                    Ok(answer) => Backend::commit($store, transaction).await.map(|()| answer),
                    Err(error) => Err(error),
                };
                match outcome {
                    Err(error) if B::was_undone(&error) && attempt < ATTEMPTS => attempt += 1,
                    outcome => break outcome,
                }
            }
        })
    };
}

/// Runs `$work` as [`writing!`] does, for changes that delete content or forbid something. On a full disk they get
/// the reserved space.
macro_rules! withdrawing {
    ($store:ident, $limit:ident, $scope:expr, |$transaction:ident| $work:expr) => {
        async move {
            match writing!($store, $limit, $scope, |$transaction| $work).await {
                Err(error) if Backend::make_room($store, &error) => {
                    writing!($store, $limit, $scope, |$transaction| $work).await
                }
                outcome => outcome,
            }
        }
    };
}

pub(super) use {reading, withdrawing, writing};

impl<B: Backend> CatalogStore for B {
    fn revision<'a>(&'a self, tenant: &'a TenantId) -> StoreFuture<'a, Option<Revision>> {
        let tenant = tenant.as_str();
        reading!(self, READ_LIMIT, Scope::Tenant(tenant), |tx| read::revision(tx, tenant))
    }

    fn load_catalog<'a>(&'a self, tenant: &'a TenantId) -> StoreFuture<'a, Option<StoredCatalog>> {
        let tenant = tenant.as_str();
        reading!(self, LOAD_LIMIT, Scope::Tenant(tenant), |tx| read::catalog(tx, tenant))
    }

    fn read_server<'a>(
        &'a self,
        tenant: &'a TenantId,
        server: &'a ServerName,
    ) -> StoreFuture<'a, Option<(StoredServer, Vec<StoredTool>)>> {
        let tenant = tenant.as_str();
        reading!(self, LOAD_LIMIT, Scope::Tenant(tenant), |tx| {
            read::server(tx, tenant, server.as_str())
        })
    }

    fn past_tools<'a>(
        &'a self,
        tenant: &'a TenantId,
        server: &'a ServerName,
    ) -> StoreFuture<'a, Vec<PastTool>> {
        let tenant = tenant.as_str();
        reading!(self, READ_LIMIT, Scope::Tenant(tenant), |tx| {
            past::of_server(tx, tenant, server.as_str())
        })
    }

    fn similar_tools<'a>(
        &'a self,
        tenant: &'a TenantId,
        server: &'a ServerName,
        keys: &'a [i64],
    ) -> StoreFuture<'a, SimilarTools> {
        let tenant = tenant.as_str();
        let server = server.as_str();
        let similar = move || -> StoreFuture<'a, Option<SimilarTools>> {
            reading!(self, READ_LIMIT, Scope::Tenant(tenant), |tx| {
                marks::similar(tx, tenant, server, keys)
            })
        };
        Box::pin(async move {
            if let Some(found) = similar().await? {
                return Ok(found);
            }
            writing!(self, LOAD_LIMIT, Scope::Tenant(tenant), |tx| marks::ensure(tx, tenant))
                .await?;
            let missing = || StoreError::Damaged("a tenant's marks have no version".to_owned());
            similar().await?.ok_or_else(missing)
        })
    }

    fn list_servers<'a>(
        &'a self,
        tenant: &'a TenantId,
        after: Option<&'a str>,
        page_size: u32,
    ) -> StoreFuture<'a, Vec<StoredServer>> {
        let tenant = tenant.as_str();
        reading!(self, READ_LIMIT, Scope::Tenant(tenant), |tx| {
            read::servers_page(tx, tenant, after, page_size)
        })
    }

    fn list_tools<'a>(
        &'a self,
        tenant: &'a TenantId,
        server: Option<&'a ServerName>,
        after: Option<&'a ToolCursor>,
        page_size: u32,
    ) -> StoreFuture<'a, Vec<StoredTool>> {
        let tenant = tenant.as_str();
        let server = server.map(ServerName::as_str);
        reading!(self, READ_LIMIT, Scope::Tenant(tenant), |tx| {
            read::tools_page(tx, tenant, server, after, page_size)
        })
    }

    fn find_request<'a>(
        &'a self,
        tenant: &'a TenantId,
        id: &'a str,
    ) -> StoreFuture<'a, Option<RecordedRequest>> {
        let tenant = tenant.as_str();
        reading!(self, READ_LIMIT, Scope::Tenant(tenant), |tx| requests::find(tx, tenant, id))
    }

    fn record_request<'a>(
        &'a self,
        tenant: &'a TenantId,
        request: PendingRequest,
    ) -> StoreFuture<'a, Committed> {
        let tenant = tenant.as_str();
        Box::pin(writing!(self, WRITE_LIMIT, Scope::Tenant(tenant), |tx| {
            requests::record_unchanged(tx, tenant, &request)
        }))
    }

    fn commit<'a>(
        &'a self,
        tenant: &'a TenantId,
        change: ServerChange,
    ) -> StoreFuture<'a, Committed> {
        let tenant = tenant.as_str();
        Box::pin(writing!(self, WRITE_LIMIT, Scope::Tenant(tenant), |tx| commit::commit(
            tx, tenant, &change
        )))
    }

    fn remove_server<'a>(
        &'a self,
        tenant: &'a TenantId,
        server: &'a ServerName,
        base: Revision,
    ) -> StoreFuture<'a, Committed> {
        let tenant = tenant.as_str();
        let server = server.as_str();
        Box::pin(withdrawing!(self, WRITE_LIMIT, Scope::Tenant(tenant), |tx| {
            commit::remove_server(tx, tenant, server, base)
        }))
    }

    fn read_policy<'a>(&'a self, tenant: &'a TenantId) -> StoreFuture<'a, Option<StoredPolicy>> {
        let tenant = tenant.as_str();
        reading!(self, READ_LIMIT, Scope::Tenant(tenant), |tx| policies::read(tx, tenant))
    }

    fn set_policy<'a>(
        &'a self,
        tenant: &'a TenantId,
        change: PolicyChange,
    ) -> StoreFuture<'a, Committed> {
        let tenant = tenant.as_str();
        Box::pin(async move {
            let change = &change;
            withdrawing!(self, WRITE_LIMIT, Scope::Tenant(tenant), |tx| {
                policies::set(tx, tenant, change)
            })
            .await
        })
    }
}

impl<B: Backend> EmbeddingStore for B {
    fn load_embeddings<'a>(
        &'a self,
        tenant: &'a TenantId,
        fingerprint: &'a str,
    ) -> StoreFuture<'a, HashMap<ContentHash, Vec<f32>>> {
        let tenant = tenant.as_str();
        reading!(self, LOAD_LIMIT, Scope::Tenant(tenant), |tx| {
            embeddings::load(tx, tenant, fingerprint)
        })
    }

    fn save_embeddings<'a>(
        &'a self,
        tenant: &'a TenantId,
        fingerprint: &'a str,
        embeddings: &'a [StoredEmbedding],
    ) -> StoreFuture<'a, ()> {
        let tenant = tenant.as_str();
        Box::pin(writing!(self, WRITE_LIMIT, Scope::Tenant(tenant), |tx| {
            embeddings::save_used(tx, tenant, fingerprint, embeddings)
        }))
    }

    fn drop_embeddings<'a>(
        &'a self,
        tenant: &'a TenantId,
        fingerprint: &'a str,
        texts: &'a [ContentHash],
    ) -> StoreFuture<'a, ()> {
        let tenant = tenant.as_str();
        Box::pin(writing!(self, WRITE_LIMIT, Scope::Tenant(tenant), |tx| {
            embeddings::drop_some(tx, tenant, fingerprint, texts)
        }))
    }
}

impl<B: Backend> UsageStore for B {
    fn add_usage<'a>(&'a self, additions: &'a [UsageAddition]) -> StoreFuture<'a, ()> {
        Box::pin(writing!(self, WRITE_LIMIT, Scope::Counting, |tx| usage::add(tx, additions)))
    }

    fn read_usage<'a>(
        &'a self,
        tenant: &'a TenantId,
        hours: Range<Hour>,
        width: Hour,
    ) -> StoreFuture<'a, Vec<UsageCount>> {
        let tenant = tenant.as_str();
        reading!(self, LOAD_LIMIT, Scope::Tenant(tenant), |tx| {
            usage::read(tx, tenant, hours, width)
        })
    }

    fn forget_usage(&self, hour: Hour) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            while writing!(self, WRITE_LIMIT, Scope::Forgetting, |tx| usage::forget(tx, hour))
                .await?
            {}
            Ok(())
        })
    }
}

impl<B: Backend> MemoryStore for B {
    fn read_memory<'a>(
        &'a self,
        tenant: &'a TenantId,
        since: MemoryVersion,
    ) -> StoreFuture<'a, MemoryChanges> {
        let tenant = tenant.as_str();
        reading!(self, LOAD_LIMIT, Scope::Tenant(tenant), |tx| memory::read(tx, tenant, since))
    }

    fn revise_memory<'a>(
        &'a self,
        tenant: &'a TenantId,
        tools: &'a [ToolId],
        revise: Revise<'a>,
        bounds: MemoryBounds,
    ) -> StoreFuture<'a, ()> {
        let tenant = tenant.as_str();
        Box::pin(writing!(self, WRITE_LIMIT, Scope::Tenant(tenant), |tx| async {
            memory::revise(tx, tenant, tools, revise).await?;
            memory::trim(tx, tenant, bounds).await
        }))
    }

    fn clear_memory<'a>(
        &'a self,
        tenant: &'a TenantId,
        server: Option<&'a ServerName>,
        tool: Option<&'a ToolName>,
    ) -> StoreFuture<'a, u64> {
        let tenant = tenant.as_str();
        let server = server.map(ServerName::as_str);
        let tool = tool.map(ToolName::as_str);
        Box::pin(withdrawing!(self, WRITE_LIMIT, Scope::Tenant(tenant), |tx| {
            memory::clear(tx, tenant, server, tool)
        }))
    }
}

impl<B: Backend> ChangeFeed for B {
    fn changes<'a>(&'a self, tenant: &'a TenantId, since: Revision) -> StoreFuture<'a, Changes> {
        let tenant = tenant.as_str();
        reading!(self, READ_LIMIT, Scope::Tenant(tenant), |tx| changes::since(tx, tenant, since))
    }

    fn is_shared(&self) -> bool {
        Backend::is_shared(self)
    }

    fn clock_ms(&self) -> i64 {
        Backend::clock_ms(self)
    }

    fn hint(&self) -> StoreFuture<'_, ()> {
        Backend::hint(self)
    }

    fn last_change(&self) -> StoreFuture<'_, Sequence> {
        reading!(self, READ_LIMIT, Scope::Following, |tx| changes::last(tx))
    }

    fn changed_tenants(&self, after: Sequence, most: u32) -> StoreFuture<'_, Vec<ChangedTenant>> {
        reading!(self, READ_LIMIT, Scope::Following, |tx| changes::tenants(tx, after, most))
    }
}

impl<B: Backend> TenantArchive for B {
    fn read_content<'a>(&'a self, tenant: &'a TenantId) -> StoreFuture<'a, Option<TenantContent>> {
        let tenant = tenant.as_str();
        reading!(self, MOVE_LIMIT, Scope::Tenant(tenant), |tx| content::read(tx, tenant))
    }

    fn restore_content<'a>(
        &'a self,
        tenant: &'a TenantId,
        content: &'a TenantContent,
    ) -> StoreFuture<'a, ()> {
        let tenant = tenant.as_str();
        Box::pin(writing!(self, MOVE_LIMIT, Scope::Tenant(tenant), |tx| {
            content::restore(tx, tenant, content)
        }))
    }

    fn list_tenants<'a>(
        &'a self,
        after: Option<&'a TenantId>,
        page_size: u32,
    ) -> StoreFuture<'a, Vec<TenantId>> {
        let after = after.map(TenantId::as_str);
        reading!(self, READ_LIMIT, Scope::Following, |tx| {
            changes::all_tenants(tx, after, page_size)
        })
    }
}

impl<B: Backend> Store for B {
    fn ping(&self) -> StoreFuture<'_, ()> {
        reading!(self, READ_LIMIT, Scope::Following, |tx| read::ping(tx))
    }

    fn close(&self) -> StoreFuture<'_, ()> {
        Box::pin(limited(self, WRITE_LIMIT, Backend::close(self)))
    }

    fn failures(&self) -> u64 {
        Backend::failures(self).load(Ordering::Relaxed)
    }
}
