//! Byte stream of a connection, plain or through TLS. The handshake runs in the connection's own task, at its first
//! read or write, so that no connection waits for another's.

use std::io;
use std::num::NonZero;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::thread::available_parallelism;
use std::time::Duration;

use rustls::server::Acceptor;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::{Sleep, sleep};
use tokio_rustls::server::TlsStream;
use tokio_rustls::{Accept, LazyConfigAcceptor, StartHandshake};
use tokio_util::sync::PollSemaphore;

use crate::certificate::PeerCertificate;
use crate::tls::Tls;

/// Longest time for a handshake from its first byte on: several round trips on a bad line.
const HANDSHAKE_MAX: Duration = Duration::from_secs(3);

/// Certificate of the peer; set when the handshake is over, which is before any request.
pub(super) type Shown = Arc<OnceLock<PeerCertificate>>;

/// Byte stream of one connection.
pub(super) enum Stream {
    Plain(TcpStream),
    Silent(Box<Silent>),
    Shaking(Box<Shaking>),
    Tls(Box<TlsStream<TcpStream>>),
    /// The handshake failed.
    Broken,
}

/// Configuration of handshakes, and turns for their costly step, which takes a core a millisecond. A turn is held only
/// while a core works and never while a peer is awaited, so silent peers hold none.
#[derive(Clone)]
pub(super) struct Handshakes {
    tls: Arc<Tls>,
    turns: PollSemaphore,
    /// Longest time from a handshake's first byte to its end.
    pub(super) limit: Duration,
}

/// Connection before the peer's first byte.
pub(super) struct Silent {
    stream: TcpStream,
    handshakes: Handshakes,
    shown: Shown,
}

/// Connection during its handshake.
pub(super) struct Shaking {
    step: Step,
    until: Pin<Box<Sleep>>,
    handshakes: Handshakes,
    shown: Shown,
}

enum Step {
    /// The peer's hello is incomplete.
    Hello(Box<LazyConfigAcceptor<TcpStream>>),
    /// The handshake waits for its turn.
    Turn(Box<StartHandshake<TcpStream>>),
    /// The cheap rest of the handshake is in progress.
    Rest(Box<Accept<TcpStream>>),
    Over,
}

impl Handshakes {
    /// Lets at most half of the cores make handshakes at once; the others are for calls.
    pub(super) fn new(tls: Arc<Tls>) -> Self {
        let turns = available_parallelism().map_or(1, NonZero::get).div_ceil(2);
        let turns = PollSemaphore::new(Arc::new(Semaphore::new(turns)));
        Self { tls, turns, limit: HANDSHAKE_MAX }
    }
}

impl Stream {
    pub(super) fn of(stream: TcpStream, handshakes: Option<Handshakes>, shown: Shown) -> Self {
        match handshakes {
            None => Self::Plain(stream),
            Some(handshakes) => Self::Silent(Box::new(Silent { stream, handshakes, shown })),
        }
    }

    /// Returns `Ready` once bytes can be read and written.
    fn poll_open(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            match self {
                Self::Plain(_) | Self::Tls(_) => return Poll::Ready(Ok(())),
                Self::Broken => return Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
                Self::Silent(silent) => {
                    let mut byte = [0];
                    ready!(silent.stream.poll_peek(cx, &mut ReadBuf::new(&mut byte)))?;
                    let Self::Silent(silent) = std::mem::replace(self, Self::Broken) else {
                        unreachable!("it was silent a moment ago")
                    };
                    *self = Self::Shaking(Box::new(silent.begin()));
                }
                Self::Shaking(shaking) => {
                    let opened = ready!(shaking.poll(cx));
                    let shown = Arc::clone(&shaking.shown);
                    *self = Self::Broken;
                    let opened = opened?;
                    let chain = opened.get_ref().1.peer_certificates();
                    if let Some(der) = chain.and_then(<[_]>::first) {
                        let read = PeerCertificate::read(der);
                        let read = read.ok_or(io::ErrorKind::InvalidData)?;
                        shown.set(read).ok();
                    }
                    *self = Self::Tls(Box::new(opened));
                }
            }
        }
    }
}

impl Silent {
    fn begin(self) -> Shaking {
        let hello = LazyConfigAcceptor::new(Acceptor::default(), self.stream);
        Shaking {
            step: Step::Hello(Box::new(hello)),
            until: Box::pin(sleep(self.handshakes.limit)),
            handshakes: self.handshakes,
            shown: self.shown,
        }
    }
}

impl Shaking {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<TlsStream<TcpStream>>> {
        if self.until.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        loop {
            match &mut self.step {
                Step::Hello(hello) => {
                    let start = ready!(Pin::new(&mut **hello).poll(cx))?;
                    self.step = Step::Turn(Box::new(start));
                }
                Step::Turn(_) => {
                    let turn = ready!(self.handshakes.turns.poll_acquire(cx));
                    let Step::Turn(start) = std::mem::replace(&mut self.step, Step::Over) else {
                        unreachable!("it waited for its turn a moment ago")
                    };
                    let mut rest = start.into_stream(self.handshakes.tls.config());
                    // Key agreement and signing happen here. The turn ends with this step, whatever the peer does.
                    let polled = Pin::new(&mut rest).poll(cx);
                    drop(turn);
                    self.step = Step::Rest(Box::new(rest));
                    return polled;
                }
                Step::Rest(rest) => return Pin::new(&mut **rest).poll(cx),
                Step::Over => return Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
            }
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.poll_open(cx))?;
        match &mut *self {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, buffer),
            _ => unreachable!("it is open"),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_open(cx))?;
        match &mut *self {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
            _ => unreachable!("it is open"),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
            // Nothing was written yet.
            Self::Silent(_) | Self::Shaking(_) | Self::Broken => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Silent(_) | Self::Shaking(_) | Self::Broken => Poll::Ready(Ok(())),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(stream) => stream.is_write_vectored(),
            // rustls gathers small pieces into records.
            _ => true,
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_open(cx))?;
        match &mut *self {
            Self::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
            Self::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
            _ => unreachable!("it is open"),
        }
    }
}
