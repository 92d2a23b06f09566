//! The same services for callers without gRPC, on the same port: gRPC-Web, and unary calls of the Connect protocol
//! in JSON or protobuf, over HTTP/1.1 or HTTP/2. gRPC itself passes through.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tonic::body::Body;
use tonic::codegen::http::header::{CONTENT_TYPE, HeaderName, HeaderValue, ORIGIN};
use tonic::codegen::http::{HeaderMap, Method, Request, Response, StatusCode};
use tonic_web::GrpcWebLayer;
use tower::{Layer, Service, ServiceExt as _, service_fn};
use tower_http::cors::{AllowHeaders, CorsLayer};

use self::connect::Connect;
use self::failure::Failure;
use self::methods::Methods;
use crate::config::WebOrigin;

mod connect;
mod envelope;
mod failure;
mod methods;
mod transcode;

/// How long a browser may keep the answer to a preflight: the most that Chromium takes.
const PREFLIGHT_AGE: Duration = Duration::from_secs(7200);

/// What a page may read of an answer's headers.
const EXPOSED: [HeaderName; 4] = [
    HeaderName::from_static("grpc-status"),
    HeaderName::from_static("grpc-message"),
    HeaderName::from_static("grpc-status-details-bin"),
    HeaderName::from_static("retry-after"),
];

/// What callers without gRPC are held to.
#[derive(Clone)]
pub(super) struct WebLimits {
    /// Bytes of one message, as protobuf.
    pub(super) max_message_bytes: usize,
    /// Bodies that are read and translated at a time.
    pub(super) max_concurrent_calls: usize,
    /// The longest that a body may take to come.
    pub(super) max_deadline: Duration,
}

/// Adds the web's ways of calling to gRPC services.
#[derive(Clone)]
pub(super) struct WebFaces {
    connect: Arc<Connect>,
    origins: Arc<[HeaderValue]>,
    cors: CorsLayer,
}

impl WebFaces {
    pub(super) fn new(limits: WebLimits, origins: &[WebOrigin]) -> Self {
        let parsed = origins.iter().filter_map(|origin| origin.as_str().parse().ok());
        let origins: Arc<[HeaderValue]> = parsed.collect();
        let cors = CorsLayer::new()
            .allow_origin(origins.to_vec())
            .allow_methods([Method::POST])
            .allow_headers(AllowHeaders::mirror_request())
            .expose_headers(EXPOSED)
            .max_age(PREFLIGHT_AGE);
        Self { connect: Arc::new(Connect::new(Methods::of_contract(), limits)), origins, cors }
    }

    /// A page that was not named gets nothing: without this, one that a browser takes for this very address (DNS
    /// rebinding) could call a server on the browser's own machine.
    fn is_foreign_page(&self, headers: &HeaderMap) -> bool {
        headers.get(ORIGIN).is_some_and(|origin| !self.origins.contains(origin))
    }
}

/// Services under [`WebFaces`].
#[derive(Clone)]
pub(super) struct Faced<S> {
    grpc: S,
    faces: WebFaces,
}

impl<S> Layer<S> for WebFaces {
    type Service = Faced<S>;

    fn layer(&self, grpc: S) -> Self::Service {
        Faced { grpc, faces: self.clone() }
    }
}

type Answering = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

impl<S> Service<Request<Body>> for Faced<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    S: Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Answering;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.grpc.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        if self.faces.is_foreign_page(request.headers()) {
            let refused = Failure::foreign_page(request.headers().get(ORIGIN));
            return Box::pin(std::future::ready(Ok(refused.into_response())));
        }
        if Speech::of(request.headers()) == Speech::Grpc {
            return Box::pin(self.grpc.call(request));
        }
        let (grpc, connect) = (self.grpc.clone(), Arc::clone(&self.faces.connect));
        let web = service_fn(move |request| answer(grpc.clone(), Arc::clone(&connect), request));
        Box::pin(self.faces.cors.layer(web).oneshot(request))
    }
}

/// How a caller speaks, by the type of its request's content.
#[derive(Debug, PartialEq, Eq)]
enum Speech {
    Grpc,
    GrpcWeb,
    /// The Connect protocol, or something else, which is told what would be right.
    Http,
}

impl Speech {
    fn of(headers: &HeaderMap) -> Self {
        let content = headers.get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
        match content.strip_prefix(b"application/grpc") {
            Some(rest) if rest.starts_with(b"-web") => Self::GrpcWeb,
            Some(_) => Self::Grpc,
            None => Self::Http,
        }
    }
}

/// Answers everything but gRPC.
async fn answer<S>(
    grpc: S,
    connect: Arc<Connect>,
    request: Request<Body>,
) -> Result<Response<Body>, Infallible>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
{
    if Speech::of(request.headers()) == Speech::GrpcWeb {
        return GrpcWebLayer::new().layer(grpc).oneshot(request).await;
    }
    Ok(connect.answer(grpc, request).await.unwrap_or_else(Failure::into_response))
}

/// An answer of these bytes.
fn response(status: StatusCode, content_type: &'static str, bytes: Vec<u8>) -> Response<Body> {
    let mut response = Response::new(Body::new(http_body_util::Full::from(bytes)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
