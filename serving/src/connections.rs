//! Connections, bounded in number and in behaviour.
//!
//! Beyond the limit, a connection that never made an authenticated call is closed in favour of the new one. If there is
//! none, the new connection is closed at once, so that its client notices and tries another replica instead of waiting
//! in the kernel's queue. A connection that never begins to speak, or makes no request for long, is closed too. Others
//! can be closed from outside. A connection that sends too many cheap frames is read slowly.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, Sleep, sleep, sleep_until};
use tokio_stream::Stream;
use tokio_util::sync::WaitForCancellationFutureOwned;
use tonic::transport::server::Connected;
use tracing::{debug, warn};

use self::frames::Frames;
pub use self::listening::BoundedListener;
pub(crate) use self::peer::UnderWay;
pub use self::peer::{CredentialScope, Peer};
use self::readable::Readable;
pub use self::registry::{ConnectionLimits, ConnectionRefusal, Network};
use self::registry::{ConnectionSlot, Registry};
use self::stream::{Handshakes, Stream as Bytes};
use crate::tls::Tls;

mod frames;
mod listening;
mod peer;
mod readable;
mod registry;
mod stream;

/// Pause after an error of the listener itself.
const PAUSE: Duration = Duration::from_millis(200);

/// Time within which a peer must begin: several round trips on a bad line. The transport pings only peers that have
/// begun HTTP/2, so silent ones would otherwise keep their places for ever. Over HTTP/1.1, where it is accepted, the
/// transport waits half a minute for the head of each request.
const OPENING_MAX: Duration = Duration::from_secs(10);

/// Time without traffic after which a peer is probed.
#[cfg(unix)]
const SILENCE: Duration = Duration::from_secs(30);

/// Bytes that a peer sends first: the preface of HTTP/2 (RFC 9113, 3.4) and the head of a SETTINGS frame. No useful
/// request of HTTP/1.1 is shorter.
const OPENING_BYTES: usize = 24 + 9;

/// Accepted connection, which frees its place when it is closed.
pub struct Connection {
    stream: Bytes,
    address: SocketAddr,
    peer: Peer,
    limits: ConnectionLimits,
    /// Opening state; `None` once the peer has begun to speak.
    opening: Option<Opening>,
    /// Time of the next check for idleness.
    idle: Option<Pin<Box<Sleep>>>,
    frames: Frames,
    readable: Readable,
    /// Pause during which nothing is read.
    pause: Option<Pin<Box<Sleep>>>,
    closed: Pin<Box<WaitForCancellationFutureOwned>>,
    _place: ConnectionSlot,
}

struct Opening {
    until: Pin<Box<Sleep>>,
    missing: usize,
}

/// Stream of accepted connections, bounded in number.
pub struct Connections<F> {
    listener: TcpListener,
    registry: Arc<Registry>,
    refused: F,
    opening_max: Option<Duration>,
    handshakes: Option<Handshakes>,
    pause: Option<Pin<Box<Sleep>>>,
}

impl<F: Fn(ConnectionRefusal)> Connections<F> {
    /// Accepts connections of `listener` within `limits`. Each must begin to speak within a few seconds. Calls
    /// `refused` for each connection that is not let in, or is closed in favour of another.
    pub fn new(listener: TcpListener, limits: ConnectionLimits, refused: F) -> Self {
        Self { opening_max: Some(OPENING_MAX), ..Self::of_any_kind(listener, limits, refused) }
    }

    /// Accepts connections without requiring that the peer speaks first.
    pub(crate) fn of_any_kind(listener: TcpListener, limits: ConnectionLimits, refused: F) -> Self {
        let registry = Registry::new(limits);
        Self { listener, registry, refused, opening_max: None, handshakes: None, pause: None }
    }

    /// Adds TLS, if configured. A handshake has a few seconds from its first byte on.
    #[must_use]
    pub fn over_tls(self, tls: Option<Arc<Tls>>) -> Self {
        Self { handshakes: tls.map(Handshakes::new), ..self }
    }

    /// Limits TLS handshakes to `limit`.
    #[cfg(test)]
    pub(crate) fn with_handshake_max(mut self, limit: Duration) -> Self {
        if let Some(handshakes) = &mut self.handshakes {
            handshakes.limit = limit;
        }
        self
    }

    /// Returns `Ready` when the pause after an error is over.
    fn rested(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(pause) = &mut self.pause {
            ready!(pause.as_mut().poll(cx));
            self.pause = None;
        }
        Poll::Ready(())
    }

    fn admit(&self, stream: TcpStream, address: SocketAddr) -> Option<Connection> {
        let admitted = match self.registry.admit(address.ip()) {
            Ok(admitted) => admitted,
            Err(refusal) => {
                (self.refused)(refusal);
                return None;
            }
        };
        if admitted.replaced {
            (self.refused)(ConnectionRefusal::Replaced);
        }
        // Nagle's algorithm would delay small answers.
        if let Err(error) = stream.set_nodelay(true) {
            debug!(%error, "a connection without TCP_NODELAY");
        }
        #[cfg(unix)]
        if let Err(error) = notice_the_gone(&stream) {
            debug!(%error, "a connection without TCP keepalive");
        }
        let opening = |max| Opening { until: Box::pin(sleep(max)), missing: OPENING_BYTES };
        let peer = admitted.peer;
        let limits = self.registry.limits;
        let idle = peer.idle_until(&limits).map(|until| Box::pin(sleep_until(until)));
        Some(Connection {
            stream: Bytes::of(stream, self.handshakes.clone(), peer.shown()),
            address,
            closed: Box::pin(peer.closed()),
            peer,
            limits,
            opening: self.opening_max.map(opening),
            idle,
            frames: Frames::new(Instant::now()),
            readable: Readable::default(),
            pause: None,
            _place: admitted.place,
        })
    }
}

impl Connection {
    /// Returns the remote end, with the certificate that it showed once the handshake is over.
    #[must_use]
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Returns `Ready` with the reason once the connection must end. Checked before each read and write, so that a peer
    /// which keeps the connection busy can't escape it.
    fn ended(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        let late =
            self.opening.as_mut().is_some_and(|opening| opening.until.as_mut().poll(cx).is_ready());
        let why = if self.closed.as_mut().poll(cx).is_ready() {
            "answers were not taken in time, or its place was needed"
        } else if late {
            "the peer said too little in time"
        } else if self.is_idle(cx) {
            "nothing was asked for too long"
        } else {
            return Poll::Pending;
        };
        debug!("a connection is closed: {why}");
        Poll::Ready(io::Error::new(io::ErrorKind::TimedOut, why))
    }

    /// Returns true if no request came for longer than the limits allow.
    fn is_idle(&mut self, cx: &mut Context<'_>) -> bool {
        while let Some(idle) = &mut self.idle {
            if idle.as_mut().poll(cx).is_pending() {
                return false;
            }
            match self.peer.idle_until(&self.limits) {
                None => self.idle = None,
                Some(until) if until <= Instant::now() => return true,
                Some(until) => idle.as_mut().reset(until),
            }
        }
        false
    }

    fn has_read(&mut self, bytes: &[u8]) {
        self.peer.set_readable(self.readable.has_read());
        if let Some(opening) = &mut self.opening {
            opening.missing = opening.missing.saturating_sub(bytes.len());
            self.opening.take_if(|opening| opening.missing == 0);
        }
        if let Some(pause) = self.frames.charge(bytes, Instant::now()) {
            debug!(?pause, "a connection is read slowly: it sends more than calls need");
            self.pause = Some(Box::pin(sleep(pause)));
        }
    }

    /// Returns `Ready` when bytes may be read.
    fn rested(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(pause) = &mut self.pause {
            ready!(pause.as_mut().poll(cx));
            self.pause = None;
        }
        Poll::Ready(())
    }
}

impl<F: Fn(ConnectionRefusal) + Unpin> Stream for Connections<F> {
    type Item = io::Result<Connection>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            ready!(self.rested(cx));
            match ready!(self.listener.poll_accept(cx)) {
                Err(error) if is_of_one_connection(&error) => {}
                // For example, no file descriptors are left: the next attempt would fail at once again.
                Err(error) => {
                    warn!(%error, "no connection can be accepted: the next attempt waits");
                    self.pause = Some(Box::pin(sleep(PAUSE)));
                }
                Ok((stream, address)) => {
                    if let Some(connection) = self.admit(stream, address) {
                        return Poll::Ready(Some(Ok(connection)));
                    }
                }
            }
        }
    }
}

/// Has the kernel probe a silent peer (TCP keepalive), because HTTP/1.1 has no pings.
#[cfg(unix)]
fn notice_the_gone(stream: &TcpStream) -> rustix::io::Result<()> {
    use rustix::net::sockopt::{set_socket_keepalive, set_tcp_keepidle, set_tcp_keepintvl};
    set_tcp_keepidle(stream, SILENCE)?;
    set_tcp_keepintvl(stream, SILENCE / 3)?;
    set_socket_keepalive(stream, true)
}

/// Returns true if the error concerns only a peer that went away before it was accepted.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

impl Connected for Connection {
    type ConnectInfo = Peer;

    fn connect_info(&self) -> Self::ConnectInfo {
        self.peer.clone()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Poll::Ready(error) = self.ended(cx) {
            return Poll::Ready(Err(error));
        }
        ready!(self.rested(cx));
        let before = buffer.filled().len();
        let waker = self.readable.waker(cx);
        let read = Pin::new(&mut self.stream).poll_read(&mut Context::from_waker(&waker), buffer);
        if read.is_pending() {
            self.readable.is_drained();
        }
        if let Some(bytes) = buffer.filled().get(before..).filter(|bytes| !bytes.is_empty()) {
            self.has_read(bytes);
        }
        read
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(error) = self.ended(cx) {
            return Poll::Ready(Err(error));
        }
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Poll::Ready(error) = self.ended(cx) {
            return Poll::Ready(Err(error));
        }
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(error) = self.ended(cx) {
            return Poll::Ready(Err(error));
        }
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }
}

#[cfg(test)]
mod tests;
