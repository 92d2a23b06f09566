//! What of a catalog's listing an agent may see.

use std::sync::Arc;

use super::aside::aside;
use super::pending;
use super::route::Router;
use crate::error::Error;
use crate::gate::standing::{Standing, Standings};
use crate::identity::{ServerName, TenantId, ToolId};
use crate::shard::snapshot::Snapshot;
use crate::state::AgentState;

/// A catalog as one agent sees it.
pub struct View {
    snapshot: Arc<Snapshot>,
    standings: Standings,
    pending: Vec<String>,
}

impl Router {
    /// The tenant's catalog as an agent in this state sees it.
    ///
    /// # Errors
    /// An unknown tenant, a store that can't be read.
    pub async fn view(&self, tenant: &TenantId, state: AgentState) -> Result<View, Error> {
        let snapshot = self.shards.get(tenant, 0).await?;
        let shard = Arc::clone(&snapshot);
        let look = move || {
            let standings = Standings::of(&shard, &state);
            let pending = pending::visible(&shard, &standings, &state);
            Ok(View { snapshot: Arc::clone(&shard), standings, pending })
        };
        aside(&snapshot, look).await
    }
}

impl View {
    /// Whether the tool is there to this agent.
    #[must_use]
    pub fn has(&self, tool: &ToolId) -> bool {
        let slot = self.snapshot.names.key(&tool.key());
        slot.is_some_and(|slot| self.is_visible(slot))
    }

    /// Refuses an MCP server of which this agent sees nothing, as one that is not there.
    ///
    /// # Errors
    /// [`Error::ServerNotFound`].
    pub fn require_server(&self, server: &ServerName) -> Result<(), Error> {
        let slots = self.snapshot.servers.get(server);
        let shows_tools = slots.is_some_and(|slots| slots.iter().any(|s| self.is_visible(*s)));
        if shows_tools || self.pending.iter().any(|name| name == server.as_str()) {
            return Ok(());
        }
        Err(Error::ServerNotFound(server.as_str().to_owned()))
    }

    fn is_visible(&self, slot: u32) -> bool {
        self.standings.tool(&self.snapshot, slot) != Standing::Hidden
    }
}
