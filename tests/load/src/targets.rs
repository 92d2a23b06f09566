//! Connections to the servers, which calls take in turn.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tonic::transport::{Channel, Endpoint};
use toolgate_proto::v1::router_service_client::RouterServiceClient;

const CONNECT_WITHIN: Duration = Duration::from_secs(2);

/// Several connections to each of several servers.
pub(crate) struct Targets {
    clients: Vec<RouterServiceClient<Channel>>,
    next: AtomicUsize,
}

impl Targets {
    /// Connected with the first call, and again when it broke.
    pub(crate) fn new(urls: &[String], connections: usize) -> Result<Self, String> {
        let mut clients = Vec::new();
        for _ in 0..connections.max(1) {
            for url in urls {
                let endpoint = Endpoint::from_shared(url.clone());
                let endpoint = endpoint.map_err(|_| format!("{url:?} is no URL"))?;
                let endpoint = endpoint.connect_timeout(CONNECT_WITHIN).tcp_nodelay(true);
                clients.push(RouterServiceClient::new(endpoint.connect_lazy()));
            }
        }
        Ok(Self { clients, next: AtomicUsize::new(0) })
    }

    /// The connection whose turn it is; the one after it is to another server, if there is one.
    pub(crate) fn take(&self) -> RouterServiceClient<Channel> {
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        self.clients[turn % self.clients.len()].clone()
    }
}
