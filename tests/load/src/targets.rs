//! Connections to the servers, which calls use in turn.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tonic::transport::{Channel, Endpoint};
use toolgate_proto::v1::router_service_client::RouterServiceClient;

const CONNECT_WITHIN: Duration = Duration::from_secs(2);

/// Time that a failed connection gets no calls while another is available. It equals the clients' longest pause before
/// a new connection.
const OUT_FOR: Duration = Duration::from_secs(1);

/// Several connections to each of several servers. Failed connections are skipped for a while, as the clients' round
/// robin does.
pub(crate) struct Targets {
    connections: Vec<Connection>,
    next: AtomicUsize,
    began: Instant,
}

/// A connection to one server.
pub(crate) struct Connection {
    pub(crate) client: RouterServiceClient<Channel>,
    /// End of the pause after a failure, in milliseconds since `Targets` was created.
    out_until: AtomicU64,
}

impl Targets {
    /// Creates `connections` connections per URL. They connect with the first call, and again when they break.
    pub(crate) fn new(urls: &[String], connections: usize) -> Result<Self, String> {
        let mut all = Vec::new();
        for _ in 0..connections.max(1) {
            for url in urls {
                let endpoint = Endpoint::from_shared(url.clone());
                let endpoint = endpoint.map_err(|_| format!("{url:?} is no URL"))?;
                let endpoint = endpoint.connect_timeout(CONNECT_WITHIN).tcp_nodelay(true);
                let client = RouterServiceClient::new(endpoint.connect_lazy());
                all.push(Connection { client, out_until: AtomicU64::new(0) });
            }
        }
        Ok(Self { connections: all, next: AtomicUsize::new(0), began: Instant::now() })
    }

    /// Returns the next connection in turn. Successive connections lead to different servers if there are several.
    pub(crate) fn take(&self) -> &Connection {
        let now = self.now();
        let turns = self.connections.iter().map(|_| self.next.fetch_add(1, Ordering::Relaxed));
        let mut taken = turns.map(|turn| &self.connections[turn % self.connections.len()]);
        let first = taken.next();
        let is_in = |one: &&Connection| one.out_until.load(Ordering::Relaxed) <= now;
        first.filter(is_in).or_else(|| taken.find(is_in)).or(first).expect("a target")
    }

    /// Records that a call failed on this connection.
    pub(crate) fn failed(&self, connection: &Connection) {
        let until = self.now() + u64::try_from(OUT_FOR.as_millis()).unwrap_or(u64::MAX);
        connection.out_until.store(until, Ordering::Relaxed);
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_failed_is_passed_over_unless_all_did() {
        let urls = ["http://127.0.0.1:1", "http://127.0.0.1:2", "http://127.0.0.1:3"];
        let targets = Targets::new(&urls.map(str::to_owned), 1).expect("URLs");
        let place = |taken: &Connection| {
            targets
                .connections
                .iter()
                .position(|one| std::ptr::eq(one, taken))
                .expect("one of them")
        };
        let taken: Vec<_> = (0..4).map(|_| place(targets.take())).collect();
        assert_eq!(taken, [0, 1, 2, 0]);
        targets.failed(&targets.connections[1]);
        let taken: Vec<_> = (0..4).map(|_| place(targets.take())).collect();
        assert_eq!(taken, [2, 0, 2, 0]);
        targets.connections.iter().for_each(|one| targets.failed(one));
        assert_eq!(place(targets.take()), 1);
    }
}
