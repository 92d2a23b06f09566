//! Callers of the gateway: who a request comes from, and what its credential says of it.

use std::sync::Arc;

use toolgate_client::v1;
use toolgate_upstream::{Requester, Secret};

use crate::gateway::Gateway;

/// Caller of the gateway, as its credential says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caller {
    /// Tenant, whose servers it sees. Empty for the tenant that the routing plane takes where none is named.
    pub tenant: Arc<str>,
    /// Name within the tenant; empty without authentication.
    pub principal: Arc<str>,
    /// Scopes that its credential has. Preconditions ask for them.
    pub scopes: Arc<[String]>,
    /// Public id of its credential; empty without authentication.
    pub credential: Arc<str>,
    /// True if it may see and restart the servers of its tenant.
    pub is_operator: bool,
    /// True if it may do so in every tenant.
    pub is_of_all_tenants: bool,
    /// Token that it came with, to be exchanged and never to be sent on; `None` for another credential.
    pub token: Option<Secret>,
}

/// Owner of what the gateway keeps: one principal of one tenant.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Owner {
    tenant: Arc<str>,
    principal: Arc<str>,
}

impl Owner {
    pub(crate) fn tenant(&self) -> &str {
        &self.tenant
    }

    pub(crate) fn tenant_name(&self) -> Arc<str> {
        Arc::clone(&self.tenant)
    }
}

impl Caller {
    /// Returns the caller of every request of a gateway without authentication.
    #[must_use]
    pub fn anybody(tenant: &str) -> Self {
        Self {
            tenant: Arc::from(tenant),
            is_operator: true,
            is_of_all_tenants: true,
            ..Self::default()
        }
    }

    /// Returns the owner of what is kept of this caller.
    pub(crate) fn owner(&self) -> Owner {
        Owner { tenant: Arc::clone(&self.tenant), principal: Arc::clone(&self.principal) }
    }

    /// Returns the caller as a principal with credentials of its own; `None` without authentication, where all are one: the
    /// operator.
    pub(crate) fn requester(&self) -> Option<Requester> {
        (!self.principal.is_empty()).then(|| Requester {
            tenant: Arc::clone(&self.tenant),
            principal: Arc::clone(&self.principal),
            token: self.token.clone(),
        })
    }

    /// Returns the name under which a server's turns know the caller. No tenant's name has a slash.
    pub(crate) fn turn_name(&self) -> String {
        format!("{}/{}", self.tenant, self.principal)
    }

    /// Returns the state that the routing plane judges by: the calls that the caller made through the gateway, and its scopes.
    pub(crate) fn state(&self, gateway: &Gateway) -> v1::AgentState {
        v1::AgentState {
            calls: gateway.history().calls(&self.owner()),
            scopes: self.scopes.to_vec(),
            ..Default::default()
        }
    }
}
