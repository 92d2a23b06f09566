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
use tonic::codegen::http::{HeaderMap, Method, Request, Response, StatusCode, Version};
use tonic_web::GrpcWebLayer;
use toolgate_serving::{Owner, RequestOwner};
use tower::{Layer, Service, ServiceExt as _, service_fn};
use tower_http::cors::{AllowHeaders, CorsLayer};

use self::bodies::Bodies;
use self::connect::Connect;
use self::failure::Failure;
use self::methods::Methods;
use super::guard::Guard;
use super::status;
use toolgate_app::telemetry::{Metrics, Rejection};
use toolgate_config::WebOrigin;
use toolgate_core::error::Error;

mod bodies;
mod connect;
mod envelope;
mod failure;
mod methods;
mod rooms;
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
    /// Address of metrics and probes, for callers who come to the wrong port.
    pub(super) admin_port: u16,
}

/// Adds the web's ways of calling to gRPC services.
#[derive(Clone)]
pub(super) struct WebFaces {
    callers: Arc<Callers>,
    origins: Arc<[HeaderValue]>,
    cors: CorsLayer,
    metrics: Arc<Metrics>,
    admin_port: u16,
}

/// What answers callers without gRPC.
struct Callers {
    connect: Connect,
    bodies: Bodies,
    guard: Guard,
}

impl WebFaces {
    pub(super) fn new(
        limits: &WebLimits,
        origins: &[WebOrigin],
        guard: Guard,
        metrics: Arc<Metrics>,
    ) -> Self {
        let parsed = origins.iter().filter_map(|origin| origin.as_str().parse().ok());
        let origins: Arc<[HeaderValue]> = parsed.collect();
        let cors = CorsLayer::new()
            .allow_origin(origins.to_vec())
            .allow_methods([Method::POST])
            .allow_headers(AllowHeaders::mirror_request())
            .expose_headers(EXPOSED)
            .max_age(PREFLIGHT_AGE);
        let connect = Connect::new(Methods::of_contract());
        let bodies = Bodies::new(limits, Arc::clone(&metrics));
        let callers = Arc::new(Callers { connect, bodies, guard });
        Self { callers, origins, cors, metrics, admin_port: limits.admin_port }
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
            self.faces.metrics.rejected(Rejection::Origin);
            let refused = Failure::foreign_page(request.headers().get(ORIGIN));
            return Box::pin(std::future::ready(Ok(refused.into_response())));
        }
        if request.uri().path() == "/" && [Method::GET, Method::HEAD].contains(request.method()) {
            let about = about(self.faces.admin_port).into_bytes();
            let answer = response(StatusCode::OK, "application/json", about);
            return Box::pin(std::future::ready(Ok(answer)));
        }
        if Speech::of(&request) == Speech::Grpc {
            return Box::pin(self.grpc.call(request));
        }
        let grpc = self.grpc.clone();
        let callers = Arc::clone(&self.faces.callers);
        let web = service_fn(move |request| answer(grpc.clone(), Arc::clone(&callers), request));
        Box::pin(self.faces.cors.layer(web).oneshot(request))
    }
}

/// How a caller speaks.
#[derive(Debug, PartialEq, Eq)]
enum Speech {
    Grpc,
    /// With the type of its content as gRPC-Web names it.
    GrpcWeb(&'static str),
    /// The Connect protocol, or something else, which is told what would be right.
    Http,
}

/// What gRPC-Web calls the types of its content.
const GRPC_WEB: [&str; 4] = [
    "application/grpc-web",
    "application/grpc-web+proto",
    "application/grpc-web-text",
    "application/grpc-web-text+proto",
];

impl Speech {
    fn of(request: &Request<Body>) -> Self {
        let content = request.headers().get(CONTENT_TYPE).and_then(|content| content.to_str().ok());
        let content = content.unwrap_or_default().split(';').next().unwrap_or_default().trim();
        if let Some(named) = GRPC_WEB.iter().find(|named| named.eq_ignore_ascii_case(content)) {
            return Self::GrpcWeb(named);
        }
        let kind = content.split('+').next().unwrap_or_default();
        // Over HTTP/1.1 its status, which comes last, would be lost.
        let whole = request.version() == Version::HTTP_2;
        if whole && kind.eq_ignore_ascii_case("application/grpc") { Self::Grpc } else { Self::Http }
    }
}

/// Answers everything but gRPC.
async fn answer<S>(
    grpc: S,
    callers: Arc<Callers>,
    mut request: Request<Body>,
) -> Result<Response<Body>, Infallible>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
{
    let Callers { connect, bodies, guard } = &*callers;
    let speech = Speech::of(&request);
    // Before its body is read: that costs room.
    if let Err(refusal) = guard.admit(&mut request).await {
        return Ok(match speech {
            Speech::GrpcWeb(_) => refused_grpc_web(&refusal, request).await,
            _ => Failure::from(&refusal).into_response(),
        });
    }
    let answered = match speech {
        Speech::GrpcWeb(content) => grpc_web(grpc, bodies, content, request).await,
        _ => connect.answer(grpc, bodies, request).await,
    };
    Ok(answered.unwrap_or_else(Failure::into_response))
}

/// Answers gRPC-Web, which has no streams of requests: the body is read before, as the services would wait for it
/// without an end.
async fn grpc_web<S>(
    grpc: S,
    bodies: &Bodies,
    content: &'static str,
    request: Request<Body>,
) -> Result<Response<Body>, Failure>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
{
    let owner = owner_of(&request);
    let (mut parts, body) = request.into_parts();
    parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static(content));
    let place = bodies.enter(&owner)?;
    let (body, room) = bodies.read(body, &owner, None).await?;
    let request = Request::from_parts(parts, Body::new(http_body_util::Full::from(body)));
    let Ok(answer) = GrpcWebLayer::new().layer(grpc).oneshot(request).await;
    drop((place, room));
    Ok(answer)
}

/// Whose a request is, as far as the door and the guard know.
fn owner_of(request: &Request<Body>) -> Owner {
    request.extensions().get::<RequestOwner>().map(RequestOwner::now).unwrap_or_default()
}

/// What `/` says to a person who tries it with a browser or curl.
fn about(admin_port: u16) -> String {
    let about = serde_json::json!({
        "name": "toolgate",
        "version": env!("CARGO_PKG_VERSION"),
        "serves": "gRPC, gRPC-Web and Connect (POST, JSON), such as POST /toolgate.v1.RouterService/Route",
        "docs": "README.md and docs/ of this version; gRPC reflection lists every method",
        "admin_port": admin_port,
    });
    format!("{about}\n")
}

/// A refusal as gRPC-Web has it.
async fn refused_grpc_web(refusal: &Error, request: Request<Body>) -> Response<Body> {
    let (parts, _) = request.into_parts();
    let status = status::of(refusal);
    let refused = service_fn(move |_: Request<Body>| {
        std::future::ready(Ok::<_, Infallible>(status.clone().into_http::<Body>()))
    });
    let request = Request::from_parts(parts, Body::empty());
    let Ok(answer) = GrpcWebLayer::new().layer(refused).oneshot(request).await;
    answer
}

/// An answer of these bytes.
fn response(status: StatusCode, content_type: &'static str, bytes: Vec<u8>) -> Response<Body> {
    let mut response = Response::new(Body::new(http_body_util::Full::from(bytes)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
