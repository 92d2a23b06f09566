//! The gRPC server: its services, its limits on connections, and its drain.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tonic_health::pb::FILE_DESCRIPTOR_SET as HEALTH_DESCRIPTORS;
use tonic_health::pb::health_server::HealthServer;
use toolgate_proto::v1::FILE_DESCRIPTOR_SET;
use toolgate_proto::v1::encoder_service_server::EncoderServiceServer;
use toolgate_serving::{
    BoundAnswers, ConnectionLimits, Connections, ExplainUndecoded, drained_or_cut, transport,
};
use tracing::debug;

use super::health::WorkerHealth;
use super::request::MESSAGE_MAX;
use super::service::Face;
use crate::error::Cause;

/// Most connections at a time. They come from routing planes, probes and people, not from agents.
const CONNECTIONS_MAX: usize = 1_024;

/// Most bytes of one answer: several times the size of 256 of the longest embeddings.
const ANSWER_MAX: usize = 32 << 20;

/// Most bytes of answers that wait for their callers to read them: several of the longest answers.
const UNSENT_MAX: usize = 256 << 20;

/// Serves until `drain` is cancelled, which must happen after health reports NOT_SERVING. Calls in progress then have
/// `time` to end.
pub(crate) async fn serve(
    listener: TcpListener,
    face: Face,
    time: Duration,
    drain: CancellationToken,
) -> Result<(), Cause> {
    let metrics = Arc::clone(&face.metrics);
    let limits = ConnectionLimits::of(CONNECTIONS_MAX);
    let incoming = Connections::new(listener, limits, move |_| metrics.connection_refused());
    let health = HealthServer::new(WorkerHealth { lifecycle: Arc::clone(&face.lifecycle) });
    let service = EncoderServiceServer::new(face)
        .max_decoding_message_size(MESSAGE_MAX)
        .max_encoding_message_size(ANSWER_MAX);
    let reflection = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(FILE_DESCRIPTOR_SET)
            .register_encoded_file_descriptor_set(HEALTH_DESCRIPTORS)
            .with_service_name("toolgate.v1.EncoderService")
            .with_service_name("grpc.health.v1.Health")
    };
    let answers = BoundAnswers::new(UNSENT_MAX, || {
        debug!("an answer beyond those that may wait to be read");
    });
    let router = transport()
        // Callers who don't read must not exhaust the memory.
        .layer(answers)
        // Errors of the transport itself also get a reason.
        .layer(ExplainUndecoded { max_message_bytes: MESSAGE_MAX, limit_name: "message" })
        .add_service(service)
        .add_service(health)
        .add_optional_service(reflection().build_v1().ok())
        .add_optional_service(reflection().build_v1alpha().ok());
    let serving = router.serve_with_incoming_shutdown(incoming, drain.clone().cancelled_owned());
    drained_or_cut(serving, &drain, time).await.unwrap_or(Ok(())).map_err(Cause::from)
}
