//! The admin port: metrics and liveness over plain HTTP, apart from the port that agents reach.

use std::io;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::plane::Plane;
use crate::telemetry::Metrics;

/// Content type of the exposition text (OpenMetrics 1.0).
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

type Shared = (Arc<Plane>, Arc<Metrics>);

/// Serves `/metrics` and `/livez` until `stop`.
///
/// # Errors
/// The listener fails.
pub async fn serve(
    listener: TcpListener,
    plane: Arc<Plane>,
    metrics: Arc<Metrics>,
    stop: CancellationToken,
) -> io::Result<()> {
    let routes = Router::new()
        .route("/metrics", get(expose))
        .route("/livez", get(|| async { "ok\n" }))
        .with_state((plane, metrics));
    // A peer that keeps its connection must not keep the process.
    tokio::select! {
        ended = async { axum::serve(listener, routes).await } => ended,
        () = stop.cancelled() => Ok(()),
    }
}

async fn expose(State((plane, metrics)): State<Shared>) -> impl IntoResponse {
    let text = metrics.expose(plane.embed_queue_depth(), plane.shard_memory_bytes());
    ([(header::CONTENT_TYPE, OPEN_METRICS)], text)
}
