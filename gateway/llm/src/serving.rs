//! Connections of hosts. Heads of requests and pieces of answers have deadlines, so that a host that is slow or gone keeps no
//! place.

use std::convert::Infallible;
use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::serve::Listener;
use http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::JoinSet;
use tokio::time::{Sleep, sleep};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

/// Time for answers that are under way when the proxy is stopped.
const DRAIN: Duration = Duration::from_secs(10);

/// Silence after which a peer of HTTP/2 is pinged. It is dropped after the same time again. Of HTTP/1.1, the kernel probes
/// silent peers.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// Deadlines of connections.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// Time for the head of a request.
    pub head: Duration,
    /// Time in which a peer must take some of what is written.
    pub write: Duration,
}

/// Connection whose peer must take what is written.
struct Timed<I> {
    io: I,
    limit: Duration,
    /// End of the time for what is being written; `None` if nothing waits.
    late: Option<Pin<Box<Sleep>>>,
}

impl<I> Timed<I> {
    fn new(io: I, limit: Duration) -> Self {
        Self { io, limit, late: None }
    }

    /// Returns what became of a write, or an error once the peer has taken nothing for too long.
    fn in_time<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.late = None;
            return written;
        }
        let limit = self.limit;
        let late = self.late.get_or_insert_with(|| Box::pin(sleep(limit)));
        ready!(late.as_mut().poll(cx));
        let why = "the host took nothing of its answer for too long (llm.write_timeout)";
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, why)))
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for Timed<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buffer)
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for Timed<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write(cx, bytes);
        self.in_time(cx, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.io).poll_flush(cx);
        self.in_time(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.io).poll_shutdown(cx);
        self.in_time(cx, shut)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write_vectored(cx, slices);
        self.in_time(cx, written)
    }
}

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

/// Serves `routes` until `stop`, and then ends answers under way within ten seconds. Requests bear their [`Peer`].
pub async fn serve_routes(
    mut listener: impl Listener<Addr = SocketAddr>,
    routes: Router,
    pace: Pace,
    stop: CancellationToken,
) {
    // Connections that are left when it is dropped end.
    let mut open = JoinSet::new();
    loop {
        tokio::select! {
            (io, address) = listener.accept() => {
                open.spawn(connection(io, Peer(address), routes.clone(), pace, stop.clone()));
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
    pace: Pace,
    stop: CancellationToken,
) {
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(peer);
        let answered = routes.clone().oneshot(request.map(Body::new));
        async move { answered.await.map_err(|error: Infallible| error) }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(pace.head);
    let mut http2 = builder.http2();
    http2.timer(TokioTimer::new()).keep_alive_interval(KEEPALIVE).keep_alive_timeout(KEEPALIVE);
    let io = TokioIo::new(Timed::new(io, pace.write));
    let mut connection = pin!(builder.serve_connection(io, service));
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

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use axum::body::Bytes;
    use axum::routing::get;
    use futures_util::stream::repeat_with;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
    use tokio::time::{Instant, timeout};

    use super::*;

    const PACE: Pace = Pace { head: Duration::from_secs(30), write: Duration::from_secs(120) };

    /// Preface of HTTP/2, and a frame of settings without any.
    const OPENING: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

    /// Serves an endless answer to a host that has this end of a connection. Ends with the connection.
    fn served(io: DuplexStream) -> impl Future<Output = ()> {
        let peer = Peer(SocketAddr::from((Ipv4Addr::LOCALHOST, 1)));
        let piece = || Ok::<_, io::Error>(Bytes::from_static(&[b'x'; 4096]));
        let endless = move || async move { Body::from_stream(repeat_with(piece)) };
        let routes = Router::new().route("/", get(endless));
        connection(io, peer, routes, PACE, CancellationToken::new())
    }

    #[tokio::test(start_paused = true)]
    async fn a_host_that_stops_reading_loses_its_connection() {
        let (mut host, io) = duplex(1 << 10);
        let begun = Instant::now();
        let reading = async {
            host.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.expect("a request");
            for _ in 0..4 {
                tokio::time::sleep(PACE.write - Duration::from_secs(1)).await;
                host.read_exact(&mut [0; 512]).await.expect("it reads slowly");
            }
            Instant::now()
        };
        let ended = async {
            served(io).await;
            Instant::now()
        };
        let (last_read, ended) =
            timeout(Duration::from_secs(3600), async { tokio::join!(reading, ended) })
                .await
                .expect("the connection ends");
        assert_eq!(ended - last_read, PACE.write);
        assert!(ended - begun > PACE.write * 4);
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_of_http2_that_answers_no_ping_loses_its_connection() {
        let (mut host, io) = duplex(1 << 20);
        host.write_all(OPENING).await.expect("an opening");
        let begun = Instant::now();
        timeout(Duration::from_secs(3600), served(io)).await.expect("the connection ends");
        assert_eq!(begun.elapsed(), KEEPALIVE * 2);
    }
}
