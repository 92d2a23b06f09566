//! What is remembered of a tenant's calls: how much, and forgetting it.

use super::Plane;
use toolgate_core::error::Error;
use toolgate_core::identity::{ServerName, TenantId, ToolName};
use toolgate_routing::memory::ToolStats;

/// How much is remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryStats {
    /// Whether calls of the tenant are remembered now.
    pub enabled: bool,
    /// The tools that have exemplars, those with most first.
    pub tools: Vec<ToolStats>,
}

impl Plane {
    /// How much is remembered of the tenant's tools, or of one MCP server's.
    ///
    /// # Errors
    /// No such tenant, a store that can't be read.
    pub async fn memory_stats(
        &self,
        tenant: &TenantId,
        server: Option<&ServerName>,
    ) -> Result<MemoryStats, Error> {
        self.catalog.must_exist(tenant).await?;
        let tools = self.memory.stats(tenant, server).await?;
        Ok(MemoryStats { enabled: self.memory.is_on(tenant), tools })
    }

    /// Forgets what is remembered of the tenant, of one MCP server's tools, or of one tool; how many exemplars. What was
    /// answered from it before stays answered.
    ///
    /// # Errors
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
