//! What changed since a revision, by MCP server, and the record of removed ones that this needs.

use sqlx::Row;
use sqlx::sqlite::SqliteConnection;

use super::failure::failed;
use super::rows;
use crate::store::{Changes, REMOVED_SERVERS_KEPT, Revision, StoreError};

pub(super) async fn since(
    snapshot: &mut SqliteConnection,
    tenant: &str,
    since: Revision,
) -> Result<Changes, StoreError> {
    let sql = "SELECT revision, changes_floor FROM tenants WHERE tenant = ?1";
    let found = sqlx::query(sql).bind(tenant).fetch_optional(&mut *snapshot).await;
    let Some(row) = found.map_err(failed)? else {
        return Ok(Changes { told: since == 0, ..Changes::default() });
    };
    let revision: Revision = rows::number(&row, "revision")?;
    let floor: Revision = rows::number(&row, "changes_floor")?;
    // To who has seen nothing, what was removed is nothing.
    let told = since == 0 || (floor..=revision).contains(&since);
    if !told {
        return Ok(Changes { revision, ..Changes::default() });
    }
    let after = rows::integer(since)?;
    let sql = "SELECT name FROM servers WHERE tenant = ?1 AND revision > ?2
         UNION
         SELECT name FROM removed_servers WHERE tenant = ?1 AND revision > ?2 AND ?2 > 0
         ORDER BY name";
    let named = sqlx::query(sql).bind(tenant).bind(after).fetch_all(&mut *snapshot).await;
    let servers = named.map_err(failed)?;
    let servers = servers.iter().map(|row| rows::get(row, "name")).collect::<Result<_, _>>()?;
    let sql = "SELECT 1 FROM policies WHERE tenant = ?1 AND revision > ?2";
    let policy = sqlx::query(sql).bind(tenant).bind(after).fetch_optional(snapshot).await;
    Ok(Changes { revision, servers, policy: policy.map_err(failed)?.is_some(), told })
}

/// Records that the server is gone.
pub(super) async fn server_went(
    connection: &mut SqliteConnection,
    tenant: &str,
    server: &str,
    revision: Revision,
) -> Result<(), StoreError> {
    let keep = "INSERT INTO removed_servers (tenant, name, revision) VALUES (?1, ?2, ?3)
         ON CONFLICT DO UPDATE SET revision = excluded.revision";
    let keep = sqlx::query(keep).bind(tenant).bind(server).bind(rows::integer(revision)?);
    keep.execute(&mut *connection).await.map_err(failed)?;
    prune(connection, tenant).await
}

/// A server of that name is there again: its own revision says so from now on.
pub(super) async fn server_came(
    connection: &mut SqliteConnection,
    tenant: &str,
    server: &str,
) -> Result<(), StoreError> {
    let forget = "DELETE FROM removed_servers WHERE tenant = ?1 AND name = ?2";
    let forget = sqlx::query(forget).bind(tenant).bind(server);
    forget.execute(connection).await.map(drop).map_err(failed)
}

async fn prune(connection: &mut SqliteConnection, tenant: &str) -> Result<(), StoreError> {
    let last = "SELECT revision FROM removed_servers WHERE tenant = ?1
         ORDER BY revision DESC LIMIT 1 OFFSET ?2";
    let last = sqlx::query(last).bind(tenant).bind(REMOVED_SERVERS_KEPT);
    let last = last.fetch_optional(&mut *connection).await.map_err(failed)?;
    let Some(row) = last else { return Ok(()) };
    let floor: i64 = row.try_get("revision").map_err(failed)?;
    let forget = "DELETE FROM removed_servers WHERE tenant = ?1 AND revision <= ?2";
    let raise = "UPDATE tenants SET changes_floor = ?2 WHERE tenant = ?1";
    for sql in [forget, raise] {
        let step = sqlx::query(sql).bind(tenant).bind(floor);
        step.execute(&mut *connection).await.map_err(failed)?;
    }
    Ok(())
}
