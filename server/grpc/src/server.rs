//! gRPC server: its services, its limits on connections, and how it drains.

use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tonic::transport::Error as TransportError;
use tonic::transport::server::Router;
use tonic_health::pb::FILE_DESCRIPTOR_SET as HEALTH_DESCRIPTORS;
use tonic_health::server::{HealthReporter, health_reporter};
use toolgate_proto::v1::FILE_DESCRIPTOR_SET;
use toolgate_proto::v1::catalog_service_server::CatalogServiceServer;
use toolgate_proto::v1::encoder_service_server::EncoderServiceServer;
use toolgate_proto::v1::memory_service_server::MemoryServiceServer;
use toolgate_proto::v1::policy_service_server::PolicyServiceServer;
use toolgate_proto::v1::router_service_server::RouterServiceServer;
use toolgate_proto::v1::usage_service_server::UsageServiceServer;
use toolgate_serving::{
    BodyPace, BoundAnswers, BoundRequests, ConnectionLimits, Connections, CredentialScope,
    ExplainUndecoded, IncomingRequest, RefusedRequest, RequestRefusal, Stage, Tls, drained_or_cut,
    ending_after, transport,
};
use tower::layer::util::{Identity, Stack};

use super::catalog_service::Catalogs;
use super::edge::{BODY_MARGIN, Edge, is_admitted, is_interactive, method_at};
use super::guard::Guard;
use super::memory_service::Memories;
use super::policy_service::Policies;
use super::router_service::Routing;
use super::unserved::Unserved;
use super::usage_service::Ledgers;
use super::web::{WebFaces, WebLimits};
use toolgate_access::admission::Admission;
use toolgate_access::audit::Audit;
use toolgate_access::auth::Authenticator;
use toolgate_app::pipeline::{CallOutcome, Pipeline};
use toolgate_app::plane::Plane;
use toolgate_app::telemetry::{Metrics, Rejection};
use toolgate_config::{LimitsConfig, RouterConfig, ServerConfig};
use toolgate_core::error::Error;
use toolgate_core::identity::TenantId;
use toolgate_core::live::Live;
use toolgate_core::method::Method;

/// Configuration of the gRPC API.
#[derive(Clone)]
pub struct ApiConfig {
    /// Settings for listening, admission and draining.
    pub server: ServerConfig,
    /// Limits on input; may change at runtime.
    pub limits: Arc<Live<LimitsConfig>>,
    /// Defaults of Route's options.
    pub router: RouterConfig,
    /// Admission control.
    pub admission: Admission,
    /// Authenticator of callers.
    pub authenticator: Arc<Authenticator>,
    /// Audit log of changes.
    pub audit: Arc<Audit>,
    /// Certificates; `None` without TLS.
    pub tls: Option<Arc<Tls>>,
}

/// Serves until `stop`, then drains. It accepts no new calls, reports NOT_SERVING as its health, and gives calls in
/// progress `drain_timeout` to end. Then it cuts off the rest, because tonic itself would wait forever (hyper#4170).
///
/// # Errors
/// Returns an error if the transport fails.
pub async fn serve(
    listener: TcpListener,
    plane: Arc<Plane>,
    metrics: Arc<Metrics>,
    config: ApiConfig,
    stop: CancellationToken,
) -> Result<(), TransportError> {
    let drain_timeout = config.server.drain_timeout;
    let connection_metrics = Arc::clone(&metrics);
    let (reporter, health) = health_reporter();
    set_health(&reporter, true).await;
    let pipeline = Pipeline {
        plane,
        audit: Arc::clone(&config.audit),
        limits: Arc::clone(&config.limits),
        metrics: Arc::clone(&metrics),
        admission: config.admission.clone(),
        max_deadline: config.server.max_deadline,
        draining: stop.clone(),
    };
    let authenticator = Arc::clone(&config.authenticator);
    let guard = Guard::new(authenticator, metrics, config.server.max_deadline);
    let edge = Edge { guard, pipeline };
    let router = services(edge, &config).add_service(health);
    let refused = move |why| connection_metrics.rejected(Rejection::from(why));
    let incoming = Connections::new(listener, connection_limits(&config.server), refused)
        .over_tls(config.tls.clone());
    let drain = {
        let stop = stop.clone();
        async move {
            stop.cancelled().await;
            set_health(&reporter, false).await;
        }
    };
    let serving = router.serve_with_incoming_shutdown(incoming, drain);
    drained_or_cut(serving, &stop, drain_timeout).await.unwrap_or(Ok(()))
}

/// Time after which a connection without any authenticated call is closed.
const UNPROVEN_IDLE: Duration = Duration::from_secs(30);

fn connection_limits(config: &ServerConfig) -> ConnectionLimits {
    ConnectionLimits {
        max: config.max_connections,
        max_per_address: Some(config.max_connections_per_address),
        idle: config.max_connection_idle,
        unproven_idle: Some(UNPROVEN_IDLE),
    }
}

/// Number of requests in progress for each call that may be in progress: some are still being read, and some are being
/// refused.
const REQUESTS_A_CALL: usize = 2;

type Bounds = Stack<BoundAnswers, Stack<BoundRequests, Identity>>;
type Layers = Stack<ExplainUndecoded, Stack<Guard, Stack<WebFaces, Bounds>>>;

fn services(edge: Edge, config: &ApiConfig) -> Router<Layers> {
    let metrics = Arc::clone(&edge.pipeline.metrics);
    let requests = request_bounds(config, &metrics);
    let answers = answer_bounds(&config.server, &metrics);
    let guard = edge.guard.clone();
    let max = config.limits.now().max_message_bytes;
    let web = WebLimits {
        max_message_bytes: max,
        max_concurrent_calls: config.server.admission.max_calls,
        max_deadline: config.server.max_deadline,
        admin_port: config.server.admin_listen.port(),
    };
    let reflection = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(FILE_DESCRIPTOR_SET)
            .register_encoded_file_descriptor_set(HEALTH_DESCRIPTORS)
    };
    let routing = Routing { edge: edge.clone(), defaults: config.router };
    let catalogs = Catalogs { edge: edge.clone() };
    let policy = PolicyServiceServer::new(Policies { edge: edge.clone() });
    let memory = MemoryServiceServer::new(Memories { edge: edge.clone() });
    let usage = UsageServiceServer::new(Ledgers { edge: edge.clone() });
    let encoder = EncoderServiceServer::new(Unserved { edge });
    let longest = Method::longest_of_all(config.server.max_deadline);
    let aging = |age| ending_after(transport(), age, longest);
    let transport = config.server.max_connection_age.map_or_else(transport, aging);
    transport
        // For browsers and callers without HTTP/2.
        .accept_http1(true)
        // Excess requests are refused before they cost anything.
        .layer(requests)
        // Answers that callers do not read must not fill the memory.
        .layer(answers)
        // Translates for callers that do not use gRPC.
        .layer(WebFaces::new(&web, &config.server.cors_origins, guard.clone(), metrics))
        // No body is read before the caller is authenticated.
        .layer(guard)
        // Gives a reason to errors of the transport itself.
        .layer(ExplainUndecoded { max_message_bytes: max, limit_name: "limits.max_message_size" })
        .add_service(RouterServiceServer::new(routing).max_decoding_message_size(max))
        .add_service(CatalogServiceServer::new(catalogs).max_decoding_message_size(max))
        .add_service(policy.max_decoding_message_size(max))
        .add_service(memory.max_decoding_message_size(max))
        .add_service(usage.max_decoding_message_size(max))
        .add_service(encoder.max_decoding_message_size(max))
        .add_optional_service(reflection().build_v1().ok())
        .add_optional_service(reflection().build_v1alpha().ok())
}

/// Returns the limits on incoming requests.
fn request_bounds(config: &ApiConfig, metrics: &Arc<Metrics>) -> BoundRequests {
    let requests = config.server.admission.max_calls.saturating_mul(REQUESTS_A_CALL);
    let pace = BodyPace::within(config.server.max_deadline + BODY_MARGIN);
    let metrics = Arc::clone(metrics);
    let admission = config.admission.clone();
    let refused = move |request: &RefusedRequest<'_>| observe_refused(&metrics, request);
    let cores = available_parallelism().map_or(1, usize::from);
    BoundRequests::new(requests, pace, refused)
        .in_turns(cores)
        .asking(move |request: &IncomingRequest<'_>| let_in(&admission, request))
}

/// Counts a request that was refused before it was read. It is also observed as a call if its credential was accepted
/// before on its connection: error budgets count these calls, and a stranger's must not use them up.
fn observe_refused(metrics: &Metrics, request: &RefusedRequest<'_>) {
    metrics.rejected(Rejection::from(request.reason));
    let Some(method) = method_at(request.path).filter(|_| request.is_known) else { return };
    let error = match request.reason {
        RequestRefusal::Full | RequestRefusal::Waited | RequestRefusal::TenantFull => {
            Error::Overloaded
        }
        RequestRefusal::Late => Error::DeadlineExceeded,
    };
    metrics.call(&CallOutcome::new(method.name(), Some(&error), request.waited));
}

/// Admits a request if its caller still waits for it, and if requests of its kind have not been waiting too long.
fn let_in(admission: &Admission, request: &IncomingRequest<'_>) -> Result<(), RequestRefusal> {
    if request.asked.is_some_and(|asked| request.waited >= asked) {
        return Err(RequestRefusal::Late);
    }
    if !is_interactive(request.path) {
        return Ok(());
    }
    let is_in_time = match request.stage {
        Stage::Came { queue } => admission.may_queue(request.connection, queue),
        Stage::Begins => admission.is_in_time(request.connection, request.waited),
    };
    if !is_in_time {
        return Err(RequestRefusal::Waited);
    }
    let tenant = tenant_of(request).filter(|_| is_admitted(request.path));
    match tenant.is_some_and(|tenant| admission.turns_away(&tenant)) {
        true => Err(RequestRefusal::TenantFull),
        false => Ok(()),
    }
}

/// Returns the tenant of a request before anything checked it: good for a refusal, never for more. Only a caller whose
/// credential was accepted before is looked at, so that nobody learns, or adds to, the load of a tenant not his own.
fn tenant_of(request: &IncomingRequest<'_>) -> Option<TenantId> {
    let tenant = match request.scope? {
        CredentialScope::Tenant(tenant) => tenant,
        CredentialScope::AnyTenant => tenant_named(request.first_bytes)?,
    };
    TenantId::parse(tenant).ok()
}

/// Returns the tenant that a gRPC request names, from the first bytes of its body, if they hold it. `tenant` is the
/// first field of every request of this API, and encoders write fields in order.
fn tenant_named(first_bytes: &[u8]) -> Option<&str> {
    /// Not compressed (gRPC over HTTP/2, "Length-Prefixed-Message").
    const PLAIN: u8 = 0;
    /// Field 1, of bytes with their length before them.
    const TENANT: u8 = 1 << 3 | 2;
    let [PLAIN, _, _, _, _, TENANT, length, rest @ ..] = first_bytes else { return None };
    // Lengths from 128 on take two bytes. No tenant's name is so long.
    let name = rest.get(..usize::from(*length))?;
    std::str::from_utf8(name).ok()
}

/// Returns the limits on outgoing answers.
fn answer_bounds(config: &ServerConfig, metrics: &Arc<Metrics>) -> BoundAnswers {
    let metrics = Arc::clone(metrics);
    let refused = move || metrics.rejected(Rejection::UnsentAnswers);
    BoundAnswers::new(config.response_buffer_bytes, refused)
}

async fn set_health(reporter: &HealthReporter, serving: bool) {
    macro_rules! set {
        ($($service:ty),*) => {
            $(if serving {
                reporter.set_serving::<$service>().await;
            } else {
                reporter.set_not_serving::<$service>().await;
            })*
        };
    }
    set!(
        RouterServiceServer<Routing>,
        CatalogServiceServer<Catalogs>,
        PolicyServiceServer<Policies>,
        MemoryServiceServer<Memories>,
        UsageServiceServer<Ledgers>
    );
    let whole = if serving {
        tonic_health::ServingStatus::Serving
    } else {
        tonic_health::ServingStatus::NotServing
    };
    reporter.set_service_status("", whole).await;
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Instant;

    use toolgate_proto::v1::RouteRequest;

    use super::*;
    use toolgate_access::admission::{AdmissionRequest, Kind};
    use toolgate_app::telemetry::ShardsReading;
    use toolgate_config::AdmissionConfig;
    use toolgate_config::Config;

    const ROUTE: &str = "/toolgate.v1.RouterService/Route";
    const REGISTER: &str = "/toolgate.v1.CatalogService/RegisterServer";

    /// Creates an admission control that refuses calls which waited long, once most calls did so for a while.
    fn admission() -> Admission {
        Admission::new(AdmissionConfig {
            max_calls: 8,
            max_calls_per_tenant: None,
            calls_per_second_per_tenant: None,
            max_wait: Some(Duration::from_millis(1)),
        })
    }

    fn waited(path: &str, millis: u64) -> IncomingRequest<'_> {
        let waited = Duration::from_millis(millis);
        let stage = Stage::Begins;
        IncomingRequest {
            path,
            connection: None,
            waited,
            stage,
            asked: None,
            scope: None,
            first_bytes: &[],
        }
    }

    #[test]
    fn who_is_out_of_time_is_late() {
        let admission = admission();
        for path in [ROUTE, REGISTER] {
            let ask = |millis| {
                let asked = Some(Duration::from_millis(100));
                let_in(&admission, &IncomingRequest { asked, ..waited(path, millis) })
            };
            for millis in [100, 101] {
                assert_eq!(ask(millis), Err(RequestRefusal::Late), "{path} after {millis} ms");
            }
            assert_ne!(ask(99), Err(RequestRefusal::Late), "{path}");
        }
    }

    #[test]
    fn calls_that_wait_in_a_standing_queue_are_refused_and_registrations_never() {
        let admission = admission();
        assert_eq!(let_in(&admission, &waited(ROUTE, 200)), Ok(()), "it may be for a moment");
        let next = || let_in(&admission, &waited(ROUTE, 200));
        let until = Instant::now() + Duration::from_secs(20);
        let mut asked = std::iter::repeat_with(next).take_while(|_| Instant::now() < until);
        assert_eq!(asked.find_map(Result::err), Some(RequestRefusal::Waited));
        assert_eq!(let_in(&admission, &waited(REGISTER, 200)), Ok(()));
        assert_eq!(let_in(&admission, &waited(ROUTE, 0)), Ok(()), "it did not wait");
    }

    /// Returns the first bytes of a gRPC call of this message.
    fn bytes_of(message: &impl prost::Message) -> Vec<u8> {
        let length = message.encoded_len() as u32;
        [&[0][..], &length.to_be_bytes(), &message.encode_to_vec()].concat()
    }

    #[test]
    fn a_tenant_that_has_its_share_is_turned_away_before_its_call_is_read() {
        let admission = admission();
        let wish = AdmissionRequest {
            kind: Kind::Interactive,
            left: Duration::from_secs(1),
            waited: Duration::ZERO,
        };
        let tenant = |name| TenantId::parse(name).expect("a name");
        let begin = |name| admission.begin(&tenant(name), wish).expect("a place");
        let mut held: Vec<_> = (0..6).map(|_| begin("greedy")).collect();
        held.extend((0..2).map(|_| begin("other")));
        let route = |tenant: &str| {
            bytes_of(&RouteRequest { tenant: tenant.to_owned(), ..Default::default() })
        };
        let ask = |path, scope, first_bytes: &[u8]| {
            let stage = Stage::Came { queue: Duration::ZERO };
            let_in(&admission, &IncomingRequest { stage, scope, first_bytes, ..waited(path, 0) })
        };
        let any = Some(&CredentialScope::AnyTenant);
        let full = Err(RequestRefusal::TenantFull);
        assert_eq!(ask(ROUTE, any, &route("greedy")), full);
        assert_eq!(ask(ROUTE, any, &route("other")), Ok(()), "it has less than its share");
        assert_eq!(ask(ROUTE, any, &route("")), Ok(()), "whose call it is isn't known");
        assert_eq!(ask(ROUTE, any, &route("greedy")[..8]), Ok(()), "nor is it here");
        assert_eq!(ask(REGISTER, any, &route("greedy")), Ok(()), "its caller may wait");
        assert_eq!(ask(ROUTE, None, &route("greedy")), Ok(()), "anybody may name a tenant");
        let of_greedy = CredentialScope::Tenant("greedy".into());
        assert_eq!(ask(ROUTE, Some(&of_greedy), &route("other")), full);
        held.clear();
        assert_eq!(ask(ROUTE, any, &route("greedy")), Ok(()));
    }

    /// Returns the lines of refused requests in the metrics, after one that was refused.
    fn observed(path: &str, is_known: bool, reason: RequestRefusal) -> Vec<String> {
        let metrics = Metrics::default();
        let waited = Duration::from_millis(20);
        observe_refused(&metrics, &RefusedRequest { path, waited, is_known, reason });
        let text = metrics.expose(ShardsReading::default());
        let is_one = |line: &&str| {
            line.starts_with("rpc_server_call_duration_seconds_count")
                || line.starts_with("toolgate_admission_rejected_total") && line.ends_with(" 1")
        };
        text.lines().filter(is_one).map(str::to_owned).collect()
    }

    #[test]
    fn calls_that_are_refused_before_they_are_read_count_for_the_error_budget() {
        for (reason, name, error) in [
            (RequestRefusal::Full, "requests", "OVERLOADED"),
            (RequestRefusal::Waited, "queue", "OVERLOADED"),
            (RequestRefusal::TenantFull, "wait", "OVERLOADED"),
            (RequestRefusal::Late, "deadline", "DEADLINE_EXCEEDED"),
        ] {
            let lines = observed(ROUTE, true, reason);
            let [call, rejected] = lines.as_slice() else { panic!("{lines:?}") };
            assert!(call.contains("Route"), "{call}");
            assert!(call.contains(&format!("error_type=\"{error}\"")), "{call}");
            assert!(rejected.contains(&format!("reason=\"{name}\"")), "{rejected}");
        }
    }

    #[test]
    fn strangers_do_not_use_up_the_error_budget() {
        assert_eq!(observed(ROUTE, false, RequestRefusal::Full).len(), 1, "rejected alone");
        assert_eq!(observed("/nothing", true, RequestRefusal::Full).len(), 1, "no such method");
    }

    #[test]
    fn every_request_names_its_tenant_first() {
        let pool = prost_reflect::DescriptorPool::decode(FILE_DESCRIPTOR_SET).expect("committed");
        let methods = pool.services().flat_map(|service| service.methods().collect::<Vec<_>>());
        let admitted = methods.filter(|method| {
            let service = method.parent_service().full_name().to_owned();
            is_admitted(&format!("/{service}/{}", method.name()))
        });
        let mut count = 0;
        for method in admitted {
            let tenant = method.input().get_field_by_name("tenant").expect("a tenant");
            assert_eq!(tenant.number(), 1, "{}", method.full_name());
            count += 1;
        }
        assert!(count >= 10, "{count}");
    }

    #[test]
    fn connections_are_bounded_in_all_ways_by_default() {
        let config = Config::in_directory(Path::new("data")).server;
        let limits = connection_limits(&config);
        assert_eq!(limits.max, 1_024);
        assert_eq!(limits.max_per_address, Some(512));
        assert_eq!(limits.idle, Some(Duration::from_secs(300)));
        assert_eq!(limits.unproven_idle, Some(UNPROVEN_IDLE));
    }
}
