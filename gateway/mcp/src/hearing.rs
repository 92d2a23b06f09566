//! Messages of servers that belong to no request, told to the sessions of revisions before 2026-07-28 that may hear them.
#![expect(deprecated, reason = "both eras: logging is deprecated in the newer")]

use std::time::Duration;

use rmcp::RoleServer;
use rmcp::service::Peer;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::sleep;
use toolgate_upstream::ServerMessage;

use crate::caller::Caller;
use crate::face::Exposure;
use crate::gateway::Gateway;
use crate::passing::{self, SessionLevel};

/// Longest time after which a session that ended is no longer listened for.
const CLOSED_SEEN: Duration = Duration::from_secs(60);

/// Session that hears messages.
pub(crate) struct Hearing {
    pub(crate) gateway: Gateway,
    pub(crate) exposure: Exposure,
    pub(crate) caller: Caller,
    /// Name of the host within its principal.
    pub(crate) host: String,
    pub(crate) level: SessionLevel,
}

impl Hearing {
    /// Returns true if the session may hear a message: one of a server behind its face, on a connection of its own. What comes on
    /// the connection that all share may be about anybody's calls, so it is told where all are one.
    fn is_for(&self, message: &ServerMessage) -> bool {
        let is_behind = match &self.exposure {
            Exposure::Server(server) => **server == *message.server,
            Exposure::Search | Exposure::All => true,
        };
        is_behind
            && self.gateway.sees(&self.caller.tenant, &message.server)
            && may_hear(&self.caller, &self.host, message)
    }
}

fn may_hear(caller: &Caller, host: &str, message: &ServerMessage) -> bool {
    match &message.owner {
        None => caller.principal.is_empty(),
        Some(owner) => {
            owner.principal == caller.turn_name()
                && owner.host.as_deref().is_none_or(|owner| owner == host)
        }
    }
}

/// Tells a session of messages until it ends. What it does not take in time is dropped.
pub(crate) async fn session(
    peer: Peer<RoleServer>,
    hearing: Hearing,
    mut messages: broadcast::Receiver<ServerMessage>,
) {
    let is_named = !matches!(hearing.exposure, Exposure::Server(_));
    loop {
        let message = tokio::select! {
            message = messages.recv() => match message {
                Ok(message) => Some(message),
                Err(RecvError::Lagged(_)) => None,
                Err(RecvError::Closed) => return,
            },
            () = sleep(CLOSED_SEEN) => None,
        };
        if peer.is_transport_closed() {
            return;
        }
        let Some(message) = message.filter(|message| hearing.is_for(message)) else { continue };
        let level = *hearing.level.lock();
        let named = is_named.then_some(&*message.server);
        let Some(told) = passing::message((*message.params).clone(), level, named) else {
            continue;
        };
        if peer.notify_logging_message(told).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::Value;
    use toolgate_upstream::ConnectionOwner;

    use super::*;

    #[test]
    fn messages_are_for_the_owner_of_their_connection_or_for_those_who_are_all_one() {
        let message = |owner: Option<ConnectionOwner>| ServerMessage {
            server: "notes".into(),
            owner: owner.map(Arc::new),
            params: Arc::new(Value::Null),
        };
        let caller = |principal: &str| Caller {
            tenant: "acme".into(),
            principal: principal.into(),
            ..Caller::default()
        };
        let ann = caller("ann");
        let owned = |host: Option<&str>| {
            let host = host.map(str::to_owned);
            message(Some(ConnectionOwner { principal: ann.turn_name(), host }))
        };
        assert!(may_hear(&caller(""), "h", &message(None)));
        assert!(!may_hear(&ann, "h", &message(None)), "it may be about somebody else's call");
        assert!(may_hear(&ann, "h", &owned(Some("h"))));
        assert!(!may_hear(&ann, "other", &owned(Some("h"))));
        assert!(may_hear(&ann, "other", &owned(None)));
        assert!(!may_hear(&caller("bob"), "h", &owned(Some("h"))));
        assert!(!may_hear(&caller(""), "h", &owned(None)));
    }
}
