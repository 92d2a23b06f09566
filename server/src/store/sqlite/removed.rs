//! Names that tools had and no longer have, kept so that a reader of the summary pool can be told what to
//! forget. A name that is taken again for all readers is forgotten here: its line then tells them more.

use sqlx::Row;
use sqlx::sqlite::SqliteConnection;

use super::failure::failed;
use super::rows;
use crate::store::{REMOVED_KEPT, RemovedTool, Revision, StoreError};

pub(super) async fn list(
    snapshot: &mut SqliteConnection,
    tenant: &str,
) -> Result<Vec<RemovedTool>, StoreError> {
    let sql = "SELECT model_name, revision FROM removed_tools
         WHERE tenant = ?1 ORDER BY revision, model_name";
    let found = sqlx::query(sql).bind(tenant).fetch_all(snapshot).await.map_err(failed)?;
    let removed = |row| {
        Ok(RemovedTool {
            model_name: rows::get(row, "model_name")?,
            revision: rows::number(row, "revision")?,
        })
    };
    found.iter().map(removed).collect()
}

/// Records that nothing has `gone` any longer, and forgets the names `taken`.
pub(super) async fn update(
    connection: &mut SqliteConnection,
    tenant: &str,
    revision: Revision,
    gone: &[&str],
    taken: &[&str],
) -> Result<(), StoreError> {
    let forget = "DELETE FROM removed_tools
         WHERE tenant = ?1 AND model_name IN (SELECT value FROM json_each(?2))";
    let forget = sqlx::query(forget).bind(tenant).bind(rows::to_json(taken)?);
    forget.execute(&mut *connection).await.map_err(failed)?;
    let keep = "INSERT OR REPLACE INTO removed_tools (tenant, model_name, revision)
         SELECT ?1, value, ?3 FROM json_each(?2)";
    let keep = sqlx::query(keep).bind(tenant).bind(rows::to_json(gone)?);
    let keep = keep.bind(rows::integer(revision)?);
    keep.execute(&mut *connection).await.map_err(failed)?;
    if gone.is_empty() { Ok(()) } else { prune(connection, tenant).await }
}

/// Begins deltas anew: none can start from before `revision`.
pub(super) async fn restart(
    connection: &mut SqliteConnection,
    tenant: &str,
    revision: Revision,
) -> Result<(), StoreError> {
    raise_floor(connection, tenant, rows::integer(revision)?).await
}

/// Drops whole revisions, the oldest first, until at most [`REMOVED_KEPT`] names are left: half of a revision
/// would be a wrong delta.
async fn prune(connection: &mut SqliteConnection, tenant: &str) -> Result<(), StoreError> {
    let last = "SELECT revision FROM removed_tools WHERE tenant = ?1
         ORDER BY revision DESC LIMIT 1 OFFSET ?2";
    let last = sqlx::query(last).bind(tenant).bind(REMOVED_KEPT);
    let last = last.fetch_optional(&mut *connection).await.map_err(failed)?;
    let Some(row) = last else { return Ok(()) };
    let floor: i64 = row.try_get("revision").map_err(failed)?;
    raise_floor(connection, tenant, floor).await
}

/// Forgets what was removed up to `floor`, and the deltas that would need it.
async fn raise_floor(
    connection: &mut SqliteConnection,
    tenant: &str,
    floor: i64,
) -> Result<(), StoreError> {
    let drop_old = "DELETE FROM removed_tools WHERE tenant = ?1 AND revision <= ?2";
    let raise = "UPDATE tenants SET pool_floor = ?2 WHERE tenant = ?1";
    for sql in [drop_old, raise] {
        let step = sqlx::query(sql).bind(tenant).bind(floor);
        step.execute(&mut *connection).await.map_err(failed)?;
    }
    Ok(())
}
