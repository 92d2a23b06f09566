//! The handshake of the session of the request that is being served, as the protocol library asks for it and tells it.

use std::pin::Pin;
use std::sync::Arc;

use parking_lot::Mutex;
use rmcp::model::ProtocolVersion;
use rmcp::transport::streamable_http_server::session::{
    SessionState, SessionStore, SessionStoreError,
};

/// Handshake of a session: one that the host carries, or the one that it is doing.
pub(super) type Handshake = Arc<Mutex<Option<SessionState>>>;

tokio::task_local! {
    static HANDSHAKE: Handshake;
}

/// Store of the library's sessions that holds none: each request brings its own.
pub(crate) struct Carried;

type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, SessionStoreError>> + Send + 'a>>;

/// Serves a request with the handshake of its session.
pub(super) async fn with<T>(handshake: Handshake, serving: impl Future<Output = T>) -> T {
    HANDSHAKE.scope(handshake, serving).await
}

/// Returns true if the host of the request that is being served takes events without data. One of a revision before 2025-11-25
/// may end the connection at such an event.
pub(super) fn takes_empty_events() -> bool {
    let carried = HANDSHAKE.try_with(|handshake| {
        let handshake = handshake.lock();
        let revision = handshake.as_ref().map(|state| &state.initialize_params.protocol_version);
        revision.is_some_and(|revision| *revision >= ProtocolVersion::V_2025_11_25)
    });
    carried.unwrap_or(false)
}

impl SessionStore for Carried {
    fn load<'life0, 'life1, 'a>(
        &'life0 self,
        _name: &'life1 str,
    ) -> Answer<'a, Option<SessionState>>
    where
        'life0: 'a,
        'life1: 'a,
        Self: 'a,
    {
        let carried = HANDSHAKE.try_with(|handshake| handshake.lock().clone());
        Box::pin(std::future::ready(Ok(carried.ok().flatten())))
    }

    fn store<'life0, 'life1, 'life2, 'a>(
        &'life0 self,
        _name: &'life1 str,
        state: &'life2 SessionState,
    ) -> Answer<'a, ()>
    where
        'life0: 'a,
        'life1: 'a,
        'life2: 'a,
        Self: 'a,
    {
        // Without one there is no request, and nobody to carry it.
        let _none = HANDSHAKE.try_with(|handshake| *handshake.lock() = Some(state.clone()));
        Box::pin(std::future::ready(Ok(())))
    }

    fn delete<'life0, 'life1, 'a>(&'life0 self, _name: &'life1 str) -> Answer<'a, ()>
    where
        'life0: 'a,
        'life1: 'a,
        Self: 'a,
    {
        Box::pin(std::future::ready(Ok(())))
    }
}
