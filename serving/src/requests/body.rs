//! Request body that must keep coming and end in time.

use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep_until};
use tower::BoxError;

use super::BodyPace;
use crate::refusal::BodyTooSlow;

/// Outcome of polling a body.
type Polled = Poll<Option<Result<Frame<Bytes>, BoxError>>>;

/// Longest time that the body of one request may take. Requests carry it in their extensions, so that it can be raised
/// once the caller is known.
#[derive(Debug, Clone)]
pub struct BodyTime {
    millis: Arc<AtomicU64>,
}

impl BodyTime {
    /// Allows this time, from the body's beginning.
    #[must_use]
    pub fn new(within: Duration) -> Self {
        Self { millis: Arc::new(AtomicU64::new(whole_millis(within))) }
    }

    /// Allows at least this time, from the body's beginning.
    pub fn raise(&self, within: Duration) {
        self.millis.fetch_max(whole_millis(within), Ordering::Relaxed);
    }

    /// Returns the time allowed now.
    #[must_use]
    pub fn now(&self) -> Duration {
        Duration::from_millis(self.millis.load(Ordering::Relaxed))
    }
}

fn whole_millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Body that is held to a pace.
pub(super) struct Timed<B> {
    body: B,
    pace: BodyPace,
    within: BodyTime,
    begun: Instant,
    bytes: usize,
    /// Result of reading ahead, which the next poll returns; `Pending` for none.
    ahead: Polled,
    /// Timer, created at the first wait: most bodies are there at once.
    late: Option<Pin<Box<Sleep>>>,
}

impl<B> Timed<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    /// Holds `body` to `pace`, and to `within` instead of the time of the pace.
    pub(super) fn new(body: B, pace: BodyPace, within: BodyTime) -> Self {
        let begun = Instant::now();
        Self { body, pace, within, begun, bytes: 0, ahead: Poll::Pending, late: None }
    }

    /// Returns the first bytes of the body if they have come already; empty if not. Does not wait for them.
    pub(super) fn read_ahead(&mut self) -> &[u8] {
        if self.ahead.is_pending() {
            // Whoever reads the body later polls it again, with a waker of its own.
            let mut nobody = Context::from_waker(Waker::noop());
            self.ahead = self.poll_inner(&mut nobody);
        }
        self.bytes_ahead()
    }

    fn bytes_ahead(&self) -> &[u8] {
        match &self.ahead {
            Poll::Ready(Some(Ok(frame))) => frame.data_ref().map_or(&[], Bytes::as_ref),
            _ => &[],
        }
    }

    fn poll_inner(&mut self, cx: &mut Context<'_>) -> Polled {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        polled.map(|frame| frame.map(|frame| frame.map_err(Into::into)))
    }

    /// Returns the time until which more bytes must come.
    fn until(&self) -> Instant {
        let pace = BodyPace { within: self.within.now(), ..self.pace };
        self.begun + pace.allowed(self.bytes)
    }

    /// Returns true if more bytes should have come by now.
    fn is_late(&mut self, cx: &mut Context<'_>) -> bool {
        let until = self.until();
        let late = self.late.get_or_insert_with(|| Box::pin(sleep_until(until)));
        if late.deadline() != until {
            late.as_mut().reset(until);
        }
        late.as_mut().poll(cx).is_ready()
    }
}

impl<B> Body for Timed<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Polled {
        // Checked first, so that a peer who keeps sending a little does not escape. A body without any wait is in time.
        if self.late.is_some() && self.is_late(cx) {
            return Poll::Ready(Some(Err(BodyTooSlow.into())));
        }
        let polled = match mem::replace(&mut self.ahead, Poll::Pending) {
            Poll::Pending => self.poll_inner(cx),
            ahead => ahead,
        };
        match &polled {
            Poll::Ready(Some(Ok(frame))) => {
                let length = frame.data_ref().map_or(0, Bytes::len);
                self.bytes = self.bytes.saturating_add(length);
            }
            Poll::Pending if self.is_late(cx) => {
                return Poll::Ready(Some(Err(BodyTooSlow.into())));
            }
            _ => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.ahead.is_pending() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let ahead = self.bytes_ahead().len() as u64;
        let rest = self.body.size_hint();
        let mut whole = SizeHint::new();
        whole.set_lower(rest.lower().saturating_add(ahead));
        if let Some(upper) = rest.upper() {
            whole.set_upper(upper.saturating_add(ahead));
        }
        whole
    }
}
