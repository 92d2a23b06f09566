use std::convert::Infallible;
use std::future::{pending, poll_fn};

use tokio::sync::mpsc;
use tonic::codegen::http::StatusCode;
use tower::{ServiceExt as _, service_fn};

use super::*;

const WITHIN: Duration = Duration::from_secs(30);

/// A body that yields what it is sent.
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
    let (refusals, mut told) = mpsc::channel(8);
    let door = BoundRequests::new(1, WITHIN, move || refusals.try_send(()).expect("room"));
    let service = door.layer(slow);
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
    assert!(told.try_recv().is_ok() && told.try_recv().is_ok() && told.try_recv().is_err());
    under_way.abort();
    assert!(under_way.await.is_err());
    assert_eq!(door.places.available_permits(), 1, "the place is free again");
}

#[tokio::test]
async fn a_body_that_does_not_end_is_given_up() {
    let within = Duration::from_millis(100);
    let (sender, receiver) = mpsc::channel(8);
    let begun = Instant::now();
    let mut body = Box::pin(Timed::new(TonicBody::new(Sent(receiver)), within));
    sender.send(Bytes::from_static(b"a little")).await.expect("it is read");
    let frame = poll_fn(|cx| body.as_mut().poll_frame(cx)).await.expect("more to come");
    assert!(frame.is_ok());
    let end = poll_fn(|cx| body.as_mut().poll_frame(cx)).await.expect("an end");
    let status = end.expect_err("it is too slow");
    assert_eq!(status.code(), Code::DeadlineExceeded);
    assert!(begun.elapsed() >= within);
    // Who goes on sending does not escape it.
    sender.send(Bytes::from_static(b"more")).await.expect("it is there");
    assert!(poll_fn(|cx| body.as_mut().poll_frame(cx)).await.expect("an end").is_err());
}
