//! Migration of the tables. One process at a time migrates, in one transaction without session state, so that it
//! works through a pooler too.

use std::sync::LazyLock;

use sqlx::Row as _;
use sqlx::migrate::Migrator;
use sqlx::postgres::{PgConnection, PgPool};

use super::failure::UseFailure;
use crate::migrations::{files, migrator};
use crate::{SchemaState, StoreError};

pub(crate) static MIGRATIONS: LazyLock<Migrator> = LazyLock::new(|| {
    migrator(files![
        "0001_catalog.sql",
        "0002_api_keys.sql",
        "0003_quarantine.sql",
        "0004_past_tools.sql",
        "0005_tool_marks.sql",
        "0006_ended_sessions.sql",
    ])
});

/// Oldest supported major version of PostgreSQL.
const OLDEST: i32 = 14;

/// Key of the advisory lock that is held during a migration: "TGATE" in ASCII.
const LOCK: i64 = 0x54_47_41_54_45;

/// Settings of each transaction on the schema. The time limits are long, because changing a large table takes time.
const SETTINGS: &str = "SELECT set_config('search_path', 'toolgate, pg_temp', TRUE),
    set_config('statement_timeout', '600000', TRUE), set_config('lock_timeout', '60000', TRUE)";

const TABLE: &str = "CREATE TABLE toolgate.migrations (
    version    BIGINT NOT NULL PRIMARY KEY,
    checksum   BYTEA NOT NULL,
    applied_at TIMESTAMPTZ NOT NULL DEFAULT now()
)";

/// Compares the database's schema with this version's schema.
///
/// # Errors
/// The schema is newer or unknown, PostgreSQL is too old, or the database can't be read.
pub(super) async fn state(pool: &PgPool, place: &str) -> Result<SchemaState, StoreError> {
    let refused = |cause| UseFailure::of(place, cause);
    let mut transaction = pool.begin().await.map_err(refused)?;
    set(&mut transaction).await.map_err(refused)?;
    read(&mut transaction, place).await
}

/// Migrates the schema. Returns the state before the migration.
///
/// # Errors
/// Same as for [`state`], or the user lacks the right to change the schema.
pub(super) async fn migrate(pool: &PgPool, place: &str) -> Result<SchemaState, StoreError> {
    let refused = |cause| UseFailure::of(place, cause);
    let mut transaction = pool.begin().await.map_err(refused)?;
    set(&mut transaction).await.map_err(refused)?;
    let lock = sqlx::query("SELECT pg_advisory_xact_lock($1)").persistent(false).bind(LOCK);
    lock.execute(&mut *transaction).await.map_err(refused)?;
    // Another process may have migrated first.
    let state = read(&mut transaction, place).await?;
    if state.is_current() {
        return Ok(state);
    }
    apply(&mut transaction, state.found).await.map_err(refused)?;
    transaction.commit().await.map_err(refused)?;
    Ok(state)
}

/// Returns true if row-level security does not bind this user: a superuser, or a user with BYPASSRLS.
pub(super) async fn is_above_rows(pool: &PgPool) -> Result<bool, sqlx::Error> {
    let mut transaction = pool.begin().await?;
    let sql =
        "SELECT rolsuper OR rolbypassrls FROM pg_catalog.pg_roles WHERE rolname = current_user";
    sqlx::query_scalar(sql).persistent(false).fetch_one(&mut *transaction).await
}

async fn set(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::query(SETTINGS).persistent(false).execute(connection).await.map(drop)
}

async fn read(connection: &mut PgConnection, place: &str) -> Result<SchemaState, StoreError> {
    let refused = |cause| UseFailure::of(place, cause);
    let sql = "SELECT current_setting('server_version_num')::int4 AS version,
                   to_regclass('toolgate.migrations') IS NOT NULL AS is_there";
    let row = sqlx::query(sql).persistent(false).fetch_one(&mut *connection).await;
    let row = row.map_err(refused)?;
    let version: i32 = row.try_get("version").map_err(refused)?;
    if version / 10_000 < OLDEST {
        let problem = format!("PostgreSQL {}; at least {OLDEST} is needed", version / 10_000);
        return Err(UseFailure::lasting(place, problem));
    }
    let wanted = MIGRATIONS.iter().map(|migration| migration.version).max().unwrap_or(0);
    if !row.try_get::<bool, _>("is_there").map_err(refused)? {
        return Ok(SchemaState { found: 0, wanted });
    }
    let sql = "SELECT version, checksum FROM toolgate.migrations ORDER BY version";
    let applied = sqlx::query_as::<_, (i64, Vec<u8>)>(sql).persistent(false);
    let applied = applied.fetch_all(&mut *connection).await.map_err(refused)?;
    let found = applied.last().map_or(0, |(version, _)| *version);
    if found > wanted {
        let problem = format!(
            "written by a newer version: its schema is {found}, this version knows {wanted}"
        );
        return Err(UseFailure::lasting(place, problem));
    }
    let known = MIGRATIONS.iter().map(|known| (known.version, known.checksum.to_vec()));
    if !known.take(applied.len()).eq(applied) {
        let problem = "its schema is not one that this version wrote";
        return Err(UseFailure::lasting(place, problem));
    }
    Ok(SchemaState { found, wanted })
}

async fn apply(connection: &mut PgConnection, found: i64) -> Result<(), sqlx::Error> {
    // CREATE SCHEMA IF NOT EXISTS requires a privilege that is unnecessary if an administrator created the schema.
    let sql = "SELECT to_regnamespace('toolgate') IS NOT NULL";
    let is_there: bool =
        sqlx::query_scalar(sql).persistent(false).fetch_one(&mut *connection).await?;
    if !is_there {
        sqlx::raw_sql("CREATE SCHEMA toolgate").execute(&mut *connection).await?;
    }
    if found == 0 {
        sqlx::raw_sql(TABLE).execute(&mut *connection).await?;
    }
    for migration in MIGRATIONS.iter().filter(|migration| migration.version > found) {
        sqlx::raw_sql(migration.sql.clone()).execute(&mut *connection).await?;
        let sql = "INSERT INTO toolgate.migrations (version, checksum) VALUES ($1, $2)";
        let note = sqlx::query(sql).persistent(false);
        let note = note.bind(migration.version).bind(migration.checksum.to_vec());
        note.execute(&mut *connection).await?;
    }
    Ok(())
}
