//! The proxy's face: every request below `/anthropic`, `/openai` and `/gemini` goes to the operator's base URL. Chat requests
//! are decided on first.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, BodyDataStream, Bytes, HttpBody as _};
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Json, Response};
use axum::routing::get;
use axum::serve::Listener;
use axum::{Router, serve as serve_router};
use futures_util::{StreamExt as _, stream};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use toolgate_client::Client;
use toolgate_llm::strategy::Api;

use crate::chat::PassReason;
use crate::config::Config;
use crate::exchange::{Exchange, Original, ask_for_plain, is_compressed, is_refusal, is_stream};
use crate::guard::Names;
use crate::headers;
use crate::provider::Provider;
use crate::savings::Savings;
use crate::turn::{Decider, Turn, warm_up};
use crate::upstream::{Failure, Head, Upstream, UpstreamError};

/// Header of an answer that says what was done with its request.
const NOTE: HeaderName = HeaderName::from_static("x-toolgate");

/// Time between two pieces of a request.
const PIECE_MAX: Duration = Duration::from_secs(30);

/// Time for answers that are under way when the proxy is stopped.
const DRAIN: Duration = Duration::from_secs(10);

/// Time for taking the sets of tools out of the routing plane when the proxy is stopped.
const CLOSING_MAX: Duration = Duration::from_secs(5);

/// Headers that hosts give their key in.
static KEYS: [HeaderName; 4] = [
    header::AUTHORIZATION,
    HeaderName::from_static("api-key"),
    HeaderName::from_static("x-api-key"),
    HeaderName::from_static("x-goog-api-key"),
];

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
    decider: Decider,
    savings: Savings,
    max_body: usize,
}

/// Body of a request: read whole, or too large for that.
enum ReadBody {
    Whole(Vec<u8>),
    /// The part that was read, and the rest.
    Large(Vec<u8>, BodyDataStream),
}

/// Serves hosts until `stop`, and then ends answers under way within ten seconds. `plane` is the routing plane that chooses tools, `savings` the account to keep.
///
/// # Errors
/// [`ProxyError`] if TLS can't be set up, or the listener fails.
pub async fn serve(
    config: &Config,
    plane: Client,
    savings: Savings,
    listener: impl Listener<Addr = SocketAddr>,
    stop: CancellationToken,
) -> Result<(), ProxyError> {
    let names = Names::new(listener.local_addr()?, &config.llm.public_url);
    let decider = Decider::new(plane, &config.llm, savings.clone());
    let upstream = Upstream::new(config)?;
    let max_body = config.llm.max_body;
    tokio::task::spawn_blocking(warm_up);
    let proxy = Proxy { names, upstream, decider: decider.clone(), savings, max_body };
    let router = Router::new()
        .route("/livez", get(StatusCode::OK))
        .route("/toolgate/usage", get(usage))
        .fallback(forward)
        .with_state(Arc::new(proxy));
    let stopped = stop.clone().cancelled_owned();
    let serving = serve_router(listener, router).with_graceful_shutdown(stopped).into_future();
    let drained = async {
        stop.cancelled().await;
        tokio::time::sleep(DRAIN).await;
    };
    let served = tokio::select! {
        served = serving => served,
        () = drained => Ok(()),
    };
    if tokio::time::timeout(CLOSING_MAX, decider.close()).await.is_err() {
        tracing::warn!("sets of tools were left in the routing plane");
    }
    served.map_err(ProxyError::Io)
}

async fn usage(State(proxy): State<Arc<Proxy>>, request: Request) -> Response {
    if !proxy.names.allow(request.uri(), request.headers()) {
        return StatusCode::FORBIDDEN.into_response();
    }
    let totals = proxy.savings.totals();
    Json(json!({ "totals": totals, "saved_tokens_computed": totals.saved_tokens() }))
        .into_response()
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
    let upgrade = request.headers().get(header::UPGRADE).map(HeaderValue::as_bytes);
    if upgrade.is_some_and(|kind| kind.eq_ignore_ascii_case(b"websocket")) {
        return without_websocket(provider);
    }
    let Some(url) = proxy.upstream.url(provider, path, request.uri().query()) else {
        return provider.error(StatusCode::BAD_REQUEST, "the path has a part that climbs");
    };
    let chat =
        provider.chat(path, request.uri().query()).filter(|_| request.method() == Method::POST);
    let (parts, body) = request.into_parts();
    let headers = headers::of_request(parts.headers);
    let head = Head { provider, method: parts.method, url, headers };
    match chat {
        Some(api) => proxy.chat(api, head, body).await,
        // A request without a body has none on its way on either.
        None if body.is_end_stream() => {
            proxy.pass(&head, reqwest::Body::default(), "no-chat").await
        }
        None => proxy.pass(&head, streamed(body.into_data_stream()), "no-chat").await,
    }
}

impl Proxy {
    /// Sends a chat request with the tools that it needs, or as it came.
    async fn chat(&self, api: Api, mut head: Head, body: Body) -> Response {
        let mut bytes = match self.read(body).await {
            Ok(ReadBody::Whole(bytes)) => bytes,
            Ok(ReadBody::Large(begun, rest)) => {
                let begun = stream::iter([Ok(Bytes::from(begun))]);
                self.savings.passed("large");
                return self.pass(&head, streamed(begun.chain(rest)), "large").await;
            }
            Err(failure) => return refused(head.provider, &failure),
        };
        if let Some(followed) = self.followed(api, &head.headers, &bytes) {
            head.headers.remove(header::CONTENT_LENGTH);
            bytes = followed.into_bytes();
        }
        match self.decide(api, &head, &bytes).await {
            Ok((turn, body)) => self.rewritten(turn, head, bytes, body).await,
            Err(reason) => {
                self.savings.passed(reason);
                self.pass(&head, bytes.into(), reason).await
            }
        }
    }

    async fn decide(
        &self,
        api: Api,
        head: &Head,
        bytes: &[u8],
    ) -> Result<(Turn, String), PassReason> {
        if head.headers.contains_key(header::CONTENT_ENCODING) {
            return Err("encoded");
        }
        let text = std::str::from_utf8(bytes).map_err(|_| "shape")?;
        self.decider.decide(api, head.url.path(), text, &keys(&head.headers)).await
    }

    /// Returns a request that goes on from an answer as the provider takes it.
    fn followed(&self, api: Api, headers: &HeaderMap, bytes: &[u8]) -> Option<String> {
        self.decider.followed(api, std::str::from_utf8(bytes).ok()?, &keys(headers))
    }

    /// Sends a request whose tools were deferred. If the provider refuses it, the original is sent once.
    async fn rewritten(&self, turn: Turn, head: Head, bytes: Vec<u8>, body: String) -> Response {
        let note = turn.note();
        let original = Original { head: head.clone(), body: bytes.into() };
        let mut head = head;
        head.headers.remove(header::CONTENT_LENGTH);
        ask_for_plain(&mut head.headers);
        headers::add_betas(&mut head.headers, turn.betas());
        let exchange = Exchange { upstream: self.upstream.clone(), head, original, turn };
        let answer = match exchange.send(body).await {
            Ok(answer) => answer,
            Err(failure) => return refused(exchange.head.provider, &failure),
        };
        let status = answer.status();
        // What is compressed though it was asked not to be can't be read here.
        if is_refusal(status) || (status == StatusCode::OK && is_compressed(&answer)) {
            drop(answer);
            return self.original(&exchange).await;
        }
        if status != StatusCode::OK {
            return self.handed_on(answer, &note);
        }
        exchange.turn.sent();
        let mut headers = headers::of_answer(answer.headers().clone());
        headers.remove(header::CONTENT_LENGTH);
        let response = if is_stream(&answer) {
            Response::new(Body::from_stream(exchange.stream(answer)))
        } else {
            exchange.whole(answer).await
        };
        let mut response = response;
        if response.status() == StatusCode::OK {
            *response.headers_mut() = headers;
        }
        noted(response, &note)
    }

    /// Sends the original of a request that was refused. If the provider takes it, the model's tools are not deferred for
    /// a while.
    async fn original(&self, exchange: &Exchange) -> Response {
        let Original { head, body } = &exchange.original;
        match self.upstream.send(head, body.clone().into()).await {
            Ok(answer) => {
                if answer.status().is_success() {
                    exchange.turn.refused();
                }
                self.savings.passed("refused");
                self.handed_on(answer, "pass; reason=refused")
            }
            Err(failure) => refused(head.provider, &failure),
        }
    }

    /// Reads the body of a request, whose pieces must follow each other in time.
    async fn read(&self, body: Body) -> Result<ReadBody, Failure> {
        let failed = |status, problem: String| Failure { status, message: problem };
        let mut pieces = body.into_data_stream();
        let mut bytes = Vec::new();
        loop {
            let next = tokio::time::timeout(PIECE_MAX, pieces.next()).await.map_err(|_| {
                let problem = format!("nothing of the request came for {PIECE_MAX:?}");
                failed(StatusCode::REQUEST_TIMEOUT, problem)
            })?;
            let Some(piece) = next else { break };
            let piece = piece.map_err(|error| {
                failed(StatusCode::BAD_REQUEST, format!("the request broke off: {error}"))
            })?;
            bytes.extend_from_slice(&piece);
            if bytes.len() > self.max_body {
                return Ok(ReadBody::Large(bytes, pieces));
            }
        }
        Ok(ReadBody::Whole(bytes))
    }

    /// Sends a request as it comes, and hands on its answer as it comes.
    async fn pass(&self, head: &Head, body: reqwest::Body, reason: &str) -> Response {
        match self.upstream.send(head, body).await {
            Ok(answer) => self.handed_on(answer, &format!("pass; reason={reason}")),
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

/// Returns the keys that a host gives.
fn keys(headers: &HeaderMap) -> Vec<&[u8]> {
    KEYS.iter().flat_map(|name| headers.get_all(name)).map(HeaderValue::as_bytes).collect()
}

fn streamed(
    pieces: impl futures_util::Stream<Item = Result<Bytes, axum::Error>> + Send + 'static,
) -> reqwest::Body {
    reqwest::Body::wrap_stream(pieces)
}

/// Refuses a WebSocket in the way that has Codex go on over HTTP at once; behind other errors it tries for seconds.
fn without_websocket(provider: Provider) -> Response {
    let problem = "WebSockets are not carried: ask over HTTP";
    let mut response = provider.error(StatusCode::UPGRADE_REQUIRED, problem);
    response.headers_mut().insert(header::UPGRADE, HeaderValue::from_static("HTTP/1.1"));
    response
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
