use std::collections::HashSet;
use std::convert::Infallible;
use std::future::{pending, poll_fn};

use bytes::Bytes;
use http_body::{Body, Frame};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tonic::codegen::http::header::AUTHORIZATION;
use tonic::codegen::http::{HeaderMap, StatusCode};
use tonic::{Code, Status};
use tonic_types::StatusExt as _;
use tower::{BoxError, ServiceExt as _, service_fn};

use super::body::{BodyTime, Timed};
use super::*;
use crate::refusal::BodyTooSlow;
use crate::{ConnectionLimits, Connections, transport};

const WITHIN: Duration = Duration::from_secs(30);

/// Body that yields the bytes sent into its channel.
struct Sent(mpsc::Receiver<Bytes>);

impl Body for Sent {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        self.0.poll_recv(cx).map(|piece| piece.map(|bytes| Ok(Frame::data(bytes))))
    }
}

fn request(path: &str, content: &str) -> Request<TonicBody> {
    let request = Request::builder().uri(path).header(CONTENT_TYPE, content);
    request.body(TonicBody::empty()).expect("a request")
}

#[tokio::test]
async fn one_beyond_is_refused_at_once_and_health_never() {
    let slow = service_fn(|request: Request<TonicBody>| async move {
        if request.uri().path().starts_with(HEALTH) {
            return Ok::<_, Infallible>(Response::new(TonicBody::empty()));
        }
        pending().await
    });
    let (refusals, mut refused_requests) = mpsc::channel(8);
    let pace = BodyPace::within(WITHIN);
    let bounds = BoundRequests::new(1, pace, move |refused| {
        let RefusedRequest { path, is_known, reason, .. } = *refused;
        refusals.try_send((path.to_owned(), is_known, reason)).expect("room");
    });
    let service = bounds.layer(slow);
    let under_way = tokio::spawn(service.clone().oneshot(request("/a", "application/grpc")));
    tokio::task::yield_now().await;
    let call = |path, content| service.clone().oneshot(request(path, content));
    let refused = call("/a", "application/grpc").await.expect("an answer");
    let status = Status::from_header_map(refused.headers()).expect("a status");
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert!(status.get_details_retry_info().is_some());
    let refused = call("/a", "application/json").await.expect("an answer");
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert!(call("/grpc.health.v1.Health/Check", "application/grpc").await.is_ok());
    let refusal = Ok(("/a".to_owned(), false, RequestRefusal::Full));
    let mut observed = || refused_requests.try_recv();
    assert_eq!([observed(), observed()], [refusal.clone(), refusal]);
    assert!(observed().is_err());
    under_way.abort();
    assert!(under_way.await.is_err());
    assert_eq!(bounds.places.free(), 1, "the place is free again");
}

fn timed(pace: BodyPace) -> (mpsc::Sender<Bytes>, Pin<Box<Timed<Sent>>>) {
    let (sender, receiver) = mpsc::channel(8);
    (sender, Box::pin(Timed::new(Sent(receiver), pace, BodyTime::new(pace.within))))
}

async fn next<B>(body: &mut Pin<Box<Timed<B>>>) -> Result<Bytes, BoxError>
where
    B: Body<Data = Bytes, Error = Status> + Unpin,
{
    let frame = poll_fn(|cx| body.as_mut().poll_frame(cx)).await.expect("more to come, or an end");
    frame.map(|frame| frame.into_data().expect("data"))
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_come_on_is_given_up() {
    let pace = BodyPace::within(WITHIN);
    for sent in ["", "a little"] {
        let (sender, mut body) = timed(pace);
        if !sent.is_empty() {
            sender.send(Bytes::from(sent)).await.expect("it is read");
            assert!(next(&mut body).await.is_ok());
        }
        let error = next(&mut body).await.expect_err("it is too slow");
        assert!(error.is::<BodyTooSlow>(), "{error}");
        // A peer that continues to send does not escape.
        sender.send(Bytes::from_static(b"more")).await.expect("it is there");
        assert!(next(&mut body).await.is_err());
    }
}

#[tokio::test]
async fn bytes_that_were_read_ahead_are_read_again_in_order() {
    let (sender, mut body) = timed(BodyPace::within(WITHIN));
    assert!(body.read_ahead().is_empty(), "nothing has come");
    sender.send(Bytes::from_static(b"first")).await.expect("room");
    sender.send(Bytes::from_static(b"second")).await.expect("room");
    for _ in 0..2 {
        assert_eq!(body.read_ahead(), b"first");
    }
    assert_eq!(body.size_hint().lower(), 5);
    assert_eq!(next(&mut body).await.expect("data"), "first");
    assert_eq!(next(&mut body).await.expect("data"), "second");
    drop(sender);
    assert!(body.read_ahead().is_empty(), "it has ended");
    assert!(poll_fn(|cx| body.as_mut().poll_frame(cx)).await.is_none());
}

#[tokio::test]
async fn an_error_that_was_read_ahead_is_not_lost() {
    let broken = http_body_util::StreamBody::new(tokio_stream::iter([Err::<Frame<Bytes>, _>(
        Status::aborted("broken"),
    )]));
    let pace = BodyPace::within(WITHIN);
    let mut body = Box::pin(Timed::new(broken, pace, BodyTime::new(WITHIN)));
    assert!(body.read_ahead().is_empty());
    let error = next(&mut body).await.expect_err("broken");
    let status = error.downcast_ref::<Status>().expect("the body's own error");
    assert_eq!(status.code(), Code::Aborted);
}

#[tokio::test(start_paused = true)]
async fn a_body_gets_more_time_once_it_is_raised() {
    let steady = Bytes::from(vec![0; 8 << 10]);
    for (raised, expected) in [(None, 30), (Some(Duration::from_secs(60)), 60)] {
        let (sender, receiver) = mpsc::channel(8);
        let within = BodyTime::new(WITHIN);
        let mut body =
            Box::pin(Timed::new(Sent(receiver), BodyPace::within(WITHIN), within.clone()));
        let begun = tokio::time::Instant::now();
        let mut seconds = 0;
        let ended = loop {
            sender.send(steady.clone()).await.expect("it is read");
            if let Err(error) = next(&mut body).await {
                break error;
            }
            if let Some(raised) = raised {
                within.raise(raised);
            }
            // Less is no limit.
            within.raise(Duration::ZERO);
            seconds += 1;
            let at = begun + Duration::from_secs(seconds);
            assert!(
                timeout(at - tokio::time::Instant::now(), next(&mut body))
                    .await
                    .map_or(true, |early| early.is_err())
            );
        };
        assert!(ended.is::<BodyTooSlow>());
        assert_eq!(begun.elapsed().as_secs(), expected, "raised to {raised:?}");
    }
}

#[test]
fn a_byte_a_second_is_no_progress_and_a_bad_line_is() {
    let pace = BodyPace::within(WITHIN);
    for (bytes_per_second, expected) in [(0, 5), (1, 6), (8 << 10, 30)] {
        let is_over = |second: &usize| {
            pace.allowed(second * bytes_per_second) <= Duration::from_secs(*second as u64)
        };
        assert_eq!((1..=60).find(is_over), Some(expected), "{bytes_per_second} bytes a second");
    }
}

type Client = h2::client::SendRequest<Bytes>;

async fn connect(address: std::net::SocketAddr) -> Client {
    let stream = TcpStream::connect(address).await.expect("it listens");
    let (client, connection) = h2::client::handshake(stream).await.expect("HTTP/2");
    tokio::spawn(async { drop(connection.await) });
    client
}

type Begun = (h2::client::ResponseFuture, h2::SendStream<Bytes>);

async fn begin(client: &mut Client) -> Begun {
    let request = Request::builder().method("POST").uri("http://x/a");
    let request = request.header(CONTENT_TYPE, "application/grpc").body(()).expect("a request");
    let mut client = client.clone().ready().await.expect("a stream");
    client.send_request(request, false).expect("it is sent")
}

#[tokio::test]
async fn requests_without_bodies_leave_places_for_the_calls_of_others() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound");
    let places = 20;
    let pace = BodyPace { grace: Duration::from_secs(600), ..BodyPace::within(10 * WITHIN) };
    let bounds = BoundRequests::new(places, pace, |_| {});
    let shares = bounds.places.clone();
    // Reads its request and answers with an empty body.
    let whole = service_fn(|request: Request<TonicBody>| async move {
        drop(http_body_util::BodyExt::collect(request.into_body()).await);
        Ok::<_, Infallible>(Response::new(TonicBody::empty()))
    });
    let incoming = Connections::new(listener, ConnectionLimits::of(8), |_| {});
    tokio::spawn(transport().layer(bounds).serve_with_incoming(whole, incoming));
    let mut greedy = [connect(address).await, connect(address).await];
    let mut held = Vec::new();
    let mut refused = 0;
    for _ in 0..places {
        for client in &mut greedy {
            let free = shares.free();
            let (mut answer, body) = begin(client).await;
            // The request either takes a place or is refused.
            let is_refused = loop {
                if timeout(Duration::from_millis(1), &mut answer).await.is_ok() {
                    break true;
                }
                if shares.free() < free {
                    break false;
                }
            };
            refused += usize::from(is_refused);
            held.push((answer, body));
        }
    }
    let free = shares.free();
    assert!(free >= 1 && refused == 2 * places - (places - free), "{refused} refused, {free} free");
    let mut victim = connect(address).await;
    let mut statuses = HashSet::new();
    for _ in 0..100 {
        let (answer, mut body) = begin(&mut victim).await;
        body.send_data(Bytes::new(), true).expect("it is sent");
        let answer = timeout(WITHIN, answer).await.expect("in time").expect("an answer");
        statuses.insert(Status::from_header_map(answer.headers()).map(|status| status.code()));
    }
    assert_eq!(statuses, HashSet::from([None]), "nobody else is refused");
}

/// Returns what the layer is told of a call over a connection on which `accepted` was accepted last: the scope of its
/// credential and its first bytes. The call carries `sent` as its credential, and this body.
async fn incoming_call(
    accepted: Option<(&'static str, Option<&'static str>)>,
    sent: &str,
    body: &'static [u8],
) -> (Option<CredentialScope>, Vec<u8>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound");
    let (tell, told) = std::sync::mpsc::channel();
    let bounds = BoundRequests::new(8, BodyPace::within(WITHIN), |_| {}).asking(move |request| {
        if matches!(request.stage, Stage::Came { .. }) {
            let told = (request.scope.cloned(), request.first_bytes.to_vec());
            tell.send(told).expect("somebody listens");
        }
        Ok(())
    });
    // Accepts the credential, as a guard does, and answers with an empty body.
    let accept = service_fn(move |request: Request<TonicBody>| async move {
        let peer = request.extensions().get::<Peer>().cloned().expect("a connection");
        if let Some((credential, tenant)) = accepted {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, HeaderValue::from_static(credential));
            peer.accept(&headers, tenant);
        }
        Ok::<_, Infallible>(Response::new(TonicBody::empty()))
    });
    let incoming = Connections::new(listener, ConnectionLimits::of(8), |_| {});
    tokio::spawn(transport().layer(bounds).serve_with_incoming(accept, incoming));
    let mut client = connect(address).await;
    for _ in 0..2 {
        let request = Request::builder().method("POST").uri("http://x/a");
        let request = request.header(CONTENT_TYPE, "application/grpc");
        let request = request.header(AUTHORIZATION, sent).body(()).expect("a request");
        let mut ready = client.clone().ready().await.expect("a stream");
        let (answer, mut sends) = ready.send_request(request, false).expect("it is sent");
        sends.send_data(Bytes::from_static(body), true).expect("it is sent");
        timeout(WITHIN, answer).await.expect("in time").expect("an answer");
        client = ready;
    }
    told.try_iter().last().expect("two calls came")
}

#[tokio::test]
async fn the_door_knows_only_credentials_that_were_accepted_on_the_connection() {
    let of_acme = Some(CredentialScope::Tenant("acme".into()));
    for (accepted, sent, scope) in [
        (None, "Bearer a", None),
        (Some(("Bearer a", Some("acme"))), "Bearer a", of_acme),
        (Some(("Bearer a", Some("acme"))), "Bearer b", None),
        (Some(("Bearer a", None)), "Bearer a", Some(CredentialScope::AnyTenant)),
    ] {
        assert_eq!(incoming_call(accepted, sent, b"").await.0, scope, "{accepted:?} {sent}");
    }
}

#[tokio::test]
async fn the_door_sees_the_first_bytes_of_a_call() {
    // They may come after the head, now and then.
    for _ in 0..100 {
        if incoming_call(None, "Bearer a", b"hello").await.1 == b"hello" {
            return;
        }
    }
    panic!("no call was seen with its first bytes");
}

#[tokio::test]
async fn who_comes_too_late_or_has_waited_too_long_is_told_so() {
    let answer = service_fn(|_: Request<TonicBody>| async {
        Ok::<_, Infallible>(Response::new(TonicBody::empty()))
    });
    for (refusal, code) in [
        (RequestRefusal::Late, Code::DeadlineExceeded),
        (RequestRefusal::Waited, Code::ResourceExhausted),
        (RequestRefusal::TenantFull, Code::ResourceExhausted),
    ] {
        let bounds = BoundRequests::new(8, BodyPace::within(WITHIN), |_| {});
        let bounds = bounds.asking(move |request| match request.asked {
            Some(asked) if asked < WITHIN => Err(refusal),
            _ => Ok(()),
        });
        let service = bounds.layer(answer);
        let call = |timeout: &str| {
            let mut request = request("/a", "application/grpc");
            request.headers_mut().insert("grpc-timeout", timeout.parse().expect("a header"));
            service.clone().oneshot(request)
        };
        let refused = call("1S").await.expect("an answer");
        let status = Status::from_header_map(refused.headers()).expect("a status");
        assert_eq!(status.code(), code);
        let answered = call("60S").await.expect("an answer");
        assert!(Status::from_header_map(answered.headers()).is_none());
    }
}

/// Returns a service that answers with an empty body, and the stages passed to its admission callback.
fn in_turns(
    let_in: impl Fn(Stage) -> Result<(), RequestRefusal> + Send + Sync + 'static,
) -> (impl FnMut(&str) -> Answer, std::sync::mpsc::Receiver<(String, Stage)>) {
    let (tell, told) = std::sync::mpsc::channel();
    let bounds = BoundRequests::new(8, BodyPace::within(WITHIN), |_| {}).in_turns(1);
    let bounds = bounds.asking(move |request| {
        tell.send((request.path.to_owned(), request.stage)).expect("somebody listens");
        let_in(request.stage)
    });
    let answer = service_fn(|_: Request<TonicBody>| async {
        Ok::<_, Infallible>(Response::new(TonicBody::empty()))
    });
    let mut service = bounds.layer(answer);
    (move |path: &str| service.call(request(path, "application/grpc")), told)
}

type Answer = Pin<Box<dyn Future<Output = Result<Response<TonicBody>, Infallible>> + Send>>;

#[tokio::test]
async fn who_would_wait_too_long_is_refused_while_another_has_the_turn() {
    let (mut call, _told) = in_turns(|stage| match stage {
        Stage::Came { queue } if !queue.is_zero() => Err(RequestRefusal::Waited),
        _ => Ok(()),
    });
    let has_the_turn = call("/a");
    let begun = Instant::now();
    let waits = call("/b");
    while begun.elapsed().is_zero() {
        std::hint::spin_loop();
    }
    let mut refused = call("/c");
    let Poll::Ready(refused) = poll_fn(|cx| Poll::Ready(refused.as_mut().poll(cx))).await else {
        panic!("it waits");
    };
    let refused = refused.expect("an answer");
    let status = Status::from_header_map(refused.headers()).expect("a status");
    assert_eq!(status.code(), Code::ResourceExhausted);
    for answer in [has_the_turn, waits] {
        let answer = answer.await.expect("an answer");
        assert!(Status::from_header_map(answer.headers()).is_none());
    }
}

#[tokio::test]
async fn what_came_meanwhile_is_asked_before_the_one_that_has_its_turn_begins() {
    let (mut call, told) = in_turns(|_| Ok(()));
    let first = tokio::spawn(call("/a"));
    let second = tokio::spawn(async move { call("/b").await });
    assert!(first.await.is_ok() && second.await.is_ok());
    let begins = |path: &str| (path.to_owned(), Stage::Begins);
    let asked: Vec<_> = told.try_iter().collect();
    assert_eq!(asked[2..], [begins("/a"), begins("/b")], "{asked:?}");
}
