//! The same services on the same port for callers without gRPC: gRPC-Web, and unary calls of the Connect protocol in
//! JSON or protobuf, over HTTP/1.1 or HTTP/2. gRPC itself passes through.

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
use toolgate_serving::{Arrival, Owner, RequestOwner, time_asked};
use tower::{Layer, Service, ServiceExt as _, service_fn};
use tower_http::cors::{AllowHeaders, CorsLayer};

use self::bodies::Bodies;
use self::connect::Connect;
use self::failure::Failure;
use self::methods::Methods;
use super::guard::Guard;
use super::status;
use toolgate_app::pipeline::log_failure;
use toolgate_app::telemetry::{Metrics, Rejection};
use toolgate_config::WebOrigin;
use toolgate_core::error::Error;

mod bodies;
mod body_budget;
mod connect;
mod envelope;
mod failure;
mod methods;
mod transcode;

/// Time for which a browser may cache the answer to a preflight request; the maximum in Chromium.
const PREFLIGHT_AGE: Duration = Duration::from_secs(7200);

/// Response headers that a page may read.
const EXPOSED: [HeaderName; 4] = [
    HeaderName::from_static("grpc-status"),
    HeaderName::from_static("grpc-message"),
    HeaderName::from_static("grpc-status-details-bin"),
    HeaderName::from_static("retry-after"),
];

/// Limits on callers without gRPC.
#[derive(Clone)]
pub(super) struct WebLimits {
    /// Maximum bytes of one message, as protobuf.
    pub(super) max_message_bytes: usize,
    /// Maximum number of bodies that are read and translated at once.
    pub(super) max_concurrent_calls: usize,
    /// Maximum time until a body has arrived.
    pub(super) max_deadline: Duration,
    /// Port of metrics and probes, named for callers that use the wrong port.
    pub(super) admin_port: u16,
}

/// Layer that adds web protocols to gRPC services.
#[derive(Clone)]
pub(super) struct WebFaces {
    callers: Arc<Callers>,
    origins: Arc<[HeaderValue]>,
    cors: CorsLayer,
    metrics: Arc<Metrics>,
    admin_port: u16,
}

/// Parts that answer callers without gRPC.
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

    /// Returns true if the request is from a web page that is not in the list of origins. Such pages get no answer.
    /// Otherwise a page could use DNS rebinding to call a server on the browser's own machine.
    fn is_foreign_page(&self, headers: &HeaderMap) -> bool {
        headers.get(ORIGIN).is_some_and(|origin| !self.origins.contains(origin))
    }
}

/// Services behind [`WebFaces`].
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

/// Protocol of a caller.
#[derive(Debug, PartialEq, Eq)]
enum Speech {
    Grpc,
    /// gRPC-Web, with its content type.
    GrpcWeb(&'static str),
    /// Connect protocol, or an unknown protocol, which gets an explanation.
    Http,
}

/// Content types of gRPC-Web.
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
        // Over HTTP/1.1 the status would be lost, because it comes in the trailers.
        let whole = request.version() == Version::HTTP_2;
        if whole && kind.eq_ignore_ascii_case("application/grpc") { Self::Grpc } else { Self::Http }
    }
}

/// Answers every protocol but gRPC.
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
    // This comes before the body is read, because reading takes up memory.
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

/// Answers gRPC-Web, which has no request streams. The body is read first, because the services would wait for it
/// without a time limit.
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
    let arrived = Arrival::of(&parts.extensions).at;
    let within = bodies.time_left(parts.uri.path(), time_asked(&parts.headers), arrived);
    let (body, share) = bodies.read(body, &owner, within).await?;
    let request = Request::from_parts(parts, Body::new(http_body_util::Full::from(body)));
    let Ok(answer) = GrpcWebLayer::new().layer(grpc).oneshot(request).await;
    drop((place, share));
    Ok(answer)
}

/// Returns the owner of a request, as far as it is known.
fn owner_of(request: &Request<Body>) -> Owner {
    request.extensions().get::<RequestOwner>().map(RequestOwner::now).unwrap_or_default()
}

/// Returns the text at `/` for a person who opens it with a browser or curl.
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

/// Renders a refusal as gRPC-Web.
async fn refused_grpc_web(refusal: &Error, request: Request<Body>) -> Response<Body> {
    let (parts, _) = request.into_parts();
    log_failure(refusal);
    let status = status::of(refusal);
    let refused = service_fn(move |_: Request<Body>| {
        std::future::ready(Ok::<_, Infallible>(status.clone().into_http::<Body>()))
    });
    let request = Request::from_parts(parts, Body::empty());
    let Ok(answer) = GrpcWebLayer::new().layer(refused).oneshot(request).await;
    answer
}

/// Returns a response with these bytes.
fn response(status: StatusCode, content_type: &'static str, bytes: Vec<u8>) -> Response<Body> {
    let mut response = Response::new(Body::new(http_body_util::Full::from(bytes)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
