//! Admission of requests at the transport, before their bodies are read.
//!
//! Requests in progress, from their first header to the header of their answer, are bounded in number and shared out by
//! connection and by tenant. A request beyond the bound is refused before its body is read. The others begin in turns.
//! A request that has waited too long for its turn is refused. A request that would wait too long is refused at once,
//! by the task that reads its connection, and so is a request of a tenant that has its share already. Bodies must keep
//! coming, so that a caller who never sends one holds no place.

use std::future::{poll_fn, ready};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::task::yield_now;
use tonic::body::Body as TonicBody;
use tonic::codegen::http::header::CONTENT_TYPE;
use tonic::codegen::http::{HeaderValue, Request, Response, Version};
use tower::{Layer, Service};

pub use self::body::BodyTime;
use self::body::Timed;
use self::turns::{Turn, Turns};
use crate::arrival::Arrival;
use crate::connections::{CredentialScope, Peer};
use crate::deadline::time_asked;
use crate::grpc;
use crate::owner::RequestOwner;
use crate::refusal::Refusal;
use crate::shares::Shares;

mod body;
mod turns;

/// Path of the health service, which must answer even when the server is busy.
const HEALTH: &str = "/grpc.health.v1.Health/";

/// Queue for requests that carry no connection of this crate.
const NO_CONNECTION: u64 = u64::MAX;

/// Required pace of a request's body.
#[derive(Debug, Clone, Copy)]
pub struct BodyPace {
    /// Longest time for the whole body, unless it is raised by the request's [`BodyTime`].
    pub within: Duration,
    /// Time without any byte that is allowed on top of the time earned by the bytes received.
    pub grace: Duration,
    /// Bytes that earn one more second.
    pub bytes_per_second: usize,
}

impl BodyPace {
    /// Requires the whole body within this time, and at least the speed of a bad line: 4 KiB a second after the first
    /// five seconds.
    #[must_use]
    pub fn within(within: Duration) -> Self {
        Self { within, grace: Duration::from_secs(5), bytes_per_second: 4 << 10 }
    }

    /// Returns the time, from its beginning, that a body may take once `bytes` of it have come.
    fn allowed(self, bytes: usize) -> Duration {
        let earned =
            Duration::from_secs(1).mul_f64(bytes as f64 / self.bytes_per_second.max(1) as f64);
        self.within.min(self.grace.saturating_add(earned))
    }
}

/// Request about to be admitted or refused.
#[derive(Debug, Clone, Copy)]
pub struct IncomingRequest<'a> {
    /// Path of the RPC.
    pub path: &'a str,
    /// Number of its connection.
    pub connection: Option<u64>,
    /// Time since its first bytes could be read.
    pub waited: Duration,
    /// Stage at which the question is asked.
    pub stage: Stage,
    /// Time that its caller allows, from `grpc-timeout`.
    pub asked: Option<Duration>,
    /// Scope of its credential, if that was the last one accepted on this connection.
    pub scope: Option<&'a CredentialScope>,
    /// First bytes of the body of a native gRPC call; empty if they have not come yet, or the request has its turn.
    pub first_bytes: &'a [u8],
}

impl<'a> IncomingRequest<'a> {
    /// Describes a request whose turn has come. Its credential and its body are left to the call itself.
    fn beginning(
        path: &'a str,
        connection: Option<u64>,
        waited: Duration,
        asked: Option<Duration>,
    ) -> Self {
        let stage = Stage::Begins;
        Self { path, connection, waited, stage, asked, scope: None, first_bytes: &[] }
    }
}

/// Stage of a request on its way in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The head was read. The request would now wait behind earlier requests of its connection, if any.
    Came {
        /// Time that the first of these has waited.
        queue: Duration,
    },
    /// The request has its turn.
    Begins,
}

/// Reason to refuse a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestRefusal {
    /// Too many requests are in progress, or its connection or tenant has its whole share.
    Full,
    /// Requests have waited longer than allowed for a while.
    Waited,
    /// Its tenant has its whole share of the calls in progress.
    TenantFull,
    /// The caller's deadline has passed.
    Late,
}

/// Request that was refused.
#[derive(Debug, Clone, Copy)]
pub struct RefusedRequest<'a> {
    /// Path of the RPC.
    pub path: &'a str,
    /// Time since its first bytes could be read.
    pub waited: Duration,
    /// True if its credential was accepted before on its connection.
    pub is_known: bool,
    /// Reason for the refusal.
    pub reason: RequestRefusal,
}

/// Callback that decides on a request.
type LetIn = Arc<dyn Fn(&IncomingRequest<'_>) -> Result<(), RequestRefusal> + Send + Sync>;

/// Layer that bounds the requests in progress of all services below it.
#[derive(Clone)]
pub struct BoundRequests {
    places: Shares,
    pace: BodyPace,
    turns: Turns,
    let_in: LetIn,
    refused: Arc<dyn Fn(&RefusedRequest<'_>) + Send + Sync>,
}

impl BoundRequests {
    /// Allows at most `max` requests, of which one connection or tenant gets at most four fifths, and requires that
    /// bodies come at `pace`. Calls `refused` for each request that is not let in.
    pub fn new(
        max: usize,
        pace: BodyPace,
        refused: impl Fn(&RefusedRequest<'_>) + Send + Sync + 'static,
    ) -> Self {
        let let_in: LetIn = Arc::new(|_| Ok(()));
        let turns = Turns::new(max);
        Self { places: Shares::new(max), pace, turns, let_in, refused: Arc::new(refused) }
    }

    /// Lets at most `at_a_time` requests begin at once. A turn lasts until the request waits for something or is
    /// answered.
    #[must_use]
    pub fn in_turns(self, at_a_time: usize) -> Self {
        Self { turns: Turns::new(at_a_time.max(1)), ..self }
    }

    /// Sets `let_in`, which decides whether a request may still come in, given how long it has waited. It is asked
    /// twice: when the request has come and when it has its turn.
    #[must_use]
    pub fn asking(
        self,
        let_in: impl Fn(&IncomingRequest<'_>) -> Result<(), RequestRefusal> + Send + Sync + 'static,
    ) -> Self {
        Self { let_in: Arc::new(let_in), ..self }
    }

    /// Builds the answer to a request that is not let in.
    fn refuse<B: Default>(
        &self,
        refused: &RefusedRequest<'_>,
        content: Option<HeaderValue>,
    ) -> Response<B> {
        (self.refused)(refused);
        let refusal = match refused.reason {
            RequestRefusal::Full => Refusal::RequestsFull,
            RequestRefusal::Waited => Refusal::RequestsWaited,
            RequestRefusal::TenantFull => Refusal::TenantFull,
            RequestRefusal::Late => Refusal::Late,
        };
        grpc::answer(refusal, content)
    }
}

/// Service that [`BoundRequests`] wraps around another.
#[derive(Clone)]
pub struct BoundedService<S> {
    inner: S,
    bounds: BoundRequests,
}

impl<S> Layer<S> for BoundRequests {
    type Service = BoundedService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        BoundedService { inner, bounds: self.clone() }
    }
}

impl<S, B> Service<Request<TonicBody>> for BoundedService<S>
where
    S: Service<Request<TonicBody>, Response = Response<B>> + Clone + Send + 'static,
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
        let pace = self.bounds.pace;
        let body_time = BodyTime::new(pace.within);
        let request = request.map(|body| Timed::new(body, pace, body_time.clone()));
        if request.uri().path().starts_with(HEALTH) {
            return Box::pin(self.inner.call(request.map(grpc::body_of)));
        }
        let content = request.headers().get(CONTENT_TYPE).cloned();
        let peer = request.extensions().get::<Peer>().cloned();
        let connection = peer.as_ref().map(Peer::connection);
        let now = Instant::now();
        let at = peer.as_ref().map_or(now, Peer::readable);
        let waited = now.saturating_duration_since(at);
        let scope = peer.as_ref().and_then(|peer| peer.accepted(request.headers()));
        let is_known = scope.is_some();
        let owner = RequestOwner::of(peer.as_ref());
        let Some(place) = self.bounds.places.take(&owner.now(), 1) else {
            let path = request.uri().path();
            let refused = RefusedRequest { path, waited, is_known, reason: RequestRefusal::Full };
            return Box::pin(ready(Ok(self.bounds.refuse(&refused, content))));
        };
        let place = owner.hold(place);
        let (mut head, mut body) = request.into_parts();
        head.extensions.insert(owner);
        head.extensions.insert(body_time);
        let asked = time_asked(&head.headers);
        let flow = connection.unwrap_or(NO_CONNECTION);
        let first = self.bounds.turns.first_of(flow).unwrap_or(now);
        let stage = Stage::Came { queue: now.saturating_duration_since(first) };
        // Over HTTP/1.1 reading ahead would ask the peer for the body.
        let may_read =
            head.version == Version::HTTP_2 && content.as_ref().is_some_and(grpc::is_native);
        let first_bytes = if may_read { body.read_ahead() } else { &[] };
        let scope = scope.as_ref();
        let path = head.uri.path();
        let incoming =
            IncomingRequest { path, connection, waited, stage, asked, scope, first_bytes };
        if let Err(reason) = (self.bounds.let_in)(&incoming) {
            let refused = RefusedRequest { path, waited, is_known, reason };
            return Box::pin(ready(Ok(self.bounds.refuse(&refused, content))));
        }
        let ticket = self.bounds.turns.take(flow, now);
        // `poll_ready` was called on this instance, so this is the one to call.
        let waiting = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, waiting);
        let bounds = self.bounds.clone();
        let mut request = Request::from_parts(head, grpc::body_of(body));
        Box::pin(async move {
            let turn = ticket.turn().await;
            // Requests that came meanwhile enter the queues first, or are refused, and connections are read.
            yield_now().await;
            let waited = at.elapsed();
            let path = request.uri().path();
            let incoming = IncomingRequest::beginning(path, connection, waited, asked);
            if let Err(reason) = (bounds.let_in)(&incoming) {
                let refused = RefusedRequest { path, waited, is_known, reason };
                return Ok(bounds.refuse(&refused, content));
            }
            request.extensions_mut().insert(Arrival { at, waited });
            let answer = begin(inner.call(request), turn).await;
            drop(place);
            answer
        })
    }
}

/// Runs a call to its end; its turn ends when it first waits for something.
async fn begin<F: Future>(call: F, mut turn: Option<Turn>) -> F::Output {
    let mut call = pin!(call);
    poll_fn(|cx| {
        let polled = call.as_mut().poll(cx);
        drop(turn.take());
        polled
    })
    .await
}

#[cfg(test)]
mod tests;
