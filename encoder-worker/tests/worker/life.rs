//! Tests of workers that fail to start or are stopped.

use std::process::Stdio;

use crate::process::{Worker, command};

#[tokio::test]
async fn a_model_that_is_not_there_has_its_own_exit_code() {
    let empty = tempfile::tempdir().expect("a folder");
    let mut worker = Worker::listening(command(&format!("--model-dir {}", empty.path().display())));
    assert_eq!(worker.exit().await.0, Some(3));
}

#[tokio::test]
async fn a_taken_address_has_its_own_exit_code() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("it is bound");
    let status = command(&format!("--listen {address}")).status().expect("it runs");
    assert_eq!(status.code(), Some(4));
    let status = command("--device abacus").status().expect("it runs");
    assert_eq!(status.code(), Some(2));
}

/// Holds with a driver and without: no machine has that many GPUs.
#[tokio::test]
async fn a_gpu_that_is_not_there_ends_the_worker_and_is_named() {
    let output = command("--device cuda:4095 --format auto").output().expect("it runs");
    let log = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{log}");
    assert!(log.contains("device cuda:4095 cannot be used"), "{log}");
    assert!(!log.contains("panicked"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_worker_stops_at_once() {
    let mut worker = Worker::serving("--drain 1m");
    let _connected = worker.client().await;
    worker.terminate();
    let (code, took) = worker.exit().await;
    assert_eq!(code, Some(0));
    assert!(took.as_secs() < 10, "{took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_goes_with_its_supervisor() {
    let mut command = command("--until-stdin-ends");
    command.stdin(Stdio::piped());
    let mut worker = Worker::serving_as(command);
    worker.close_stdin();
    assert_eq!(worker.exit().await.0, Some(0));
}
