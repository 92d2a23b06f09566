//! Embedded store: one SQLite file with a write-ahead log, one connection for writes and a few for reads. The `sql`
//! module holds the statements. This module opens, locks and closes the file.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use sqlx::SqlSafeStr;
use sqlx::sqlite::{Sqlite, SqlitePool};
use tokio::task::JoinHandle;

use self::failure::failed;
use self::open::{Connections, Tuning};
use self::place::FileIdentity;
use self::transaction::SqliteTransaction;
use super::clock::here_ms;
use super::error::DiskFull;
use super::sql::{Backend, Scope};
use super::{SchemaState, StoreError, StoreFuture};
use crate::reserve::Reserve;

mod failure;
mod open;
mod place;
#[cfg(test)]
mod tests;
mod transaction;

#[cfg(test)]
pub(super) use self::open::SCHEMA;

/// Reserved disk space in bytes. It holds the write-ahead log of a change that removes an MCP server with some
/// thousand tools.
const RESERVE: u64 = 32 << 20;

/// Store in one SQLite file. Several processes may open the file at once.
#[derive(Debug)]
pub struct SqliteStore {
    writer: SqlitePool,
    readers: SqlitePool,
    place: FileIdentity,
    reserve: Arc<Reserve>,
    /// Milliseconds by which the store's clock is ahead of this process's clock; not 0 only in tests.
    ahead_ms: i64,
    failures: AtomicU64,
}

impl SqliteStore {
    /// Opens the database at `path` and migrates its schema. Creates a missing database (folders with mode 0700, file
    /// with mode 0600).
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] with a cause that names the path and the problem: a folder, not a database, a
    /// database of another application or of a newer version, read-only, or locked by another process.
    pub async fn open(path: &Path) -> Result<Self, StoreError> {
        Self::open_with(path, Tuning::default()).await
    }

    /// Opens the database as [`SqliteStore::open`] does, with a clock that is `ahead_ms` milliseconds ahead of this
    /// process's clock.
    ///
    /// # Errors
    /// Same as for [`SqliteStore::open`].
    #[doc(hidden)]
    pub async fn open_with_clock(path: &Path, ahead_ms: i64) -> Result<Self, StoreError> {
        Ok(Self { ahead_ms, ..Self::open(path).await? })
    }

    /// Compares the schema of the database at `path` with this version's schema. Changes nothing; a missing database
    /// has no schema.
    ///
    /// # Errors
    /// Same as for [`SqliteStore::open`].
    pub async fn schema(path: &Path) -> Result<SchemaState, StoreError> {
        open::schema(path).await
    }

    /// Checks the database's pages and indexes for damage.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] with the first problem found.
    pub async fn quick_check(&self) -> Result<(), StoreError> {
        open::quick_check(&self.readers).await
    }

    /// Checks the database at `path` for damage, without changing it.
    ///
    /// # Errors
    /// [`StoreError::Damaged`], or as [`SqliteStore::open`].
    pub async fn look_through(path: &Path) -> Result<(), StoreError> {
        Box::pin(open::look_through(path)).await
    }

    async fn open_with(path: &Path, tuning: Tuning) -> Result<Self, StoreError> {
        let reserve = Arc::new(Reserve::beside(path, RESERVE));
        // On a full disk, opening needs some of the reserve.
        reserve.release();
        // The driver's futures are large without optimisation.
        let Connections { writer, readers, place } = Box::pin(open::open(path, tuning)).await?;
        let store =
            Self { writer, readers, place, reserve, ahead_ms: 0, failures: AtomicU64::new(0) };
        drop(store.fill_reserve().await);
        Ok(store)
    }

    /// Fills the disk reserve on a blocking thread, off the async threads.
    fn fill_reserve(&self) -> JoinHandle<()> {
        let reserve = Arc::clone(&self.reserve);
        tokio::task::spawn_blocking(move || reserve.fill())
    }

    fn started(&self, inner: sqlx::Transaction<'static, Sqlite>) -> SqliteTransaction {
        SqliteTransaction { inner, now_ms: Backend::clock_ms(self) }
    }
}

impl Backend for SqliteStore {
    type Transaction = SqliteTransaction;

    async fn begin_read(&self, _: Scope<'_>) -> Result<SqliteTransaction, StoreError> {
        Ok(self.started(self.readers.begin().await.map_err(failed)?))
    }

    /// Takes the write lock at the start, so that it never fails by upgrading a read transaction.
    async fn begin_write(&self, _: Scope<'_>) -> Result<SqliteTransaction, StoreError> {
        // Check before readers see a change that a restart would lose.
        self.place.check()?;
        let begun = self.writer.begin_with("BEGIN IMMEDIATE".into_sql_str()).await;
        Ok(self.started(begun.map_err(failed)?))
    }

    /// Commits, then checks that the next process will find the committed data.
    async fn commit(&self, transaction: SqliteTransaction) -> Result<(), StoreError> {
        transaction.inner.commit().await.map_err(failed)?;
        if self.reserve.is_missing() {
            drop(self.fill_reserve());
        }
        self.place.check()
    }

    /// Merges the write-ahead log into the database first. If that fails, no committed data is lost.
    async fn close(&self) -> Result<(), StoreError> {
        self.readers.close().await;
        let merge = sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)");
        let merged = merge.execute(&self.writer).await;
        self.writer.close().await;
        merged.map(drop).map_err(failed)
    }

    fn was_undone(_: &StoreError) -> bool {
        false
    }

    fn make_room(&self, error: &StoreError) -> bool {
        let is_full = matches!(error, StoreError::Unavailable(cause) if cause.is::<DiskFull>());
        is_full && self.reserve.release()
    }

    fn failures(&self) -> &AtomicU64 {
        &self.failures
    }

    fn is_shared(&self) -> bool {
        false
    }

    /// Returns this process's clock, because every process that opens the database runs on the same host.
    fn clock_ms(&self) -> i64 {
        here_ms().saturating_add(self.ahead_ms)
    }

    fn hint(&self) -> StoreFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
}
