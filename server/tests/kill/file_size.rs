//! A limit on file sizes acts like a full disk: the server reports an error and goes on.

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use toolgate_client::v1;

use crate::model;
use crate::server::Server;

/// Limit in bytes. It is less than the write-ahead log needs for one registration.
const LIMIT: u64 = 256 << 10;

fn limit(server: &Server, current: Option<u64>) {
    let id = i32::try_from(server.id()).ok().and_then(Pid::from_raw);
    let limit = Rlimit { current, maximum: None };
    prlimit(id, Resource::Fsize, limit).expect("it is ours");
}

fn request(name: &str, bytes: usize) -> v1::RegisterServerRequest {
    let text = "x".repeat(bytes / 10);
    let tool = |n| format!(r#"{{"name":"t{n}","inputSchema":{{"$comment":"{text}"}}}}"#);
    let tools: Vec<_> = (0..10).map(tool).collect();
    v1::RegisterServerRequest {
        server: name.to_owned(),
        tools_list_json: format!("[{}]", tools.join(",")).into_bytes().into(),
        ..Default::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_on_file_sizes_is_an_error_of_the_store() {
    let folder = tempfile::tempdir().unwrap();
    model::write(&folder.path().join("model"));
    let mut server = Server::start(folder.path());
    let client = server.client().await;
    client.register_server(request("before", 100)).await.expect("there is room");
    limit(&server, Some(LIMIT));
    for _ in 0..3 {
        let error = client.register_server(request("large", 1 << 20)).await.expect_err("no room");
        assert_eq!(error.reason(), Some(v1::ErrorReason::StoreUnavailable), "{error}");
    }
    let get = v1::GetServerRequest { server: "before".to_owned(), ..Default::default() };
    client.get_server(get).await.expect("what was there is there");
    limit(&server, None);
    client.register_server(request("large", 1 << 20)).await.expect("there is room again");
    server.kill();
}
