//! The operator's switch of deferral, as the routing plane tells of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;
use tokio::time::{Instant, timeout};
use toolgate_client::{Client, Error, ErrorReason, intent, v1};

/// Time for which an answer of the plane counts.
const FRESH: Duration = Duration::from_secs(1);

/// Time after which the plane is not waited for any more. Nobody waits so long: an answer that comes late counts for the next
/// request.
const PATIENCE: Duration = Duration::from_secs(5);

/// Tenant that the plane is asked in where a request has no set of tools to ask with.
const TENANT: &str = "llm-switch";

/// MCP server that makes the tenant known to the plane. It is announced, and never has tools.
const SERVER: &str = "none";

/// Switch of deferral.
#[derive(Debug, Default)]
pub(crate) struct Switch {
    seen: Mutex<Seen>,
    /// Held while the plane is asked, so that it is asked once at a time and others wait for its answer.
    asking: Arc<tokio::sync::Mutex<()>>,
    /// True once this proxy has made the tenant known to the plane.
    is_registered: AtomicBool,
    /// True once the tenant is taken out, so that it is not made known again.
    is_closed: AtomicBool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    is_off: bool,
    since: Option<Instant>,
}

impl Switch {
    /// Notes what an answer of Route says.
    pub(crate) fn note(&self, routed: &v1::RouteResponse) {
        let decided = routed.deferral.as_ref().map(v1::Deferral::reason);
        let is_off = decided == Some(v1::DeferralReason::KillSwitch);
        *self.seen.lock() = Seen { is_off, since: Some(Instant::now()) };
    }

    /// Returns true if the plane has said within the last second that deferral is switched off.
    pub(crate) fn is_known_off(&self) -> bool {
        self.known() == Some(true)
    }

    /// Returns true if the plane has ever said whether deferral is switched off.
    pub(crate) fn was_told(&self) -> bool {
        self.seen.lock().since.is_some()
    }

    /// Returns true if deferral is switched off. The plane is asked unless it said so within the last second. If it gives no
    /// answer within `limit`, what it said last counts, and its answer counts when it comes.
    pub(crate) async fn is_off(self: &Arc<Self>, plane: &Client, limit: Duration) -> bool {
        if self.known().is_none() {
            if let Ok(turn) = Arc::clone(&self.asking).try_lock_owned() {
                let plane = plane.with_deadline(PATIENCE);
                tokio::spawn(Arc::clone(self).learn(plane, turn));
            }
            // Free again once the plane has answered.
            if timeout(limit, self.asking.lock()).await.is_err() {
                tracing::debug!(
                    "the routing plane is late to say whether deferral is switched off"
                );
            }
        }
        self.seen.lock().is_off
    }

    async fn learn(self: Arc<Self>, plane: Client, _turn: OwnedMutexGuard<()>) {
        match self.ask(&plane).await {
            Ok(routed) => self.note(&routed),
            Err(error) => {
                tracing::warn!(%error, "the routing plane does not say whether deferral is switched off");
            }
        }
    }

    async fn ask(&self, plane: &Client) -> Result<v1::RouteResponse, Error> {
        let request = v1::RouteRequest {
            tenant: TENANT.to_owned(),
            intents: vec![intent("Is deferral switched off?")],
            ..Default::default()
        };
        match plane.route(request.clone()).await {
            Err(error)
                if error.reason() == Some(ErrorReason::TenantNotFound)
                    && !self.is_closed.load(Ordering::Relaxed) =>
            {
                self.is_registered.store(true, Ordering::Relaxed);
                plane.register_server(announcement()).await?;
                plane.route(request).await
            }
            answered => answered,
        }
    }

    fn known(&self) -> Option<bool> {
        let Seen { is_off, since } = *self.seen.lock();
        since.filter(|since| since.elapsed() < FRESH).map(|_| is_off)
    }

    /// Takes the tenant out of the plane, if this proxy made it.
    pub(crate) async fn close(&self, plane: &Client) {
        self.is_closed.store(true, Ordering::Relaxed);
        // Whoever asks now may be making it known.
        let _asking = self.asking.lock().await;
        if !self.is_registered.load(Ordering::Relaxed) {
            return;
        }
        let server = v1::UnregisterServerRequest {
            tenant: TENANT.to_owned(),
            server: SERVER.to_owned(),
            ..Default::default()
        };
        // It is empty, so that nothing is lost if it stays.
        let _unknown = plane.unregister_server(server).await;
    }
}

fn announcement() -> v1::RegisterServerRequest {
    v1::RegisterServerRequest {
        tenant: TENANT.to_owned(),
        server: SERVER.to_owned(),
        pending: true,
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use toolgate_client::ClientOptions;

    use super::*;

    fn routed(reason: v1::DeferralReason) -> v1::RouteResponse {
        let deferral = v1::Deferral { reason: reason.into(), ..Default::default() };
        v1::RouteResponse { deferral: Some(deferral), ..Default::default() }
    }

    /// Returns a client of a plane that is not there.
    fn nobody() -> Client {
        Client::lazy("http://127.0.0.1:9", ClientOptions::default()).expect("a URL")
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_answer_counts_where_the_plane_gives_none() {
        let switch = Arc::new(Switch::default());
        let limit = Duration::from_millis(30);
        assert!(!switch.is_known_off());
        assert!(!switch.is_off(&nobody(), limit).await, "nobody said so");
        switch.note(&routed(v1::DeferralReason::KillSwitch));
        assert!(switch.is_known_off());
        tokio::time::advance(FRESH).await;
        assert!(!switch.is_known_off(), "it is to be asked again");
        assert!(switch.is_off(&nobody(), limit).await);
        switch.note(&routed(v1::DeferralReason::Mode));
        assert!(!switch.is_off(&nobody(), limit).await);
    }
}
