//! Requests under way, from their first header to that of their answer: bounded in number and shared out by connection and
//! by tenant, so that one beyond is refused before anything of it is read. The others begin in turns. One that has waited
//! too long for its turn is refused, and so is one that would: at once, by the task that reads its connection. Bodies have
//! to come on, so that one who never sends his keeps no place.

use std::future::{poll_fn, ready};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::task::yield_now;
use tonic::body::Body as TonicBody;
use tonic::codegen::http::header::CONTENT_TYPE;
use tonic::codegen::http::{HeaderMap, HeaderValue, Request, Response};
use tower::{Layer, Service};

use self::body::Timed;
use self::turns::{Turn, Turns};
use crate::arrival::Arrival;
use crate::connections::Peer;
use crate::deadline::time_left;
use crate::owner::RequestOwner;
use crate::refusal::{late, refused};
use crate::shares::Shares;

mod body;
mod turns;

/// Who asks whether we are well must not be turned away because we are busy.
const HEALTH: &str = "/grpc.health.v1.Health/";

/// What a caller is told who finds no place.
const FULL: &str = "too many requests are under way";

/// What a caller is told whose request came to lie for too long.
const WAITED: &str = "requests wait too long for their turn";

/// The queue of requests that come over no connection of ours.
const NO_CONNECTION: u64 = u64::MAX;

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
    /// Its stage.
    pub stage: Stage,
    /// The time that its caller gave it.
    pub asked: Option<Duration>,
}

/// A request's stage on its way in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// It was read, and would wait for its turn behind others of its connection, if there are some.
    Came {
        /// Time that the first of these has waited.
        queue: Duration,
    },
    /// It has its turn.
    Begins,
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
    turns: Turns,
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
        let turns = Turns::new(max);
        Self { places: Shares::new(max), pace, turns, let_in, refused: Arc::new(refused) }
    }

    /// Has `at_a_time` requests begin at a time: from their turn until they wait for something, or are answered.
    #[must_use]
    pub fn in_turns(self, at_a_time: usize) -> Self {
        Self { turns: Turns::new(at_a_time.max(1)), ..self }
    }

    /// Has `let_in` say whether a request may still come in, given how long it has waited. It is asked when the request
    /// has come and when it has its turn.
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
            return Box::pin(ready(Ok(full)));
        };
        let place = owner.hold(place);
        request.extensions_mut().insert(owner);
        let now = Instant::now();
        let at = peer.map_or(now, |peer| peer.readable());
        let asked = time_left(request.headers());
        let flow = connection.unwrap_or(NO_CONNECTION);
        let first = self.door.turns.first_of(flow).unwrap_or(now);
        let stage = Stage::Came { queue: now.saturating_duration_since(first) };
        let waited = now.saturating_duration_since(at);
        let at_door = AtDoor { path: request.uri().path(), connection, waited, stage, asked };
        if let Err(refusal) = (self.door.let_in)(&at_door) {
            return Box::pin(ready(Ok(self.door.refuse(refusal, content))));
        }
        let ticket = self.door.turns.take(flow, now);
        // The one that was asked whether it is ready is the one to call.
        let waiting = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, waiting);
        let door = self.door.clone();
        Box::pin(async move {
            let turn = ticket.turn().await;
            // What has come meanwhile gets into the queues first, or is refused; and connections are read.
            yield_now().await;
            let waited = at.elapsed();
            let path = request.uri().path();
            let stage = Stage::Begins;
            let at_door = AtDoor { path, connection, waited, stage, asked };
            if let Err(refusal) = (door.let_in)(&at_door) {
                return Ok(door.refuse(refusal, content));
            }
            request.extensions_mut().insert(Arrival { at, waited });
            let answer = begin(inner.call(request), turn).await;
            drop(place);
            answer
        })
    }
}

/// Goes through with a call whose turn ends when it waits for something.
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
