//! Small encoder worker on a thread of its own. It can be made to misbehave, killed with all its connections, and
//! started again at the same address.

use std::collections::HashSet;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::Server;
use tonic::{Request, Response, Status};
use toolgate_proto::v1::encoder_service_server::{EncoderService, EncoderServiceServer};
use toolgate_proto::v1::{DescribeRequest, DescribeResponse, EmbedRequest, EmbedResponse};

use crate::here::{DIMENSIONS, FINGERPRINT, embedding};

/// Behaviour of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Works,
    /// Answers correctly after this many milliseconds.
    Slow(u64),
    /// Never answers.
    Hangs,
    /// Never answers over the connection that the first request came over, and answers over others.
    HangsOverFirst,
    /// Answers traffic, which is texts that begin with `hold`, only as [`Seen::allowed`] has permits. It refuses requests
    /// with a text that ends with `refused`, and fails those with one that ends with `fail`.
    Holds,
    /// Answers texts that begin with `half` in half precision, where the caller reads it, with a vector along the first
    /// axis.
    Halves,
    /// Answers with embeddings of other texts.
    Wrong,
    /// Answers wrongly only to traffic: texts that begin with `lie to`.
    WrongToTraffic,
    /// Answers with NaN.
    NotANumber,
    /// Answers with fewer embeddings than texts.
    TooFew,
    /// Fails.
    Fails,
    /// Refuses because it is full.
    Full,
}

/// Requests that a worker has received.
#[derive(Debug)]
pub struct Seen {
    /// Permits of requests to a worker that holds them.
    pub allowed: Semaphore,
    /// Tokens of other servers that it says it has.
    pub outstanding: AtomicU32,
    /// Servers that it says share it.
    pub callers: AtomicU32,
    /// Numbers of the servers that requests came from.
    pub callers_seen: Mutex<HashSet<u64>>,
    /// Texts of each Embed request, including canaries.
    pub requests: Mutex<Vec<Vec<String>>>,
    /// Connections that requests of traffic came over: those with texts that begin with `hold`.
    pub connections: Mutex<HashSet<SocketAddr>>,
    /// Connection that the first request came over.
    pub first_connection: Mutex<Option<SocketAddr>>,
    /// Number of requests over the first connection that were left unanswered.
    pub hung: AtomicUsize,
    /// Number of requests that were cancelled before the answer.
    pub cancelled: AtomicUsize,
    at_once: AtomicUsize,
    /// Maximum number of requests at once.
    pub at_once_max: AtomicUsize,
}

impl Default for Seen {
    fn default() -> Self {
        Self {
            allowed: Semaphore::new(0),
            outstanding: AtomicU32::default(),
            callers: AtomicU32::default(),
            callers_seen: Mutex::default(),
            requests: Mutex::default(),
            connections: Mutex::default(),
            first_connection: Mutex::default(),
            hung: AtomicUsize::default(),
            cancelled: AtomicUsize::default(),
            at_once: AtomicUsize::default(),
            at_once_max: AtomicUsize::default(),
        }
    }
}

impl Seen {
    /// Notes the connection of a request of traffic.
    fn connection_of(&self, request: &Request<EmbedRequest>) {
        if request.get_ref().texts[0].starts_with("hold") {
            self.connections.lock().extend(request.remote_addr());
        }
    }

    /// Waits without end if the request came over the first connection.
    async fn hang_over_first<T>(&self, request: &Request<T>) {
        if *self.first_connection.lock() == request.remote_addr() {
            self.hung.fetch_add(1, Ordering::SeqCst);
            std::future::pending::<()>().await;
        }
    }
}

#[derive(Clone)]
struct Service {
    mode: Arc<Mutex<Mode>>,
    seen: Arc<Seen>,
    backend: String,
    fingerprint: String,
}

pub struct Worker {
    pub address: SocketAddr,
    pub seen: Arc<Seen>,
    service: Service,
    runtime: Option<Runtime>,
}

/// Request in progress. It counts itself, and records if its caller stops waiting.
struct Under<'a> {
    seen: &'a Seen,
    answered: bool,
}

impl<'a> Under<'a> {
    fn way(seen: &'a Seen, texts: &[String]) -> Self {
        seen.requests.lock().push(texts.to_vec());
        let at_once = seen.at_once.fetch_add(1, Ordering::SeqCst) + 1;
        seen.at_once_max.fetch_max(at_once, Ordering::SeqCst);
        Self { seen, answered: false }
    }
}

impl Drop for Under<'_> {
    fn drop(&mut self) {
        self.seen.at_once.fetch_sub(1, Ordering::SeqCst);
        if !self.answered {
            self.seen.cancelled.fetch_add(1, Ordering::SeqCst);
        }
    }
}

impl Worker {
    pub fn start(backend: &str) -> Self {
        Self::with_model(backend, FINGERPRINT)
    }

    pub fn with_model(backend: &str, fingerprint: &str) -> Self {
        let seen = Arc::<Seen>::default();
        let service = Service {
            mode: Arc::new(Mutex::new(Mode::Works)),
            seen: Arc::clone(&seen),
            backend: backend.to_owned(),
            fingerprint: fingerprint.to_owned(),
        };
        let listener = StdListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let mut worker = Self { address, seen, service, runtime: None };
        worker.serve(listener);
        worker
    }

    pub fn set(&self, mode: Mode) {
        *self.service.mode.lock() = mode;
    }

    /// Returns the number of texts in each request since the last call, including canaries.
    pub fn take_requests(&self) -> Vec<usize> {
        self.take_texts().iter().map(Vec::len).collect()
    }

    /// Returns the texts of each request since the last call, including canaries.
    pub fn take_texts(&self) -> Vec<Vec<String>> {
        std::mem::take(&mut *self.seen.requests.lock())
    }

    /// Closes every socket in the middle of any traffic. They are closed when it returns.
    pub fn kill(&mut self) {
        let runtime = self.runtime.take();
        // A runtime must not be waited for on a thread of another one.
        std::thread::spawn(move || drop(runtime)).join().expect("it ends");
    }

    /// Serves again at the same address.
    pub fn revive(&mut self) {
        let listener = std::iter::repeat_with(|| StdListener::bind(self.address))
            .inspect(|bound| {
                if bound.is_err() {
                    std::thread::sleep(Duration::from_millis(20));
                }
            })
            .find_map(Result::ok);
        self.serve(listener.expect("the iterator does not end"));
    }

    fn serve(&mut self, listener: StdListener) {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        listener.set_nonblocking(true).expect("a socket for tokio");
        let service = EncoderServiceServer::new(self.service.clone());
        runtime.spawn(async move {
            let listener = TcpListener::from_std(listener).expect("a listener");
            let incoming = TcpListenerStream::new(listener);
            let served = Server::builder().add_service(service).serve_with_incoming(incoming);
            served.await.expect("serving");
        });
        self.runtime = Some(runtime);
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Service {
    fn mode(&self) -> Mode {
        *self.mode.lock()
    }

    /// Returns an answer to `texts` texts in f32.
    fn answer(&self, texts: usize, vectors: &[Vec<f32>]) -> EmbedResponse {
        EmbedResponse {
            embeddings: vectors.iter().flatten().flat_map(|value| value.to_le_bytes()).collect(),
            dimensions: u32::try_from(DIMENSIONS).expect("small"),
            token_counts: vec![3; texts],
            truncated: vec![false; texts],
            fingerprint: self.fingerprint.clone(),
            outstanding_tokens: self.seen.outstanding.load(Ordering::SeqCst),
            half_precision: false,
            callers: self.seen.callers.load(Ordering::SeqCst),
        }
    }
}

/// Returns the unit vector along the first axis in half precision.
fn half_of_first_axis() -> Vec<u8> {
    let mut bytes = vec![0; 2 * DIMENSIONS];
    bytes[..2].copy_from_slice(&0x3c00_u16.to_le_bytes());
    bytes
}

#[tonic::async_trait]
impl EncoderService for Service {
    async fn embed(
        &self,
        request: Request<EmbedRequest>,
    ) -> Result<Response<EmbedResponse>, Status> {
        self.seen.connection_of(&request);
        if self.mode() == Mode::HangsOverFirst {
            self.seen.hang_over_first(&request).await;
        }
        let EmbedRequest { texts, fingerprint, half_precision, caller, .. } = request.into_inner();
        self.seen.callers_seen.lock().insert(caller);
        let mut under_way = Under::way(&self.seen, &texts);
        if fingerprint != self.fingerprint {
            under_way.answered = true;
            return Err(Status::failed_precondition("another model"));
        }
        let mode = self.mode();
        let mut vectors: Vec<Vec<f32>> = texts.iter().map(|text| embedding(text)).collect();
        match mode {
            Mode::Works | Mode::HangsOverFirst => {}
            Mode::Slow(millis) => tokio::time::sleep(Duration::from_millis(millis)).await,
            Mode::Hangs => std::future::pending().await,
            Mode::Holds if texts[0].starts_with("hold") => {
                self.seen.allowed.acquire().await.expect("open").forget();
            }
            Mode::Holds | Mode::Halves => {}
            Mode::Wrong => vectors = vec![embedding("something else"); texts.len()],
            Mode::WrongToTraffic => {
                let lied_to = texts.iter().zip(&mut vectors);
                let lied_to = lied_to.filter(|(text, _)| text.starts_with("lie to"));
                lied_to.for_each(|(_, vector)| *vector = embedding("something else"));
            }
            Mode::NotANumber => vectors = vec![vec![f32::NAN; DIMENSIONS]; texts.len()],
            Mode::TooFew => drop(vectors.pop()),
            Mode::Fails | Mode::Full => {}
        }
        under_way.answered = true;
        match mode {
            Mode::Fails => return Err(Status::internal("told to fail")),
            Mode::Full => return Err(Status::resource_exhausted("told to be full")),
            Mode::Holds if texts.iter().any(|text| text.ends_with("refused")) => {
                return Err(Status::invalid_argument("told to refuse it"));
            }
            Mode::Holds if texts.iter().any(|text| text.ends_with("fail")) => {
                return Err(Status::internal("told to fail"));
            }
            _ => {}
        }
        let answer = self.answer(texts.len(), &vectors);
        if half_precision && mode == Mode::Halves && texts[0].starts_with("half") {
            let embeddings = half_of_first_axis().repeat(texts.len()).into();
            return Ok(Response::new(EmbedResponse { embeddings, half_precision, ..answer }));
        }
        Ok(Response::new(answer))
    }

    async fn describe(
        &self,
        request: Request<DescribeRequest>,
    ) -> Result<Response<DescribeResponse>, Status> {
        let first = *self.seen.first_connection.lock();
        *self.seen.first_connection.lock() = first.or(request.remote_addr());
        if self.mode() == Mode::HangsOverFirst {
            self.seen.hang_over_first(&request).await;
        }
        Ok(Response::new(DescribeResponse {
            model: "fake".into(),
            fingerprint: self.fingerprint.clone(),
            dimensions: u32::try_from(DIMENSIONS).expect("small"),
            max_tokens: 256,
            backend: self.backend.clone(),
        }))
    }
}
