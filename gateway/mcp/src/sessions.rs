//! Sessions of hosts of revisions before 2026-07-28. A host carries all that a gateway must know of its session in the session's
//! ID, sealed: each replica with the key takes it, and one that has not seen the session yet shakes hands with itself.

mod carried;
mod ended;
mod manager;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderValue;
use parking_lot::Mutex;
use rmcp::model::InitializeRequestParams;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::session::{SessionManager as _, SessionState};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub(crate) use carried::Carried;
pub(crate) use ended::Ended;
pub use ended::EndedSessions;

use crate::caller::{Caller, Owner};
use crate::gateway::Gateway;
use crate::sealed::{Content, Purpose};

/// Header of the ID of a session.
pub(crate) const SESSION_HEADER: &str = "mcp-session-id";

/// Time for which the ID of a session is good.
const KEPT: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Silence after which this replica forgets a session. It takes it again with the next request.
const SILENCE: Duration = Duration::from_secs(60 * 60);

/// Pause after which a host whose stream ended too soon comes back for the rest.
const RETRY: Duration = Duration::from_secs(3);

/// Most bytes of the parameters of a handshake that an ID carries. HTTP proxies take 8 KiB of a header.
const CARRIED_MAX: usize = 3 << 10;

/// Most characters of a host's name and version where the whole is too long.
const NAME_MAX: usize = 64;

/// Session as its host carries it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct SealedSession {
    /// Name of the session within the gateway.
    pub(crate) name: String,
    /// Parameters of the handshake: revision, capabilities and name of the host.
    handshake: Value,
}

/// Sessions of one face and tenant that are alive at this replica.
pub(crate) struct Sessions {
    alive: LocalSessionManager,
    /// Owners of the sessions, by name. Some of these may have ended.
    owners: Mutex<HashMap<String, Owner>>,
    gateway: Gateway,
    /// One session is restored at a time: the library takes no second restoration of the same one.
    restoring: tokio::sync::Mutex<()>,
}

impl Sessions {
    pub(crate) fn new(gateway: Gateway) -> Self {
        let mut alive = LocalSessionManager::default();
        alive.session_config.sse_retry = Some(RETRY);
        alive.session_config.keep_alive = Some(SILENCE);
        let owners = Mutex::default();
        Self { alive, owners, gateway, restoring: tokio::sync::Mutex::default() }
    }

    /// Returns the session with this ID; `None` if it is none of this caller's at this face, or its host ended it.
    pub(crate) async fn opened(&self, id: &str, purpose: &Purpose<'_>) -> Option<SealedSession> {
        let session = SealedSession::open(&self.gateway, id, purpose)?;
        if !self.gateway.ended().has(&session.name).await {
            return Some(session);
        }
        // It was ended at another replica. It may have ended here by itself.
        let _ended = self.alive.close_session(&session.name.into()).await;
        None
    }

    /// Returns the number of sessions that are alive here.
    pub(crate) async fn count(&self) -> usize {
        self.alive.sessions.read().await.len()
    }

    /// Returns the number of an owner's sessions that are alive here.
    pub(crate) async fn count_of(&self, owner: &Owner) -> usize {
        let alive = self.alive.sessions.read().await;
        let mut owners = self.owners.lock();
        owners.retain(|name, _| alive.contains_key(name.as_str()));
        owners.values().filter(|of| *of == owner).count()
    }

    /// Returns whether a session is alive here.
    pub(crate) async fn has(&self, name: &str) -> bool {
        self.alive.sessions.read().await.contains_key(name)
    }

    /// Serves a request with the handshake of its session. Returns the response, with the session's ID as the host carries
    /// it if the request opened one.
    pub(crate) async fn served<B>(
        &self,
        session: Option<&SealedSession>,
        caller: &Caller,
        purpose: &Purpose<'_>,
        serving: impl Future<Output = http::Response<B>>,
    ) -> http::Response<B> {
        let handshake = Arc::new(Mutex::new(session.and_then(SealedSession::state)));
        let is_new = match session {
            Some(session) => !self.has(&session.name).await,
            None => false,
        };
        let _restoring = if is_new { Some(self.restoring.lock().await) } else { None };
        let mut response = carried::with(Arc::clone(&handshake), serving).await;
        if let Some(session) = session.filter(|_| is_new) {
            self.owners.lock().insert(session.name.clone(), caller.owner());
        }
        let opened = response.headers().get(SESSION_HEADER).and_then(|name| name.to_str().ok());
        if let (Some(name), Some(state)) = (opened, handshake.lock().take()) {
            self.owners.lock().insert(name.to_owned(), caller.owner());
            let session = SealedSession::new(name, &state.initialize_params);
            let sealed = self.gateway.seal().seal(Content::Session(session), purpose, KEPT);
            if let Ok(sealed) = HeaderValue::from_str(&sealed) {
                response.headers_mut().insert(SESSION_HEADER, sealed);
            }
        }
        response
    }
}

impl SealedSession {
    fn new(name: &str, handshake: &InitializeRequestParams) -> Self {
        Self { name: name.to_owned(), handshake: short(handshake) }
    }

    fn state(&self) -> Option<SessionState> {
        serde_json::from_value(self.handshake.clone()).ok().map(SessionState::new)
    }

    /// Returns what the ID of a caller's session at a face is made for.
    pub(crate) fn purpose<'a>(caller: &'a str, face: &'a str) -> Purpose<'a> {
        Purpose { principal: caller, server: face, method: "session", name: "" }
    }

    /// Opens the ID of a session; `None` if it is none of this caller's at this face.
    fn open(gateway: &Gateway, id: &str, purpose: &Purpose<'_>) -> Option<Self> {
        match gateway.seal().open(id, purpose)? {
            Content::Session(session) => Some(session),
            _ => None,
        }
    }

    /// Returns the session's name as a header.
    pub(crate) fn header(&self) -> HeaderValue {
        HeaderValue::from_str(&self.name).unwrap_or(HeaderValue::from_static(""))
    }
}

/// Returns the parameters of a handshake, without what would make an ID too long.
fn short(handshake: &InitializeRequestParams) -> Value {
    let mut params = serde_json::to_value(handshake).unwrap_or_default();
    if let Some(params) = params.as_object_mut() {
        params.remove("_meta");
    }
    let is_short = |params: &Value| params.to_string().len() <= CARRIED_MAX;
    if is_short(&params) {
        return params;
    }
    let told = |field: &str| -> String {
        let text = params["clientInfo"][field].as_str().unwrap_or_default();
        text.chars().take(NAME_MAX).collect()
    };
    params["clientInfo"] = json!({"name": told("name"), "version": told("version")});
    if is_short(&params) {
        return params;
    }
    let capabilities = params["capabilities"].as_object().cloned().unwrap_or_default();
    let kept =
        crate::asking::CAPABILITIES.into_iter().filter(|name| capabilities.contains_key(*name));
    params["capabilities"] = kept.map(|name| (name.to_owned(), json!({}))).collect();
    params
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handshake(capabilities: &Value, version: &str) -> InitializeRequestParams {
        let params = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": capabilities,
            "clientInfo": {"name": "host", "version": version, "title": "x".repeat(20)},
        });
        serde_json::from_value(params).expect("a handshake")
    }

    #[test]
    fn an_id_carries_the_handshake_as_far_as_it_fits() {
        let whole = handshake(&json!({"elicitation": {}, "roots": {"listChanged": true}}), "1");
        let session = SealedSession::new("s", &whole);
        assert_eq!(session.state().expect("a state").initialize_params, whole);
        let long = "9".repeat(4 << 10);
        for large in [
            handshake(&json!({"elicitation": {}}), &long),
            handshake(&json!({"elicitation": {}, "experimental": {"x": {"y": long}}}), "1"),
        ] {
            let session = SealedSession::new("s", &large);
            assert!(session.handshake.to_string().len() <= CARRIED_MAX);
            let state = session.state().expect("a state").initialize_params;
            assert!(state.capabilities.elicitation.is_some());
            assert_eq!(state.client_info.name, "host");
            assert_eq!(state.protocol_version, large.protocol_version);
        }
    }
}
