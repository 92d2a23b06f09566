//! Changes since a revision by MCP server, with the records of removed servers that they need; and changed tenants by
//! a number that covers all tenants.

use super::rows::{self, integer, number};
use super::{Row as _, Transaction, sql, values};
use crate::{ChangedTenant, Changes, REMOVED_SERVERS_KEPT, Revision, Sequence, StoreError};
use toolgate_core::identity::TenantId;

pub(super) async fn since(
    snapshot: &mut impl Transaction,
    tenant: &str,
    since: Revision,
) -> Result<Changes, StoreError> {
    let floors =
        sql!("SELECT revision, changes_floor FROM tenants WHERE tenant = $1 AND revision > 0");
    let Some(row) = snapshot.optional(floors, &values![tenant]).await? else {
        return Ok(Changes { told: since == 0, ..Changes::default() });
    };
    let revision: Revision = number(&row, "revision")?;
    let floor: Revision = number(&row, "changes_floor")?;
    // For a reader that has seen nothing, removed servers are no change.
    let told = since == 0 || (floor..=revision).contains(&since);
    if !told {
        return Ok(Changes { revision, ..Changes::default() });
    }
    let after = values![tenant, integer(since)?];
    let named = sql!(
        "SELECT name FROM servers WHERE tenant = $1 AND revision > $2
         UNION
         SELECT name FROM removed_servers WHERE tenant = $1 AND revision > $2 AND $2 > 0
         ORDER BY name"
    );
    let servers = snapshot.all(named, &after).await?;
    let servers = servers.iter().map(|row| rows::text(row, "name")).collect::<Result<_, _>>()?;
    let policy = sql!("SELECT 1 FROM policies WHERE tenant = $1 AND revision > $2");
    let policy = snapshot.optional(policy, &after).await?.is_some();
    Ok(Changes { revision, servers, policy, told })
}

/// Gives the change the next number over all tenants. It must be the last statement of a transaction, because other
/// writers wait here until the transaction ends. A reader that sees one number therefore sees all lower ones.
pub(super) async fn enumerate(
    transaction: &mut impl Transaction,
    tenant: &str,
) -> Result<(), StoreError> {
    let take = sql!([either
        "UPDATE tenants SET sequence = 1 + (SELECT max(sequence) FROM tenants) WHERE tenant = $1",
        "WITH next AS (UPDATE change_counter SET value = value + 1 RETURNING value),
             changed AS (
                 UPDATE tenants SET sequence = next.value FROM next WHERE tenant = $1
                 RETURNING sequence
             )
         SELECT pg_notify('toolgate_changes', '') FROM changed"
    ]);
    transaction.run(take, &values![tenant]).await.map(drop)
}

/// Returns the number of the last change.
pub(super) async fn last(snapshot: &mut impl Transaction) -> Result<Sequence, StoreError> {
    let last = sql!("SELECT coalesce(max(sequence), 0) AS sequence FROM tenants");
    let row = snapshot.optional(last, &[]).await?;
    row.map_or(Ok(0), |row| number(&row, "sequence"))
}

/// Returns up to `most` tenants whose last change came after the number `after`, in the order of last changes.
pub(super) async fn tenants(
    snapshot: &mut impl Transaction,
    after: Sequence,
    most: u32,
) -> Result<Vec<ChangedTenant>, StoreError> {
    let changed = sql!(
        "SELECT tenant, revision, sequence FROM tenants WHERE sequence > $1
         ORDER BY sequence LIMIT $2"
    );
    let found = snapshot.all(changed, &values![integer(after)?, most]).await?;
    let changed = |row| {
        Ok(ChangedTenant {
            tenant: rows::name(row, "tenant", TenantId::parse)?,
            revision: number(row, "revision")?,
            sequence: number(row, "sequence")?,
        })
    };
    found.iter().map(changed).collect()
}

/// Returns a page of the tenants that have a catalog, by name, after `after`.
pub(super) async fn all_tenants(
    snapshot: &mut impl Transaction,
    after: Option<&str>,
    page_size: u32,
) -> Result<Vec<TenantId>, StoreError> {
    let page = sql!(
        "SELECT tenant FROM tenants WHERE tenant > $1 AND revision > 0 ORDER BY tenant LIMIT $2"
    );
    let page = snapshot.all(page, &values![after.unwrap_or_default(), page_size]).await?;
    page.iter().map(|row| rows::name(row, "tenant", TenantId::parse)).collect()
}

/// Records the removal of the server.
pub(super) async fn server_went(
    transaction: &mut impl Transaction,
    tenant: &str,
    server: &str,
    revision: Revision,
) -> Result<(), StoreError> {
    let keep = sql!(
        "INSERT INTO removed_servers (tenant, name, revision) VALUES ($1, $2, $3)
         ON CONFLICT (tenant, name) DO UPDATE SET revision = excluded.revision"
    );
    transaction.run(keep, &values![tenant, server, integer(revision)?]).await?;
    prune(transaction, tenant).await
}

/// Drops the removal record of a server that is registered again. Its own revision shows the change from now on.
pub(super) async fn server_came(
    transaction: &mut impl Transaction,
    tenant: &str,
    server: &str,
) -> Result<(), StoreError> {
    let forget = sql!("DELETE FROM removed_servers WHERE tenant = $1 AND name = $2");
    transaction.run(forget, &values![tenant, server]).await.map(drop)
}

async fn prune(transaction: &mut impl Transaction, tenant: &str) -> Result<(), StoreError> {
    let last = sql!(
        "SELECT revision FROM removed_servers WHERE tenant = $1
         ORDER BY revision DESC LIMIT 1 OFFSET $2"
    );
    let last = transaction.optional(last, &values![tenant, REMOVED_SERVERS_KEPT]).await?;
    let Some(row) = last else { return Ok(()) };
    let floor = values![tenant, row.integer("revision")?];
    let forget = sql!("DELETE FROM removed_servers WHERE tenant = $1 AND revision <= $2");
    transaction.run(forget, &floor).await?;
    let raise = sql!("UPDATE tenants SET changes_floor = $2 WHERE tenant = $1");
    transaction.run(raise, &floor).await.map(drop)
}
