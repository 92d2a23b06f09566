//! Tests that the table of roles is complete and documented, and that no call bypasses the guard.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::future::pending;

use prost_reflect::DescriptorPool;
use tokio::sync::mpsc;
use tonic::{Code, Status};
use toolgate_serving::{BodyPace, BoundRequests};
use tower::{ServiceExt as _, service_fn};

use super::*;
use toolgate_access::auth::AuthMetrics;
use toolgate_access::auth::access::table;
use toolgate_access::auth::api_key::ApiKey;
use toolgate_access::auth::start;
use toolgate_app::telemetry::ShardsReading;
use toolgate_config::{AuthConfig, AuthMethod};
use toolgate_core::method::REGISTRATION_TIME;
use toolgate_core::role::Role;
use toolgate_store::sqlite::SqliteStore;
use toolgate_store::{KeyStore, StoredKey};

const MAX_DEADLINE: Duration = Duration::from_secs(30);

fn served() -> BTreeSet<String> {
    let descriptors = [
        toolgate_proto::v1::FILE_DESCRIPTOR_SET,
        tonic_health::pb::FILE_DESCRIPTOR_SET,
        tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET,
        tonic_reflection::pb::v1alpha::FILE_DESCRIPTOR_SET,
    ];
    let mut paths = BTreeSet::new();
    for set in descriptors {
        let pool = DescriptorPool::decode(set).expect("the descriptors are committed");
        for service in pool.services() {
            let path = |method: prost_reflect::MethodDescriptor| {
                format!("/{}/{}", service.full_name(), method.name())
            };
            paths.extend(service.methods().map(path));
        }
    }
    paths
}

#[test]
fn every_rpc_is_in_the_table_and_nothing_else() {
    let listed: BTreeSet<_> = table().into_iter().map(|(path, _)| path).collect();
    let missing: Vec<_> = served().difference(&listed).cloned().collect();
    assert!(missing.is_empty(), "without a role: {missing:?}");
    let stale: Vec<_> = listed.difference(&served()).cloned().collect();
    assert!(stale.is_empty(), "in the table only: {stale:?}");
}

#[test]
fn the_documentation_has_the_same_table() {
    let page = include_str!("../../../../docs/security.md");
    for (path, access) in table() {
        let (service, method) = path[1..].split_once('/').expect("a path");
        let name = format!("{}/{method}", service.rsplit('.').next().expect("a name"));
        let who = match access {
            Access::Open => "anybody".to_owned(),
            Access::Known => "any credential".to_owned(),
            Access::Needs(roles) => roles.and(Role::Admin).to_string(),
        };
        let row = page.lines().find(|line| line.starts_with(&format!("| `{name}` |")));
        let row = row.unwrap_or_else(|| panic!("docs/security.md has no row of {name}"));
        assert_eq!(row.split('|').nth(2).map(str::trim), Some(who.as_str()), "{name}");
    }
}

#[tokio::test]
async fn callers_are_told_once_and_refusals_go_no_further() {
    let call = async |path: &str, guard: Guard| {
        let inside = service_fn(|request: Request<Body>| async move {
            let known = request.extensions().get::<Caller>().is_some();
            let status = if known { Status::ok("known") } else { Status::ok("open") };
            Ok::<_, Infallible>(status.into_http::<Body>())
        });
        let mut request = Request::new(Body::empty());
        *request.uri_mut() = path.parse().expect("a path");
        let Ok(answer) = guard.layer(inside).oneshot(request).await;
        let status = Status::from_header_map(answer.headers()).expect("a status");
        (status.code(), status.message().to_owned())
    };
    let off = Guard::new(Arc::new(Authenticator::off()), Arc::default(), MAX_DEADLINE);
    let route = "/toolgate.v1.RouterService/Route";
    assert_eq!(call(route, off.clone()).await, (tonic::Code::Ok, "known".into()));
    let health = "/grpc.health.v1.Health/Check";
    assert_eq!(call(health, off).await, (tonic::Code::Ok, "open".into()));
}

/// Creates an agent's key for a tenant, and returns it as a header value.
async fn bearer(store: &SqliteStore, tenant: &str) -> HeaderValue {
    let key = ApiKey::generate().expect("a key");
    let stored = StoredKey {
        id: key.id().to_owned(),
        secret_hash: key.secret_hash(),
        tenant: TenantId::parse(tenant).ok(),
        principal: "p".into(),
        roles: vec!["agent".into()],
        label: String::new(),
        created_ms: 0,
        expires_ms: None,
        revoked_ms: None,
        used_ms: None,
    };
    store.create_key(&stored).await.expect("kept");
    HeaderValue::from_str(&format!("Bearer {}", key.reveal())).expect("a header")
}

/// Returns the authenticator of a server that knows API keys alone.
fn key_authenticator(store: Arc<SqliteStore>) -> Authenticator {
    let config = AuthConfig {
        methods: vec![AuthMethod::ApiKey],
        admin_key_file: None,
        tokens: None,
        trust_domain: None,
        certificates: Vec::new(),
    };
    let started = start(&config, Some(store), None, AuthMetrics::default());
    let (authenticator, _keeping) = started.expect("a good configuration");
    authenticator
}

#[tokio::test]
async fn a_tenant_has_its_share_of_the_requests_over_all_its_connections() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("keys.db");
    let store = Arc::new(SqliteStore::open(&path).await.expect("a store"));
    let greedy = bearer(&store, "greedy").await;
    let modest = bearer(&store, "modest").await;
    let metrics = Arc::new(Metrics::default());
    let guard = Guard::new(Arc::new(key_authenticator(store)), Arc::clone(&metrics), MAX_DEADLINE);
    let (come_in, mut inside) = mpsc::unbounded_channel();
    let endless = service_fn(move |_: Request<Body>| {
        come_in.send(()).expect("the test goes on");
        pending::<Result<Response<Body>, Infallible>>()
    });
    // No connection is given, so each call counts as if it had one of its own.
    let bounds = BoundRequests::new(10, BodyPace::within(Duration::from_secs(60)), |_| {});
    let service = bounds.layer(guard.layer(endless));
    let call = |key: &HeaderValue| {
        let request = Request::builder().uri("/toolgate.v1.RouterService/Route");
        let request = request.header(AUTHORIZATION, key).body(Body::empty());
        service.clone().oneshot(request.expect("a request"))
    };
    for _ in 0..8 {
        tokio::spawn(call(&greedy));
        inside.recv().await.expect("it is let in");
    }
    let refused = call(&greedy).await.expect("an answer");
    let status = Status::from_header_map(refused.headers()).expect("a status");
    assert_eq!(status.code(), Code::ResourceExhausted, "{status:?}");
    tokio::spawn(call(&modest));
    inside.recv().await.expect("another tenant is let in");
    let text = metrics.expose(ShardsReading::default());
    let line = "toolgate_admission_rejected_total{reason=\"tenant_requests\"} 1";
    assert!(text.lines().any(|found| found == line), "{text}");
}

#[tokio::test]
async fn only_callers_that_are_known_get_the_longer_time_of_a_registration() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = SqliteStore::open(&folder.path().join("keys.db")).await.expect("a store");
    let stranger =
        Guard::new(Arc::new(key_authenticator(Arc::new(store))), Arc::default(), MAX_DEADLINE);
    let known = Guard::new(Arc::new(Authenticator::off()), Arc::default(), MAX_DEADLINE);
    let time_after = async |guard: &Guard, path: &str| {
        let time = BodyTime::new(MAX_DEADLINE);
        let mut request = Request::builder().uri(path).body(()).expect("a request");
        request.extensions_mut().insert(time.clone());
        let admitted = guard.admit(&mut request).await.is_ok();
        (admitted, time.now())
    };
    let register = "/toolgate.v1.CatalogService/RegisterServer";
    let margin = Duration::from_secs(1);
    assert_eq!(time_after(&known, register).await, (true, REGISTRATION_TIME + margin));
    let route = "/toolgate.v1.RouterService/Route";
    assert_eq!(time_after(&known, route).await, (true, MAX_DEADLINE + margin));
    assert_eq!(time_after(&stranger, register).await, (false, MAX_DEADLINE));
}

#[tokio::test]
async fn only_who_may_names_the_principal_that_a_call_is_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = SqliteStore::open(&folder.path().join("keys.db")).await.expect("a store");
    let agent = bearer(&store, "acme").await;
    let on = Guard::new(Arc::new(key_authenticator(Arc::new(store))), Arc::default(), MAX_DEADLINE);
    let off = Guard::new(Arc::new(Authenticator::off()), Arc::default(), MAX_DEADLINE);
    let principal = async |guard: &Guard, names: &[&'static str]| {
        let request = Request::builder().uri("/toolgate.v1.RouterService/Route");
        let mut request = request.header(AUTHORIZATION, &agent).body(()).expect("a request");
        for name in names {
            let name = HeaderValue::from_static(name);
            request.headers_mut().append("toolgate-principal-bin", name);
        }
        guard.admit(&mut request).await?;
        let caller = request.extensions().get::<Caller>().expect("a caller");
        Ok::<_, Error>(caller.principal().to_owned())
    };
    assert_eq!(principal(&on, &[]).await.expect("an agent"), "p");
    let refused = principal(&on, &["YW5u"]).await;
    assert!(matches!(refused, Err(Error::PermissionDenied(_))), "{refused:?}");
    assert_eq!(principal(&off, &["YW5u"]).await.expect("anybody"), "ann");
    assert_eq!(principal(&off, &["w6k="]).await.expect("anybody"), "é");
    for wrong in [&["*"][..], &["YW5u", "YW5u"], &[""], &["/w"]] {
        let refused = principal(&off, wrong).await;
        assert!(matches!(refused, Err(Error::InvalidFields(_))), "{wrong:?}: {refused:?}");
    }
}
