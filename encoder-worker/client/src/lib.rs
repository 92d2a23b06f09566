//! Client of encoder workers (`EncoderService`). Each call is one attempt, and the shape of the answer is checked.
//! Choosing a worker and handling failures is up to the caller.

mod error;

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use half::f16;
use half::slice::HalfFloatSliceExt as _;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Response, Status};
use toolgate_proto::v1::encoder_service_client::EncoderServiceClient;
use toolgate_proto::v1::{DescribeRequest, EmbedRequest, EmbedResponse};

use self::error::innermost;

pub use error::Error;
pub use tonic::Code;

/// Bytes of one answer that may be on their way unread. The embeddings of 64 texts have 98 KB; HTTP/2's default of 64 KiB
/// would hold them up for a round trip.
const STREAM_WINDOW: u32 = 1 << 20;

/// Bytes of all answers on a connection that may be on their way unread.
const CONNECTION_WINDOW: u32 = 4 << 20;

/// Connection options of an [`EncoderClient`].
#[derive(Debug, Clone, Copy)]
pub struct EncoderOptions {
    /// Connections that calls are spread over. The frames of one are read and written by one thread at a time.
    /// Default: 1.
    pub connections: NonZeroUsize,
    /// Longest time that connecting may take. Default: 1 s.
    pub connect_timeout: Duration,
    /// Interval of keep-alive pings, which are sent even without calls. Default: 5 s.
    pub keep_alive_interval: Duration,
    /// Time to wait for the answer to a ping before the connection is closed. Default: 2 s.
    pub keep_alive_timeout: Duration,
    /// Largest answer that is accepted, in bytes. Default: 4 MiB.
    pub max_message_bytes: usize,
    /// Number by which the worker tells its callers apart. Default: 0, which the worker does not count.
    pub caller: u64,
}

impl Default for EncoderOptions {
    fn default() -> Self {
        Self {
            connections: NonZeroUsize::MIN,
            connect_timeout: Duration::from_secs(1),
            keep_alive_interval: Duration::from_secs(5),
            keep_alive_timeout: Duration::from_secs(2),
            max_message_bytes: 4 << 20,
            caller: 0,
        }
    }
}

/// Connections to one encoder worker. Each connects with its first call, and again with a later one if it broke. Cloning
/// is cheap and shares the connections.
#[derive(Debug, Clone)]
pub struct EncoderClient {
    address: String,
    caller: u64,
    connections: Arc<[Connection]>,
    /// Number of checks so far, by which connections take turns.
    checks: Arc<AtomicUsize>,
    created: Instant,
}

/// Number of one of a client's connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionId(usize);

/// One connection, its calls under way, and when it last answered.
#[derive(Debug)]
struct Connection {
    service: EncoderServiceClient<Channel>,
    calls: AtomicUsize,
    /// True once it had a call.
    is_used: AtomicBool,
    /// True from when it was silent while another one answered, until it answers.
    is_avoided: AtomicBool,
    /// Microseconds from the client's creation to the last answer; 0 before the first one.
    answered: AtomicU64,
}

/// Call under way on a connection. Dropping it takes the call off.
struct UnderWay<'a>(&'a Connection);

impl<'a> UnderWay<'a> {
    fn on(connection: &'a Connection) -> Self {
        connection.calls.fetch_add(1, Ordering::Relaxed);
        connection.is_used.store(true, Ordering::Relaxed);
        Self(connection)
    }

    fn service(&self) -> EncoderServiceClient<Channel> {
        self.0.service.clone()
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.calls.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Model and device of a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerDescription {
    /// Fingerprint of the model: its files and settings.
    pub fingerprint: String,
    /// Length of one embedding, in numbers.
    pub dimensions: usize,
    /// Device and number format, such as `cpu-int8` or `cuda:0-bf16`.
    pub backend: String,
}

/// Embedding of one text.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkerEmbedding {
    /// The vector, as the worker sent it.
    pub vector: Vec<f32>,
    /// True if the text was longer than the model's input and was cut.
    pub truncated: bool,
}

/// Embeddings of the texts of one call, in their order.
#[derive(Debug, Clone, PartialEq)]
pub struct EmbedAnswer {
    /// One embedding a text.
    pub embeddings: Vec<WorkerEmbedding>,
    /// Estimated tokens of the texts of other calls that wait or run at the worker.
    pub outstanding_tokens: u32,
    /// Callers with numbers that the worker has had of late, this one among them; 0 if it does not count them.
    pub callers: u32,
}

/// Flow and trace that a call belongs to.
#[derive(Debug, Clone, Copy, Default)]
pub struct EmbedOptions<'a> {
    /// True if embeddings may come in half precision, which is half the bytes. The cosine of each with what it was in f32
    /// is at least .9999.
    pub half_precision: bool,
    /// Flow of the texts. At the worker, texts wait for others of the same flow, but not for those of other flows. 0
    /// means that the call is a flow of its own.
    pub flow: u64,
    /// Trace context of the call. With `None`, the worker may begin a trace of its own.
    pub trace: Option<&'a TraceContext>,
    /// Connection that the call goes over. With `None`, it is the one with the fewest calls under way.
    pub over: Option<ConnectionId>,
}

/// Position of a call in a trace, in the format of W3C Trace Context.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TraceContext {
    /// Trace ID, ID of the calling span, and the sampling flag.
    pub traceparent: String,
    /// Data of tracing systems; may be empty.
    pub tracestate: String,
}

impl TraceContext {
    /// Returns true if the caller's part of the trace is sampled.
    #[must_use]
    pub fn is_sampled(&self) -> bool {
        let flags = self.traceparent.rsplit('-').next().unwrap_or_default();
        u8::from_str_radix(flags, 16).is_ok_and(|flags| flags & 1 == 1)
    }

    /// Returns a trace context that keeps the worker from sampling the call.
    #[must_use]
    pub fn not_sampled() -> Self {
        let traceparent = "00-00000000000000000000000000000001-0000000000000001-00".into();
        Self { traceparent, tracestate: String::new() }
    }
}

impl EncoderClient {
    /// Creates a client of the worker at `address`, such as `127.0.0.1:7072`. It connects with its first calls. Needs a
    /// tokio runtime.
    ///
    /// # Errors
    /// [`Error::Address`] if `address` is not `host:port`.
    pub fn lazy(address: &str, options: &EncoderOptions) -> Result<Self, Error> {
        let target = parse(address)?
            .connect_timeout(options.connect_timeout)
            .tcp_nodelay(true)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .http2_keep_alive_interval(options.keep_alive_interval)
            .keep_alive_timeout(options.keep_alive_timeout)
            .keep_alive_while_idle(true);
        let connection = || Connection {
            service: EncoderServiceClient::new(target.connect_lazy())
                .max_decoding_message_size(options.max_message_bytes),
            calls: AtomicUsize::new(0),
            is_used: AtomicBool::new(false),
            is_avoided: AtomicBool::new(false),
            answered: AtomicU64::new(0),
        };
        let connections = std::iter::repeat_with(connection).take(options.connections.get());
        Ok(Self {
            address: address.to_owned(),
            caller: options.caller,
            connections: connections.collect(),
            checks: Arc::default(),
            created: Instant::now(),
        })
    }

    /// Places a call on the connection `over`, or on the one with the fewest calls under way, the first of equals:
    /// further ones connect only when there are calls at the same time, and one that hangs gets few. One that is avoided
    /// gets none unless all are.
    fn place(&self, over: Option<ConnectionId>) -> UnderWay<'_> {
        let given = over.and_then(|over| self.connections.get(over.0));
        let chosen = given.or_else(|| self.connections.iter().min_by_key(|one| load(one)));
        UnderWay::on(chosen.expect("a client has at least one connection"))
    }

    /// Returns the connection that the next check goes over. Those that have had calls take turns, avoided ones too.
    #[must_use]
    pub fn next_in_turn(&self) -> ConnectionId {
        let used =
            |(_, connection): &(usize, &Connection)| connection.is_used.load(Ordering::Relaxed);
        let used: Vec<_> = self.connections.iter().enumerate().filter(used).collect();
        let turn = self.checks.fetch_add(1, Ordering::Relaxed);
        let chosen = turn.checked_rem(used.len()).map(|turn| used[turn].0);
        ConnectionId(chosen.unwrap_or_default())
    }

    /// Returns the connection other than `id` that a call would go over now; `None` if there is no other.
    #[must_use]
    pub fn another_than(&self, id: ConnectionId) -> Option<ConnectionId> {
        let others = self.connections.iter().enumerate().filter(|(number, _)| *number != id.0);
        others
            .min_by_key(|(_, connection)| load(connection))
            .map(|(number, _)| ConnectionId(number))
    }

    /// Keeps calls off a connection until it answers, if it has not answered since `since` and another one has. Returns
    /// true if calls were not kept off it before. Its calls under way stay.
    pub fn avoid_if_silent(&self, id: ConnectionId, since: Instant) -> bool {
        let since = self.micros(since);
        let has_answered =
            |connection: &Connection| connection.answered.load(Ordering::Relaxed) >= since;
        let Some(connection) = self.connections.get(id.0) else { return false };
        if has_answered(connection) || !self.connections.iter().any(has_answered) {
            return false;
        }
        !connection.is_avoided.swap(true, Ordering::Relaxed)
    }

    /// Returns the microseconds from the client's creation to an instant, at least 1.
    fn micros(&self, at: Instant) -> u64 {
        let micros = at.saturating_duration_since(self.created).as_micros();
        u64::try_from(micros).unwrap_or(u64::MAX).max(1)
    }

    fn note_answer(&self, connection: &Connection) {
        connection.answered.fetch_max(self.micros(Instant::now()), Ordering::Relaxed);
        connection.is_avoided.store(false, Ordering::Relaxed);
    }

    /// Returns the address of the worker.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Asks the worker for its model and device, over one of the connections.
    ///
    /// # Errors
    /// The call failed; see [`Error`].
    pub async fn describe(
        &self,
        within: Duration,
        over: ConnectionId,
    ) -> Result<WorkerDescription, Error> {
        let place = self.place(Some(over));
        let mut service = place.service();
        let request = timed(DescribeRequest {}, within);
        let answer = self.once("Describe", &place, within, service.describe(request)).await?;
        Ok(WorkerDescription {
            fingerprint: answer.fingerprint,
            dimensions: answer.dimensions as usize,
            backend: answer.backend,
        })
    }

    /// Embeds texts and returns one embedding per text, in their order. A worker with another fingerprint refuses.
    /// Dropping the future cancels the call at the worker.
    ///
    /// # Errors
    /// The call failed, see [`Error`]; or [`Error::Answer`] if the answer does not hold one embedding per text.
    pub async fn embed(
        &self,
        texts: Vec<String>,
        fingerprint: &str,
        within: Duration,
        EmbedOptions { half_precision, flow, trace, over }: EmbedOptions<'_>,
    ) -> Result<EmbedAnswer, Error> {
        let count = texts.len();
        let place = self.place(over);
        let mut service = place.service();
        let message = EmbedRequest {
            texts,
            fingerprint: fingerprint.to_owned(),
            flow,
            half_precision,
            caller: self.caller,
        };
        let call = service.embed(placed(timed(message, within), trace));
        let answer = self.once("Embed", &place, within, call).await?;
        let embeddings = read(&answer, count, fingerprint)
            .map_err(|problem| Error::Answer { address: self.address.clone(), problem })?;
        let EmbedResponse { outstanding_tokens, callers, .. } = answer;
        Ok(EmbedAnswer { embeddings, outstanding_tokens, callers })
    }

    /// Makes one attempt. The worker receives the deadline, and a worker that hangs is abandoned after it.
    async fn once<A>(
        &self,
        rpc: &'static str,
        place: &UnderWay<'_>,
        deadline: Duration,
        call: impl Future<Output = Result<Response<A>, Status>>,
    ) -> Result<A, Error> {
        let answer = match tokio::time::timeout(deadline, call).await {
            Ok(Ok(answer)) => Ok(answer.into_inner()),
            Ok(Err(status)) => Err(Error::from_status(rpc, &self.address, &status)),
            Err(_elapsed) => Err(Error::Deadline { rpc, address: self.address.clone(), deadline }),
        };
        if answer.as_ref().err().is_none_or(Error::is_answer) {
            self.note_answer(place.0);
        }
        answer
    }
}

/// Returns what a connection is chosen by, the smallest first.
fn load(connection: &Connection) -> (bool, usize) {
    let is_avoided = connection.is_avoided.load(Ordering::Relaxed);
    (is_avoided, connection.calls.load(Ordering::Relaxed))
}

/// Reads `host:port`.
fn parse(address: &str) -> Result<Endpoint, Error> {
    let wrong = |problem: String| Error::Address { address: address.to_owned(), problem };
    let target = Endpoint::from_shared(format!("http://{address}"))
        .map_err(|error| wrong(innermost(&error)))?;
    let uri = target.uri();
    if uri.host().is_none_or(str::is_empty) {
        return Err(wrong("it names no host".into()));
    }
    if uri.port_u16().is_none_or(|port| port == 0) {
        return Err(wrong("it names no port".into()));
    }
    if uri.path() != "/"
        || uri.query().is_some()
        || uri.authority().is_none_or(|it| it.as_str().contains('@'))
    {
        return Err(wrong("there is more in it".into()));
    }
    Ok(target)
}

fn timed<T>(message: T, within: Duration) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(within);
    request
}

fn placed<T>(mut request: Request<T>, trace: Option<&TraceContext>) -> Request<T> {
    let Some(trace) = trace else { return request };
    for (name, value) in [("traceparent", &trace.traceparent), ("tracestate", &trace.tracestate)] {
        // A value that can't be a header is left out.
        if !value.is_empty()
            && let Ok(value) = value.parse()
        {
            request.metadata_mut().insert(name, value);
        }
    }
    request
}

/// Reads the embeddings. The error says what is wrong with the answer.
fn read(
    answer: &EmbedResponse,
    count: usize,
    fingerprint: &str,
) -> Result<Vec<WorkerEmbedding>, String> {
    if answer.fingerprint != fingerprint {
        return Err("it is of another model".into());
    }
    let bytes = answer.embeddings.len();
    let of_a_number = if answer.half_precision { size_of::<f16>() } else { size_of::<f32>() };
    let width = answer.dimensions as usize * of_a_number;
    if width == 0 || width.checked_mul(count) != Some(bytes) {
        let dimensions = answer.dimensions;
        return Err(format!("{bytes} bytes are not {count} texts of {dimensions} numbers"));
    }
    if answer.truncated.len() != count {
        return Err(format!("`truncated` has {} values for {count} texts", answer.truncated.len()));
    }
    let vector: fn(&[u8]) -> Vec<f32> = if answer.half_precision { halves } else { singles };
    let vectors = answer.embeddings.chunks_exact(width).map(vector);
    let pairs = vectors.zip(&answer.truncated);
    Ok(pairs.map(|(vector, truncated)| WorkerEmbedding { vector, truncated: *truncated }).collect())
}

fn singles(bytes: &[u8]) -> Vec<f32> {
    let (numbers, _) = bytes.as_chunks();
    numbers.iter().map(|number| f32::from_le_bytes(*number)).collect()
}

fn halves(bytes: &[u8]) -> Vec<f32> {
    let (numbers, _) = bytes.as_chunks();
    let halves: Vec<_> = numbers.iter().map(|number| f16::from_le_bytes(*number)).collect();
    let mut vector = vec![0.0; halves.len()];
    halves.convert_to_f32_slice(&mut vector);
    vector
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_a_host_and_a_port() {
        for good in ["127.0.0.1:7072", "[::1]:7072", "worker.example:1"] {
            assert!(parse(good).is_ok(), "{good}");
        }
        for wrong in [
            "",
            "worker",
            "worker:0",
            ":7072",
            "https://worker:1",
            "worker:1/x",
            "a@worker:1",
            "worker:1?x",
        ] {
            let problem = parse(wrong).expect_err(wrong).to_string();
            assert!(problem.contains("expected host:port"), "{problem}");
        }
    }

    /// Returns a client with this number of connections to nobody.
    fn client_with(connections: usize) -> EncoderClient {
        let connections = NonZeroUsize::new(connections).expect("not 0");
        let options = EncoderOptions { connections, ..EncoderOptions::default() };
        EncoderClient::lazy("127.0.0.1:1", &options).expect("an address")
    }

    fn number_of(client: &EncoderClient, call: &UnderWay<'_>) -> Option<usize> {
        client.connections.iter().position(|connection| std::ptr::eq(connection, call.0))
    }

    #[tokio::test]
    async fn a_call_goes_to_the_connection_with_the_fewest_under_way() {
        let client = client_with(3);
        let place = || client.place(None);
        let number = |call: &UnderWay<'_>| number_of(&client, call);
        for _ in 0..3 {
            assert_eq!(number(&place()), Some(0), "calls one after the other share one");
        }
        let calls = [place(), place(), place(), place()];
        assert_eq!(calls.each_ref().map(number), [Some(0), Some(1), Some(2), Some(0)]);
        let [_first, second, _third, _fourth] = calls;
        drop(second);
        assert_eq!(number(&place()), Some(1));
        assert_eq!(number(&client.place(Some(ConnectionId(2)))), Some(2), "as it was told");
    }

    #[tokio::test]
    async fn checks_go_over_the_connections_with_calls_in_turn() {
        let client = client_with(3);
        let in_turn = || [(); 4].map(|()| client.next_in_turn().0);
        assert_eq!(in_turn(), [0; 4], "a further one is not opened for a check");
        drop([client.place(None), client.place(None)]);
        let mut seen = in_turn();
        seen.sort_unstable();
        assert_eq!(seen, [0, 0, 1, 1]);
    }

    #[tokio::test]
    async fn a_connection_that_is_silent_while_another_answers_is_avoided_until_it_answers() {
        let client = client_with(2);
        let [silent, other] = [ConnectionId(0), ConnectionId(1)];
        let number = || number_of(&client, &client.place(None));
        let since = client.created + Duration::from_secs(5);
        let answers = |id: ConnectionId, micros| {
            client.connections[id.0].answered.store(micros, Ordering::Relaxed);
        };
        assert!(!client.avoid_if_silent(silent, since), "no other has answered");
        answers(other, 4_999_999);
        assert!(!client.avoid_if_silent(silent, since), "the other answered before");
        answers(other, 5_000_000);
        assert!(!client.avoid_if_silent(other, since), "it has answered");
        assert_eq!(number(), Some(0));
        assert!(client.avoid_if_silent(silent, since));
        assert!(!client.avoid_if_silent(silent, since), "it is avoided already");
        let _busy = [client.place(None), client.place(None)];
        assert_eq!(number(), Some(1));
        assert_eq!(client.another_than(other), Some(silent), "there is no better one");
        client.note_answer(&client.connections[0]);
        assert_eq!(number(), Some(0));
    }

    #[tokio::test]
    async fn one_connection_alone_is_never_avoided() {
        let client = client_with(1);
        assert_eq!(client.another_than(client.next_in_turn()), None);
        assert!(!client.avoid_if_silent(ConnectionId(0), client.created));
    }

    fn answer(numbers: &[f32], dimensions: u32, truncated: usize) -> EmbedResponse {
        EmbedResponse {
            embeddings: numbers.iter().flat_map(|number| number.to_le_bytes()).collect(),
            dimensions,
            truncated: vec![false; truncated],
            fingerprint: "f".into(),
            ..Default::default()
        }
    }

    #[test]
    fn numbers_are_read_text_by_text() {
        let read = read(&answer(&[1.0, 2.0, 3.0, 4.0], 2, 2), 2, "f").expect("a sound answer");
        let vectors: Vec<_> = read.into_iter().map(|one| one.vector).collect();
        assert_eq!(vectors, [[1.0, 2.0], [3.0, 4.0]]);
    }

    #[test]
    fn numbers_in_half_precision_are_read_text_by_text() {
        let numbers = [1.0, -0.5, 0.25, 0.0];
        let halves = EmbedResponse {
            embeddings: numbers
                .iter()
                .flat_map(|number| f16::from_f32(*number).to_le_bytes())
                .collect(),
            half_precision: true,
            ..answer(&[], 2, 2)
        };
        let vectors: Vec<_> = read(&halves, 2, "f")
            .expect("a sound answer")
            .into_iter()
            .map(|one| one.vector)
            .collect();
        assert_eq!(vectors, [[1.0, -0.5], [0.25, 0.0]]);
        let singles = EmbedResponse { half_precision: true, ..answer(&numbers, 2, 2) };
        assert!(read(&singles, 2, "f").is_err(), "twice the bytes");
    }

    #[test]
    fn a_call_is_placed_in_its_trace() {
        let headers = |trace: Option<&TraceContext>| {
            let metadata = placed(Request::new(()), trace).into_parts().0;
            ["traceparent", "tracestate"].map(|name| metadata.get(name).cloned())
        };
        assert_eq!(headers(None), [None, None]);
        let [parent, state] = headers(Some(&TraceContext::not_sampled()));
        assert!(parent.is_some_and(|parent| parent.as_bytes().ends_with(b"-00")));
        assert_eq!(state, None);
        let odd = TraceContext { traceparent: "\n".into(), tracestate: "a=b".into() };
        let [parent, state] = headers(Some(&odd));
        assert!(parent.is_none() && state.is_some_and(|state| state == "a=b"));
    }

    #[test]
    fn an_answer_of_another_shape_is_refused() {
        for (answer, count, fingerprint) in [
            (answer(&[1.0, 2.0, 3.0], 2, 2), 2, "f"),
            (answer(&[], 0, 1), 1, "f"),
            (answer(&[1.0, 2.0], 2, 1), 2, "f"),
            (answer(&[1.0, 2.0], 2, 0), 1, "f"),
            (answer(&[1.0, 2.0], 2, 1), 1, "g"),
            (answer(&[1.0], u32::MAX, 1), usize::MAX, "f"),
        ] {
            assert!(read(&answer, count, fingerprint).is_err(), "{answer:?}");
        }
    }
}
