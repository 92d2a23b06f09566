//! Requests that must not be done twice, for as long as their ids are remembered.

use std::time::{SystemTime, UNIX_EPOCH};

use sqlx::sqlite::{SqliteConnection, SqliteExecutor};

use super::failure::failed;
use super::rows;
use crate::store::{Committed, PendingRequest, REQUEST_KEPT, RecordedRequest, StoreError};

/// The most that one call forgets: each call adds one at most, so the table still shrinks.
const FORGOTTEN_A_CALL: u32 = 1_000;

/// Milliseconds since 1970.
pub(super) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

pub(super) async fn find(
    executor: impl SqliteExecutor<'_>,
    tenant: &str,
    id: &str,
) -> Result<Option<RecordedRequest>, StoreError> {
    let sql = "SELECT body_hash, answer, revision, committed_ms FROM requests
         WHERE tenant = ?1 AND id = ?2 AND committed_ms > ?3";
    let found = sqlx::query(sql).bind(tenant).bind(id).bind(expiry_ms(now_ms()));
    let Some(row) = found.fetch_optional(executor).await.map_err(failed)? else {
        return Ok(None);
    };
    Ok(Some(RecordedRequest {
        id: id.to_owned(),
        body_hash: rows::hash(&row, "body_hash")?,
        answer: rows::get(&row, "answer")?,
        committed: Committed {
            revision: rows::number(&row, "revision")?,
            updated_ms: rows::get(&row, "committed_ms")?,
        },
    }))
}

/// The request as it was recorded before.
///
/// # Errors
/// [`StoreError::RequestIdReused`] when its id stands for another one.
pub(super) async fn find_same(
    connection: &mut SqliteConnection,
    tenant: &str,
    request: &PendingRequest,
) -> Result<Option<RecordedRequest>, StoreError> {
    let found = find(connection, tenant, &request.id).await?;
    match found {
        Some(recorded) if recorded.body_hash != request.body_hash => {
            Err(StoreError::RequestIdReused)
        }
        other => Ok(other),
    }
}

pub(super) async fn record(
    connection: &mut SqliteConnection,
    tenant: &str,
    request: &PendingRequest,
    committed: &Committed,
) -> Result<(), StoreError> {
    // What it replaces has expired: find_same came before.
    let sql = "INSERT OR REPLACE INTO requests
             (tenant, id, body_hash, answer, revision, committed_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let insert = sqlx::query(sql)
        .bind(tenant)
        .bind(&request.id)
        .bind(request.body_hash.to_vec())
        .bind(&request.answer)
        .bind(rows::integer(committed.revision)?)
        .bind(committed.updated_ms);
    insert.execute(connection).await.map(drop).map_err(failed)
}

/// Records a request at the tenant's present revision, or answers what was recorded of it before.
pub(super) async fn record_unchanged(
    connection: &mut SqliteConnection,
    tenant: &str,
    request: &PendingRequest,
) -> Result<Committed, StoreError> {
    if let Some(recorded) = find_same(connection, tenant, request).await? {
        return Ok(recorded.committed);
    }
    let present = sqlx::query("SELECT revision FROM tenants WHERE tenant = ?1").bind(tenant);
    let row = present.fetch_optional(&mut *connection).await.map_err(failed)?;
    let revision = row.map_or(Ok(0), |row| rows::number(&row, "revision"))?;
    let committed = Committed { revision, updated_ms: now_ms() };
    record(connection, tenant, request, &committed).await?;
    forget_expired(connection, tenant, committed.updated_ms).await?;
    Ok(committed)
}

pub(super) async fn forget_expired(
    connection: &mut SqliteConnection,
    tenant: &str,
    now_ms: i64,
) -> Result<(), StoreError> {
    // The plus keeps SQLite from walking all of the tenant's requests.
    let sql = "DELETE FROM requests WHERE +tenant = ?1 AND rowid IN
             (SELECT rowid FROM requests WHERE tenant = ?1 AND committed_ms <= ?2 LIMIT ?3)";
    let forget = sqlx::query(sql).bind(tenant).bind(expiry_ms(now_ms)).bind(FORGOTTEN_A_CALL);
    forget.execute(connection).await.map(drop).map_err(failed)
}

/// Requests recorded until then have expired.
fn expiry_ms(now_ms: i64) -> i64 {
    now_ms.saturating_sub_unsigned(REQUEST_KEPT.as_secs() * 1000)
}
