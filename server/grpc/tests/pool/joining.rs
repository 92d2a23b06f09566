//! Tests of short requests that wait together. A worker that holds its answers decides when, and no time does.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use toolgate_core::error::Error;
use toolgate_routing::encoder::{Embedded, Encoder as _, Flow};

use crate::here::embedding;
use crate::setup::{SOON, Setup, config};
use crate::worker::{Mode, Worker};

/// A worker that holds its answers, the pool over it, and the calls that it has or that wait.
struct Holding {
    worker: Worker,
    setup: Setup,
    calls: Vec<Call>,
}

struct Call {
    text: String,
    embedded: Pin<Box<dyn Future<Output = Result<Vec<Embedded>, Error>> + Send>>,
}

impl Holding {
    /// Starts a worker and gives it two requests, so that what comes next waits.
    async fn start(backend: &str) -> Self {
        let worker = Worker::start(backend);
        let mut config = config(&[&worker]);
        config.attempt_timeout = SOON * 10;
        // Checks answer at once; their rounds must not fill the list of requests.
        config.health_interval = Duration::from_millis(500);
        let setup = Setup::with(config, 1, true).await;
        worker.set(Mode::Holds);
        let mut holding = Self { worker, setup, calls: Vec::new() };
        for number in 0..2 {
            holding.begin(format!("hold first {number}"), Flow::new(7));
            holding.until_received(number + 1).await;
        }
        holding
    }

    /// Begins a call, which is sent or waits from then on.
    fn begin(&mut self, text: String, flow: Flow) {
        let pool = Arc::clone(&self.setup.pool);
        let texts = vec![text.clone()];
        let embedded = Box::pin(async move { pool.embed(texts, flow, None).await });
        let mut call = Call { text, embedded };
        let polled = call.embedded.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(polled, Poll::Pending), "{} has no answer yet", call.text);
        self.calls.push(call);
    }

    /// Returns the texts of each request to the worker but its checks.
    fn received(&self) -> Vec<Vec<String>> {
        let requests = self.worker.seen.requests.lock();
        requests.iter().filter(|texts| texts[0].starts_with("hold")).cloned().collect()
    }

    async fn until_received(&self, requests: usize) {
        self.until(|holding| holding.received().len() == requests).await;
    }

    async fn until(&self, is_so: impl Fn(&Self) -> bool) {
        let waiting = async {
            while !is_so(self) {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(SOON, waiting).await.expect("it comes");
    }

    /// Ends the calls, checks each answer, and returns the texts of each request to the worker.
    async fn end(&mut self) -> Vec<Vec<String>> {
        self.worker.seen.allowed.add_permits(1_000);
        for Call { text, embedded } in self.calls.drain(..) {
            let embedded = embedded.await.expect("embedded");
            assert_eq!(embedded.len(), 1);
            assert_eq!(embedded[0].vector, embedding(&text), "{text}");
        }
        self.received()
    }
}

/// Returns the numbers of texts of requests, in order.
fn sizes(requests: &[Vec<String>]) -> Vec<usize> {
    let mut sizes: Vec<_> = requests.iter().map(Vec::len).collect();
    sizes.sort_unstable();
    sizes
}

#[tokio::test]
async fn intents_that_wait_go_to_a_gpu_in_one_request() {
    let mut holding = Holding::start("cuda:0-bf16").await;
    for number in 0..100 {
        holding.begin(format!("hold {number}"), Flow::new(number % 10));
    }
    assert_eq!(sizes(&holding.end().await), [1, 1, 36, 64]);
    let joined = holding.setup.metric("toolgate_embed_joined_total");
    assert!((joined - 100.0).abs() < 1e-9, "{joined}");
    let answered = holding.setup.metric("toolgate_embed_answered_total{tier=\"gpu\"}");
    assert!((answered - 102.0).abs() < 1e-9, "{answered}");
}

#[tokio::test]
async fn tenants_take_turns_in_what_waits() {
    let mut holding = Holding::start("cuda:0-bf16").await;
    for number in 0..200 {
        holding.begin(format!("hold many {number}"), Flow::new(7));
    }
    holding.begin("hold one".to_owned(), Flow::new(8));
    let requests = holding.end().await;
    let place = requests.iter().position(|texts| texts.contains(&"hold one".to_owned()));
    let joined = requests.iter().position(|texts| texts.len() == 64);
    assert_eq!(place, joined, "the one text goes in the first request");
}

#[tokio::test]
async fn a_cpu_gets_each_request_by_itself() {
    let mut holding = Holding::start("cpu-int8").await;
    for number in 0..20 {
        holding.begin(format!("hold {number}"), Flow::new(7));
    }
    assert_eq!(sizes(&holding.end().await), [1; 22]);
}

#[tokio::test]
async fn registrations_are_not_joined() {
    let mut holding = Holding::start("cuda:0-bf16").await;
    for number in 0..5 {
        holding.begin(format!("hold {number}"), Flow::yielding(7));
    }
    assert_eq!(sizes(&holding.end().await), [1; 7]);
}

#[tokio::test]
async fn a_caller_who_leaves_takes_its_text_along() {
    let mut holding = Holding::start("cuda:0-bf16").await;
    for number in 0..10 {
        holding.begin(format!("hold {number}"), Flow::new(7));
    }
    drop(holding.calls.drain(4..10));
    assert_eq!(sizes(&holding.end().await), [1, 1, 4]);
}

#[tokio::test]
async fn a_request_whose_callers_have_all_left_is_cancelled() {
    let mut holding = Holding::start("cuda:0-bf16").await;
    for number in 0..3 {
        holding.begin(format!("hold {number}"), Flow::new(7));
    }
    holding.worker.seen.allowed.add_permits(2);
    holding.until_received(3).await;
    holding.calls.clear();
    let cancelled = |holding: &Holding| holding.worker.seen.cancelled.load(Ordering::SeqCst);
    holding.until(|holding| cancelled(holding) >= 1).await;
    holding.begin("hold later".to_owned(), Flow::new(7));
    assert_eq!(sizes(&holding.end().await), [1, 1, 1, 3]);
}

#[tokio::test]
async fn a_text_that_is_refused_fails_no_other() {
    let mut holding = Holding::start("cuda:0-bf16").await;
    for number in 0..4 {
        holding.begin(format!("hold {number}"), Flow::new(7));
    }
    holding.begin("hold and be refused".to_owned(), Flow::new(8));
    assert_eq!(sizes(&holding.end().await), [1, 1, 1, 1, 1, 1, 1, 5]);
    assert_eq!(holding.setup.here.take_count(), 1, "this process embeds what the worker refuses");
    let answered = holding.setup.metric("toolgate_embed_answered_total{tier=\"gpu\"}");
    assert!((answered - 6.0).abs() < 1e-9, "{answered}");
}

#[tokio::test]
async fn a_worker_that_fails_fails_the_joined_ones_alike() {
    let mut holding = Holding::start("cuda:0-bf16").await;
    for number in 0..4 {
        holding.begin(format!("hold {number}"), Flow::new(7));
    }
    holding.worker.kill();
    holding.worker.seen.requests.lock().clear();
    assert_eq!(sizes(&holding.end().await), [0; 0]);
    assert_eq!(holding.setup.here.take_count(), 6, "this process embeds them");
}
