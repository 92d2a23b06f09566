//! What is remembered of calls: exemplars by tool, under versions of their own, so that readers fetch what changed.

use sqlx::sqlite::{SqliteConnection, SqliteRow};

use super::failure::failed;
use super::rows;
use crate::identity::{ServerName, ToolId, ToolName};
use crate::imprint::Imprint;
use crate::store::{
    Exemplar, MemoryBounds, MemoryChanges, MemoryVersion, PrincipalKey, Revise, StoreError,
};

pub(super) async fn read(
    snapshot: &mut SqliteConnection,
    tenant: &str,
    since: MemoryVersion,
) -> Result<MemoryChanges, StoreError> {
    let found = sqlx::query("SELECT version, floor FROM memories WHERE tenant = ?1");
    let row = found.bind(tenant).fetch_optional(&mut *snapshot).await.map_err(failed)?;
    let Some(row) = row else { return Ok(MemoryChanges::default()) };
    let (version, floor): (MemoryVersion, MemoryVersion) =
        (rows::number(&row, "version")?, rows::number(&row, "floor")?);
    let whole = since < floor;
    let sql = "SELECT * FROM exemplars WHERE tenant = ?1 AND version > ?2
         ORDER BY server, name, place";
    let since = rows::integer(if whole { 0 } else { since })?;
    let found = sqlx::query(sql).bind(tenant).bind(since).fetch_all(snapshot).await;
    let exemplars = found.map_err(failed)?.iter().map(exemplar).collect::<Result<_, _>>()?;
    Ok(MemoryChanges { version, whole, exemplars })
}

/// Changes the exemplars of those of the tools that are registered.
pub(super) async fn revise(
    connection: &mut SqliteConnection,
    tenant: &str,
    tools: &[ToolId],
    revise: Revise<'_>,
) -> Result<(), StoreError> {
    let version = next(connection, tenant).await?;
    for tool in tools {
        let (server, name) = (tool.server.as_str(), tool.name.as_str());
        let sql = "SELECT 1 FROM tools WHERE tenant = ?1 AND server = ?2 AND name = ?3";
        let known = sqlx::query(sql).bind(tenant).bind(server).bind(name);
        if known.fetch_optional(&mut *connection).await.map_err(failed)?.is_none() {
            continue;
        }
        let sql = "SELECT * FROM exemplars WHERE tenant = ?1 AND server = ?2 AND name = ?3
             ORDER BY place";
        let stored = sqlx::query(sql).bind(tenant).bind(server).bind(name);
        let stored = stored.fetch_all(&mut *connection).await.map_err(failed)?;
        let before: Vec<Exemplar> = stored
            .iter()
            .map(|row| exemplar(row).map(|(_, exemplar)| exemplar))
            .collect::<Result<_, _>>()?;
        let mut after = before.clone();
        revise(tool, &mut after);
        for changed in after.iter().filter(|exemplar| !before.contains(exemplar)) {
            put(connection, (tenant, tool), changed, version).await?;
        }
    }
    Ok(())
}

/// Drops what has faded, and what is beyond the bound.
pub(super) async fn trim(
    connection: &mut SqliteConnection,
    tenant: &str,
    bounds: MemoryBounds,
) -> Result<(), StoreError> {
    let faded = "DELETE FROM exemplars WHERE tenant = ?1 AND fades_ms <= ?2";
    let faded = sqlx::query(faded).bind(tenant).bind(bounds.now_ms);
    let faded = faded.execute(&mut *connection).await.map_err(failed)?.rows_affected();
    let beyond = "DELETE FROM exemplars WHERE rowid IN (
             SELECT rowid FROM exemplars WHERE tenant = ?1 ORDER BY fades_ms DESC LIMIT -1 OFFSET ?2
         )";
    let beyond = sqlx::query(beyond).bind(tenant).bind(bounds.most);
    let beyond = beyond.execute(&mut *connection).await.map_err(failed)?.rows_affected();
    raise_floor(connection, tenant, faded + beyond).await
}

/// Forgets all, a server's, or one tool's; how many exemplars that were.
pub(super) async fn clear(
    connection: &mut SqliteConnection,
    tenant: &str,
    server: Option<&str>,
    tool: Option<&str>,
) -> Result<u64, StoreError> {
    let sql = "DELETE FROM exemplars WHERE tenant = ?1 AND (?2 IS NULL OR server = ?2)
         AND (?3 IS NULL OR name = ?3)";
    let clear = sqlx::query(sql).bind(tenant).bind(server).bind(tool);
    let gone = clear.execute(&mut *connection).await.map_err(failed)?.rows_affected();
    raise_floor(connection, tenant, gone).await?;
    Ok(gone)
}

/// Forgets the tools of a server that are no longer registered.
pub(super) async fn drop_unregistered(
    connection: &mut SqliteConnection,
    tenant: &str,
    server: &str,
) -> Result<(), StoreError> {
    let sql = "DELETE FROM exemplars WHERE tenant = ?1 AND server = ?2 AND NOT EXISTS (
             SELECT 1 FROM tools
             WHERE tools.tenant = ?1 AND tools.server = ?2 AND tools.name = exemplars.name
         )";
    let drop = sqlx::query(sql).bind(tenant).bind(server);
    let gone = drop.execute(&mut *connection).await.map_err(failed)?.rows_affected();
    raise_floor(connection, tenant, gone).await
}

/// Takes the memory's next version.
async fn next(connection: &mut SqliteConnection, tenant: &str) -> Result<i64, StoreError> {
    let sql = "INSERT INTO memories (tenant, version, floor) VALUES (?1, 1, 0)
         ON CONFLICT DO UPDATE SET version = version + 1 RETURNING version";
    let row = sqlx::query(sql).bind(tenant).fetch_one(connection).await.map_err(failed)?;
    rows::get(&row, "version")
}

/// Has readers fetch everything anew where exemplars are gone.
async fn raise_floor(
    connection: &mut SqliteConnection,
    tenant: &str,
    gone: u64,
) -> Result<(), StoreError> {
    if gone == 0 {
        return Ok(());
    }
    let sql = "UPDATE memories SET version = version + 1, floor = version + 1 WHERE tenant = ?1";
    sqlx::query(sql).bind(tenant).execute(connection).await.map(drop).map_err(failed)
}

async fn put(
    connection: &mut SqliteConnection,
    (tenant, tool): (&str, &ToolId),
    exemplar: &Exemplar,
    version: i64,
) -> Result<(), StoreError> {
    let sql =
        "INSERT OR REPLACE INTO exemplars (tenant, server, name, place, encoder, imprint, strength,
             seen_ms, fades_ms, owner, made, voters, version)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";
    let put = sqlx::query(sql)
        .bind(tenant)
        .bind(tool.server.as_str())
        .bind(tool.name.as_str())
        .bind(exemplar.place)
        .bind(exemplar.imprint.encoder().to_vec())
        .bind(exemplar.imprint.bytes().collect::<Vec<u8>>())
        .bind(exemplar.strength)
        .bind(exemplar.seen_ms)
        .bind(exemplar.fades_ms)
        .bind(exemplar.owner.to_vec())
        .bind(exemplar.made)
        .bind(exemplar.voters.concat())
        .bind(version);
    put.execute(connection).await.map(drop).map_err(failed)
}

fn exemplar(row: &SqliteRow) -> Result<(ToolId, Exemplar), StoreError> {
    let damaged = |what: &str| StoreError::Damaged(format!("an exemplar's {what}"));
    let server = ServerName::parse(rows::get(row, "server")?).map_err(|_| damaged("server"))?;
    let name = ToolName::parse(rows::get(row, "name")?).map_err(|_| damaged("name"))?;
    let imprint = Imprint::read(key(row, "encoder")?, rows::get(row, "imprint")?);
    let voters: &[u8] = rows::get(row, "voters")?;
    let (voters, rest) = voters.as_chunks();
    if !rest.is_empty() {
        return Err(damaged("voters"));
    }
    let exemplar = Exemplar {
        place: rows::number(row, "place")?,
        imprint: imprint.ok_or_else(|| damaged("imprint"))?,
        strength: rows::get(row, "strength")?,
        seen_ms: rows::get(row, "seen_ms")?,
        fades_ms: rows::get(row, "fades_ms")?,
        owner: key(row, "owner")?,
        made: rows::number(row, "made")?,
        voters: voters.to_vec(),
    };
    Ok((ToolId { server, name }, exemplar))
}

fn key(row: &SqliteRow, column: &str) -> Result<PrincipalKey, StoreError> {
    let bytes: &[u8] = rows::get(row, column)?;
    bytes.try_into().map_err(|_| StoreError::Damaged(format!("column {column} is no key")))
}
