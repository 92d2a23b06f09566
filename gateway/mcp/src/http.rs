//! The gateway's faces: Streamable HTTP, standard streams, and its state for `toolgate gateway status`.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{ConnectInfo, Extension, Path, Query, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{any, get, post};
use axum::serve::{Listener, ListenerExt as _};
use axum::{Router, middleware};
use futures_util::StreamExt as _;
use parking_lot::Mutex;
use rmcp::ServiceExt as _;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde::Deserialize;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio_util::codec::{FramedRead, LinesCodec};
use tokio_util::sync::CancellationToken;
use url::{Host, Url};

use crate::authentication::{
    Authentication, HostPeer, PresentedCredentials, ProtectedResource, Refusal, WELL_KNOWN,
    until_refused,
};
use crate::caller::Caller;
use crate::connecting;
use crate::face::{Exposure, Face, ResultLimit, Traced, Uncounted};
use crate::gateway::Gateway;
use crate::metrics;
use crate::mirrored;
use crate::placed::{self, LineResults, ResultPlace};
use crate::relayed;
use crate::replicas::Others;
use crate::sessions::{Carried, SESSION_HEADER, SealedSession, Sessions};
use crate::units;

/// Largest message of a host, in bytes.
const MESSAGE_MAX: usize = 4 << 20;

/// Most sessions of one face that are alive at once. Hosts of 2026-07-28 need none.
const SESSIONS_MAX: usize = 1_024;

/// Most sessions of one principal at one face that are alive at once.
const SESSIONS_OF_PRINCIPAL_MAX: usize = SESSIONS_MAX / 4;

/// Name in the place of a session's ID that is not good. No session has it.
const NO_SESSION: &str = "none";

/// Pages that say nothing but that the gateway serves, for probes: no credential, no name.
const ALIVE: &str = "/livez";
const READY: &str = "/readyz";

/// Bytes of each pipe between standard streams and the protocol library.
const PIPE: usize = 64 << 10;

/// Time for the last lines to be written.
const LAST_LINES: Duration = Duration::from_secs(2);

type McpService = StreamableHttpService<Traced, Sessions>;

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
    /// The pages for logins of persons can't be served.
    #[error("{0}")]
    Pages(String),
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
    /// Check of credentials; `None` if anybody may call.
    authentication: Option<Arc<dyn Authentication>>,
    resource: Arc<ProtectedResource>,
    services: Arc<Mutex<Services>>,
    others: Others,
}

/// Services by face and tenant.
type Services = HashMap<(Exposure, Arc<str>), Served>;

/// Service of one face to one tenant, and its sessions.
#[derive(Clone)]
struct Served {
    service: McpService,
    sessions: Arc<Sessions>,
}

/// Request to a face: who asks which.
struct Asked<'a> {
    gateway: &'a Gateway,
    caller: &'a Caller,
    exposure: &'a Exposure,
}

/// Settings of a face in its URL.
#[derive(Deserialize)]
struct FaceQuery {
    /// Most bytes of text of a result, such as `8KiB`, or `none`.
    limit: Option<String>,
    /// `false` for searches of people who look at what a model would find: they are no searches of models.
    counted: Option<bool>,
}

/// Serves `/mcp`, `/mcp/search`, `/mcp/all`, `/mcp/s/{server}`, `/metrics`, pages for probes and the state below `/gateway` until
/// `stop`.
/// Without `authentication` anybody who reaches the address is let in. `address` is that of the listener.
///
/// # Errors
/// [`GatewayError`] if the address is taken, or the connection fails.
pub async fn serve(
    gateway: Gateway,
    address: SocketAddr,
    listener: impl Listener<Addr = HostPeer>,
    authentication: Option<Arc<dyn Authentication>>,
    stop: CancellationToken,
) -> Result<(), GatewayError> {
    let config = transport_config(&gateway, address.port(), stop.clone())?;
    let resource = Arc::new(protected_resource(&gateway, address)?);
    let services = Arc::default();
    let pages = connecting::routes(&gateway, address, authentication.clone())?;
    let others = Others::new()?;
    let faces = Faces { gateway, config, authentication, resource, services, others };
    let router = Router::new()
        .route("/mcp", any(default_face))
        .route("/mcp/all", any(all))
        .route("/mcp/search", any(search))
        .route("/mcp/s/{server}", any(one_server))
        .route("/gateway/status", get(status))
        .route("/gateway/logs/{server}", get(logs))
        .route("/gateway/restart/{server}", post(restart))
        .route("/metrics", get(exposed_metrics))
        .route(ALIVE, get(StatusCode::OK))
        .route(READY, get(StatusCode::OK))
        .route(WELL_KNOWN, get(metadata))
        .route(&format!("{WELL_KNOWN}/{{*path}}"), get(metadata))
        .merge(pages)
        .layer(middleware::from_fn_with_state(faces.clone(), guard))
        .with_state(faces);
    let router = router.into_make_service_with_connect_info::<HostPeer>();
    // Behind a tap, whatever the listener is, requests have their peer.
    let listener = listener.tap_io(|_connection| {});
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
    let caller = gateway.anybody();
    let results = Arc::new(LineResults::default());
    let face = Traced(Face::of_host(gateway, exposure, caller, Arc::clone(&results)));
    let (near, far) = tokio::io::duplex(PIPE);
    let (written, filled) = tokio::io::duplex(PIPE);
    let renaming = tokio::spawn(rename_lines(input, near));
    let filling = tokio::spawn(fill_lines(filled, output, results));
    let served = face.serve_with_ct((far, written), stop).await;
    let outcome = match served {
        Ok(running) => match running.waiting().await {
            Ok(_reason) => Ok(()),
            Err(error) => Err(GatewayError::Io(io::Error::other(error))),
        },
        Err(error) => Err(GatewayError::Handshake(error.to_string())),
    };
    renaming.abort();
    // A host that reads no more gets no more.
    let _late = tokio::time::timeout(LAST_LINES, filling).await;
    outcome
}

/// Hands lines on, with results in the places of their marks.
async fn fill_lines(
    written: impl AsyncRead + Unpin,
    mut output: impl AsyncWrite + Unpin,
    results: Arc<LineResults>,
) -> io::Result<()> {
    let mut lines = FramedRead::new(written, LinesCodec::new());
    while let Some(line) = lines.next().await {
        for part in results.filled(line.map_err(io::Error::other)?) {
            output.write_all(&part).await?;
        }
        output.write_all(b"\n").await?;
        output.flush().await?;
    }
    Ok(())
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
    let scheme = settings.scheme();
    let own = ["localhost", "127.0.0.1", "[::1]"].map(|host| format!("{scheme}://{host}:{port}"));
    origins.extend(own);
    // Sessions prime the streams of their answers, by the revision that they speak.
    let mut config = StreamableHttpServerConfig::default()
        .with_allowed_hosts(hosts)
        .with_allowed_origins(origins)
        .enforce_origin_validation()
        .with_sse_retry(None)
        .with_max_request_body_bytes(MESSAGE_MAX)
        .with_cancellation_token(stop);
    config.session_store = Some(Arc::new(Carried));
    Ok(config)
}

/// Returns the gateway as OAuth knows it.
fn protected_resource(
    gateway: &Gateway,
    address: SocketAddr,
) -> Result<ProtectedResource, GatewayError> {
    let base = gateway.config().base_url(address);
    let base = Url::parse(&base).map_err(GatewayError::PublicUrl)?;
    let auth = &gateway.config().gateway.auth;
    Ok(ProtectedResource::new(&base, auth.issuers(), auth.scopes.clone()))
}

async fn metadata(State(faces): State<Faces>, request: Request) -> Response {
    let path = request.uri().path();
    faces.resource.metadata(path.strip_prefix(WELL_KNOWN).unwrap_or_default())
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
        let Some(caller) = request.extensions().get::<Caller>().cloned() else {
            return StatusCode::INTERNAL_SERVER_ERROR.into_response();
        };
        let limit = query.limit.as_deref().map(units::size);
        if limit == Some(None) {
            let problem = "`limit` is no size, such as 32KiB or none\n";
            return (StatusCode::BAD_REQUEST, problem).into_response();
        }
        if let Exposure::Server(server) = &exposure {
            if !self.gateway.sees(&caller.tenant, server) {
                let problem = format!("no server {server:?} is behind this gateway\n");
                return (StatusCode::NOT_FOUND, problem).into_response();
            }
            // What it can do is told in the handshake.
            self.gateway.await_listing(server, SERVER_WAIT).await;
        }
        let (mut parts, body) = request.into_parts();
        if let Some(limit) = limit.flatten() {
            parts.extensions.insert(ResultLimit(limit));
        }
        if query.counted == Some(false) {
            parts.extensions.insert(Uncounted);
        }
        let message = match message(&parts, body).await {
            Ok(message) => message,
            Err(refusal) => return refusal,
        };
        let asked = Asked { gateway: &self.gateway, caller: &caller, exposure: &exposure };
        if let Some(answer) = self.others.answer(&self.gateway, &parts, &message).await {
            return answer;
        }
        self.served(exposure.clone(), &caller.tenant).answer(asked, parts, message).await
    }

    /// Returns the service of a face to a tenant. Tenants are those of the file, so there are few.
    fn served(&self, exposure: Exposure, tenant: &Arc<str>) -> Served {
        let key = (exposure, Arc::clone(tenant));
        let mut services = self.services.lock();
        if let Some(served) = services.get(&key) {
            return served.clone();
        }
        let face = Face::of_tenant(self.gateway.clone(), key.0.clone(), Arc::clone(tenant));
        let sessions = Arc::new(Sessions::new(self.gateway.clone()));
        let service = StreamableHttpService::new(
            move || Ok(Traced(face.for_session())),
            Arc::clone(&sessions),
            self.config.clone(),
        );
        let served = Served { service, sessions };
        services.insert(key, served.clone());
        served
    }

    /// Returns the caller of a request to `path` with these credentials, if it is let in.
    async fn admit(
        &self,
        path: &str,
        values: &[HeaderValue],
        peer: &HostPeer,
    ) -> Result<Caller, Refusal> {
        let caller = match &self.authentication {
            None => return Ok(self.gateway.anybody()),
            Some(authentication) => {
                let authorization = values.iter().map(HeaderValue::as_bytes).collect();
                let presented = PresentedCredentials {
                    authorization,
                    peer: peer.address.ip(),
                    connection: Some(Arc::clone(&peer.connection)),
                };
                authentication.authenticate(presented).await?
            }
        };
        if !self.gateway.has_tenant(&caller.tenant) {
            let problem = "no server of this gateway is for the tenant of the credential";
            return Err(Refusal::Forbidden(problem.to_owned()));
        }
        if !is_mcp(path) && !caller.is_operator {
            let problem = "this is for operators: the credential needs the role admin";
            return Err(Refusal::Forbidden(problem.to_owned()));
        }
        Ok(caller)
    }
}

impl Served {
    /// Answers a request of a caller that was let in.
    async fn answer(&self, asked: Asked<'_>, mut parts: Parts, message: Bytes) -> Response {
        let Asked { gateway, caller, exposure } = asked;
        let names = (caller.turn_name(), exposure.name());
        let purpose = SealedSession::purpose(&names.0, &names.1);
        let session = match parts.headers.get(SESSION_HEADER).map(HeaderValue::to_str) {
            Some(Ok(id)) => self.sessions.opened(id, &purpose).await,
            None | Some(Err(_)) => None,
        };
        if let Some(name) = parts.headers.get_mut(SESSION_HEADER) {
            // What no caller may name, it can't name here either.
            *name = session
                .as_ref()
                .map_or(HeaderValue::from_static(NO_SESSION), SealedSession::header);
        }
        match &session {
            Some(session) if parts.method == Method::DELETE => {
                gateway.ended().end(&session.name).await;
            }
            session => {
                if let Some(most) = self.full_at(caller, session.as_ref(), &message).await {
                    let problem = format!("{most} sessions are open: end one\n");
                    return (StatusCode::SERVICE_UNAVAILABLE, problem).into_response();
                }
            }
        }
        let mut body = Body::from(message.clone());
        let mut result = None;
        if parts.method == Method::POST {
            let refusal =
                mirrored::refusal(gateway, caller, exposure, &message, &parts.headers).await;
            if let Some(refusal) = refusal {
                return refusal;
            }
            if let Some(renamed) = relayed::renamed(&message, &mut parts.headers) {
                parts.headers.remove(header::CONTENT_LENGTH);
                body = Body::from(renamed);
                // Streams of sessions may be taken up again.
                let resumable = session.as_ref().map(|_| Arc::clone(gateway.resumable()));
                result = ResultPlace::new(resumable);
            }
        }
        if let Some(place) = &result {
            parts.extensions.insert(place.awaited());
        }
        let request = Request::from_parts(parts, body);
        let serving = Box::pin(async { self.service.handle(request).await.map(Body::new) });
        let served = self.sessions.served(session.as_ref(), caller, &purpose, serving).await;
        match result {
            Some(place) => place.fill(served),
            None if relayed::opens_session(&message) => placed::greeting(served),
            None => served,
        }
    }

    /// Returns the bound that a request would pass by one more session that is alive. Without credentials everybody is one
    /// principal, whom only the bound of the face holds.
    async fn full_at(
        &self,
        caller: &Caller,
        session: Option<&SealedSession>,
        message: &[u8],
    ) -> Option<usize> {
        let makes_one = match session {
            Some(session) => !self.sessions.has(&session.name).await,
            None => relayed::opens_session(message),
        };
        if !makes_one {
            return None;
        }
        if self.sessions.count().await >= SESSIONS_MAX {
            return Some(SESSIONS_MAX);
        }
        let is_full = !caller.principal.is_empty()
            && self.sessions.count_of(&caller.owner()).await >= SESSIONS_OF_PRINCIPAL_MAX;
        is_full.then_some(SESSIONS_OF_PRINCIPAL_MAX)
    }
}

/// Returns the message of a request; an empty one of a request that has none.
async fn message(parts: &Parts, body: Body) -> Result<Bytes, Response> {
    if parts.method != Method::POST {
        return Ok(Bytes::new());
    }
    to_bytes(body, MESSAGE_MAX).await.map_err(|_too_large| {
        let problem = format!("a message has at most {MESSAGE_MAX} bytes\n");
        (StatusCode::PAYLOAD_TOO_LARGE, problem).into_response()
    })
}

fn is_mcp(path: &str) -> bool {
    path == "/mcp" || path.starts_with("/mcp/")
}

/// Time for a server to be there when its own face is asked.
const SERVER_WAIT: Duration = Duration::from_secs(30);

/// Refuses pages of other origins, and names that are not the gateway's, for its state: the protocol library does so for
/// MCP. Then lets in those who may call, whose [`Caller`] goes with the request.
async fn guard(
    State(faces): State<Faces>,
    ConnectInfo(peer): ConnectInfo<HostPeer>,
    mut request: Request,
    next: middleware::Next,
) -> Response {
    if [ALIVE, READY].contains(&request.uri().path()) {
        return next.run(request).await;
    }
    // Pages for persons check the origin by themselves, and nobody calls a tool by them.
    let path = request.uri().path();
    let is_metadata = path.starts_with(WELL_KNOWN) || connecting::is_page(path);
    if !is_mcp(request.uri().path()) {
        let is_page = request.headers().contains_key(header::ORIGIN) && !is_metadata;
        if is_page || !faces.is_named(request.uri(), request.headers()) {
            let problem = "this host or origin is not allowed\n";
            return (StatusCode::FORBIDDEN, problem).into_response();
        }
    }
    if is_metadata {
        return next.run(request).await;
    }
    // A body can't be shared between threads, so the request must not be borrowed across an await.
    let path = request.uri().path().to_owned();
    let values: Vec<_> = request.headers().get_all(header::AUTHORIZATION).iter().cloned().collect();
    match faces.admit(&path, &values, &peer).await {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            let is_followed = is_followed(&request);
            let response = next.run(request).await;
            match &faces.authentication {
                Some(authentication) if is_followed => {
                    let authentication = Arc::clone(authentication);
                    ending(response, until_refused(authentication, values, peer))
                }
                _ => response,
            }
        }
        Err(refusal) => faces.resource.refused(&refusal, &path),
    }
}

/// Returns true if the answer is a stream without an end: changes that a host follows.
fn is_followed(request: &Request) -> bool {
    let method = request.headers().get("mcp-method");
    is_mcp(request.uri().path())
        && (request.method() == Method::GET
            || method.is_some_and(|method| method == "subscriptions/listen"))
}

async fn exposed_metrics(
    State(faces): State<Faces>,
    Extension(caller): Extension<Caller>,
) -> Response {
    let metrics = metrics::exposed(faces.gateway.overview(&caller));
    ([(header::CONTENT_TYPE, metrics::OPEN_METRICS)], metrics).into_response()
}

/// Returns the response with a body that ends when `end` does.
fn ending(response: Response, end: impl Future<Output = ()> + Send + 'static) -> Response {
    response.map(|body| Body::from_stream(body.into_data_stream().take_until(Box::pin(end))))
}

impl Faces {
    /// Returns true if the request names a host that is the gateway's.
    fn is_named(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        let url = named_host(uri, headers);
        let name = url.as_ref().and_then(Url::host_str).unwrap_or_default();
        // Scrapers ask by address, and no name resolves to one anew.
        let is_scrape = uri.path() == "/metrics"
            && matches!(url.as_ref().and_then(Url::host), Some(Host::Ipv4(_) | Host::Ipv6(_)));
        is_scrape || self.config.allowed_hosts.iter().any(|allowed| allowed == name)
    }
}

/// Returns the host that a request names, as a URL. Over HTTP/2 it is in the request's own URI.
fn named_host(uri: &Uri, headers: &HeaderMap) -> Option<Url> {
    let host = headers.get(header::HOST).map(HeaderValue::to_str);
    let host = match host {
        Some(host) => host.ok()?,
        None => uri.authority()?.as_str(),
    };
    Url::parse(&format!("http://{host}")).ok()
}

async fn status(State(faces): State<Faces>, Extension(caller): Extension<Caller>) -> Response {
    Json(faces.gateway.reviewed_overview(&caller).await).into_response()
}

async fn logs(
    State(faces): State<Faces>,
    Extension(caller): Extension<Caller>,
    Path(server): Path<String>,
) -> Response {
    let is_seen = faces.gateway.may_operate(&caller, &server);
    let tenant = (!caller.is_of_all_tenants).then_some(&*caller.tenant);
    match faces.gateway.fleet().logs(&server, tenant).filter(|_| is_seen) {
        Some(logs) => logs.into_response(),
        None => (StatusCode::NOT_FOUND, format!("no server {server:?}\n")).into_response(),
    }
}

async fn restart(
    State(faces): State<Faces>,
    Extension(caller): Extension<Caller>,
    Path(server): Path<String>,
) -> Response {
    let fleet = faces.gateway.fleet();
    let is_seen = faces.gateway.may_operate(&caller, &server);
    let mut held = fleet.status().into_iter().filter(|status| status.is_held);
    if is_seen && let Some(status) = held.find(|status| status.name == server) {
        // Nothing is started until the files name what it lacks.
        let problem = status.problem.unwrap_or_default();
        return (StatusCode::CONFLICT, format!("{server} waits: {problem}\n")).into_response();
    }
    if is_seen && fleet.restart(&server) {
        StatusCode::ACCEPTED.into_response()
    } else {
        (StatusCode::NOT_FOUND, format!("no server {server:?}\n")).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_named_by_both_versions_of_http() {
        let named = |uri: &str, host: Option<&str>| {
            let mut headers = HeaderMap::new();
            if let Some(host) = host {
                headers.insert(header::HOST, host.parse().expect("a header"));
            }
            let url = named_host(&uri.parse().expect("a URI"), &headers);
            url.and_then(|url| url.host_str().map(str::to_owned))
        };
        assert_eq!(named("/mcp", Some("localhost:7080")).as_deref(), Some("localhost"));
        assert_eq!(named("https://localhost:7080/mcp", None).as_deref(), Some("localhost"));
        let rebound = named("https://localhost/mcp", Some("evil.example"));
        assert_eq!(
            rebound.as_deref(),
            Some("evil.example"),
            "the header counts where there is one"
        );
        assert_eq!(named("/mcp", None), None);
    }
}
