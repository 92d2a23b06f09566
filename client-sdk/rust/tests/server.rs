//! Tests against a real server, named by TOOLGATE_TARGET: the README's code, the example agent, and behaviour that only
//! a real server shows.

#[allow(dead_code, reason = "its main is for `cargo run --example`")]
#[path = "../examples/agent.rs"]
mod agent;
#[path = "../examples/quickstart.rs"]
mod quickstart;

use std::fs;
use std::path::PathBuf;
use std::sync::Once;
use std::time::Duration;

use serde_json::Value;
use toolgate_client::{
    Client, ClientOptions, Credentials, ErrorReason, Health, intent, registration, v1,
};

const SLACK: &str = "tests/data/servers/slack.json";

/// Returns the server's address, and makes the repository the current folder.
fn target() -> String {
    static IN_REPOSITORY: Once = Once::new();
    IN_REPOSITORY.call_once(|| {
        let repository = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
        std::env::set_current_dir(repository).expect("the repository is there");
    });
    std::env::var("TOOLGATE_TARGET").expect("TOOLGATE_TARGET names a running server")
}

/// Returns a client for a tenant of its own.
async fn client(tenant: &str) -> Client {
    let deadline = Duration::from_secs(60);
    let options = ClientOptions { tenant: tenant.into(), deadline, ..Default::default() };
    Client::connect(&target(), options).await.expect("a server")
}

fn slack() -> v1::RegisterServerRequest {
    registration("slack", fs::read(SLACK).expect("the list of tools"))
}

#[test]
fn the_quickstart_runs() {
    target();
    quickstart::run().expect("it runs as it is");
}

#[tokio::test]
async fn the_agent_searches_is_refused_and_mends_its_call() {
    let client = client("rust-agent").await;
    client.register_server(slack()).await.expect("registered");
    let mut conversation = agent::Conversation::new(client.clone());
    let said = conversation.say("tell the team that I'll be late").await.expect("an answer");
    assert!(said.starts_with("Done"), "{said}");
    let results: Vec<(&str, bool)> = conversation
        .messages
        .iter()
        .filter_map(|message| message["content"][0].as_object())
        .filter(|block| block["type"] == "tool_result")
        .map(|block| (block["content"].as_str().expect("a text"), block["is_error"] == true))
        .collect();
    let [posted, found, refused, reacted] = &results[..] else { panic!("{results:?}") };
    assert!(posted.0.starts_with("slack/slack_post_message ran") && !posted.1, "{posted:?}");
    assert!(found.0.contains("slack_add_reaction") && !found.1, "{found:?}");
    assert!(refused.0.contains("arguments_invalid") && refused.1, "{refused:?}");
    assert!(reacted.0.starts_with("slack/slack_add_reaction ran") && !reacted.1, "{reacted:?}");
    let requests = conversation.model.requests.iter();
    let systems: Vec<_> = requests.map(|request| request["system"].to_string()).collect();
    assert_eq!(systems, ["\"Be brief.\""; 5], "nothing of the catalog is listed");
    let usage = client.get_usage(v1::GetUsageRequest::default()).await.expect("usage");
    assert_eq!((usage.route_calls, usage.phase1_tokens), (5, 0));
}

#[tokio::test]
async fn listings_are_followed_page_by_page() {
    let client = client("rust-listing").await;
    let list = fs::read_to_string(SLACK).expect("the list of tools");
    let parsed: Value = serde_json::from_str(&list).expect("JSON");
    for (server, request) in [
        ("a", registration("a", list.as_str())),
        ("b", registration("b", &parsed["tools"])),
        ("c", registration("c", list.into_bytes())),
    ] {
        let answer = client.register_server(request).await.expect("registered");
        assert_eq!(answer.server.expect("a server").name, server);
    }
    let request = v1::ListToolsRequest { page_size: 5, ..Default::default() };
    let tools = client.tools(request).all().await.expect("tools");
    assert_eq!(tools.len(), 24);
    let request = v1::ListServersRequest { page_size: 2, ..Default::default() };
    let servers = client.servers(request).all().await.expect("servers");
    let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    let request = v1::CheckPolicyRequest { page_size: 7, ..Default::default() };
    assert_eq!(client.policy_verdicts(request).all().await.expect("verdicts").len(), 24);
}

#[tokio::test]
async fn a_registration_is_seen_by_a_watch() {
    let client = client("rust-watch").await;
    client.register_server(slack()).await.expect("registered");
    let mut watch = client.watch_catalog(v1::WatchCatalogRequest::default());
    let now = watch.next().await.expect("an answer").expect("the revision of now");
    assert!(now.servers.is_empty(), "{now:?}");
    let another = registration("another", fs::read(SLACK).expect("the list of tools"));
    let stored = client.register_server(another).await.expect("registered");
    let change = watch.next().await.expect("an answer").expect("a change");
    assert_eq!(change.servers, ["another"]);
    assert_eq!(change.catalog_revision, stored.catalog_revision);
    assert!(change.catalog_revision > now.catalog_revision, "{change:?}");
    let gone = v1::UnregisterServerRequest { server: "another".into(), ..Default::default() };
    client.unregister_server(gone).await.expect("removed");
}

#[tokio::test]
async fn errors_are_typed() {
    let client = client("rust-errors").await;
    client.register_server(slack()).await.expect("registered");
    let missing = v1::GetServerRequest { server: "nobody".into(), ..Default::default() };
    let error = client.get_server(missing).await.expect_err("not there");
    assert_eq!(error.reason(), Some(ErrorReason::ServerNotFound));
    let empty = v1::RouteRequest { intents: vec![intent("")], ..Default::default() };
    let error = client.route(empty).await.expect_err("nothing is wanted");
    let call = error.answer().expect("an answer");
    assert_eq!(call.reason_name, "INVALID_FIELD");
    assert_eq!(call.violations[0].field, "intents[0].text");
}

#[tokio::test]
async fn credentials_and_health_reach_the_server() {
    let credentials = Credentials::token_source(|| async { Ok("token".into()) });
    let options = ClientOptions { credentials, ..Default::default() };
    let client = Client::connect(&target(), options).await.expect("a server");
    assert_eq!(client.health("toolgate.v1.RouterService").await.expect("health"), Health::Serving);
}
