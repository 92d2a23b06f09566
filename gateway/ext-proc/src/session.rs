//! One HTTP request and its answer, as Envoy shows them.

use std::io;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Once};
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use futures_util::future::BoxFuture;
use futures_util::{Stream, StreamExt as _, stream};
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tonic::Status;
use toolgate_gateway_llm::{Caller, CarriedChat, ChatPath, Pieces};

use crate::carrier::{
    AnswerHead, EnvoyCarrier, Exchange, Mode, Out, end, received, send, write_pieces,
};
use crate::headers::{Head, changes, set_status, without_own};
use crate::wire::v3::processing_request::Request;
use crate::wire::v3::{
    BodySendMode, HeaderMutation, HttpBody, HttpHeaders, ProcessingRequest, ProcessingResponse,
    ProtocolConfiguration,
};
use crate::wire::{self, Side};

/// Time for the first message of a stream.
const OPENING_MAX: Duration = Duration::from_secs(10);

/// Most pieces of a body that wait until they are read.
const PIECES_MAX: usize = 4;

/// Largest answer that is sent as a whole, in bytes.
const ANSWER_MAX: usize = 32 << 20;

/// Answers chats.
pub(crate) trait Decide: Send + Sync {
    /// Returns who asks for a chat, or the answer for a host that is not let in.
    fn admit<'a>(
        &'a self,
        path: ChatPath<'a>,
        headers: &'a HeaderMap,
        peer: IpAddr,
    ) -> BoxFuture<'a, Result<Caller, Box<Response>>>;

    /// Answers a chat whose first request Envoy carries.
    fn answer<'a>(&'a self, chat: CarriedChat<'a>) -> BoxFuture<'a, Response>;

    /// Returns the longest time between two pieces of a provider's answer.
    fn idle_timeout(&self) -> Duration;
}

/// First message of a stream.
struct Opening {
    head: Head,
    modes: Option<Modes>,
    duplex: Duplex,
    has_body: bool,
}

/// Ways in which the bodies of an exchange are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Modes {
    request: Mode,
    response: Mode,
    /// True if Envoy sends no bodies by itself.
    must_be_asked: bool,
}

/// Bodies whose pieces are lost unless they are sent back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Duplex {
    request: bool,
    response: bool,
}

/// Chat that Envoy asks about.
struct Asked<'a> {
    decider: &'a dyn Decide,
    path: ChatPath<'a>,
    headers: HeaderMap,
    peer: IpAddr,
}

/// End of what is to be read.
enum Over {
    /// The exchange is over, or what is left of it goes on without being looked at.
    Done,
    /// The host is answered before the request was sent. Holds the first message of that.
    Answered(ProcessingRequest),
}

/// Takes what Envoy sends to where it is read.
struct Feed {
    modes: Modes,
    out: Out,
    exchange: Arc<Exchange>,
    /// Ways of the parts; `None` once a part has ended.
    request: Option<mpsc::Sender<Bytes>>,
    head: Option<oneshot::Sender<AnswerHead>>,
    answer: Option<mpsc::Sender<Bytes>>,
}

/// Serves one stream of Envoy's. Once it returns, Envoy goes on by itself.
pub(crate) async fn process(
    decider: &dyn Decide,
    peer: IpAddr,
    inbound: impl Stream<Item = Result<ProcessingRequest, Status>> + Send,
    out: Out,
) {
    let mut inbound = pin!(inbound);
    let first = timeout(OPENING_MAX, inbound.next()).await;
    let first = first.ok().flatten().and_then(Result::ok);
    let Some(opening) = first.as_ref().and_then(Opening::read) else { return };
    let (path, query) = opening.head.place();
    let method = opening.head.method.as_ref().unwrap_or(&Method::GET);
    let chat = ChatPath::find(method, path, query).filter(|_| opening.has_body);
    let unanswered = match (chat, opening.modes) {
        (Some(path), Some(modes)) => {
            let headers = opening.head.headers.clone();
            let asked = Asked { decider, path, headers, peer };
            match Box::pin(converse(asked, modes, inbound.as_mut(), &out)).await {
                Over::Done => return,
                Over::Answered(message) => Some(message),
            }
        }
        (chat, modes) => {
            if chat.is_some() && modes.is_none() {
                warn_of_modes();
            }
            // What Envoy has sent already, it does not have any more.
            if !opening.is_duplex() || send(&out, wire::headers(Side::Request, None)).await.is_err()
            {
                return;
            }
            None
        }
    };
    // An error means that Envoy has left.
    let _left = echo(unanswered, inbound, opening.duplex, &out).await;
}

/// Answers a chat, over all that Envoy shows of it.
async fn converse(
    asked: Asked<'_>,
    modes: Modes,
    inbound: impl Stream<Item = Result<ProcessingRequest, Status>> + Unpin,
    out: &Out,
) -> Over {
    // Envoy sends nothing of a chat before its host is let in.
    let Some(caller) = asked.admit(out).await else { return Over::Done };
    let Asked { decider, path, headers, .. } = asked;
    let exchange = Arc::new(Exchange::default());
    let (request, body) = mpsc::channel(PIECES_MAX);
    let (head, head_came) = oneshot::channel();
    let (answer, pieces) = mpsc::channel(PIECES_MAX);
    let feed = Feed {
        modes,
        out: out.clone(),
        exchange: Arc::clone(&exchange),
        request: Some(request),
        head: Some(head),
        answer: Some(answer),
    };
    let carrier = EnvoyCarrier {
        out: out.clone(),
        mode: modes.request,
        headers: headers.clone(),
        head: head_came,
        pieces,
        exchange: Arc::clone(&exchange),
    };
    // Also a body that goes on as it came takes no key of Toolgate's along.
    let own = without_own(&headers);
    let begun = match modes {
        Modes { must_be_asked: true, .. } => send(out, wire::with_bodies(own)).await,
        Modes { request: Mode::Buffered, .. } => send(out, wire::headers(Side::Request, own)).await,
        // The headers change with the body.
        Modes { request: Mode::Duplex, .. } => Ok(()),
    };
    if begun.is_err() {
        return Over::Done;
    }
    let body = Body::from_stream(received(body, exchange.request_ended.clone()));
    let chat = CarriedChat { path, headers, body, caller, carrier: Box::new(carrier) };
    let answering = async {
        if modes.request == Mode::Buffered {
            // While Envoy reads the body, nothing of it can come in time; and it may send none at all.
            exchange.request_ended.cancelled().await;
        }
        let response = decider.answer(chat).await;
        write_response(response, modes.response, decider.idle_timeout(), out, &exchange).await
    };
    tokio::select! {
        over = feed.read(inbound) => over,
        // An error means that Envoy has left.
        _written = answering => Over::Done,
        () = out.closed() => Over::Done,
    }
}

impl Asked<'_> {
    /// Returns the host. `None` if it is not let in, and answered so, or if Envoy has left.
    async fn admit(&self, out: &Out) -> Option<Caller> {
        let Self { decider, path, headers, peer } = self;
        let admitted = tokio::select! {
            admitted = decider.admit(*path, headers, *peer) => admitted,
            () = out.closed() => return None,
        };
        match admitted {
            Ok(caller) => Some(caller),
            Err(refusal) => {
                let exchange = Exchange::default();
                let idle = decider.idle_timeout();
                // An error means that Envoy has left.
                let _left = write_response(*refusal, Mode::Buffered, idle, out, &exchange).await;
                None
            }
        }
    }
}

impl Opening {
    /// Reads the first message of a stream. `None` if there is nothing to answer.
    fn read(message: &ProcessingRequest) -> Option<Self> {
        let Some(Request::RequestHeaders(headers)) = &message.request else { return None };
        if message.observability_mode {
            return None;
        }
        let Some(config) = &message.protocol_config else {
            warn_of_modes();
            return None;
        };
        let modes = Modes::of(config);
        let is_duplex = |mode| mode == BodySendMode::FullDuplexStreamed;
        Some(Self {
            head: Head::read(headers)?,
            modes,
            duplex: Duplex {
                request: is_duplex(config.request_body_mode()),
                response: is_duplex(config.response_body_mode())
                    || modes.is_some_and(|modes| modes.must_be_asked),
            },
            has_body: !headers.end_of_stream,
        })
    }

    /// Returns true if Envoy sends bodies that it does not keep.
    fn is_duplex(&self) -> bool {
        let is_asked = self.modes.is_some_and(|modes| modes.must_be_asked);
        !is_asked && (self.duplex.request || self.duplex.response)
    }
}

impl Modes {
    /// Returns the modes that the filter is set to. `None` if a body can't be changed in them.
    fn of(config: &ProtocolConfiguration) -> Option<Self> {
        let request = config.request_body_mode();
        let response = config.response_body_mode();
        if request == BodySendMode::None && response == BodySendMode::None {
            return Some(Self {
                request: Mode::Buffered,
                response: Mode::Duplex,
                must_be_asked: true,
            });
        }
        let request = match request {
            BodySendMode::Buffered | BodySendMode::BufferedPartial => Mode::Buffered,
            BodySendMode::FullDuplexStreamed => Mode::Duplex,
            BodySendMode::None | BodySendMode::Streamed | BodySendMode::Grpc => return None,
        };
        let response = match response {
            BodySendMode::Buffered => Mode::Buffered,
            BodySendMode::FullDuplexStreamed => Mode::Duplex,
            _ => return None,
        };
        Some(Self { request, response, must_be_asked: false })
    }
}

impl Feed {
    /// Reads what Envoy sends until it leaves.
    async fn read(
        mut self,
        mut inbound: impl Stream<Item = Result<ProcessingRequest, Status>> + Unpin,
    ) -> Over {
        while let Some(Ok(message)) = inbound.next().await {
            match &message.request {
                Some(Request::ResponseHeaders(_))
                    if !self.exchange.is_carried.load(Ordering::Relaxed) =>
                {
                    if self.modes.must_be_asked {
                        warn_of_modes();
                    }
                    return Over::Answered(message);
                }
                _ => {}
            }
            let is_over = match message.request {
                Some(Request::RequestBody(body)) => self.request_body(body).await,
                Some(Request::RequestTrailers(_)) => {
                    self.exchange.has_request_trailers.store(true, Ordering::Relaxed);
                    self.request_ended();
                    // There is no body that could be answered as a whole.
                    self.modes.request == Mode::Buffered
                }
                Some(Request::ResponseHeaders(head)) => self.answer_head(&head).await,
                Some(Request::ResponseBody(body)) => {
                    self.answer_body(body).await;
                    false
                }
                Some(Request::ResponseTrailers(_)) => {
                    self.exchange.has_response_trailers.store(true, Ordering::Relaxed);
                    self.answer_ended();
                    false
                }
                Some(Request::RequestHeaders(_)) | None => true,
            };
            if is_over {
                break;
            }
        }
        Over::Done
    }

    /// Takes a piece of the request. Returns true if the request is not to be looked at.
    async fn request_body(&mut self, body: HttpBody) -> bool {
        let HttpBody { body, end_of_stream } = body;
        if self.modes.request == Mode::Buffered {
            if !end_of_stream {
                // It is larger than what Envoy holds.
                let as_it_came = wire::whole_body(Side::Request, None, None);
                let _left = send(&self.out, as_it_came).await;
                return true;
            }
            *self.exchange.came.lock() = body.clone();
        }
        if let Some(request) = &self.request {
            // Nobody reads on where the host is answered already.
            let _answered = request.send(body).await;
        }
        if end_of_stream {
            self.request_ended();
        }
        false
    }

    fn request_ended(&mut self) {
        self.exchange.request_ended.cancel();
        self.request = None;
    }

    /// Takes the head of the answer. Returns true if it can't be read.
    async fn answer_head(&mut self, head: &HttpHeaders) -> bool {
        let Some(read) = Head::read(head) else { return true };
        let Some(read) = AnswerHead::new(read, head.end_of_stream) else { return true };
        let Some(way) = self.head.take() else { return true };
        if head.end_of_stream {
            self.answer_ended();
        } else if self.modes.response == Mode::Buffered
            && send(&self.out, wire::headers(Side::Response, None)).await.is_err()
        {
            return true;
        }
        let has_left = way.send(read).is_err();
        // Nobody reads the rest of a request that is answered.
        self.request = None;
        has_left
    }

    async fn answer_body(&mut self, body: HttpBody) {
        let HttpBody { body, end_of_stream } = body;
        self.exchange.answer_begun.cancel();
        if let Some(answer) = &self.answer {
            // Nobody reads on where another answer takes its place.
            let _replaced = answer.send(body).await;
        }
        if end_of_stream || self.modes.response == Mode::Buffered {
            self.answer_ended();
        }
    }

    fn answer_ended(&mut self) {
        self.exchange.answer_begun.cancel();
        self.exchange.answer_ended.cancel();
        self.answer = None;
    }
}

/// Writes the answer for the host. Envoy has `idle` to send the end of the one that it got.
async fn write_response(
    response: Response,
    mode: Mode,
    idle: Duration,
    out: &Out,
    exchange: &Exchange,
) -> io::Result<()> {
    let (mut parts, body) = response.into_parts();
    let body = body.into_data_stream();
    let mut pieces: Pieces = Box::pin(body.map(|piece| piece.map_err(io::Error::other)));
    let answered = exchange.answered.lock().take();
    let has_pieces = answered.as_ref().is_some_and(|answered| !answered.is_empty);
    if mode == Mode::Duplex && has_pieces {
        let changes = answer_changes(answered, &parts.headers, parts.status);
        send(out, wire::headers(Side::Response, Some(changes))).await?;
        // Envoy takes no piece before it has sent one of its own, which another answer may overtake.
        if let Err(error) = came_within(idle, &exchange.answer_begun).await {
            return cut(out, &error).await;
        }
        if let Err(error) = write_pieces(out, Side::Response, &mut pieces).await {
            return cut(out, &error).await;
        }
        drop(pieces);
        // Envoy takes no end before it has sent its own.
        if let Err(error) = came_within(idle, &exchange.answer_ended).await {
            return cut(out, &error).await;
        }
        let has_trailers = exchange.has_response_trailers.load(Ordering::Relaxed);
        return end(out, Side::Response, has_trailers).await;
    }
    let bytes = match whole(pieces).await {
        Ok(bytes) => bytes,
        Err(error) => return cut(out, &error).await,
    };
    parts.headers.remove(CONTENT_LENGTH);
    let message = match answered {
        Some(answered) if has_pieces => {
            // Envoy takes no body before it has sent its own.
            if let Err(error) = came_within(idle, &exchange.answer_ended).await {
                return cut(out, &error).await;
            }
            parts.headers.insert(CONTENT_LENGTH, HeaderValue::from(bytes.len()));
            let changes = answer_changes(Some(answered), &parts.headers, parts.status);
            wire::whole_body(Side::Response, Some(changes), Some(bytes))
        }
        Some(answered) if bytes.is_empty() => {
            let changes = answer_changes(Some(answered), &parts.headers, parts.status);
            wire::headers(Side::Response, Some(changes))
        }
        // Of the provider there is no answer, or none that has a place for a body.
        _ => {
            let headers = changes(&HeaderMap::new(), &parts.headers);
            wire::immediate(parts.status, headers, bytes)
        }
    };
    send(out, message).await
}

/// Waits until Envoy has sent this part of the answer that it got, but not for longer than `idle`.
async fn came_within(idle: Duration, part: &CancellationToken) -> io::Result<()> {
    let silent = "the provider's answer did not come in time (llm.idle_timeout)";
    let came = timeout(idle, part.cancelled()).await;
    came.map_err(|_| io::Error::new(io::ErrorKind::TimedOut, silent))
}

/// Returns the changes that make the host's answer of the provider's.
fn answer_changes(
    answered: Option<AnswerHead>,
    headers: &HeaderMap,
    status: StatusCode,
) -> HeaderMutation {
    let before = answered.as_ref().map(|answered| &answered.headers);
    let mut changes = changes(before.unwrap_or(&HeaderMap::new()), headers);
    if answered.is_some_and(|answered| answered.status != status) {
        set_status(&mut changes, status);
    }
    changes
}

/// Reads an answer to its end.
async fn whole(mut pieces: Pieces) -> io::Result<Bytes> {
    let mut bytes = BytesMut::new();
    while let Some(piece) = pieces.next().await {
        bytes.extend_from_slice(&piece?);
        if bytes.len() > ANSWER_MAX {
            return Err(io::Error::other(format!("the answer is larger than {ANSWER_MAX} bytes")));
        }
    }
    Ok(bytes.freeze())
}

/// Has Envoy cut an answer, so that the host does not take it for a whole one.
async fn cut(out: &Out, error: &io::Error) -> io::Result<()> {
    if out.is_closed() {
        // The host has hung up: nobody is there to be told.
        return Err(io::ErrorKind::BrokenPipe.into());
    }
    tracing::warn!(%error, "the answer broke off");
    let body = Bytes::from_static(b"toolgate: the answer broke off");
    send(out, wire::immediate(StatusCode::BAD_GATEWAY, HeaderMutation::default(), body)).await
}

/// Hands on what Envoy shows, as it came.
async fn echo(
    first: Option<ProcessingRequest>,
    inbound: impl Stream<Item = Result<ProcessingRequest, Status>> + Unpin,
    duplex: Duplex,
    out: &Out,
) -> io::Result<()> {
    let mut messages = stream::iter(first.map(Ok)).chain(inbound);
    while let Some(Ok(message)) = messages.next().await {
        let Some(request) = message.request else { return Ok(()) };
        let answers = match request {
            Request::RequestHeaders(_) => vec![wire::headers(Side::Request, None)],
            Request::ResponseHeaders(_) => vec![wire::headers(Side::Response, None)],
            Request::RequestBody(body) => echoed(Side::Request, duplex.request, body),
            Request::ResponseBody(body) => echoed(Side::Response, duplex.response, body),
            Request::RequestTrailers(_) => vec![wire::trailers(Side::Request)],
            Request::ResponseTrailers(_) => vec![wire::trailers(Side::Response)],
        };
        for answer in answers {
            send(out, answer).await?;
        }
    }
    Ok(())
}

fn echoed(side: Side, is_duplex: bool, body: HttpBody) -> Vec<ProcessingResponse> {
    if is_duplex {
        return wire::pieces(side, body.body, body.end_of_stream);
    }
    vec![wire::whole_body(side, None, None)]
}

/// Says once that requests are sent as they come because of the filter's settings.
fn warn_of_modes() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        tracing::warn!(
            "Envoy's filter shows no bodies that can be changed, so that requests are sent as they come: set \
             allow_mode_override, or request_body_mode and response_body_mode to BUFFERED or FULL_DUPLEX_STREAMED \
             (docs/llm-proxy.md)"
        );
    });
}

#[cfg(test)]
mod tests;
