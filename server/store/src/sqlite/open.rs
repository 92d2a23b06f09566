//! Checks, opens and migrates a database file. This module does not use its content.

use std::fs::{DirBuilder, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use sqlx::migrate::{MigrateError, Migrator};
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePool, SqlitePoolOptions,
    SqliteSynchronous,
};
use sqlx::{ConnectOptions, Connection};

use super::failure::{OpenFailure, failed};
use super::place::FileIdentity;
use crate::migrations::{files, migrator};
use crate::{SchemaState, StoreError};

pub(crate) static SCHEMA: LazyLock<Migrator> = LazyLock::new(|| {
    migrator(files![
        "0001_catalog.sql",
        "0002_policies.sql",
        "0003_pending.sql",
        "0004_usage.sql",
        "0005_memory.sql",
        "0006_removed_servers.sql",
        "0007_sequence.sql",
        "0008_api_keys.sql",
        "0009_quarantine.sql",
        "0010_past_tools.sql",
        "0011_tool_marks.sql",
        "0012_ended_sessions.sql",
    ])
});

/// `application_id` of Toolgate's databases, as the first migration sets it.
const APPLICATION: i64 = 1_413_955_924;
const READERS: u32 = 4;
/// Maximum time that a call waits for a connection.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);
/// Size in bytes to which the write-ahead log shrinks after a long read no longer holds it open.
const WAL_KEPT: &str = "67108864";
/// Number of rows buffered between the thread of a connection and the task that reads them.
const ROW_BUFFER: usize = 512;

/// Settings that tests change.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tuning {
    /// Time that SQLite itself waits for a lock of another connection or process.
    pub(super) busy_timeout: Duration,
    /// Maximum number of pages of the database, to simulate a full disk.
    pub(super) max_pages: Option<u32>,
}

impl Default for Tuning {
    fn default() -> Self {
        Self { busy_timeout: Duration::from_secs(5), max_pages: None }
    }
}

/// Connections to one database.
#[derive(Debug)]
pub(super) struct Connections {
    /// The only connection that writes.
    pub(super) writer: SqlitePool,
    /// Connections that can't write.
    pub(super) readers: SqlitePool,
    /// Database file that the connections have open.
    pub(super) place: FileIdentity,
}

pub(super) async fn open(path: &Path, tuning: Tuning) -> Result<Connections, StoreError> {
    let path = std::path::absolute(path)
        .map_err(|cause| OpenFailure::io(path, "not a path of a file", cause))?;
    make_file(&path)?;
    let options = options(&path, tuning.busy_timeout);
    check_owner(&path, &options).await?;

    let mut writing = options
        .clone()
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .pragma("fullfsync", "ON")
        .pragma("checkpoint_fullfsync", "ON")
        .pragma("journal_size_limit", WAL_KEPT);
    if let Some(pages) = tuning.max_pages {
        writing = writing.pragma("max_page_count", pages.to_string());
    }
    let refused = |cause| OpenFailure::database(&path, cause);
    let writer = connections(1).connect_with(writing).await.map_err(refused)?;
    bring_up_to_date(&path, &writer).await?;
    let reading = options.pragma("query_only", "ON");
    let readers = connections(READERS).connect_with(reading).await.map_err(refused)?;
    Ok(Connections { writer, readers, place: FileIdentity::of(&path)? })
}

/// Compares the schema of a database with this version's schema, without changing it.
pub(super) async fn schema(path: &Path) -> Result<SchemaState, StoreError> {
    let wanted = SCHEMA.iter().map(|migration| migration.version).max().unwrap_or(0);
    if !path.exists() {
        return Ok(SchemaState { found: 0, wanted });
    }
    let options = options(path, Tuning::default().busy_timeout).read_only(true);
    check_owner(path, &options).await?;
    let refused = |cause| OpenFailure::database(path, cause);
    let mut probe = options.connect().await.map_err(refused)?;
    let tables = "SELECT count(*) FROM sqlite_schema WHERE name = '_sqlx_migrations'";
    let tables: i64 = sqlx::query_scalar(tables).fetch_one(&mut probe).await.map_err(refused)?;
    let found = "SELECT coalesce(max(version), 0) FROM _sqlx_migrations";
    let found = match tables {
        0 => 0,
        _ => sqlx::query_scalar(found).fetch_one(&mut probe).await.map_err(refused)?,
    };
    probe.close().await.map_err(refused)?;
    if found > wanted {
        let cause = MigrateError::VersionMissing(found);
        return Err(OpenFailure::schema(path, wanted, cause));
    }
    Ok(SchemaState { found, wanted })
}

/// Checks a database for damage, without changing it.
pub(super) async fn look_through(path: &Path) -> Result<(), StoreError> {
    let options = options(path, Tuning::default().busy_timeout).read_only(true);
    check_owner(path, &options).await?;
    let refused = |cause| OpenFailure::database(path, cause);
    let pool = connections(1).connect_with(options).await.map_err(refused)?;
    let checked = quick_check(&pool).await;
    pool.close().await;
    checked
}

/// Reads and cross-checks all pages. Takes some seconds for a gigabyte.
pub(super) async fn quick_check(pool: &SqlitePool) -> Result<(), StoreError> {
    let found = sqlx::query_scalar::<_, String>("PRAGMA quick_check(1)");
    match found.fetch_one(pool).await.map_err(failed)?.as_str() {
        "ok" => Ok(()),
        problem => Err(StoreError::Damaged(problem.to_owned())),
    }
}

fn options(path: &Path, busy_timeout: Duration) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .busy_timeout(busy_timeout)
        .foreign_keys(true)
        .pragma("temp_store", "MEMORY")
        .row_buffer_size(ROW_BUFFER)
        .disable_statement_logging()
}

fn connections(most: u32) -> SqlitePoolOptions {
    SqlitePoolOptions::new()
        .max_connections(most)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .idle_timeout(None)
        .max_lifetime(None)
        // On a full disk, SQLite ends the transaction by itself while sqlx still counts it as open. Such a connection
        // would refuse every further transaction.
        .before_acquire(|connection, _| Box::pin(async { Ok(!connection.is_in_transaction()) }))
}

fn make_file(path: &Path) -> Result<(), StoreError> {
    if path.is_dir() {
        return Err(OpenFailure::of(path, "a folder, not a database file"));
    }
    if let Ok(found) = path.metadata() {
        if found.permissions().readonly() {
            return Err(OpenFailure::of(path, "read-only: the database must be writable"));
        }
        return Ok(());
    }
    let folder = path.parent().map_or_else(PathBuf::new, Path::to_owned);
    make_folder(&folder)?;
    let mut create = OpenOptions::new();
    create.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut create, 0o600);
    create.open(path).map_err(|cause| OpenFailure::io(path, "can't be created", cause))?;
    // The file's name must survive a power cut as well.
    File::open(&folder)
        .and_then(|folder| folder.sync_all())
        .map_err(|cause| OpenFailure::io(&folder, "can't be synchronised", cause))
}

fn make_folder(folder: &Path) -> Result<(), StoreError> {
    if let Some(file) = folder.ancestors().find(|part| part.is_file()) {
        return Err(OpenFailure::of(file, "a file, not a folder"));
    }
    let mut create = DirBuilder::new();
    create.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut create, 0o700);
    create.create(folder).map_err(|cause| OpenFailure::io(folder, "can't be created", cause))
}

/// Refuses databases of other applications before writing to them.
async fn check_owner(path: &Path, options: &SqliteConnectOptions) -> Result<(), StoreError> {
    let refused = |cause| OpenFailure::database(path, cause);
    let mut probe = options.connect().await.map_err(refused)?;
    let (application, tables) = owner(&mut probe).await.map_err(refused)?;
    probe.close().await.map_err(refused)?;
    if application == APPLICATION || (application == 0 && tables == 0) {
        return Ok(());
    }
    Err(OpenFailure::of(path, "a database of another application"))
}

async fn owner(probe: &mut SqliteConnection) -> Result<(i64, i64), sqlx::Error> {
    let application = sqlx::query_scalar("PRAGMA application_id").fetch_one(&mut *probe).await?;
    let tables = "SELECT count(*) FROM sqlite_schema";
    Ok((application, sqlx::query_scalar(tables).fetch_one(probe).await?))
}

/// Runs all migrations in one transaction, so that no process ever sees a partial schema, even if several start at
/// the same time.
async fn bring_up_to_date(path: &Path, writer: &SqlitePool) -> Result<(), StoreError> {
    let latest = SCHEMA.iter().map(|migration| migration.version).max().unwrap_or(0);
    let refused = |cause| OpenFailure::database(path, cause);
    let mut transaction = writer.begin_with("BEGIN IMMEDIATE").await.map_err(refused)?;
    SCHEMA
        .run(&mut *transaction)
        .await
        .map_err(|cause| OpenFailure::schema(path, latest, cause))?;
    transaction.commit().await.map_err(refused)
}
