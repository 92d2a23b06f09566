//! MCP servers that are announced and have no tools yet, and who may know of them.

use toolgate_core::identity::ServerName;
use toolgate_core::policy::Policy;
use toolgate_core::state::AgentState;
use toolgate_store::StoredServer;

/// An MCP server that is announced.
#[derive(Debug, Clone)]
pub struct PendingServer {
    /// Its name.
    pub name: ServerName,
    /// Scopes that all of its tools will need.
    scopes: Vec<String>,
    /// The policy denies all of its tools to everybody.
    denied: bool,
}

impl PendingServer {
    /// The announced ones of `servers`, by what they and the policy's rules say of all their tools.
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

    /// Scopes that all of its tools will need.
    #[must_use]
    pub fn scopes(&self) -> &[String] {
        &self.scopes
    }

    /// Whether a caller may know of it.
    #[must_use]
    pub fn may_be_known(&self, state: &AgentState) -> bool {
        !self.denied && self.scopes.iter().all(|scope| state.scopes.contains(scope))
    }
}
