//! Names that tools had and no longer have, kept so that a reader of the summary pool can be told what to
//! forget. A name that is taken again for all readers is forgotten here: its line then tells them more.

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

/// Records that nothing has `gone` any longer, and forgets the names `taken`.
pub(super) async fn update(
    transaction: &mut impl Transaction,
    tenant: &str,
    revision: Revision,
    gone: &[&str],
    taken: &[&str],
) -> Result<(), StoreError> {
    let forget = sql!("DELETE FROM removed_tools WHERE tenant = $1 AND model_name IN " [texts 2]);
    transaction.run(forget, &[tenant.into(), Value::Texts(taken.to_vec())]).await?;
    // The condition keeps SQLite from taking ON CONFLICT for the condition of a join.
    let keep = sql!(
        "INSERT INTO removed_tools (tenant, model_name, revision)
         SELECT $1, value, $3 FROM " [either "json_each($2)", "unnest($2) AS gone (value)"] " WHERE TRUE
         ON CONFLICT (tenant, model_name) DO UPDATE SET revision = excluded.revision"
    );
    let kept = [tenant.into(), Value::Texts(gone.to_vec()), integer(revision)?.into()];
    transaction.run(keep, &kept).await?;
    if gone.is_empty() { Ok(()) } else { prune(transaction, tenant).await }
}

/// Begins deltas anew: none can start from before `revision`.
pub(super) async fn restart(
    transaction: &mut impl Transaction,
    tenant: &str,
    revision: Revision,
) -> Result<(), StoreError> {
    raise_floor(transaction, tenant, integer(revision)?).await
}

/// Drops whole revisions, the oldest first, until at most [`REMOVED_KEPT`] names are left: half of a revision
/// would be a wrong delta.
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

/// Forgets what was removed up to `floor`, and the deltas that would need it.
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
