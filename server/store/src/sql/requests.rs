//! Requests that must not be executed twice while their ids are remembered.

use super::rows::{self, integer, number};
use super::{Row as _, Transaction, sql, values};
use crate::{Committed, PendingRequest, REQUEST_KEPT, RecordedRequest, StoreError};

/// Maximum number of expired requests that one call deletes. Each call adds at most one, so the table still shrinks.
const FORGOTTEN_A_CALL: u32 = 1_000;

pub(super) async fn find(
    transaction: &mut impl Transaction,
    tenant: &str,
    id: &str,
) -> Result<Option<RecordedRequest>, StoreError> {
    let find = sql!(
        "SELECT body_hash, answer, revision, committed_ms FROM requests
         WHERE tenant = $1 AND id = $2 AND committed_ms > $3"
    );
    let since = expiry_ms(transaction.now_ms());
    let found = transaction.optional(find, &values![tenant, id, since]).await?;
    let Some(row) = found else { return Ok(None) };
    Ok(Some(RecordedRequest {
        id: id.to_owned(),
        body_hash: rows::hash(&row, "body_hash")?,
        answer: row.bytes("answer")?.to_vec(),
        committed: Committed {
            revision: number(&row, "revision")?,
            updated_ms: row.integer("committed_ms")?,
        },
    }))
}

/// Returns the request as it was recorded before.
///
/// # Errors
/// [`StoreError::RequestIdReused`] if the id belongs to another request.
pub(super) async fn find_same(
    transaction: &mut impl Transaction,
    tenant: &str,
    request: &PendingRequest,
) -> Result<Option<RecordedRequest>, StoreError> {
    let found = find(transaction, tenant, &request.id).await?;
    match found {
        Some(recorded) if recorded.body_hash != request.body_hash => {
            Err(StoreError::RequestIdReused)
        }
        other => Ok(other),
    }
}

pub(super) async fn record(
    transaction: &mut impl Transaction,
    tenant: &str,
    request: &PendingRequest,
    committed: &Committed,
) -> Result<(), StoreError> {
    // A row that this replaces has expired, because find_same came before.
    let record = sql!(
        "INSERT INTO requests (tenant, id, body_hash, answer, revision, committed_ms)
         VALUES ($1, $2, $3, $4, $5, $6)
         ON CONFLICT (tenant, id) DO UPDATE SET body_hash = excluded.body_hash,
             answer = excluded.answer, revision = excluded.revision,
             committed_ms = excluded.committed_ms"
    );
    let PendingRequest { id, body_hash, answer } = request;
    let revision = integer(committed.revision)?;
    let values = values![tenant, id, body_hash, answer.as_slice(), revision, committed.updated_ms];
    transaction.run(record, &values).await.map(drop)
}

/// Records a request at the tenant's current revision, or returns its earlier record.
pub(super) async fn record_unchanged(
    transaction: &mut impl Transaction,
    tenant: &str,
    request: &PendingRequest,
) -> Result<Committed, StoreError> {
    if let Some(recorded) = find_same(transaction, tenant, request).await? {
        return Ok(recorded.committed);
    }
    let present = sql!("SELECT revision FROM tenants WHERE tenant = $1");
    let row = transaction.optional(present, &values![tenant]).await?;
    let revision = row.map_or(Ok(0), |row| number(&row, "revision"))?;
    let committed = Committed { revision, updated_ms: transaction.now_ms() };
    record(transaction, tenant, request, &committed).await?;
    forget_expired(transaction, tenant, committed.updated_ms).await?;
    Ok(committed)
}

pub(super) async fn forget_expired(
    transaction: &mut impl Transaction,
    tenant: &str,
    now_ms: i64,
) -> Result<(), StoreError> {
    // The plus keeps SQLite from scanning all of the tenant's requests.
    let forget = sql!(
        [either
            "DELETE FROM requests WHERE +tenant = $1 AND rowid IN (SELECT rowid",
            "DELETE FROM requests WHERE tenant = $1 AND id IN (SELECT id"]
        " FROM requests WHERE tenant = $1 AND committed_ms <= $2 LIMIT $3)"
    );
    let values = values![tenant, expiry_ms(now_ms), FORGOTTEN_A_CALL];
    transaction.run(forget, &values).await.map(drop)
}

/// Returns the time up to which recorded requests have expired, in milliseconds since 1970 (UTC).
fn expiry_ms(now_ms: i64) -> i64 {
    now_ms.saturating_sub_unsigned(REQUEST_KEPT.as_secs() * 1000)
}
