use std::slice;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::Method;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use url::Url;

use super::*;
use crate::config::{Config, GateConfig};
use crate::kept::OpenCall;
use crate::turn;
use crate::upstream::Upstream;
use crate::way::{Carried, Carrier};

/// Answers the next request of a turn, whose body is kept.
struct Next {
    answer: Mutex<Answer>,
    asked: Arc<Mutex<String>>,
}

impl Carrier for Next {
    fn carry(self: Box<Self>, request: Carried) -> BoxFuture<'static, io::Result<Answer>> {
        if let Payload::Whole(body) = request.body {
            *self.asked.lock() = String::from_utf8_lossy(&body).into_owned();
        }
        async move { Ok(self.answer.into_inner()) }.boxed()
    }
}

fn answer(status: StatusCode, kind: &'static str, pieces: Pieces) -> Answer {
    let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static(kind))]);
    Answer { status, headers, pieces }
}

/// Returns a body of these pieces that ends.
fn ending(pieces: Vec<Bytes>) -> Pieces {
    Box::pin(stream::iter(pieces.into_iter().map(Ok)))
}

/// Returns a stream of events whose body does not end.
fn open(text: &str) -> Answer {
    let pieces = ending(vec![text.to_owned().into()]).chain(stream::pending());
    answer(StatusCode::OK, "text/event-stream", Box::pin(pieces))
}

fn events(text: &str) -> Answer {
    answer(StatusCode::OK, "text/event-stream", ending(vec![text.to_owned().into()]))
}

/// Returns a request with a tool of the host's own, `Bash`, and one that is deferred.
fn request(api: Api) -> String {
    let tool = |name: &str| match api {
        Api::Anthropic => json!({ "name": name, "input_schema": { "type": "object" } }),
        Api::OpenAiChat => json!({ "type": "function",
            "function": { "name": name, "parameters": { "type": "object" } } }),
        _ => json!({ "type": "function", "name": name, "parameters": { "type": "object" } }),
    };
    let messages = if api == Api::OpenAiResponses { "input" } else { "messages" };
    let mut tools = vec![tool("Bash"), tool("mcp__git__log")];
    if api == Api::OpenAiChat {
        tools.push(json!({ "type": "custom", "custom": { "name": "Edit" } }));
    }
    json!({ "model": "m", "tools": tools,
        messages: [{ "role": "user", "content": "Show the log." }] })
    .to_string()
}

/// Returns a turn whose next request gets this answer, and the place of that request's body.
fn exchange(api: Api, gate: GateConfig, next: Answer) -> (Exchange, Arc<Mutex<String>>) {
    let asked = Arc::default();
    let carrier = Box::new(Next { answer: next.into(), asked: Arc::clone(&asked) });
    let upstream = Upstream::new(&Config::default()).expect("a client");
    let head = Head {
        provider: if api == Api::Anthropic { Provider::Anthropic } else { Provider::OpenAi },
        method: Method::POST,
        url: Url::parse("http://127.0.0.1:9/").expect("a URL"),
        headers: HeaderMap::new(),
    };
    let exchange = Exchange {
        way: Way::new(upstream, Some(carrier)),
        original: Original { head: head.clone(), body: request(api).into() },
        head,
        turn: turn::tests::turn(api, &request(api), gate),
    };
    (exchange, asked)
}

/// Returns what the host gets of a stream until it ends.
async fn read_all(pieces: Pieces) -> String {
    let pieces = pieces.map(|piece| piece.expect("a piece").to_vec()).collect::<Vec<_>>().await;
    String::from_utf8(pieces.concat()).expect("a text")
}

fn data(values: &[Value]) -> String {
    values.iter().map(|value| format!("data: {value}\n\n")).collect()
}

/// Returns a stream with one call, up to its end.
fn calling(api: Api, name: &str) -> String {
    match api {
        Api::Anthropic => data(&[
            json!({ "type": "message_start", "message": { "id": "m" } }),
            json!({ "type": "content_block_start", "index": 0,
                "content_block": { "type": "tool_use", "id": "c", "name": name, "input": {} } }),
            json!({ "type": "content_block_stop", "index": 0 }),
            json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" } }),
            json!({ "type": "message_stop" }),
        ]),
        Api::OpenAiChat => {
            let call = json!({ "index": 0, "id": "c", "type": "function",
                "function": { "name": name, "arguments": "{}" } });
            let chunks = data(&[
                json!({ "id": "m", "choices": [{ "delta": { "tool_calls": [call] } }] }),
                json!({ "id": "m", "choices": [{ "delta": {}, "finish_reason": "tool_calls" }] }),
                json!({ "id": "m", "choices": [], "usage": { "prompt_tokens": 1 } }),
            ]);
            chunks + "data: [DONE]\n\n"
        }
        _ => {
            let item = json!({ "type": "function_call", "id": "f", "call_id": "c", "name": name,
                "arguments": "{}", "status": "completed" });
            data(&[
                json!({ "type": "response.created", "response": { "id": "m" } }),
                json!({ "type": "response.output_item.done", "output_index": 0, "item": item }),
                json!({ "type": "response.completed", "response": { "id": "m", "output": [item] } }),
            ])
        }
    }
}

const APIS: [Api; 3] = [Api::Anthropic, Api::OpenAiChat, Api::OpenAiResponses];

#[tokio::test(start_paused = true)]
async fn a_search_is_gone_on_with_though_the_body_stays_open() {
    for api in APIS {
        let next = events(&calling(api, "Bash"));
        let (exchange, asked) = exchange(api, GateConfig::Off, next);
        let host = exchange.stream(open(&calling(api, "toolgate_search_tools")));
        let limit = Duration::from_secs(60);
        let read = timeout(limit, read_all(host)).await.expect("the search is gone on with");
        assert!(asked.lock().contains(r#"\"error\""#), "{api:?}: {}", asked.lock());
        assert!(read.contains("Bash") && !read.contains("toolgate_search_tools"), "{read}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_call_is_told_though_the_body_stays_open() {
    for api in APIS {
        let next = events(&calling(api, "Bash"));
        let (exchange, asked) = exchange(api, GateConfig::Enforce, next);
        let host = exchange.stream(open(&calling(api, "nothing")));
        let limit = Duration::from_secs(60);
        let read = timeout(limit, read_all(host)).await.expect("the call is judged");
        assert!(asked.lock().contains("unknown_tool"), "{api:?}: {}", asked.lock());
        assert!(read.contains("Bash") && !read.contains("nothing"), "{read}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_comes_behind_the_end_of_an_answer_passes() {
    for (api, gate) in APIS
        .into_iter()
        .flat_map(|api| [GateConfig::Off, GateConfig::Enforce].map(|gate| (api, gate)))
    {
        let (exchange, asked) = exchange(api, gate, events(""));
        let call = calling(api, "Bash");
        let later = stream::once(async {
            tokio::time::sleep(END_MAX * 3).await;
            Ok(Bytes::from_static(b"g\n\n: last"))
        });
        let pieces = ending(vec![call.clone().into(), ": pin".into()]).chain(later);
        let pieces = answer(StatusCode::OK, "text/event-stream", Box::pin(pieces));
        let read = read_all(exchange.stream(pieces)).await;
        assert_eq!(read, call + ": ping\n\n: last", "{api:?} {gate:?}");
        assert!(asked.lock().is_empty());
    }
}

/// Takes one request, and answers it with a stream of events. Returns the URL.
async fn provider(events: String) -> Url {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    tokio::spawn(async move {
        let (mut connection, _) = listener.accept().await.expect("a connection");
        let head =
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        // The request is not read further than it takes to be one.
        let read = connection.read(&mut [0; 64 << 10]).await.expect("a request");
        assert!(read > 0);
        connection.write_all((head.to_owned() + &events).as_bytes()).await.expect("an answer");
    });
    Url::parse(&format!("http://127.0.0.1:{port}/v1/responses")).expect("a URL")
}

#[tokio::test]
async fn items_that_openai_did_not_keep_are_a_refusal_behind_a_search() {
    let lost = json!({ "error": { "message": "Item with id 'rs_1' not found." } }).to_string();
    for (api, is_original) in [(Api::OpenAiResponses, true), (Api::OpenAiChat, false)] {
        let lost = ending(vec![lost.clone().into()]);
        let next = answer(StatusCode::NOT_FOUND, "application/json", lost);
        let (mut exchange, _) = exchange(api, GateConfig::Off, next);
        exchange.original.head.url = provider(calling(api, "Bash")).await;
        let read = read_all(exchange.stream(events(&calling(api, "toolgate_search_tools")))).await;
        assert_eq!(read.contains("Bash"), is_original, "{read}");
        assert_eq!(read.contains("rs_1"), !is_original, "{read}");
    }
}

#[tokio::test(start_paused = true)]
async fn thoughts_of_a_search_beside_a_call_of_the_hosts_are_left_out_later() {
    let thought = |id: &str| json!({ "type": "reasoning", "id": id });
    let call = |name: &str| {
        json!({ "type": "function_call", "id": name, "call_id": name, "name": name,
            "arguments": "{}", "status": "completed" })
    };
    let output = [thought("r1"), call("Bash"), thought("r2"), call("toolgate_search_tools")];
    let response = json!({ "id": "m", "status": "completed", "output": output });
    let items = output.iter().enumerate().map(
        |(at, item)| json!({ "type": "response.output_item.done", "output_index": at, "item": item }),
    );
    let mut streamed: Vec<Value> = items.collect();
    streamed.push(json!({ "type": "response.completed", "response": response }));
    let next = json!({ "input": [thought("r1"), call("Bash"), thought("r2")] });
    let left = json!({ "input": [thought("r1"), call("Bash")] }).to_string();
    for gate in [GateConfig::Off, GateConfig::Enforce] {
        for is_stream in [true, false] {
            let (turn, asked) = exchange(Api::OpenAiResponses, gate, events(""));
            let thoughts = turn::tests::thoughts(&turn.turn);
            if is_stream {
                read_all(turn.stream(events(&data(&streamed)))).await;
            } else {
                turn.whole(json_answer(&response.to_string())).await;
            }
            assert!(asked.lock().is_empty(), "the call goes to the host");
            let sent = thoughts.restored(0, &next.to_string());
            assert_eq!(sent.as_ref(), Some(&left), "{gate:?} {is_stream}");
        }
        // The host leaves at the last event, before the body ends.
        let (turn, _) = exchange(Api::OpenAiResponses, gate, events(""));
        let thoughts = turn::tests::thoughts(&turn.turn);
        let behind = turn::tests::behind(&turn.turn);
        let mut host = turn.stream(open(&data(&streamed)));
        let mut read = String::new();
        while !read.contains("response.completed") {
            let piece = host.next().await.expect("the body is open").expect("a piece");
            read.push_str(std::str::from_utf8(&piece).expect("a text"));
        }
        drop(host);
        assert_eq!(thoughts.restored(0, &next.to_string()).as_ref(), Some(&left), "{gate:?}");
        let behind = behind("m").expect("the answer is known");
        assert_eq!(
            (behind.ids, behind.open_calls),
            (vec!["m".to_owned()], vec![OpenCall::Search("toolgate_search_tools".to_owned())])
        );
    }
}

/// Returns a stream of Responses with a thought and a call behind it, up to its end.
fn thinking(name: &str) -> String {
    let thought = json!({ "type": "reasoning", "id": "r1" });
    let call = json!({ "type": "function_call", "id": "f", "call_id": "c", "name": name,
        "arguments": "{}", "status": "completed" });
    let done = |at: usize, item: &Value| json!({ "type": "response.output_item.done", "output_index": at, "item": item });
    data(&[
        json!({ "type": "response.created", "response": { "id": "m" } }),
        done(0, &thought),
        done(1, &call),
        json!({ "type": "response.completed", "response": { "id": "m", "output": [thought, call] } }),
    ])
}

#[tokio::test(start_paused = true)]
async fn an_answer_behind_which_the_host_leaves_is_known_with_the_calls_that_it_never_got() {
    let call = OpenCall::Function("c".to_owned());
    let search = OpenCall::Search("c".to_owned());
    let of_set = thinking("mcp__git__log");
    let searching = thinking("toolgate_search_tools");
    let cases = [
        ("the body stays open", GateConfig::Enforce, open(&of_set), &call),
        ("Gate is asked", GateConfig::Enforce, events(&of_set), &call),
        ("the body stays open behind a search", GateConfig::Off, open(&searching), &search),
        ("the next answer has begun", GateConfig::Off, events(&searching), &search),
    ];
    for (when, gate, answer, open_call) in cases {
        let (turn, _) = exchange(Api::OpenAiResponses, gate, open(": ping\n\n"));
        let behind = turn::tests::behind(&turn.turn);
        let thoughts = turn::tests::thoughts(&turn.turn);
        let mut host = turn.stream(answer);
        let begun = host.next().now_or_never().flatten().expect("its beginning").expect("a piece");
        let begun = String::from_utf8_lossy(&begun);
        assert!(begun.contains("r1") && !begun.contains("function_call"), "{when}: {begun}");
        assert!(behind("m").is_none(), "{when}: the turn goes on");
        while let Some(more) = host.next().now_or_never() {
            let more = more.expect("the turn goes on").expect("a piece");
            assert_eq!(more, ": ping\n\n", "{when}");
        }
        drop(host);
        let behind = behind("m").expect(when);
        assert_eq!(behind.ids, ["m"], "{when}");
        assert_eq!(behind.open_calls, slice::from_ref(open_call), "{when}");
        let later = json!({ "input": [{ "type": "reasoning", "id": "r1" }] }).to_string();
        assert_eq!(thoughts.restored(0, &later).as_deref(), Some(r#"{"input":[]}"#), "{when}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_behind_which_the_host_waits_has_no_call_that_it_never_got() {
    let (turn, _) = exchange(Api::OpenAiResponses, GateConfig::Enforce, events(""));
    let behind = turn::tests::behind(&turn.turn);
    let thoughts = turn::tests::thoughts(&turn.turn);
    let read = read_all(turn.stream(events(&thinking("Bash")))).await;
    assert!(read.contains("Bash"), "{read}");
    assert!(behind("m").expect("the answer is known").open_calls.is_empty());
    let later = json!({ "input": [{ "type": "reasoning", "id": "r1" }] }).to_string();
    assert_eq!(thoughts.restored(0, &later), None);
}

#[tokio::test(start_paused = true)]
async fn thoughts_before_a_refused_call_are_left_out_later_whatever_was_withheld_with_it() {
    let thought = json!({ "type": "reasoning", "id": "r1" });
    let refused = json!({ "type": "function_call", "id": "f", "call_id": "c", "name": "nothing",
        "arguments": "{}", "status": "completed" });
    let said = json!({ "type": "message", "id": "m1", "role": "assistant", "content": [] });
    let output = [thought.clone(), refused, said];
    let done = |(at, item): (usize, &Value)| json!({ "type": "response.output_item.done", "output_index": at, "item": item });
    let mut streamed: Vec<Value> = output.iter().enumerate().map(done).collect();
    let response = json!({ "id": "m", "output": output });
    streamed.push(json!({ "type": "response.completed", "response": response }));
    let next = events(&calling(Api::OpenAiResponses, "Bash"));
    let (turn, asked) = exchange(Api::OpenAiResponses, GateConfig::Enforce, next);
    let thoughts = turn::tests::thoughts(&turn.turn);
    let read = read_all(turn.stream(events(&data(&streamed)))).await;
    assert!(read.contains("r1") && !read.contains("m1"), "{read}");
    assert!(asked.lock().contains("unknown_tool"));
    let later = json!({ "input": [thought, { "role": "user", "content": "Go on." }] });
    let left = json!({ "input": [{ "role": "user", "content": "Go on." }] }).to_string();
    assert_eq!(thoughts.restored(0, &later.to_string()), Some(left));
}

fn json_answer(text: &str) -> Answer {
    answer(StatusCode::OK, "application/json", ending(vec![text.to_owned().into()]))
}

async fn body(response: Response) -> Bytes {
    axum::body::to_bytes(response.into_body(), usize::MAX).await.expect("a body")
}

/// Returns an answer of Chat Completions with these calls, whole, and as a stream that has the custom call's input in two pieces.
fn custom_calls(calls: &[Value]) -> [String; 2] {
    let message = json!({ "role": "assistant", "content": null, "tool_calls": calls });
    let whole =
        json!({ "id": "m", "choices": [{ "finish_reason": "tool_calls", "message": message }] });
    let delta = |delta: Value| json!({ "id": "m", "choices": [{ "delta": delta }] });
    let mut chunks = Vec::new();
    for (at, call) in calls.iter().enumerate() {
        let mut begun = call.clone();
        begun["index"] = at.into();
        let is_custom = call["custom"].is_object();
        if is_custom {
            begun["custom"]["input"] = "".into();
        }
        chunks.push(delta(json!({ "tool_calls": [begun] })));
        if is_custom {
            for piece in ["*** ", "Begin"] {
                let piece = json!({ "index": at, "custom": { "input": piece } });
                chunks.push(delta(json!({ "tool_calls": [piece] })));
            }
        }
    }
    chunks.push(json!({ "id": "m", "choices": [{ "delta": {}, "finish_reason": "tool_calls" }] }));
    [whole.to_string(), data(&chunks) + "data: [DONE]\n\n"]
}

#[tokio::test(start_paused = true)]
async fn a_custom_tool_of_chat_completions_is_the_hosts_own() {
    let custom = json!({ "id": "c1", "type": "custom",
        "custom": { "name": "Edit", "input": "*** Begin" } });
    let [whole, streamed] = custom_calls(std::slice::from_ref(&custom));
    let (turn, asked) = exchange(Api::OpenAiChat, GateConfig::Enforce, events(""));
    assert_eq!(read_all(turn.stream(events(&streamed))).await, streamed);
    assert!(asked.lock().is_empty());
    let (turn, asked) = exchange(Api::OpenAiChat, GateConfig::Enforce, events(""));
    assert_eq!(body(turn.whole(json_answer(&whole)).await).await, whole);
    assert!(asked.lock().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_custom_tools_call_beside_a_refused_one_is_told_so() {
    let custom = json!({ "id": "c1", "type": "custom",
        "custom": { "name": "Edit", "input": "*** Begin" } });
    let wrong = json!({ "id": "c2", "type": "function",
        "function": { "name": "nothing", "arguments": "{}" } });
    let [whole, streamed] = custom_calls(&[custom.clone(), wrong]);
    for is_stream in [true, false] {
        let next = if is_stream { events("data: [DONE]\n\n") } else { json_answer("{}") };
        let (turn, asked) = exchange(Api::OpenAiChat, GateConfig::Enforce, next);
        if is_stream {
            read_all(turn.stream(events(&streamed))).await;
        } else {
            turn.whole(json_answer(&whole)).await;
        }
        let asked: Value = serde_json::from_str(&asked.lock()).expect("a request");
        let said = &asked["messages"][1]["tool_calls"];
        assert_eq!(said[0], custom, "{is_stream}");
        assert_eq!(said[1]["id"], "c2");
        let told: Vec<&Value> = asked["messages"].as_array().expect("messages")[2..]
            .iter()
            .map(|message| &message["tool_call_id"])
            .collect();
        assert_eq!(told, ["c1", "c2"]);
    }
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_passes_as_it_is() {
    let large = vec![Bytes::from(vec![b' '; 1 << 20]); 34];
    for pieces in [large, vec![Bytes::from_static(b"{\"id\":\"\xff\"}")]] {
        let (turn, asked) = exchange(Api::Anthropic, GateConfig::Enforce, events(""));
        let whole = turn.whole(answer(StatusCode::OK, "application/json", ending(pieces.clone())));
        let response = whole.await;
        assert_eq!(response.status(), StatusCode::OK);
        assert!(body(response).await == pieces.concat());
        assert!(asked.lock().is_empty());
    }
}
