//! Unary calls of the Connect protocol. The request is read and translated, the gRPC service is called in this process,
//! and its answer is translated back.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use tonic::body::Body;
use tonic::codegen::http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, TE};
use tonic::codegen::http::{HeaderMap, Method, Request, Response, StatusCode, request::Parts};
use tonic::{Code, Status};
use toolgate_serving::Arrival;
use tower::{Service, ServiceExt as _};

use super::bodies::Bodies;
use super::failure::Failure;
use super::methods::Methods;
use super::transcode::Codec;
use super::{envelope, owner_of, response};
use toolgate_core::error::Error;

/// Header of the Connect protocol for the caller's timeout.
const TIMEOUT: &str = "connect-timeout-ms";

/// Headers that describe the encoding of this request, and do not apply to the translated one.
const OF_THE_WAY: [&str; 9] = [
    "content-length",
    "content-encoding",
    "transfer-encoding",
    "accept-encoding",
    "grpc-encoding",
    "grpc-accept-encoding",
    "grpc-timeout",
    "connect-protocol-version",
    TIMEOUT,
];

/// Handler of unary calls of the Connect protocol.
pub(super) struct Connect {
    methods: Methods,
}

impl Connect {
    pub(super) fn new(methods: Methods) -> Self {
        Self { methods }
    }

    pub(super) async fn answer<S>(
        &self,
        grpc: S,
        bodies: &Bodies,
        request: Request<Body>,
    ) -> Result<Response<Body>, Failure>
    where
        S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    {
        let started = Arrival::of(request.extensions()).at;
        if request.method() != Method::POST {
            return Err(Failure::not_posted());
        }
        let method = self.methods.unary(request.uri().path())?;
        let codec = codec(request.headers())?;
        let asked = time_asked(request.headers())?;
        let owner = owner_of(&request);
        let place = bodies.enter(&owner)?;
        let (parts, body) = request.into_parts();
        let within = bodies.time_left(parts.uri.path(), asked, started);
        let (body, share) = bodies.read(body, &owner, within).await?;
        let message = codec.read(method.input(), body, (place.clone(), share)).await?;
        let left = asked.map(|asked| asked.saturating_sub(started.elapsed()));
        if left.is_some_and(|left| left.is_zero()) {
            return Err(Failure::from(&Error::DeadlineExceeded));
        }
        let call = call(parts, &message, left).ok_or_else(Failure::internal)?;
        let Ok(answer) = grpc.oneshot(call).await;
        let message = message_of(answer).await?;
        let bytes = codec.write(method.output(), message, place).await?;
        Ok(response(StatusCode::OK, codec.content_type(), bytes))
    }
}

fn codec(headers: &HeaderMap) -> Result<Codec, Failure> {
    let content = headers.get(CONTENT_TYPE).map_or("", |content| content.to_str().unwrap_or(""));
    let Some(codec) = Codec::of(content) else {
        let found = if content.is_empty() { "no content type" } else { content };
        return Err(Failure::unknown_content(&format!(
            "{found} is not understood here: send application/json in UTF-8, application/proto, gRPC-Web, or gRPC \
             over HTTP/2"
        )));
    };
    let version = headers.get("connect-protocol-version");
    if version.is_some_and(|version| version != "1") {
        return Err(Failure::bad_header(
            "Connect-Protocol-Version",
            "only version 1 is understood",
        ));
    }
    let encoding = headers.get(CONTENT_ENCODING);
    if encoding.is_some_and(|encoding| encoding != "identity") {
        return Err(Failure::unknown_content("compressed requests are not understood"));
    }
    Ok(codec)
}

/// Parses the caller's timeout: at most ten digits of milliseconds.
fn time_asked(headers: &HeaderMap) -> Result<Option<Duration>, Failure> {
    if headers.contains_key("grpc-timeout") {
        // The transport would apply it and answer with a gRPC error.
        return Err(Failure::bad_header("Grpc-Timeout", "say Connect-Timeout-Ms instead"));
    }
    let Some(text) = headers.get(TIMEOUT) else { return Ok(None) };
    let text = text.to_str().ok().filter(|text| text.len() <= 10);
    let digits = text.filter(|text| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()));
    let asked = digits.and_then(|digits| digits.parse().ok()).map(Duration::from_millis);
    let problem = "a whole number of milliseconds, at most ten digits, is expected";
    asked.map(Some).ok_or_else(|| Failure::bad_header("Connect-Timeout-Ms", problem))
}

/// Translates the call to gRPC. Other headers, such as credentials and trace context, are kept.
fn call(mut parts: Parts, message: &Bytes, left: Option<Duration>) -> Option<Request<Body>> {
    let body = envelope::seal(message)?;
    for name in OF_THE_WAY {
        parts.headers.remove(name);
    }
    parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    parts.headers.insert(TE, HeaderValue::from_static("trailers"));
    // The remaining time counts from here.
    let waited = Arrival::of(&parts.extensions).waited;
    parts.extensions.insert(Arrival { waited, ..Arrival::now() });
    if let Some(left) = left {
        // gRPC allows eight digits.
        let millis = left.as_millis().max(1);
        let text = if millis < 100_000_000 {
            format!("{millis}m")
        } else {
            format!("{}S", left.as_secs())
        };
        parts.headers.insert("grpc-timeout", text.parse().ok()?);
    }
    Some(Request::from_parts(parts, Body::new(Full::from(body))))
}

/// Returns the message of a successful call, or the failure.
async fn message_of(answer: Response<Body>) -> Result<Bytes, Failure> {
    let (parts, body) = answer.into_parts();
    let collected = body.collect().await.map_err(Failure::from)?;
    let status = collected.trailers().and_then(Status::from_header_map);
    let status = status.or_else(|| Status::from_header_map(&parts.headers));
    match status {
        Some(status) if status.code() == Code::Ok => {
            envelope::open(collected.to_bytes()).ok_or_else(Failure::internal)
        }
        Some(status) => Err(status.into()),
        None => Err(Failure::internal()),
    }
}
