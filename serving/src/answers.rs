//! Bounds on the bytes of answers that callers have not read yet.
//!
//! The transport buffers an answer for as long as its caller does not read. The total is therefore bounded for the
//! whole process and shared out by connection and by tenant. An answer beyond the bound is refused at once, and an
//! answer that its caller leaves unread is discarded.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::Body;
use tonic::codegen::http::header::CONTENT_TYPE;
use tonic::codegen::http::{Request, Response};
use tower::{Layer, Service};

use self::body::{Answer, For};
pub use self::budget::OPEN_COST;
use self::budget::ResponseBudget;
use crate::connections::Peer;
use crate::grpc;
use crate::owner::RequestOwner;
use crate::refusal::Refusal;

mod body;
mod budget;
#[cfg(test)]
mod tests;

/// Longest time that an answer may wait without a piece (16 KiB) of it being read. After that it is discarded, and
/// after the same time again its connection is closed. A line of 10 kbit/s is fast enough.
const READ_TIMEOUT: Duration = Duration::from_secs(20);

/// Layer that bounds the bytes of unread answers of all services below it.
#[derive(Clone)]
pub struct BoundAnswers {
    budget: Arc<ResponseBudget>,
}

impl BoundAnswers {
    /// Allows at most `bytes` of unread answers, of which one connection or tenant gets at most four fifths. Calls
    /// `refused` for each answer beyond. Must be called within a tokio runtime, where a task then watches the answers
    /// for as long as the layer or one of them exists.
    pub fn new(bytes: usize, refused: impl Fn() + Send + Sync + 'static) -> Self {
        Self::with_read_timeout(READ_TIMEOUT, bytes, refused)
    }

    fn with_read_timeout(
        read_timeout: Duration,
        bytes: usize,
        refused: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        let budget = Arc::new(ResponseBudget::new(bytes, Box::new(refused)));
        tokio::spawn(budget::sweep(Arc::downgrade(&budget), read_timeout));
        Self { budget }
    }
}

/// Service that [`BoundAnswers`] wraps around another.
#[derive(Clone)]
pub struct Bounded<S> {
    inner: S,
    budget: Arc<ResponseBudget>,
}

impl<S> Layer<S> for BoundAnswers {
    type Service = Bounded<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Bounded { inner, budget: Arc::clone(&self.budget) }
    }
}

impl<S, A, B> Service<Request<A>> for Bounded<S>
where
    S: Service<Request<A>, Response = Response<B>>,
    S::Future: Send + 'static,
    B: Body<Data = Bytes> + Unpin + Send + 'static,
    B::Error: Send,
{
    type Response = Response<Answer<B>>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let peer = request.extensions().get::<Peer>().cloned();
        // Without `BoundRequests` in front, only the connection is known.
        let owner = request.extensions().get::<RequestOwner>().cloned();
        let under_way = peer.as_ref().map(Peer::begin_request);
        let content = request.headers().get(CONTENT_TYPE).cloned();
        let is_grpc = content.as_ref().is_some_and(grpc::is_native);
        let answer = self.inner.call(request);
        let budget = Arc::clone(&self.budget);
        Box::pin(async move {
            let (parts, body) = answer.await?.into_parts();
            let owner =
                owner.map_or_else(|| RequestOwner::of(peer.as_ref()).now(), |owner| owner.now());
            let mut opened = Some((For { peer, owner, request: under_way, grpc: is_grpc }, body));
            // A unary answer is ready at once. Polled here, it can be refused before any header of success is sent, so
            // that clients may try again.
            let open = poll_fn(|cx| {
                let opened = opened.take();
                Poll::Ready(
                    opened.and_then(|(caller, body)| Answer::open(&budget, caller, body, cx)),
                )
            });
            Ok(match open.await {
                Some(answer) => Response::from_parts(parts, answer),
                None => grpc::answer_in_place_of(Refusal::AnswersUnread, &parts.headers, content),
            })
        })
    }
}
