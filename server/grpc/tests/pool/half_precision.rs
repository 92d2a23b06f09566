//! Tests of answers in half precision.

use toolgate_config::PoolConfig;
use toolgate_routing::encoder::{Encoder as _, Flow};

use crate::here::{DIMENSIONS, embedding};
use crate::setup::{SOON, Setup, config};
use crate::worker::{Mode, Worker};

/// Embeds a text for which a worker has another answer in half precision.
async fn embed(backend: &str, mode: Mode) -> Vec<f32> {
    let worker = Worker::start(backend);
    let config = PoolConfig { attempt_timeout: SOON * 10, ..config(&[&worker]) };
    let setup = Setup::with(config, 1, false).await;
    worker.set(mode);
    let embedded = setup.pool.embed(vec!["half".into()], Flow::new(7), None).await;
    embedded.expect("embedded").swap_remove(0).vector
}

#[tokio::test]
async fn a_gpu_may_answer_in_half_precision() {
    let mut first_axis = vec![0.0; DIMENSIONS];
    first_axis[0] = 1.0;
    assert_eq!(embed("cuda:0-bf16", Mode::Halves).await, first_axis);
}

#[tokio::test]
async fn a_worker_that_does_not_know_half_precision_answers_in_f32() {
    assert_eq!(embed("cuda:0-bf16", Mode::Works).await, embedding("half"));
}

#[tokio::test]
async fn a_cpu_is_not_asked_for_half_precision() {
    assert_eq!(embed("cpu-int8", Mode::Halves).await, embedding("half"));
}
