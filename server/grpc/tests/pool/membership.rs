//! Tests of workers that come and go, and of workers with another model.

use std::time::Duration;

use tokio::sync::watch;
use toolgate_app::telemetry::ShardsReading;
use toolgate_config::{PoolConfig, WorkerAddress};

use crate::setup::{Setup, config, patient};
use crate::worker::Worker;

#[tokio::test]
async fn a_worker_with_another_model_is_never_used() {
    let ours = Worker::start("cpu-int8");
    let other = Worker::with_model("cuda:0-bf16", "model-2");
    let setup = Setup::with(patient(&[&ours, &other]), 1, true).await;
    let sample = format!(
        "toolgate_encoder_worker_state{{worker=\"{}\",state=\"other_model\"}}",
        other.address
    );
    setup.until("another model is found", || setup.metric(&sample) > 0.5).await;
    for i in 0..50 {
        setup.embed(&format!("intent {i}")).await.expect("embedded");
    }
    assert_eq!(other.take_requests(), Vec::<usize>::new(), "not even a canary");
    assert_eq!(setup.here.take_count(), 0);
    assert!((setup.metric(&sample) - 1.0).abs() < 1e-9);
}

#[tokio::test]
async fn local_workers_are_followed_wherever_they_listen() {
    let first = Worker::start("cpu-int8");
    let second = Worker::start("cpu-int8");
    let setup = Setup::of(&[]).await;
    let (addresses, followed) = watch::channel(vec![first.address.to_string()]);
    setup.pool.add_local(followed);
    setup.until_in_use(1).await;
    setup.embed("x").await.expect("from the first");
    addresses.send(vec![second.address.to_string()]).expect("followed");
    setup.until_in_use(1).await;
    let gone = format!("worker=\"{}\"", first.address);
    let is_gone = || !setup.metrics.expose(ShardsReading::default()).contains(&gone);
    setup.until("the first has left", is_gone).await;
    setup.until_in_use(1).await;
    second.take_requests();
    setup.embed("x").await.expect("from the second");
    assert!(!second.take_requests().is_empty() && setup.here.take_count() == 0);
    addresses.send(Vec::new()).expect("followed");
    setup.until_in_use(0).await;
    setup.embed("x").await.expect("from this process");
}

#[tokio::test]
async fn a_name_is_looked_up() {
    let worker = Worker::start("cpu-int8");
    let behind = WorkerAddress::Behind { name: "localhost".into(), port: worker.address.port() };
    let config = PoolConfig { workers: vec![behind], ..patient(&[]) };
    let setup = Setup::with(config, 1, true).await;
    setup.embed("x").await.expect("from the worker");
    assert_eq!(setup.here.take_count(), 0);
}

#[tokio::test]
async fn a_worker_that_is_not_up_yet_joins_when_it_is() {
    let mut worker = Worker::start("cpu-int8");
    worker.kill();
    let setup = Setup::with(config(&[&worker]), 0, true).await;
    setup.embed("x").await.expect("from this process");
    tokio::time::sleep(Duration::from_millis(300)).await;
    worker.revive();
    setup.until_in_use(1).await;
}
