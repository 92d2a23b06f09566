//! Reads of catalogs. Each runs within one transaction, so that it sees one state.

use std::cmp::Ordering;

use super::rows::{self, number};
use super::{Transaction, policies, removed, sql, values};
use crate::{Revision, StoreError, StoredCatalog, StoredServer, StoredTool, ToolCursor};

/// Selects the columns that [`rows::tool`] needs for the tenant `$1`.
macro_rules! select_tools {
    ($($rest:tt)+) => {
        $crate::sql::sql!(
            "SELECT server, name, model_name, summary, summary_revision, search_hint, definition, hash,
                 precondition, required_scopes, always_load, critical, schema_tokens, summary_tokens, status
             FROM tools WHERE tenant = $1 "
            $($rest)+
        )
    };
}

pub(super) use select_tools;

pub(super) async fn ping(snapshot: &mut impl Transaction) -> Result<(), StoreError> {
    snapshot.optional(sql!("SELECT revision FROM tenants LIMIT 1"), &[]).await.map(drop)
}

pub(super) async fn revision(
    snapshot: &mut impl Transaction,
    tenant: &str,
) -> Result<Option<Revision>, StoreError> {
    let revision = sql!("SELECT revision FROM tenants WHERE tenant = $1 AND revision > 0");
    let row = snapshot.optional(revision, &values![tenant]).await?;
    row.map(|row| number(&row, "revision")).transpose()
}

pub(super) async fn catalog(
    snapshot: &mut impl Transaction,
    tenant: &str,
) -> Result<Option<StoredCatalog>, StoreError> {
    let found = sql!("SELECT revision, pool_floor FROM tenants WHERE tenant = $1 AND revision > 0");
    let row = snapshot.optional(found, &values![tenant]).await?;
    let Some(row) = row else { return Ok(None) };
    let (mut tools, quarantined) = StoredCatalog::apart(all_tools(snapshot, tenant).await?);
    // SQLite would sort whole rows, including definitions. This sort is stable, so equal revisions stay ordered by
    // server and name.
    tools.sort_by_key(|tool| tool.summary_revision);
    let all = sql!("SELECT * FROM servers WHERE tenant = $1 ORDER BY name");
    let servers = snapshot.all(all, &values![tenant]).await?;
    Ok(Some(StoredCatalog {
        revision: number(&row, "revision")?,
        servers: servers.iter().map(rows::server).collect::<Result<_, _>>()?,
        tools,
        quarantined,
        removed: removed::list(snapshot, tenant).await?,
        pool_floor: number(&row, "pool_floor")?,
        policy: policies::read(snapshot, tenant).await?,
    }))
}

pub(super) async fn server(
    snapshot: &mut impl Transaction,
    tenant: &str,
    server: &str,
) -> Result<Option<(StoredServer, Vec<StoredTool>)>, StoreError> {
    let found = sql!("SELECT * FROM servers WHERE tenant = $1 AND name = $2");
    let row = snapshot.optional(found, &values![tenant, server]).await?;
    let Some(row) = row else { return Ok(None) };
    let listed = select_tools!("AND server = $2 ORDER BY name");
    let tools = snapshot.all(listed, &values![tenant, server]).await?;
    let tools = tools.iter().map(rows::tool).collect::<Result<_, _>>()?;
    Ok(Some((rows::server(&row)?, tools)))
}

pub(super) async fn servers_page(
    snapshot: &mut impl Transaction,
    tenant: &str,
    after: Option<&str>,
    page_size: u32,
) -> Result<Vec<StoredServer>, StoreError> {
    let page = sql!("SELECT * FROM servers WHERE tenant = $1 AND name > $2 ORDER BY name LIMIT $3");
    // The empty text sorts before all names, because no name is empty.
    let page = snapshot.all(page, &values![tenant, after.unwrap_or_default(), page_size]).await?;
    page.iter().map(rows::server).collect()
}

pub(super) async fn tools_page(
    snapshot: &mut impl Transaction,
    tenant: &str,
    server: Option<&str>,
    after: Option<&ToolCursor>,
    page_size: u32,
) -> Result<Vec<StoredTool>, StoreError> {
    let (last_server, last_name) =
        after.map_or(("", ""), |cursor| (cursor.server.as_str(), cursor.name.as_str()));
    let of_one = select_tools!("AND server = $2 AND name > $3 ORDER BY name LIMIT $4");
    let of_all = select_tools!("AND (server, name) > ($2, $3) ORDER BY server, name LIMIT $4");
    let (page, server, name) = match server {
        None => (of_all, last_server, last_name),
        Some(server) => match last_server.cmp(server) {
            Ordering::Less => (of_one, server, ""),
            Ordering::Equal => (of_one, server, last_name),
            Ordering::Greater => return Ok(Vec::new()),
        },
    };
    let page = snapshot.all(page, &values![tenant, server, name, page_size]).await?;
    page.iter().map(rows::tool).collect()
}

async fn all_tools(
    snapshot: &mut impl Transaction,
    tenant: &str,
) -> Result<Vec<StoredTool>, StoreError> {
    let mut tools = Vec::new();
    // Read in the order of the primary key: by any other index, SQLite's rows would lie far apart on the disk.
    let all = select_tools!("ORDER BY server, name");
    let values = values![tenant];
    let found = snapshot.each(all, &values, |row| {
        tools.push(rows::tool(row)?);
        Ok(())
    });
    found.await?;
    Ok(tools)
}
