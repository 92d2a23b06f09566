//! Tests with devices that are slow, fail, hang or lie, and with callers that leave.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_stream::StreamExt;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_types::StatusExt;
use toolgate_proto::v1::encoder_service_client::EncoderServiceClient;
use toolgate_proto::v1::{DescribeRequest, EmbedRequest, EmbedResponse};

use crate::process::{PATIENCE, Worker, command};

/// Worker with a fault that is off until the test switches it on.
struct Faulty {
    worker: Worker,
    switch: PathBuf,
    _folder: TempDir,
}

impl Faulty {
    fn new(fault: &str, flags: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let switch = folder.path().join("on");
        let mut command = command(&format!("--canary-timeout 20s {flags}"));
        command.env("TOOLGATE_FAULT", format!("{fault},while={}", switch.display()));
        // Longer than any test waits: only a flag can make it shorter.
        command.env("TOOLGATE_WORKER_DRAIN", "10m");
        Self { worker: Worker::serving_as(command), switch, _folder: folder }
    }

    fn switch_on(&self) {
        fs::write(&self.switch, "").expect("the folder is there");
    }
}

type Answer = Result<tonic::Response<EmbedResponse>, Status>;

fn embed(
    client: &EncoderServiceClient<Channel>,
    texts: usize,
    timeout: Option<Duration>,
) -> JoinHandle<Answer> {
    let mut client = client.clone();
    let texts = vec!["which files did I change".to_owned(); texts];
    let mut request = Request::new(EmbedRequest { texts, ..Default::default() });
    if let Some(timeout) = timeout {
        request.set_timeout(timeout);
    }
    tokio::spawn(async move { client.embed(request).await })
}

fn reason(status: &Status) -> String {
    status.get_error_details().error_info().map(|info| info.reason.clone()).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn health_waits_for_the_warm_up() {
    let mut command = command("--canary-timeout 20s");
    command.env("TOOLGATE_FAULT", "slow:300");
    let mut worker = Worker::listening(command);
    let mut health = HealthClient::new(worker.channel().await);
    let mut watch = health.watch(HealthCheckRequest::default()).await.expect("known").into_inner();
    let first = watch.next().await.expect("a status").expect("no error");
    assert_eq!(first.status(), ServingStatus::NotServing);
    assert_eq!(worker.get("/readyz").0, "HTTP/1.1 503 Service Unavailable");
    let status = worker.client().await.describe(DescribeRequest {}).await.expect_err("not yet");
    assert_eq!(
        (status.code(), reason(&status).as_str()),
        (Code::Unavailable, "ENCODER_UNAVAILABLE")
    );
    let next = watch.next().await.expect("a status").expect("no error");
    assert_eq!(next.status(), ServingStatus::Serving);
    worker.event("serving");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_queue_and_a_passed_deadline_are_told() {
    let faulty = Faulty::new("slow:3000", "--queue-capacity 2 --canary-interval 5m");
    faulty.switch_on();
    let client = faulty.worker.client().await;
    // Waits until the batch is formed; until then, other texts could still join it.
    let formed = "toolgate_embed_queue_wait_seconds_count";
    let before = faulty.worker.metric(formed);
    let running = embed(&client, 1, None);
    faulty.worker.metric_reaches(formed, before + 1.0).await;
    let started = Instant::now();
    let late = embed(&client, 1, Some(Duration::from_secs(1)));
    faulty.worker.metric_reaches("toolgate_embed_queue_depth", 2.0).await;
    let refused = embed(&client, 1, None).await.expect("no panic").expect_err("it is full");
    assert_eq!(
        (refused.code(), reason(&refused).as_str()),
        (Code::ResourceExhausted, "OVERLOADED")
    );
    assert!(refused.get_error_details().retry_info().is_some());
    let late = late.await.expect("no panic").expect_err("it is late");
    assert_eq!(
        (late.code(), reason(&late).as_str()),
        (Code::DeadlineExceeded, "DEADLINE_EXCEEDED")
    );
    assert!(started.elapsed() < PATIENCE, "{:?}", started.elapsed());
    running.await.expect("no panic").expect("it embeds");
    faulty.worker.metric_reaches("toolgate_embed_expired_total", 1.0).await;
    assert!(faulty.worker.metric("toolgate_embed_refused_total") > 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_embedded_for_callers_who_left() {
    // So slow that callers leave before their answers, however busy the machine is.
    let faulty = Faulty::new("slow:200", "--max-batch-tokens 64 --canary-interval 5m");
    faulty.switch_on();
    let worker = &faulty.worker;
    let client = worker.client().await;
    let mut stay = Vec::new();
    let mut gone = 0;
    for wave in 0..40 {
        let leaving: Vec<_> = (0..6).map(|_| embed(&client, 5, None)).collect();
        let late = embed(&client, 5, Some(Duration::from_millis(30)));
        stay.push(embed(&client, 1, None));
        tokio::time::sleep(Duration::from_millis(wave % 7 * 5)).await;
        gone += leaving.iter().filter(|call| !call.is_finished()).count();
        leaving.iter().for_each(JoinHandle::abort);
        drop(late);
    }
    for call in stay {
        call.await.expect("no panic").expect("who stays is answered");
    }
    assert!(gone > 100, "only {gone} left before their answer");
    let for_gone = worker.metric("toolgate_embed_texts_for_gone_total");
    assert!(for_gone < 0.5, "{for_gone} texts were embedded for callers who had left");
    let left = "toolgate_embed_abandoned_total";
    let expired = "toolgate_embed_expired_total";
    assert!(worker.metric(left) > 0.0 && worker.metric(expired) > 0.0);
    // Most of those 1,400 texts were never embedded.
    assert!(worker.metric("toolgate_embed_texts_total") < 1_000.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_that_lies_is_found_out() {
    let mut faulty = Faulty::new("garbage", "--canary-interval 1s");
    let mut health = HealthClient::new(faulty.worker.channel().await);
    let asked = HealthCheckRequest { service: "toolgate.v1.EncoderService".into() };
    let mut watch = health.watch(asked).await.expect("known").into_inner();
    watch.next().await.expect("a status").expect("no error");
    faulty.worker.metric_reaches("toolgate_canary_runs_total", 1.0).await;
    let started = Instant::now();
    faulty.switch_on();
    let told = watch.next().await.expect("a status").expect("no error");
    assert_eq!(told.status(), ServingStatus::NotServing);
    assert!(started.elapsed() < PATIENCE, "{:?}", started.elapsed());
    assert!(watch.next().await.is_none(), "the watch ends with the worker");
    let (code, took) = faulty.worker.exit().await;
    assert_eq!(code, Some(6));
    assert!(took < PATIENCE, "{took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_that_hangs_frees_its_callers_and_ends_the_worker() {
    let mut faulty = Faulty::new("hang", "--canary-interval 300ms --canary-timeout 700ms");
    let client = faulty.worker.client().await;
    faulty.switch_on();
    let started = Instant::now();
    let status = embed(&client, 1, None).await.expect("no panic").expect_err("it hangs");
    assert_eq!(
        (status.code(), reason(&status).as_str()),
        (Code::Unavailable, "ENCODER_UNAVAILABLE")
    );
    assert_eq!(faulty.worker.exit().await.0, Some(6));
    assert!(started.elapsed() < PATIENCE, "{:?}", started.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_call_brings_the_canary_forward() {
    for fault in ["fail", "panic"] {
        let mut faulty = Faulty::new(fault, "--canary-interval 5m");
        let client = faulty.worker.client().await;
        faulty.switch_on();
        let status = embed(&client, 1, None).await.expect("no panic").expect_err("it fails");
        let found = (status.code(), reason(&status));
        assert_eq!(found, (Code::Unavailable, "ENCODER_UNAVAILABLE".into()), "{fault}");
        assert_eq!(faulty.worker.exit().await.0, Some(6), "{fault}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_worker_finishes_what_it_began() {
    let mut faulty = Faulty::new("slow:1000", "--canary-interval 5m --drain 30s");
    let mut health = HealthClient::new(faulty.worker.channel().await);
    let asked = HealthCheckRequest::default();
    let mut watch = health.watch(asked).await.expect("known").into_inner();
    watch.next().await.expect("a status").expect("no error");
    faulty.switch_on();
    let client = faulty.worker.client().await;
    let running = embed(&client, 2, None);
    faulty.worker.metric_reaches("toolgate_embed_queue_depth", 1.0).await;
    faulty.worker.terminate();
    let told = watch.next().await.expect("a status").expect("no error");
    assert_eq!(told.status(), ServingStatus::NotServing);
    running.await.expect("no panic").expect("it was begun");
    let (code, took) = faulty.worker.exit().await;
    assert_eq!(code, Some(0));
    assert!(took < PATIENCE, "{took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_has_an_end() {
    let mut faulty = Faulty::new("hang", "--canary-interval 5m --drain 500ms");
    let client = faulty.worker.client().await;
    faulty.switch_on();
    let running = embed(&client, 1, None);
    faulty.worker.metric_reaches("toolgate_embed_queue_depth", 1.0).await;
    faulty.worker.terminate();
    let (code, took) = faulty.worker.exit().await;
    assert_eq!(code, Some(0));
    assert!(took < PATIENCE, "{took:?}");
    running.await.expect("no panic").expect_err("it was cut off");
}
