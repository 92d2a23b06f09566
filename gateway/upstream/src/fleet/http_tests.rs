//! Fleets of servers behind URLs, which a few lines of HTTP stand for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::*;
use crate::target::Upstream;

pub(super) const LONG: Duration = Duration::from_secs(60);

pub(super) const ECHO: &str = r#"{"resultType":"complete","content":[{"type":"hologram","x":1.0, "y":1e5,"z":1e400}],"a":"\u0041"}"#;

/// Request that the server got.
#[derive(Debug)]
struct Seen {
    /// Request line and headers, in small letters.
    head: String,
    body: Value,
}

/// Event at the server.
#[derive(Debug)]
enum Event {
    Request(Seen),
    /// The client closed a stream that had no answer yet.
    Closed,
}

#[derive(Clone)]
struct TestServer {
    events: mpsc::UnboundedSender<Event>,
    is_modern: bool,
    /// True if nobody is let in.
    is_locked: bool,
    /// True if it tells of changes of its tools, in subscriptions that end at once.
    tells: bool,
    /// True once it has answered the GET of its session, where it has one.
    stream: Option<Arc<AtomicBool>>,
}

/// Starts a server, and returns its URL and what happens at it.
async fn serve(is_modern: bool) -> (String, mpsc::UnboundedReceiver<Event>) {
    serve_locked(is_modern, false).await
}

async fn serve_locked(
    is_modern: bool,
    is_locked: bool,
) -> (String, mpsc::UnboundedReceiver<Event>) {
    serve_as(|events| TestServer { events, is_modern, is_locked, tells: false, stream: None }).await
}

async fn serve_as(
    server: impl FnOnce(mpsc::UnboundedSender<Event>) -> TestServer,
) -> (String, mpsc::UnboundedReceiver<Event>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    let (events, happened) = mpsc::unbounded_channel();
    let server = server(events);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(server.clone().answer(stream));
        }
    });
    (url, happened)
}

impl TestServer {
    fn modern(events: mpsc::UnboundedSender<Event>) -> Self {
        Self { events, is_modern: true, is_locked: false, tells: false, stream: None }
    }

    /// Opens the stream of a session slowly: whatever the client sends beside its GET comes first.
    async fn open_slowly(&self) {
        let Some(stream) = &self.stream else { return };
        for _ in 0..10_000 {
            tokio::task::yield_now().await;
        }
        stream.store(true, Ordering::Relaxed);
    }

    async fn answer(self, stream: TcpStream) {
        let mut stream = BufReader::new(stream);
        let Some((head, body)) = read_request(&mut stream).await else { return };
        if head.starts_with("get ") {
            self.open_slowly().await;
        }
        let reply = self.reply(&body);
        let _seen = self.events.send(Event::Request(Seen { head, body }));
        let _left = stream.write_all(reply.as_bytes()).await;
        if reply.contains(": hold") {
            // Ends when the client leaves.
            let _end = stream.read_u8().await;
            let _seen = self.events.send(Event::Closed);
        }
    }

    fn reply(&self, body: &Value) -> String {
        let id = &body["id"];
        let result = |result: &str| {
            json_reply("200 OK", &format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#))
        };
        let error = |status: &str, code: i32| {
            let error = format!(r#"{{"code":{code},"message":"no","data":[1]}}"#);
            json_reply(status, &format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#))
        };
        match body["method"].as_str() {
            _ if self.is_locked => status_reply("401 Unauthorized"),
            Some("server/discover") if self.tells => result(
                r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},"ttlMs":0,"cacheScope":"private"}"#,
            ),
            Some("subscriptions/listen") => stream_reply(&format!(
                "data: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\",\"params\":{{\"_meta\":{{\"io.modelcontextprotocol/subscriptionId\":{id}}},\"notifications\":{{\"toolsListChanged\":true}}}}}}\n\n"
            )),
            Some("server/discover") if self.is_modern => result(
                r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}"#,
            ),
            Some("server/discover") => error("400 Bad Request", -32601),
            Some("initialize") if self.stream.is_some() => result(
                r#"{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"h","version":"1"}}"#,
            )
            .replacen("\r\n", "\r\nmcp-session-id: s\r\n", 1),
            Some("tools/call") if self.stream.as_ref().is_some_and(|open| !open.load(Ordering::Relaxed)) => {
                error("400 Bad Request", -32099)
            }
            Some("initialize") => result(
                r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"h","version":"1"}}"#,
            ),
            Some("tools/list") => result(
                r#"{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[{"name":"t", "inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}},"x":1.0},{"name":"wrong","inputSchema":{"type":"object","properties":{"a":{"type":"number","x-mcp-header":"A"}}}}]}"#,
            ),
            Some("tools/call") => match body["params"]["name"].as_str() {
                Some("stream") => stream_reply(&format!(
                    "data: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{{\"level\":\"info\",\"data\":\"x\"}}}}\n\ndata: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{ECHO}}}\n\n"
                )),
                Some("hold") => {
                    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n: hold\n\n".into()
                }
                Some("refuse") => error("400 Bad Request", -32123),
                Some("large") => result(&format!("{{\"x\":\"{}\"}}", "x".repeat(2 << 20))),
                Some("login") => status_reply("401 Unauthorized"),
                Some("broken") => status_reply("502 Bad Gateway"),
                _ => result(ECHO),
            },
            Some(_) => status_reply("202 Accepted"),
            None => status_reply("405 Method Not Allowed"),
        }
    }
}

/// Returns the request line and headers, in small letters, and the body of a request.
pub(super) async fn read_request(stream: &mut BufReader<TcpStream>) -> Option<(String, Value)> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).await.unwrap_or(0) == 0 {
            return None;
        }
    }
    let head = head.to_lowercase();
    let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
    let mut body = vec![0; length.map_or(0, |length| length.parse().expect("a length"))];
    stream.read_exact(&mut body).await.expect("a body");
    Some((head, serde_json::from_slice(&body).unwrap_or_default()))
}

pub(super) fn status_reply(status: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
}

fn json_reply(status: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

fn stream_reply(events: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{events}"
    )
}

fn fleet(url: &str) -> Fleet {
    fleet_tuned(url, Tuning { circuit: LONG * 60, ..Tuning::default() })
}

fn fleet_tuned(url: &str, tuning: Tuning) -> Fleet {
    let limits = Limits { result_bytes_max: 1 << 20, ..Limits::default() };
    let upstream = Upstream::parse(url).expect("an upstream");
    let entries = vec![Entry { name: "h".to_owned(), upstream, limits, waits_for: None }];
    Fleet::start_tuned(entries, tuning, None)
}

pub(super) fn tool(name: &str) -> Request {
    let params = json!({"name": name, "arguments": {"region": "eu", "x": 1}, "_meta": {"own": 1}});
    let Value::Object(params) = params else { panic!("an object") };
    let principal = "someone".to_owned();
    Request {
        method: "tools/call".to_owned(),
        params,
        principal,
        progress: None,
        asker: None,
        requester: None,
        sent: None,
        process: None,
    }
}

pub(super) fn later() -> Instant {
    Instant::now() + LONG
}

async fn next(events: &mut mpsc::UnboundedReceiver<Event>, method: &str) -> Seen {
    loop {
        match tokio::time::timeout(LONG, events.recv())
            .await
            .expect("a change in time")
            .expect("a change")
        {
            Event::Request(seen) if seen.body["method"] == method => return seen,
            _ => {}
        }
    }
}

#[tokio::test]
async fn results_of_both_eras_and_kinds_keep_their_bytes() {
    for is_modern in [false, true] {
        let (url, _events) = serve(is_modern).await;
        let fleet = fleet(&url);
        for name in ["t", "stream"] {
            let result = fleet.request("h", tool(name), later()).await.expect("a result");
            assert_eq!(result.get(), ECHO, "{name}");
        }
        let listed = fleet.listing("h").expect("a listing");
        assert!(listed.tools[0].get().starts_with("{\"name\":\"t\", \"inputSchema\""));
        let status = &fleet.status()[0];
        let protocol = if is_modern { "2026-07-28" } else { "2025-11-25" };
        assert_eq!((status.transport, status.protocol.as_deref()), ("http", Some(protocol)));
        fleet.close().await;
    }
}

#[tokio::test]
async fn a_modern_call_has_its_headers_and_metadata() {
    let (url, mut events) = serve(true).await;
    let fleet = fleet(&url);
    fleet.request("h", tool("t"), later()).await.expect("a result");
    let seen = next(&mut events, "tools/call").await;
    for header in [
        "mcp-method: tools/call\r\n",
        "mcp-name: t\r\n",
        "mcp-param-region: eu\r\n",
        "mcp-protocol-version: 2026-07-28\r\n",
    ] {
        assert!(seen.head.contains(header), "{}", seen.head);
    }
    let meta = &seen.body["params"]["_meta"];
    assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    assert_eq!(meta["own"], 1);
    assert_eq!(seen.body["params"]["arguments"]["x"], 1);
    fleet.close().await;
}

#[tokio::test]
async fn a_definition_that_breaks_the_rule_for_headers_is_left_out_where_it_holds() {
    for (is_modern, tools) in [(false, 2), (true, 1)] {
        let (url, _events) = serve(is_modern).await;
        let fleet = fleet(&url);
        fleet.request("h", tool("t"), later()).await.expect("a result");
        assert_eq!(fleet.listing("h").expect("a listing").tools.len(), tools);
        let findings = &fleet.status()[0].findings;
        assert_eq!(findings.len(), 2 - tools);
        assert!(findings.iter().all(|finding| finding.starts_with("wrong: ")), "{findings:?}");
        fleet.close().await;
    }
}

#[tokio::test]
async fn errors_and_large_answers_over_http_end_their_call_only() {
    for is_modern in [false, true] {
        let (url, _events) = serve(is_modern).await;
        let fleet = fleet(&url);
        let error = fleet.request("h", tool("refuse"), later()).await.expect_err("an error");
        let expected =
            RequestError::Server { code: -32123, message: "no".to_owned(), data: Some(json!([1])) };
        assert_eq!(error, expected);
        let error = fleet.request("h", tool("large"), later()).await.expect_err("an error");
        assert_eq!(error, RequestError::TooLarge { limit: 1 << 20 });
        fleet.request("h", tool("t"), later()).await.expect("a result");
        assert_eq!(fleet.status()[0].restarts, 0);
        fleet.close().await;
    }
}

#[tokio::test]
async fn a_dropped_call_closes_its_stream() {
    let (url, mut events) = serve(true).await;
    let fleet = fleet(&url);
    let mut hold = Box::pin(fleet.request("h", tool("hold"), later()));
    tokio::select! {
        outcome = &mut hold => panic!("{outcome:?}"),
        _seen = next(&mut events, "tools/call") => {}
    }
    drop(hold);
    let closed = async { while !matches!(events.recv().await, Some(Event::Closed)) {} };
    tokio::time::timeout(LONG, closed).await.expect("a closed stream");
    fleet.close().await;
}

#[tokio::test]
async fn a_dropped_call_is_cancelled_at_an_older_server() {
    let (url, mut events) = serve(false).await;
    let fleet = fleet(&url);
    let mut hold = Box::pin(fleet.request("h", tool("hold"), later()));
    let seen = tokio::select! {
        outcome = &mut hold => panic!("{outcome:?}"),
        seen = next(&mut events, "tools/call") => seen,
    };
    drop(hold);
    let cancelled = next(&mut events, "notifications/cancelled").await;
    assert_eq!(cancelled.body["params"]["requestId"], seen.body["id"]);
    fleet.close().await;
}

#[tokio::test]
async fn a_server_that_asks_for_a_login_waits_for_it() {
    let (url, _events) = serve(true).await;
    let fleet = fleet(&url);
    let error = fleet.request("h", tool("login"), later()).await.expect_err("an error");
    let state = ServerState::NeedsLogin;
    assert!(
        matches!(error, RequestError::Unavailable { state: told, .. } if told == state),
        "{error:?}"
    );
    let mut changes = fleet.changes();
    while fleet.status()[0].state != state {
        tokio::time::timeout(LONG, changes.changed())
            .await
            .expect("a change in time")
            .expect("a change");
    }
    assert!(fleet.restart("h"));
    while fleet.status()[0].state != ServerState::Ready {
        tokio::time::timeout(LONG, changes.changed())
            .await
            .expect("a change in time")
            .expect("a change");
    }
    fleet.request("h", tool("t"), later()).await.expect("a result");
    fleet.close().await;
}

#[tokio::test]
async fn a_server_that_lets_nobody_in_needs_a_login() {
    for is_modern in [false, true] {
        let (url, _events) = serve_locked(is_modern, true).await;
        let fleet = fleet(&url);
        let error = fleet.request("h", tool("t"), later()).await.expect_err("an error");
        let state = ServerState::NeedsLogin;
        assert!(
            matches!(error, RequestError::Unavailable { state: told, .. } if told == state),
            "{error:?}"
        );
        fleet.close().await;
    }
}

#[tokio::test]
async fn a_subscription_that_ended_is_opened_again_and_what_was_missed_is_listed() {
    let (url, mut events) =
        serve_as(|events| TestServer { tells: true, ..TestServer::modern(events) }).await;
    let short = Duration::from_millis(1);
    let tuning = Tuning { relisten: short, list_gap: short, ..Tuning::default() };
    let fleet = fleet_tuned(&url, tuning);
    for _ in 0..3 {
        next(&mut events, "subscriptions/listen").await;
    }
    // The first list is that of the start.
    for _ in 0..2 {
        next(&mut events, "tools/list").await;
    }
    assert_eq!(fleet.status()[0].restarts, 0);
    fleet.close().await;
}

#[tokio::test]
async fn failures_in_a_row_open_the_circuit() {
    let (url, mut events) = serve(true).await;
    let fleet = fleet(&url);
    let mut problems = Vec::new();
    for _ in 0..6 {
        match fleet.request("h", tool("broken"), later()).await {
            Err(RequestError::Unavailable { problem, .. }) => problems.push(problem),
            outcome => panic!("{outcome:?}"),
        }
    }
    assert!(problems[4].contains("502"), "{problems:?}");
    assert!(problems[5].contains("one after another"), "{problems:?}");
    let mut calls = 0;
    while let Ok(event) = events.try_recv() {
        calls += usize::from(
            matches!(event, Event::Request(seen) if seen.body["method"] == "tools/call"),
        );
    }
    assert_eq!(calls, 5);
    fleet.close().await;
}

#[tokio::test]
async fn the_first_call_of_a_session_waits_for_the_stream_on_which_its_server_asks() {
    let session = |events| {
        let stream = Some(Arc::default());
        TestServer { is_modern: false, stream, ..TestServer::modern(events) }
    };
    let (url, _events) = serve_as(session).await;
    let fleet = fleet(&url);
    fleet.request("h", tool("t"), later()).await.expect("the stream is open");
    fleet.close().await;
}
