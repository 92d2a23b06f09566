//! Memory of a tenant's calls: statistics and deletion.

use super::Plane;
use toolgate_core::error::Error;
use toolgate_core::identity::{ServerName, TenantId, ToolName};
use toolgate_routing::memory::ToolStats;

/// Statistics of a tenant's memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryStats {
    /// True if the tenant's calls are remembered at present.
    pub enabled: bool,
    /// Tools that have exemplars, those with the most first.
    pub tools: Vec<ToolStats>,
}

impl Plane {
    /// Returns the memory statistics of the tenant's tools, or of one MCP server's tools.
    ///
    /// # Errors
    /// Returns an error if there is no such tenant or the store can't be read.
    pub async fn memory_stats(
        &self,
        tenant: &TenantId,
        server: Option<&ServerName>,
    ) -> Result<MemoryStats, Error> {
        self.catalog.must_exist(tenant).await?;
        let tools = self.memory.stats(tenant, server).await?;
        Ok(MemoryStats { enabled: self.memory.is_on(tenant), tools })
    }

    /// Deletes the memory of the tenant, of one MCP server's tools or of one tool. Returns the number of deleted
    /// exemplars. Earlier answers stay as they are.
    ///
    /// Returns an error if there is no such tenant or the store can't be written.
    /// No such tenant, a store that can't be written.
    pub async fn clear_memory(
        &self,
        tenant: &TenantId,
        server: Option<&ServerName>,
        tool: Option<&ToolName>,
    ) -> Result<u64, Error> {
        self.catalog.must_exist(tenant).await?;
        self.memory.clear(tenant, server, tool).await
    }
}
