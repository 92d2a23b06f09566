//! Principals whose own credentials requests take.

use std::sync::Arc;

use ring::digest::{SHA256, digest};

use super::{Owner, Secret};

/// Principal whose own credential a request takes, where a server has one for each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requester {
    /// Tenant of the principal.
    pub tenant: Arc<str>,
    /// Name within the tenant; never empty.
    pub principal: Arc<str>,
    /// Token that it came with, to be exchanged and never to be sent on; `None` if it came with another credential.
    pub token: Option<Secret>,
}

impl Requester {
    /// Returns the owner of the principal's credential for a server.
    #[must_use]
    pub fn owner(&self, server: &str) -> Owner {
        Owner {
            tenant: self.tenant.to_string(),
            principal: self.principal.to_string(),
            server: server.to_owned(),
        }
    }

    /// Returns a name that no other principal has. With a token it is this token's alone: what was got for one must not serve
    /// another, which may be good for less.
    pub(crate) fn key(&self, has_token: bool) -> String {
        let token = self.token.as_ref().filter(|_| has_token);
        let token = token.map(|token| digest(&SHA256, token.reveal().as_bytes()));
        let token = token.map(|token| hex::encode(token.as_ref()));
        // JSON, so that no name can look like another's.
        serde_json::json!([&*self.tenant, &*self.principal, token]).to_string()
    }
}
