//! Tests of several connections to one worker.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use toolgate_config::PoolConfig;

use crate::setup::{SOON, Setup, config};
use crate::worker::{Mode, Worker};

/// Calls at the same time: several for each connection, so that a check among them changes nothing.
const CALLS: usize = 12;

#[tokio::test]
async fn calls_at_the_same_time_are_spread_over_the_connections() {
    for connections in [1, 3] {
        let worker = Worker::start("cpu-int8");
        let config = PoolConfig {
            connections: NonZeroUsize::new(connections),
            attempt_timeout: SOON * 10,
            ..config(&[&worker])
        };
        let setup = Arc::new(Setup::with(config, 1, false).await);
        worker.set(Mode::Holds);
        let ask = |number| {
            let setup = Arc::clone(&setup);
            tokio::spawn(async move { setup.embed_within(&format!("hold {number}"), SOON).await })
        };
        let calls: Vec<_> = (0..CALLS).map(ask).collect();
        let is_traffic = |texts: &&Vec<String>| texts[0].starts_with("hold");
        let all_there = async {
            while worker.seen.requests.lock().iter().filter(is_traffic).count() < CALLS {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(SOON, all_there).await.expect("they come");
        worker.seen.allowed.add_permits(CALLS);
        for call in calls {
            call.await.expect("no panic").expect("embedded");
        }
        assert_eq!(worker.seen.connections.lock().len(), connections);
    }
}

#[tokio::test]
async fn a_worker_with_one_silent_connection_is_used_over_another() {
    let worker = Worker::start("cpu-int8");
    let config = PoolConfig { connections: NonZeroUsize::new(2), ..config(&[&worker]) };
    let setup = Setup::with(config, 1, false).await;
    worker.set(Mode::HangsOverFirst);
    setup.until("checks hang", || worker.seen.hung.load(Ordering::SeqCst) >= 2).await;
    // The connection answers its pings, so that nothing closes it: without another one the worker never came back. On a
    // slow machine the other one may be late at first.
    let began = Instant::now();
    while setup.embed("by the worker").await.is_err() {
        assert!(began.elapsed() < SOON, "no request goes over the other connection");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
