//! Crash tests of the real binary. It registers over gRPC and is killed with SIGKILL at random moments. After the
//! restart, every acknowledged registration is stored completely, and earlier handles are still valid. Other events
//! that could end the process, but must not, are tested too.
#![cfg(unix)]
#![expect(unreachable_pub, reason = "nothing but tests")]

#[cfg(target_os = "linux")]
mod file_size;
mod ledger;
mod model;
mod server;

use std::time::{Duration, Instant};

use fastrand::Rng;
use toolgate_client::v1;

use ledger::Ledger;
use server::Server;

/// Kills of one process after another, by each of the two tests that run beside each other. TOOLGATE_KILLS sets another
/// number.
const KILLS: u32 = 40;
/// Every fifth life of the process is killed during its start.
const EARLY_EVERY: u32 = 5;
const EARLY: Duration = Duration::from_millis(400);
const BUSY: Duration = Duration::from_millis(150);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledged_registrations_survive_kill_9() {
    println!("{}", kill_again_and_again(1).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledged_registrations_survive_kill_9_at_other_moments() {
    println!("{}", kill_again_and_again(2).await);
}

/// Returns what was done.
async fn kill_again_and_again(seed: u64) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    model::write(&folder.path().join("model"));
    let mut ledger = Ledger::default();
    let mut handle = String::new();
    // Reproducible delays. The points of execution that they hit still vary with the machine.
    let mut random = Rng::with_seed(seed);
    let started = Instant::now();
    let kills = std::env::var("TOOLGATE_KILLS")
        .map_or(KILLS, |kills| kills.parse().expect("TOOLGATE_KILLS is a number"));
    for kill in 1..=kills {
        let mut server = Server::start(folder.path());
        if kill.is_multiple_of(EARLY_EVERY) {
            std::thread::sleep(EARLY.mul_f64(random.f64()));
            server.kill();
            continue;
        }
        let client = server.client().await;
        ledger.check(&client).await;
        handle = hold(&client, handle).await;
        let killed = BUSY.mul_f64(random.f64());
        let killer = tokio::task::spawn_blocking(move || {
            std::thread::sleep(killed);
            server.kill();
        });
        ledger.register_until_refused(&client).await;
        killer.await.expect("it kills");
    }
    let mut last = Server::start(folder.path());
    let client = last.client().await;
    ledger.check(&client).await;
    last.kill();
    let (acknowledged, unheard) = ledger.counts();
    // How many there are depends on how fast the machine is.
    assert!(acknowledged > 0, "no registration was acknowledged, so that none was checked");
    format!(
        "{kills} kills, {acknowledged} registrations acknowledged, {unheard} committed unheard, {:.1} s",
        started.elapsed().as_secs_f32()
    )
}

/// Checks that the active set of an earlier life is still accepted, and returns its new handle.
async fn hold(client: &toolgate_client::Client, handle: String) -> String {
    let intents = vec![v1::Intent { text: "tool".to_owned(), weight: None }];
    let request = v1::RouteRequest { intents, active_set_handle: handle, ..Default::default() };
    match client.route(request).await {
        Ok(answer) => answer.active_set_handle,
        Err(error) if error.reason() == Some(v1::ErrorReason::TenantNotFound) => String::new(),
        Err(error) => panic!("{error}"),
    }
}
