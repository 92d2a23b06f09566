//! A peer whose error details can't be decoded.

use std::convert::Infallible;

use http_body_util::{BodyExt as _, Empty};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::body::Body;
use tonic::codegen::{Bytes, http};
use tonic::transport::Server;
use tonic::{Code, Status};
use toolgate_client::{Client, Error};

use crate::fake::Script;
use crate::{connect, options, route};

/// Builds an answer with details that are not base64, in the trailers or in an answer without a body.
fn garbled(in_trailers: bool) -> http::Response<Body> {
    let mut answer = http::Response::new(Body::empty());
    let mut end = http::HeaderMap::new();
    for (name, value) in
        [("grpc-status", "9"), ("grpc-message", "no"), ("grpc-status-details-bin", "%%%")]
    {
        end.insert(name, http::HeaderValue::from_static(value));
    }
    if in_trailers {
        let body = Empty::<Bytes>::new().with_trailers(async { Some(Ok(end)) });
        *answer.body_mut() = Body::new(body);
    } else {
        *answer.headers_mut() = end;
    }
    let grpc = http::HeaderValue::from_static("application/grpc");
    answer.headers_mut().insert(http::header::CONTENT_TYPE, grpc);
    answer
}

async fn garbling(in_trailers: bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let target = listener.local_addr().expect("an address").to_string();
    let answer = tower::service_fn(move |_: http::Request<Body>| async move {
        Ok::<_, Infallible>(garbled(in_trailers))
    });
    let incoming = TcpListenerStream::new(listener);
    tokio::spawn(Server::builder().serve_with_incoming(answer, incoming));
    target
}

fn check(error: &Error) {
    let call = error.answer().expect("an answer");
    assert_eq!((call.code, call.message.as_str()), (Code::FailedPrecondition, "no"));
    assert_eq!((call.reason, call.reason_name.as_str()), (None, ""));
}

#[tokio::test]
async fn details_that_are_not_base64_are_left_away() {
    for in_trailers in [false, true] {
        let client = Client::lazy(&garbling(in_trailers).await, options()).expect("an address");
        check(&route(&client).await.expect_err("refused"));
    }
}

#[tokio::test]
async fn details_that_are_no_message_are_left_away() {
    let garbled = Status::with_details(Code::FailedPrecondition, "no", vec![0xff; 16].into());
    let client = connect(&Script::failing([garbled]), options()).await;
    check(&route(&client).await.expect_err("refused"));
}
