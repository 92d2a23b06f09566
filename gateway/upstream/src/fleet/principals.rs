//! Credentials of principals for a server that has one for each. None is ever taken for another's.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::server::Server;
use super::{Request, RequestError};
use crate::connection::CallError;
use crate::credentials::{Authorization, Authorizer, CredentialError, Requester};
use crate::error::UpstreamError;
use crate::target::{Endpoint, Upstream};

/// Most credentials of principals in memory. Those that no connection uses are forgotten beyond it, and got anew.
const KEPT_MAX: usize = 1_024;

/// Sources of the tokens of principals, by [`Requester::key`].
#[derive(Debug, Default)]
pub(super) struct Principals(Mutex<HashMap<String, Arc<Authorizer>>>);

impl Server {
    /// Returns the source of the tokens of the principal whose request it is, with a token in it; `None` if all requests take the
    /// same.
    pub(super) async fn principals_own(
        &self,
        request: &Request,
    ) -> Result<Option<Arc<Authorizer>>, RequestError> {
        let Upstream::Http(endpoint) = &self.entry.upstream else { return Ok(None) };
        if !endpoint.is_per_principal() {
            return Ok(None);
        }
        let takes_login = endpoint.takes_login();
        let Some(requester) = &request.requester else {
            if takes_login {
                return Ok(None);
            }
            let problem = "the caller came with no token that can be exchanged".to_owned();
            return Err(RequestError::Credential { problem, takes_login });
        };
        let authorizer = self.authorizer_of(endpoint, requester);
        let authorizer = authorizer.map_err(|error| told(&error, takes_login))?;
        match authorizer.token().await {
            Ok(Some(_)) => Ok(Some(authorizer)),
            Ok(None) => {
                let problem = "you have not connected to it yet".to_owned();
                Err(RequestError::Credential { problem, takes_login })
            }
            Err(error) => Err(told(&error, takes_login)),
        }
    }

    /// Ends a principal's own connections.
    pub(super) fn renew(&self, requester: &Requester) {
        let Upstream::Http(endpoint) = &self.entry.upstream else { return };
        let key = requester.key(!endpoint.takes_login());
        if let Some(authorizer) = self.principals.0.lock().remove(&key) {
            self.own.end_of(&authorizer);
        }
    }

    /// Returns the error of a call with a principal's own credential.
    pub(super) fn refusal_of_own(&self, error: CallError) -> RequestError {
        let takes_login = self.takes_login();
        let problem = match error {
            CallError::Login => ended(takes_login),
            CallError::Scopes(problem) if takes_login && !self.has_scopes() => problem,
            error => return self.refusal(error),
        };
        RequestError::Credential { problem, takes_login }
    }

    /// Returns the error of a connection with a principal's own credential that could not be opened.
    pub(super) fn refusal_to_connect(&self, error: &UpstreamError) -> RequestError {
        if matches!(error, UpstreamError::Handshake { asks_for_login: true, .. }) {
            let takes_login = self.takes_login();
            return RequestError::Credential { problem: ended(takes_login), takes_login };
        }
        self.unavailable(&error.to_string(), false)
    }

    fn takes_login(&self) -> bool {
        matches!(&self.entry.upstream, Upstream::Http(endpoint) if endpoint.takes_login())
    }

    /// Returns whether the operator says which scopes are asked for.
    fn has_scopes(&self) -> bool {
        let Upstream::Http(endpoint) = &self.entry.upstream else { return false };
        let client = endpoint.authorization.client();
        client.is_some_and(|client| !client.scopes.is_empty())
    }

    fn authorizer_of(
        &self,
        endpoint: &Endpoint,
        requester: &Requester,
    ) -> Result<Arc<Authorizer>, CredentialError> {
        let has_token = matches!(endpoint.authorization, Authorization::Exchange(_));
        let key = requester.key(has_token);
        let mut kept = self.principals.0.lock();
        if let Some(authorizer) = kept.get(&key) {
            return Ok(Arc::clone(authorizer));
        }
        if kept.len() >= KEPT_MAX {
            kept.retain(|_, authorizer| Arc::strong_count(authorizer) > 1);
        }
        let store = self.surroundings.credentials.as_ref();
        let authorizer = Authorizer::of_principal(endpoint, &self.entry.name, store, requester)?;
        kept.insert(key, Arc::clone(&authorizer));
        Ok(authorizer)
    }
}

fn ended(takes_login: bool) -> String {
    let problem = if takes_login {
        "your login has ended"
    } else {
        "it refuses the token that yours is exchanged for"
    };
    problem.to_owned()
}

fn told(error: &CredentialError, takes_login: bool) -> RequestError {
    let is_login = matches!(error, CredentialError::Login(_));
    let problem = if is_login && takes_login { ended(true) } else { error.to_string() };
    RequestError::Credential { problem, takes_login: takes_login && is_login }
}
