//! The way of requests to a provider. The first of a turn may be carried by a proxy that has the host's connection; further
//! ones are sent from here.

use std::io;
use std::pin::Pin;

use bytes::Bytes;
use futures_util::Stream;
use futures_util::future::BoxFuture;
use http::{HeaderMap, StatusCode};

use crate::upload::Upload;
use crate::upstream::{Failure, Head, Upstream, broken_off};

/// Piece of a body.
pub type Piece = Result<Bytes, io::Error>;

/// Body as it comes.
pub type Pieces = Pin<Box<dyn Stream<Item = Piece> + Send>>;

/// Body of a request to a provider.
pub enum Payload {
    /// A body that was read, and may have been rewritten.
    Whole(Bytes),
    /// A body that is handed on as it comes.
    Pieces(Pieces),
}

/// Answer of a provider, whose body is still to come.
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub pieces: Pieces,
}

/// Request that somebody else sends to the provider. It holds keys, so that it has no `Debug`.
pub struct Carried {
    /// Headers that the provider is to get.
    pub headers: HeaderMap,
    /// Body that the provider is to get.
    pub body: Payload,
}

/// Sends the first request of a turn to its provider.
pub trait Carrier: Send + Sync {
    /// Sends the request, and waits for the head of its answer.
    fn carry(self: Box<Self>, request: Carried) -> BoxFuture<'static, io::Result<Answer>>;
}

/// Way of the requests of one turn.
pub(crate) struct Way {
    upstream: Upstream,
    /// Carrier of the next request; `None` once it has carried one, or if there is none.
    carrier: Option<Box<dyn Carrier>>,
}

impl Way {
    pub(crate) fn new(upstream: Upstream, carrier: Option<Box<dyn Carrier>>) -> Self {
        Self { upstream, carrier }
    }

    /// Sends a request, and waits for the head of its answer.
    pub(crate) async fn send(&mut self, head: &Head, body: Payload) -> Result<Answer, Failure> {
        let Some(carrier) = self.carrier.take() else {
            return self.upstream.send(head, body).await;
        };
        // A carrier tells a whole body from others.
        let (body, mut upload) = match body {
            Payload::Whole(bytes) => (Payload::Whole(bytes), Upload::whole()),
            Payload::Pieces(_) => Upload::of(body),
        };
        let answered = carrier.carry(Carried { headers: head.headers.clone(), body });
        let answer = self.upstream.in_time(head.provider, &mut upload, answered).await?;
        let answer = answer.map_err(|error| {
            broken_off(&upload).unwrap_or_else(|| Failure {
                status: StatusCode::BAD_GATEWAY,
                message: format!("{} failed: {error}", self.upstream.place(head.provider)),
            })
        })?;
        Ok(Answer { pieces: self.upstream.within_idle(answer.pieces), ..answer })
    }
}

impl From<Payload> for reqwest::Body {
    fn from(payload: Payload) -> Self {
        match payload {
            Payload::Whole(bytes) => bytes.into(),
            Payload::Pieces(pieces) => Self::wrap_stream(pieces),
        }
    }
}
