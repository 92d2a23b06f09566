//! Tests of how often servers check a worker that they share.

use std::sync::atomic::Ordering;

use crate::setup::Setup;
use crate::worker::{Mode, Worker};

/// Servers that the shared worker says it has. Each checks it every ten seconds then, and a worker of its own 100 times
/// in that time.
const SHARERS: u32 = 1_000;

/// Pool of a worker that many servers share and one that nobody else has, both in use.
struct Pair {
    shared: Worker,
    own: Worker,
    setup: Setup,
}

impl Pair {
    async fn start() -> Self {
        let shared = Worker::start("cpu-int8");
        let own = Worker::start("cpu-int8");
        shared.seen.callers.store(SHARERS, Ordering::SeqCst);
        own.seen.callers.store(1, Ordering::SeqCst);
        let setup = Setup::of(&[&shared, &own]).await;
        Self { shared, own, setup }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_servers_share_is_checked_by_each_the_less() {
    let Pair { shared, own, setup } = Pair::start().await;
    shared.take_requests();
    own.take_requests();
    let mut checks_of_own = 0;
    setup
        .until("20 checks of the worker of its own", || {
            checks_of_own += own.take_requests().len();
            checks_of_own >= 20
        })
        .await;
    let checks_of_shared = shared.take_requests().len();
    assert!(checks_of_shared <= 5, "{checks_of_shared} checks, of the other one {checks_of_own}");
    let numbers = [&shared, &own].map(|worker| worker.seen.callers_seen.lock().clone());
    assert_eq!(numbers[0].len(), 1, "a server has one number");
    assert!(numbers[0] == numbers[1] && !numbers[0].contains(&0), "{numbers:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shared_worker_that_fails_a_request_is_checked_at_once() {
    let Pair { shared, own, setup } = Pair::start().await;
    shared.set(Mode::Fails);
    shared.take_requests();
    let mut requests = 0;
    while shared.take_requests().is_empty() {
        requests += 1;
        setup.embed("to one of the two").await.expect("from the other");
    }
    assert!(requests <= 2, "workers take turns: {requests}");
    let mut checks_of_own = 0;
    setup
        .until("the worker that fails is out of use", || {
            checks_of_own += own.take_requests().len();
            setup.pool.workers_in_use() == 1
        })
        .await;
    assert!(checks_of_own < 40, "{checks_of_own} checks of the other one meanwhile");
}
