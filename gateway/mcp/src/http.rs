//! The gateway's faces: Streamable HTTP, standard streams, and its state for `toolgate gateway status`.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{any, get, post};
use axum::{Router, middleware};
use futures_util::StreamExt as _;
use parking_lot::Mutex;
use rmcp::ServiceExt as _;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde::Deserialize;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_util::codec::{FramedRead, LinesCodec};
use tokio_util::sync::CancellationToken;
use url::{Host, Url};

use crate::face::{Exposure, Face, ResultLimit};
use crate::gateway::Gateway;
use crate::metrics;
use crate::mirrored;
use crate::relayed;
use crate::units;

/// Largest message of a host, in bytes.
const MESSAGE_MAX: usize = 4 << 20;

/// Silence after which a session of an older revision ends.
const SESSION_KEPT: Duration = Duration::from_secs(60 * 60);

/// Most sessions of one face. Hosts of 2026-07-28 need none.
const SESSIONS_MAX: usize = 1_024;

/// Bytes of the pipe between standard input and the protocol library.
const PIPE: usize = 64 << 10;

type McpService = StreamableHttpService<Face, LocalSessionManager>;

/// Error that kept the gateway from serving, or that ended it.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// The address can't be listened on.
    #[error("{address} can't be listened on (gateway.listen sets another): {source}")]
    Listen {
        /// The address.
        address: String,
        /// Error of the operating system.
        source: io::Error,
    },
    /// `gateway.public_url` is no URL.
    #[error("gateway.public_url is no URL: {0}")]
    PublicUrl(url::ParseError),
    /// A connection or a stream failed.
    #[error("serving failed: {0}")]
    Io(#[from] io::Error),
    /// The host did not speak MCP.
    #[error("the handshake failed: {0}")]
    Handshake(String),
}

/// Faces of one gateway over HTTP.
#[derive(Clone)]
struct Faces {
    gateway: Gateway,
    config: StreamableHttpServerConfig,
    services: Arc<Mutex<HashMap<Exposure, Served>>>,
}

/// Service of one face, and its sessions.
#[derive(Clone)]
struct Served {
    service: McpService,
    sessions: Arc<LocalSessionManager>,
}

/// Settings of a face in its URL.
#[derive(Deserialize)]
struct FaceQuery {
    /// Most bytes of text of a result, such as `8KiB`, or `none`.
    limit: Option<String>,
}

/// Serves `/mcp`, `/mcp/search`, `/mcp/all`, `/mcp/s/{server}`, `/metrics` and the state below `/gateway` until `stop`.
///
/// # Errors
/// [`GatewayError`] if the address is taken, or the connection fails.
pub async fn serve(
    gateway: Gateway,
    listener: TcpListener,
    stop: CancellationToken,
) -> Result<(), GatewayError> {
    let port = listener.local_addr()?.port();
    let config = transport_config(&gateway, port, stop.clone())?;
    let faces = Faces { gateway, config, services: Arc::default() };
    let router = Router::new()
        .route("/mcp", any(default_face))
        .route("/mcp/all", any(all))
        .route("/mcp/search", any(search))
        .route("/mcp/s/{server}", any(one_server))
        .route("/gateway/status", get(status))
        .route("/gateway/logs/{server}", get(logs))
        .route("/gateway/restart/{server}", post(restart))
        .route("/metrics", get(exposed_metrics))
        .layer(middleware::from_fn_with_state(faces.clone(), guard))
        .with_state(faces);
    axum::serve(listener, router)
        .with_graceful_shutdown(stop.cancelled_owned())
        .await
        .map_err(GatewayError::Io)
}

/// Serves one host on this process's standard streams, until it closes them.
///
/// # Errors
/// [`GatewayError`] if the host does not speak MCP.
pub async fn serve_stdio(
    gateway: Gateway,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
    stop: CancellationToken,
) -> Result<(), GatewayError> {
    let exposure = Exposure::from(gateway.config().gateway.expose);
    let face = Face::new(gateway, exposure);
    let (near, far) = tokio::io::duplex(PIPE);
    let renaming = tokio::spawn(rename_lines(input, near));
    let served = face
        .serve_with_ct((far, output), stop)
        .await
        .map_err(|error| GatewayError::Handshake(error.to_string()));
    let outcome = match served {
        Ok(running) => running.waiting().await.map(|_reason| ()).map_err(io::Error::other),
        Err(error) => {
            renaming.abort();
            return Err(error);
        }
    };
    renaming.abort();
    outcome.map_err(GatewayError::Io)
}

/// Hands lines on, requests that are relayed under the gateway's own names.
async fn rename_lines(
    input: impl AsyncRead + Unpin,
    mut output: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    let mut lines = FramedRead::new(input, LinesCodec::new_with_max_length(MESSAGE_MAX));
    while let Some(line) = lines.next().await {
        let line = line.map_err(io::Error::other)?;
        let renamed = relayed::renamed(line.as_bytes(), &mut HeaderMap::new());
        let mut message = renamed.unwrap_or_else(|| line.into_bytes());
        message.push(b'\n');
        output.write_all(&message).await?;
    }
    output.shutdown().await
}

/// Returns the rules of the transport. Pages of other origins than the gateway's own are refused, and names of hosts that
/// are not its own: a page could have them resolve to this machine (DNS rebinding).
fn transport_config(
    gateway: &Gateway,
    port: u16,
    stop: CancellationToken,
) -> Result<StreamableHttpServerConfig, GatewayError> {
    let settings = &gateway.config().gateway;
    let mut hosts: Vec<String> =
        ["localhost", "127.0.0.1", "[::1]", "::1"].map(str::to_owned).to_vec();
    if !settings.public_url.is_empty() {
        let url = Url::parse(&settings.public_url).map_err(GatewayError::PublicUrl)?;
        hosts.extend(url.host_str().map(str::to_owned));
    }
    let mut origins = settings.allowed_origins.clone();
    origins.extend(["localhost", "127.0.0.1", "[::1]"].map(|host| format!("http://{host}:{port}")));
    // A priming event has no data; a host of 2025-06-18 ends the connection at one.
    Ok(StreamableHttpServerConfig::default()
        .with_allowed_hosts(hosts)
        .with_allowed_origins(origins)
        .enforce_origin_validation()
        .with_sse_retry(None)
        .with_max_request_body_bytes(MESSAGE_MAX)
        .with_cancellation_token(stop))
}

async fn default_face(
    State(faces): State<Faces>,
    Query(query): Query<FaceQuery>,
    request: Request,
) -> Response {
    let exposure = Exposure::from(faces.gateway.config().gateway.expose);
    faces.serve(exposure, &query, request).await
}

async fn all(
    State(faces): State<Faces>,
    Query(query): Query<FaceQuery>,
    request: Request,
) -> Response {
    faces.serve(Exposure::All, &query, request).await
}

async fn search(
    State(faces): State<Faces>,
    Query(query): Query<FaceQuery>,
    request: Request,
) -> Response {
    faces.serve(Exposure::Search, &query, request).await
}

async fn one_server(
    State(faces): State<Faces>,
    Path(server): Path<String>,
    Query(query): Query<FaceQuery>,
    request: Request,
) -> Response {
    faces.serve(Exposure::Server(server), &query, request).await
}

impl Faces {
    async fn serve(&self, exposure: Exposure, query: &FaceQuery, request: Request) -> Response {
        let limit = query.limit.as_deref().map(units::size);
        if limit == Some(None) {
            let problem = "`limit` is no size, such as 32KiB or none\n";
            return (StatusCode::BAD_REQUEST, problem).into_response();
        }
        if let Exposure::Server(server) = &exposure {
            if self.gateway.server(server).is_none() {
                let problem = format!("no server {server:?} is behind this gateway\n");
                return (StatusCode::NOT_FOUND, problem).into_response();
            }
            // What it can do is told in the handshake.
            self.gateway.await_listing(server, SERVER_WAIT).await;
        }
        let Served { service, sessions } = self.served(exposure.clone());
        let (mut parts, body) = request.into_parts();
        if let Some(limit) = limit.flatten() {
            parts.extensions.insert(ResultLimit(limit));
        }
        let body = if parts.method == Method::POST {
            let Ok(message) = to_bytes(body, MESSAGE_MAX).await else {
                let problem = format!("a message has at most {MESSAGE_MAX} bytes\n");
                return (StatusCode::PAYLOAD_TOO_LARGE, problem).into_response();
            };
            if relayed::opens_session(&message)
                && sessions.sessions.read().await.len() >= SESSIONS_MAX
            {
                let problem = format!("{SESSIONS_MAX} sessions are open: end one\n");
                return (StatusCode::SERVICE_UNAVAILABLE, problem).into_response();
            }
            let refusal =
                mirrored::refusal(&self.gateway, &exposure, &message, &parts.headers).await;
            if let Some(refusal) = refusal {
                return refusal;
            }
            match relayed::renamed(&message, &mut parts.headers) {
                Some(renamed) => {
                    parts.headers.remove(header::CONTENT_LENGTH);
                    Body::from(renamed)
                }
                None => Body::from(message),
            }
        } else {
            body
        };
        service.handle(Request::from_parts(parts, body)).await.map(Body::new)
    }

    fn served(&self, exposure: Exposure) -> Served {
        let mut services = self.services.lock();
        if let Some(served) = services.get(&exposure) {
            return served.clone();
        }
        let face = Face::new(self.gateway.clone(), exposure.clone());
        let mut sessions = LocalSessionManager::default();
        sessions.session_config.sse_retry = None;
        sessions.session_config.keep_alive = Some(SESSION_KEPT);
        let sessions = Arc::new(sessions);
        let service = StreamableHttpService::new(
            move || Ok(face.for_session()),
            Arc::clone(&sessions),
            self.config.clone(),
        );
        let served = Served { service, sessions };
        services.insert(exposure, served.clone());
        served
    }
}

/// Time for a server to be there when its own face is asked.
const SERVER_WAIT: Duration = Duration::from_secs(30);

/// Refuses pages of other origins, and names that are not the gateway's, for its state. The protocol library does so for
/// MCP.
async fn guard(State(faces): State<Faces>, request: Request, next: middleware::Next) -> Response {
    if request.uri().path().starts_with("/mcp") {
        return next.run(request).await;
    }
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    let url = host.and_then(|host| Url::parse(&format!("http://{host}")).ok());
    let name = url.as_ref().and_then(Url::host_str).unwrap_or_default();
    let is_ours = faces.config.allowed_hosts.iter().any(|allowed| allowed == name);
    // Scrapers ask by address, and no name resolves to one anew.
    let is_scrape = request.uri().path() == "/metrics"
        && matches!(url.as_ref().and_then(Url::host), Some(Host::Ipv4(_) | Host::Ipv6(_)));
    if !(is_ours || is_scrape) || request.headers().contains_key(header::ORIGIN) {
        return (StatusCode::FORBIDDEN, "this host or origin is not allowed\n").into_response();
    }
    next.run(request).await
}

async fn status(State(faces): State<Faces>) -> Response {
    Json(faces.gateway.overview()).into_response()
}

async fn exposed_metrics(State(faces): State<Faces>) -> Response {
    let metrics = metrics::exposed(faces.gateway.overview());
    ([(header::CONTENT_TYPE, metrics::OPEN_METRICS)], metrics).into_response()
}

async fn logs(State(faces): State<Faces>, Path(server): Path<String>) -> Response {
    match faces.gateway.fleet().logs(&server) {
        Some(logs) => logs.into_response(),
        None => (StatusCode::NOT_FOUND, format!("no server {server:?}\n")).into_response(),
    }
}

async fn restart(State(faces): State<Faces>, Path(server): Path<String>) -> Response {
    if faces.gateway.fleet().restart(&server) {
        StatusCode::ACCEPTED.into_response()
    } else {
        (StatusCode::NOT_FOUND, format!("no server {server:?}\n")).into_response()
    }
}
