//! A scripted provider of Anthropic's Messages, and load for what stands before it: each event of the provider bears the time at
//! which it was written, so that the host, on the same machine, knows how long it travelled.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::error::Error;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use axum::Router;
use axum::body::Body;
use axum::extract::DefaultBodyLimit;
use axum::extract::State;
use axum::response::IntoResponse;
use bytes::Bytes;
use clap::{Parser, Subcommand};
use futures_util::stream;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::SendRequest;
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Request, Uri};
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Part of a request's body in whose place a text stands.
const PLACEHOLDER: &str = "@TEXT@";

/// Begins the time in an event, in nanoseconds since 1970.
const STAMP: &[u8] = b"written-at-";

/// Digits of such a time, until the year 2286.
const DIGITS: usize = 19;

/// Time for each answer.
const PATIENCE: Duration = Duration::from_secs(60);

type Failure = Box<dyn Error + Send + Sync>;
type Outcome<T> = Result<T, Failure>;

#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    part: Part,
}

#[derive(Subcommand)]
enum Part {
    /// Serves until it is ended, and prints its URL
    Provider {
        /// Milliseconds between two events of an answer, which has as many as the request's `max_tokens`
        #[arg(long, default_value_t = 20)]
        pause: u64,
    },
    /// Sends requests in a closed loop, and prints the measured times as JSON
    Host(HostArguments),
}

#[derive(clap::Args)]
struct HostArguments {
    /// URL of the messages, http
    url: Uri,
    /// File with a request's body, with @TEXT@ where the user's text stands
    #[arg(long)]
    body: PathBuf,
    /// File with a text of a user in each line
    #[arg(long)]
    texts: PathBuf,
    /// Word in each text, so that no other run has these texts; without it all requests have the first line
    #[arg(long)]
    run: Option<String>,
    /// Events that each answer must have
    #[arg(long)]
    events: usize,
    /// Callers at a time
    #[arg(long, default_value = "1")]
    callers: NonZeroUsize,
    /// Requests of all callers together
    #[arg(long, default_value = "100")]
    requests: NonZeroUsize,
    /// Milliseconds in which the callers begin one after the other
    #[arg(long, default_value_t = 0)]
    spread: u64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome<()> {
    match Arguments::parse().part {
        Part::Provider { pause } => provide(Duration::from_millis(pause)).await,
        Part::Host(arguments) => load(arguments).await,
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Serves every path.
#[expect(clippy::print_stdout, reason = "the address")]
async fn provide(pause: Duration) -> Outcome<()> {
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
    println!("http://{}", listener.local_addr()?);
    let router = Router::new().fallback(answer).layer(DefaultBodyLimit::disable());
    let listener = axum::serve::ListenerExt::tap_io(listener, |stream| {
        // Each event is on its way when it is written.
        let _unset = stream.set_nodelay(true);
    });
    axum::serve(listener, router.with_state(pause)).await?;
    Ok(())
}

/// Streams an answer.
async fn answer(State(pause): State<Duration>, body: Bytes) -> impl IntoResponse {
    let events = stated_events(&body);
    let pieces = stream::unfold(0, move |at| async move {
        if at > events {
            return None;
        }
        if at > 0 {
            tokio::time::sleep(pause).await;
        }
        Some((Ok::<_, Infallible>(piece(at, events)), at + 1))
    });
    ([(CONTENT_TYPE, "text/event-stream")], Body::from_stream(pieces))
}

/// Returns the request's `max_tokens`, read without the rest of its body.
fn stated_events(body: &[u8]) -> usize {
    let name = b"\"max_tokens\":";
    let Some(at) = body.windows(name.len()).position(|part| part == name) else { return 1 };
    let digits = body[at + name.len()..].iter().skip_while(|byte| **byte == b' ');
    let digits = digits.take_while(|byte| byte.is_ascii_digit()).copied().collect();
    String::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()).unwrap_or(1)
}

/// Returns what is written at once: the beginning of an answer, and later one event, the last with the answer's end.
fn piece(at: usize, events: usize) -> Bytes {
    if at == 0 {
        let usage = json!({"input_tokens": 10, "output_tokens": 1});
        let message = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [],
            "stop_reason": null, "stop_sequence": null, "usage": usage});
        let block = json!({"type": "text", "text": ""});
        let begin = json!({"type": "content_block_start", "index": 0, "content_block": block});
        return Bytes::from(
            event(&json!({"type": "message_start", "message": message})) + &event(&begin),
        );
    }
    let text = format!(" {}{}", String::from_utf8_lossy(STAMP), now());
    let delta = json!({"type": "text_delta", "text": text});
    let mut written = event(&json!({"type": "content_block_delta", "index": 0, "delta": delta}));
    if at == events {
        let delta = json!({"stop_reason": "end_turn", "stop_sequence": null});
        let usage = json!({"output_tokens": events});
        written += &event(&json!({"type": "content_block_stop", "index": 0}));
        written += &event(&json!({"type": "message_delta", "delta": delta, "usage": usage}));
        written += &event(&json!({"type": "message_stop"}));
    }
    Bytes::from(written)
}

fn event(data: &serde_json::Value) -> String {
    format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap_or_default())
}

/// Requests that a run sends.
struct Requests {
    arguments: HostArguments,
    before: String,
    after: String,
    texts: Vec<String>,
    begun: AtomicUsize,
}

/// Measured times, in nanoseconds.
#[derive(Default)]
struct Measured {
    /// From a request's first byte until the first of the answer's body.
    first: Vec<u64>,
    /// From when an event was written until it was here.
    events: Vec<u64>,
    /// Number of answers by the header `x-toolgate`.
    notes: BTreeMap<String, usize>,
    failures: Vec<String>,
}

async fn load(arguments: HostArguments) -> Outcome<()> {
    let body = std::fs::read_to_string(&arguments.body)?;
    let (before, after) = body.split_once(PLACEHOLDER).ok_or("the body has no @TEXT@")?;
    let texts: Vec<_> =
        std::fs::read_to_string(&arguments.texts)?.lines().map(str::to_owned).collect();
    if texts.is_empty() {
        return Err("there are no texts".into());
    }
    let before = before.to_owned();
    let after = after.to_owned();
    let requests = Requests { arguments, before, after, texts, begun: AtomicUsize::new(0) };
    let requests = Arc::new(requests);
    let callers = requests.arguments.callers.get();
    let mut tasks = JoinSet::new();
    let started = Instant::now();
    for caller in 0..callers {
        let requests = Arc::clone(&requests);
        let share = requests.arguments.spread * caller as u64 / callers as u64;
        tasks.spawn(async move {
            tokio::time::sleep(Duration::from_millis(share)).await;
            call(&requests).await
        });
    }
    let mut all = Measured::default();
    while let Some(done) = tasks.join_next().await {
        all.add(done?);
    }
    print(&all, started.elapsed());
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the report")]
fn print(all: &Measured, took: Duration) {
    let report = json!({
        "first_ns": all.first,
        "event_ns": all.events,
        "notes": all.notes,
        "failures": all.failures,
        "seconds": took.as_secs_f64(),
    });
    println!("{report}");
}

/// Sends requests over one connection until all are begun.
async fn call(requests: &Requests) -> Measured {
    let mut measured = Measured::default();
    let mut connection = None;
    loop {
        let number = requests.begun.fetch_add(1, Ordering::Relaxed);
        if number >= requests.arguments.requests.get() {
            return measured;
        }
        let exchanged = timeout(PATIENCE, exchange(requests, number, connection.take())).await;
        match exchanged {
            Ok(Ok((kept, one))) => {
                connection = Some(kept);
                measured.add(one);
            }
            Ok(Err(failure)) => measured.failures.push(failure.to_string()),
            Err(_) => measured.failures.push(format!("no answer within {PATIENCE:?}")),
        }
    }
}

type Connection = SendRequest<Full<Bytes>>;

/// Sends a request, and reads its answer.
async fn exchange(
    requests: &Requests,
    number: usize,
    kept: Option<Connection>,
) -> Outcome<(Connection, Measured)> {
    let url = &requests.arguments.url;
    let mut connection = ready(url, kept).await?;
    let request = Request::builder()
        .method("POST")
        .uri(url.path_and_query().map_or("/", |path| path.as_str()))
        .header(HOST, url.authority().map_or("", |authority| authority.as_str()))
        .header(CONTENT_TYPE, "application/json")
        .header("anthropic-version", "2023-06-01")
        .header("x-api-key", "sk-measured")
        .body(Full::new(requests.body(number)))?;
    let mut measured = Measured::default();
    let started = Instant::now();
    let answer = connection.send_request(request).await?;
    let status = answer.status();
    let note = answer.headers().get("x-toolgate").and_then(|value| value.to_str().ok());
    measured.notes.insert(note.unwrap_or_default().to_owned(), 1);
    let mut body = answer.into_body();
    let mut read = Vec::new();
    let mut seen = 0;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        let arrived = now();
        if measured.first.is_empty() && !data.is_empty() {
            measured.first.push(nanoseconds(started.elapsed()));
        }
        read.extend_from_slice(&data);
        let (stamps, next) = stamps_in(&read, seen);
        seen = next;
        measured.events.extend(stamps.iter().map(|stamp| arrived.saturating_sub(*stamp)));
    }
    let wanted = requests.arguments.events;
    if !status.is_success() || measured.events.len() != wanted {
        let found = measured.events.len();
        let text = String::from_utf8_lossy(&read[..read.len().min(300)]).into_owned();
        return Err(format!("{status}, {found} of {wanted} events: {text}").into());
    }
    Ok((connection, measured))
}

/// Returns the connection if it can take another request, else a new one. To open one is no part of the measured time.
async fn ready(url: &Uri, kept: Option<Connection>) -> Outcome<Connection> {
    if let Some(mut connection) = kept
        && connection.ready().await.is_ok()
    {
        return Ok(connection);
    }
    let authority = url.authority().ok_or("the URL has no host")?;
    let stream = TcpStream::connect((authority.host(), authority.port_u16().unwrap_or(80))).await?;
    stream.set_nodelay(true)?;
    let (mut connection, driver) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(driver);
    connection.ready().await?;
    Ok(connection)
}

/// Returns the times in a text from a place on, and the place from which to look on when more has come.
fn stamps_in(read: &[u8], from: usize) -> (Vec<u64>, usize) {
    let mut stamps = Vec::new();
    let mut next = from;
    let whole = STAMP.len() + DIGITS;
    while let Some(at) = read[next..].windows(STAMP.len()).position(|part| part == STAMP) {
        let begin = next + at;
        let Some(part) = read.get(begin..begin + whole) else { return (stamps, begin) };
        let digits = std::str::from_utf8(&part[STAMP.len()..]).unwrap_or_default();
        stamps.extend(digits.parse::<u64>().ok());
        next = begin + whole;
    }
    // The beginning of one may stand at the end.
    (stamps, next.max(read.len().saturating_sub(STAMP.len() - 1)))
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Requests {
    fn body(&self, number: usize) -> Bytes {
        let text = match &self.arguments.run {
            Some(run) => {
                let text = &self.texts[number % self.texts.len()];
                format!("{text} ({run} {number})")
            }
            None => self.texts[0].clone(),
        };
        let text = json!(text).to_string();
        // The body has the quotes.
        Bytes::from(format!("{}{}{}", self.before, &text[1..text.len() - 1], self.after))
    }
}

impl Measured {
    fn add(&mut self, other: Self) {
        self.first.extend(other.first);
        self.events.extend(other.events);
        self.failures.extend(other.failures);
        for (note, count) in other.notes {
            *self.notes.entry(note).or_default() += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_comes_in_two_pieces_is_read_once() {
        let mut whole = piece(1, 2).to_vec();
        whole.extend_from_slice(&piece(2, 2));
        for cut in 0..whole.len() {
            let (mut stamps, next) = stamps_in(&whole[..cut], 0);
            let (more, _) = stamps_in(&whole, next);
            stamps.extend(more);
            assert_eq!(stamps.len(), 2, "cut at {cut}");
            assert!(stamps[0] <= stamps[1], "cut at {cut}: {stamps:?}");
        }
    }

    #[test]
    fn an_answer_has_as_many_events_as_the_request_says() {
        assert_eq!(stated_events(br#"{"model":"m","max_tokens": 12,"messages":[]}"#), 12);
        assert_eq!(stated_events(br#"{"max_tokens":3}"#), 3);
        assert_eq!(stated_events(b"{}"), 1);
    }
}
