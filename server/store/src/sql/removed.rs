//! Names of removed tools, kept so that deltas of the summary pool can list them. A name that all readers see in use
//! again is dropped here, because its new line tells them more.

use super::rows::{self, integer, number};
use super::{Row as _, Transaction, Value, sql, values};
use crate::{REMOVED_KEPT, RemovedTool, Revision, StoreError};

pub(super) async fn list(
    snapshot: &mut impl Transaction,
    tenant: &str,
) -> Result<Vec<RemovedTool>, StoreError> {
    let removed = sql!(
        "SELECT model_name, revision FROM removed_tools
         WHERE tenant = $1 ORDER BY revision, model_name"
    );
    let found = snapshot.all(removed, &values![tenant]).await?;
    let removed = |row| {
        Ok(RemovedTool {
            model_name: rows::text(row, "model_name")?,
            revision: number(row, "revision")?,
        })
    };
    found.iter().map(removed).collect()
}

/// Records the names in `gone` as removed, and drops the names in `taken`.
pub(super) async fn update(
    transaction: &mut impl Transaction,
    tenant: &str,
    revision: Revision,
    gone: &[&str],
    taken: &[&str],
) -> Result<(), StoreError> {
    let forget = sql!("DELETE FROM removed_tools WHERE tenant = $1 AND model_name IN " [texts 2]);
    transaction.run(forget, &[tenant.into(), Value::Texts(taken.to_vec())]).await?;
    // The condition keeps SQLite from parsing ON CONFLICT as the condition of a join.
    let keep = sql!(
        "INSERT INTO removed_tools (tenant, model_name, revision)
         SELECT $1, value, $3 FROM " [either "json_each($2)", "unnest($2) AS gone (value)"] " WHERE TRUE
         ON CONFLICT (tenant, model_name) DO UPDATE SET revision = excluded.revision"
    );
    let kept = [tenant.into(), Value::Texts(gone.to_vec()), integer(revision)?.into()];
    transaction.run(keep, &kept).await?;
    if gone.is_empty() { Ok(()) } else { prune(transaction, tenant).await }
}

/// Restarts deltas: none can start from before `revision`.
pub(super) async fn restart(
    transaction: &mut impl Transaction,
    tenant: &str,
    revision: Revision,
) -> Result<(), StoreError> {
    raise_floor(transaction, tenant, integer(revision)?).await
}

/// Deletes whole revisions, the oldest first, until at most [`REMOVED_KEPT`] names are left. Half of a revision would
/// give a wrong delta.
async fn prune(transaction: &mut impl Transaction, tenant: &str) -> Result<(), StoreError> {
    let last = sql!(
        "SELECT revision FROM removed_tools WHERE tenant = $1
         ORDER BY revision DESC LIMIT 1 OFFSET $2"
    );
    let last = transaction.optional(last, &values![tenant, REMOVED_KEPT]).await?;
    let Some(row) = last else { return Ok(()) };
    let floor = row.integer("revision")?;
    raise_floor(transaction, tenant, floor).await
}

/// Deletes the names that were removed up to `floor`, and raises the oldest start of a delta to `floor`.
async fn raise_floor(
    transaction: &mut impl Transaction,
    tenant: &str,
    floor: i64,
) -> Result<(), StoreError> {
    let drop_old = sql!("DELETE FROM removed_tools WHERE tenant = $1 AND revision <= $2");
    transaction.run(drop_old, &values![tenant, floor]).await?;
    let raise = sql!("UPDATE tenants SET pool_floor = $2 WHERE tenant = $1");
    transaction.run(raise, &values![tenant, floor]).await.map(drop)
}
