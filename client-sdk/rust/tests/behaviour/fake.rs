//! A small Toolgate service in this process. It answers from a script and records the requests.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio_stream::wrappers::TcpListenerStream;
use tokio_stream::{Stream, StreamExt as _};
use tonic::transport::{Server, ServerTlsConfig};
use tonic::{Request, Response, Status};
use toolgate_client::v1::catalog_service_server::{CatalogService, CatalogServiceServer};
use toolgate_client::v1::router_service_server::{RouterService, RouterServiceServer};
use toolgate_client::v1::*;

/// Answers to the next calls, and a record of the requests.
#[derive(Debug, Default, Clone)]
pub(crate) struct Script(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    failures: VecDeque<Status>,
    delay: Duration,
    asked: Vec<Asked>,
    searches: Vec<SearchToolsRequest>,
    request_ids: Vec<String>,
    watches: VecDeque<Watched>,
    watched_since: Vec<Option<u64>>,
}

/// Changes that a watch sends, and the status that ends it. `None` keeps it open.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) revisions: Vec<u64>,
    pub(crate) end: Option<Status>,
}

/// A recorded call.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) tenant: String,
    pub(crate) grpc_timeout: Option<String>,
    pub(crate) authorization: Option<String>,
}

impl Script {
    /// Creates a script whose next calls fail with these, in order. Later calls succeed.
    pub(crate) fn failing(failures: impl IntoIterator<Item = Status>) -> Self {
        let script = Self::default();
        script.0.lock().expect("not poisoned").failures.extend(failures);
        script
    }

    /// Creates a script whose calls take this long.
    pub(crate) fn slow(delay: Duration) -> Self {
        let script = Self::default();
        script.0.lock().expect("not poisoned").delay = delay;
        script
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.0.lock().expect("not poisoned").asked.clone()
    }

    /// Returns the searches that arrived.
    pub(crate) fn searches(&self) -> Vec<SearchToolsRequest> {
        self.0.lock().expect("not poisoned").searches.clone()
    }

    /// Creates a script for the next watches, in order. Later ones are UNIMPLEMENTED.
    pub(crate) fn watched(watches: impl IntoIterator<Item = Watched>) -> Self {
        let script = Self::default();
        script.0.lock().expect("not poisoned").watches.extend(watches);
        script
    }

    /// Returns the revision that each opened watch began at.
    pub(crate) fn watched_since(&self) -> Vec<Option<u64>> {
        self.0.lock().expect("not poisoned").watched_since.clone()
    }

    /// Returns the `request_id` of each registration.
    pub(crate) fn request_ids(&self) -> Vec<String> {
        self.0.lock().expect("not poisoned").request_ids.clone()
    }

    async fn answer<Q, A>(
        &self,
        request: &Request<Q>,
        tenant: &str,
        answer: A,
    ) -> Result<Response<A>, Status> {
        let header = |name: &str| {
            let value = request.metadata().get(name);
            value.map(|text| text.to_str().expect("ASCII").to_owned())
        };
        let (failure, delay) = {
            let mut inner = self.0.lock().expect("not poisoned");
            inner.asked.push(Asked {
                tenant: tenant.to_owned(),
                grpc_timeout: header("grpc-timeout"),
                authorization: header("authorization"),
            });
            (inner.failures.pop_front(), inner.delay)
        };
        tokio::time::sleep(delay).await;
        failure.map_or(Ok(Response::new(answer)), Err)
    }
}

/// A service on threads of its own, so that it can be killed at once with all its connections.
pub(crate) struct Fake {
    pub(crate) endpoint: String,
    runtime: Option<Runtime>,
}

impl Fake {
    /// Serves the script on a free port.
    pub(crate) fn serving(script: &Script) -> Self {
        Self::start(script, "127.0.0.1:0", None)
    }

    /// Serves the script on a free port, encrypted.
    pub(crate) fn serving_encrypted(script: &Script, tls: ServerTlsConfig) -> Self {
        Self::start(script, "127.0.0.1:0", Some(tls))
    }

    /// Serves the script on a given port, which must be free.
    pub(crate) fn serving_at(script: &Script, address: &str) -> Self {
        Self::start(script, address, None)
    }

    fn start(script: &Script, address: &str, tls: Option<ServerTlsConfig>) -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let listener = std::net::TcpListener::bind(address).expect("a free port");
        listener.set_nonblocking(true).expect("a socket for tokio");
        let scheme = if tls.is_some() { "https" } else { "http" };
        let endpoint = format!("{scheme}://{}", listener.local_addr().expect("an address"));
        runtime.spawn(serve(script.clone(), listener, tls));
        Self { endpoint, runtime: Some(runtime) }
    }

    /// Closes every socket at once, even during calls. They are closed when it returns.
    pub(crate) fn kill(mut self) {
        let runtime = self.runtime.take();
        // A runtime must not be waited for on a thread of another one.
        std::thread::spawn(move || drop(runtime)).join().expect("it ends");
    }

    fn stop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.stop();
    }
}

async fn serve(script: Script, listener: std::net::TcpListener, tls: Option<ServerTlsConfig>) {
    let listener = TcpListener::from_std(listener).expect("a listener");
    let (health, health_service) = tonic_health::server::health_reporter();
    health.set_serving::<RouterServiceServer<Script>>().await;
    health.set_not_serving::<CatalogServiceServer<Script>>().await;
    let mut server = Server::builder();
    if let Some(tls) = tls {
        server = server.tls_config(tls).expect("a sound certificate");
    }
    server
        .add_service(health_service)
        .add_service(RouterServiceServer::new(script.clone()))
        .add_service(CatalogServiceServer::new(script))
        .serve_with_incoming(TcpListenerStream::new(listener))
        .await
        .expect("serving");
}

#[tonic::async_trait]
impl RouterService for Script {
    async fn route(
        &self,
        request: Request<RouteRequest>,
    ) -> Result<Response<RouteResponse>, Status> {
        let answer = RouteResponse { active_set_handle: "h1".into(), ..Default::default() };
        self.answer(&request, &request.get_ref().tenant, answer).await
    }

    async fn gate(&self, request: Request<GateRequest>) -> Result<Response<GateResponse>, Status> {
        self.answer(&request, &request.get_ref().tenant, GateResponse::default()).await
    }

    async fn search_tools(
        &self,
        request: Request<SearchToolsRequest>,
    ) -> Result<Response<SearchToolsResponse>, Status> {
        self.0.lock().expect("not poisoned").searches.push(request.get_ref().clone());
        let found = ActiveTool { model_name: "mcp__git__log".into(), ..Default::default() };
        let answer = SearchToolsResponse {
            tools: vec![found],
            active_set_handle: "h2".into(),
            ..Default::default()
        };
        self.answer(&request, &request.get_ref().tenant, answer).await
    }

    async fn get_summary_pool(
        &self,
        request: Request<GetSummaryPoolRequest>,
    ) -> Result<Response<GetSummaryPoolResponse>, Status> {
        self.answer(&request, &request.get_ref().tenant, GetSummaryPoolResponse::default()).await
    }

    async fn batch_get_tool_schemas(
        &self,
        request: Request<BatchGetToolSchemasRequest>,
    ) -> Result<Response<BatchGetToolSchemasResponse>, Status> {
        self.answer(&request, &request.get_ref().tenant, BatchGetToolSchemasResponse::default())
            .await
    }
}

#[tonic::async_trait]
impl CatalogService for Script {
    type WatchCatalogStream =
        Pin<Box<dyn Stream<Item = Result<WatchCatalogResponse, Status>> + Send>>;

    async fn register_server(
        &self,
        request: Request<RegisterServerRequest>,
    ) -> Result<Response<RegisterServerResponse>, Status> {
        let request_id = request.get_ref().request_id.clone();
        self.0.lock().expect("not poisoned").request_ids.push(request_id);
        self.answer(&request, &request.get_ref().tenant, RegisterServerResponse::default()).await
    }

    async fn unregister_server(
        &self,
        request: Request<UnregisterServerRequest>,
    ) -> Result<Response<UnregisterServerResponse>, Status> {
        self.answer(&request, &request.get_ref().tenant, UnregisterServerResponse::default()).await
    }

    async fn get_server(
        &self,
        request: Request<GetServerRequest>,
    ) -> Result<Response<GetServerResponse>, Status> {
        self.answer(&request, &request.get_ref().tenant, GetServerResponse::default()).await
    }

    /// Returns one of three pages, with one server each.
    async fn list_servers(
        &self,
        request: Request<ListServersRequest>,
    ) -> Result<Response<ListServersResponse>, Status> {
        let (name, next_page_token) = page(&request.get_ref().page_token);
        let servers = vec![McpServer { name, ..Default::default() }];
        let answer = ListServersResponse { servers, next_page_token };
        self.answer(&request, &request.get_ref().tenant, answer).await
    }

    /// Returns one of three pages, with one tool each.
    async fn list_tools(
        &self,
        request: Request<ListToolsRequest>,
    ) -> Result<Response<ListToolsResponse>, Status> {
        let (name, next_page_token) = page(&request.get_ref().page_token);
        let server = request.get_ref().server.clone();
        let tools = vec![Tool { name, server, ..Default::default() }];
        let answer = ListToolsResponse { tools, next_page_token };
        self.answer(&request, &request.get_ref().tenant, answer).await
    }

    async fn watch_catalog(
        &self,
        request: Request<WatchCatalogRequest>,
    ) -> Result<Response<Self::WatchCatalogStream>, Status> {
        assert!(request.metadata().get("grpc-timeout").is_none(), "a watch has no end");
        let watched = {
            let mut inner = self.0.lock().expect("not poisoned");
            inner.watched_since.push(request.get_ref().since_revision);
            inner.watches.pop_front()
        };
        self.answer(&request, &request.get_ref().tenant, ()).await?;
        let Watched { revisions, end } =
            watched.ok_or_else(|| Status::unimplemented("not served"))?;
        let change =
            |catalog_revision| WatchCatalogResponse { catalog_revision, ..Default::default() };
        let changes = tokio_stream::iter(revisions).map(move |revision| Ok(change(revision)));
        Ok(Response::new(match end {
            Some(end) => Box::pin(changes.chain(tokio_stream::once(Err(end)))),
            None => Box::pin(changes.chain(tokio_stream::pending())),
        }))
    }

    async fn approve_tools(
        &self,
        _: Request<ApproveToolsRequest>,
    ) -> Result<Response<ApproveToolsResponse>, Status> {
        Err(Status::unimplemented("not served"))
    }
}

fn page(token: &str) -> (String, String) {
    match token {
        "" => ("first".into(), "2".into()),
        "2" => ("second".into(), "3".into()),
        _ => ("third".into(), String::new()),
    }
}
