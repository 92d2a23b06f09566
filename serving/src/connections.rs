//! Connections, bounded in number: one beyond the limit is closed at once, so that its client hears of it
//! and tries another replica, instead of waiting in the kernel's queue.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Sleep, sleep};
use tokio_stream::Stream;
use tonic::transport::server::{Connected, TcpConnectInfo};
use tracing::{debug, warn};

/// After an error of the listener itself.
const PAUSE: Duration = Duration::from_millis(200);

/// A connection that gives its place back when it is closed.
pub struct Connection {
    stream: TcpStream,
    _place: OwnedSemaphorePermit,
}

/// The listener's connections, at most some number at a time.
pub struct Connections<F> {
    listener: TcpListener,
    places: Arc<Semaphore>,
    refused: F,
    pause: Option<Pin<Box<Sleep>>>,
}

impl<F: Fn()> Connections<F> {
    /// At most `max` connections of `listener`; `refused` is told of each one beyond.
    pub fn new(listener: TcpListener, max: usize, refused: F) -> Self {
        Self { listener, places: Arc::new(Semaphore::new(max)), refused, pause: None }
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
        Some(Connection { stream, _place: place })
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

/// Whether the peer went away before it was accepted.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

impl Connected for Connection {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> Self::ConnectInfo {
        self.stream.connect_info()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
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
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }
}
