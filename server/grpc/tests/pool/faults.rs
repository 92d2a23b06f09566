//! Tests of workers that die, hang, fail, are full or return invalid answers. No caller's request fails, traffic moves
//! to other workers, and it comes back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use toolgate_config::PoolConfig;
use toolgate_core::error::Error;
use toolgate_routing::encoder::{Encoder as _, Flow};

use crate::here::embedding;
use crate::setup::{SOON, Setup, config, patient};
use crate::worker::{Mode, Worker};

/// Traffic from several tasks, each calling in sequence until stopped. Counts calls and failures.
struct Traffic {
    end: Arc<AtomicBool>,
    calls: Arc<AtomicUsize>,
    failures: Arc<AtomicUsize>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

impl Traffic {
    fn start(setup: &Arc<Setup>) -> Self {
        let end = Arc::default();
        let calls = Arc::default();
        let failures = Arc::default();
        let mut traffic = Self { end, calls, failures, tasks: Vec::new() };
        for task in 0..8 {
            let setup = Arc::clone(setup);
            let end = Arc::clone(&traffic.end);
            let calls = Arc::clone(&traffic.calls);
            let failures = Arc::clone(&traffic.failures);
            traffic.tasks.push(tokio::spawn(async move {
                while !end.load(Ordering::SeqCst) {
                    let call = calls.fetch_add(1, Ordering::SeqCst);
                    if setup.embed(&format!("intent {call} of {task}")).await.is_err() {
                        failures.fetch_add(1, Ordering::SeqCst);
                    }
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
            }));
        }
        traffic
    }

    async fn end(self) -> (usize, usize) {
        self.end.store(true, Ordering::SeqCst);
        for task in self.tasks {
            task.await.expect("every answer was right");
        }
        (self.calls.load(Ordering::SeqCst), self.failures.load(Ordering::SeqCst))
    }
}

/// Makes one of two workers misbehave under traffic, and then recover.
async fn check(hedge: bool, break_it: impl FnOnce(&mut Worker), mend_it: impl FnOnce(&mut Worker)) {
    let good = Worker::start("cpu-int8");
    let mut bad = Worker::start("cpu-int8");
    let config = PoolConfig { hedge, ..config(&[&good, &bad]) };
    let setup = Arc::new(Setup::with(config, 2, true).await);
    let traffic = Traffic::start(&setup);
    tokio::time::sleep(Duration::from_millis(300)).await;
    break_it(&mut bad);
    let moved = setup.until_in_use(1).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    mend_it(&mut bad);
    setup.until_in_use(2).await;
    bad.take_requests();
    let began = Instant::now();
    while bad.take_requests().len() < 20 {
        assert!(began.elapsed() < SOON, "traffic did not come back");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let (calls, failures) = traffic.end().await;
    assert_eq!(failures, 0, "of {calls}; traffic moved after {moved:?}");
    assert!(calls > 100, "{calls}");
}

async fn check_mode(mode: Mode) {
    check(false, |bad| bad.set(mode), |bad| bad.set(Mode::Works)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_hangs() {
    check_mode(Mode::Hangs).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_hangs_with_hedging() {
    check(true, |bad| bad.set(Mode::Hangs), |bad| bad.set(Mode::Works)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_fails() {
    check_mode(Mode::Fails).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_answers_what_is_no_number() {
    check_mode(Mode::NotANumber).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_leaves_texts_out() {
    check_mode(Mode::TooFew).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_is_killed_and_started_again() {
    check(false, Worker::kill, Worker::revive).await;
}

#[tokio::test]
async fn a_worker_that_embeds_something_else_is_found_by_its_canary() {
    let worker = Worker::start("cpu-int8");
    let setup = Setup::of(&[&worker]).await;
    worker.set(Mode::Wrong);
    setup.until_in_use(0).await;
    for _ in 0..20 {
        setup.embed("right again").await.expect("from this process");
    }
    assert_eq!(setup.here.take_count(), 20);
    let sample = format!(
        "toolgate_encoder_worker_ejections_total{{worker=\"{}\",result=\"garbage\"}}",
        worker.address
    );
    assert!((setup.metric(&sample) - 1.0).abs() < 1e-9);
}

/// Tests a worker that gives wrong answers to traffic only, as if it had learnt the texts of the checks.
async fn check_lies(in_process: bool) {
    let worker = Worker::start("cpu-int8");
    let config = PoolConfig { compare_one_in: 1, ..config(&[&worker]) };
    let setup = Setup::with(config, 1, in_process).await;
    setup.embed("lie to me").await.expect("from the worker");
    worker.set(Mode::WrongToTraffic);
    let asked = vec!["lie to me".to_owned(), "and lie to others".to_owned()];
    let embedded = setup.pool.embed(asked, Flow::ALONE, None).await.expect("from the worker");
    assert_ne!(embedded[0].vector, embedding("lie to me"));
    let mut answers = 1;
    while setup.pool.workers_in_use() > 0 {
        let asked = vec!["lie to me".to_owned()];
        let answered = setup.pool.embed(asked, Flow::ALONE, None).await;
        // Without the in-process encoder, no one answers once the worker is out of use.
        assert!(answered.is_ok() || !in_process, "{answered:?}");
        answers += 1;
        assert!(answers < 1_000, "nobody compared");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let ejected = |result: &str| {
        let of = format!("worker=\"{}\",result=\"{result}\"", worker.address);
        setup.metric(&format!("toolgate_encoder_worker_ejections_total{{{of}}}"))
    };
    assert!((ejected("different") - 1.0).abs() < 1e-9);
    assert!(setup.metric("toolgate_embed_compared_total{result=\"different\"}") >= 1.0);
    // The worker is right about every known text, but wrong about the one that exposed it. The checks after the pause
    // find that.
    worker.take_texts();
    let began = Instant::now();
    let asked_again = |texts: &[String]| texts.iter().any(|text| text.starts_with("lie to"));
    while !worker.take_texts().iter().any(|texts| asked_again(texts)) {
        assert!(began.elapsed() < SOON, "it was not asked what it was caught with");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(setup.pool.workers_in_use(), 0);
    worker.set(Mode::Works);
    setup.until_in_use(1).await;
}

#[tokio::test]
async fn a_worker_that_lies_to_traffic_only_is_found_by_comparison_and_stays_out_while_it_lies() {
    check_lies(true).await;
}

#[tokio::test]
async fn so_it_is_where_this_process_embeds_nothing_for_callers() {
    check_lies(false).await;
}

#[tokio::test]
async fn a_full_worker_keeps_its_place_and_its_callers_their_answers() {
    let worker = Worker::start("cpu-int8");
    let setup = Setup::with(patient(&[&worker]), 1, true).await;
    worker.set(Mode::Full);
    for _ in 0..20 {
        setup.embed("x").await.expect("from this process");
    }
    assert_eq!((setup.here.take_count(), setup.pool.workers_in_use()), (20, 1));
    worker.set(Mode::Works);
    setup.embed("x").await.expect("from the worker");
    assert_eq!(setup.here.take_count(), 0);
}

#[tokio::test]
async fn a_worker_that_hangs_leaves_a_short_deadline_time_for_another() {
    let worker = Worker::start("cpu-int8");
    let setup = Setup::with(patient(&[&worker]), 1, true).await;
    worker.set(Mode::Hangs);
    for _ in 0..2 {
        setup.embed_within("x", Duration::from_secs(5)).await.expect("from this process");
    }
}

#[tokio::test]
async fn every_worker_gone_is_no_failure_while_this_process_embeds() {
    let mut workers = [Worker::start("cuda:0-bf16"), Worker::start("cpu-int8")];
    let setup = Setup::of(&[&workers[0], &workers[1]]).await;
    workers.iter_mut().for_each(Worker::kill);
    for i in 0..200 {
        setup.embed(&format!("intent {i}")).await.expect("from this process");
    }
    assert_eq!(setup.here.take_count(), 200);
}

#[tokio::test]
async fn without_this_process_a_fault_is_said_at_once() {
    let mut worker = Worker::start("cpu-int8");
    let setup = Setup::with(config(&[&worker]), 1, false).await;
    setup.embed("x").await.expect("from the worker");
    worker.kill();
    let began = Instant::now();
    for _ in 0..10 {
        let error = setup.embed("x").await.expect_err("nobody embeds");
        assert!(matches!(error, Error::EncoderUnavailable(_)), "{error:?}");
    }
    assert!(began.elapsed() < SOON, "words must decide soon");
    worker.revive();
    setup.until_in_use(1).await;
    setup.embed("x").await.expect("from the worker");
    worker.set(Mode::Hangs);
    let error = setup.embed_within("x", Duration::from_millis(50)).await.expect_err("too late");
    assert!(matches!(error, Error::DeadlineExceeded), "{error:?}");
}
