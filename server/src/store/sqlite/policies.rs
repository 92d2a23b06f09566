//! Policies: one document a tenant, changed under the catalog's revisions.

use sqlx::sqlite::SqliteConnection;

use super::failure::failed;
use super::{commit, removed, rows};
use crate::store::{Committed, PolicyChange, StoreError, StoredPolicy};

pub(super) async fn read(
    connection: &mut SqliteConnection,
    tenant: &str,
) -> Result<Option<StoredPolicy>, StoreError> {
    let sql = "SELECT document, revision, updated_ms FROM policies WHERE tenant = ?1";
    let found = sqlx::query(sql).bind(tenant).fetch_optional(connection).await.map_err(failed)?;
    let policy = |row| {
        Ok(StoredPolicy {
            document: rows::get(row, "document")?,
            revision: rows::number(row, "revision")?,
            updated_ms: rows::get(row, "updated_ms")?,
        })
    };
    found.as_ref().map(policy).transpose()
}

/// Whether the tenant's policy hides tools from some callers.
pub(super) async fn hides(
    connection: &mut SqliteConnection,
    tenant: &str,
) -> Result<bool, StoreError> {
    let sql = "SELECT hides FROM policies WHERE tenant = ?1";
    let found = sqlx::query(sql).bind(tenant).fetch_optional(connection).await.map_err(failed)?;
    found.map_or(Ok(false), |row| rows::get(&row, "hides"))
}

pub(super) async fn set(
    connection: &mut SqliteConnection,
    tenant: &str,
    change: &PolicyChange,
) -> Result<Committed, StoreError> {
    let before = read(connection, tenant).await?;
    if before.map(|stored| stored.revision) != change.base {
        return Err(StoreError::Conflict);
    }
    let committed = commit::next(connection, tenant).await?;
    let sql = "INSERT INTO policies (tenant, document, hides, revision, updated_ms)
         VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT DO UPDATE SET document = excluded.document, hides = excluded.hides,
             revision = excluded.revision, updated_ms = excluded.updated_ms";
    let put = sqlx::query(sql)
        .bind(tenant)
        .bind(&change.document)
        .bind(change.hides)
        .bind(rows::integer(committed.revision)?)
        .bind(committed.updated_ms);
    put.execute(&mut *connection).await.map_err(failed)?;
    // Who sees which tool may be another matter now, which no delta can tell.
    removed::restart(connection, tenant, committed.revision).await?;
    Ok(committed)
}
