//! The admin port: metrics and liveness over plain HTTP, apart from the port that agents reach.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use toolgate_serving::serve_pages;

use toolgate_app::plane::Plane;
use toolgate_app::telemetry::Metrics;

/// Content type of the exposition text (OpenMetrics 1.0).
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What the admin port shows.
#[derive(Clone)]
pub struct Admin {
    /// Whose gauges are read.
    pub plane: Arc<Plane>,
    /// What was counted.
    pub metrics: Arc<Metrics>,
    /// Cancelled when the service drains: it is no longer ready then.
    pub draining: CancellationToken,
}

/// Answers `/` with the pages that there are.
const PAGES: &str = concat!(
    "Toolgate ",
    env!("CARGO_PKG_VERSION"),
    ", admin port\n\n",
    "/metrics  metrics (OpenMetrics)\n",
    "/livez    whether the process works\n",
    "/readyz   whether it takes calls\n",
    "/healthz  the same as /readyz\n",
    "/version  name and version (JSON)\n",
);

/// Answers `/version`.
const VERSION: &str =
    concat!("{\"name\":\"toolgate\",\"version\":\"", env!("CARGO_PKG_VERSION"), "\"}\n");

/// Serves `/`, `/metrics`, `/livez`, `/readyz`, `/healthz` and `/version` until `over`.
pub async fn serve(listener: TcpListener, admin: Admin, over: CancellationToken) {
    let routes = Router::new()
        .route("/", get(|| async { PAGES }))
        .route(
            "/version",
            get(|| async { ([(header::CONTENT_TYPE, "application/json")], VERSION) }),
        )
        .route("/metrics", get(expose))
        .route("/livez", get(liveness))
        .route("/readyz", get(readiness))
        .route("/healthz", get(readiness))
        .with_state(admin);
    serve_pages(listener, routes, over).await;
}

async fn expose(State(admin): State<Admin>) -> impl IntoResponse {
    let shards = admin.plane.shards_reading();
    ([(header::CONTENT_TYPE, OPEN_METRICS)], admin.metrics.expose(shards))
}

/// Whoever restarts processes that are not alive mends an encoder that has stopped.
async fn liveness(State(admin): State<Admin>) -> (StatusCode, &'static str) {
    if admin.metrics.encoder().in_process_stopped() {
        (StatusCode::SERVICE_UNAVAILABLE, "the encoder has stopped\n")
    } else {
        (StatusCode::OK, "ok\n")
    }
}

async fn readiness(State(admin): State<Admin>) -> (StatusCode, &'static str) {
    if admin.draining.is_cancelled() {
        return (StatusCode::SERVICE_UNAVAILABLE, "draining\n");
    }
    let is_cut_off = !admin.plane.reaches_store();
    match liveness(State(admin)).await {
        // It answers Route and Gate all the same, and a restart would not mend it.
        (StatusCode::OK, _) if is_cut_off => (
            StatusCode::OK,
            "ok, but the store can't be reached: serving what is loaded or copied\n",
        ),
        answer => answer,
    }
}
