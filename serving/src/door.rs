//! Requests under way, from their first header to that of their answer: bounded in number, so that one beyond is refused
//! before anything of it is read; and their bodies in time, so that one who never ends his keeps no place.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::sync::Semaphore;
use tokio::time::{Instant, Sleep, sleep_until};
use tonic::body::Body as TonicBody;
use tonic::codegen::http::header::CONTENT_TYPE;
use tonic::codegen::http::{HeaderMap, Request, Response};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};
use toolgate_proto::ERROR_DOMAIN;
use toolgate_proto::v1::ErrorReason;
use tower::{Layer, Service};

use crate::refusal::refused;

/// Who asks whether we are well must not be turned away because we are busy.
const HEALTH: &str = "/grpc.health.v1.Health/";

/// What a caller is told who finds no place.
const FULL: &str = "too many requests are under way";

/// Bounds the requests under way of all services below it.
#[derive(Clone)]
pub struct BoundRequests {
    places: Arc<Semaphore>,
    body_within: Duration,
    refused: Arc<dyn Fn() + Send + Sync>,
}

impl BoundRequests {
    /// At most `max` requests, whose bodies come whole within `body_within`; `refused` is told of each request beyond.
    pub fn new(
        max: usize,
        body_within: Duration,
        refused: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        let places = Arc::new(Semaphore::new(max.min(Semaphore::MAX_PERMITS)));
        Self { places, body_within, refused: Arc::new(refused) }
    }
}

/// The service under [`BoundRequests`].
#[derive(Clone)]
pub struct Doored<S> {
    inner: S,
    door: BoundRequests,
}

impl<S> Layer<S> for BoundRequests {
    type Service = Doored<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Doored { inner, door: self.clone() }
    }
}

impl<S, B> Service<Request<TonicBody>> for Doored<S>
where
    S: Service<Request<TonicBody>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    B: Default + Send + 'static,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<TonicBody>) -> Self::Future {
        let within = self.door.body_within;
        let timed = |body| TonicBody::new(Timed::new(body, within));
        if request.uri().path().starts_with(HEALTH) {
            return Box::pin(self.inner.call(request.map(timed)));
        }
        let Ok(place) = Arc::clone(&self.door.places).try_acquire_owned() else {
            (self.door.refused)();
            let content = request.headers().get(CONTENT_TYPE).cloned();
            return Box::pin(std::future::ready(Ok(refused(content, &HeaderMap::new(), FULL))));
        };
        let answer = self.inner.call(request.map(timed));
        Box::pin(async move {
            let answer = answer.await;
            drop(place);
            answer
        })
    }
}

/// A body that has to be over in time.
struct Timed {
    body: TonicBody,
    until: Instant,
    /// Once something was waited for: most bodies are there at once.
    late: Option<Pin<Box<Sleep>>>,
}

impl Timed {
    fn new(body: TonicBody, within: Duration) -> Self {
        Self { body, until: Instant::now() + within, late: None }
    }
}

impl Body for Timed {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        // Asked before, so that a peer who keeps sending a little does not escape it.
        if self.late.as_mut().is_some_and(|late| late.as_mut().poll(cx).is_ready()) {
            return Poll::Ready(Some(Err(too_slow())));
        }
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if polled.is_pending() && self.late.is_none() {
            let mut late = Box::pin(sleep_until(self.until));
            let passed = late.as_mut().poll(cx).is_ready();
            self.late = Some(late);
            if passed {
                return Poll::Ready(Some(Err(too_slow())));
            }
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

#[cfg(test)]
mod tests;
