//! Answer body that the transport reads in pieces whose bytes are counted.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame};

use super::budget::{Next, ResponseBudget, Untaken};
use crate::connections::{Peer, UnderWay};
use crate::grpc;
use crate::refusal::Refusal;
use crate::shares::Owner;

/// Answer of a service below `BoundAnswers`; empty by default.
pub struct Answer<B: Body> {
    open: Option<Open<B>>,
}

struct Open<B: Body> {
    /// Body of the service; `None` once it has ended.
    inner: Option<B>,
    /// True if there was no room for the rest.
    refused: bool,
    /// Final frame or error, which comes after all bytes.
    last: Option<Result<Frame<Bytes>, B::Error>>,
    untaken: Arc<Untaken>,
    budget: Arc<ResponseBudget>,
    /// True if the caller reads the final status in trailers. Other callers would take a partial answer for the whole.
    grpc: bool,
    /// Guard that keeps the connection from counting as idle while the answer is in progress.
    _request: Option<UnderWay>,
}

/// Recipient of an answer.
pub(super) struct For {
    pub(super) peer: Option<Peer>,
    pub(super) owner: Owner,
    pub(super) request: Option<UnderWay>,
    /// True if the caller speaks native gRPC.
    pub(super) grpc: bool,
}

type Polled<B> = Poll<Option<Result<Frame<Bytes>, <B as Body>::Error>>>;

impl<B: Body> Default for Answer<B> {
    fn default() -> Self {
        Self { open: None }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Answer<B> {
    /// Opens the answer of `inner` with the bytes that are ready; returns `None` when there is no room for them.
    pub(super) fn open(
        budget: &Arc<ResponseBudget>,
        caller: For,
        inner: B,
        cx: &mut Context<'_>,
    ) -> Option<Self> {
        if inner.is_end_stream() {
            return Some(Self::default());
        }
        let For { peer, owner, request, grpc } = caller;
        let mut open = Open {
            inner: Some(inner),
            refused: false,
            last: None,
            untaken: budget.open(peer, owner)?,
            budget: Arc::clone(budget),
            grpc,
            _request: request,
        };
        open.fill(cx).then_some(Self { open: Some(open) })
    }
}

impl<B: Body<Data = Bytes> + Unpin> Open<B> {
    /// Takes the frames that the service has ready; returns false when there is no room for them. It takes two frames:
    /// the second frame of a unary answer is its end, which frees the encoding buffer.
    fn fill(&mut self, cx: &mut Context<'_>) -> bool {
        for _ in 0..2 {
            let Some(inner) = &mut self.inner else { return true };
            let Poll::Ready(frame) = Pin::new(inner).poll_frame(cx) else { return true };
            match frame.map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(bytes))) => {
                    if self.untaken.add(&self.budget, bytes) {
                        continue;
                    }
                    (self.inner, self.refused) = (None, true);
                    return false;
                }
                Some(Ok(Err(frame))) => self.last = Some(Ok(frame)),
                Some(Err(error)) => self.last = Some(Err(error)),
                None => {}
            }
            self.inner = None;
        }
        true
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Polled<B> {
        if !self.untaken.has_rest() {
            self.fill(cx);
        }
        let frame = match self.untaken.next() {
            Next::Piece(bytes) => Ok(Frame::data(bytes)),
            Next::Nothing if self.refused => return self.cut(),
            Next::Nothing => match (self.last.take(), &self.inner) {
                (Some(last), _) => last,
                (None, None) => return Poll::Ready(None),
                (None, Some(_)) => return Poll::Pending,
            },
            Next::Gone => return self.cut(),
        };
        Poll::Ready(Some(frame))
    }

    /// Ends an answer that can't be sent in full, so that its caller notices.
    fn cut(&self) -> Polled<B> {
        if self.grpc {
            // The answer has begun, so its refusal comes in the trailers.
            let trailers = grpc::trailers(Refusal::AnswersUnread).clone();
            return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
        }
        self.untaken.close();
        Poll::Pending
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Answer<B>
where
    B::Error: Unpin,
{
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Polled<B> {
        let Some(open) = &mut self.open else { return Poll::Ready(None) };
        let frame = open.poll_next(cx);
        // Trailers and errors are the last of a body.
        if matches!(&frame, Poll::Ready(next) if !matches!(next, Some(Ok(frame)) if frame.is_data()))
        {
            self.open = None;
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.open.as_ref().is_none_or(|open| {
            let ended = open.inner.is_none() && open.last.is_none() && !open.refused;
            ended && !open.untaken.has_rest()
        })
    }
}
