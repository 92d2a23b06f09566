//! Part of a catalog's listing that an agent may see.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use crate::gate::visibility::{Visibilities, Visibility};
use crate::router::answers::pending;
use crate::router::aside::aside;
use crate::router::route::Router;
use crate::shard::shards::Shards;
use crate::shard::snapshot::Snapshot;
use toolgate_core::error::Error;
use toolgate_core::identity::{ServerName, TenantId, ToolId, ToolKey};
use toolgate_core::state::AgentState;
use toolgate_store::{ContentHash, Revision, ToolCursor};

/// Tool as it is listed by its names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedTool {
    /// MCP server and name.
    pub id: ToolId,
    /// Name that the model sees.
    pub model_name: String,
    /// SHA-256 of the canonical definition; `None` for a tool that waits for approval.
    pub hash: Option<ContentHash>,
}

impl NamedTool {
    fn new(id: &ToolId, model_name: &str, hash: Option<ContentHash>) -> Self {
        Self { id: id.clone(), model_name: model_name.to_owned(), hash }
    }
}

/// Catalog as one agent sees it.
pub struct View {
    snapshot: Arc<Snapshot>,
    visibilities: Visibilities,
    pending: Vec<String>,
    /// Tools that wait for approval and that the agent would see once they are approved.
    waiting: HashSet<ToolKey>,
    /// MCP servers of the tools that wait for approval.
    waiting_of: HashSet<ServerName>,
}

impl Router {
    /// Returns the tenant's catalog as an agent in this state sees it.
    ///
    /// # Errors
    /// An unknown tenant, or a store that can't be read.
    pub async fn view(&self, tenant: &TenantId, state: AgentState) -> Result<View, Error> {
        let snapshot = self.shards.get(tenant, 0).await?;
        let shard = Arc::clone(&snapshot);
        let look = move || {
            let visibilities = Visibilities::of(&shard, &state);
            let pending = pending::visible(&shard, &visibilities, &state);
            let waiting = shard.quarantine.tools();
            let waiting =
                waiting.filter(|tool| visibilities.group(tool.group) != Visibility::Hidden);
            let (waiting, waiting_of) =
                waiting.map(|tool| (tool.key, tool.id.server.clone())).unzip();
            Ok(View { snapshot: Arc::clone(&shard), visibilities, pending, waiting, waiting_of })
        };
        aside(&snapshot, look).await
    }
}

/// Returns the names of the MCP servers that an agent with these scopes may know of, at revision `min_revision` or
/// later. `None` stands for an agent that may claim any scopes. Returns no names for a tenant without a catalog.
///
/// # Errors
/// A store that can't be read.
pub async fn known_servers(
    shards: &Arc<Shards>,
    tenant: &TenantId,
    min_revision: Revision,
    scopes: Option<&BTreeSet<String>>,
) -> Result<HashSet<String>, Error> {
    let snapshot = match shards.get(tenant, min_revision).await {
        Err(Error::TenantNotFound(_)) => return Ok(HashSet::new()),
        found => found?,
    };
    let scopes = scopes.cloned().unwrap_or_else(|| scopes_of(&snapshot));
    let state = AgentState { scopes, ..AgentState::default() };
    let shard = Arc::clone(&snapshot);
    let look = move || {
        let visibilities = Visibilities::of(&shard, &state);
        let is_visible = |slot: &u32| visibilities.tool(&shard, *slot) != Visibility::Hidden;
        let shown = shard.servers.iter().filter(|(_, slots)| slots.iter().any(is_visible));
        let waiting = shard.quarantine.tools();
        let waiting = waiting.filter(|tool| visibilities.group(tool.group) != Visibility::Hidden);
        let pending = pending::known(&shard, &visibilities, &state);
        let names = shown.map(|(name, _)| name).chain(waiting.map(|tool| &tool.id.server));
        let names = names.chain(pending.map(|server| &server.name));
        Ok(names.map(|name| name.as_str().to_owned()).collect())
    };
    aside(&snapshot, look).await
}

/// Returns every scope that something in the catalog needs.
fn scopes_of(snapshot: &Snapshot) -> BTreeSet<String> {
    let of_tools = snapshot.requirements.scopes.iter().map(|scope| scope.to_string());
    let of_pending = snapshot.pending.iter().flat_map(|server| server.scopes()).cloned();
    of_tools.chain(of_pending).collect()
}

impl View {
    /// Returns true if the agent may know of the tool, if only by its name because it waits for approval.
    #[must_use]
    pub fn has(&self, tool: &ToolId) -> bool {
        let key = tool.key();
        let is_shown = self.snapshot.names.key(&key).is_some_and(|slot| self.is_visible(slot));
        is_shown || self.waiting.contains(&key)
    }

    /// Returns up to `size` tools that the agent may know of, of one MCP server or of all, by server and name, after a place.
    #[must_use]
    pub fn names(
        &self,
        server: Option<&ServerName>,
        after: Option<&ToolCursor>,
        size: usize,
    ) -> Vec<NamedTool> {
        let mut waiting: BTreeMap<&ServerName, Vec<NamedTool>> = BTreeMap::new();
        let known =
            self.snapshot.quarantine.tools().filter(|tool| self.waiting.contains(&tool.key));
        for tool in known {
            let named = NamedTool::new(&tool.id, &tool.model_name, None);
            waiting.entry(&tool.id.server).or_default().push(named);
        }
        let servers: BTreeSet<_> = self.snapshot.servers.keys().chain(&self.waiting_of).collect();
        let is_asked = |of: &ServerName| {
            let is_past = after.is_some_and(|after| of.as_str() < after.server.as_str());
            !is_past && server.is_none_or(|server| server == of)
        };
        let is_after = |tool: &ToolId| {
            let place = (tool.server.as_str(), tool.name.as_str());
            after.is_none_or(|after| place > (after.server.as_str(), after.name.as_str()))
        };
        let mut named = Vec::new();
        for server in servers.into_iter().filter(|of| is_asked(of)) {
            let mut tools = waiting.remove(server).unwrap_or_default();
            tools.extend(self.shown_of(server));
            tools.retain(|tool| is_after(&tool.id));
            tools.sort_by(|one, other| one.id.name.as_str().cmp(other.id.name.as_str()));
            named.extend(tools);
            if named.len() >= size {
                break;
            }
        }
        named.truncate(size);
        named
    }

    fn shown_of(&self, server: &ServerName) -> impl Iterator<Item = NamedTool> {
        let slots = self.snapshot.servers.get(server).into_iter().flatten();
        slots.filter(|slot| self.is_visible(**slot)).map(|slot| {
            let tool = self.snapshot.tool(*slot);
            NamedTool::new(&tool.id, &tool.model_name, Some(tool.hash))
        })
    }

    /// Refuses an MCP server if this agent sees nothing of it, as if the server did not exist.
    ///
    /// # Errors
    /// [`Error::ServerNotFound`] if the agent sees nothing of the server.
    pub fn require_server(&self, server: &ServerName) -> Result<(), Error> {
        let slots = self.snapshot.servers.get(server);
        let shows_tools = slots.is_some_and(|slots| slots.iter().any(|s| self.is_visible(*s)));
        let names_tools = self.waiting_of.contains(server);
        if shows_tools || names_tools || self.pending.iter().any(|name| name == server.as_str()) {
            return Ok(());
        }
        Err(Error::ServerNotFound(server.as_str().to_owned()))
    }

    fn is_visible(&self, slot: u32) -> bool {
        self.visibilities.tool(&self.snapshot, slot) != Visibility::Hidden
    }
}
