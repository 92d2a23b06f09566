//! The table of roles is whole, the documentation says the same, and nothing gets past the guard.

use std::collections::BTreeSet;
use std::convert::Infallible;

use prost_reflect::DescriptorPool;
use tonic::Status;
use tower::{ServiceExt as _, service_fn};

use super::*;
use crate::auth::access::TABLE;
use crate::role::Role;

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
    let listed: BTreeSet<_> = TABLE.iter().map(|(path, _)| (*path).to_owned()).collect();
    let missing: Vec<_> = served().difference(&listed).cloned().collect();
    assert!(missing.is_empty(), "without a role: {missing:?}");
    let stale: Vec<_> = listed.difference(&served()).cloned().collect();
    assert!(stale.is_empty(), "in the table only: {stale:?}");
}

#[test]
fn the_documentation_has_the_same_table() {
    let page = include_str!("../../../../docs/security.md");
    for (path, access) in TABLE {
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
    let off = Guard::new(Arc::new(Authenticator::off()), Arc::default());
    let route = "/toolgate.v1.RouterService/Route";
    assert_eq!(call(route, off.clone()).await, (tonic::Code::Ok, "known".into()));
    let health = "/grpc.health.v1.Health/Check";
    assert_eq!(call(health, off).await, (tonic::Code::Ok, "open".into()));
}
