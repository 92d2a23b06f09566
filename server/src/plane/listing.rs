//! The tools of a catalog, page by page: all of them, or those that an agent may see.

use super::Plane;
use crate::error::Error;
use crate::identity::{ServerName, TenantId, ToolId};
use crate::router::listing::View;
use crate::state::AgentState;
use crate::store::{StoredTool, ToolCursor};

/// Which tools, and how many of them.
#[derive(Debug, Clone)]
pub struct ToolPage {
    /// Only this MCP server's.
    pub server: Option<ServerName>,
    /// Those after this one, by server and name.
    pub after: Option<ToolCursor>,
    /// At most so many.
    pub size: u32,
}

impl Plane {
    /// A page of tools by server and name; of those that `agent` may see, when there is one.
    ///
    /// # Errors
    /// No such tenant or server, or none that the agent may see; a store that can't be read.
    pub async fn list_tools(
        &self,
        tenant: &TenantId,
        page: ToolPage,
        agent: Option<AgentState>,
    ) -> Result<Vec<StoredTool>, Error> {
        let Some(agent) = agent else { return self.read(tenant, &page).await };
        let view = self.router.view(tenant, agent).await?;
        page.server.as_ref().map_or(Ok(()), |server| view.require_server(server))?;
        self.read_seen(tenant, page, &view).await
    }

    /// Reads on until the page is full: where it ends must not tell of what is hidden.
    async fn read_seen(
        &self,
        tenant: &TenantId,
        mut page: ToolPage,
        view: &View,
    ) -> Result<Vec<StoredTool>, Error> {
        let mut seen = Vec::new();
        loop {
            let rows = self.read(tenant, &page).await?;
            let is_last = rows.len() < page.size as usize;
            page.after = rows.last().map(cursor);
            seen.extend(rows.into_iter().filter(|row| view.has(&id(row))));
            if is_last || seen.len() >= page.size as usize {
                seen.truncate(page.size as usize);
                return Ok(seen);
            }
        }
    }

    async fn read(&self, tenant: &TenantId, page: &ToolPage) -> Result<Vec<StoredTool>, Error> {
        let (server, after) = (page.server.as_ref(), page.after.as_ref());
        self.catalog.tools(tenant, server, after, page.size).await
    }
}

fn id(row: &StoredTool) -> ToolId {
    ToolId { server: row.record.server.clone(), name: row.record.name.clone() }
}

fn cursor(row: &StoredTool) -> ToolCursor {
    let ToolId { server, name } = id(row);
    ToolCursor { server: server.as_str().to_owned(), name: name.as_str().to_owned() }
}
