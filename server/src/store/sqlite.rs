//! The embedded store: one SQLite file with a write-ahead log, one connection that writes and a few that
//! read. SQL lives in the modules below; here is what each call may cost.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use sqlx::sqlite::{Sqlite, SqlitePool};
use sqlx::{SqlSafeStr, Transaction};

use self::failure::{failed, limited};
use self::open::{Connections, Tuning};
use self::place::Place;
use super::{
    Changes, Committed, ContentHash, Hour, MemoryBounds, MemoryChanges, MemoryVersion,
    PendingRequest, PolicyChange, RecordedRequest, Revise, Revision, ServerChange, Store,
    StoreError, StoreFuture, StoredCatalog, StoredEmbedding, StoredPolicy, StoredServer,
    StoredTool, ToolCursor, UsageAddition, UsageCount,
};
use crate::identity::{ServerName, TenantId, ToolId, ToolName};

mod changes;
mod commit;
mod embeddings;
mod failure;
mod keys;
mod memory;
mod open;
mod place;
mod policies;
mod read;
mod removed;
mod requests;
mod rows;
#[cfg(test)]
mod tests;
mod tools;
mod usage;

/// The longest that a read of a few rows may take.
const READ_LIMIT: Duration = Duration::from_secs(10);
/// The longest that a read of a tenant's whole catalog may take.
const LOAD_LIMIT: Duration = Duration::from_secs(60);
/// The longest that a change may take.
const WRITE_LIMIT: Duration = Duration::from_secs(30);

/// Catalogs in one SQLite file. Several processes may open it at once.
#[derive(Debug)]
pub struct SqliteStore {
    writer: SqlitePool,
    readers: SqlitePool,
    place: Place,
}

impl SqliteStore {
    /// Opens the database at `path`, makes it when it is missing (folders 0700, file 0600), and brings
    /// its schema up to date.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] with a cause that names the path and what to mend: a folder, no
    /// database, another application's, a newer version's, read-only, or locked by another process.
    pub async fn open(path: &Path) -> Result<Self, StoreError> {
        Self::open_with(path, Tuning::default()).await
    }

    /// Merges the write-ahead log into the database and closes it, after the calls under way. Further
    /// calls fail.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when the log could not be merged; nothing committed is lost then.
    pub async fn close(&self) -> Result<(), StoreError> {
        limited(WRITE_LIMIT, async {
            self.readers.close().await;
            let merge = sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)");
            let merged = merge.execute(&self.writer).await;
            self.writer.close().await;
            merged.map(drop).map_err(failed)
        })
        .await
    }

    async fn open_with(path: &Path, tuning: Tuning) -> Result<Self, StoreError> {
        let Connections { writer, readers, place } = open::open(path, tuning).await?;
        Ok(Self { writer, readers, place })
    }

    /// Begins a transaction that holds the write lock from the start: it never fails for a reader that
    /// became a writer.
    async fn begin_write(&self) -> Result<Transaction<'static, Sqlite>, StoreError> {
        // Before anything is changed that readers would see and a restart would lose.
        self.place.check()?;
        self.writer.begin_with("BEGIN IMMEDIATE".into_sql_str()).await.map_err(failed)
    }

    /// Commits, and makes sure that what is acknowledged then is where the next process looks.
    async fn end_write(&self, transaction: Transaction<'_, Sqlite>) -> Result<(), StoreError> {
        transaction.commit().await.map_err(failed)?;
        self.place.check()
    }

    /// Begins a transaction that sees one state of the database throughout.
    async fn begin_read(&self) -> Result<Transaction<'static, Sqlite>, StoreError> {
        self.readers.begin().await.map_err(failed)
    }
}

impl Store for SqliteStore {
    fn revision<'a>(&'a self, tenant: &'a TenantId) -> StoreFuture<'a, Option<Revision>> {
        Box::pin(limited(READ_LIMIT, read::revision(&self.readers, tenant.as_str())))
    }

    fn changes<'a>(&'a self, tenant: &'a TenantId, since: Revision) -> StoreFuture<'a, Changes> {
        Box::pin(limited(READ_LIMIT, async move {
            let mut snapshot = self.begin_read().await?;
            changes::since(&mut snapshot, tenant.as_str(), since).await
        }))
    }

    fn load_catalog<'a>(&'a self, tenant: &'a TenantId) -> StoreFuture<'a, Option<StoredCatalog>> {
        Box::pin(limited(LOAD_LIMIT, async {
            let mut snapshot = self.begin_read().await?;
            read::catalog(&mut snapshot, tenant.as_str()).await
        }))
    }

    fn load_embeddings<'a>(
        &'a self,
        tenant: &'a TenantId,
        fingerprint: &'a str,
    ) -> StoreFuture<'a, HashMap<ContentHash, Vec<f32>>> {
        let load = embeddings::load(&self.readers, tenant.as_str(), fingerprint);
        Box::pin(limited(LOAD_LIMIT, load))
    }

    fn save_embeddings<'a>(
        &'a self,
        tenant: &'a TenantId,
        fingerprint: &'a str,
        embeddings: &'a [StoredEmbedding],
    ) -> StoreFuture<'a, ()> {
        Box::pin(limited(WRITE_LIMIT, async move {
            let mut transaction = self.begin_write().await?;
            embeddings::save(&mut transaction, tenant.as_str(), fingerprint, embeddings).await?;
            self.end_write(transaction).await
        }))
    }

    fn read_server<'a>(
        &'a self,
        tenant: &'a TenantId,
        server: &'a ServerName,
    ) -> StoreFuture<'a, Option<(StoredServer, Vec<StoredTool>)>> {
        Box::pin(limited(LOAD_LIMIT, async {
            let mut snapshot = self.begin_read().await?;
            read::server(&mut snapshot, tenant.as_str(), server.as_str()).await
        }))
    }

    fn list_servers<'a>(
        &'a self,
        tenant: &'a TenantId,
        after: Option<&'a str>,
        page_size: u32,
    ) -> StoreFuture<'a, Vec<StoredServer>> {
        let page = read::servers_page(&self.readers, tenant.as_str(), after, page_size);
        Box::pin(limited(READ_LIMIT, page))
    }

    fn list_tools<'a>(
        &'a self,
        tenant: &'a TenantId,
        server: Option<&'a ServerName>,
        after: Option<&'a ToolCursor>,
        page_size: u32,
    ) -> StoreFuture<'a, Vec<StoredTool>> {
        let server = server.map(ServerName::as_str);
        let page = read::tools_page(&self.readers, tenant.as_str(), server, after, page_size);
        Box::pin(limited(READ_LIMIT, page))
    }

    fn find_request<'a>(
        &'a self,
        tenant: &'a TenantId,
        id: &'a str,
    ) -> StoreFuture<'a, Option<RecordedRequest>> {
        Box::pin(limited(READ_LIMIT, requests::find(&self.readers, tenant.as_str(), id)))
    }

    fn record_request<'a>(
        &'a self,
        tenant: &'a TenantId,
        request: PendingRequest,
    ) -> StoreFuture<'a, Committed> {
        Box::pin(limited(WRITE_LIMIT, async move {
            let mut transaction = self.begin_write().await?;
            let recorded =
                requests::record_unchanged(&mut transaction, tenant.as_str(), &request).await?;
            self.end_write(transaction).await?;
            Ok(recorded)
        }))
    }

    fn commit<'a>(
        &'a self,
        tenant: &'a TenantId,
        change: ServerChange,
    ) -> StoreFuture<'a, Committed> {
        Box::pin(limited(WRITE_LIMIT, async move {
            let mut transaction = self.begin_write().await?;
            let committed = commit::commit(&mut transaction, tenant.as_str(), &change).await?;
            self.end_write(transaction).await?;
            Ok(committed)
        }))
    }

    fn remove_server<'a>(
        &'a self,
        tenant: &'a TenantId,
        server: &'a ServerName,
        base: Revision,
    ) -> StoreFuture<'a, Committed> {
        Box::pin(limited(WRITE_LIMIT, async move {
            let mut transaction = self.begin_write().await?;
            let (tenant, server) = (tenant.as_str(), server.as_str());
            let committed = commit::remove_server(&mut transaction, tenant, server, base).await?;
            self.end_write(transaction).await?;
            Ok(committed)
        }))
    }

    fn add_usage<'a>(&'a self, additions: &'a [UsageAddition]) -> StoreFuture<'a, ()> {
        Box::pin(limited(WRITE_LIMIT, async move {
            let mut transaction = self.begin_write().await?;
            usage::add(&mut transaction, additions).await?;
            self.end_write(transaction).await
        }))
    }

    fn read_usage<'a>(
        &'a self,
        tenant: &'a TenantId,
        hours: Range<Hour>,
        width: Hour,
    ) -> StoreFuture<'a, Vec<UsageCount>> {
        Box::pin(limited(LOAD_LIMIT, usage::read(&self.readers, tenant.as_str(), hours, width)))
    }

    fn forget_usage(&self, hour: Hour) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            while limited(WRITE_LIMIT, async {
                let mut transaction = self.begin_write().await?;
                let has_more = usage::forget(&mut transaction, hour).await?;
                self.end_write(transaction).await?;
                Ok(has_more)
            })
            .await?
            {}
            Ok(())
        })
    }

    fn read_memory<'a>(
        &'a self,
        tenant: &'a TenantId,
        since: MemoryVersion,
    ) -> StoreFuture<'a, MemoryChanges> {
        Box::pin(limited(LOAD_LIMIT, async move {
            let mut snapshot = self.begin_read().await?;
            memory::read(&mut snapshot, tenant.as_str(), since).await
        }))
    }

    fn revise_memory<'a>(
        &'a self,
        tenant: &'a TenantId,
        tools: &'a [ToolId],
        revise: Revise<'a>,
        bounds: MemoryBounds,
    ) -> StoreFuture<'a, ()> {
        Box::pin(limited(WRITE_LIMIT, async move {
            let mut transaction = self.begin_write().await?;
            memory::revise(&mut transaction, tenant.as_str(), tools, revise).await?;
            memory::trim(&mut transaction, tenant.as_str(), bounds).await?;
            self.end_write(transaction).await
        }))
    }

    fn clear_memory<'a>(
        &'a self,
        tenant: &'a TenantId,
        server: Option<&'a ServerName>,
        tool: Option<&'a ToolName>,
    ) -> StoreFuture<'a, u64> {
        Box::pin(limited(WRITE_LIMIT, async move {
            let mut transaction = self.begin_write().await?;
            let (server, tool) = (server.map(ServerName::as_str), tool.map(ToolName::as_str));
            let gone = memory::clear(&mut transaction, tenant.as_str(), server, tool).await?;
            self.end_write(transaction).await?;
            Ok(gone)
        }))
    }

    fn read_policy<'a>(&'a self, tenant: &'a TenantId) -> StoreFuture<'a, Option<StoredPolicy>> {
        Box::pin(limited(READ_LIMIT, async {
            let mut snapshot = self.begin_read().await?;
            policies::read(&mut snapshot, tenant.as_str()).await
        }))
    }

    fn set_policy<'a>(
        &'a self,
        tenant: &'a TenantId,
        change: PolicyChange,
    ) -> StoreFuture<'a, Committed> {
        Box::pin(limited(WRITE_LIMIT, async move {
            let mut transaction = self.begin_write().await?;
            let committed = policies::set(&mut transaction, tenant.as_str(), &change).await?;
            self.end_write(transaction).await?;
            Ok(committed)
        }))
    }

    fn ping(&self) -> StoreFuture<'_, ()> {
        Box::pin(limited(READ_LIMIT, read::ping(&self.readers)))
    }
}
