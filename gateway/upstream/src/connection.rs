//! A connection to one MCP server.

use std::time::Duration;

use rmcp::model::{
    ClientConfig, ClientRequest, Implementation, ListToolsRequest, PaginatedRequestParams,
    ProtocolVersion, SubscriptionFilter,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, NotificationContext, PeerRequestOptions,
    RunningService, ServiceError, serve_client_with_lifecycle,
};
use rmcp::{ClientHandler, RoleClient};
use serde_json::value::RawValue;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::error::UpstreamError;
use crate::http;
use crate::lists::{Lists, Page};
use crate::process::{ProcessTransport, StandardError};
use crate::target::Upstream;

/// Time for the handshake. Package runners fetch the server first.
const HANDSHAKE: Duration = Duration::from_secs(60);
const LIST: Duration = Duration::from_secs(30);
const CLOSE: Duration = Duration::from_secs(10);

/// Largest number of pages of a list, and of bytes of all of them.
const PAGES_MAX: usize = 1_000;
const LIST_BYTES_MAX: usize = 32 << 20;

/// Connection to an MCP server.
pub struct Connection {
    service: RunningService<RoleClient, Handler>,
    lists: Lists,
    stderr: StandardError,
    changes: watch::Receiver<u64>,
    /// Subscription to changes of servers of 2026-07-28; ends with the connection.
    subscription: Option<JoinHandle<()>>,
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

struct Handler {
    info: ClientConfig,
    changes: watch::Sender<u64>,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        self.info.clone()
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.changes.send_modify(|changes| *changes += 1);
    }
}

impl Connection {
    /// Connects to a server: starts its process or opens its URL, and shakes hands. Servers of 2026-07-28 are asked first
    /// whether they are one; an older one costs one more request.
    ///
    /// # Errors
    /// [`UpstreamError`] if the server can't be started, reached, or understood within a minute.
    pub async fn open(upstream: &Upstream) -> Result<Self, UpstreamError> {
        let lists = Lists::default();
        let stderr = StandardError::default();
        let (sender, changes) = watch::channel(0);
        let client = Implementation::new("toolgate", env!("CARGO_PKG_VERSION"));
        let info = ClientConfig::new(Default::default(), client);
        let handler = Handler { info, changes: sender.clone() };
        let mode = ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
        };
        let handshake = async {
            match upstream {
                Upstream::Process(launch) => {
                    let transport = ProcessTransport::start(launch, lists.clone(), stderr.clone())?;
                    shaken(serve_client_with_lifecycle(handler, transport, mode).await, &stderr)
                }
                Upstream::Http(endpoint) => {
                    let transport = http::transport(endpoint, lists.clone())?;
                    shaken(serve_client_with_lifecycle(handler, transport, mode).await, &stderr)
                }
            }
        };
        let request = "the handshake";
        let service =
            tokio::time::timeout(HANDSHAKE, Box::pin(handshake)).await.map_err(|_elapsed| {
                UpstreamError::Timeout {
                    request,
                    seconds: HANDSHAKE.as_secs(),
                    said: stderr.said(),
                }
            })??;
        let subscription = subscribe(&service, sender);
        Ok(Self { service, lists, stderr, changes, subscription })
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
        let mut tools: Vec<Box<RawValue>> = Vec::new();
        let mut bytes = 0;
        let mut cursor = None;
        for pages in 0..PAGES_MAX {
            let page = self.page(cursor).await?;
            bytes += page.tools.iter().map(|tool| tool.get().len()).sum::<usize>();
            if bytes > LIST_BYTES_MAX {
                return Err(UpstreamError::TooLarge { pages: pages + 1, bytes, limit: "32 MiB" });
            }
            tools.extend(page.tools);
            cursor = page.next_cursor.filter(|cursor| !cursor.is_empty());
            if cursor.is_none() {
                return Ok(tools);
            }
        }
        Err(UpstreamError::TooLarge { pages: PAGES_MAX, bytes, limit: "1,000 pages" })
    }

    /// Waits until the server says that its tools changed. Changes since the call before count.
    ///
    /// # Errors
    /// [`UpstreamError::Request`] once the connection is closed.
    pub async fn changed(&mut self) -> Result<(), UpstreamError> {
        let closed = async {
            while !self.service.is_closed() {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        };
        let is_changed = tokio::select! {
            changed = self.changes.changed() => changed.is_ok(),
            () = closed => false,
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
        // What does not end in time is killed when the transport is dropped.
        let _ended = self.service.close_with_timeout(CLOSE).await;
    }

    async fn page(&self, cursor: Option<String>) -> Result<Page, UpstreamError> {
        const REQUEST: &str = "tools/list";
        let failed = |problem: String| UpstreamError::Request {
            request: REQUEST,
            problem,
            said: self.stderr.said(),
        };
        let params =
            cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
        let request = ListToolsRequest { params, ..Default::default() };
        let options = PeerRequestOptions::with_timeout(LIST);
        let sent = self
            .service
            .peer()
            .send_cancellable_request(ClientRequest::ListToolsRequest(request), options)
            .await
            .map_err(|error| failed(error.to_string()))?;
        let id = serde_json::to_string(&sent.id).map_err(|error| failed(error.to_string()))?;
        sent.await_response().await.map_err(|error| match error {
            ServiceError::Timeout { .. } => UpstreamError::Timeout {
                request: REQUEST,
                seconds: LIST.as_secs(),
                said: self.stderr.said(),
            },
            error => failed(error.to_string()),
        })?;
        let listed =
            self.lists.take(&id).ok_or_else(|| failed("the answer holds no tools".to_owned()))?;
        serde_json::from_str(listed.get())
            .map_err(|error| failed(format!("the answer is no list of tools: {error}")))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(subscription) = &self.subscription {
            subscription.abort();
        }
    }
}

fn shaken(
    result: Result<RunningService<RoleClient, Handler>, ClientInitializeError>,
    stderr: &StandardError,
) -> Result<RunningService<RoleClient, Handler>, UpstreamError> {
    result.map_err(|error| UpstreamError::Handshake {
        problem: problem_of(&error),
        said: stderr.said(),
    })
}

/// Returns what went wrong, without names of types.
fn problem_of(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::TransportError { error, .. } => error.error.to_string(),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => problem_of(fallback),
        other => other.to_string(),
    }
}

/// Subscribes to changes where the server is of 2026-07-28 and tells them. Older ones tell them without being asked.
fn subscribe(
    service: &RunningService<RoleClient, Handler>,
    changes: watch::Sender<u64>,
) -> Option<JoinHandle<()>> {
    let peer = service.peer().clone();
    let info = peer.peer_info()?;
    let tells =
        info.capabilities.tools.as_ref().and_then(|tools| tools.list_changed).unwrap_or(false);
    if !tells || info.protocol_version != ProtocolVersion::V_2026_07_28 {
        return None;
    }
    Some(tokio::spawn(async move {
        let filter = SubscriptionFilter::builder().tools_list_changed().build();
        let Ok(mut subscription) = peer.listen(filter).await else { return };
        while let Ok(Some(_)) = subscription.next().await {
            changes.send_modify(|changes| *changes += 1);
        }
    }))
}
