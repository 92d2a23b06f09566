//! Fleets of servers that speak the HTTP+SSE of 2024-11-05, which a few lines of HTTP stand for.

use std::sync::Arc;

use serde_json::Value;
use tokio::io::{AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::sync::mpsc;

use super::http_tests::{ECHO, LONG, later, read_request, status_reply, tool};
use super::*;

const STREAM: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

/// Faults of a server.
#[derive(Debug, Clone, Copy, Default)]
struct Faults {
    /// It takes no GET either.
    is_no_server: bool,
    /// It lets nobody in.
    is_locked: bool,
    /// Its stream names this URL.
    endpoint: Option<&'static str>,
}

#[derive(Clone)]
struct OldServer {
    faults: Faults,
    /// Methods of messages, in the order in which they came.
    methods: mpsc::UnboundedSender<String>,
    stream: Arc<tokio::sync::Mutex<Option<OwnedWriteHalf>>>,
}

/// Starts a server, and returns a fleet before it and the methods that it is asked for.
async fn serve(faults: Faults) -> (Fleet, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}/sse", listener.local_addr().expect("an address"));
    let (methods, asked) = mpsc::unbounded_channel();
    let server = OldServer { faults, methods, stream: Arc::default() };
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(server.clone().answer(stream));
        }
    });
    let pauses = Pauses { first: Duration::from_millis(1), ..Pauses::default() };
    let limits = Limits { result_bytes_max: 1 << 20, pauses, ..Limits::default() };
    let upstream = Upstream::parse(&url).expect("an upstream");
    (Fleet::start(vec![Entry { name: "h".to_owned(), upstream, limits, waits_for: None }]), asked)
}

impl OldServer {
    async fn answer(self, stream: tokio::net::TcpStream) {
        let mut stream = BufReader::new(stream);
        let Some((head, body)) = read_request(&mut stream).await else { return };
        let Faults { is_no_server, is_locked, endpoint } = self.faults;
        let reply = match head.split(' ').next() {
            Some("get") if is_no_server => status_reply("404 Not Found"),
            Some("get") if is_locked => status_reply("401 Unauthorized"),
            Some("get") => {
                let (_reader, mut writer) = stream.into_inner().into_split();
                let endpoint = endpoint.unwrap_or("/messages?session=1");
                let begin = format!("{STREAM}: hello\n\nevent: endpoint\ndata: {endpoint}\n\n");
                writer.write_all(begin.as_bytes()).await.expect("a stream");
                *self.stream.lock().await = Some(writer);
                return;
            }
            _ if head.starts_with("post /sse ") => status_reply("405 Method Not Allowed"),
            _ => status_reply("202 Accepted"),
        };
        if reply.contains("202") {
            self.take(&body).await;
        }
        let _left = stream.write_all(reply.as_bytes()).await;
    }

    /// Answers a message on the stream.
    async fn take(&self, body: &Value) {
        let method = body["method"].as_str().unwrap_or_default().to_owned();
        let result = match (&*method, body["params"]["name"].as_str()) {
            ("initialize", _) => {
                r#"{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"serverInfo":{"name":"old","version":"1"}}"#.to_owned()
            }
            ("tools/list", _) => r#"{"tools":[{"name":"t", "inputSchema":{"type":"object"}}]}"#.to_owned(),
            ("tools/call", Some("large")) => format!("\"{}\"", "x".repeat(2 << 20)),
            ("tools/call", _) => ECHO.to_owned(),
            _ => "{}".to_owned(),
        };
        let mut stream = self.stream.lock().await;
        let is_held = body["params"]["name"] == "hold";
        if let (Some(id), Some(writer)) = (body.get("id"), stream.as_mut())
            && !is_held
        {
            let answer = format!(
                "event: message\ndata: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n\n"
            );
            let is_cut = body["params"]["name"] == "cut";
            let sent = if is_cut { &answer[..40] } else { &answer };
            let _left = writer.write_all(sent.as_bytes()).await;
            if is_cut {
                *stream = None;
            }
        }
        let _unheard = self.methods.send(method);
    }
}

async fn until_state(fleet: &Fleet, state: ServerState) -> String {
    let mut changes = fleet.changes();
    let waiting = async {
        loop {
            let status = fleet.status().remove(0);
            if status.state == state {
                return status.problem.unwrap_or_default();
            }
            changes.changed().await.expect("a change");
        }
    };
    tokio::time::timeout(LONG, waiting).await.expect("the state")
}

#[tokio::test]
async fn an_old_server_is_found_and_its_results_keep_their_bytes() {
    let (fleet, _asked) = serve(Faults::default()).await;
    let result = fleet.request("h", tool("t"), later()).await.expect("a result");
    assert_eq!(result.get(), ECHO);
    let status = &fleet.status()[0];
    assert_eq!((status.transport, status.protocol.as_deref()), ("sse", Some("2024-11-05")));
    assert_eq!(
        fleet.listing("h").expect("a listing").tools[0].get(),
        r#"{"name":"t", "inputSchema":{"type":"object"}}"#
    );
    fleet.close().await;
}

#[tokio::test]
async fn a_large_event_ends_its_call_only() {
    let (fleet, _asked) = serve(Faults::default()).await;
    let error = fleet.request("h", tool("large"), later()).await.expect_err("an error");
    assert_eq!(error, RequestError::TooLarge { limit: 1 << 20 });
    fleet.request("h", tool("t"), later()).await.expect("a result");
    assert_eq!(fleet.status()[0].restarts, 0);
    fleet.close().await;
}

#[tokio::test]
async fn a_stream_that_ends_is_opened_again() {
    let (fleet, _asked) = serve(Faults::default()).await;
    let error = fleet.request("h", tool("cut"), later()).await.expect_err("an error");
    assert!(matches!(error, RequestError::Unavailable { may_have_run: true, .. }), "{error:?}");
    fleet.request("h", tool("t"), later()).await.expect("a result");
    assert_eq!(fleet.status()[0].restarts, 1);
    fleet.close().await;
}

#[tokio::test]
async fn a_dropped_call_is_cancelled() {
    let (fleet, mut asked) = serve(Faults::default()).await;
    let mut hold = Box::pin(fleet.request("h", tool("hold"), later()));
    let until = async |asked: &mut mpsc::UnboundedReceiver<String>, method: &str| {
        while asked.recv().await.expect("a request") != method {}
    };
    tokio::select! {
        outcome = &mut hold => panic!("{outcome:?}"),
        () = until(&mut asked, "tools/call") => {}
    }
    drop(hold);
    let cancelled = until(&mut asked, "notifications/cancelled");
    tokio::time::timeout(LONG, cancelled).await.expect("a cancelled call");
    fleet.close().await;
}

#[tokio::test]
async fn messages_go_to_the_streams_origin_alone() {
    for endpoint in ["http://127.0.0.1:9/messages", "//tools.example/messages"] {
        let faults = Faults { endpoint: Some(endpoint), ..Faults::default() };
        let (fleet, mut asked) = serve(faults).await;
        let problem = until_state(&fleet, ServerState::Waiting).await;
        assert!(problem.contains("another origin"), "{problem}");
        assert!(asked.try_recv().is_err());
        fleet.close().await;
    }
}

#[tokio::test]
async fn a_url_of_neither_transport_is_told_with_both_problems() {
    let (fleet, _asked) = serve(Faults { is_no_server: true, ..Faults::default() }).await;
    let problem = until_state(&fleet, ServerState::Waiting).await;
    assert!(problem.contains("405") && problem.contains("404"), "{problem}");
    fleet.close().await;
}

#[tokio::test]
async fn an_old_server_that_lets_nobody_in_needs_a_login() {
    let (fleet, _asked) = serve(Faults { is_locked: true, ..Faults::default() }).await;
    until_state(&fleet, ServerState::NeedsLogin).await;
    fleet.close().await;
}
