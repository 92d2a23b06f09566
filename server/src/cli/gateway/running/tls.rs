//! TLS of the gateway's listener, and the certificates that hosts show.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::serve::Listener;
use tokio::time::interval;
use tokio_util::sync::CancellationToken;
use toolgate_mcp::{AuthConfig, AuthMethod, HostPeer, TlsConfig};
use toolgate_serving::{BoundedListener, Connection, ConnectionRefusal, Tls, TlsFiles};

use crate::cli::failure::Failure;
use crate::cli::serve::with_causes;

/// Interval at which the files are looked at.
const LOOKED_AT: Duration = Duration::from_secs(5);

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
    let tls = Tls::load(files)
        .map_err(|error| Failure::usage(format!("gateway.tls: {}", with_causes(&error))))?;
    let tls = Arc::new(tls);
    let followed = stop.clone().run_until_cancelled_owned(follow(Arc::clone(&tls)));
    tokio::spawn(followed);
    Ok(Some(tls))
}

/// Takes new certificates for new connections. Those that are no good are told once, and change nothing.
async fn follow(tls: Arc<Tls>) {
    let mut turns = interval(LOOKED_AT);
    let mut told = String::new();
    loop {
        turns.tick().await;
        let reading = Arc::clone(&tls);
        match tokio::task::spawn_blocking(move || reading.reload()).await {
            Ok(Ok(true)) => {
                told.clear();
                tracing::info!("the gateway's certificates are other ones now");
            }
            Ok(Err(problem)) if problem.to_string() != told => {
                told = problem.to_string();
                tracing::error!(%problem, "new certificates are not good: those before stay");
            }
            Ok(_) => {}
            Err(problem) => tracing::error!(%problem, "certificates can't be looked at"),
        }
    }
}
