//! The proxy's face: every request below `/anthropic`, `/openai` and `/gemini` goes to the operator's base URL. Chat requests
//! are decided on first.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, BodyDataStream, Bytes, HttpBody as _};
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Json, Response};
use axum::routing::get;
use axum::serve::Listener;
use futures_util::{StreamExt as _, stream};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use serde::Deserialize;
use serde_json::json;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use toolgate_client::Client;
use toolgate_llm::strategy::Api;
use toolgate_serving::{Owner as Holder, Share, Shares};

use crate::chat::{PassReason, Unsendable};
use crate::config::Config;
use crate::enclosed::Enclosing;
use crate::exchange::{Exchange, Original, ask_for_plain, is_compressed, is_refusal, is_stream};
use crate::guard::Names;
use crate::held::{holding, holding_in_time};
use crate::lease::Leases;
use crate::metrics::{OPEN_METRICS, OpenRequest};
use crate::provider::Provider;
use crate::savings::{Account, Savings};
use crate::serving::{Pace, Peer, serve_routes};
use crate::stored::{Stored, StoredPath};
use crate::tenant::{Authentication, Caller, PresentedKey, Refusal, key_of, own_key_of};
use crate::turn::{
    Decider, Owner, SWITCHED_OFF, StoredTurn, Thinned, Turn, caught, warm_up, with_withheld,
};
use crate::upstream::{Failure, Head, PIECE_MAX, Upstream, UpstreamError, is_climbing};
use crate::way::{Answer, Carrier, Payload, Pieces, Way};
use crate::{gemini, headers, undeferred};

/// Header of an answer that says what was done with its request.
const NOTE: HeaderName = HeaderName::from_static("x-toolgate");

/// Largest request whose model is read for the accounts when it is sent as it came.
const NAMED_MAX: usize = 1 << 20;

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

/// Surroundings of a proxy.
pub struct Plane {
    /// Routing plane that chooses tools.
    pub client: Client,
    /// True if other processes of the proxy may ask the same plane.
    pub is_shared: bool,
    /// Check of hosts' keys; `None` if none is needed.
    pub authentication: Option<Arc<dyn Authentication>>,
    /// Accounts to keep.
    pub savings: Savings,
}

/// Proxy before the providers. Cloning is cheap.
#[derive(Clone)]
pub struct Proxy(Arc<Shared>);

/// Surroundings of all requests.
struct Shared {
    upstream: Upstream,
    decider: Decider,
    savings: Savings,
    authentication: Option<Arc<dyn Authentication>>,
    /// Tenant of hosts without keys.
    tenant: Arc<str>,
    /// Requests under way, and bytes of their bodies, with the share of each tenant.
    requests: Shares,
    memory: Shares,
    request_memory: usize,
    max_body: usize,
    pace: Pace,
    body_timeout: Duration,
    public_url: String,
}

/// Proxy's face for hosts.
struct Face {
    names: Names,
    shared: Arc<Shared>,
}

/// Places that a request holds until its answer has ended.
type Held = (Share, OpenRequest);

/// Chat request of a host that was let in.
struct Chat {
    api: Api,
    caller: Caller,
    head: Head,
    way: Way,
}

/// Place of a chat among the APIs of the providers.
#[derive(Debug, Clone, Copy)]
pub struct ChatPath<'a> {
    provider: Provider,
    api: Api,
    /// Provider's own path.
    path: &'a str,
    query: Option<&'a str>,
}

/// Chat request that another proxy has taken from its host. It holds keys, so that it has no `Debug`.
pub struct CarriedChat<'a> {
    /// Place that it is for.
    pub path: ChatPath<'a>,
    /// Headers of the host.
    pub headers: HeaderMap,
    /// Body of the host.
    pub body: Body,
    /// Host, as [`Proxy::admit`] knows it.
    pub caller: Caller,
    /// Way of the turn's first request.
    pub carrier: Box<dyn Carrier>,
}

/// Body of a request: read whole, or not.
enum ReadBody {
    /// The body, and its share of the memory.
    Whole(Vec<u8>, Share),
    /// The part that was read, the rest, and the reason why that was not.
    Part(Vec<u8>, BodyDataStream, PassReason),
}

impl Proxy {
    /// Returns a proxy that asks a routing plane.
    ///
    /// # Errors
    /// [`ProxyError`] if TLS can't be set up.
    pub fn new(config: &Config, plane: Plane) -> Result<Self, ProxyError> {
        let Plane { client, is_shared, authentication, savings } = plane;
        let llm = &config.llm;
        tokio::task::spawn_blocking(warm_up);
        let leases = is_shared.then(|| Arc::new(Leases::new(&client, llm.toolset_lease)));
        if let Some(leases) = &leases {
            leases.begin();
        }
        let shared = Shared {
            upstream: Upstream::new(config)?,
            decider: Decider::new(client, leases, config, savings.clone()),
            savings,
            authentication,
            tenant: Arc::from(llm.tenant.as_str()),
            requests: Shares::new(llm.max_requests),
            memory: Shares::new(llm.request_memory),
            request_memory: llm.request_memory,
            max_body: llm.max_body,
            pace: Pace { head: llm.head_timeout, write: llm.write_timeout },
            body_timeout: llm.body_timeout,
            public_url: llm.public_url.clone(),
        };
        Ok(Self(Arc::new(shared)))
    }

    /// Serves hosts until `stop`, and then ends answers under way within ten seconds.
    ///
    /// # Errors
    /// [`ProxyError`] if the listener fails.
    pub async fn serve(
        &self,
        listener: impl Listener<Addr = SocketAddr>,
        stop: CancellationToken,
    ) -> Result<(), ProxyError> {
        let names = Names::new(listener.local_addr()?, &self.0.public_url);
        let face = Face { names, shared: Arc::clone(&self.0) };
        let router = Router::new()
            .route("/livez", get(StatusCode::OK))
            .route("/metrics", get(exposed_metrics))
            .route("/toolgate/usage", get(usage))
            .fallback(forward)
            .with_state(Arc::new(face));
        serve_routes(listener, router, self.0.pace, stop).await;
        Ok(())
    }

    /// Returns the deadlines of connections.
    #[must_use]
    pub fn pace(&self) -> Pace {
        self.0.pace
    }

    /// Takes what was registered out of the routing plane.
    pub async fn close(&self) {
        if timeout(CLOSING_MAX, self.0.decider.close()).await.is_err() {
            tracing::warn!("sets of tools were left in the routing plane");
        }
    }

    /// Returns the longest time between two pieces of a provider's answer.
    #[must_use]
    pub fn idle_timeout(&self) -> Duration {
        self.0.upstream.idle_timeout()
    }

    /// Returns who asks for a chat that another proxy, at the address `peer`, has taken from its host.
    ///
    /// # Errors
    /// The answer for a host that is not let in.
    pub async fn admit(
        &self,
        path: ChatPath<'_>,
        headers: &HeaderMap,
        peer: IpAddr,
    ) -> Result<Caller, Box<Response>> {
        let caller = self.0.caller(Some(peer), key_of(headers)).await;
        caller.map_err(|refusal| Box::new(self.0.refusal(path.provider, refusal)))
    }

    /// Answers a chat whose first request another proxy carries.
    pub async fn answer(&self, chat: CarriedChat<'_>) -> Response {
        let CarriedChat { path, headers, body, caller, carrier } = chat;
        let ChatPath { provider, api, path, query } = path;
        let proxy = &self.0;
        let Some(url) = proxy.upstream.url(provider, path, query) else {
            return climbing(provider);
        };
        let head =
            Head { provider, method: Method::POST, url, headers: headers::of_request(headers) };
        let way = Way::new(proxy.upstream.clone(), Some(carrier));
        let mut chat = Chat { api, caller, head, way };
        let Some(held) = proxy.hold(&chat.caller) else {
            // The other proxy has its own limits.
            proxy.savings.metrics().refused("requests");
            proxy.account(&chat, &[]).passed("busy");
            let body = Payload::Pieces(in_time(body.into_data_stream()));
            return pass(&mut chat.way, &chat.head, body, "busy").await;
        };
        let response = Box::pin(proxy.chat(chat, body)).await;
        holding_in_time(response, held, proxy.pace.write)
    }
}

impl<'a> ChatPath<'a> {
    /// Finds the chat that a request asks for. Its path is that of the proxy, or the provider's own. `None` if it is none.
    #[must_use]
    pub fn find(method: &Method, path: &'a str, query: Option<&'a str>) -> Option<Self> {
        if method != Method::POST || is_climbing(path) {
            return None;
        }
        let (provider, path) = Provider::split(path).or_else(|| {
            Provider::ALL
                .into_iter()
                .find(|one| one.chat(path, query).is_some())
                .map(|one| (one, path))
        })?;
        let api = provider.chat(path, query)?;
        Some(Self { provider, api, path, query })
    }
}

async fn usage(State(face): State<Arc<Face>>, request: Request) -> Response {
    let Face { names, shared: proxy } = &*face;
    if !names.allow(request.uri(), request.headers()) {
        return StatusCode::FORBIDDEN.into_response();
    }
    let caller = match proxy.caller(peer_of(&request), own_key_of(request.headers())).await {
        Ok(caller) => caller,
        Err(refusal) => return own_refusal(refusal),
    };
    let seen = if caller.is_operator { None } else { Some(&*caller.tenant) };
    let totals = proxy.savings.totals_of(seen);
    let accounts = proxy.savings.accounts_of(seen);
    let saved = totals.saved_tokens();
    Json(json!({ "totals": totals, "saved_tokens_computed": saved, "accounts": accounts }))
        .into_response()
}

async fn exposed_metrics(State(face): State<Arc<Face>>, request: Request) -> Response {
    let Face { names, shared: proxy } = &*face;
    if !names.allow_scrape(request.uri(), request.headers()) {
        return StatusCode::FORBIDDEN.into_response();
    }
    match proxy.caller(peer_of(&request), own_key_of(request.headers())).await {
        Ok(caller) if caller.is_operator => {}
        Ok(_) => return own_refusal(Refusal::Forbidden),
        Err(refusal) => return own_refusal(refusal),
    }
    let metrics = proxy.savings.metrics();
    metrics.bodies(proxy.request_memory.saturating_sub(proxy.memory.free()));
    ([(header::CONTENT_TYPE, OPEN_METRICS)], metrics.exposed()).into_response()
}

/// Answers a request to a page of the proxy's own that is not let in.
fn own_refusal(refusal: Refusal) -> Response {
    (refusal.status(), format!("{}\n", refusal.problem())).into_response()
}

async fn forward(State(face): State<Arc<Face>>, request: Request) -> Response {
    let Face { names, shared: proxy } = &*face;
    let uri = request.uri().clone();
    let Some((provider, path)) = Provider::split(uri.path()) else {
        let known = "paths begin with /anthropic, /openai or /gemini\n";
        return (StatusCode::NOT_FOUND, known).into_response();
    };
    if !names.allow(request.uri(), request.headers()) {
        let problem = "this host or origin is not allowed: call the proxy by its own address";
        return provider.error(StatusCode::FORBIDDEN, problem);
    }
    let upgrade = request.headers().get(header::UPGRADE).map(HeaderValue::as_bytes);
    if upgrade.is_some_and(|kind| kind.eq_ignore_ascii_case(b"websocket")) {
        return without_websocket(provider);
    }
    let Some(url) = proxy.upstream.url(provider, path, uri.query()) else {
        return climbing(provider);
    };
    let caller = match proxy.caller(peer_of(&request), key_of(request.headers())).await {
        Ok(caller) => caller,
        Err(refusal) => return proxy.refusal(provider, refusal),
    };
    let Some(held) = proxy.hold(&caller) else { return proxy.overloaded(provider) };
    let is_post = request.method() == Method::POST;
    let chat = provider.chat(path, uri.query()).filter(|_| is_post);
    let enclosing = Enclosing::find(provider, path).filter(|_| is_post);
    let enclosing = enclosing.filter(|enclosing| proxy.looks_into(*enclosing, &caller));
    let (parts, body) = request.into_parts();
    let stored = StoredPath::find(&parts.method, path, uri.query());
    let stored = stored.filter(|_| provider == Provider::OpenAi && body.is_end_stream());
    let headers = headers::of_request(parts.headers);
    let head = Head { provider, method: parts.method, url, headers };
    let mut way = Way::new(proxy.upstream.clone(), None);
    let response = match (chat, enclosing) {
        (Some(api), _) => Box::pin(proxy.chat(Chat { api, caller, head, way }, body)).await,
        (None, Some(enclosing)) => {
            let chat = Chat { api: enclosing.api, caller, head, way };
            Box::pin(proxy.enclosing(chat, enclosing, body)).await
        }
        // A request without a body has none on its way on either.
        (None, None) if body.is_end_stream() => {
            Box::pin(proxy.without_body(stored, &caller, head)).await
        }
        (None, None) => {
            let body = Payload::Pieces(in_time(body.into_data_stream()));
            pass(&mut way, &head, body, "no-chat").await
        }
    };
    holding_in_time(response, held, proxy.pace.write)
}

impl Shared {
    /// Returns who calls with a key.
    async fn caller(&self, peer: Option<IpAddr>, key: Option<Vec<u8>>) -> Result<Caller, Refusal> {
        let Some(authentication) = &self.authentication else {
            return Ok(Caller { tenant: Arc::clone(&self.tenant), is_operator: true });
        };
        let peer = peer.ok_or(Refusal::Unavailable)?;
        authentication.authenticate(PresentedKey { key, peer }).await
    }

    /// Answers a request that is not let in.
    fn refusal(&self, provider: Provider, refusal: Refusal) -> Response {
        self.savings.metrics().refused(refusal.name());
        provider.error(refusal.status(), refusal.problem())
    }

    /// Answers a request for which there is no place.
    fn overloaded(&self, provider: Provider) -> Response {
        self.savings.metrics().refused("requests");
        let problem = "too many requests are under way (llm.max_requests): try again";
        let mut response = provider.error(StatusCode::TOO_MANY_REQUESTS, problem);
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        response
    }

    /// Takes a place among the requests under way. `None` if its tenant has its share of them.
    fn hold(&self, caller: &Caller) -> Option<Held> {
        let share = self.requests.take(&holder(caller), 1)?;
        Some((share, self.savings.metrics().opened()))
    }

    /// Sends a chat request with the tools that it needs, or as it came.
    async fn chat(&self, mut chat: Chat, body: Body) -> Response {
        let read = self.read(&chat.caller, body).await;
        let begun = Instant::now();
        let (mut bytes, memory) = match read {
            Ok(ReadBody::Whole(bytes, memory)) => (bytes, memory),
            Ok(ReadBody::Part(begun, rest, reason)) => {
                let begun = stream::iter([Ok(Bytes::from(begun))]);
                self.account(&chat, &[]).passed(reason);
                let body = Payload::Pieces(Box::pin(begun.chain(in_time(rest))));
                return pass(&mut chat.way, &chat.head, body, reason).await;
            }
            Err(failure) => {
                self.savings.metrics().refused("body");
                return refused(chat.head.provider, &failure);
            }
        };
        if let Some(followed) = self.followed(&chat, &bytes) {
            chat.head.headers.remove(header::CONTENT_LENGTH);
            bytes = followed.into_bytes();
        }
        match self.decide(&chat, &bytes).await {
            Ok((turn, body)) => {
                turn.account().added(turn.strategy(), begun.elapsed());
                let original = Original { head: chat.head, body: bytes.into() };
                let response = Box::pin(rewritten(turn, chat.way, original, body)).await;
                holding(response, memory)
            }
            Err(reason) => self.pass_chat(chat, bytes, reason, begun).await,
        }
    }

    /// Sends a chat request that was decided on, as it came but for tools that are withheld.
    async fn pass_chat(
        &self,
        mut chat: Chat,
        mut bytes: Vec<u8>,
        mut reason: PassReason,
        begun: Instant,
    ) -> Response {
        let itself = Enclosing::chat(chat.api);
        let withheld = match self.withhold(&mut chat, itself, &mut bytes) {
            Ok(withheld) => withheld,
            Err(failure) => return refused(chat.head.provider, &failure),
        };
        if let Some(loaded) = self.undeferred(&mut chat, &bytes).await {
            reason = SWITCHED_OFF;
            bytes = loaded.into_bytes();
        }
        let account = self.account(&chat, &bytes);
        account.passed(reason);
        account.added("pass", begun.elapsed());
        let note = with_withheld(note_of_pass(reason), withheld);
        pass_noted(&mut chat.way, &chat.head, Payload::Whole(bytes.into()), &note).await
    }

    /// Returns true if a request that is no chat has to be read: it may have tools that are withheld, or go on from an answer.
    fn looks_into(&self, enclosing: Enclosing, caller: &Caller) -> bool {
        enclosing.goes_on() || self.decider.withholds(&caller.tenant)
    }

    /// Sends a request that holds chats. That of OpenAI's Responses may go on from an answer, and hold thoughts, as a chat does.
    async fn enclosing(&self, mut chat: Chat, enclosing: Enclosing, body: Body) -> Response {
        let reason = "no-chat";
        match self.read(&chat.caller, body).await {
            Ok(ReadBody::Whole(mut bytes, memory)) => {
                if let Some(followed) = self.followed(&chat, &bytes) {
                    chat.head.headers.remove(header::CONTENT_LENGTH);
                    bytes = followed.into_bytes();
                }
                let withheld = match self.withhold(&mut chat, enclosing, &mut bytes) {
                    Ok(withheld) => withheld,
                    Err(failure) => return refused(chat.head.provider, &failure),
                };
                let note = with_withheld(note_of_pass(reason), withheld);
                let body = Payload::Whole(bytes.into());
                holding(pass_noted(&mut chat.way, &chat.head, body, &note).await, memory)
            }
            Ok(ReadBody::Part(begun, rest, _)) => {
                let begun = stream::iter([Ok(Bytes::from(begun))]);
                let body = Payload::Pieces(Box::pin(begun.chain(in_time(rest))));
                pass(&mut chat.way, &chat.head, body, reason).await
            }
            Err(failure) => {
                self.savings.metrics().refused("body");
                refused(chat.head.provider, &failure)
            }
        }
    }

    /// Sends a request without a body. One for an answer that OpenAI keeps is for all of its turn, if that was rewritten.
    async fn without_body(
        &self,
        stored: Option<StoredPath<'_>>,
        caller: &Caller,
        head: Head,
    ) -> Response {
        let mut way = Way::new(self.upstream.clone(), None);
        let keys = keys_of(&head.headers);
        let owner = Owner { tenant: &caller.tenant, keys: &keys };
        let known = stored.and_then(|path| Some((path, self.decider.stored(path.id, owner)?)));
        let Some((path, StoredTurn { behind, tools })) = known else {
            return pass(&mut way, &head, Payload::Whole(Bytes::new()), "no-chat").await;
        };
        let url = |id: &String| self.upstream.url(head.provider, &path.of(id), head.url.query());
        let Some(urls) = behind.ids.iter().map(url).collect::<Option<Vec<_>>>() else {
            return climbing(head.provider);
        };
        let note = format!("restored; answers={}", urls.len());
        let stored = Stored { way, head, behind, urls, tools };
        noted(stored.answer(path).await, &note)
    }

    /// Takes the tools that the routing plane quarantined out of a request, and returns their number.
    ///
    /// # Errors
    /// The answer for a request that can't be sent without them.
    fn withhold(
        &self,
        chat: &mut Chat,
        enclosing: Enclosing,
        bytes: &mut Vec<u8>,
    ) -> Result<usize, Failure> {
        match self.without_quarantined(chat, enclosing, bytes) {
            Ok(None) => Ok(0),
            Ok(Some(thinned)) => {
                chat.head.headers.remove(header::CONTENT_LENGTH);
                *bytes = thinned.text.into_bytes();
                Ok(thinned.withheld)
            }
            Err(unsendable) => {
                self.savings.metrics().refused(unsendable.name());
                Err(unsendable.into())
            }
        }
    }

    /// Returns a request without the tools that the routing plane quarantined. `None` if it has none of them, as far as it can be
    /// read.
    fn without_quarantined(
        &self,
        chat: &Chat,
        enclosing: Enclosing,
        bytes: &[u8],
    ) -> Result<Option<Thinned>, Unsendable> {
        let is_plain = !chat.head.headers.contains_key(header::CONTENT_ENCODING);
        match std::str::from_utf8(bytes) {
            Ok(text) if is_plain => {
                self.decider.without_quarantined(enclosing, text, &chat.caller.tenant)
            }
            Ok(_) | Err(_) => Ok(None),
        }
    }

    /// Takes what the host defers by itself out of a request, and out of its headers, while the operator has switched deferral
    /// off. `None` if the request has nothing of it, can't be read, or deferral is on.
    async fn undeferred(&self, chat: &mut Chat, bytes: &[u8]) -> Option<String> {
        let headers = &mut chat.head.headers;
        let text = std::str::from_utf8(bytes).ok()?;
        let is_plain = !headers.contains_key(header::CONTENT_ENCODING);
        if !is_plain || !undeferred::has_traces(headers, text) {
            return None;
        }
        if !self.decider.is_switched_off().await {
            return None;
        }
        let loaded = caught(|| undeferred::loaded(chat.api, text).ok_or("shape")).ok()?;
        undeferred::remove_betas(headers, &loaded);
        headers.remove(header::CONTENT_LENGTH);
        Some(loaded)
    }

    /// Returns the account of a request with this body; it is empty if it was not read.
    fn account(&self, chat: &Chat, bytes: &[u8]) -> Account {
        self.savings.account(&chat.caller.tenant, chat.api, &chat.model(bytes))
    }

    async fn decide(&self, chat: &Chat, bytes: &[u8]) -> Result<(Turn, String), PassReason> {
        if chat.head.headers.contains_key(header::CONTENT_ENCODING) {
            return Err("encoded");
        }
        let text = std::str::from_utf8(bytes).map_err(|_| "shape")?;
        let keys = chat.keys();
        let owner = Owner { tenant: &chat.caller.tenant, keys: &keys };
        let path = chat.head.url.path();
        self.decider.decide(chat.api, path, text, owner).await
    }

    /// Returns a request as the provider takes it behind hidden searches.
    fn followed(&self, chat: &Chat, bytes: &[u8]) -> Option<String> {
        let text = std::str::from_utf8(bytes).ok()?;
        let keys = chat.keys();
        let owner = Owner { tenant: &chat.caller.tenant, keys: &keys };
        self.decider.followed(chat.api, text, owner)
    }

    /// Reads the body of a request, whose pieces must follow each other in time, and which has a deadline as a whole.
    async fn read(&self, caller: &Caller, body: Body) -> Result<ReadBody, Failure> {
        let failed = |status, problem: String| Failure { status, message: problem };
        let late = || {
            let within = self.body_timeout.min(PIECE_MAX);
            let problem = format!(
                "the request did not come in time (llm.body_timeout, or {within:?} between two pieces)"
            );
            failed(StatusCode::REQUEST_TIMEOUT, problem)
        };
        let until = Instant::now() + self.body_timeout;
        let mut pieces = body.into_data_stream();
        let mut bytes = Vec::new();
        // Of nothing there is always a share.
        let Some(mut memory) = self.memory.take(&holder(caller), 0) else {
            return Ok(ReadBody::Part(bytes, pieces, "no-memory"));
        };
        loop {
            let next = timeout_at(until, timeout(PIECE_MAX, pieces.next())).await;
            let next = next.map_err(|_| late())?.map_err(|_| late())?;
            let Some(piece) = next else { break };
            let piece = piece.map_err(|error| {
                failed(StatusCode::BAD_REQUEST, format!("the request broke off: {error}"))
            })?;
            let has_memory = memory.grow(piece.len());
            bytes.extend_from_slice(&piece);
            if bytes.len() > self.max_body {
                return Ok(ReadBody::Part(bytes, pieces, "large"));
            }
            if !has_memory {
                return Ok(ReadBody::Part(bytes, pieces, "no-memory"));
            }
        }
        Ok(ReadBody::Whole(bytes, memory))
    }
}

/// Sends a request whose tools were deferred. If the provider refuses it, the original is sent once.
async fn rewritten(turn: Turn, way: Way, original: Original, body: String) -> Response {
    let note = turn.note();
    let mut head = original.head.clone();
    head.headers.remove(header::CONTENT_LENGTH);
    ask_for_plain(&mut head.headers);
    headers::add_betas(&mut head.headers, turn.betas());
    let mut exchange = Exchange { way, head, original, turn };
    let answer = match exchange.send(body.into()).await {
        Ok(answer) => answer,
        Err(failure) => return refused(exchange.head.provider, &failure),
    };
    let status = answer.status;
    // What is compressed though it was asked not to be can't be read here.
    if is_refusal(status) || (status == StatusCode::OK && is_compressed(&answer)) {
        drop(answer);
        return original_of(exchange).await;
    }
    if status != StatusCode::OK {
        return handed_on(answer, &note);
    }
    exchange.turn.sent();
    let mut headers = headers::of_answer(status, answer.headers.clone());
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

/// Sends the original of a request that was refused. If the provider takes it, the model's tools are not deferred for a
/// while.
async fn original_of(mut exchange: Exchange) -> Response {
    match exchange.send_original().await {
        Ok(answer) => {
            if answer.status.is_success() {
                exchange.turn.refused();
            }
            exchange.turn.account().passed("refused");
            let note = with_withheld(note_of_pass("refused"), exchange.turn.withheld());
            handed_on(answer, &note)
        }
        Err(failure) => refused(exchange.head.provider, &failure),
    }
}

/// Sends a request as it comes, and hands on its answer as it comes.
async fn pass(way: &mut Way, head: &Head, body: Payload, reason: PassReason) -> Response {
    pass_noted(way, head, body, &note_of_pass(reason)).await
}

/// Sends a request as it comes, and hands on its answer with a note.
async fn pass_noted(way: &mut Way, head: &Head, body: Payload, note: &str) -> Response {
    match way.send(head, body).await {
        Ok(answer) => handed_on(answer, note),
        Err(failure) => refused(head.provider, &failure),
    }
}

/// Returns what an answer's header says of a request that was sent as it came.
fn note_of_pass(reason: PassReason) -> String {
    format!("pass; reason={reason}")
}

fn handed_on(answer: Answer, note: &str) -> Response {
    let mut response = Response::new(Body::from_stream(answer.pieces));
    *response.status_mut() = answer.status;
    *response.headers_mut() = headers::of_answer(answer.status, answer.headers);
    noted(response, note)
}

impl Chat {
    /// Returns the keys for the provider that the host gives.
    fn keys(&self) -> Vec<&[u8]> {
        keys_of(&self.head.headers)
    }

    /// Returns the model that the request names, as far as that can be read at little cost.
    fn model(&self, bytes: &[u8]) -> String {
        #[derive(Deserialize)]
        struct Named {
            model: Option<String>,
        }
        if self.api == Api::Gemini {
            return gemini::model(self.head.url.path()).unwrap_or_default().to_owned();
        }
        if bytes.len() > NAMED_MAX {
            return String::new();
        }
        let named = serde_json::from_slice::<Named>(bytes).ok();
        named.and_then(|named| named.model).unwrap_or_default()
    }
}

/// Returns the keys for the provider that a host gives.
fn keys_of(headers: &HeaderMap) -> Vec<&[u8]> {
    KEYS.iter().flat_map(|name| headers.get_all(name)).map(HeaderValue::as_bytes).collect()
}

fn peer_of(request: &Request) -> Option<IpAddr> {
    request.extensions().get::<Peer>().map(Peer::ip)
}

/// Returns the holder of a caller's shares.
fn holder(caller: &Caller) -> Holder {
    Holder { connection: None, tenant: Some(Arc::clone(&caller.tenant)) }
}

/// Returns the pieces of a request as long as they follow each other in time.
fn in_time(pieces: BodyDataStream) -> Pieces {
    let next = |mut pieces: BodyDataStream| async move {
        let next = timeout(PIECE_MAX, pieces.next()).await;
        let late = |_| Some(Err(axum::Error::new(io::Error::from(io::ErrorKind::TimedOut))));
        Some((next.unwrap_or_else(late)?.map_err(io::Error::other), pieces))
    };
    Box::pin(stream::unfold(pieces, next))
}

/// Refuses a path that leaves the operator's base URL.
fn climbing(provider: Provider) -> Response {
    provider.error(StatusCode::BAD_REQUEST, "the path has a part that climbs")
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
