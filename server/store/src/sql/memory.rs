//! Exemplars of calls, by tool. They have versions of their own, so that readers fetch only the changes.

use std::collections::{BTreeMap, HashMap};

use super::Column::{Bytes, Integer, Real, Text};
use super::rows::{self, integer, number};
use super::{Insert, Row, Transaction, Value, sql, values};
use crate::{Exemplar, MemoryBounds, MemoryChanges, MemoryVersion, Revise, StoreError};
use toolgate_core::identity::{ServerName, ToolId, ToolName};
use toolgate_core::quantized_embedding::QuantizedEmbedding;

const INSERT: Insert = Insert {
    into: "exemplars (tenant, server, name, place, encoder, imprint, strength, seen_ms, fades_ms,
             owner, made, voters, version)",
    columns: &[
        Text, Text, Text, Integer, Bytes, Bytes, Real, Integer, Integer, Bytes, Integer, Bytes,
        Integer,
    ],
    then: "ON CONFLICT (tenant, server, name, place) DO UPDATE SET encoder = excluded.encoder,
               imprint = excluded.imprint, strength = excluded.strength,
               seen_ms = excluded.seen_ms, fades_ms = excluded.fades_ms, owner = excluded.owner,
               made = excluded.made, voters = excluded.voters, version = excluded.version",
};

pub(super) async fn read(
    snapshot: &mut impl Transaction,
    tenant: &str,
    since: MemoryVersion,
) -> Result<MemoryChanges, StoreError> {
    let (version, floor) = versions(snapshot, tenant).await?;
    if version == 0 {
        return Ok(MemoryChanges::default());
    }
    let whole = since < floor;
    let changed = sql!(
        "SELECT * FROM exemplars WHERE tenant = $1 AND version > $2 ORDER BY server, name, place"
    );
    let since = integer(if whole { 0 } else { since })?;
    let found = snapshot.all(changed, &values![tenant, since]).await?;
    let exemplars = found.iter().map(exemplar).collect::<Result<_, _>>()?;
    Ok(MemoryChanges { version, whole, exemplars })
}

/// Changes the exemplars of those `tools` that are registered.
pub(super) async fn revise(
    transaction: &mut impl Transaction,
    tenant: &str,
    tools: &[ToolId],
    revise: Revise<'_>,
) -> Result<(), StoreError> {
    let version = next(transaction, tenant).await?;
    let mut of_servers: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for tool in tools {
        of_servers.entry(tool.server.as_str()).or_default().push(tool.name.as_str());
    }
    let mut stored = HashMap::new();
    for (server, names) in of_servers {
        stored.extend(registered(transaction, tenant, server, names).await?);
    }
    let mut rows = Vec::new();
    for tool in tools {
        let Some(before) = stored.get_mut(tool) else { continue };
        let mut after = before.clone();
        revise(tool, &mut after);
        let changed = after.iter().filter(|exemplar| !before.contains(exemplar));
        rows.extend(changed.map(|exemplar| row(tenant.to_owned(), tool, exemplar, version)));
        *before = after;
    }
    // Keep the last row of a tool that is named twice, because one statement can't change a row twice.
    let mut latest: BTreeMap<_, Vec<Value<'_>>> = BTreeMap::new();
    for (key, row) in rows {
        latest.insert(key, row);
    }
    transaction.insert(&INSERT, &latest.into_values().collect::<Vec<_>>()).await
}

/// Returns the exemplars, by place, of those tools of a server that are registered.
async fn registered(
    transaction: &mut impl Transaction,
    tenant: &str,
    server: &str,
    names: Vec<&str>,
) -> Result<HashMap<ToolId, Vec<Exemplar>>, StoreError> {
    let known = sql!(
        "SELECT server, name FROM tools WHERE tenant = $1 AND server = $2 AND name IN " [texts 3]
    );
    let values = [tenant.into(), server.into(), Value::Texts(names)];
    let known = transaction.all(known, &values).await?;
    let known = known.iter().map(|row| Ok((tool_id(row)?, Vec::new())));
    let mut known: HashMap<_, Vec<_>> = known.collect::<Result<_, StoreError>>()?;
    let theirs = sql!(
        "SELECT * FROM exemplars WHERE tenant = $1 AND server = $2 AND name IN " [texts 3]
        " ORDER BY name, place"
    );
    for row in &transaction.all(theirs, &values).await? {
        let (tool, exemplar) = exemplar(row)?;
        if let Some(exemplars) = known.get_mut(&tool) {
            exemplars.push(exemplar);
        }
    }
    Ok(known)
}

/// Deletes faded exemplars, then those beyond the maximum number.
pub(super) async fn trim(
    transaction: &mut impl Transaction,
    tenant: &str,
    bounds: MemoryBounds,
) -> Result<(), StoreError> {
    let faded = sql!("DELETE FROM exemplars WHERE tenant = $1 AND fades_ms <= $2");
    let faded = transaction.run(faded, &values![tenant, bounds.now_ms]).await?;
    let beyond = sql!(
        "DELETE FROM exemplars WHERE tenant = $1 AND (server, name, place) IN (
             SELECT server, name, place FROM exemplars WHERE tenant = $1
             ORDER BY fades_ms DESC, server, name, place "
             [either "LIMIT -1 OFFSET $2)", "OFFSET $2)"]
    );
    let beyond = transaction.run(beyond, &values![tenant, bounds.most]).await?;
    raise_floor(transaction, tenant, faded + beyond).await
}

/// Deletes the exemplars of the tenant, of a server or of a tool. Returns the number of deleted exemplars.
pub(super) async fn clear(
    transaction: &mut impl Transaction,
    tenant: &str,
    server: Option<&str>,
    tool: Option<&str>,
) -> Result<u64, StoreError> {
    let clear = sql!(
        "DELETE FROM exemplars WHERE tenant = $1 AND ($2 IS NULL OR server = $2)
         AND ($3 IS NULL OR name = $3)"
    );
    let gone = transaction.run(clear, &values![tenant, server, tool]).await?;
    raise_floor(transaction, tenant, gone).await?;
    Ok(gone)
}

/// Deletes the exemplars of a server's tools that are no longer registered.
pub(super) async fn drop_unregistered(
    transaction: &mut impl Transaction,
    tenant: &str,
    server: &str,
) -> Result<(), StoreError> {
    let drop = sql!(
        "DELETE FROM exemplars WHERE tenant = $1 AND server = $2 AND NOT EXISTS (
             SELECT 1 FROM tools
             WHERE tools.tenant = $1 AND tools.server = $2 AND tools.name = exemplars.name
         )"
    );
    let gone = transaction.run(drop, &values![tenant, server]).await?;
    raise_floor(transaction, tenant, gone).await
}

/// Returns the memory's version, and the version of its last change that removed exemplars.
pub(super) async fn versions(
    snapshot: &mut impl Transaction,
    tenant: &str,
) -> Result<(MemoryVersion, MemoryVersion), StoreError> {
    let versions = sql!("SELECT version, floor FROM memories WHERE tenant = $1");
    let row = snapshot.optional(versions, &values![tenant]).await?;
    row.map_or(Ok((0, 0)), |row| Ok((number(&row, "version")?, number(&row, "floor")?)))
}

/// Returns an exemplar with the version of its last change.
pub(super) fn kept(row: &impl Row) -> Result<(ToolId, Exemplar, MemoryVersion), StoreError> {
    let (tool, exemplar) = exemplar(row)?;
    Ok((tool, exemplar, number(row, "version")?))
}

/// Stores exemplars that were read from another store.
pub(super) async fn restore(
    transaction: &mut impl Transaction,
    tenant: &str,
    (version, floor): (MemoryVersion, MemoryVersion),
    exemplars: &[(ToolId, Exemplar, MemoryVersion)],
) -> Result<(), StoreError> {
    if version == 0 {
        return Ok(());
    }
    let put = sql!(
        "INSERT INTO memories (tenant, version, floor) VALUES ($1, $2, $3)
         ON CONFLICT (tenant) DO UPDATE SET version = excluded.version, floor = excluded.floor"
    );
    transaction.run(put, &values![tenant, integer(version)?, integer(floor)?]).await?;
    let row = |(tool, exemplar, version): &(ToolId, Exemplar, MemoryVersion)| {
        Ok(row(tenant.to_owned(), tool, exemplar, integer(*version)?).1)
    };
    let rows: Vec<_> = exemplars.iter().map(row).collect::<Result<_, StoreError>>()?;
    transaction.insert(&INSERT, &rows).await
}

/// Takes the memory's next version.
async fn next(transaction: &mut impl Transaction, tenant: &str) -> Result<i64, StoreError> {
    let next = sql!(
        "INSERT INTO memories (tenant, version, floor) VALUES ($1, 1, 0)
         ON CONFLICT (tenant) DO UPDATE SET version = memories.version + 1 RETURNING version"
    );
    let row = transaction.optional(next, &values![tenant]).await?;
    row.map_or(Ok(1), |row| row.integer("version"))
}

/// Makes readers fetch everything again if exemplars were removed.
async fn raise_floor(
    transaction: &mut impl Transaction,
    tenant: &str,
    gone: u64,
) -> Result<(), StoreError> {
    if gone == 0 {
        return Ok(());
    }
    let raise =
        sql!("UPDATE memories SET version = version + 1, floor = version + 1 WHERE tenant = $1");
    transaction.run(raise, &values![tenant]).await.map(drop)
}

/// Returns an exemplar's row with its key among the tenant's exemplars.
fn row(
    tenant: String,
    tool: &ToolId,
    exemplar: &Exemplar,
    version: i64,
) -> ((ToolId, u8), Vec<Value<'static>>) {
    let row = vec![
        tenant.into(),
        tool.server.as_str().to_owned().into(),
        tool.name.as_str().to_owned().into(),
        u32::from(exemplar.place).into(),
        exemplar.intent_embedding.encoder().to_vec().into(),
        exemplar.intent_embedding.bytes().collect::<Vec<u8>>().into(),
        exemplar.strength.into(),
        exemplar.seen_ms.into(),
        exemplar.fades_ms.into(),
        exemplar.owner.to_vec().into(),
        exemplar.made.into(),
        exemplar.voters.concat().into(),
        version.into(),
    ];
    ((tool.clone(), exemplar.place), row)
}

fn tool_id(row: &impl Row) -> Result<ToolId, StoreError> {
    let server = rows::name(row, "server", ServerName::parse)?;
    Ok(ToolId { server, name: rows::name(row, "name", ToolName::parse)? })
}

fn exemplar(row: &impl Row) -> Result<(ToolId, Exemplar), StoreError> {
    let damaged = |what: &str| StoreError::Damaged(format!("an exemplar's {what}"));
    let intent_embedding =
        QuantizedEmbedding::read(rows::bytes(row, "encoder")?, row.bytes("imprint")?);
    let (voters, rest) = row.bytes("voters")?.as_chunks();
    if !rest.is_empty() {
        return Err(damaged("voters"));
    }
    let exemplar = Exemplar {
        place: number(row, "place")?,
        intent_embedding: intent_embedding.ok_or_else(|| damaged("quantized embedding"))?,
        strength: row.real("strength")?,
        seen_ms: row.integer("seen_ms")?,
        fades_ms: row.integer("fades_ms")?,
        owner: rows::bytes(row, "owner")?,
        made: number(row, "made")?,
        voters: voters.to_vec(),
    };
    Ok((tool_id(row)?, exemplar))
}
