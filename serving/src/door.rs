//! Requests under way, from their first header to that of their answer: bounded in number and shared out by connection and
//! by tenant, so that one beyond is refused before anything of it is read. One that has waited too long to be looked at is
//! refused too. Bodies have to come on, so that one who never sends his keeps no place.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tonic::body::Body as TonicBody;
use tonic::codegen::http::header::CONTENT_TYPE;
use tonic::codegen::http::{HeaderMap, HeaderValue, Request, Response};
use tower::{Layer, Service};

use self::body::Timed;
use crate::arrival::Arrival;
use crate::connections::Peer;
use crate::deadline::time_left;
use crate::owner::RequestOwner;
use crate::refusal::{late, refused};
use crate::shares::Shares;

mod body;

/// Who asks whether we are well must not be turned away because we are busy.
const HEALTH: &str = "/grpc.health.v1.Health/";

/// What a caller is told who finds no place.
const FULL: &str = "too many requests are under way";

/// What a caller is told whose request came to lie for too long.
const WAITED: &str = "requests wait too long for their turn";

/// How fast a request's body has to come.
#[derive(Debug, Clone, Copy)]
pub struct BodyPace {
    /// The most that it may take.
    pub within: Duration,
    /// How long it may be without a byte, beyond what its bytes have earned.
    pub grace: Duration,
    /// Bytes that earn a second.
    pub bytes_per_second: usize,
}

impl BodyPace {
    /// Whole within this time, and no slower than a bad line: 4 KiB a second after the first five seconds.
    #[must_use]
    pub fn within(within: Duration) -> Self {
        Self { within, grace: Duration::from_secs(5), bytes_per_second: 4 << 10 }
    }

    /// Returns how long after its beginning a body may wait for more once `bytes` of it have come.
    fn allowed(self, bytes: usize) -> Duration {
        let earned =
            Duration::from_secs(1).mul_f64(bytes as f64 / self.bytes_per_second.max(1) as f64);
        self.within.min(self.grace.saturating_add(earned))
    }
}

/// A request that is about to be looked at.
#[derive(Debug, Clone, Copy)]
pub struct AtDoor<'a> {
    /// The RPC's path.
    pub path: &'a str,
    /// The number of its connection.
    pub connection: Option<u64>,
    /// How long it has waited since its first bytes could be read.
    pub waited: Duration,
    /// The time that its caller gave it.
    pub asked: Option<Duration>,
}

/// Why a request is not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DoorRefusal {
    /// As many are under way as may be, or its connection has what is due to it.
    Full,
    /// Requests wait longer than they may, and have for a while.
    Waited,
    /// Its caller's deadline has passed.
    Late,
}

/// What is asked at the door.
type LetIn = Arc<dyn Fn(&AtDoor<'_>) -> Result<(), DoorRefusal> + Send + Sync>;

/// Bounds the requests under way of all services below it.
#[derive(Clone)]
pub struct BoundRequests {
    places: Shares,
    pace: BodyPace,
    let_in: LetIn,
    refused: Arc<dyn Fn(DoorRefusal) + Send + Sync>,
}

impl BoundRequests {
    /// At most `max` requests, of which a connection or a tenant gets four fifths at most, and whose bodies come at
    /// `pace`; `refused` is told of each request that is not let in.
    pub fn new(
        max: usize,
        pace: BodyPace,
        refused: impl Fn(DoorRefusal) + Send + Sync + 'static,
    ) -> Self {
        let let_in: LetIn = Arc::new(|_| Ok(()));
        Self { places: Shares::new(max), pace, let_in, refused: Arc::new(refused) }
    }

    /// Has `let_in` say whether a request may still come in, given how long it has waited.
    #[must_use]
    pub fn asking(
        self,
        let_in: impl Fn(&AtDoor<'_>) -> Result<(), DoorRefusal> + Send + Sync + 'static,
    ) -> Self {
        Self { let_in: Arc::new(let_in), ..self }
    }

    /// The answer to a request that is not let in.
    fn refuse<B: Default>(
        &self,
        refusal: DoorRefusal,
        content: Option<HeaderValue>,
    ) -> Response<B> {
        (self.refused)(refusal);
        match refusal {
            DoorRefusal::Full => refused(content, &HeaderMap::new(), FULL),
            DoorRefusal::Waited => refused(content, &HeaderMap::new(), WAITED),
            DoorRefusal::Late => late(content),
        }
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
        let pace = self.door.pace;
        let mut request = request.map(|body| TonicBody::new(Timed::new(body, pace)));
        if request.uri().path().starts_with(HEALTH) {
            return Box::pin(self.inner.call(request));
        }
        let content = request.headers().get(CONTENT_TYPE).cloned();
        let peer = request.extensions().get::<Peer>().cloned();
        let connection = peer.as_ref().map(Peer::connection);
        let owner = RequestOwner::of(peer.as_ref());
        let Some(place) = self.door.places.take(&owner.now(), 1) else {
            let full = self.door.refuse(DoorRefusal::Full, content);
            return Box::pin(std::future::ready(Ok(full)));
        };
        let place = owner.hold(place);
        request.extensions_mut().insert(owner);
        let at = peer.map_or_else(std::time::Instant::now, |peer| peer.readable());
        // The one that was asked whether it is ready is the one to call.
        let waiting = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, waiting);
        let door = self.door.clone();
        Box::pin(async move {
            // Only here has it had its turn: before, it waited in the socket and in the runtime's queue.
            let waited = at.elapsed();
            let asked = time_left(request.headers());
            let at_door = AtDoor { path: request.uri().path(), connection, waited, asked };
            if let Err(refusal) = (door.let_in)(&at_door) {
                return Ok(door.refuse(refusal, content));
            }
            request.extensions_mut().insert(Arrival { at, waited });
            let answer = inner.call(request).await;
            drop(place);
            answer
        })
    }
}

#[cfg(test)]
mod tests;
