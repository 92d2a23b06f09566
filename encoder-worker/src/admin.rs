//! Admin port: metrics and probes over plain HTTP, separate from the port that embeds.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use toolgate_serving::serve_pages;

use super::lifecycle::{Lifecycle, Phase};
use super::telemetry::Metrics;

/// Content type of the exposition text (OpenMetrics 1.0).
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Shared state of the admin port's routes.
#[derive(Clone)]
pub(super) struct Admin {
    pub(super) lifecycle: Arc<Lifecycle>,
    pub(super) metrics: Arc<Metrics>,
}

/// Serves `/metrics`, `/healthz` (the process responds) and `/readyz` (it takes calls) until `over` is cancelled.
pub(super) async fn serve(listener: TcpListener, admin: Admin, over: CancellationToken) {
    let routes = Router::new()
        .route("/metrics", get(expose))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(readiness))
        .with_state(admin);
    serve_pages(listener, routes, over).await;
}

async fn expose(State(admin): State<Admin>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, OPEN_METRICS)], admin.metrics.expose())
}

async fn readiness(State(admin): State<Admin>) -> (StatusCode, &'static str) {
    match admin.lifecycle.phase() {
        Phase::Serving => (StatusCode::OK, "ok\n"),
        Phase::Starting => (StatusCode::SERVICE_UNAVAILABLE, "starting\n"),
        Phase::Draining => (StatusCode::SERVICE_UNAVAILABLE, "draining\n"),
        Phase::Broken => (StatusCode::SERVICE_UNAVAILABLE, "broken\n"),
    }
}
