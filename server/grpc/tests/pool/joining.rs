//! Tests of intents that wait together: a worker that holds its answers decides when, and no time does.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use toolgate_core::error::Error;
use toolgate_routing::encoder::{Embedded, Encoder as _, Flow};

use crate::here::embedding;
use crate::setup::{SOON, Setup, config};
use crate::worker::{Mode, Worker};

type Call<'a> = Pin<Box<dyn Future<Output = Result<Vec<Embedded>, Error>> + Send + 'a>>;

/// Creates a pool over one worker that holds its answers, which it has all the time in the world for.
async fn holding(backend: &str) -> (Worker, Setup) {
    let worker = Worker::start(backend);
    let mut config = config(&[&worker]);
    config.attempt_timeout = SOON * 10;
    // Checks answer at once; their rounds must not fill the list of requests.
    config.health_interval = Duration::from_millis(500);
    let setup = Setup::with(config, 1, true).await;
    worker.set(Mode::Holds);
    (worker, setup)
}

/// Begins a call and returns it once it is sent or waits.
fn begin<'a>(setup: &'a Setup, text: &str, flow: Flow) -> Call<'a> {
    let mut call = setup.pool.embed(vec![text.to_owned()], flow, None);
    let polled = call.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(polled, Poll::Pending), "{text} has no answer yet");
    call
}

/// Ends the calls, checks each answer, and returns the number of texts in each request to the worker.
async fn end(calls: Vec<(String, Call<'_>)>, worker: &Worker) -> Vec<usize> {
    worker.seen.allowed.add_permits(1_000);
    for (text, call) in calls {
        let embedded = call.await.expect("embedded");
        assert_eq!(embedded.len(), 1);
        assert_eq!(embedded[0].vector, embedding(&text), "{text}");
    }
    let requests = worker.take_texts().into_iter();
    let mut sizes: Vec<_> =
        requests.filter(|texts| texts[0].starts_with("hold")).map(|texts| texts.len()).collect();
    sizes.sort_unstable();
    sizes
}

fn begin_all(setup: &Setup, count: usize, flow: Flow) -> Vec<(String, Call<'_>)> {
    let texts = (0..count).map(|i| format!("hold {i}"));
    texts.map(|text| (text.clone(), begin(setup, &text, flow))).collect()
}

#[tokio::test]
async fn intents_that_wait_go_to_a_gpu_in_one_request() {
    let (worker, setup) = holding("cuda:0-bf16").await;
    let calls = begin_all(&setup, 102, Flow::new(7));
    assert_eq!(end(calls, &worker).await, [1, 1, 36, 64]);
    let joined = setup.metric("toolgate_embed_joined_total");
    assert!((joined - 100.0).abs() < 1e-9, "{joined}");
    let answered = setup.metric("toolgate_embed_answered_total{tier=\"gpu\"}");
    assert!((answered - 102.0).abs() < 1e-9, "{answered}");
}

#[tokio::test]
async fn a_cpu_gets_no_more_at_once_than_it_has_time_for() {
    let (worker, setup) = holding("cpu-int8").await;
    let calls = begin_all(&setup, 20, Flow::new(7));
    assert_eq!(end(calls, &worker).await, [1, 1, 2, 8, 8]);
}

#[tokio::test]
async fn tenants_and_registrations_are_not_joined() {
    let (worker, setup) = holding("cuda:0-bf16").await;
    let mut calls = begin_all(&setup, 2, Flow::new(7));
    calls.extend(begin_all(&setup, 2, Flow::new(8)));
    calls.extend(begin_all(&setup, 5, Flow::yielding(7)));
    calls.extend(begin_all(&setup, 5, Flow::ALONE));
    assert_eq!(end(calls, &worker).await, [1; 14]);
}

#[tokio::test]
async fn a_caller_who_leaves_takes_its_text_along() {
    let (worker, setup) = holding("cuda:0-bf16").await;
    let mut calls = begin_all(&setup, 12, Flow::new(7));
    drop(calls.drain(3..9));
    assert_eq!(end(calls, &worker).await, [1, 1, 4]);
}
