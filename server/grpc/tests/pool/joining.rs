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

/// Requests that are under way before any are joined.
const PLACES: usize = 8;

/// A worker that holds its answers, the pool over it, and the calls that it has or that wait.
struct Holding {
    worker: Worker,
    setup: Setup,
    calls: Vec<Call>,
}

struct Call {
    texts: Vec<String>,
    embedded: Pin<Box<dyn Future<Output = Result<Vec<Embedded>, Error>> + Send>>,
}

impl Holding {
    /// Starts a worker and gives it as many requests as it may have, so that what comes next waits.
    async fn start(backend: &str) -> Self {
        let worker = Worker::start(backend);
        let mut config = config(&[&worker]);
        config.attempt_timeout = SOON * 10;
        // Checks answer at once; their rounds must not fill the list of requests.
        config.health_interval = Duration::from_millis(500);
        let setup = Setup::with(config, 1, true).await;
        worker.set(Mode::Holds);
        let mut holding = Self { worker, setup, calls: Vec::new() };
        for number in 0..PLACES {
            holding.begin(&[&format!("hold first {number}")], Flow::new(7));
            holding.until_received(number + 1).await;
        }
        holding
    }

    /// Begins a call, which is sent or waits from then on.
    fn begin(&mut self, texts: &[&str], flow: Flow) {
        let pool = Arc::clone(&self.setup.pool);
        let texts: Vec<_> = texts.iter().map(ToString::to_string).collect();
        let asked = texts.clone();
        let embedded = Box::pin(async move { pool.embed(asked, flow, None).await });
        let mut call = Call { texts, embedded };
        let polled = call.embedded.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(polled, Poll::Pending), "{:?} have no answer yet", call.texts);
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
        for Call { texts, embedded } in self.calls.drain(..) {
            let embedded = embedded.await.expect("embedded");
            let vectors: Vec<_> = embedded.into_iter().map(|one| one.vector).collect();
            let expected: Vec<_> = texts.iter().map(|text| embedding(text)).collect();
            assert_eq!(vectors, expected, "{texts:?}");
        }
        self.received()
    }
}

/// Returns the numbers of texts of requests, in order, without those that were sent first.
fn sizes(requests: &[Vec<String>]) -> Vec<usize> {
    let mut sizes: Vec<_> = requests[PLACES..].iter().map(Vec::len).collect();
    sizes.sort_unstable();
    sizes
}

#[tokio::test]
async fn intents_that_wait_go_to_a_gpu_in_one_request() {
    let mut holding = Holding::start("cuda:0-bf16").await;
    for number in 0..100 {
        holding.begin(&[&format!("hold {number}")], Flow::new(number % 10));
    }
    assert_eq!(sizes(&holding.end().await), [36, 64]);
    let joined = holding.setup.metric("toolgate_embed_joined_total");
    assert!((joined - 100.0).abs() < 1e-9, "{joined}");
    let answered = holding.setup.metric("toolgate_embed_answered_total{tier=\"gpu\"}");
    assert!((answered - 108.0).abs() < 1e-9, "{answered}");
    // Those that were sent at once count as well.
    let waited = holding.setup.metric("toolgate_embed_join_wait_seconds_count{end=\"sent\"}");
    assert!((waited - 108.0).abs() < 1e-9, "{waited}");
    assert!(holding.setup.metric("toolgate_embed_join_wait_seconds_sum{end=\"sent\"}") > 0.0);
}

#[tokio::test]
async fn long_texts_share_a_request_with_few() {
    let mut holding = Holding::start("cuda:0-bf16").await;
    let long = |number: u64| format!("hold {number} {}", "long ".repeat(2_000));
    for number in 0..10 {
        holding.begin(&[&long(number)], Flow::new(7));
    }
    let requests = holding.end().await;
    assert_eq!(sizes(&requests), [2, 4, 4], "of 512 tokens each");
}

#[tokio::test]
async fn a_request_of_long_texts_goes_alone_and_keeps_its_turn() {
    let mut holding = Holding::start("cuda:0-bf16").await;
    let long = format!("hold {}", "long ".repeat(2_000));
    holding.begin(&["hold before"], Flow::new(7));
    holding.begin(&[long.as_str(); 8], Flow::new(7));
    for number in 0..3 {
        holding.begin(&[&format!("hold {number}")], Flow::new(7));
    }
    assert_eq!(sizes(&holding.end().await), [1, 3, 8]);
}

#[tokio::test]
async fn each_caller_gets_the_embeddings_of_its_texts() {
    let mut holding = Holding::start("cuda:0-bf16").await;
    holding.begin(&["hold a", "hold b", "hold c"], Flow::new(7));
    holding.begin(&["hold d"], Flow::new(8));
    holding.begin(&["hold e", "hold f"], Flow::new(7));
    // Nine texts are a batch by themselves.
    holding.begin(&["hold 9"; 9], Flow::new(7));
    assert_eq!(sizes(&holding.end().await), [6, 9]);
}

#[tokio::test]
async fn tenants_take_turns_in_what_waits() {
    let mut holding = Holding::start("cuda:0-bf16").await;
    for number in 0..200 {
        holding.begin(&[&format!("hold many {number}")], Flow::new(7));
    }
    holding.begin(&["hold one"], Flow::new(8));
    holding.worker.seen.allowed.add_permits(1);
    holding.until_received(PLACES + 1).await;
    let next = holding.received().swap_remove(PLACES);
    assert_eq!(next.len(), 64);
    assert!(next.contains(&"hold one".to_owned()), "{next:?}");
    holding.end().await;
}

#[tokio::test]
async fn a_cpu_gets_each_request_by_itself() {
    let mut holding = Holding::start("cpu-int8").await;
    for number in 0..20 {
        holding.begin(&[&format!("hold {number}")], Flow::new(7));
    }
    assert_eq!(sizes(&holding.end().await), [1; 20]);
}

#[tokio::test]
async fn registrations_are_not_joined() {
    let mut holding = Holding::start("cuda:0-bf16").await;
    for number in 0..5 {
        holding.begin(&[&format!("hold {number}")], Flow::yielding(7));
    }
    assert_eq!(sizes(&holding.end().await), [1; 5]);
}

#[tokio::test]
async fn a_caller_who_leaves_takes_its_text_along() {
    let mut holding = Holding::start("cuda:0-bf16").await;
    for number in 0..10 {
        holding.begin(&[&format!("hold {number}")], Flow::new(7));
    }
    drop(holding.calls.drain(PLACES + 2..PLACES + 8));
    let waited = |holding: &Holding, end: &str| {
        let name = format!("toolgate_embed_join_wait_seconds_count{{end=\"{end}\"}}");
        holding.setup.metric(&name)
    };
    let left = waited(&holding, "left");
    assert!((left - 6.0).abs() < 1e-9, "who leaves while it waits has waited: {left}");
    assert_eq!(sizes(&holding.end().await), [4]);
    for (end, expected) in [("sent", 12.0), ("left", 6.0)] {
        let counted = waited(&holding, end);
        assert!((counted - expected).abs() < 1e-9, "{end}: {counted}");
    }
}

#[tokio::test]
async fn a_request_whose_callers_have_all_left_is_cancelled() {
    let mut holding = Holding::start("cuda:0-bf16").await;
    for number in 0..3 {
        holding.begin(&[&format!("hold {number}")], Flow::new(7));
    }
    holding.worker.seen.allowed.add_permits(PLACES);
    holding.until_received(PLACES + 1).await;
    drop(holding.calls.drain(PLACES..));
    let cancelled = |holding: &Holding| holding.worker.seen.cancelled.load(Ordering::SeqCst);
    holding.until(|holding| cancelled(holding) >= 1).await;
    holding.begin(&["hold later"], Flow::new(7));
    assert_eq!(sizes(&holding.end().await), [1, 3]);
}

#[tokio::test]
async fn a_text_that_is_refused_fails_no_other() {
    let mut holding = Holding::start("cuda:0-bf16").await;
    for number in 0..4 {
        holding.begin(&[&format!("hold {number}")], Flow::new(7));
    }
    holding.begin(&["hold and be refused"], Flow::new(8));
    assert_eq!(sizes(&holding.end().await), [1, 1, 2, 3, 5], "each half by itself");
    assert_eq!(holding.setup.here.take_count(), 1, "this process embeds what the worker refuses");
    let answered = holding.setup.metric("toolgate_embed_answered_total{tier=\"gpu\"}");
    assert!((answered - 12.0).abs() < 1e-9, "{answered}");
}

#[tokio::test]
async fn a_joined_request_that_fails_is_one_failure_of_the_worker() {
    let mut holding = Holding::start("cuda:0-bf16").await;
    for number in 0..9 {
        holding.begin(&[&format!("hold {number}")], Flow::new(7));
    }
    holding.begin(&["hold and fail"], Flow::new(7));
    assert_eq!(sizes(&holding.end().await), [10]);
    assert_eq!(holding.setup.here.take_count(), 10, "this process embeds them");
    assert_eq!(holding.setup.pool.workers_in_use(), 1);
    let worker = holding.worker.address;
    let labels = format!("{{worker=\"{worker}\",result=\"broken\"}}");
    let ejections = format!("toolgate_encoder_worker_ejections_total{labels}");
    let ejected = holding.setup.metric(&ejections);
    assert!(ejected.abs() < 1e-9, "{ejected}");
}

#[tokio::test]
async fn a_worker_that_goes_away_takes_no_call_along() {
    let mut holding = Holding::start("cuda:0-bf16").await;
    for number in 0..4 {
        holding.begin(&[&format!("hold {number}")], Flow::new(7));
    }
    holding.worker.kill();
    holding.end().await;
    assert_eq!(holding.setup.here.take_count(), PLACES + 4, "this process embeds them");
}
