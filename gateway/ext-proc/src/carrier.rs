//! The way of a request through Envoy: it is written to Envoy's stream, and its answer comes from there.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{StreamExt as _, stream};
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, HeaderValue, StatusCode};
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tonic::Status;
use toolgate_gateway_llm::{Answer, Carried, Carrier, Payload, Pieces};

use crate::headers::{Head, changes};
use crate::wire::v3::ProcessingResponse;
use crate::wire::{self, Side};

/// Way of the messages to Envoy.
pub(crate) type Out = mpsc::Sender<Result<ProcessingResponse, Status>>;

/// Way in which Envoy sends and takes a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// As a whole; the answer to it changes the headers too.
    Buffered,
    /// Piece by piece, and as many others come back.
    Duplex,
}

/// State of one exchange, which all of its parts see.
#[derive(Default)]
pub(crate) struct Exchange {
    /// True once the request is being written to Envoy.
    pub(crate) is_carried: AtomicBool,
    pub(crate) has_request_trailers: AtomicBool,
    pub(crate) has_response_trailers: AtomicBool,
    /// Cancelled when Envoy has sent the whole request.
    pub(crate) request_ended: CancellationToken,
    /// Body of the request as it came, with [`Mode::Buffered`], until the request is written.
    pub(crate) came: Mutex<Bytes>,
    /// Head of the answer, once it has come.
    pub(crate) answered: Mutex<Option<AnswerHead>>,
    /// Cancelled when Envoy has sent a piece of the answer's body, or its end.
    pub(crate) answer_begun: CancellationToken,
    /// Cancelled when Envoy has sent the whole answer.
    pub(crate) answer_ended: CancellationToken,
}

/// Head of the answer that Envoy got. It may hold what is the host's alone, so that it has no `Debug`.
#[derive(Clone)]
pub(crate) struct AnswerHead {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    /// True if there is no body.
    pub(crate) is_empty: bool,
}

/// Carrier of a chat's first request.
pub(crate) struct EnvoyCarrier {
    pub(crate) out: Out,
    pub(crate) mode: Mode,
    /// Headers of the request as they came.
    pub(crate) headers: HeaderMap,
    pub(crate) head: oneshot::Receiver<AnswerHead>,
    pub(crate) pieces: mpsc::Receiver<Bytes>,
    pub(crate) exchange: Arc<Exchange>,
}

impl AnswerHead {
    /// Returns the head of an answer; `None` if it has no status.
    pub(crate) fn new(head: Head, is_empty: bool) -> Option<Self> {
        Some(Self { status: head.status?, headers: head.headers, is_empty })
    }
}

impl Carrier for EnvoyCarrier {
    fn carry(self: Box<Self>, request: Carried) -> BoxFuture<'static, io::Result<Answer>> {
        Box::pin(async move {
            self.exchange.is_carried.store(true, Ordering::Relaxed);
            let mut head = self.head;
            let writing = write(&self.out, self.mode, &self.headers, &self.exchange, request);
            let head = tokio::select! {
                biased;
                // A provider may answer before it has the whole request, which then does not come to its end.
                head = &mut head => head,
                written = writing => {
                    written?;
                    head.await
                }
            };
            let head = head.map_err(|_| gone())?;
            *self.exchange.answered.lock() = Some(head.clone());
            let pieces = received(self.pieces, self.exchange.answer_ended.clone());
            Ok(Answer { status: head.status, headers: head.headers, pieces })
        })
    }
}

/// Writes a request.
async fn write(
    out: &Out,
    mode: Mode,
    before: &HeaderMap,
    exchange: &Exchange,
    request: Carried,
) -> io::Result<()> {
    let Carried { mut headers, body } = request;
    if mode == Mode::Buffered {
        let came = std::mem::take(&mut *exchange.came.lock());
        let body = match body {
            Payload::Whole(bytes) if bytes != came => Some(bytes),
            // It goes on as it came.
            Payload::Whole(_) => None,
            Payload::Pieces(mut pieces) => {
                // Envoy takes no answer to a body that it has not sent.
                while let Some(piece) = pieces.next().await {
                    piece?;
                }
                None
            }
        };
        if body.is_some() {
            // Envoy takes no other length for a body that it held in part.
            headers.remove(CONTENT_LENGTH);
        }
        let changes = changes(before, &headers);
        return send(out, wire::whole_body(Side::Request, Some(changes), body)).await;
    }
    if let Payload::Whole(bytes) = &body {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(bytes.len()));
    }
    let changes = changes(before, &headers);
    send(out, wire::headers(Side::Request, Some(changes))).await?;
    let mut pieces = match body {
        Payload::Whole(bytes) => Box::pin(stream::iter([Ok(bytes)])),
        Payload::Pieces(pieces) => pieces,
    };
    write_pieces(out, Side::Request, &mut pieces).await?;
    end(out, Side::Request, exchange.has_request_trailers.load(Ordering::Relaxed)).await
}

/// Writes a body, without its end.
pub(crate) async fn write_pieces(out: &Out, side: Side, pieces: &mut Pieces) -> io::Result<()> {
    while let Some(piece) = pieces.next().await {
        for message in wire::pieces(side, piece?, false) {
            send(out, message).await?;
        }
    }
    Ok(())
}

/// Ends a body.
pub(crate) async fn end(out: &Out, side: Side, has_trailers: bool) -> io::Result<()> {
    if has_trailers {
        return send(out, wire::trailers(side)).await;
    }
    for message in wire::pieces(side, Bytes::new(), true) {
        send(out, message).await?;
    }
    Ok(())
}

/// Sends a message to Envoy.
pub(crate) async fn send(out: &Out, message: ProcessingResponse) -> io::Result<()> {
    out.send(Ok(message)).await.map_err(|_| gone())
}

/// Returns the pieces that come through a channel. They end with an error if the channel does so before `ended`.
pub(crate) fn received(pieces: mpsc::Receiver<Bytes>, ended: CancellationToken) -> Pieces {
    Box::pin(stream::unfold(Some((pieces, ended)), |open| async move {
        let (mut pieces, ended) = open?;
        match pieces.recv().await {
            Some(piece) => Some((Ok(piece), Some((pieces, ended)))),
            None if ended.is_cancelled() => None,
            None => Some((Err(gone()), None)),
        }
    }))
}

fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "Envoy has left")
}
