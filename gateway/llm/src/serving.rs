//! Connections of hosts. The head of a request has a deadline, so that a host that is slow with it keeps no place.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::serve::Listener;
use http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

/// Time for answers that are under way when the proxy is stopped.
const DRAIN: Duration = Duration::from_secs(10);

/// Address that a request came from.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub(crate) SocketAddr);

impl Peer {
    /// Returns the IP address.
    #[must_use]
    pub fn ip(&self) -> IpAddr {
        self.0.ip()
    }
}

/// Serves `routes` until `stop`, and then ends answers under way within ten seconds. The head of a request has `head` to come.
/// Requests bear their [`Peer`].
pub async fn serve_routes(
    mut listener: impl Listener<Addr = SocketAddr>,
    routes: Router,
    head: Duration,
    stop: CancellationToken,
) {
    // Connections that are left when it is dropped end.
    let mut open = JoinSet::new();
    loop {
        tokio::select! {
            (io, address) = listener.accept() => {
                open.spawn(connection(io, Peer(address), routes.clone(), head, stop.clone()));
            }
            Some(_) = open.join_next() => {}
            () = stop.cancelled() => break,
        }
    }
    drop(listener);
    let ended = async { while open.join_next().await.is_some() {} };
    if tokio::time::timeout(DRAIN, ended).await.is_err() {
        tracing::warn!("answers that were under way are cut");
    }
}

async fn connection(
    io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: Peer,
    routes: Router,
    head: Duration,
    stop: CancellationToken,
) {
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(peer);
        let answered = routes.clone().oneshot(request.map(Body::new));
        async move { answered.await.map_err(|error: Infallible| error) }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(head);
    builder.http2().timer(TokioTimer::new());
    let mut connection = pin!(builder.serve_connection(TokioIo::new(io), service));
    let served = tokio::select! {
        served = connection.as_mut() => served,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.as_mut().await
        }
    };
    if let Err(error) = served {
        tracing::debug!(%error, "a connection of a host ended with an error");
    }
}
