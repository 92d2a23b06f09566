//! Records of removed tools, bounded in time and number. They are read when a registration is prepared.

use super::Column::{Bytes, Integer, Text};
use super::rows;
use super::{Insert, Row, Transaction, Value, sql, values};
use crate::{PAST_TOOL_KEPT, PAST_TOOLS_KEPT, PastTool, StoreError};
use toolgate_core::identity::{ServerName, ToolName};

const INSERT: Insert = Insert {
    into: "past_tools (tenant, server, name, hash, summary_hash, search_hint, status, removed_ms)",
    columns: &[Text, Text, Text, Bytes, Bytes, Text, Text, Integer],
    then: "",
};

/// Returns the records of one MCP server's removed tools that have not expired.
pub(super) async fn of_server(
    snapshot: &mut impl Transaction,
    tenant: &str,
    server: &str,
) -> Result<Vec<PastTool>, StoreError> {
    let kept = sql!(
        "SELECT * FROM past_tools WHERE tenant = $1 AND server = $2 AND removed_ms > $3
         ORDER BY name"
    );
    let since = expiry_ms(snapshot.now_ms());
    let found = snapshot.all(kept, &values![tenant, server, since]).await?;
    found.iter().map(read).collect()
}

/// Reads a record from one row.
pub(super) fn read(row: &impl Row) -> Result<PastTool, StoreError> {
    Ok(PastTool {
        server: rows::name(row, "server", ServerName::parse)?,
        name: rows::name(row, "name", ToolName::parse)?,
        hash: rows::hash(row, "hash")?,
        summary_hash: rows::hash(row, "summary_hash")?,
        search_hint: rows::text(row, "search_hint")?,
        status: rows::status(row)?,
        removed_ms: row.integer("removed_ms")?,
    })
}

/// Records the stored tools with these names, or all tools of the MCP server, before they are deleted.
pub(super) async fn remember(
    transaction: &mut impl Transaction,
    tenant: &str,
    server: &str,
    names: Option<&[&str]>,
) -> Result<(), StoreError> {
    let all = sql!(
        "INSERT INTO past_tools (tenant, server, name, hash, summary_hash, search_hint, status, removed_ms)
         SELECT tenant, server, name, hash, summary_hash, search_hint, status, $3
         FROM tools WHERE tenant = $1 AND server = $2
         ON CONFLICT (tenant, server, name) DO UPDATE SET hash = excluded.hash,
             summary_hash = excluded.summary_hash, search_hint = excluded.search_hint,
             status = excluded.status, removed_ms = excluded.removed_ms"
    );
    let some = sql!(
        "INSERT INTO past_tools (tenant, server, name, hash, summary_hash, search_hint, status, removed_ms)
         SELECT tenant, server, name, hash, summary_hash, search_hint, status, $3
         FROM tools WHERE tenant = $1 AND server = $2 AND name IN " [texts 4]
        " ON CONFLICT (tenant, server, name) DO UPDATE SET hash = excluded.hash,
             summary_hash = excluded.summary_hash, search_hint = excluded.search_hint,
             status = excluded.status, removed_ms = excluded.removed_ms"
    );
    let now_ms = transaction.now_ms();
    let added = match names {
        None => transaction.run(all, &values![tenant, server, now_ms]).await?,
        Some([]) => 0,
        Some(names) => {
            let names = Value::Texts(names.to_vec());
            let values = [tenant.into(), server.into(), now_ms.into(), names];
            transaction.run(some, &values).await?
        }
    };
    if added == 0 { Ok(()) } else { prune(transaction, tenant).await }
}

/// Deletes the records of tools with these names, because they are registered again.
pub(super) async fn forget(
    transaction: &mut impl Transaction,
    tenant: &str,
    server: &str,
    names: Vec<&str>,
) -> Result<(), StoreError> {
    let forget =
        sql!("DELETE FROM past_tools WHERE tenant = $1 AND server = $2 AND name IN " [texts 3]);
    let values = [tenant.into(), server.into(), Value::Texts(names)];
    transaction.run(forget, &values).await.map(drop)
}

/// Deletes the expired records.
pub(super) async fn forget_expired(
    transaction: &mut impl Transaction,
    tenant: &str,
) -> Result<(), StoreError> {
    let forget = sql!("DELETE FROM past_tools WHERE tenant = $1 AND removed_ms <= $2");
    let until = expiry_ms(transaction.now_ms());
    transaction.run(forget, &values![tenant, until]).await.map(drop)
}

/// Stores records that were read from another store.
pub(super) async fn restore(
    transaction: &mut impl Transaction,
    tenant: &str,
    past: &[PastTool],
) -> Result<(), StoreError> {
    let rows: Vec<_> = past.iter().map(|tool| row(tenant, tool)).collect();
    transaction.insert(&INSERT, &rows).await
}

fn row<'a>(tenant: &'a str, tool: &'a PastTool) -> Vec<Value<'a>> {
    vec![
        tenant.into(),
        tool.server.as_str().into(),
        tool.name.as_str().into(),
        Value::from(&tool.hash),
        Value::from(&tool.summary_hash),
        Value::from(&tool.search_hint),
        tool.status.as_str().into(),
        tool.removed_ms.into(),
    ]
}

/// Deletes records beyond [`PAST_TOOLS_KEPT`]: the oldest of the MCP servers with the most records, so that a server
/// can't displace others' records by removing many of its own tools.
async fn prune(transaction: &mut impl Transaction, tenant: &str) -> Result<(), StoreError> {
    let beyond = sql!("SELECT 1 AS found FROM past_tools WHERE tenant = $1 LIMIT 1 OFFSET $2");
    let bound = values![tenant, PAST_TOOLS_KEPT];
    if transaction.optional(beyond, &bound).await?.is_none() {
        return Ok(());
    }
    let drop_last = sql!(
        "DELETE FROM past_tools WHERE tenant = $1 AND (server, name) IN (
             SELECT server, name FROM (
                 SELECT server, name,
                     row_number() OVER (ORDER BY within, removed_ms DESC, server, name) AS overall
                 FROM (
                     SELECT server, name, removed_ms,
                         row_number() OVER (PARTITION BY server ORDER BY removed_ms DESC, name) AS within
                     FROM past_tools WHERE tenant = $1
                 ) AS of_server
             ) AS of_tenant
             WHERE overall > $2
         )"
    );
    transaction.run(drop_last, &bound).await.map(drop)
}

/// Returns the removal time up to which records have expired, in milliseconds since 1970 (UTC).
fn expiry_ms(now_ms: i64) -> i64 {
    now_ms.saturating_sub_unsigned(PAST_TOOL_KEPT.as_secs() * 1000)
}
