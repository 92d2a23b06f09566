//! Bodies of answers that hold something until they end, or until their host stops reading.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::Response;
use http_body::{Frame, SizeHint};
use parking_lot::Mutex;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};

/// Most bytes of a piece, so that a host that reads a large one slowly is seen to read.
const PIECE_MAX: usize = 64 << 10;

/// Body that keeps `T` until it ends or is dropped.
struct Holding<T> {
    body: Body,
    _held: T,
}

impl<T: Unpin> http_body::Body for Holding<T> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        http_body::Body::poll_frame(Pin::new(&mut self.body), cx)
    }

    fn is_end_stream(&self) -> bool {
        http_body::Body::is_end_stream(&self.body)
    }

    fn size_hint(&self) -> SizeHint {
        http_body::Body::size_hint(&self.body)
    }
}

/// Returns an answer whose body keeps something until it has ended.
pub(crate) fn holding<T: Unpin + Send + 'static>(response: Response, held: T) -> Response {
    response.map(|body| Body::new(Holding { body, _held: held }))
}

/// Returns an answer whose body keeps something until it has ended, or until its next piece was not asked for within `limit`.
pub(crate) fn holding_in_time<T: Unpin + Send + 'static>(
    response: Response,
    held: T,
    limit: Duration,
) -> Response {
    response.map(|body| {
        let open = Some(Holding { body, _held: held });
        let rest = Bytes::new();
        let state = Arc::new(Mutex::new(State { open, rest, is_late: false, unread_since: None }));
        let watch = tokio::spawn(watch(Arc::downgrade(&state), limit)).abort_handle();
        Body::new(ReadInTime { state, watch })
    })
}

/// Body whose host must go on reading.
struct ReadInTime<T> {
    state: Arc<Mutex<State<T>>>,
    watch: AbortHandle,
}

struct State<T> {
    /// Body, until it has ended or is given up.
    open: Option<Holding<T>>,
    /// Rest of its last piece.
    rest: Bytes,
    /// True once the body was given up.
    is_late: bool,
    /// Time of the last piece, until the next one is asked for.
    unread_since: Option<Instant>,
}

/// Gives a body up once its host has stopped reading.
async fn watch<T>(state: Weak<Mutex<State<T>>>, limit: Duration) {
    while let Some(until) = state.upgrade().and_then(|state| state.lock().give_up_after(limit)) {
        sleep_until(until).await;
    }
}

impl<T> State<T> {
    /// Gives the body up if nothing was read for so long. Returns the time at which to look again, if it is still open.
    fn give_up_after(&mut self, limit: Duration) -> Option<Instant> {
        let now = Instant::now();
        let until = self.unread_since.unwrap_or(now) + limit;
        if until <= now {
            tracing::debug!("an answer is given up: its host stopped reading (llm.write_timeout)");
            self.is_late = true;
            self.open = None;
            self.rest = Bytes::new();
        }
        self.open.is_some().then_some(until)
    }
}

impl<T: Unpin> State<T> {
    /// Returns the next piece, which is no larger than those that hosts are watched by.
    fn poll_piece(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.rest.is_empty() {
            let Some(open) = &mut self.open else { return Poll::Ready(None) };
            let frame = match ready!(http_body::Body::poll_frame(Pin::new(open), cx)) {
                Some(Ok(frame)) => frame,
                ended => {
                    self.open = None;
                    return Poll::Ready(ended);
                }
            };
            match frame.into_data() {
                Ok(data) if data.len() > PIECE_MAX => self.rest = data,
                Ok(data) => return Poll::Ready(Some(Ok(Frame::data(data)))),
                Err(frame) => return Poll::Ready(Some(Ok(frame))),
            }
        }
        let piece = self.rest.split_to(self.rest.len().min(PIECE_MAX));
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }
}

impl<T: Unpin> http_body::Body for ReadInTime<T> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let mut state = self.state.lock();
        state.unread_since = None;
        if state.is_late {
            let late = io::Error::new(io::ErrorKind::TimedOut, "the host stopped reading");
            return Poll::Ready(Some(Err(axum::Error::new(late))));
        }
        let polled = state.poll_piece(cx);
        // While a piece is waited for, the provider is, and not the host.
        if matches!(polled, Poll::Ready(Some(Ok(_)))) {
            state.unread_since = Some(Instant::now());
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        let state = self.state.lock();
        let is_at_end = || state.open.as_ref().is_none_or(http_body::Body::is_end_stream);
        !state.is_late && state.rest.is_empty() && is_at_end()
    }

    fn size_hint(&self) -> SizeHint {
        let state = self.state.lock();
        let hint = state.open.as_ref().map(http_body::Body::size_hint).unwrap_or_default();
        let rest = state.rest.len() as u64;
        let mut with_rest = SizeHint::new();
        with_rest.set_lower(hint.lower() + rest);
        if let Some(upper) = hint.upper() {
            with_rest.set_upper(upper + rest);
        }
        with_rest
    }
}

impl<T> Drop for ReadInTime<T> {
    fn drop(&mut self) {
        self.watch.abort();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{StreamExt as _, stream};
    use tokio::time::sleep;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(60);

    /// Returns an answer of pieces that come after these pauses.
    fn answer(pauses: &'static [Duration]) -> Response {
        let pieces = stream::iter(pauses).then(|pause| async move {
            sleep(*pause).await;
            Ok::<_, io::Error>(Bytes::from_static(b"piece"))
        });
        Response::new(Body::from_stream(pieces))
    }

    #[tokio::test(start_paused = true)]
    async fn a_host_that_stops_reading_holds_nothing_for_long() {
        let held = Arc::new(());
        let place = Arc::downgrade(&held);
        let response = holding_in_time(answer(&[Duration::ZERO; 9]), held, LIMIT);
        let mut pieces = response.into_body().into_data_stream();
        for _ in 0..3 {
            pieces.next().await.expect("a piece").expect("no error");
            sleep(LIMIT - Duration::from_secs(1)).await;
            assert!(place.upgrade().is_some(), "it reads slowly");
        }
        pieces.next().await.expect("a piece").expect("no error");
        sleep(LIMIT * 2).await;
        assert!(place.upgrade().is_none(), "its place is free");
        pieces.next().await.expect("an error").expect_err("the answer is cut, and does not end");
    }

    #[tokio::test(start_paused = true)]
    async fn a_host_that_reads_a_large_piece_slowly_is_seen_to_read() {
        let whole = Bytes::from(vec![b'x'; 3 * PIECE_MAX + 1]);
        let response = holding_in_time(Response::new(Body::from(whole.clone())), (), LIMIT);
        let body = response.into_body();
        assert_eq!(http_body::Body::size_hint(&body).exact(), Some(whole.len() as u64));
        let mut pieces = body.into_data_stream();
        let mut read = Vec::new();
        while let Some(piece) = pieces.next().await {
            let piece = piece.expect("it is not given up");
            assert!(piece.len() <= PIECE_MAX, "{}", piece.len());
            read.extend(piece);
            sleep(LIMIT - Duration::from_secs(1)).await;
        }
        assert!(read == whole);
    }

    #[tokio::test(start_paused = true)]
    async fn a_provider_that_is_silent_is_not_taken_for_a_host_that_stops_reading() {
        const PAUSES: &[Duration] = &[Duration::ZERO, Duration::from_secs(600), Duration::ZERO];
        let held = Arc::new(());
        let place = Arc::downgrade(&held);
        let response = holding_in_time(answer(PAUSES), held, LIMIT);
        let mut pieces = response.into_body().into_data_stream();
        while let Some(piece) = pieces.next().await {
            piece.expect("no error");
            assert!(place.upgrade().is_some());
        }
        assert!(place.upgrade().is_none(), "the answer has ended");
    }
}
