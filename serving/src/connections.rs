//! Connections, bounded in number: one beyond the limit is closed at once, so that its client hears of it
//! and tries another replica, instead of waiting in the kernel's queue. One that never begins to speak
//! is closed too, and others can be closed from outside. One that sends too much of what is cheap is read slowly.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, sleep};
use tokio_stream::Stream;
use tokio_util::sync::{CancellationToken, PollSemaphore, WaitForCancellationFutureOwned};
use tonic::transport::server::Connected;
use tracing::{debug, warn};

use self::frames::Frames;
use self::stream::{Shown, Stream as Bytes};
use crate::certificate::PeerCertificate;
use crate::tls::Tls;

mod frames;
mod stream;

/// After an error of the listener itself.
const PAUSE: Duration = Duration::from_millis(200);

/// How long a peer may take to begin: several round trips on a bad line. The transport pings only peers that
/// have begun HTTP/2, so that without this silent ones would keep their places for ever; of HTTP/1.1, where
/// it is taken, it waits half a minute for the head of each request.
const OPENING_MAX: Duration = Duration::from_secs(10);

/// After which a peer that says nothing is asked whether it is there.
#[cfg(unix)]
const SILENCE: Duration = Duration::from_secs(30);

/// What a peer sends first: the preface of HTTP/2 (RFC 9113, 3.4), and the head of a SETTINGS frame. No
/// request of HTTP/1.1 that asks for anything is shorter.
const OPENING_BYTES: usize = 24 + 9;

/// TLS handshakes at a time: each takes a millisecond of a core, and who waits for a turn does so within
/// [`OPENING_MAX`].
const HANDSHAKES_MAX: usize = 64;

/// A connection that gives its place back when it is closed.
pub struct Connection {
    stream: Bytes,
    shown: Shown,
    /// Until the peer has begun to speak.
    opening: Option<Opening>,
    frames: Frames,
    /// While nothing is read.
    pause: Option<Pin<Box<Sleep>>>,
    closer: CancellationToken,
    closed: Pin<Box<WaitForCancellationFutureOwned>>,
    _place: OwnedSemaphorePermit,
}

struct Opening {
    until: Pin<Box<Sleep>>,
    missing: usize,
}

/// The other end of a connection. Requests carry it in their extensions.
#[derive(Debug, Clone)]
pub struct Peer {
    closer: CancellationToken,
    shown: Shown,
}

impl Peer {
    /// Closes the connection at once, with all that is under way on it.
    pub(crate) fn close(&self) {
        self.closer.cancel();
    }

    /// The certificate that the peer has shown, and which was verified.
    #[must_use]
    pub fn certificate(&self) -> Option<&PeerCertificate> {
        self.shown.get()
    }
}

/// The listener's connections, at most some number at a time.
pub struct Connections<F> {
    listener: TcpListener,
    places: Arc<Semaphore>,
    refused: F,
    opening_max: Option<Duration>,
    tls: Option<(Arc<Tls>, PollSemaphore)>,
    pause: Option<Pin<Box<Sleep>>>,
}

impl<F: Fn()> Connections<F> {
    /// At most `max` connections of `listener`, each of which has to begin in time; `refused` is
    /// told of each one beyond.
    pub fn new(listener: TcpListener, max: usize, refused: F) -> Self {
        Self { opening_max: Some(OPENING_MAX), ..Self::of_any_kind(listener, max, refused) }
    }

    /// Connections whose protocol is somebody else's concern.
    pub(crate) fn of_any_kind(listener: TcpListener, max: usize, refused: F) -> Self {
        let places = Arc::new(Semaphore::new(max));
        Self { listener, places, refused, opening_max: None, tls: None, pause: None }
    }

    /// The same over TLS, if that is wanted. A handshake has the time in which a connection has to begin.
    #[must_use]
    pub fn over_tls(self, tls: Option<Arc<Tls>>) -> Self {
        let turns = PollSemaphore::new(Arc::new(Semaphore::new(HANDSHAKES_MAX)));
        Self { tls: tls.map(|tls| (tls, turns)), ..self }
    }

    /// Ready when the pause after an error is over.
    fn rested(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(pause) = &mut self.pause {
            ready!(pause.as_mut().poll(cx));
            self.pause = None;
        }
        Poll::Ready(())
    }

    fn admit(&self, stream: TcpStream) -> Option<Connection> {
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            (self.refused)();
            return None;
        };
        // Small answers must not wait for more bytes (Nagle).
        if let Err(error) = stream.set_nodelay(true) {
            debug!(%error, "a connection without TCP_NODELAY");
        }
        #[cfg(unix)]
        if let Err(error) = notice_the_gone(&stream) {
            debug!(%error, "a connection without TCP keepalive");
        }
        let opening = |max| Opening { until: Box::pin(sleep(max)), missing: OPENING_BYTES };
        let closer = CancellationToken::new();
        let closed = Box::pin(closer.clone().cancelled_owned());
        let opening = self.opening_max.map(opening);
        let tls = self.tls.as_ref().map(|(tls, turns)| (tls, turns.clone()));
        let (stream, shown) = Bytes::of(stream, tls);
        let (frames, pause) = (Frames::new(Instant::now()), None);
        Some(Connection { stream, shown, opening, frames, pause, closer, closed, _place: place })
    }
}

impl Connection {
    /// Pending for as long as the connection may go on. Asked before each step: a peer that keeps us busy
    /// must not escape it.
    fn ended(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        let closed = self.closed.as_mut().poll(cx).is_ready();
        let late =
            self.opening.as_mut().is_some_and(|opening| opening.until.as_mut().poll(cx).is_ready());
        let why = match (closed, late) {
            (true, _) => "answers were not taken in time",
            (false, true) => "the peer said too little in time",
            (false, false) => return Poll::Pending,
        };
        debug!("a connection is closed: {why}");
        Poll::Ready(io::Error::new(io::ErrorKind::TimedOut, why))
    }

    fn has_read(&mut self, bytes: &[u8]) {
        if let Some(opening) = &mut self.opening {
            opening.missing = opening.missing.saturating_sub(bytes.len());
            self.opening.take_if(|opening| opening.missing == 0);
        }
        if let Some(pause) = self.frames.came(bytes, Instant::now()) {
            debug!(?pause, "a connection is read slowly: it sends more than calls need");
            self.pause = Some(Box::pin(sleep(pause)));
        }
    }

    /// Ready when bytes may be read.
    fn rested(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(pause) = &mut self.pause {
            ready!(pause.as_mut().poll(cx));
            self.pause = None;
        }
        Poll::Ready(())
    }
}

impl<F: Fn() + Unpin> Stream for Connections<F> {
    type Item = io::Result<Connection>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            ready!(self.rested(cx));
            match ready!(self.listener.poll_accept(cx)) {
                Err(error) if is_of_one_connection(&error) => {}
                // Such as no file descriptors: the next try would fail at once again.
                Err(error) => {
                    warn!(%error, "no connection can be accepted for now");
                    self.pause = Some(Box::pin(sleep(PAUSE)));
                }
                Ok((stream, _)) => {
                    if let Some(connection) = self.admit(stream) {
                        return Poll::Ready(Some(Ok(connection)));
                    }
                }
            }
        }
    }
}

/// Has the kernel ask a silent peer for a sign of life: HTTP/1.1 has no pings.
#[cfg(unix)]
fn notice_the_gone(stream: &TcpStream) -> rustix::io::Result<()> {
    use rustix::net::sockopt::{set_socket_keepalive, set_tcp_keepidle, set_tcp_keepintvl};
    set_tcp_keepidle(stream, SILENCE)?;
    set_tcp_keepintvl(stream, SILENCE / 3)?;
    set_socket_keepalive(stream, true)
}

/// Whether the peer went away before it was accepted.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

impl Connected for Connection {
    type ConnectInfo = Peer;

    fn connect_info(&self) -> Self::ConnectInfo {
        Peer { closer: self.closer.clone(), shown: Arc::clone(&self.shown) }
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
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
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
