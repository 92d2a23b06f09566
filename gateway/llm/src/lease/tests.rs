//! Leases at a plane of a test's own, whose clock the test sets.

use std::collections::BTreeMap;
use std::pin::pin;

use futures_util::FutureExt as _;
use futures_util::stream::Empty;
use tokio::sync::Notify;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};
use tonic_types::{ErrorDetails, StatusExt as _};
use toolgate_client::ClientOptions;
use toolgate_client::v1::catalog_service_server::{CatalogService, CatalogServiceServer};

use super::*;
use crate::bounded::Bounds;
use crate::toolset::{self, Toolsets};

/// Length of a lease. A test is over before it is.
const LASTING: Duration = Duration::from_secs(3_000);

/// Name of a set's tenant behind its number.
const DIGEST: &str = "0123456789abcdef0123456789abcdef";

/// Plane of a test. Cloning shares it.
#[derive(Debug, Default, Clone)]
struct Plane(Arc<Lock<Catalog>>);

#[derive(Debug, Default)]
struct Catalog {
    /// MCP servers by their tenants and names.
    servers: BTreeMap<(String, String), v1::McpServer>,
    /// Time of the clock in seconds.
    now: i64,
    changes: u64,
    /// Tenant whose MCP servers can't be taken out.
    stuck: Option<String>,
    /// True if the answer to the next registration is lost.
    is_losing: bool,
    /// MCP server whose registration waits.
    waiting: Option<Waiting>,
}

/// Registration that the plane has taken, and that waits until the test lets it go on.
#[derive(Debug, Default, Clone)]
struct Waiting {
    server: String,
    /// What is said of its tool.
    outcome: v1::ToolOutcome,
    came: Arc<Notify>,
    go_on: Arc<Notify>,
}

fn failed(reason: ErrorReason) -> Status {
    let details = ErrorDetails::with_error_info(reason.name(), "toolgate", []);
    Status::with_error_details(tonic::Code::Aborted, "as the test says", details)
}

type Answered<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl CatalogService for Plane {
    type WatchCatalogStream = Empty<Result<v1::WatchCatalogResponse, Status>>;

    async fn register_server(
        &self,
        request: Request<v1::RegisterServerRequest>,
    ) -> Answered<v1::RegisterServerResponse> {
        let request = request.into_inner();
        let plane = self.clone();
        // Whoever asked may leave: what was taken is done.
        let registering = tokio::spawn(async move {
            let waiting = plane.0.lock().waiting.clone();
            let waiting = waiting.filter(|waiting| waiting.server == request.server);
            if let Some(waiting) = &waiting {
                waiting.came.notify_one();
                waiting.go_on.notified().await;
            }
            let mut catalog = plane.0.lock();
            let key = (request.tenant.clone(), request.server.clone());
            let known = catalog.servers.get(&key);
            if known.is_some_and(|known| !request.etag.is_empty() && known.etag != request.etag) {
                return Err(failed(ErrorReason::EtagMismatch));
            }
            if known.is_some() && request.request_id.starts_with("make-") {
                return Err(failed(ErrorReason::RequestIdReused));
            }
            let server = catalog.put(&request.tenant, &request.server, &request.description);
            if std::mem::take(&mut catalog.is_losing) {
                return Err(Status::internal("as the test says"));
            }
            let outcomes = waiting.into_iter().map(|waiting| waiting.outcome).collect();
            let server = Some(server);
            let registered = v1::RegisterServerResponse { server, outcomes, ..Default::default() };
            Ok(Response::new(registered))
        });
        registering.await.expect("no panic")
    }

    async fn unregister_server(
        &self,
        request: Request<v1::UnregisterServerRequest>,
    ) -> Answered<v1::UnregisterServerResponse> {
        let request = request.into_inner();
        let mut catalog = self.0.lock();
        if catalog.stuck.as_ref() == Some(&request.tenant) {
            return Err(Status::internal("as the test says"));
        }
        catalog.servers.remove(&(request.tenant, request.server));
        Ok(Response::new(v1::UnregisterServerResponse::default()))
    }

    async fn list_servers(
        &self,
        request: Request<v1::ListServersRequest>,
    ) -> Answered<v1::ListServersResponse> {
        let tenant = request.into_inner().tenant;
        let catalog = self.0.lock();
        let servers = catalog.servers.iter().filter(|((of, _), _)| *of == tenant);
        let servers = servers.map(|(_, server)| server.clone()).collect();
        Ok(Response::new(v1::ListServersResponse { servers, ..Default::default() }))
    }

    async fn get_server(
        &self,
        _: Request<v1::GetServerRequest>,
    ) -> Answered<v1::GetServerResponse> {
        Err(Status::unimplemented("not asked"))
    }

    async fn list_tools(
        &self,
        _: Request<v1::ListToolsRequest>,
    ) -> Answered<v1::ListToolsResponse> {
        Err(Status::unimplemented("not asked"))
    }

    async fn watch_catalog(
        &self,
        _: Request<v1::WatchCatalogRequest>,
    ) -> Answered<Self::WatchCatalogStream> {
        Err(Status::unimplemented("not asked"))
    }

    async fn approve_tools(
        &self,
        _: Request<v1::ApproveToolsRequest>,
    ) -> Answered<v1::ApproveToolsResponse> {
        Err(Status::unimplemented("not asked"))
    }
}

impl Catalog {
    fn put(&mut self, tenant: &str, name: &str, description: &str) -> v1::McpServer {
        self.changes += 1;
        let mut server = v1::McpServer {
            name: name.to_owned(),
            description: description.to_owned(),
            etag: self.changes.to_string(),
            ..Default::default()
        };
        server.update_time.get_or_insert_default().seconds = self.now;
        self.servers.insert((tenant.to_owned(), name.to_owned()), server.clone());
        server
    }
}

impl Plane {
    /// Begins to serve, and returns a client.
    async fn client(&self) -> Client {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let service = CatalogServiceServer::new(self.clone());
        let serving = Server::builder().add_service(service);
        tokio::spawn(serving.serve_with_incoming(TcpIncoming::from(listener)));
        Client::lazy(&format!("http://{address}"), ClientOptions::default()).expect("a URL")
    }

    fn put(&self, tenant: &str, name: &str, description: &str) {
        self.0.lock().put(tenant, name, description);
    }

    /// Registers a set of tools under a number, and returns its tenant.
    fn put_set(&self, number: u32) -> String {
        let tenant = format!("llm-{number}-{DIGEST}");
        self.put(&sets_of(number), &tenant, "");
        self.put(&tenant, "git", "");
        tenant
    }

    /// Has the MCP servers of one tenant alone be such that they can't be taken out.
    fn stick(&self, tenant: Option<&str>) {
        self.0.lock().stuck = tenant.map(str::to_owned);
    }

    /// Puts the clock forward.
    fn pass(&self, time: Duration) {
        self.0.lock().now += i64::try_from(time.as_secs()).expect("short");
    }

    /// Returns the names of a tenant's MCP servers.
    fn names(&self, tenant: &str) -> Vec<String> {
        let catalog = self.0.lock();
        let keys = catalog.servers.keys().filter(|(of, _)| of == tenant);
        keys.map(|(_, name)| name.clone()).collect()
    }

    /// Returns what is said of a number.
    fn said_of(&self, number: u32) -> String {
        let catalog = self.0.lock();
        let server = catalog.servers.get(&(NUMBERS.to_owned(), number.to_string()));
        server.expect("a number").description.clone()
    }
}

#[tokio::test]
async fn what_others_announced_under_a_number_stays() {
    let plane = Plane::default();
    plane.put(NUMBERS, "0", FREE);
    let set = plane.put_set(0);
    for other in ["prod", "llm-0-prod", "llm-1-0123456789abcdef0123456789abcdef"] {
        plane.put(&sets_of(0), other, "");
        plane.put(other, "db", "");
    }
    let leases = Leases::new(&plane.client().await, LASTING);
    assert_eq!(leases.number().await.expect("a number"), 0);
    assert!(plane.names(&set).is_empty() && plane.names(&sets_of(0)).is_empty());
    assert!(plane.said_of(0).starts_with(&leases.holder));
    for other in ["prod", "llm-0-prod", "llm-1-0123456789abcdef0123456789abcdef"] {
        assert_eq!(plane.names(other), ["db"]);
    }
}

#[tokio::test]
async fn a_lease_lasts_as_long_as_its_holder_says() {
    let plane = Plane::default();
    let client = plane.client().await;
    let long = Leases::new(&client, LASTING);
    assert_eq!(long.number().await.expect("a number"), 0);
    plane.put_set(0);
    let short = Leases::new(&client, LASTING / 30);
    plane.pass(LASTING / 3);
    short.keep().await;
    assert!(plane.said_of(0).starts_with(&long.holder) && !plane.names(&sets_of(0)).is_empty());
    plane.pass(LASTING);
    short.keep().await;
    assert_eq!(plane.said_of(0), FREE);
    assert!(plane.names(&sets_of(0)).is_empty());
    // The other way round: what has a short lease is not kept for a long one.
    plane.pass(LASTING / 3);
    let other = Leases::new(&client, LASTING);
    other.keep().await;
    assert_eq!(other.number().await.expect("a number"), 0);
    assert_eq!(plane.said_of(1), FREE);
}

#[tokio::test]
async fn a_number_is_given_back_once_nothing_is_left_under_it() {
    let plane = Plane::default();
    let client = plane.client().await;
    let leases = Leases::new(&client, LASTING);
    let number = leases.number().await.expect("a number");
    // A registration was under way, of which the process knows no set.
    let set = plane.put_set(number);
    leases.release().await;
    assert!(plane.names(&set).is_empty() && plane.names(&sets_of(number)).is_empty());
    assert_eq!(plane.said_of(number), FREE);

    let number = leases.number().await.expect("a number");
    let set = plane.put_set(number);
    plane.stick(Some(&set));
    leases.release().await;
    assert!(plane.said_of(number).starts_with(&leases.holder), "something is left");
    plane.stick(None);
    plane.pass(LASTING);
    Leases::new(&client, LASTING).keep().await;
    assert!(plane.names(&set).is_empty());
    assert_eq!(plane.said_of(number), FREE);
}

#[tokio::test]
async fn what_another_process_has_by_now_is_not_taken_out() {
    let plane = Plane::default();
    let client = plane.client().await;
    let late = Leases::new(&client, LASTING);
    assert_eq!(late.number().await.expect("a number"), 0);
    plane.pass(LASTING);
    Leases::new(&client, LASTING).keep().await;
    let other = Leases::new(&client, LASTING);
    assert_eq!(other.number().await.expect("a number"), 0);
    let set = plane.put_set(0);
    late.release().await;
    assert_eq!(plane.names(&set), ["git"]);
    assert!(plane.said_of(0).starts_with(&other.holder));
}

#[tokio::test]
async fn a_number_that_cannot_be_cleared_takes_no_other() {
    let plane = Plane::default();
    let client = plane.client().await;
    for number in ["0", "1"] {
        plane.put(NUMBERS, number, "ended 0 1000");
    }
    let stuck = plane.put_set(0);
    let set = plane.put_set(1);
    plane.stick(Some(&stuck));
    plane.pass(LASTING);
    let sweeping = Leases::new(&client, LASTING);
    sweeping.keep().await;
    assert!(plane.names(&set).is_empty(), "the sets of the next number are taken out");
    assert_eq!(plane.said_of(1), FREE);
    sweeping.keep().await;
    assert_eq!(sweeping.number().await.expect("a number"), 2);
    assert_eq!(plane.names(NUMBERS), ["0", "1", "2"]);
    // It is tried again later.
    plane.stick(None);
    plane.pass(LASTING);
    sweeping.keep().await;
    assert_eq!(plane.said_of(0), FREE);
    assert!(plane.names(&stuck).is_empty());
}

#[tokio::test]
async fn a_free_number_that_cannot_be_cleared_stays_free_and_another_is_taken() {
    let plane = Plane::default();
    let client = plane.client().await;
    plane.put(NUMBERS, "0", FREE);
    let stuck = plane.put_set(0);
    plane.stick(Some(&stuck));
    for number in [1, 2] {
        let leases = Leases::new(&client, LASTING);
        assert_eq!(leases.number().await.expect("a number"), number);
        assert_eq!(plane.said_of(0), FREE);
    }
    plane.stick(None);
    assert_eq!(Leases::new(&client, LASTING).number().await.expect("a number"), 0);
    assert!(plane.names(&stuck).is_empty());
}

#[tokio::test]
async fn a_renewal_whose_answer_was_lost_leaves_the_number() {
    let plane = Plane::default();
    let leases = Leases::new(&plane.client().await, LASTING);
    let number = leases.number().await.expect("a number");
    for _ in 0..2 {
        plane.0.lock().is_losing = true;
        leases.keep().await;
    }
    leases.keep().await;
    assert_eq!(leases.number().await.expect("a number"), number);
    assert_eq!(plane.names(NUMBERS), [number.to_string()]);
    // Each renewal is another text, so that the plane notes its time.
    assert_eq!(plane.said_of(number), leases.description(3));
    plane.0.lock().is_losing = true;
    leases.keep().await;
    leases.release().await;
    assert_eq!(plane.said_of(number), FREE);
}

#[tokio::test]
async fn a_set_that_is_being_registered_leaves_the_plane_when_the_process_stops() {
    let plane = Plane::default();
    let client = plane.client().await;
    let leases = Arc::new(Leases::new(&client, LASTING));
    let bounds = Bounds { entries: 4, bytes: 1 << 10 };
    let toolsets = Toolsets::new(client, Some(Arc::clone(&leases)), bounds);
    let waiting = Waiting {
        server: "git".to_owned(),
        outcome: v1::ToolOutcome {
            name: "log".to_owned(),
            kind: v1::OutcomeKind::Accepted.into(),
            model_name: "git_log".to_owned(),
            ..Default::default()
        },
        ..Waiting::default()
    };
    plane.0.lock().waiting = Some(waiting.clone());
    let tools = ["mcp__git__log", "mcp__mail__send"].map(toolset::tests::tool);
    let tenant: Arc<str> = Arc::from("a");
    let finding = tokio::spawn({
        let toolsets = toolsets.clone();
        let tenant = Arc::clone(&tenant);
        let tools = tools.clone();
        async move { toolsets.find(&tenant, &tools).await.map(drop) }
    });
    waiting.came.notified().await;
    let [set] = plane.names(&sets_of(0)).try_into().expect("one set");
    let mut closing = pin!(toolsets.forget_all());
    assert!(closing.as_mut().now_or_never().is_none(), "it waits for the plane");
    assert_eq!(toolsets.find(&tenant, &tools[..1]).await.map(drop), Err("plane-failed"));
    waiting.go_on.notify_one();
    assert_eq!(
        finding.await.expect("no panic"),
        Err("plane-failed"),
        "no further server is registered"
    );
    closing.await;
    assert!(plane.names(&set).is_empty() && plane.names(&sets_of(0)).is_empty());
    assert_eq!(plane.said_of(0), FREE);
    assert_eq!(plane.names(NUMBERS), ["0"], "no other number is taken");
}
