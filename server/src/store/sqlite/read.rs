//! Reads of catalogs. A read of more than one statement takes a transaction, so that it sees one state.

use std::cmp::Ordering;

use sqlx::sqlite::{SqliteConnection, SqlitePool};
use tokio_stream::StreamExt;

use super::failure::failed;
use super::{policies, removed, rows};
use crate::store::{Revision, StoreError, StoredCatalog, StoredServer, StoredTool, ToolCursor};

/// Reads what [`rows::tool`] needs of the tenant ?1.
macro_rules! select_tools {
    ($rest:literal) => {
        concat!(
            "SELECT server, name, model_name, summary, summary_revision, search_hint, definition, hash,
                 precondition, required_scopes, always_load, critical, schema_tokens, summary_tokens
             FROM tools WHERE tenant = ?1 ",
            $rest
        )
    };
}

pub(super) async fn ping(readers: &SqlitePool) -> Result<(), StoreError> {
    let any = sqlx::query("SELECT revision FROM tenants LIMIT 1");
    any.fetch_optional(readers).await.map(drop).map_err(failed)
}

pub(super) async fn revision(
    readers: &SqlitePool,
    tenant: &str,
) -> Result<Option<Revision>, StoreError> {
    let found = sqlx::query("SELECT revision FROM tenants WHERE tenant = ?1").bind(tenant);
    let row = found.fetch_optional(readers).await.map_err(failed)?;
    row.map(|row| rows::number(&row, "revision")).transpose()
}

pub(super) async fn catalog(
    snapshot: &mut SqliteConnection,
    tenant: &str,
) -> Result<Option<StoredCatalog>, StoreError> {
    let found = sqlx::query("SELECT revision, pool_floor FROM tenants WHERE tenant = ?1");
    let row = found.bind(tenant).fetch_optional(&mut *snapshot).await.map_err(failed)?;
    let Some(row) = row else { return Ok(None) };
    let mut tools = all_tools(snapshot, tenant).await?;
    // SQLite would sort whole rows, definitions and all. The order by server and name stays among equals.
    tools.sort_by_key(|tool| tool.summary_revision);
    Ok(Some(StoredCatalog {
        revision: rows::number(&row, "revision")?,
        servers: all_servers(snapshot, tenant).await?,
        tools,
        removed: removed::list(snapshot, tenant).await?,
        pool_floor: rows::number(&row, "pool_floor")?,
        policy: policies::read(snapshot, tenant).await?,
    }))
}

pub(super) async fn server(
    snapshot: &mut SqliteConnection,
    tenant: &str,
    server: &str,
) -> Result<Option<(StoredServer, Vec<StoredTool>)>, StoreError> {
    let found = sqlx::query("SELECT * FROM servers WHERE tenant = ?1 AND name = ?2");
    let row = found.bind(tenant).bind(server).fetch_optional(&mut *snapshot).await;
    let Some(row) = row.map_err(failed)? else { return Ok(None) };
    let listed = sqlx::query(select_tools!("AND server = ?2 ORDER BY name"));
    let tools = listed.bind(tenant).bind(server).fetch_all(snapshot).await.map_err(failed)?;
    let tools = tools.iter().map(rows::tool).collect::<Result<_, _>>()?;
    Ok(Some((rows::server(&row)?, tools)))
}

pub(super) async fn servers_page(
    readers: &SqlitePool,
    tenant: &str,
    after: Option<&str>,
    page_size: u32,
) -> Result<Vec<StoredServer>, StoreError> {
    let sql = "SELECT * FROM servers WHERE tenant = ?1 AND name > ?2 ORDER BY name LIMIT ?3";
    // No name is empty, so the empty one stands before all of them.
    let page = sqlx::query(sql).bind(tenant).bind(after.unwrap_or_default()).bind(page_size);
    page.fetch_all(readers).await.map_err(failed)?.iter().map(rows::server).collect()
}

pub(super) async fn tools_page(
    readers: &SqlitePool,
    tenant: &str,
    server: Option<&str>,
    after: Option<&ToolCursor>,
    page_size: u32,
) -> Result<Vec<StoredTool>, StoreError> {
    let (last_server, last_name) =
        after.map_or(("", ""), |cursor| (cursor.server.as_str(), cursor.name.as_str()));
    let of_one = select_tools!("AND server = ?2 AND name > ?3 ORDER BY name LIMIT ?4");
    let of_all = select_tools!("AND (server, name) > (?2, ?3) ORDER BY server, name LIMIT ?4");
    let (sql, server, name) = match server {
        None => (of_all, last_server, last_name),
        Some(server) => match last_server.cmp(server) {
            Ordering::Less => (of_one, server, ""),
            Ordering::Equal => (of_one, server, last_name),
            Ordering::Greater => return Ok(Vec::new()),
        },
    };
    let page = sqlx::query(sql).bind(tenant).bind(server).bind(name).bind(page_size);
    page.fetch_all(readers).await.map_err(failed)?.iter().map(rows::tool).collect()
}

async fn all_servers(
    snapshot: &mut SqliteConnection,
    tenant: &str,
) -> Result<Vec<StoredServer>, StoreError> {
    let all = sqlx::query("SELECT * FROM servers WHERE tenant = ?1 ORDER BY name").bind(tenant);
    all.fetch_all(snapshot).await.map_err(failed)?.iter().map(rows::server).collect()
}

async fn all_tools(
    snapshot: &mut SqliteConnection,
    tenant: &str,
) -> Result<Vec<StoredTool>, StoreError> {
    let mut tools = Vec::new();
    // In the order of the primary key: by any other index the rows would lie far apart on the disk.
    let sql = select_tools!("ORDER BY server, name");
    let mut stream = sqlx::query(sql).bind(tenant).fetch(snapshot);
    while let Some(row) = stream.next().await {
        tools.push(rows::tool(&row.map_err(failed)?)?);
    }
    Ok(tools)
}
