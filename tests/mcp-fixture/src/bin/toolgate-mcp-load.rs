//! Load for MCP servers over Streamable HTTP in the era of 2025-11-25, in a closed loop: each caller has a connection and a
//! session, and sends its next request when the last was answered. Every answer is checked; a wrong one ends the run.

use std::error::Error;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use clap::{Parser, ValueEnum};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::SendRequest;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Request, Response, Uri};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

const REVISION: &str = "2025-11-25";
const SESSION: &str = "mcp-session-id";
const VERSION: &str = "mcp-protocol-version";

/// Time for each answer.
const PATIENCE: Duration = Duration::from_secs(60);

type Failure = Box<dyn Error + Send + Sync>;
type Outcome<T> = Result<T, Failure>;

/// Measures the latency of one method, and prints JSON.
#[derive(Clone, Parser)]
#[command(version)]
struct Arguments {
    /// URL of the server, http
    url: Uri,
    #[arg(long, value_enum)]
    method: Method,
    /// Callers at a time
    #[arg(long, default_value = "1")]
    callers: NonZeroUsize,
    /// Measured calls of all callers together
    #[arg(long, default_value = "1000")]
    calls: NonZeroUsize,
    /// Calls before them that are not measured
    #[arg(long, default_value_t = 100)]
    warm_up: usize,
    /// Tools that each list must have
    #[arg(long, default_value_t = 0)]
    tools: usize,
    /// Name of the tool to call
    #[arg(long, default_value = "")]
    tool: String,
    /// Parameter of the tool that takes a text; the answer must be the arguments as JSON
    #[arg(long, default_value = "message")]
    parameter: String,
    /// Tool that calls the other, with `name` and `arguments`
    #[arg(long, value_name = "TOOL")]
    through: Option<String>,
    /// Value of the header `Authorization`
    #[arg(long, value_name = "VALUE")]
    authorization: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Method {
    List,
    Call,
}

/// A connection with an open session.
struct Caller {
    arguments: Arc<Arguments>,
    connection: SendRequest<Full<Bytes>>,
    session: Option<HeaderValue>,
    /// Negotiated revision; none before the answer to `initialize`.
    version: Option<HeaderValue>,
    last_id: usize,
}

/// An answer's message, and the time from the request until its last byte was there.
struct Answer {
    result: Box<RawValue>,
    bytes: usize,
    latency: Duration,
}

#[derive(Deserialize)]
struct Message {
    id: Option<usize>,
    result: Option<Box<RawValue>>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct ToolList<'a> {
    #[serde(borrow)]
    tools: Vec<&'a RawValue>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome<()> {
    let arguments = Arc::new(Arguments::parse());
    let mut callers = Vec::new();
    for _ in 0..arguments.callers.get() {
        callers.push(Caller::open(Arc::clone(&arguments)).await?);
    }
    let warmed_up = run(callers, arguments.warm_up).await?;
    let started = Instant::now();
    let mut measured = run(warmed_up.callers, arguments.calls.get()).await?;
    print(&arguments, &mut measured.latencies, measured.bytes, started.elapsed());
    for caller in measured.callers {
        caller.close().await?;
    }
    Ok(())
}

struct Round {
    callers: Vec<Caller>,
    latencies: Vec<Duration>,
    /// Bytes of the last answer's message.
    bytes: usize,
}

/// Has the callers make so many calls together.
async fn run(callers: Vec<Caller>, calls: usize) -> Outcome<Round> {
    let begun = Arc::new(AtomicUsize::new(0));
    let mut tasks = JoinSet::new();
    for mut caller in callers {
        let begun = Arc::clone(&begun);
        tasks.spawn(async move {
            let mut latencies = Vec::new();
            let mut bytes = 0;
            while begun.fetch_add(1, Ordering::Relaxed) < calls {
                let answer = caller.measured().await?;
                latencies.push(answer.latency);
                bytes = answer.bytes;
            }
            Ok::<_, Failure>(Round { callers: vec![caller], latencies, bytes })
        });
    }
    let mut all = Round { callers: Vec::new(), latencies: Vec::with_capacity(calls), bytes: 0 };
    while let Some(done) = tasks.join_next().await {
        let round = done??;
        all.callers.extend(round.callers);
        all.latencies.extend(round.latencies);
        all.bytes = all.bytes.max(round.bytes);
    }
    Ok(all)
}

#[expect(clippy::print_stdout, reason = "the report")]
#[expect(clippy::cast_precision_loss, reason = "calls stay far below 2^52")]
fn print(arguments: &Arguments, latencies: &mut [Duration], bytes: usize, took: Duration) {
    latencies.sort_unstable();
    let at = |percent: usize| {
        let index = (latencies.len() * percent).div_ceil(100).saturating_sub(1);
        latencies[index].as_secs_f64() * 1e3
    };
    let report = json!({
        "callers": arguments.callers,
        "calls": latencies.len(),
        "p50_ms": at(50),
        "p99_ms": at(99),
        "max_ms": at(100),
        "calls_per_second": latencies.len() as f64 / took.as_secs_f64(),
        "answer_bytes": bytes,
    });
    println!("{report}");
}

impl Caller {
    async fn open(arguments: Arc<Arguments>) -> Outcome<Self> {
        let connection = connect(&arguments.url).await?;
        let mut caller = Self { arguments, connection, session: None, version: None, last_id: 0 };
        let params = json!({
            "protocolVersion": REVISION,
            "capabilities": {},
            "clientInfo": {"name": "toolgate-mcp-load", "version": env!("CARGO_PKG_VERSION")},
        });
        let greeting = caller.ask("initialize", &params).await?;
        let greeting: Value = serde_json::from_str(greeting.result.get())?;
        let version = greeting["protocolVersion"].as_str().ok_or("no protocolVersion")?;
        caller.version = Some(HeaderValue::from_str(version)?);
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let answer = caller.send("POST", Bytes::from(ready.to_string())).await?;
        answer.into_body().collect().await?;
        Ok(caller)
    }

    /// Ends the session; a server without sessions has none to end.
    async fn close(mut self) -> Outcome<()> {
        if self.session.is_some() {
            let answer = self.send("DELETE", Bytes::new()).await?;
            answer.into_body().collect().await?;
        }
        Ok(())
    }

    /// Makes a call whose answer is checked after the clock was read.
    async fn measured(&mut self) -> Outcome<Answer> {
        let arguments = Arc::clone(&self.arguments);
        if arguments.method == Method::List {
            let answer = self.ask("tools/list", &json!({})).await?;
            let listed: ToolList = serde_json::from_str(answer.result.get())?;
            if listed.tools.len() != arguments.tools {
                return Err(format!("{} tools were listed", listed.tools.len()).into());
            }
            return Ok(answer);
        }
        let sent = json!({arguments.parameter.as_str(): format!("call {}", self.last_id)});
        let call = json!({"name": arguments.tool, "arguments": sent});
        let call = match &arguments.through {
            Some(tool) => json!({"name": tool, "arguments": call}),
            None => call,
        };
        let answer = self.ask("tools/call", &call).await?;
        if !is_echo(&serde_json::from_str(answer.result.get())?, &sent) {
            return Err(format!("a wrong answer: {}", answer.result.get()).into());
        }
        Ok(answer)
    }

    async fn ask(&mut self, method: &str, params: &Value) -> Outcome<Answer> {
        self.last_id += 1;
        let id = self.last_id;
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let body = Bytes::from(message.to_string());
        // A server may close a connection between two requests; opening another is no part of the latency.
        if self.connection.ready().await.is_err() {
            self.connection = connect(&self.arguments.url).await?;
        }
        timeout(PATIENCE, self.exchange(id, body))
            .await
            .map_err(|_elapsed| format!("{method}: no answer within {PATIENCE:?}"))?
    }

    async fn exchange(&mut self, id: usize, body: Bytes) -> Outcome<Answer> {
        let started = Instant::now();
        let response = self.send("POST", body).await?;
        if let Some(session) = response.headers().get(SESSION) {
            self.session = Some(session.clone());
        }
        let is_stream = response
            .headers()
            .get(CONTENT_TYPE)
            .is_some_and(|value| value.as_bytes().starts_with(b"text/event-stream"));
        let status = response.status();
        let mut body = response.into_body();
        let mut read = BytesMut::new();
        let mut answer = None;
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame?.into_data() else { continue };
            if answer.is_none() {
                read.extend_from_slice(&data);
                if is_stream && ends_event(&read) {
                    let latency = started.elapsed();
                    answer = found_in(lines_of(&read), id, latency)?;
                }
            }
        }
        if !is_stream {
            let latency = started.elapsed();
            answer = found_in(std::iter::once(&read[..]), id, latency)?;
        }
        let told = || format!("{status} without an answer: {}", String::from_utf8_lossy(&read));
        Ok(answer.ok_or_else(told)?)
    }

    async fn send(
        &mut self,
        method: &str,
        body: Bytes,
    ) -> Outcome<Response<hyper::body::Incoming>> {
        let url = &self.arguments.url;
        let mut request = Request::builder()
            .method(method)
            .uri(url.path_and_query().map_or("/", |path| path.as_str()))
            .header(HOST, url.authority().map_or("", |authority| authority.as_str()))
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream");
        if let Some(session) = &self.session {
            request = request.header(SESSION, session);
        }
        if let Some(version) = &self.version {
            request = request.header(VERSION, version);
        }
        if let Some(value) = &self.arguments.authorization {
            request = request.header(AUTHORIZATION, value);
        }
        self.connection.ready().await?;
        Ok(self.connection.send_request(request.body(Full::new(body))?).await?)
    }
}

async fn connect(url: &Uri) -> Outcome<SendRequest<Full<Bytes>>> {
    let authority = url.authority().ok_or("the URL has no host")?;
    let stream = TcpStream::connect((authority.host(), authority.port_u16().unwrap_or(80))).await?;
    stream.set_nodelay(true)?;
    let (connection, driver) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(driver);
    Ok(connection)
}

fn ends_event(read: &[u8]) -> bool {
    read.ends_with(b"\n\n") || read.ends_with(b"\r\n\r\n")
}

fn lines_of(read: &[u8]) -> impl Iterator<Item = &[u8]> {
    read.split(|byte| *byte == b'\n')
}

/// Returns the response of that ID out of lines of JSON or of events; none if it is not there.
///
/// # Errors
/// The error that the server answered with.
fn found_in<'a>(
    lines: impl Iterator<Item = &'a [u8]>,
    id: usize,
    latency: Duration,
) -> Outcome<Option<Answer>> {
    for line in lines {
        let data = line.strip_prefix(b"data:").unwrap_or(line).trim_ascii();
        let Ok(message) = serde_json::from_slice::<Message>(data) else { continue };
        if message.id != Some(id) {
            continue;
        }
        if let Some(error) = message.error {
            return Err(error.to_string().into());
        }
        if let Some(result) = message.result {
            return Ok(Some(Answer { bytes: result.get().len(), result, latency }));
        }
    }
    Ok(None)
}

/// Tells whether one of the texts of a result is these arguments as JSON.
fn is_echo(result: &Value, arguments: &Value) -> bool {
    let texts = result["content"].as_array().into_iter().flatten();
    let mut values = texts.filter_map(|item| serde_json::from_str(item["text"].as_str()?).ok());
    result["isError"] != true && values.any(|value: Value| value == *arguments)
}
