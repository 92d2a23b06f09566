//! The proxy's face: every request below `/anthropic`, `/openai` and `/gemini` goes to the operator's base URL.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::serve::Listener;
use axum::{Router, serve as serve_router};
use http::{HeaderName, HeaderValue, StatusCode};
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::guard::Names;
use crate::headers;
use crate::provider::Provider;
use crate::upstream::{Failure, Head, Upstream, UpstreamError};

/// Header of an answer that says what was done with its request.
const NOTE: HeaderName = HeaderName::from_static("x-toolgate");

/// Error that kept the proxy from serving, or that ended it.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// Requests can't be sent.
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
    /// A connection or a stream failed.
    #[error("serving failed: {0}")]
    Io(#[from] io::Error),
}

struct Proxy {
    names: Names,
    upstream: Upstream,
}

/// Serves hosts until `stop`.
///
/// # Errors
/// [`ProxyError`] if TLS can't be set up, or the listener fails.
pub async fn serve(
    config: &Config,
    listener: impl Listener<Addr = SocketAddr>,
    stop: CancellationToken,
) -> Result<(), ProxyError> {
    let names = Names::new(listener.local_addr()?, &config.llm.public_url);
    let proxy = Proxy { names, upstream: Upstream::new(config)? };
    let router = Router::new()
        .route("/livez", get(StatusCode::OK))
        .fallback(forward)
        .with_state(Arc::new(proxy));
    let stopped = stop.cancelled_owned();
    serve_router(listener, router).with_graceful_shutdown(stopped).await.map_err(ProxyError::Io)
}

async fn forward(State(proxy): State<Arc<Proxy>>, request: Request) -> Response {
    let Some((provider, path)) = Provider::split(request.uri().path()) else {
        let known = "paths begin with /anthropic, /openai or /gemini\n";
        return (StatusCode::NOT_FOUND, known).into_response();
    };
    if !proxy.names.allow(request.uri(), request.headers()) {
        let problem = "this host or origin is not allowed: call the proxy by its own address";
        return provider.error(StatusCode::FORBIDDEN, problem);
    }
    let Some(url) = proxy.upstream.url(provider, path, request.uri().query()) else {
        return provider.error(StatusCode::BAD_REQUEST, "the path has a part that climbs");
    };
    let is_chat = provider.chat(path).is_some();
    let note = if is_chat { "pass; reason=strategy" } else { "pass; reason=no-chat" };
    let (parts, body) = request.into_parts();
    let headers = headers::of_request(parts.headers);
    let head = Head { provider, method: parts.method, url, headers };
    proxy.pass(&head, body, note).await
}

impl Proxy {
    /// Sends a request as it comes, and hands on its answer as it comes.
    async fn pass(&self, head: &Head, body: Body, note: &str) -> Response {
        let body = reqwest::Body::wrap_stream(body.into_data_stream());
        match self.upstream.send(head, body).await {
            Ok(answer) => self.handed_on(answer, note),
            Err(failure) => refused(head.provider, &failure),
        }
    }

    fn handed_on(&self, answer: reqwest::Response, note: &str) -> Response {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = answer.status();
        *response.headers_mut() = headers::of_answer(answer.headers().clone());
        *response.body_mut() = Body::from_stream(self.upstream.pieces(answer));
        noted(response, note)
    }
}

/// Returns an error of the proxy's own.
fn refused(provider: Provider, failure: &Failure) -> Response {
    tracing::warn!(provider = provider.name(), "{}", failure.message);
    provider.error(failure.status, &failure.message)
}

/// Adds what was done with the request.
fn noted(mut response: Response, note: &str) -> Response {
    if let Ok(note) = HeaderValue::from_str(note) {
        response.headers_mut().insert(NOTE, note);
    }
    response
}
