//! Connections for processes that serve HTTP without gRPC.

use std::future::pending;
use std::io;
use std::net::SocketAddr;

use axum::serve::Listener;
use tokio_stream::StreamExt as _;

use super::{Connection, ConnectionRefusal, Connections};

/// Listener whose connections are bounded in number.
pub struct BoundedListener<F> {
    connections: Connections<F>,
}

impl<F: Fn(ConnectionRefusal) + Unpin> Connections<F> {
    /// Returns these connections as a server of [`axum`] takes them.
    #[must_use]
    pub fn into_listener(self) -> BoundedListener<F> {
        BoundedListener { connections: self }
    }
}

impl<F: Fn(ConnectionRefusal) + Send + Unpin + 'static> Listener for BoundedListener<F> {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        loop {
            match self.connections.next().await {
                Some(Ok(connection)) => {
                    let address = connection.address;
                    return (connection, address);
                }
                Some(Err(_)) => {}
                None => pending().await,
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.connections.listener.local_addr()
    }
}
