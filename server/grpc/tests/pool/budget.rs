//! Tests of second attempts: they help, and they never become a retry storm.

use std::time::{Duration, Instant};

use toolgate_config::PoolConfig;

use crate::setup::{Setup, patient};
use crate::worker::{Mode, Worker};

#[tokio::test]
async fn a_late_worker_is_hedged_within_the_budget() {
    let quick = Worker::start("cpu-int8");
    let slow = Worker::start("cpu-int8");
    let config = PoolConfig { hedge: true, ..patient(&[&quick, &slow]) };
    let setup = Setup::with(config, 2, true).await;
    // This establishes the usual time, and fills the budget.
    for i in 0..300 {
        setup.embed(&format!("warm up {i}")).await.expect("embedded");
    }
    slow.set(Mode::Slow(15_000));
    let mut helped = 0;
    for i in 0..20 {
        let began = Instant::now();
        setup.embed(&format!("intent {i}")).await.expect("embedded");
        helped += usize::from(began.elapsed() < Duration::from_secs(14));
    }
    assert_eq!(helped, 20, "none waited for the slow one");
    let won = setup.metric("toolgate_embed_hedges_total{winner=\"second\"}");
    // On a busy machine the quick worker may be late once or twice as well.
    assert!((5.0..=15.0).contains(&won), "the slow one was asked first every other time: {won}");
    assert_eq!(setup.here.take_count(), 0, "another worker is asked before this process");
}

#[tokio::test]
async fn failures_are_not_answered_with_a_storm() {
    let workers = [Worker::start("cpu-int8"), Worker::start("cpu-int8")];
    let setup = Setup::of(&[&workers[0], &workers[1]]).await;
    // Workers that refuse stay in use, so every request fails wherever it is sent.
    workers.iter().for_each(|worker| worker.set(Mode::Full));
    workers.iter().for_each(|worker| drop(worker.take_requests()));
    let calls = 1_000;
    let began = Instant::now();
    for i in 0..calls {
        setup.embed(&format!("intent {i}")).await.expect("from this process");
    }
    let seconds = began.elapsed().as_secs() as usize + 1;
    let attempts: usize = workers.iter().map(|worker| worker.take_requests().len()).sum();
    // The bound is a tenth of the calls, the saved-up budget, and the canaries of both workers.
    let most = calls + calls / 10 + 20 + seconds * 2 * 12;
    assert!(attempts <= most, "{attempts} attempts for {calls} calls in {seconds} s");
    assert_eq!(setup.here.take_count(), calls);
    assert!(setup.metric("toolgate_embed_over_budget_total{attempt=\"retry\"}") > 800.0);
}
