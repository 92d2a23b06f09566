//! Admin port of a process: pages over plain HTTP, with limits of its own. It shares the process's file descriptors
//! with gRPC and must not exhaust them.

use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_stream::StreamExt as _;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::connections::{Connection, ConnectionLimits, ConnectionRefusal, Connections};

/// Most connections at a time: some scrapers, some probes, a person.
const CONNECTIONS_MAX: usize = 64;

/// Longest time from a connection's beginning until its page is sent. Pages are small and made at once, so a client
/// that takes longer is stuck or malicious.
const PAGE_MAX: Duration = Duration::from_secs(10);

/// Most bytes of a request's line and headers.
const HEADERS_MAX: usize = 16 << 10;

/// Serves `routes` until `over` is cancelled. A connection carries one request, because idle ones would hold places.
pub async fn serve_pages(listener: TcpListener, routes: Router, over: CancellationToken) {
    serve_within(PAGE_MAX, listener, routes, over).await;
}

async fn serve_within(
    page_max: Duration,
    listener: TcpListener,
    routes: Router,
    over: CancellationToken,
) {
    let refused = |_: ConnectionRefusal| {
        debug!("a connection to the admin port beyond the most there may be");
    };
    let limits = ConnectionLimits::of(CONNECTIONS_MAX);
    let mut incoming = Connections::of_any_kind(listener, limits, refused);
    // Dropped at the end together with all connections: a peer that stays must not keep the process alive.
    let mut open = JoinSet::new();
    loop {
        tokio::select! {
            Some(Ok(connection)) = incoming.next() => {
                open.spawn(timeout(page_max, serve_page(connection, routes.clone())));
            }
            Some(_) = open.join_next() => {}
            () = over.cancelled() => return,
        }
    }
}

async fn serve_page(connection: Connection, routes: Router) {
    let mut builder = http1::Builder::new();
    builder.keep_alive(false).max_buf_size(HEADERS_MAX);
    let service = TowerToHyperService::new(routes);
    if let Err(error) = builder.serve_connection(TokioIo::new(connection), service).await {
        debug!(%error, "a connection to the admin port failed");
    }
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;
    use tokio::time::{Instant, sleep};

    use super::*;

    const WHOLE: &[u8] = b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n";
    const HALF: &[u8] = b"GET /livez HT";

    async fn start(page_max: Duration) -> std::net::SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let slow = get(|| async {
            sleep(Duration::from_secs(60)).await;
            "late"
        });
        let routes = Router::new().route("/livez", get(|| async { "ok\n" })).route("/slow", slow);
        tokio::spawn(serve_within(page_max, listener, routes, CancellationToken::new()));
        address
    }

    async fn send(address: std::net::SocketAddr, request: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        stream.write_all(request).await.expect("it is taken");
        stream
    }

    /// Returns all bytes until the connection is closed.
    async fn rest(mut stream: TcpStream) -> String {
        let mut bytes = Vec::new();
        // A reset also ends the connection.
        drop(stream.read_to_end(&mut bytes).await);
        String::from_utf8(bytes).expect("text")
    }

    #[tokio::test]
    async fn a_page_is_served_and_the_connection_closed() {
        let page = rest(send(start(PAGE_MAX).await, WHOLE).await).await;
        assert!(page.starts_with("HTTP/1.1 200") && page.ends_with("ok\n"), "{page}");
    }

    #[tokio::test]
    async fn half_requests_and_slow_pages_end_in_time() {
        let address = start(Duration::from_millis(300)).await;
        let started = Instant::now();
        for request in [HALF, b"", b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n"] {
            assert_eq!(rest(send(address, request).await).await, "");
        }
        assert!(started.elapsed() < Duration::from_secs(50), "{:?}", started.elapsed());
    }

    #[tokio::test]
    async fn half_requests_hold_a_bounded_number_of_places_and_give_them_back() {
        let address = start(Duration::from_secs(30)).await;
        let mut held = Vec::new();
        for _ in 0..CONNECTIONS_MAX {
            held.push(send(address, HALF).await);
        }
        assert_eq!(rest(send(address, HALF).await).await, "", "one more is closed");
        let first = held[0].try_read(&mut [0]).map_err(|error| error.kind());
        assert_eq!(first, Err(std::io::ErrorKind::WouldBlock), "before the first is");
        drop(held);
        // Places are free once the server has seen that the connections are closed.
        let limit = Instant::now() + Duration::from_secs(60);
        while !rest(send(address, WHOLE).await).await.ends_with("ok\n") {
            assert!(Instant::now() < limit, "no place is given back");
            sleep(Duration::from_millis(5)).await;
        }
    }
}
