//! The client against a small service in this process: deadlines, retries, errors, listings, health.
#![cfg(feature = "tls")]

mod credentials;
mod fake;
mod garbled;
mod offering;
mod tls;
mod watch;

use std::time::{Duration, Instant};

use fake::{Fake, Script};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};
use toolgate_client::{
    Client, ClientOptions, Error, ErrorReason, FieldViolation, Health, RetryOptions, v1,
};

const SOON: Duration = Duration::from_millis(1);

fn options() -> ClientOptions {
    ClientOptions {
        tenant: "acme".into(),
        retry: RetryOptions { base_delay: SOON, ..Default::default() },
        ..Default::default()
    }
}

/// A client, and the service, which ends with it.
struct Connected {
    client: Client,
    fake: Fake,
}

impl std::ops::Deref for Connected {
    type Target = Client;
    fn deref(&self) -> &Client {
        &self.client
    }
}

async fn connect(script: &Script, options: ClientOptions) -> Connected {
    let fake = Fake::serving(script);
    let client = Client::connect(&fake.endpoint, options).await.expect("connected");
    Connected { client, fake }
}

fn status(code: Code, reason: &str, change: impl FnOnce(&mut ErrorDetails)) -> Status {
    let mut details = ErrorDetails::new();
    details.set_error_info(reason, "toolgate", [("limit".into(), "max_intents".into())]);
    change(&mut details);
    Status::with_error_details(code, "as the service says", details)
}

async fn route(client: &Client) -> Result<v1::RouteResponse, Error> {
    client.route(v1::RouteRequest::default()).await
}

#[tokio::test]
async fn every_rpc_carries_tenant_and_deadline() {
    let script = Script::default();
    let client = connect(&script, options()).await;
    assert_eq!(route(&client).await.expect("routed").active_set_handle, "h1");
    client.gate(v1::GateRequest::default()).await.expect("gated");
    client.search_tools(v1::SearchToolsRequest::default()).await.expect("found");
    client.get_summary_pool(v1::GetSummaryPoolRequest::default()).await.expect("a pool");
    client
        .batch_get_tool_schemas(v1::BatchGetToolSchemasRequest::default())
        .await
        .expect("schemas");
    client.register_server(v1::RegisterServerRequest::default()).await.expect("registered");
    client.unregister_server(v1::UnregisterServerRequest::default()).await.expect("removed");
    client.get_server(v1::GetServerRequest::default()).await.expect("a server");
    client.list_servers(v1::ListServersRequest::default()).await.expect("servers");
    client.list_tools(v1::ListToolsRequest::default()).await.expect("tools");
    let asked = script.asked();
    assert_eq!(asked.len(), 10);
    assert!(asked.iter().all(|call| call.tenant == "acme"));
    assert!(asked.iter().all(|call| call.grpc_timeout.is_some()), "{asked:?}");
    let own = v1::RouteRequest { tenant: "other".into(), ..Default::default() };
    client.route(own).await.expect("routed");
    assert_eq!(script.asked()[10].tenant, "other");
}

#[tokio::test]
async fn an_error_of_the_service_is_typed() {
    let script = Script::failing([status(Code::InvalidArgument, "INVALID_FIELD", |details| {
        details.add_bad_request_violation("intents[0].text", "is empty");
    })]);
    let error = route(&connect(&script, options()).await.client).await.expect_err("refused");
    assert_eq!(error.reason(), Some(ErrorReason::InvalidField));
    let call = error.answer().expect("an answer");
    assert_eq!((call.rpc, call.code), ("Route", Code::InvalidArgument));
    let violation =
        FieldViolation { field: "intents[0].text".into(), description: "is empty".into() };
    assert_eq!(call.violations, [violation]);
    assert_eq!(call.metadata["limit"], "max_intents");
    let text = error.to_string();
    for part in ["Route: as the service says [INVALID_FIELD]", "intents[0].text: is empty"] {
        assert!(text.contains(part), "{text}");
    }
    assert_eq!(script.asked().len(), 1);
}

#[tokio::test]
async fn errors_say_what_to_do() {
    for (code, reason, advice) in [
        (Code::NotFound, "TENANT_NOT_FOUND", "Register an MCP server"),
        (Code::ResourceExhausted, "OVERLOADED", "try again in 2s"),
        (Code::Aborted, "ETAG_MISMATCH", "read it again"),
    ] {
        let script = Script::failing([status(code, reason, |details| {
            details.set_retry_info(Some(Duration::from_secs(2)));
        })]);
        let error = route(&connect(&script, options()).await.client).await.expect_err("refused");
        assert!(error.to_string().contains(advice), "{error}");
        assert_eq!(error.retry_delay(), Some(Duration::from_secs(2)));
    }
}

#[tokio::test]
async fn a_foreign_or_newer_reason_is_none() {
    let mut foreign = ErrorDetails::new();
    foreign.set_error_info("INVALID_FIELD", "example.org", []);
    for failure in [
        Status::with_error_details(Code::Internal, "x", foreign),
        status(Code::Internal, "REASON_OF_TOMORROW", |_| {}),
        Status::internal("bare"),
    ] {
        let client = connect(&Script::failing([failure]), options()).await;
        let error = route(&client).await.expect_err("refused");
        assert_eq!(error.reason(), None);
        let name = &error.answer().expect("an answer").reason_name;
        assert!(name.is_empty() || name == "REASON_OF_TOMORROW", "{name}");
    }
    let newer = || status(Code::Unavailable, "REASON_OF_TOMORROW", |_| {});
    let client = connect(&Script::failing([newer(), newer(), newer()]), options()).await;
    let error = route(&client).await.expect_err("refused");
    assert_eq!(error.answer().expect("an answer").reason_name, "REASON_OF_TOMORROW");
}

#[tokio::test]
async fn unavailable_is_tried_three_times() {
    let down = || status(Code::Unavailable, "ENCODER_UNAVAILABLE", |_| {});
    let script = Script::failing([down(), down()]);
    route(&connect(&script, options()).await.client).await.expect("the third attempt");
    assert_eq!(script.asked().len(), 3);

    let script = Script::failing([down(), down(), down()]);
    let error =
        route(&connect(&script, options()).await.client).await.expect_err("no fourth attempt");
    assert_eq!(error.reason(), Some(ErrorReason::EncoderUnavailable));
    assert_eq!(script.asked().len(), 3);
}

#[tokio::test]
async fn retries_stop_while_most_attempts_fail() {
    let down = || status(Code::Unavailable, "ENCODER_UNAVAILABLE", |_| {});
    let script = Script::failing((0..20).map(|_| down()));
    let client = connect(&script, options()).await;
    let mut attempts = Vec::new();
    for _ in 0..4 {
        let before = script.asked().len();
        route(&client).await.expect_err("down");
        attempts.push(script.asked().len() - before);
    }
    // Of ten tokens, more than five must be left after a failure for the next attempt.
    assert_eq!(attempts, [3, 2, 1, 1]);
}

#[tokio::test]
async fn nothing_else_is_tried_again() {
    for code in [
        Code::Cancelled,
        Code::Unknown,
        Code::InvalidArgument,
        Code::DeadlineExceeded,
        Code::NotFound,
        Code::AlreadyExists,
        Code::PermissionDenied,
        Code::ResourceExhausted,
        Code::FailedPrecondition,
        Code::Aborted,
        Code::OutOfRange,
        Code::Unimplemented,
        Code::Internal,
        Code::DataLoss,
        Code::Unauthenticated,
    ] {
        let script = Script::failing([Status::new(code, "no")]);
        let error = route(&connect(&script, options()).await.client).await.expect_err("refused");
        assert_eq!(error.answer().map(|call| call.code), Some(code));
        assert_eq!(script.asked().len(), 1, "{code:?}");
    }
}

#[tokio::test]
async fn a_change_is_repeated_only_when_that_is_safe() {
    let etag = |request_id: &str| v1::RegisterServerRequest {
        etag: "e".into(),
        request_id: request_id.into(),
        ..Default::default()
    };
    let unclear = || Script::failing([Status::unavailable("gone")]);
    let script = unclear();
    connect(&script, options()).await.register_server(etag("r1")).await.expect("repeated");
    assert_eq!(script.request_ids(), ["r1", "r1"]);
    let script = unclear();
    let client = connect(&script, options()).await;
    client.register_server(etag("")).await.expect("repeated");
    client.register_server(etag("")).await.expect("registered");
    let [first, again, other] = &script.request_ids()[..] else { panic!("three attempts") };
    assert!(first == again && first != other && first.len() == 32, "{first} {other}");
    let script = unclear();
    let client = connect(&script, options()).await;
    client
        .unregister_server(v1::UnregisterServerRequest::default())
        .await
        .expect_err("not repeated");
    assert_eq!(script.asked().len(), 1);
    let script = Script::failing([status(Code::Unavailable, "DRAINING", |_| {})]);
    connect(&script, options())
        .await
        .unregister_server(v1::UnregisterServerRequest::default())
        .await
        .expect("refused, so repeated");
}

#[tokio::test]
async fn the_delay_that_the_service_asks_for_is_kept() {
    let wait = |millis| {
        status(Code::Unavailable, "STORE_UNAVAILABLE", move |details| {
            details.set_retry_info(Some(Duration::from_millis(millis)));
        })
    };
    let client = connect(&Script::failing([wait(60)]), options()).await;
    let begin = Instant::now();
    route(&client).await.expect("the second attempt");
    assert!(begin.elapsed() >= Duration::from_millis(60));

    // The delay counts even if the answer holds nothing else.
    let mut details = ErrorDetails::new();
    details.set_retry_info(Some(Duration::from_millis(60)));
    let bare = Status::with_error_details(Code::Unavailable, "busy", details);
    let client = connect(&Script::failing([bare]), options()).await;
    let begin = Instant::now();
    route(&client).await.expect("the second attempt");
    assert!(begin.elapsed() >= Duration::from_millis(60));

    // The client does not wait for a delay beyond the deadline.
    let client = connect(&Script::failing([wait(60_000)]), options()).await;
    let begin = Instant::now();
    let error = route(&client).await.expect_err("no second attempt");
    assert_eq!(error.reason(), Some(ErrorReason::StoreUnavailable));
    assert!(begin.elapsed() < Duration::from_secs(60));
}

#[tokio::test]
async fn the_deadline_covers_everything() {
    let deadline = Duration::from_millis(50);
    let client =
        connect(&Script::slow(Duration::from_secs(60)), ClientOptions { deadline, ..options() })
            .await;
    let error = route(&client).await.expect_err("too slow");
    assert!(matches!(error, Error::Deadline { rpc: "Route", .. }), "{error:?}");
    assert!(error.to_string().contains("within 50ms"), "{error}");
    let sooner = client.with_deadline(Duration::from_millis(20));
    let error = route(&sooner).await.expect_err("too slow");
    assert!(error.to_string().contains("within 20ms"), "{error}");
    assert_eq!(error.code(), Some(Code::DeadlineExceeded));
}

#[tokio::test]
async fn nobody_there_is_unreachable() {
    let Connected { client, fake } = connect(&Script::default(), options()).await;
    route(&client).await.expect("served");
    let endpoint = fake.endpoint.clone();
    fake.kill();
    let error = route(&client).await.expect_err("gone");
    assert!(error.is_unreachable(), "{error:?}");
    let error = Client::connect(&endpoint, options()).await.expect_err("gone");
    assert!(error.is_unreachable(), "{error:?}");
    let text = error.to_string();
    for part in [endpoint.as_str(), "refused", "toolgate serve"] {
        assert!(text.contains(part), "{text}");
    }
    assert_eq!(error.code(), Some(Code::Unavailable));
}

#[tokio::test]
async fn a_service_that_dies_during_a_call_is_unreachable() {
    let script = Script::slow(Duration::from_secs(60));
    let Connected { client, fake } = connect(&script, options()).await;
    let call = tokio::spawn(async move { route(&client).await });
    while script.asked().is_empty() {
        tokio::task::yield_now().await;
    }
    fake.kill();
    let error = call.await.expect("no panic").expect_err("cut");
    assert!(error.is_unreachable(), "{error:?}");
}

#[tokio::test]
async fn a_connection_that_breaks_during_a_call_is_unreachable() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let endpoint = listener.local_addr().expect("an address").to_string();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            drop(stream);
        }
    });
    let client = Client::lazy(&endpoint, options()).expect("an endpoint");
    let error = route(&client).await.expect_err("cut");
    assert!(error.is_unreachable(), "{error:?}");
}

#[tokio::test]
async fn endpoints_are_checked() {
    for (endpoint, part) in [
        ("ftp://x:1", "scheme"),
        ("http://", "http://127.0.0.1:7070"),
        ("localhost", "port"),
        ("localhost:0", "port"),
        ("https://localhost", "port"),
        ("localhost:7070/v1", "path"),
        ("localhost:7070?x=y", "path"),
        ("a b:1", "not an endpoint"),
    ] {
        let error = Client::lazy(endpoint, options()).expect_err(endpoint);
        assert!(
            matches!(error, Error::Endpoint { .. }) && error.to_string().contains(part),
            "{error}"
        );
    }
    let error = Client::lazy("http://me:hunter2@localhost:1", options()).expect_err("a password");
    assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
    let client = Client::lazy(" 127.0.0.1:7070/ ", options()).expect("good");
    assert_eq!(client.endpoint(), "http://127.0.0.1:7070");
}

#[tokio::test]
async fn listings_are_followed_to_the_end() {
    let script = Script::default();
    let client = connect(&script, options()).await;
    let tools = client.all_tools(Some("git"), None).await.expect("tools");
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["first", "second", "third"]);
    assert!(tools.iter().all(|tool| tool.server == "git"));
    let mut servers = client.servers(v1::ListServersRequest::default());
    let first = servers.next().await.expect("a server").expect("an answer");
    assert_eq!((first.name.as_str(), script.asked().len()), ("first", 4));
    drop(servers);
    assert_eq!(client.all_servers().await.expect("servers").len(), 3);
    assert_eq!(script.asked().len(), 7);
    assert!(script.asked().iter().all(|call| call.tenant == "acme"));
}

#[tokio::test]
async fn health_is_asked_per_service() {
    let client = connect(&Script::default(), options()).await;
    let health = async |service| client.health(service).await.expect("an answer");
    assert_eq!(health("").await, Health::Serving);
    assert_eq!(health("toolgate.v1.RouterService").await, Health::Serving);
    assert_eq!(health("toolgate.v1.CatalogService").await, Health::NotServing);
    assert_eq!(health("nobody").await, Health::Unknown);
}

#[tokio::test]
async fn messages_beyond_the_limit_are_refused() {
    let client =
        connect(&Script::default(), ClientOptions { max_request_bytes: 1024, ..options() }).await;
    let request = v1::RegisterServerRequest {
        tools_list_json: vec![b' '; 2048].into(),
        ..Default::default()
    };
    let error = client.register_server(request).await.expect_err("too large");
    assert!(error.to_string().contains("max_request_bytes"), "{error}");
}
