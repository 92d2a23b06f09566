//! The operator's switch of deferral, as the routing plane tells of it.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, timeout};
use toolgate_client::{Client, Error, ErrorReason, intent, v1};

/// Time for which an answer of the plane counts.
const FRESH: Duration = Duration::from_secs(1);

/// Tenant that the plane is asked in where a request has no set of tools to ask with.
const TENANT: &str = "llm-switch";

/// MCP server that makes the tenant known to the plane. It is announced, and never has tools.
const SERVER: &str = "none";

/// Switch of deferral.
#[derive(Debug, Default)]
pub(crate) struct Switch {
    seen: Mutex<Seen>,
    /// Held by the request that asks, so that others wait for its answer.
    asking: tokio::sync::Mutex<()>,
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

    /// Returns true if deferral is switched off. The plane is asked unless it said so within the last second. If it gives no
    /// answer within `limit`, what it said last counts.
    pub(crate) async fn is_off(&self, plane: &Client, limit: Duration) -> bool {
        let asked = async {
            let _turn = self.asking.lock().await;
            if self.known().is_some() {
                return;
            }
            match ask(&plane.with_deadline(limit)).await {
                Ok(routed) => self.note(&routed),
                Err(error) => {
                    tracing::warn!(%error, "the routing plane does not say whether deferral is switched off");
                }
            }
        };
        // Too late is no answer either.
        let _late = timeout(limit, asked).await;
        self.seen.lock().is_off
    }

    fn known(&self) -> Option<bool> {
        let Seen { is_off, since } = *self.seen.lock();
        since.filter(|since| since.elapsed() < FRESH).map(|_| is_off)
    }

    /// Takes the tenant out of the plane, if one was made.
    pub(crate) async fn close(&self, plane: &Client) {
        if self.seen.lock().since.is_none() {
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

async fn ask(plane: &Client) -> Result<v1::RouteResponse, Error> {
    let request = v1::RouteRequest {
        tenant: TENANT.to_owned(),
        intents: vec![intent("Is deferral switched off?")],
        ..Default::default()
    };
    match plane.route(request.clone()).await {
        Err(error) if error.reason() == Some(ErrorReason::TenantNotFound) => {
            plane.register_server(announcement()).await?;
            plane.route(request).await
        }
        answered => answered,
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
        let switch = Switch::default();
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
