//! The embedded store: one SQLite file with a write-ahead log, one connection that writes and a few that
//! read. What is read and written is in `sql`; here is how the file is opened, locked and closed.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use sqlx::SqlSafeStr;
use sqlx::sqlite::{Sqlite, SqlitePool};
use tokio::task::JoinHandle;

use self::failure::failed;
use self::open::{Connections, Tuning};
use self::place::Place;
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

/// What is set aside: the write-ahead log of a change that removes an MCP server of some thousand tools.
const RESERVE: u64 = 32 << 20;

/// Catalogs in one SQLite file. Several processes may open it at once.
#[derive(Debug)]
pub struct SqliteStore {
    writer: SqlitePool,
    readers: SqlitePool,
    place: Place,
    reserve: Arc<Reserve>,
    /// Milliseconds by which the store's clock is ahead of this process's: not 0 in tests alone.
    ahead_ms: i64,
    failures: AtomicU64,
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

    /// As [`SqliteStore::open`], with a clock that is so many milliseconds ahead of this process's.
    ///
    /// # Errors
    /// As [`SqliteStore::open`].
    #[doc(hidden)]
    pub async fn open_with_clock(path: &Path, ahead_ms: i64) -> Result<Self, StoreError> {
        Ok(Self { ahead_ms, ..Self::open(path).await? })
    }

    /// How the schema of the database at `path` stands to this version's. Changes nothing; one that is not there has
    /// none.
    ///
    /// # Errors
    /// As [`SqliteStore::open`].
    pub async fn schema(path: &Path) -> Result<SchemaState, StoreError> {
        open::schema(path).await
    }

    /// Looks through the database's pages and indexes.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] with what was found first.
    pub async fn quick_check(&self) -> Result<(), StoreError> {
        open::quick_check(&self.readers).await
    }

    /// Looks through the database at `path` and changes nothing.
    ///
    /// # Errors
    /// [`StoreError::Damaged`], or as [`SqliteStore::open`].
    pub async fn look_through(path: &Path) -> Result<(), StoreError> {
        open::look_through(path).await
    }

    async fn open_with(path: &Path, tuning: Tuning) -> Result<Self, StoreError> {
        let reserve = Arc::new(Reserve::beside(path, RESERVE));
        // Opening takes some of it where the disk is full.
        reserve.release();
        let Connections { writer, readers, place } = open::open(path, tuning).await?;
        let store =
            Self { writer, readers, place, reserve, ahead_ms: 0, failures: AtomicU64::new(0) };
        drop(store.fill_reserve().await);
        Ok(store)
    }

    /// Sets room aside, off the async threads.
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

    /// Holds the write lock from the start: it never fails for a reader that became a writer.
    async fn begin_write(&self, _: Scope<'_>) -> Result<SqliteTransaction, StoreError> {
        // Before anything is changed that readers would see and a restart would lose.
        self.place.check()?;
        let begun = self.writer.begin_with("BEGIN IMMEDIATE".into_sql_str()).await;
        Ok(self.started(begun.map_err(failed)?))
    }

    /// Makes sure that what is acknowledged is where the next process looks.
    async fn commit(&self, transaction: SqliteTransaction) -> Result<(), StoreError> {
        transaction.inner.commit().await.map_err(failed)?;
        if self.reserve.is_missing() {
            drop(self.fill_reserve());
        }
        self.place.check()
    }

    /// Merges the write-ahead log into the database first. Where that fails, nothing committed is lost.
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

    /// The database and whoever has it open are on one host.
    fn clock_ms(&self) -> i64 {
        here_ms().saturating_add(self.ahead_ms)
    }

    fn hint(&self) -> StoreFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
}
