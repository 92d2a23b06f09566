//! TLS of the gateway's listener, and the certificates that hosts show.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::serve::Listener;
use tokio_util::sync::CancellationToken;
use toolgate_mcp::{AuthConfig, AuthMethod, HostPeer, TlsConfig};
use toolgate_serving::{BoundedListener, Connection, ConnectionRefusal, Tls, TlsFiles};

use crate::cli::failure::Failure;
use crate::cli::tls::start as start_files;

/// Listener whose connections are known by the certificates that hosts show.
pub(super) struct HostListener<F>(pub(super) BoundedListener<F>);

impl<F: Fn(ConnectionRefusal) + Send + Unpin + 'static> Listener for HostListener<F> {
    type Io = Connection;
    type Addr = HostPeer;

    async fn accept(&mut self) -> (Connection, HostPeer) {
        let (connection, address) = self.0.accept().await;
        let peer = HostPeer { address, connection: Arc::new(connection.peer().clone()) };
        (connection, peer)
    }

    fn local_addr(&self) -> io::Result<HostPeer> {
        let address: SocketAddr = self.0.local_addr()?;
        Ok(HostPeer { address, connection: Arc::new(()) })
    }
}

/// Reads the files of TLS, and keeps them up to date until `stop`. `None` for plain HTTP.
pub(super) fn start(
    config: &TlsConfig,
    auth: &AuthConfig,
    stop: &CancellationToken,
) -> Result<Option<Arc<Tls>>, Failure> {
    let Some(certificate) = &config.cert_file else { return Ok(None) };
    let Some(key) = &config.key_file else { return Ok(None) };
    let files = TlsFiles {
        certificate: certificate.clone(),
        key: key.clone(),
        client_authorities: config.client_ca_file.clone(),
        client_certificate_optional: auth.methods.contains(&AuthMethod::Mtls),
    };
    start_files(files, "gateway.tls", stop).map(Some)
}
