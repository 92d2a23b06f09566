//! Pages of a catalog's tools: all tools, or those that an agent may see.

use super::Plane;
use toolgate_core::error::Error;
use toolgate_core::identity::{ServerName, TenantId, ToolId};
use toolgate_core::state::AgentState;
use toolgate_routing::catalog::verify::is_served;
use toolgate_routing::router::answers::listing::NamedTool;
use toolgate_store::{StoredTool, ToolCursor};

/// Selection of tools for one page.
#[derive(Debug, Clone)]
pub struct ToolPage {
    /// MCP server whose tools are listed; `None` for all.
    pub server: Option<ServerName>,
    /// Position after which the page starts, by server and name.
    pub after: Option<ToolCursor>,
    /// Maximum number of tools in the page.
    pub size: u32,
}

impl Plane {
    /// Returns a page of tools by server and name. If there is an `agent`, lists only the tools that it may see.
    ///
    /// # Errors
    /// Returns an error if there is no such tenant or server, if the agent may not see the server, or if the store
    /// can't be read.
    pub async fn list_tools(
        &self,
        tenant: &TenantId,
        page: ToolPage,
        agent: Option<AgentState>,
    ) -> Result<Vec<StoredTool>, Error> {
        let Some(agent) = agent else { return self.read_shown(tenant, page, |_| true).await };
        let view = self.router.view(tenant, agent).await?;
        page.server.as_ref().map_or(Ok(()), |server| view.require_server(server))?;
        self.read_shown(tenant, page, |row| view.has(&id(row))).await
    }

    /// Returns a page of the tools that an agent may see, by server and name, with their names alone. The store is not read:
    /// the index has them.
    ///
    /// # Errors
    /// Returns an error if there is no such tenant or server, or if the agent may not see the server.
    pub async fn list_names(
        &self,
        tenant: &TenantId,
        page: ToolPage,
        agent: AgentState,
    ) -> Result<Vec<NamedTool>, Error> {
        let view = self.router.view(tenant, agent).await?;
        page.server.as_ref().map_or(Ok(()), |server| view.require_server(server))?;
        Ok(view.names(page.server.as_ref(), page.after.as_ref(), page.size as usize))
    }

    /// Reads until the page is full. The page's end must not reveal hidden tools, and a damaged row must not end the
    /// listing.
    async fn read_shown(
        &self,
        tenant: &TenantId,
        mut page: ToolPage,
        is_shown: impl Fn(&StoredTool) -> bool,
    ) -> Result<Vec<StoredTool>, Error> {
        let mut seen = Vec::new();
        loop {
            let mut rows = self.read(tenant, &page).await?;
            let is_last = rows.len() < page.size as usize;
            page.after = rows.last().map(cursor);
            rows.retain(&is_shown);
            seen.extend(without_damaged(tenant, rows).await?);
            if is_last || seen.len() >= page.size as usize {
                seen.truncate(page.size as usize);
                return Ok(seen);
            }
        }
    }

    async fn read(&self, tenant: &TenantId, page: &ToolPage) -> Result<Vec<StoredTool>, Error> {
        let server = page.server.as_ref();
        let after = page.after.as_ref();
        self.catalog.tools(tenant, server, after, page.size).await
    }
}

/// Removes tools whose definition differs from the registered one.
async fn without_damaged(
    tenant: &TenantId,
    mut rows: Vec<StoredTool>,
) -> Result<Vec<StoredTool>, Error> {
    let tenant = tenant.clone();
    let sift = move || {
        rows.retain(|row| is_served(&tenant, &row.record));
        rows
    };
    // Hashing a page of long definitions takes milliseconds.
    tokio::task::spawn_blocking(sift).await.map_err(Error::internal)
}

fn id(row: &StoredTool) -> ToolId {
    ToolId { server: row.record.server.clone(), name: row.record.name.clone() }
}

fn cursor(row: &StoredTool) -> ToolCursor {
    let ToolId { server, name } = id(row);
    ToolCursor { server: server.as_str().to_owned(), name: name.as_str().to_owned() }
}
