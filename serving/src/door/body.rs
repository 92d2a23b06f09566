//! Request body that must keep coming and end in time.

use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep_until};
use tonic::body::Body as TonicBody;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};
use toolgate_proto::ERROR_DOMAIN;
use toolgate_proto::v1::ErrorReason;

use super::BodyPace;

/// Outcome of polling a body.
type Polled = Poll<Option<Result<Frame<Bytes>, Status>>>;

/// Body that is held to a pace.
pub(super) struct Timed {
    body: TonicBody,
    pace: BodyPace,
    begun: Instant,
    bytes: usize,
    /// Result of reading ahead, which the next poll returns; `Pending` for none.
    ahead: Polled,
    /// Timer, created at the first wait: most bodies are there at once.
    late: Option<Pin<Box<Sleep>>>,
}

impl Timed {
    pub(super) fn new(body: TonicBody, pace: BodyPace) -> Self {
        Self { body, pace, begun: Instant::now(), bytes: 0, ahead: Poll::Pending, late: None }
    }

    /// Returns the first bytes of the body if they have come already; empty if not. Does not wait for them.
    pub(super) fn read_ahead(&mut self) -> &[u8] {
        if self.ahead.is_pending() {
            // Whoever reads the body later polls it again, with a waker of its own.
            let mut nobody = Context::from_waker(Waker::noop());
            self.ahead = Pin::new(&mut self.body).poll_frame(&mut nobody);
        }
        self.bytes_ahead()
    }

    fn bytes_ahead(&self) -> &[u8] {
        match &self.ahead {
            Poll::Ready(Some(Ok(frame))) => frame.data_ref().map_or(&[], Bytes::as_ref),
            _ => &[],
        }
    }

    /// Returns the time until which more bytes must come.
    fn until(&self) -> Instant {
        self.begun + self.pace.allowed(self.bytes)
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

impl Body for Timed {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Polled {
        // Checked first, so that a peer who keeps sending a little does not escape. A body without any wait is in time.
        if self.late.is_some() && self.is_late(cx) {
            return Poll::Ready(Some(Err(too_slow())));
        }
        let polled = match mem::replace(&mut self.ahead, Poll::Pending) {
            Poll::Pending => Pin::new(&mut self.body).poll_frame(cx),
            ahead => ahead,
        };
        match &polled {
            Poll::Ready(Some(Ok(frame))) => {
                let length = frame.data_ref().map_or(0, Bytes::len);
                self.bytes = self.bytes.saturating_add(length);
            }
            Poll::Pending if self.is_late(cx) => return Poll::Ready(Some(Err(too_slow()))),
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

fn too_slow() -> Status {
    let mut details = ErrorDetails::new();
    details.set_error_info(ErrorReason::DeadlineExceeded.name(), ERROR_DOMAIN, []);
    let why = "the request's body took too long to come";
    Status::with_error_details(Code::DeadlineExceeded, why, details)
}
