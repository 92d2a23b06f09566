//! MCP servers that are announced but have no tools yet, and the callers who may know of them.

use toolgate_core::identity::ServerName;
use toolgate_core::policy::Policy;
use toolgate_core::state::AgentState;
use toolgate_store::StoredServer;

/// MCP server that is announced but has no tools yet.
#[derive(Debug, Clone)]
pub struct PendingServer {
    /// Name of the server.
    pub name: ServerName,
    /// Scopes that all of its tools will need.
    scopes: Vec<String>,
    /// True if the policy denies all of its tools to every caller.
    denied: bool,
}

impl PendingServer {
    /// Returns the announced servers among `servers`, with the restrictions that they and the policy put on all their
    /// tools.
    #[must_use]
    pub fn all(servers: &[StoredServer], policy: &Policy) -> Vec<Self> {
        let pending = servers.iter().map(|server| &server.record).filter(|record| record.pending);
        let pending = pending.map(|record| {
            let rules = policy.rules.iter().filter(|rule| rule.covers(record.name.as_str()));
            let scopes = rules.clone().flat_map(|rule| &rule.scopes);
            Self {
                name: record.name.clone(),
                scopes: record.required_scopes.iter().chain(scopes).cloned().collect(),
                denied: rules.clone().any(|rule| rule.denied),
            }
        });
        pending.collect()
    }

    /// Returns the scopes that all of its tools will need.
    #[must_use]
    pub fn scopes(&self) -> &[String] {
        &self.scopes
    }

    /// Returns true if a caller with this state may know of the server.
    #[must_use]
    pub fn may_be_known(&self, state: &AgentState) -> bool {
        !self.denied && self.scopes.iter().all(|scope| state.scopes.contains(scope))
    }
}
