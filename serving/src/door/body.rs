//! Request body that must keep coming and end in time.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep_until};
use tonic::body::Body as TonicBody;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};
use toolgate_proto::ERROR_DOMAIN;
use toolgate_proto::v1::ErrorReason;

use super::BodyPace;

/// Body that is held to a pace.
pub(super) struct Timed {
    body: TonicBody,
    pace: BodyPace,
    begun: Instant,
    bytes: usize,
    /// Timer, created at the first wait: most bodies are there at once.
    late: Option<Pin<Box<Sleep>>>,
}

impl Timed {
    pub(super) fn new(body: TonicBody, pace: BodyPace) -> Self {
        Self { body, pace, begun: Instant::now(), bytes: 0, late: None }
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

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        // Checked first, so that a peer who keeps sending a little does not escape. A body without any wait is in time.
        if self.late.is_some() && self.is_late(cx) {
            return Poll::Ready(Some(Err(too_slow())));
        }
        let polled = Pin::new(&mut self.body).poll_frame(cx);
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
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

fn too_slow() -> Status {
    let mut details = ErrorDetails::new();
    details.set_error_info(ErrorReason::DeadlineExceeded.name(), ERROR_DOMAIN, []);
    let why = "the request's body took too long to come";
    Status::with_error_details(Code::DeadlineExceeded, why, details)
}
