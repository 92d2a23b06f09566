//! Unary calls of the Connect protocol: the request is read and translated, the gRPC service called in this process,
//! its answer translated back.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;
use tonic::body::Body;
use tonic::codegen::http::header::{
    CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, TE,
};
use tonic::codegen::http::{HeaderMap, Method, Request, Response, StatusCode, request::Parts};
use tonic::{Code, Status};
use tower::{Service, ServiceExt as _};

use super::failure::Failure;
use super::methods::Methods;
use super::transcode::Codec;
use super::{WebLimits, envelope, response};
use crate::error::Error;

/// A message in JSON may be this much longer than as protobuf: base64 and names take their room.
const JSON_LONGER: usize = 2;

/// A body takes a place for each of these, so that as many long ones as there are calls don't fill the memory.
const PLACE_BYTES: usize = 256 << 10;

/// The protocol's header for a caller's deadline.
const TIMEOUT: &str = "connect-timeout-ms";

/// Answers unary calls of the Connect protocol.
pub(super) struct Connect {
    methods: Methods,
    limits: WebLimits,
    /// For bodies in memory: services count calls only from when they have the message.
    places: Arc<Semaphore>,
}

impl Connect {
    pub(super) fn new(methods: Methods, limits: WebLimits) -> Self {
        let places = Arc::new(Semaphore::new(limits.max_concurrent_calls));
        Self { methods, limits, places }
    }

    pub(super) async fn answer<S>(
        &self,
        grpc: S,
        request: Request<Body>,
    ) -> Result<Response<Body>, Failure>
    where
        S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    {
        if request.method() != Method::POST {
            return Err(Failure::not_posted());
        }
        let method = self.methods.unary(request.uri().path())?;
        let codec = codec(request.headers())?;
        let asked = time_asked(request.headers())?;
        if asked.is_some_and(|asked| asked.is_zero()) {
            return Err(Failure::from(&Error::DeadlineExceeded));
        }
        let length = self.length(request.headers())?;
        let _room = self.room_for(length)?;
        let (parts, body) = request.into_parts();
        let body = self.read(body, asked).await?;
        let message = codec.read(method.input(), body).await?;
        let call = call(parts, &message, asked).ok_or_else(Failure::internal)?;
        let Ok(answer) = grpc.oneshot(call).await;
        let message = message_of(answer).await?;
        let bytes = codec.write(method.output(), message).await?;
        Ok(response(StatusCode::OK, codec.content_type(), bytes))
    }

    /// The most bytes that a body may have.
    fn longest(&self) -> usize {
        self.limits.max_message_bytes.saturating_mul(JSON_LONGER)
    }

    /// The bytes that the body has or, where the caller doesn't say, may have.
    fn length(&self, headers: &HeaderMap) -> Result<usize, Failure> {
        let said = headers.get(CONTENT_LENGTH).and_then(|said| said.to_str().ok()?.parse().ok());
        match said {
            Some(length) if length > self.longest() => Err(Failure::too_large(self.longest())),
            Some(length) => Ok(length),
            None => Ok(self.longest()),
        }
    }

    fn room_for(&self, length: usize) -> Result<SemaphorePermit<'_>, Failure> {
        let places = (1 + length / PLACE_BYTES).min(self.limits.max_concurrent_calls);
        let places = u32::try_from(places).unwrap_or(u32::MAX);
        let room = self.places.try_acquire_many(places);
        room.map_err(|_| Failure::from(&Error::Overloaded))
    }

    /// The whole body, within its limit and the time that the call has.
    async fn read(&self, body: Body, asked: Option<Duration>) -> Result<Bytes, Failure> {
        let most = self.longest();
        let within =
            asked.map_or(self.limits.max_deadline, |asked| asked.min(self.limits.max_deadline));
        let read = timeout(within, Limited::new(body, most).collect()).await;
        match read.map_err(|_| Failure::from(&Error::DeadlineExceeded))? {
            Ok(body) => Ok(body.to_bytes()),
            Err(error) if error.is::<LengthLimitError>() => Err(Failure::too_large(most)),
            // The caller is gone, so that nobody reads this.
            Err(_) => Err(Status::cancelled("the request's body ended early").into()),
        }
    }
}

fn codec(headers: &HeaderMap) -> Result<Codec, Failure> {
    let content = headers.get(CONTENT_TYPE).map_or("", |content| content.to_str().unwrap_or(""));
    let Some(codec) = Codec::of(content) else {
        let found = if content.is_empty() { "no content type" } else { content };
        return Err(Failure::unknown_content(&format!(
            "{found} is not understood: send application/json in UTF-8, application/proto, gRPC or gRPC-Web"
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

/// The caller's deadline: at most ten digits of milliseconds.
fn time_asked(headers: &HeaderMap) -> Result<Option<Duration>, Failure> {
    let Some(text) = headers.get(TIMEOUT) else { return Ok(None) };
    let text = text.to_str().ok().filter(|text| text.len() <= 10);
    let digits = text.filter(|text| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()));
    let asked = digits.and_then(|digits| digits.parse().ok()).map(Duration::from_millis);
    let problem = "a whole number of milliseconds, at most ten digits, is expected";
    asked.map(Some).ok_or_else(|| Failure::bad_header("Connect-Timeout-Ms", problem))
}

/// The same call as gRPC has it. Other headers, such as credentials and trace context, go along.
fn call(mut parts: Parts, message: &Bytes, asked: Option<Duration>) -> Option<Request<Body>> {
    let body = envelope::seal(message)?;
    for name in [CONTENT_LENGTH.as_str(), "accept-encoding", TIMEOUT, "connect-protocol-version"] {
        parts.headers.remove(name);
    }
    parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    parts.headers.insert(TE, HeaderValue::from_static("trailers"));
    parts.headers.remove("grpc-timeout");
    if let Some(asked) = asked {
        // gRPC takes eight digits.
        let millis = asked.as_millis();
        let text = if millis < 100_000_000 {
            format!("{millis}m")
        } else {
            format!("{}S", asked.as_secs())
        };
        parts.headers.insert("grpc-timeout", text.parse().ok()?);
    }
    Some(Request::from_parts(parts, Body::new(Full::from(body))))
}

/// The message of a call that succeeded.
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
