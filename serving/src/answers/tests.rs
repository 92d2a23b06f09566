//! Tests against a raw HTTP/2 client, which controls what it reads.

use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};

use h2::client::{ResponseFuture, SendRequest};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep, timeout};
use tonic::body::Body as TonicBody;
use tower::service_fn;

use tonic::codegen::http::HeaderMap;
use tonic::codegen::http::header::{self, HeaderValue};
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use super::*;
use crate::{BodyPace, BoundRequests, ConnectionLimits, Connections, transport};

/// Bytes of each answer: several pieces, the last of them partial.
const ANSWER: usize = 100_000;
const BUDGET: usize = 1 << 20;
const LONG: Duration = Duration::from_secs(60);

struct Served {
    address: std::net::SocketAddr,
    budget: Arc<ResponseBudget>,
    refused: Arc<AtomicUsize>,
}

/// Starts a server whose every answer has `ANSWER` bytes and counts for the tenant that the path names.
async fn start(read_timeout: Duration) -> Served {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound");
    let refused = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&refused);
    let layer = BoundAnswers::with_read_timeout(read_timeout, BUDGET, move || {
        count.fetch_add(1, Ordering::Relaxed);
    });
    let budget = Arc::clone(&layer.budget);
    let answer = service_fn(|request: Request<TonicBody>| async move {
        let tenant = request.uri().path().trim_start_matches('/');
        if !tenant.is_empty() {
            request.extensions().get::<RequestOwner>().expect("it came in").name(tenant);
        }
        let whole = http_body_util::Full::new(Bytes::from(vec![7; ANSWER]));
        Ok::<_, Infallible>(Response::new(TonicBody::new(whole)))
    });
    let incoming = Connections::new(listener, ConnectionLimits::of(8), |_| {});
    let bounds = BoundRequests::new(1_000, BodyPace::within(LONG), |_| {});
    tokio::spawn(transport().layer(bounds).layer(layer).serve_with_incoming(answer, incoming));
    Served { address, budget, refused }
}

struct Peer {
    requests: SendRequest<Bytes>,
    /// Task that runs until the connection is closed.
    connection: tokio::task::JoinHandle<()>,
}

impl Served {
    /// Connects a peer that grants each stream a window of `window` bytes.
    async fn peer(&self, window: u32) -> Peer {
        let stream = TcpStream::connect(self.address).await.expect("it listens");
        let mut builder = h2::client::Builder::new();
        builder.initial_window_size(window).initial_connection_window_size(1 << 30);
        let (requests, connection) = builder.handshake(stream).await.expect("HTTP/2");
        // Pings are answered, as an attacker would.
        let connection = tokio::spawn(async { drop(connection.await) });
        Peer { requests, connection }
    }

    async fn wait_until_free(&self) {
        let started = Instant::now();
        while self.budget.free() < BUDGET {
            assert!(started.elapsed() < LONG, "{} bytes of {BUDGET} are free", self.budget.free());
            sleep(Duration::from_millis(10)).await;
        }
    }
}

impl Peer {
    async fn call(&mut self) -> ResponseFuture {
        self.call_of("").await
    }

    /// Makes a call for that tenant; for no tenant if empty.
    async fn call_of(&mut self, tenant: &str) -> ResponseFuture {
        let mut requests = self.requests.clone().ready().await.expect("a stream");
        let request = Request::builder()
            .method("POST")
            .uri(format!("http://x/{tenant}"))
            .header("content-type", "application/grpc")
            .body(())
            .expect("good");
        requests.send_request(request, true).expect("it is sent").0
    }
}

/// Returns the status among the headers of an answer, and its body.
async fn head(answer: ResponseFuture) -> (Option<Status>, h2::RecvStream) {
    let answer = timeout(LONG, answer).await.expect("in time").expect("an answer");
    (Status::from_header_map(answer.headers()), answer.into_body())
}

#[tokio::test]
async fn answers_beyond_the_room_are_refused_at_once_and_those_within_are_not() {
    let served = start(LONG).await;
    let mut open = Vec::new();
    let mut refused = 0;
    let mut greedy = served.peer(0).await;
    for _ in 0..20 {
        let (status, body) = head(greedy.call().await).await;
        if let Some(status) = status {
            assert_eq!(status.code(), Code::ResourceExhausted);
            let info = status.get_details_error_info().expect("a reason");
            assert_eq!(info.reason, "OVERLOADED");
            refused += 1;
        } else {
            open.push(body);
        }
    }
    let fit = BUDGET / (ANSWER + (16 << 10));
    assert!((fit / 2..fit).contains(&open.len()), "{} of {fit}", open.len());
    assert_eq!((refused, served.refused.load(Ordering::Relaxed)), (20 - open.len(), refused));
    // The remaining room is for others, whether they read or not.
    let mut other = served.peer(0).await;
    let (status, body) = head(other.call().await).await;
    assert!(status.is_none(), "{status:?}");
    drop((open, greedy, body, other));
    served.wait_until_free().await;
}

#[tokio::test]
async fn a_tenant_has_its_share_of_the_room_over_all_its_connections() {
    let served = start(LONG).await;
    let mut first = served.peer(0).await;
    let mut open = Vec::new();
    loop {
        let (status, body) = head(first.call_of("greedy").await).await;
        if status.is_some() {
            break;
        }
        open.push(body);
    }
    let mut second = served.peer(0).await;
    let (status, _) = head(second.call_of("greedy").await).await;
    assert_eq!(status.expect("a refusal").code(), Code::ResourceExhausted);
    let (status, _body) = head(second.call_of("modest").await).await;
    assert!(status.is_none(), "{status:?}");
}

#[tokio::test]
async fn what_nobody_takes_is_thrown_away_and_its_connection_closed() {
    let read_timeout = Duration::from_secs(3);
    // The client reads nothing, or only a little, of each answer.
    for window in [0, 1, 20_000] {
        let served = start(read_timeout).await;
        let mut peer = served.peer(window).await;
        let started = Instant::now();
        let mut open = Vec::new();
        for _ in 0..5 {
            open.push(head(peer.call().await).await.1);
        }
        let held = BUDGET - served.budget.free();
        assert!(held > 5 * (ANSWER - window as usize), "{held}");
        while BUDGET - served.budget.free() > held / 2 {
            assert!(!peer.connection.is_finished(), "closed before anything was thrown away");
            sleep(Duration::from_millis(10)).await;
        }
        assert!(started.elapsed() > read_timeout / 2);
        timeout(LONG, peer.connection).await.expect("closed").expect("no panic");
        assert!(started.elapsed() > read_timeout);
        served.wait_until_free().await;
    }
}

#[tokio::test]
async fn who_reads_again_hears_that_the_answer_is_gone() {
    let read_timeout = Duration::from_secs(5);
    let served = start(read_timeout).await;
    let mut peer = served.peer(20_000).await;
    let (_, mut body) = head(peer.call().await).await;
    let held = BUDGET - served.budget.free();
    while BUDGET - served.budget.free() > held / 2 {
        sleep(Duration::from_millis(10)).await;
    }
    let mut bytes = 0;
    while let Some(data) = body.data().await {
        let length = data.expect("the stream goes on").len();
        bytes += length;
        body.flow_control().release_capacity(length).expect("it was taken");
    }
    assert!(bytes < ANSWER, "{bytes}");
    let trailers = body.trailers().await.expect("the stream ends well").expect("trailers");
    let status = Status::from_header_map(&trailers).expect("a status");
    assert_eq!(status.code(), Code::ResourceExhausted);
    served.wait_until_free().await;
    assert_eq!(head(peer.call().await).await.0.map(|status| status.code()), None);
}

#[tokio::test]
async fn who_reads_slowly_gets_the_whole_answer() {
    let read_timeout = Duration::from_secs(3);
    let served = start(read_timeout).await;
    let mut peer = served.peer(10_000).await;
    let (_, mut body) = head(peer.call().await).await;
    let started = Instant::now();
    let mut bytes = 0;
    while let Some(data) = body.data().await {
        let data = data.expect("it is there");
        assert!(data.iter().all(|byte| *byte == 7));
        bytes += data.len();
        // Each piece takes a little more than a third of the time allowed for it.
        let due = read_timeout.mul_f64(bytes as f64 / 50_000.0);
        sleep(due.saturating_sub(started.elapsed())).await;
        body.flow_control().release_capacity(data.len()).expect("it was taken");
    }
    assert_eq!(bytes, ANSWER);
    assert!(started.elapsed() > read_timeout * 3 / 2, "it was read slowly");
    served.wait_until_free().await;
}

#[test]
fn who_is_refused_understands_it() {
    let refused = |content: Option<&'static str>| {
        let meant = HeaderMap::from_iter([(
            header::ACCESS_CONTROL_ALLOW_ORIGIN,
            HeaderValue::from_static("https://a"),
        )]);
        let response: Response<()> = grpc::answer_in_place_of(
            Refusal::AnswersUnread,
            &meant,
            content.map(HeaderValue::from_static),
        );
        assert!(response.headers().contains_key(header::ACCESS_CONTROL_ALLOW_ORIGIN));
        let content = response.headers().get(CONTENT_TYPE).cloned();
        (response.status().as_u16(), content, response.headers().contains_key("grpc-status"))
    };
    for grpc in ["application/grpc", "application/grpc-web+proto"] {
        assert_eq!(refused(Some(grpc)), (200, Some(HeaderValue::from_static(grpc)), true));
    }
    assert_eq!(refused(Some("application/json")), (429, None, false));
    assert_eq!(refused(None), (429, None, false));
}
