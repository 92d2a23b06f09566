//! A connection to one MCP server.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, ClientCapabilities, ClientConfig,
    ClientRequest, CustomNotification, CustomRequest, CustomResult, ErrorCode, ErrorData,
    Implementation, ProtocolVersion, RequestId, RequestMetaObject,
    ResourceUpdatedNotificationParam, ServerResult, SubscriptionFilter,
};
use rmcp::service::{
    ClientInitializeError, NotificationContext, Peer, PeerRequestOptions, RequestContext,
    RunningService, ServiceError,
};
use rmcp::{ClientHandler, RoleClient};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::sync::{OnceCell, broadcast, mpsc, oneshot, watch};
use tokio::time::Instant;
use toolgate_telemetry::McpSpan;

use crate::credentials::Authorizer;
use crate::eras::Era;
use crate::error::UpstreamError;
use crate::fleet::process_number;
use crate::listening::{AbortOnDrop, Listener};
use crate::probing::{self, Agreed};
use crate::process::{ProcessLimits, StandardError};
use crate::question::{Asking, NoAnswer};
use crate::running_tasks::{AboutTasks, RunningTasks};
use crate::tap::{Answer, Call, QUESTION, ServerError, Tap};
use crate::target::Upstream;

/// Time for the handshake. Package runners fetch the server first.
const HANDSHAKE: Duration = Duration::from_secs(60);
const LIST: Duration = Duration::from_secs(30);
const CLOSE: Duration = Duration::from_secs(10);

/// First pause before a subscription that ended is opened again.
pub(crate) const RELISTEN: Duration = Duration::from_secs(1);

/// Time for a process to leave after its standard input was closed, and again after SIGTERM.
pub(crate) const LEAVE: Duration = Duration::from_secs(2);

/// Request that sets the least level of a server's messages, and the time that it has.
const SET_LEVEL: &str = "logging/setLevel";
const LEVEL_SET: Duration = Duration::from_secs(5);

/// Field of a request's metadata with the level of messages that its host wants.
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// Most bytes of the ID of a page that is passed on.
const PAGE_ID_MAX: usize = 1 << 10;

/// Notification that a person is through with a page that the server sent them to.
const COMPLETE: &str = "notifications/elicitation/complete";

/// Changes that wait for a slow listener. More are dropped.
const CHANGES_WAITING: usize = 64;

/// Largest number of pages of a list, and of bytes of all of them.
const PAGES_MAX: usize = 1_000;
const LIST_BYTES_MAX: usize = 32 << 20;

/// Connection to an MCP server.
#[derive(Debug)]
pub struct Connection {
    service: RunningService<RoleClient, Handler>,
    tap: Tap,
    transport: &'static str,
    /// Number of its process; `None` for a URL.
    process: Option<u64>,
    stderr: StandardError,
    changes: watch::Receiver<u64>,
    tasks: RunningTasks,
    /// Set once the server was asked for messages of every level.
    is_heard: OnceCell<()>,
    /// Subscription to changes of servers of 2026-07-28; ends with the connection.
    _subscription: Option<AbortOnDrop>,
    /// First pause before a subscription that ended is opened again.
    relisten: Duration,
}

/// Identity of a server, as it tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerIdentity {
    /// Name; empty if the server tells none.
    pub name: String,
    /// Version of the server; empty if it tells none.
    pub version: String,
    /// Revision of MCP that both speak, such as `2025-11-25`.
    pub protocol: String,
}

/// One page of a list of tools.
#[derive(Debug, Deserialize)]
struct Page {
    /// Definitions, as the server wrote them.
    tools: Vec<Box<RawValue>>,
    /// Cursor of the next page; `None` or empty on the last one.
    #[serde(rename = "nextCursor")]
    next_cursor: Option<String>,
    /// Milliseconds for which the list may be kept.
    #[serde(default, rename = "ttlMs")]
    ttl: Value,
}

/// Tools as a server lists them.
#[derive(Debug)]
pub(crate) struct ToolList {
    /// Definitions, as the server wrote them.
    pub(crate) tools: Vec<Box<RawValue>>,
    /// Shortest time for which the server says that a page may be kept; `None` if it says nothing.
    pub(crate) ttl: Option<Duration>,
}

/// List of a server that changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Its tools. They have been listed anew.
    Tools,
    /// Its prompts.
    Prompts,
    /// Its resources.
    Resources,
}

/// Change that a server of a fleet tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListChange {
    /// Name of the server in the fleet.
    pub server: Arc<str>,
    /// List that changed.
    pub list: Change,
}

/// Page of a server that a person is through with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// Name of the server in the fleet.
    pub server: Arc<str>,
    /// ID of the question that led to the page, as the server made it.
    pub elicitation: Arc<str>,
}

/// Message of a server that belongs to no request that hears it: a line of its log.
#[derive(Debug, Clone)]
pub struct ServerMessage {
    /// Name of the server in the fleet.
    pub server: Arc<str>,
    /// Owner of the connection that it came on; `None` for the one that all share.
    pub owner: Option<Arc<ConnectionOwner>>,
    /// Parameters of `notifications/message`.
    pub params: Arc<Value>,
}

/// Owner of a connection that is not shared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionOwner {
    /// Principal whose requests it takes.
    pub principal: String,
    /// Host of the principal, if it is one host's; its name as in [`Asker::host`](crate::Asker::host).
    pub host: Option<String>,
}

/// Receivers of what a server tells without being asked.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    pub(crate) server: Arc<str>,
    /// Owner of the connection, if it is not shared.
    pub(crate) owner: Option<Arc<ConnectionOwner>>,
    pub(crate) messages: broadcast::Sender<ServerMessage>,
    pub(crate) completions: broadcast::Sender<Completion>,
    pub(crate) tools: watch::Sender<u64>,
    pub(crate) changes: broadcast::Sender<ListChange>,
    /// URIs of resources that changed.
    pub(crate) resources: broadcast::Sender<Arc<str>>,
}

impl Default for Told {
    fn default() -> Self {
        let tools = watch::channel(0).0;
        let resources = broadcast::channel(CHANGES_WAITING).0;
        Self {
            server: Arc::from(""),
            owner: None,
            messages: messages(),
            completions: completions(),
            tools,
            changes: changes(),
            resources,
        }
    }
}

impl Told {
    pub(crate) fn resource_changed(&self, uri: &str) {
        // Nobody may be listening.
        let _nobody = self.resources.send(Arc::from(uri));
    }

    pub(crate) fn said(&self, params: Value) {
        let message = ServerMessage {
            server: Arc::clone(&self.server),
            owner: self.owner.clone(),
            params: Arc::new(params),
        };
        // Nobody may be listening.
        let _nobody = self.messages.send(message);
    }

    fn completed(&self, elicitation: &str) {
        let completion =
            Completion { server: Arc::clone(&self.server), elicitation: Arc::from(elicitation) };
        // Nobody may be listening.
        let _nobody = self.completions.send(completion);
    }

    pub(crate) fn tools_changed(&self) {
        self.tools.send_modify(|changes| *changes += 1);
    }

    pub(crate) fn changed(&self, change: Change) {
        // Nobody may be listening.
        let _nobody =
            self.changes.send(ListChange { server: Arc::clone(&self.server), list: change });
    }
}

/// Returns a sender of messages that nobody receives yet.
pub(crate) fn messages() -> broadcast::Sender<ServerMessage> {
    broadcast::channel(CHANGES_WAITING).0
}

/// Returns a sender of completions that nobody receives yet.
pub(crate) fn completions() -> broadcast::Sender<Completion> {
    broadcast::channel(CHANGES_WAITING).0
}

/// Returns a sender of changes that nobody receives yet.
pub(crate) fn changes() -> broadcast::Sender<ListChange> {
    broadcast::channel(CHANGES_WAITING).0
}

#[derive(Debug, Clone)]
struct Handler {
    info: ClientConfig,
    told: Told,
    tap: Tap,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        self.info.clone()
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.told.tools_changed();
    }

    async fn on_prompt_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.told.changed(Change::Prompts);
    }

    async fn on_resource_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.told.changed(Change::Resources);
    }

    async fn on_resource_updated(
        &self,
        params: ResourceUpdatedNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.told.resource_changed(&params.uri);
    }

    /// Hears of pages that persons are through with, which the library has no type for.
    async fn on_custom_notification(
        &self,
        notification: CustomNotification,
        _context: NotificationContext<RoleClient>,
    ) {
        let params = notification.params.filter(|_| notification.method == COMPLETE);
        let id = params.as_ref().and_then(|params| params["elicitationId"].as_str());
        if let Some(id) = id.filter(|id| id.len() <= PAGE_ID_MAX) {
            self.told.completed(id);
        }
    }

    /// Puts a question of the server, which the tap has given its name, to the host of its call.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleClient>,
    ) -> Result<CustomResult, ErrorData> {
        let asked = request.params.filter(|_| request.method == QUESTION);
        let asked = asked.and_then(|asked| serde_json::from_value(asked).ok());
        let Some(asked) = asked else {
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None));
        };
        let answer = tokio::select! {
            answer = self.tap.ask(asked) => answer,
            () = context.ct.cancelled() => Err(NoAnswer::refused("the question was cancelled")),
        };
        let failed = |none: NoAnswer| ErrorData::new(ErrorCode(none.code), none.message, None);
        answer.map(CustomResult).map_err(failed)
    }
}

/// Bounds of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionLimits {
    /// Time for the handshake. Package runners fetch the server first.
    pub(crate) handshake: Duration,
    /// Bounds of the process, and of results.
    pub(crate) process: ProcessLimits,
    /// First pause before a subscription that ended is opened again.
    pub(crate) relisten: Duration,
}

/// Request to a server.
pub(crate) struct Outgoing {
    pub(crate) method: String,
    pub(crate) params: Map<String, Value>,
    pub(crate) progress: Option<mpsc::Sender<Value>>,
    /// Principal that it is sent for; `None` for the gateway itself.
    pub(crate) principal: Option<String>,
    /// Host that can be asked, if it can.
    pub(crate) asking: Option<Asking>,
    /// Time without an answer or progress.
    pub(crate) idle: Duration,
    /// Time of the whole call.
    pub(crate) deadline: Instant,
    /// Span of the request.
    pub(crate) span: McpSpan,
}

/// Failure of a call.
#[derive(Debug)]
pub(crate) enum CallError {
    /// The server's own error.
    Server(ServerError),
    /// The answer is larger than this limit, in bytes.
    TooLarge(usize),
    /// The server did not answer within this time.
    Timeout(Duration),
    /// The server asks for a login.
    Login,
    /// The token lacks a scope. Says what is to be done.
    Scopes(String),
    /// The connection failed.
    Lost { problem: String, may_have_run: bool },
}

/// Cancels a call that nobody waits for any more.
struct Cancelling {
    peer: Peer<RoleClient>,
    id: Option<RequestId>,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        let process = ProcessLimits { result_bytes_max: LIST_BYTES_MAX, leave: LEAVE };
        Self { handshake: HANDSHAKE, process, relisten: RELISTEN }
    }
}

impl Drop for Cancelling {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let peer = self.peer.clone();
        let reason = Some("nobody waits for it".to_owned());
        let params = CancelledNotificationParam::new(Some(id), reason);
        runtime.spawn(async move {
            let cancelled = CancelledNotification::new(params);
            // The connection may be gone.
            let _gone = peer.send_notification(cancelled.into()).await;
        });
    }
}

impl Connection {
    /// Connects to a server: starts its process or opens its URL, and shakes hands. Servers of 2026-07-28 are asked first
    /// whether they are one; an older one costs one more request.
    ///
    /// # Errors
    /// [`UpstreamError`] if the server can't be started, reached, or understood within a minute.
    pub async fn open(upstream: &Upstream) -> Result<Self, UpstreamError> {
        let limits = ConnectionLimits::default();
        let client = client(ClientCapabilities::default());
        let stderr = StandardError::default();
        Self::open_within(upstream, client, limits, stderr, Told::default(), None, None).await
    }

    /// Connects to a server within bounds. What its process writes to standard error goes to `stderr`, changes to `told`. Tokens
    /// come from `authorizer`. A server whose `era` is known is not asked for another.
    pub(crate) async fn open_within(
        upstream: &Upstream,
        info: ClientConfig,
        limits: ConnectionLimits,
        stderr: StandardError,
        told: Told,
        authorizer: Option<Arc<Authorizer>>,
        era: Option<Era>,
    ) -> Result<Self, UpstreamError> {
        let changes = told.tools.subscribe();
        let handler = |tap: &Tap| {
            tap.tells(told.clone());
            Handler { info: info.clone(), told: told.clone(), tap: tap.clone() }
        };
        let handshake = async {
            match upstream {
                Upstream::Process(launch) => {
                    probing::over_process(&handler, launch, &stderr, limits.process, era).await
                }
                Upstream::Http(endpoint) => {
                    let result_bytes_max = limits.process.result_bytes_max;
                    probing::over_http(&handler, endpoint, authorizer, result_bytes_max, era).await
                }
            }
        };
        let handshake = tokio::time::timeout(limits.handshake, Box::pin(handshake)).await;
        let agreed = handshake.map_err(|_elapsed| UpstreamError::Timeout {
            request: "the handshake",
            seconds: limits.handshake.as_secs(),
            said: stderr.said(),
        })??;
        let Agreed { service, tap, transport } = agreed;
        let relisten = limits.relisten;
        let subscription = subscribe(&service, told, relisten);
        Ok(Self {
            service,
            tap,
            transport,
            process: matches!(upstream, Upstream::Process(_)).then(process_number),
            stderr,
            changes,
            tasks: RunningTasks::default(),
            is_heard: OnceCell::new(),
            _subscription: subscription,
            relisten,
        })
    }

    /// Sends a request, and returns the bytes of its result. When the returned future is dropped, the call is cancelled.
    pub(crate) async fn call(&self, outgoing: Outgoing) -> Result<Box<RawValue>, CallError> {
        let sets_level = outgoing.method == SET_LEVEL;
        let wants_messages =
            outgoing.params.get("_meta").is_some_and(|meta| !meta[LOG_LEVEL].is_null());
        if wants_messages && !sets_level {
            Box::pin(self.hear_all(outgoing.deadline)).await;
        }
        let about_tasks = AboutTasks::of(&outgoing.method, &outgoing.params);
        let result = self.exchange(outgoing).await;
        if sets_level && result.is_ok() {
            // Another call may have been faster.
            let _known = self.is_heard.set(());
        }
        if let Some(about) = about_tasks {
            self.tasks.answered(&about, &result);
        }
        result
    }

    /// Has a server of an older revision send messages of every level, once. The connection may be shared: each host picks its own
    /// level, and a connection that was opened anew knows none.
    async fn hear_all(&self, deadline: Instant) {
        let told = self.service.peer().peer_info();
        if self.is_modern() || told.is_none_or(|told| told.capabilities.logging.is_none()) {
            return;
        }
        let asking = || async {
            let outgoing = Outgoing {
                method: SET_LEVEL.to_owned(),
                params: Map::from_iter([("level".to_owned(), Value::from("debug"))]),
                progress: None,
                principal: None,
                asking: None,
                idle: LEVEL_SET,
                deadline: deadline.min(Instant::now() + LEVEL_SET),
                span: McpSpan::untraced(),
            };
            // A server that refuses it sends what it likes.
            let _refused = self.exchange(outgoing).await;
        };
        self.is_heard.get_or_init(asking).await;
    }

    /// Sends a request as it is, and returns the bytes of its result.
    async fn exchange(&self, outgoing: Outgoing) -> Result<Box<RawValue>, CallError> {
        let Outgoing { method, mut params, progress, principal, asking, idle, deadline, span } =
            outgoing;
        let (call, answer) = Call::new(&method, progress, principal, asking);
        let options = self.options(params.remove("_meta"));
        let mut request = CustomRequest::new(method, Some(Value::Object(params)));
        request.extensions.insert(Arc::clone(&call));
        let request = ClientRequest::CustomRequest(request);
        let peer = self.service.peer();
        let sent =
            tokio::time::timeout_at(deadline, peer.send_cancellable_request(request, options));
        let started = Instant::now();
        let handle = sent
            .await
            .map_err(|_elapsed| CallError::Timeout(started.elapsed()))?
            .map_err(|error| lost(&error, &call))?;
        if let RequestId::Number(id) = handle.id {
            span.of_request(id);
        }
        let mut cancelling = Cancelling { peer: peer.clone(), id: Some(handle.id.clone()) };
        let result = self.answered(&call, answer, handle.rx, idle, deadline).await;
        if !matches!(result, Err(CallError::Timeout(_) | CallError::TooLarge(_))) {
            cancelling.id = None;
        }
        result
    }

    /// Waits for the answer to a call.
    async fn answered(
        &self,
        call: &Arc<Call>,
        mut answer: oneshot::Receiver<Answer>,
        mut library: oneshot::Receiver<Result<ServerResult, ServiceError>>,
        idle: Duration,
        deadline: Instant,
    ) -> Result<Box<RawValue>, CallError> {
        let started = Instant::now();
        let mut until = deadline.min(started + idle);
        let mut is_pending = true;
        loop {
            tokio::select! {
                biased;
                answer = &mut answer => return match answer {
                    Ok(Answer::Result(result)) => Ok(result),
                    Ok(Answer::Error(error)) => Err(CallError::Server(error)),
                    Ok(Answer::TooLarge(limit)) => Err(CallError::TooLarge(limit)),
                    Err(_ended) => Err(self.ended(call)),
                },
                heard = &mut library, if is_pending => match heard {
                    Ok(Err(error)) => return Err(lost(&error, call)),
                    // The answer itself is on its way, or the transport ends.
                    Ok(Ok(_)) => is_pending = false,
                    Err(_closed) => return Err(self.ended(call)),
                },
                () = call.progressed.notified() => until = deadline.min(Instant::now() + idle),
                () = tokio::time::sleep_until(until) => {
                    if call.has_open_questions() && until < deadline {
                        until = deadline.min(Instant::now() + idle);
                        continue;
                    }
                    return Err(CallError::Timeout(started.elapsed()));
                }
            }
        }
    }

    /// Returns the options of a request with the caller's metadata. The revision is the connection's.
    fn options(&self, meta: Option<Value>) -> PeerRequestOptions {
        let options = PeerRequestOptions::no_options();
        let Some(Value::Object(mut meta)) = meta else { return options };
        meta.remove("progressToken");
        meta.remove("io.modelcontextprotocol/protocolVersion");
        if !self.is_modern() {
            meta.retain(|key, _| {
                key != LOG_LEVEL && !key.starts_with("io.modelcontextprotocol/client")
            });
        }
        match serde_json::from_value::<RequestMetaObject>(Value::Object(meta)) {
            Ok(meta) => options.with_meta(meta),
            Err(_) => options,
        }
    }

    /// Tells a server of an older revision that its host's roots have changed.
    pub(crate) async fn roots_changed(&self) {
        if !self.is_modern() {
            // The connection may be gone.
            let _gone = self.service.peer().notify_roots_list_changed().await;
        }
    }

    /// Returns whether the server speaks 2026-07-28 or later.
    pub(crate) fn is_modern(&self) -> bool {
        let info = self.service.peer().peer_info();
        info.is_some_and(|info| !info.protocol_version.has_initialize())
    }

    fn ended(&self, call: &Call) -> CallError {
        let problem = format!("the server closed the connection{}", self.stderr.said());
        CallError::Lost { problem, may_have_run: call.was_sent() }
    }

    /// Follows resources of a server of 2026-07-28: what changed is told until the returned task is dropped.
    ///
    /// # Errors
    /// The problem, if the server does not take the subscription.
    pub(crate) async fn listen_to(&self, uris: Vec<String>) -> Result<AbortOnDrop, String> {
        let mut filter = SubscriptionFilter::new();
        filter.resource_subscriptions = Some(uris);
        let peer = self.service.peer().clone();
        let told = self.service.service().told.clone();
        Listener { peer, filter, told, pause: self.relisten }.open().await
    }

    /// Returns what the server tells of how to use it.
    pub(crate) fn instructions(&self) -> Option<String> {
        self.service.peer().peer_info()?.instructions.clone()
    }

    /// Returns the server's capabilities as JSON.
    pub(crate) fn capabilities(&self) -> Value {
        let info = self.service.peer().peer_info();
        let capabilities = info.map(|info| serde_json::to_value(&info.capabilities));
        let capabilities = capabilities.and_then(Result::ok);
        let mut capabilities = capabilities.unwrap_or_else(|| Value::Object(Map::new()));
        if let Some(tasks) = self.tap.tasks() {
            capabilities["tasks"] = tasks.clone();
        }
        capabilities
    }

    /// Returns whether the process of the server runs a task, as far as its answers say. Its end would lose the task.
    pub(crate) fn runs_tasks(&self) -> bool {
        self.transport == "stdio" && !self.has_ended() && self.tasks.any()
    }

    /// Returns the time until which the server runs tasks that were begun on this connection, as far as its answers say; `None` if
    /// it runs none.
    pub(crate) fn tasks_until(&self) -> Option<Instant> {
        self.tasks.until().filter(|_| !self.has_ended())
    }

    /// Returns the number of tasks that were begun on this connection and run, as far as the server's answers say.
    pub(crate) fn tasks(&self) -> usize {
        if self.has_ended() { 0 } else { self.tasks.count() }
    }

    /// Returns the number of its process; `None` for a URL.
    pub(crate) fn process(&self) -> Option<u64> {
        self.process
    }

    /// Returns whether it is to this process, which runs.
    pub(crate) fn is_to(&self, process: u64) -> bool {
        self.process == Some(process) && !self.has_ended()
    }

    /// Returns whether a task of this ID was begun on this connection and runs.
    pub(crate) fn has_task(&self, id: &str) -> bool {
        !self.has_ended() && self.tasks.has(id)
    }

    /// Returns the transport: `stdio`, `http` or `sse`.
    pub(crate) fn transport(&self) -> &'static str {
        self.transport
    }

    /// Returns the time of the server's last message on this connection.
    pub(crate) fn heard(&self) -> Instant {
        self.tap.heard()
    }

    /// Returns whether the connection has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.tap.has_ended()
    }

    /// Closes the connection, and waits until the server's process has ended, or for this time.
    pub(crate) async fn shut_down(&self, longest: Duration) {
        self.service.cancellation_token().cancel();
        // A process that does not end in time is killed when the transport is dropped.
        let _late = tokio::time::timeout(longest, self.tap.gone()).await;
    }

    /// Waits until the connection has ended.
    pub(crate) async fn until_ended(&self) {
        self.tap.ended().await;
    }

    /// Returns a counter that grows with each change of tools that the server tells.
    pub(crate) fn tool_changes(&self) -> watch::Receiver<u64> {
        self.changes.clone()
    }

    /// Returns what the server tells of itself.
    #[must_use]
    pub fn identity(&self) -> ServerIdentity {
        let peer = self.service.peer().peer_info();
        let told = peer.as_ref().and_then(|peer| peer.server_info.as_ref());
        ServerIdentity {
            name: told.map(|told| told.name.clone()).unwrap_or_default(),
            version: told.map(|told| told.version.clone()).unwrap_or_default(),
            protocol: peer
                .as_ref()
                .map(|peer| peer.protocol_version.to_string())
                .unwrap_or_default(),
        }
    }

    /// Returns the definitions of all tools as the server writes them, page after page.
    ///
    /// # Errors
    /// [`UpstreamError`] if the server does not answer a page within 30 seconds, or not with tools, or lists more than
    /// 1,000 pages or 32 MiB.
    pub async fn tools(&self) -> Result<Vec<Box<RawValue>>, UpstreamError> {
        Ok(self.list_tools().await?.tools)
    }

    /// Returns what [`Self::tools`] does, with the time for which it may be kept.
    pub(crate) async fn list_tools(&self) -> Result<ToolList, UpstreamError> {
        let mut tools: Vec<Box<RawValue>> = Vec::new();
        let mut ttl: Option<Duration> = None;
        let mut bytes = 0;
        let mut cursor = None;
        for pages in 0..PAGES_MAX {
            let page = self.page(cursor).await?;
            bytes += page.tools.iter().map(|tool| tool.get().len()).sum::<usize>();
            if bytes > LIST_BYTES_MAX {
                return Err(UpstreamError::TooLarge { pages: pages + 1, bytes, limit: "32 MiB" });
            }
            tools.extend(page.tools);
            ttl = ttl.into_iter().chain(page.ttl.as_u64().map(Duration::from_millis)).min();
            cursor = page.next_cursor.filter(|cursor| !cursor.is_empty());
            if cursor.is_none() {
                return Ok(ToolList { tools, ttl });
            }
        }
        Err(UpstreamError::TooLarge { pages: PAGES_MAX, bytes, limit: "1,000 pages" })
    }

    /// Waits until the server says that its tools changed. Changes since the call before count.
    ///
    /// # Errors
    /// [`UpstreamError::Request`] once the connection is closed.
    pub async fn changed(&mut self) -> Result<(), UpstreamError> {
        let is_changed = tokio::select! {
            changed = self.changes.changed() => changed.is_ok(),
            () = self.tap.ended() => false,
        };
        if is_changed {
            return Ok(());
        }
        let problem = "the server closed the connection".to_owned();
        Err(UpstreamError::Request {
            request: "waiting for changes",
            problem,
            said: self.stderr.said(),
        })
    }

    /// Makes the next call of [`Self::changed`] return at once.
    pub fn mark_changed(&mut self) {
        self.changes.mark_changed();
    }

    /// Closes the connection, and ends the server's process.
    pub async fn close(mut self) {
        // A process that does not end in time is killed when the transport is dropped.
        let _ended = self.service.close_with_timeout(CLOSE).await;
    }

    async fn page(&self, cursor: Option<String>) -> Result<Page, UpstreamError> {
        const REQUEST: &str = "tools/list";
        let failed = |problem: String| UpstreamError::Request {
            request: REQUEST,
            problem,
            said: self.stderr.said(),
        };
        let cursor = cursor.map(|cursor| ("cursor".to_owned(), Value::String(cursor)));
        let outgoing = Outgoing {
            method: REQUEST.to_owned(),
            params: cursor.into_iter().collect(),
            progress: None,
            principal: None,
            asking: None,
            idle: LIST,
            deadline: Instant::now() + LIST,
            span: McpSpan::untraced(),
        };
        let listed = self.call(outgoing).await.map_err(|error| match error {
            CallError::Timeout(after) => UpstreamError::Timeout {
                request: REQUEST,
                seconds: after.as_secs(),
                said: self.stderr.said(),
            },
            CallError::Lost { problem, .. } => {
                UpstreamError::Request { request: REQUEST, problem, said: String::new() }
            }
            CallError::Login => UpstreamError::Login { request: REQUEST },
            error => failed(error.to_string()),
        })?;
        serde_json::from_str(listed.get())
            .map_err(|error| failed(format!("the answer is no list of tools: {error}")))
    }
}

impl std::fmt::Display for CallError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Server(error) => write!(f, "{} ({})", error.message, error.code),
            Self::TooLarge(limit) => write!(f, "the answer has more than {limit} bytes"),
            Self::Timeout(after) => write!(f, "no answer within {} ms", after.as_millis()),
            Self::Login => f.write_str("it asks for a login"),
            Self::Scopes(problem) | Self::Lost { problem, .. } => f.write_str(problem),
        }
    }
}

/// Returns the failure of a call that the library tells.
fn lost(error: &ServiceError, call: &Call) -> CallError {
    if error.is_authorization_required() {
        return CallError::Login;
    }
    if let Some(told) = error.auth_challenge() {
        return CallError::Scopes(told.to_owned());
    }
    let problem = match error {
        ServiceError::TransportSend(error) => error.error.to_string(),
        error => error.to_string(),
    };
    CallError::Lost { problem, may_have_run: call.was_sent() }
}

/// Returns what the gateway tells of itself to a server.
pub(crate) fn client(capabilities: ClientCapabilities) -> ClientConfig {
    ClientConfig::new(capabilities, Implementation::new("toolgate", env!("CARGO_PKG_VERSION")))
}

/// Returns the error of a handshake that failed. `said` is the end of the process's standard error.
pub(crate) fn not_shaken(error: &ClientInitializeError, said: String) -> UpstreamError {
    UpstreamError::Handshake {
        asks_for_login: error.auth_challenge().is_some(),
        problem: problem_of(error),
        said,
    }
}

/// Returns what went wrong, without names of types.
pub(crate) fn problem_of(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::TransportError { error, .. } => error.error.to_string(),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => problem_of(fallback),
        ClientInitializeError::ConnectionClosed(_) => "it closed the connection".to_owned(),
        other => other.to_string(),
    }
}

/// Subscribes to changes where the server is of 2026-07-28 and tells them. Older ones tell them without being asked.
fn subscribe(
    service: &RunningService<RoleClient, Handler>,
    told: Told,
    pause: Duration,
) -> Option<AbortOnDrop> {
    let peer = service.peer().clone();
    let info = peer.peer_info()?;
    let capabilities = &info.capabilities;
    let tools = capabilities.tools.as_ref().and_then(|tools| tools.list_changed);
    let prompts = capabilities.prompts.as_ref().and_then(|prompts| prompts.list_changed);
    let resources = capabilities.resources.as_ref().and_then(|resources| resources.list_changed);
    let mut filter = SubscriptionFilter::new();
    filter.tools_list_changed = tools.filter(|tells| *tells);
    filter.prompts_list_changed = prompts.filter(|tells| *tells);
    filter.resources_list_changed = resources.filter(|tells| *tells);
    if filter == SubscriptionFilter::new() || info.protocol_version != ProtocolVersion::V_2026_07_28
    {
        return None;
    }
    Some(Listener { peer, filter, told, pause }.open_later())
}
