//! Tests of Embed, Describe, health, reflection and the limits.

use half::f16;
use serde::Deserialize;
use tokio_stream::StreamExt;
use tonic::transport::Channel;
use tonic::{Code, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use tonic_types::StatusExt;
use toolgate_proto::v1::encoder_service_client::EncoderServiceClient;
use toolgate_proto::v1::{DescribeRequest, EmbedRequest};

use crate::process::Worker;

const SERVICE: &str = "toolgate.v1.EncoderService";

#[derive(Deserialize)]
struct Golden {
    text: String,
    tokens: u32,
    truncated: bool,
    embedding: Vec<f32>,
}

fn golden() -> Vec<Golden> {
    let path =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/golden/all-MiniLM-L6-v2+tools-v1.json");
    let text = std::fs::read_to_string(path).expect("the golden file is committed");
    serde_json::from_str(&text).expect("the golden file is a list of cases")
}

fn vectors(bytes: &[u8], dimensions: u32) -> Vec<Vec<f32>> {
    let values = bytes.chunks(4).map(|four| f32::from_le_bytes(four.try_into().expect("four")));
    let values: Vec<f32> = values.collect();
    values.chunks(dimensions as usize).map(<[f32]>::to_vec).collect()
}

fn ask(texts: &[&str]) -> EmbedRequest {
    EmbedRequest { texts: texts.iter().map(ToString::to_string).collect(), ..Default::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn embeddings_are_those_of_the_model() {
    let worker = Worker::serving("");
    let mut client = worker.client().await;
    let golden = golden();
    let texts = golden.iter().map(|case| case.text.clone()).collect();
    let request = EmbedRequest { texts, ..Default::default() };
    let answer = client.embed(request).await.expect("it embeds").into_inner();
    let found = vectors(&answer.embeddings, answer.dimensions);
    assert_eq!((found.len(), answer.dimensions), (golden.len(), 384));
    for (index, case) in golden.iter().enumerate() {
        let cosine: f32 = found[index].iter().zip(&case.embedding).map(|(a, b)| a * b).sum();
        assert!(cosine > 0.999, "text {index}: {cosine}");
        assert_eq!(answer.token_counts[index], case.tokens);
        assert_eq!(answer.truncated[index], case.truncated);
    }
    let about = client.describe(DescribeRequest {}).await.expect("it describes").into_inner();
    assert_eq!(about.model, "all-MiniLM-L6-v2+tools-v1");
    assert_eq!((about.dimensions, about.max_tokens), (384, 256));
    assert_eq!(about.backend, "cpu-f32");
    assert_eq!(about.fingerprint, answer.fingerprint);
    metrics_tell(&worker, golden.len() as f64);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_reads_half_precision_gets_half_the_bytes() {
    let worker = Worker::serving("");
    let mut client = worker.client().await;
    let texts: Vec<_> = golden().into_iter().map(|case| case.text).collect();
    let request = EmbedRequest { texts, ..Default::default() };
    let exact = client.embed(request.clone()).await.expect("it embeds").into_inner();
    assert!(!exact.half_precision, "nobody asked for it");
    let request = EmbedRequest { half_precision: true, ..request };
    let half = client.embed(request).await.expect("it embeds").into_inner();
    assert!(half.half_precision);
    assert_eq!(2 * half.embeddings.len(), exact.embeddings.len());
    let numbers = half.embeddings.chunks(2);
    let numbers = numbers.map(|two| f16::from_le_bytes(two.try_into().expect("two")).to_f32());
    let numbers: Vec<f32> = numbers.collect();
    let found = numbers.chunks(half.dimensions as usize);
    for (vector, exact) in found.zip(vectors(&exact.embeddings, exact.dimensions)) {
        let dot = |a: &[f32], b: &[f32]| -> f64 {
            a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum()
        };
        let cosine = dot(vector, &exact) / (dot(vector, vector) * dot(&exact, &exact)).sqrt();
        assert!(cosine > 0.999_999, "{cosine}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_are_told_how_many_share_the_worker() {
    let worker = Worker::serving("");
    let mut client = worker.client().await;
    for (caller, callers) in [(0, 0), (7, 1), (8, 2), (7, 2)] {
        let request = EmbedRequest { caller, ..ask(&["which files did I change"]) };
        let answer = client.embed(request).await.expect("it embeds").into_inner();
        assert_eq!(answer.callers, callers, "to {caller}");
    }
}

fn metrics_tell(worker: &Worker, texts: f64) {
    let calls = |method: &str| {
        format!(
            "rpc_server_call_duration_seconds_count{{rpc_system_name=\"grpc\",\
             rpc_method=\"toolgate.v1.EncoderService/{method}\",rpc_response_status_code=\"OK\",error_type=\"\"}}"
        )
    };
    assert!((worker.metric(&calls("Embed")) - 1.0).abs() < 0.1);
    assert!((worker.metric(&calls("Describe")) - 1.0).abs() < 0.1);
    assert!(worker.metric("toolgate_embed_texts_total") >= texts);
    assert!(worker.metric("toolgate_embed_batch_tokens_count") >= 1.0);
    assert!(worker.metric("toolgate_embed_queue_wait_seconds_bucket{le=\"+Inf\"}") >= 1.0);
    assert!(worker.metric("toolgate_embed_tokenizing_seconds_total") > 0.0);
    assert!(worker.metric("toolgate_embed_device_busy_seconds_total") > 0.0);
    assert!((worker.metric("toolgate_encoder_serving") - 1.0).abs() < 0.1);
    assert_eq!(worker.get("/readyz"), ("HTTP/1.1 200 OK".into(), "ok\n".into()));
    assert_eq!(worker.get("/healthz"), ("HTTP/1.1 200 OK".into(), "ok\n".into()));
    assert!(worker.get("/metrics").1.contains("backend=\"cpu-f32\""));
}

#[tokio::test(flavor = "multi_thread")]
async fn health_and_reflection_are_served() {
    let worker = Worker::serving("");
    let mut health = HealthClient::new(worker.channel().await);
    for service in ["", SERVICE] {
        let asked = HealthCheckRequest { service: service.into() };
        let checked = health.check(asked.clone()).await.expect("it is known").into_inner();
        assert_eq!(checked.status(), ServingStatus::Serving);
        let mut watch = health.watch(asked).await.expect("it is known").into_inner();
        let first = watch.next().await.expect("a status").expect("no error");
        assert_eq!(first.status(), ServingStatus::Serving);
    }
    let unknown = health.check(HealthCheckRequest { service: "x".into() }).await;
    assert_eq!(unknown.expect_err("it is unknown").code(), Code::NotFound);
    let services = reflected(worker.channel().await).await;
    assert!(services.iter().any(|name| name == SERVICE), "{services:?}");
    assert!(!services.iter().any(|name| name.contains("Router")), "{services:?}");
}

async fn reflected(channel: Channel) -> Vec<String> {
    let list = Some(MessageRequest::ListServices(String::new()));
    let request = ServerReflectionRequest { message_request: list, ..Default::default() };
    let mut client = ServerReflectionClient::new(channel);
    let asked = client.server_reflection_info(tokio_stream::once(request)).await;
    let answer = asked.expect("it is served").into_inner().next().await;
    match answer.expect("an answer").expect("no error").message_response {
        Some(MessageResponse::ListServicesResponse(list)) => {
            list.service.into_iter().map(|service| service.name).collect()
        }
        other => panic!("{other:?}"),
    }
}

async fn refused(client: &mut EncoderServiceClient<Channel>, request: EmbedRequest) -> Status {
    client.embed(request).await.expect_err("it is refused")
}

fn reason(status: &Status) -> String {
    status.get_error_details().error_info().map(|info| info.reason.clone()).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_and_fingerprints_are_held_to() {
    let worker = Worker::serving("");
    let mut client = worker.client().await;
    let long = "x".repeat((32 << 10) + 1);
    for (request, field) in
        [(ask(&[]), "texts"), (ask(&["a"; 257]), "texts"), (ask(&["a", &long, "b"]), "texts[1]")]
    {
        let status = refused(&mut client, request).await;
        assert_eq!(
            (status.code(), reason(&status).as_str()),
            (Code::InvalidArgument, "INVALID_FIELD")
        );
        let details = status.get_error_details();
        let violations = &details.bad_request().expect("it says which").field_violations;
        assert_eq!(violations[0].field, field);
    }
    let longest = "x".repeat(32 << 10);
    client.embed(ask(&[longest.as_str(); 2])).await.expect("the longest texts embed");
    // A message beyond every limit is refused before it is read.
    let status = refused(&mut client, ask(&[longest.as_str(); 300])).await;
    assert_eq!(
        (status.code(), reason(&status).as_str()),
        (Code::InvalidArgument, "LIMIT_EXCEEDED")
    );

    let mut other = ask(&["a"]);
    other.fingerprint = "another".into();
    let status = refused(&mut client, other).await;
    assert_eq!(status.code(), Code::FailedPrecondition);
    let details = status.get_error_details();
    let info = details.error_info().expect("it says why");
    assert_eq!((info.reason.as_str(), info.domain.as_str()), ("FINGERPRINT_MISMATCH", "toolgate"));
    let mut same = ask(&["a"]);
    same.fingerprint.clone_from(&info.metadata["actual"]);
    client.embed(same).await.expect("the worker's own fingerprint is right");
}
