//! Streams as Envoy leads them, in each of its modes.

use std::net::Ipv4Addr;
use std::sync::atomic::AtomicBool;

use axum::body::to_bytes;
use tokio::sync::Notify;
use tokio::time::sleep;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use toolgate_gateway_llm::{Carried, Payload};

use super::*;
use crate::wire::v3::body_mutation::Mutation;
use crate::wire::v3::processing_response::Response as Answer;
use crate::wire::v3::{
    BodyMutation, CommonResponse, HeaderMap as SentHeaders, HeaderValue as SentValue, HttpTrailers,
};

/// Time between two pieces of a request.
const PIECE_MAX: Duration = Duration::from_secs(30);

/// Time between two pieces of an answer.
const IDLE: Duration = Duration::from_secs(600);

/// Acts of a decider.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Does {
    /// Writes what passes in capitals.
    Capitals,
    /// Lets nobody in, and takes a second for it.
    Refuses,
    /// Hands on what passes as it comes.
    Passes,
    /// Breaks off its answer, which is in capitals.
    Cuts,
    /// Never answers.
    Hangs,
    /// Answers by itself where the provider has begun to.
    Replaces,
}

/// Decider that writes what passes in capitals, as the host and the provider never do, or does something else.
struct Capitals {
    does: Does,
    is_dropped: Arc<AtomicBool>,
    has_begun: Arc<Notify>,
}

/// Envoy's side of a stream.
struct Envoy {
    to: Option<mpsc::Sender<Result<ProcessingRequest, Status>>>,
    from: mpsc::Receiver<Result<ProcessingResponse, Status>>,
    is_dropped: Arc<AtomicBool>,
    has_begun: Arc<Notify>,
}

/// Says when it is dropped.
struct Dropped(Arc<AtomicBool>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Decide for Capitals {
    fn admit<'a>(
        &'a self,
        _path: ChatPath<'a>,
        _headers: &'a HeaderMap,
        _peer: IpAddr,
    ) -> BoxFuture<'a, Result<Caller, Box<Response>>> {
        Box::pin(async move {
            if self.does != Does::Refuses {
                return Ok(Caller { tenant: Arc::from("default"), is_operator: true });
            }
            sleep(Duration::from_secs(1)).await;
            let mut response = Response::new(Body::from("no key"));
            *response.status_mut() = StatusCode::UNAUTHORIZED;
            Err(Box::new(response))
        })
    }

    fn idle_timeout(&self) -> Duration {
        IDLE
    }

    fn answer<'a>(&'a self, chat: CarriedChat<'a>) -> BoxFuture<'a, Response> {
        Box::pin(async move {
            let _dropped = Dropped(Arc::clone(&self.is_dropped));
            self.has_begun.notify_one();
            if self.does == Does::Hangs {
                std::future::pending::<()>().await;
            }
            if self.does == Does::Passes {
                let pieces = chat.body.into_data_stream();
                let body =
                    Payload::Pieces(Box::pin(pieces.map(|piece| piece.map_err(io::Error::other))));
                let headers = chat.headers;
                let answer =
                    chat.carrier.carry(Carried { headers, body }).await.expect("an answer");
                return Response::new(Body::from_stream(answer.pieces));
            }
            let Ok(bytes) = timeout(PIECE_MAX, to_bytes(chat.body, 1 << 20)).await else {
                let mut response = Response::new(Body::from("late"));
                *response.status_mut() = StatusCode::REQUEST_TIMEOUT;
                return response;
            };
            let bytes = bytes.expect("a body");
            let mut headers = chat.headers;
            headers.insert("accept-encoding", HeaderValue::from_static("identity"));
            let body = Payload::Whole(bytes.to_ascii_uppercase().into());
            let answer = chat.carrier.carry(Carried { headers, body }).await.expect("an answer");
            if self.does == Does::Replaces {
                drop(answer.pieces);
                return Response::new(Body::from("own"));
            }
            let capitals = answer.pieces.map(|piece| piece.map(|bytes| bytes.to_ascii_uppercase()));
            let end = (self.does == Does::Cuts).then(|| Err(io::Error::other("cut")));
            let mut response = Response::new(Body::from_stream(capitals.chain(stream::iter(end))));
            *response.status_mut() = answer.status;
            *response.headers_mut() = answer.headers;
            response.headers_mut().insert("x-toolgate", HeaderValue::from_static("capitals"));
            response
        })
    }
}

fn capitals() -> Capitals {
    that(Does::Capitals)
}

fn that(does: Does) -> Capitals {
    Capitals { does, is_dropped: Arc::default(), has_begun: Arc::default() }
}

fn sent_headers(pairs: &[(&str, &str)]) -> SentHeaders {
    let value = |(name, value): &(&str, &str)| SentValue {
        key: (*name).to_owned(),
        value: String::new(),
        raw_value: Bytes::copy_from_slice(value.as_bytes()),
    };
    SentHeaders { headers: pairs.iter().map(value).collect() }
}

fn body(text: &str, end_of_stream: bool) -> HttpBody {
    HttpBody { body: Bytes::copy_from_slice(text.as_bytes()), end_of_stream }
}

impl Envoy {
    fn new(decider: Capitals) -> Self {
        let (to, inbound) = mpsc::channel(16);
        let (out, from) = mpsc::channel(16);
        let is_dropped = Arc::clone(&decider.is_dropped);
        let has_begun = Arc::clone(&decider.has_begun);
        tokio::spawn(async move {
            let peer = Ipv4Addr::LOCALHOST.into();
            process(&decider, peer, ReceiverStream::new(inbound), out).await;
        });
        Self { to: Some(to), from, is_dropped, has_begun }
    }

    async fn send(&self, request: Request) {
        let message = ProcessingRequest { request: Some(request), ..Default::default() };
        let to = self.to.as_ref().expect("an open stream");
        to.send(Ok(message)).await.expect("a stream");
    }

    /// Sends the head of a chat, or of another request.
    async fn open(&self, path: &str, modes: [BodySendMode; 2]) {
        let [request, response] = modes;
        let head = [
            (":method", "POST"),
            (":path", path),
            ("content-length", "4"),
            ("accept-encoding", "gzip"),
            ("x-toolgate-key", "k"),
        ];
        let headers = HttpHeaders { headers: Some(sent_headers(&head)), end_of_stream: false };
        let config = ProtocolConfiguration {
            request_body_mode: request.into(),
            response_body_mode: response.into(),
        };
        let message = ProcessingRequest {
            request: Some(Request::RequestHeaders(headers)),
            protocol_config: Some(config),
            ..Default::default()
        };
        let to = self.to.as_ref().expect("an open stream");
        to.send(Ok(message)).await.expect("a stream");
    }

    async fn answered(&self, end_of_stream: bool) {
        let head = [(":status", "200"), ("content-type", "text/plain")];
        let headers = Some(sent_headers(&head));
        self.send(Request::ResponseHeaders(HttpHeaders { headers, end_of_stream })).await;
    }

    async fn next(&mut self) -> Answer {
        let message = self.from.recv().await.expect("an answer").expect("no error");
        message.response.expect("a response")
    }

    /// Returns the pieces up to the end of a body, and true if there were no trailers.
    async fn pieces(&mut self) -> (String, bool) {
        let mut text = String::new();
        loop {
            let common = match self.next().await {
                Answer::RequestBody(body) | Answer::ResponseBody(body) => body.response,
                Answer::RequestTrailers(_) | Answer::ResponseTrailers(_) => return (text, false),
                other => panic!("{other:?}"),
            };
            let mutation = common.and_then(|common| common.body_mutation?.mutation);
            let Some(Mutation::StreamedResponse(piece)) = mutation else { panic!("{mutation:?}") };
            text.push_str(std::str::from_utf8(&piece.body).expect("a text"));
            if piece.end_of_stream {
                return (text, true);
            }
        }
    }

    async fn has_ended(&mut self) -> bool {
        self.from.recv().await.is_none()
    }
}

/// Returns the headers that are set, by name.
fn set(common: Option<CommonResponse>) -> Vec<(String, String)> {
    let mutation = common.and_then(|common| common.header_mutation).unwrap_or_default();
    let headers = mutation.set_headers.into_iter().filter_map(|one| one.header);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    headers.map(|header| (header.key, text(&header.raw_value))).collect()
}

fn pair(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

const DUPLEX: [BodySendMode; 2] = [BodySendMode::FullDuplexStreamed; 2];
const BUFFERED: [BodySendMode; 2] = [BodySendMode::Buffered; 2];
const NONE: [BodySendMode; 2] = [BodySendMode::None; 2];
const CHAT: &str = "/v1/messages?beta=true";

#[tokio::test]
async fn bodies_go_through_in_pieces() {
    let mut envoy = Envoy::new(capitals());
    envoy.open(CHAT, DUPLEX).await;
    envoy.send(Request::RequestBody(body("ab", false))).await;
    envoy.send(Request::RequestBody(body("cde", true))).await;
    let Answer::RequestHeaders(head) = envoy.next().await else { panic!("no head") };
    let changed = [pair("content-length", "5"), pair("accept-encoding", "identity")];
    assert_eq!(set(head.response), changed);
    assert_eq!(envoy.pieces().await, ("ABCDE".to_owned(), true));
    envoy.answered(false).await;
    let Answer::ResponseHeaders(head) = envoy.next().await else { panic!("no head") };
    assert_eq!(set(head.response), [pair("x-toolgate", "capitals")]);
    envoy.send(Request::ResponseBody(body("x", false))).await;
    envoy.send(Request::ResponseBody(body("y", true))).await;
    assert_eq!(envoy.pieces().await, ("XY".to_owned(), true));
    assert!(envoy.has_ended().await);
}

#[tokio::test]
async fn trailers_end_bodies_too() {
    let mut envoy = Envoy::new(capitals());
    envoy.open(CHAT, DUPLEX).await;
    envoy.send(Request::RequestBody(body("ab", false))).await;
    envoy.send(Request::RequestTrailers(HttpTrailers {})).await;
    assert!(matches!(envoy.next().await, Answer::RequestHeaders(_)));
    assert_eq!(envoy.pieces().await, ("AB".to_owned(), false));
    envoy.answered(false).await;
    assert!(matches!(envoy.next().await, Answer::ResponseHeaders(_)));
    envoy.send(Request::ResponseBody(body("x", false))).await;
    envoy.send(Request::ResponseTrailers(HttpTrailers {})).await;
    assert_eq!(envoy.pieces().await, ("X".to_owned(), false));
}

#[tokio::test]
async fn trailers_in_the_place_of_a_whole_body_are_not_answered() {
    let mut envoy = Envoy::new(capitals());
    envoy.open(CHAT, BUFFERED).await;
    assert!(matches!(envoy.next().await, Answer::RequestHeaders(_)));
    envoy.send(Request::RequestTrailers(HttpTrailers {})).await;
    assert!(envoy.has_ended().await);
}

#[tokio::test]
async fn bodies_are_replaced_as_a_whole() {
    let mut envoy = Envoy::new(capitals());
    envoy.open(CHAT, BUFFERED).await;
    let Answer::RequestHeaders(head) = envoy.next().await else { panic!("no head") };
    assert_eq!(set(head.response), []);
    envoy.send(Request::RequestBody(body("abcd", true))).await;
    let Answer::RequestBody(whole) = envoy.next().await else { panic!("no body") };
    let common = whole.response.expect("changes");
    let replaced = BodyMutation { mutation: Some(Mutation::Body(Bytes::from_static(b"ABCD"))) };
    assert_eq!(common.body_mutation, Some(replaced));
    assert_eq!(set(Some(common)), [pair("accept-encoding", "identity")]);
    envoy.answered(false).await;
    let Answer::ResponseHeaders(head) = envoy.next().await else { panic!("no head") };
    assert_eq!(set(head.response), []);
    envoy.send(Request::ResponseBody(body("xy", true))).await;
    let Answer::ResponseBody(whole) = envoy.next().await else { panic!("no body") };
    let common = whole.response.expect("changes");
    let replaced = BodyMutation { mutation: Some(Mutation::Body(Bytes::from_static(b"XY"))) };
    assert_eq!(common.body_mutation, Some(replaced));
    let changed = [pair("x-toolgate", "capitals"), pair("content-length", "2")];
    assert_eq!(set(Some(common)), changed);
    assert!(envoy.has_ended().await);
}

#[tokio::test]
async fn a_body_that_stays_is_not_sent_back() {
    let mut envoy = Envoy::new(capitals());
    envoy.open(CHAT, BUFFERED).await;
    assert!(matches!(envoy.next().await, Answer::RequestHeaders(_)));
    envoy.send(Request::RequestBody(body("ABCD", true))).await;
    let Answer::RequestBody(whole) = envoy.next().await else { panic!("no body") };
    assert_eq!(whole.response.expect("changes").body_mutation, None);
}

#[tokio::test]
async fn a_body_is_not_answered_before_it_came() {
    let mut envoy = Envoy::new(that(Does::Passes));
    envoy.open(CHAT, NONE).await;
    assert!(matches!(envoy.next().await, Answer::RequestHeaders(_)));
    tokio::task::yield_now().await;
    assert!(envoy.from.try_recv().is_err(), "nothing came");
    envoy.send(Request::RequestBody(body("ab", true))).await;
    let Answer::RequestBody(whole) = envoy.next().await else { panic!("no body") };
    assert_eq!(whole.response.expect("changes").body_mutation, None);
}

#[tokio::test]
async fn bodies_are_asked_for_where_envoy_sends_none() {
    let mut envoy = Envoy::new(capitals());
    envoy.open(CHAT, NONE).await;
    let message = envoy.from.recv().await.expect("an answer").expect("no error");
    let mode = message.mode_override.expect("another mode");
    assert_eq!(mode.request_body_mode(), BodySendMode::BufferedPartial);
    assert_eq!(mode.response_body_mode(), BodySendMode::FullDuplexStreamed);
    envoy.send(Request::RequestBody(body("ab", true))).await;
    assert!(matches!(envoy.next().await, Answer::RequestBody(_)));
    envoy.answered(false).await;
    assert!(matches!(envoy.next().await, Answer::ResponseHeaders(_)));
    envoy.send(Request::ResponseBody(body("x", true))).await;
    assert_eq!(envoy.pieces().await, ("X".to_owned(), true));
}

#[tokio::test]
async fn other_requests_go_on_by_themselves() {
    for modes in [NONE, BUFFERED] {
        let mut envoy = Envoy::new(capitals());
        envoy.open("/v1/models", modes).await;
        assert!(envoy.has_ended().await);
    }
    let mut envoy = Envoy::new(capitals());
    envoy.open("/v1/models", DUPLEX).await;
    envoy.send(Request::RequestBody(body("ab", true))).await;
    let Answer::RequestHeaders(head) = envoy.next().await else { panic!("no head") };
    assert_eq!(set(head.response), []);
    assert_eq!(envoy.pieces().await, ("ab".to_owned(), true));
    envoy.answered(false).await;
    assert!(matches!(envoy.next().await, Answer::ResponseHeaders(_)));
    envoy.send(Request::ResponseBody(body("x", true))).await;
    assert_eq!(envoy.pieces().await, ("x".to_owned(), true));
}

#[tokio::test]
async fn bodies_that_envoy_can_not_hold_go_on_as_they_came() {
    let mut envoy = Envoy::new(capitals());
    envoy.open(CHAT, NONE).await;
    let Answer::RequestHeaders(head) = envoy.next().await else { panic!("no head") };
    let changes = head.response.and_then(|common| common.header_mutation).expect("changes");
    assert_eq!(changes.remove_headers, ["x-toolgate-key"]);
    envoy.send(Request::RequestBody(body("ab", false))).await;
    let Answer::RequestBody(part) = envoy.next().await else { panic!("no body") };
    assert_eq!(part.response, Some(CommonResponse::default()));
    assert!(envoy.has_ended().await);
}

#[tokio::test]
async fn modes_in_which_nothing_can_be_changed_are_left_alone() {
    for modes in [
        [BodySendMode::Streamed; 2],
        [BodySendMode::Buffered, BodySendMode::None],
        [BodySendMode::Buffered, BodySendMode::BufferedPartial],
    ] {
        let mut envoy = Envoy::new(capitals());
        envoy.open(CHAT, modes).await;
        assert!(envoy.has_ended().await, "{modes:?}");
    }
}

#[tokio::test]
async fn an_answer_that_is_not_the_providers_is_handed_on() {
    let mut envoy = Envoy::new(that(Does::Hangs));
    envoy.open(CHAT, DUPLEX).await;
    envoy.answered(false).await;
    let Answer::ResponseHeaders(head) = envoy.next().await else { panic!("no head") };
    assert_eq!(set(head.response), []);
    envoy.send(Request::ResponseBody(body("x", true))).await;
    assert_eq!(envoy.pieces().await, ("x".to_owned(), true));
}

#[tokio::test]
async fn answers_without_a_body_have_their_headers_changed() {
    for modes in [DUPLEX, BUFFERED] {
        let mut envoy = Envoy::new(capitals());
        envoy.open(CHAT, modes).await;
        envoy.send(Request::RequestBody(body("ab", true))).await;
        assert!(matches!(envoy.next().await, Answer::RequestHeaders(_)));
        if modes == DUPLEX {
            envoy.pieces().await;
        } else {
            assert!(matches!(envoy.next().await, Answer::RequestBody(_)));
        }
        envoy.answered(true).await;
        let Answer::ResponseHeaders(head) = envoy.next().await else { panic!("no head") };
        assert_eq!(set(head.response), [pair("x-toolgate", "capitals")]);
        assert!(envoy.has_ended().await);
    }
}

#[tokio::test(start_paused = true)]
async fn who_is_not_let_in_is_answered_at_once() {
    for modes in [DUPLEX, BUFFERED, NONE] {
        let mut envoy = Envoy::new(that(Does::Refuses));
        envoy.open(CHAT, modes).await;
        // Also of a body that Envoy can't hold, nothing is taken before.
        envoy.send(Request::RequestBody(body("ab", false))).await;
        let Answer::ImmediateResponse(refused) = envoy.next().await else { panic!("no answer") };
        assert_eq!(refused.status.map(|status| status.code), Some(401));
        assert_eq!(refused.body, "no key");
    }
}

/// Returns Envoy's side once the request has gone on and the head of its answer has come back.
async fn with_head_answered(does: Does) -> Envoy {
    let mut envoy = Envoy::new(that(does));
    envoy.open(CHAT, DUPLEX).await;
    envoy.send(Request::RequestBody(body("ab", true))).await;
    assert!(matches!(envoy.next().await, Answer::RequestHeaders(_)));
    envoy.pieces().await;
    envoy.answered(false).await;
    assert!(matches!(envoy.next().await, Answer::ResponseHeaders(_)));
    envoy
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_cut_for_the_host() {
    let mut envoy = with_head_answered(Does::Cuts).await;
    envoy.send(Request::ResponseBody(body("x", true))).await;
    assert!(matches!(envoy.next().await, Answer::ResponseBody(_)));
    assert!(matches!(envoy.next().await, Answer::ImmediateResponse(_)));
}

#[tokio::test]
async fn an_exchange_ends_when_envoy_leaves() {
    let mut envoy = Envoy::new(that(Does::Hangs));
    envoy.open(CHAT, DUPLEX).await;
    envoy.has_begun.notified().await;
    envoy.to = None;
    assert!(envoy.has_ended().await);
    assert!(envoy.is_dropped.load(Ordering::Relaxed));
}

#[tokio::test(start_paused = true)]
async fn a_body_that_envoy_reads_for_long_is_not_late() {
    for modes in [BUFFERED, NONE] {
        let mut envoy = Envoy::new(capitals());
        envoy.open(CHAT, modes).await;
        assert!(matches!(envoy.next().await, Answer::RequestHeaders(_)));
        sleep(2 * PIECE_MAX).await;
        envoy.send(Request::RequestBody(body("ab", true))).await;
        let Answer::RequestBody(whole) = envoy.next().await else { panic!("no body") };
        let replaced = BodyMutation { mutation: Some(Mutation::Body(Bytes::from_static(b"AB"))) };
        assert_eq!(whole.response.expect("changes").body_mutation, Some(replaced));
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_whose_body_is_not_shown_waits_for_its_provider() {
    let mut envoy = Envoy::new(capitals());
    envoy.open(CHAT, NONE).await;
    assert!(matches!(envoy.next().await, Answer::RequestHeaders(_)));
    sleep(2 * PIECE_MAX).await;
    envoy.answered(false).await;
    let Answer::ResponseHeaders(head) = envoy.next().await else { panic!("no head") };
    assert_eq!(set(head.response), []);
}

#[tokio::test]
async fn a_whole_answer_is_not_replaced_before_it_came() {
    let mut envoy = Envoy::new(that(Does::Replaces));
    envoy.open(CHAT, BUFFERED).await;
    assert!(matches!(envoy.next().await, Answer::RequestHeaders(_)));
    envoy.send(Request::RequestBody(body("ab", true))).await;
    assert!(matches!(envoy.next().await, Answer::RequestBody(_)));
    envoy.answered(false).await;
    assert!(matches!(envoy.next().await, Answer::ResponseHeaders(_)));
    for _ in 0..9 {
        tokio::task::yield_now().await;
    }
    assert!(envoy.from.try_recv().is_err(), "nothing came");
    envoy.send(Request::ResponseBody(body("xy", true))).await;
    let Answer::ResponseBody(whole) = envoy.next().await else { panic!("no body") };
    let replaced = BodyMutation { mutation: Some(Mutation::Body(Bytes::from_static(b"own"))) };
    assert_eq!(whole.response.expect("changes").body_mutation, Some(replaced));
}

#[tokio::test]
async fn a_request_that_is_answered_early_does_not_end_as_if_it_were_whole() {
    let mut envoy = Envoy::new(that(Does::Passes));
    envoy.open(CHAT, DUPLEX).await;
    envoy.send(Request::RequestBody(body("ab", false))).await;
    assert!(matches!(envoy.next().await, Answer::RequestHeaders(_)));
    let Answer::RequestBody(_) = envoy.next().await else { panic!("no body") };
    envoy.answered(false).await;
    let answer = envoy.next().await;
    assert!(matches!(answer, Answer::ResponseHeaders(_)), "{answer:?}");
    envoy.send(Request::ResponseBody(body("x", true))).await;
    assert_eq!(envoy.pieces().await, ("x".to_owned(), true));
}

#[tokio::test]
async fn a_body_that_breaks_off_does_not_end_as_if_it_were_whole() {
    let (pieces, came) = mpsc::channel(1);
    let mut came = received(came, CancellationToken::new());
    pieces.send(Bytes::from_static(b"ab")).await.expect("a reader");
    drop(pieces);
    assert_eq!(came.next().await.expect("a piece").expect("no error"), "ab");
    assert!(came.next().await.expect("an end").is_err());
    assert!(came.next().await.is_none());
}

#[tokio::test]
async fn no_piece_of_another_answer_comes_before_one_of_envoys() {
    let mut envoy = with_head_answered(Does::Replaces).await;
    for _ in 0..9 {
        tokio::task::yield_now().await;
    }
    assert!(envoy.from.try_recv().is_err(), "nothing came");
    envoy.send(Request::ResponseBody(body("xy", true))).await;
    assert_eq!(envoy.pieces().await, ("own".to_owned(), true));
}

#[tokio::test(start_paused = true)]
async fn an_answer_whose_body_does_not_begin_is_cut() {
    let mut envoy = with_head_answered(Does::Replaces).await;
    let before = tokio::time::Instant::now();
    assert!(matches!(envoy.next().await, Answer::ImmediateResponse(_)));
    assert_eq!(before.elapsed(), IDLE);
}

#[tokio::test(start_paused = true)]
async fn an_answer_whose_end_does_not_come_is_cut() {
    for modes in [DUPLEX, BUFFERED] {
        let mut envoy = Envoy::new(that(Does::Replaces));
        envoy.open(CHAT, modes).await;
        envoy.send(Request::RequestBody(body("ab", true))).await;
        assert!(matches!(envoy.next().await, Answer::RequestHeaders(_)));
        assert!(matches!(envoy.next().await, Answer::RequestBody(_)));
        if modes == DUPLEX {
            assert!(matches!(envoy.next().await, Answer::RequestBody(_)));
        }
        envoy.answered(false).await;
        assert!(matches!(envoy.next().await, Answer::ResponseHeaders(_)));
        if modes == DUPLEX {
            envoy.send(Request::ResponseBody(body("x", false))).await;
            assert!(matches!(envoy.next().await, Answer::ResponseBody(_)));
        }
        let before = tokio::time::Instant::now();
        assert!(matches!(envoy.next().await, Answer::ImmediateResponse(_)));
        assert_eq!(before.elapsed(), IDLE);
        assert!(envoy.has_ended().await);
    }
}
