//! A connection's bytes: as they come, or through TLS. The handshake is made by whoever first reads or writes, which is
//! the connection's own task, so that none waits for another's.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio_rustls::server::TlsStream;
use tokio_rustls::{Accept, TlsAcceptor};
use tokio_util::sync::PollSemaphore;

use crate::certificate::PeerCertificate;
use crate::tls::Tls;

/// Filled when the handshake is over, which is before any request.
pub(super) type Shown = Arc<OnceLock<PeerCertificate>>;

/// The bytes of one connection.
pub(super) enum Stream {
    Plain(TcpStream),
    Waiting(Box<Waiting>),
    Shaking(Box<Shaking>),
    Tls(Box<TlsStream<TcpStream>>),
    /// The handshake failed.
    Broken,
}

/// For its turn to make a handshake, which costs a millisecond of a core.
pub(super) struct Waiting {
    stream: TcpStream,
    turns: PollSemaphore,
    tls: Arc<Tls>,
    shown: Shown,
}

/// In the midst of a handshake.
pub(super) struct Shaking {
    accept: Accept<TcpStream>,
    shown: Shown,
    _turn: OwnedSemaphorePermit,
}

impl Stream {
    pub(super) fn of(stream: TcpStream, tls: Option<(&Arc<Tls>, PollSemaphore)>) -> (Self, Shown) {
        let shown = Shown::default();
        let stream = match tls {
            None => Self::Plain(stream),
            Some((tls, turns)) => {
                let (tls, shown) = (Arc::clone(tls), Arc::clone(&shown));
                Self::Waiting(Box::new(Waiting { stream, turns, tls, shown }))
            }
        };
        (stream, shown)
    }

    /// Ready once bytes can be read and written.
    fn poll_open(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            match self {
                Self::Plain(_) | Self::Tls(_) => return Poll::Ready(Ok(())),
                Self::Broken => return Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
                Self::Waiting(waiting) => {
                    let turn = ready!(waiting.turns.poll_acquire(cx));
                    let Self::Waiting(waiting) = std::mem::replace(self, Self::Broken) else {
                        unreachable!("it was waiting a moment ago")
                    };
                    let turn = turn.ok_or(io::ErrorKind::NotConnected)?;
                    *self = Self::Shaking(Box::new(waiting.shake(turn)));
                }
                Self::Shaking(shaking) => {
                    let opened = ready!(Pin::new(&mut shaking.accept).poll(cx));
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

impl Waiting {
    fn shake(self, turn: OwnedSemaphorePermit) -> Shaking {
        let acceptor = TlsAcceptor::from(self.tls.config());
        Shaking { accept: acceptor.accept(self.stream), shown: self.shown, _turn: turn }
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
            Self::Waiting(_) | Self::Shaking(_) | Self::Broken => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Waiting(_) | Self::Shaking(_) | Self::Broken => Poll::Ready(Ok(())),
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
