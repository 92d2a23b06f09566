//! Tests of the choice of workers: tiers, fewest outstanding requests, splitting of many texts, and callers who left.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use toolgate_routing::encoder::{Encoder as _, Flow};

use crate::here::embedding;
use crate::setup::{SOON, Setup, patient};
use crate::worker::{Mode, Worker};

/// Counts the requests that carry the test's texts, without canaries.
fn of_five(worker: &Worker) -> usize {
    let is_asked = |texts: &Vec<String>| texts.len() == 5 && texts[0].starts_with("text ");
    worker.take_texts().iter().filter(|texts| is_asked(texts)).count()
}

async fn embed_five(setup: &Setup) {
    let deadline = Some(Instant::now() + Duration::from_secs(20));
    let texts = (0..5).map(|text| format!("text {text}")).collect();
    setup.pool.embed(texts, Flow::ALONE, deadline).await.expect("embedded");
}

#[tokio::test]
async fn gpus_come_first_then_cpus_then_this_process() {
    let mut gpu = Worker::start("cuda:0-bf16");
    let mut cpu = Worker::start("cpu-int8");
    let setup = Setup::of(&[&cpu, &gpu]).await;
    for _ in 0..20 {
        embed_five(&setup).await;
    }
    assert_eq!((of_five(&gpu), of_five(&cpu), setup.here.take_count()), (20, 0, 0));
    gpu.kill();
    setup.until_in_use(1).await;
    for _ in 0..20 {
        embed_five(&setup).await;
    }
    assert_eq!((of_five(&cpu), setup.here.take_count()), (20, 0));
    cpu.kill();
    setup.until_in_use(0).await;
    embed_five(&setup).await;
    assert_eq!(setup.here.take_count(), 5);
    for (tier, calls) in [("gpu", 20.0), ("cpu", 20.0), ("in_process", 1.0)] {
        let answered = setup.metric(&format!("toolgate_embed_answered_total{{tier=\"{tier}\"}}"));
        assert!((answered - calls).abs() < 1e-9, "{tier}: {answered}");
    }
}

#[tokio::test]
async fn work_of_other_servers_counts() {
    let [one, other] = [Worker::start("cuda:0-bf16"), Worker::start("cuda:0-bf16")];
    let setup = Setup::of(&[&one, &other]).await;
    for (busy, idle) in [(&one, &other), (&other, &one)] {
        busy.seen.outstanding.store(5_000, Ordering::SeqCst);
        idle.seen.outstanding.store(0, Ordering::SeqCst);
        // Checks alone bring the news: the second one begins after it, and is over as the third begins.
        for worker in [busy, idle] {
            drop(worker.take_texts());
            let checked = async {
                while worker.seen.requests.lock().len() < 3 {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            tokio::time::timeout(SOON, checked).await.expect("it is checked");
            drop(worker.take_texts());
        }
        for _ in 0..20 {
            embed_five(&setup).await;
        }
        assert_eq!((of_five(busy), of_five(idle)), (0, 20));
    }
}

#[tokio::test]
async fn few_tokens_of_others_do_not_count() {
    let [one, other] = [Worker::start("cuda:0-bf16"), Worker::start("cuda:0-bf16")];
    let setup = Setup::with(patient(&[&one, &other]), 2, true).await;
    one.seen.outstanding.store(255, Ordering::SeqCst);
    for _ in 0..20 {
        embed_five(&setup).await;
    }
    assert_eq!((of_five(&one), of_five(&other)), (10, 10));
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_has_less_to_do_gets_more() {
    let quick = Worker::start("cpu-int8");
    let slow = Worker::start("cpu-int8");
    let setup = Arc::new(Setup::with(patient(&[&quick, &slow]), 2, true).await);
    quick.set(Mode::Slow(5));
    slow.set(Mode::Slow(100));
    let callers: Vec<_> = (0..8)
        .map(|_| {
            let setup = Arc::clone(&setup);
            tokio::spawn(async move {
                for _ in 0..25 {
                    embed_five(&setup).await;
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.expect("embedded");
    }
    let quick = of_five(&quick);
    let slow = of_five(&slow);
    assert_eq!(quick + slow, 200);
    assert!(quick > 2 * slow, "{quick} and {slow}");
}

#[tokio::test]
async fn equals_take_turns() {
    let workers = [Worker::start("cpu-int8"), Worker::start("cpu-int8")];
    let setup = Setup::with(patient(&[&workers[0], &workers[1]]), 2, true).await;
    for _ in 0..20 {
        embed_five(&setup).await;
    }
    assert_eq!([of_five(&workers[0]), of_five(&workers[1])], [10, 10]);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_texts_are_spread_over_the_workers_in_bounded_requests() {
    let workers = [Worker::start("cpu-int8"), Worker::start("cpu-int8")];
    let setup = Setup::with(patient(&[&workers[0], &workers[1]]), 2, true).await;
    workers.iter().for_each(|worker| worker.set(Mode::Slow(10)));
    let texts: Vec<_> = (0..1_000).map(|i| format!("summary {i}")).collect();
    let embedded = setup.pool.embed(texts.clone(), Flow::ALONE, None).await.expect("embedded");
    let right = texts.iter().zip(&embedded).all(|(text, one)| one.vector == embedding(text));
    assert!(right && embedded.len() == 1_000, "one each, in their order");
    let mut texts_of = Vec::new();
    for worker in &workers {
        let requests: Vec<_> = worker
            .take_texts()
            .into_iter()
            .filter(|texts| texts[0].starts_with("summary "))
            .collect();
        let requests: Vec<_> = requests.iter().map(Vec::len).collect();
        assert!(requests.iter().all(|texts| *texts <= 64), "{requests:?}");
        texts_of.push(requests.iter().sum::<usize>());
        let at_once = worker.seen.at_once_max.load(Ordering::SeqCst);
        assert!(at_once <= 5, "two of each call's, and canaries: {at_once}");
    }
    assert_eq!(texts_of.iter().sum::<usize>(), 1_000);
    assert!(texts_of.iter().all(|texts| *texts > 250), "{texts_of:?}");
}

#[tokio::test]
async fn a_caller_who_leaves_takes_the_request_back() {
    let worker = Worker::start("cpu-int8");
    let setup = Setup::with(patient(&[&worker]), 1, true).await;
    worker.set(Mode::Holds);
    worker.take_requests();
    let has_come = async {
        while worker.take_requests().is_empty() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::select! {
        outcome = setup.embed("hold x") => panic!("{outcome:?}"),
        () = has_come => {}
    }
    let began = Instant::now();
    while worker.seen.cancelled.load(Ordering::SeqCst) == 0 {
        assert!(began.elapsed() < SOON, "the worker never heard of it");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let outstanding =
        format!("toolgate_encoder_worker_outstanding_tokens{{worker=\"{}\"}}", worker.address);
    assert!(setup.metric(&outstanding).abs() < 1e-9);
}
